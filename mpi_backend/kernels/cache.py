"""Cache compiled code on disk. A pickle can run any code when it is loaded, so its hash is checked first.

A file begins with the SHA-256 of its name and content. The name is a hash of what was compiled: the source and all that
it calls, the types of the arguments, the machine, the versions of Numba and LLVM. So versions do not share files.
Owner and mode of the folder and of each file are checked too (``pyspark_paralagg.session.private``).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session.private import private_folder, read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Callable

SETTING = "PARALAGG_KERNEL_CACHE"
LEAF: dict[str, Any] = {"nogil": True, "_nrt": False}
"""Options for a function that allocates nothing and is called in the loops of others.

Without ``_nrt=False`` Numba counts references to its arrays at each call: a key is looked up in 3.5 ns, and in 31 then.
"""
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Return the folder of compiled kernels: ``PARALAGG_KERNEL_CACHE``, else a folder in the user's cache.

    Raises ``EnvironmentProblem`` if other users may write to it, or if it is not writable.
    """
    setting = os.environ.get(SETTING)
    return _check_folder(Path(setting) if setting else Path("~/.cache/pyspark-paralagg/kernels").expanduser())


@lru_cache(maxsize=8)
def _check_folder(path: Path) -> Path:
    return private_folder(path, SETTING)


@lru_cache(maxsize=1)
def versions() -> str:
    """Return a hash of all code that kernels may call, and of the compiler's versions."""
    state = hashlib.sha256(f"{numba.__version__}\x00{llvmlite.__version__}\x00{sys.version_info[:2]}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        state.update(path.name.encode() + b"\x00" + path.read_bytes() + b"\x00")
    return state.hexdigest()


def njit(source: str = "", **options: Any) -> Callable[[Callable[..., Any]], Any]:  # noqa: ANN401 - options of Numba
    """Compile a function as ``numba.njit`` does, and cache the result. ``source`` is a generated module's."""

    def decorate(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - a dispatcher of Numba
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = _Cache(function, hashlib.sha256((versions() + source).encode()).hexdigest()[:32])  # noqa: SLF001 - as enable_caching does
        return dispatcher

    return decorate


class _Cache(FunctionCache):
    """Numba's cache of one function, over checked files."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl = _Results(function)
        self._cache_path = ""
        self._cache_file: Any = _Files(f"{function.__module__}.{function.__qualname__}", stamp)
        self.enable()


class _Results(CompileResultCacheImpl):
    """Numba's conversion of compiled code to a pickle."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Nowhere(function.__code__.co_filename)
        self._filename_base = function.__qualname__


class _Nowhere:
    """A replacement of Numba's locators, which choose a folder."""

    def __init__(self, path: str) -> None:
        self._py_file = path

    def ensure_cache_path(self) -> None:
        """Do nothing: writing a file creates its folder."""


class _Files:
    """One file for each compiled signature of a function."""

    def __init__(self, function: str, stamp: str) -> None:
        self._function, self._stamp = function, stamp

    def load(self, key: object) -> Any:  # noqa: ANN401 - any data of Numba
        """Return the data saved under ``key``; None if there is none."""
        path = cache_folder() / self._file_name(key)
        content = read_private(path, SETTING)
        if content is None:
            return None
        if _digest(path.name, content[_DIGEST:]) != content[:_DIGEST]:
            raise _changed_error(path)
        return pickle.loads(content[_DIGEST:])  # noqa: S301 - checked

    def save(self, key: object, data: object) -> None:
        """Save ``data`` under ``key``."""
        path, content = cache_folder() / self._file_name(key), dumps(data)
        write_private(path, _digest(path.name, content) + content)

    def flush(self) -> None:
        """Do nothing: files of older versions are never read."""

    def _file_name(self, key: object) -> str:
        return f"{hashlib.sha256(f'{self._stamp} {self._function} {key!r}'.encode()).hexdigest()[:48]}.code"


def check_source(path: Path, source: str) -> None:
    """Write a generated source beside its compiled code, for debugging. The file is never executed.

    Raises ``EnvironmentProblem`` ``PARALAGG_CACHE_UNSAFE`` if the file has other content.
    """
    content = read_private(path, SETTING)
    if content is None:
        write_private(path, source.encode())
    elif content != source.encode():
        raise _changed_error(path)


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\x00" + content).digest()


def _changed_error(path: Path) -> EnvironmentProblem:
    return EnvironmentProblem(
        "PARALAGG_CACHE_UNSAFE",
        f"{path} is not run: its content is not what was written",
        value=str(path),
        hint=f"delete {path.parent}, and it is made anew; find out who wrote to it",
    )
