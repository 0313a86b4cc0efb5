"""Compiled code on disk. Loading a pickle of Numba's runs what it says, so each is checked against its hash before.

A file begins with the SHA-256 of its name and content. The name says what was compiled: the source and all that it
calls, the types of the arguments, the machine, and the versions of Numba and LLVM; so files of different versions never
meet. Owner and mode of the folder and of each file are checked too (``pyspark_paralagg.session.private``).
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
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Return where compiled kernels are kept: ``PARALAGG_KERNEL_CACHE``, else a folder in the user's cache.

    Raises ``EnvironmentProblem`` where others may write to it, or nobody can.
    """
    chosen = os.environ.get(SETTING)
    return _checked(Path(chosen) if chosen else Path("~/.cache/pyspark-paralagg/kernels").expanduser())


@lru_cache(maxsize=8)
def _checked(path: Path) -> Path:
    return private_folder(path, SETTING)


@lru_cache(maxsize=1)
def versions() -> str:
    """Return a hash of all code that kernels may call, and of what compiles it."""
    state = hashlib.sha256(f"{numba.__version__}\x00{llvmlite.__version__}\x00{sys.version_info[:2]}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        state.update(path.name.encode() + b"\x00" + path.read_bytes() + b"\x00")
    return state.hexdigest()


def njit(source: str = "", **options: Any) -> Callable[[Callable[..., Any]], Any]:  # noqa: ANN401 - options of Numba
    """Compile a function as ``numba.njit`` does, and keep the result. ``source`` is that of a generated module."""

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
    """How Numba makes a pickle of what it compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Nowhere(function.__code__.co_filename)
        self._filename_base = function.__qualname__


class _Nowhere:
    """In place of Numba's locators, which would choose a folder."""

    def __init__(self, path: str) -> None:
        self._py_file = path

    def ensure_cache_path(self) -> None:
        """Do nothing: a file that is written makes its folder."""


class _Files:
    """One file for each compiled signature of a function."""

    def __init__(self, function: str, stamp: str) -> None:
        self._function, self._stamp = function, stamp

    def load(self, key: object) -> Any:  # noqa: ANN401 - what Numba has saved
        """Return what was saved under ``key``; None where nothing was."""
        path = cache_folder() / self._file_name(key)
        content = read_private(path, SETTING)
        if content is None:
            return None
        if _digest(path.name, content[_DIGEST:]) != content[:_DIGEST]:
            raise _changed(path)
        return pickle.loads(content[_DIGEST:])  # noqa: S301 - checked

    def save(self, key: object, data: object) -> None:
        """Save ``data`` under ``key``."""
        path, content = cache_folder() / self._file_name(key), dumps(data)
        write_private(path, _digest(path.name, content) + content)

    def flush(self) -> None:
        """Remove nothing: files of an older state are never read again."""

    def _file_name(self, key: object) -> str:
        return f"{hashlib.sha256(f'{self._stamp} {self._function} {key!r}'.encode()).hexdigest()[:48]}.code"


def check_source(path: Path, source: str) -> None:
    """Write a generated source beside what is compiled of it, for those who debug; it is never read to be run.

    Raises ``EnvironmentProblem`` ``PARALAGG_CACHE_UNSAFE`` where another source has its name.
    """
    found = read_private(path, SETTING)
    if found is None:
        write_private(path, source.encode())
    elif found != source.encode():
        raise _changed(path)


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\x00" + content).digest()


def _changed(path: Path) -> EnvironmentProblem:
    return EnvironmentProblem(
        "PARALAGG_CACHE_UNSAFE",
        f"{path} is not run: its content is not what was written",
        value=str(path),
        hint=f"delete {path.parent}, and it is made anew; find out who wrote to it",
    )
