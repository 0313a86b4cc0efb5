"""Adds ``recursive_agg`` to ``pyspark.sql.DataFrame`` when pyspark is imported, be it before this package or after.

Importing pyspark here would cost each MPI rank, and each run of the command without Spark, more than all the rest.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MODULE = "pyspark.sql.dataframe"
"""Of the parent of the classic and the Connect class."""


def add_method(name: str, method: Callable[..., Any]) -> None:
    """``DataFrame.<name>`` is ``method`` from the import of pyspark on."""
    if _MODULE in sys.modules:
        setattr(sys.modules[_MODULE].DataFrame, name, method)
    else:
        sys.meta_path.insert(0, _Finder(name, method))


class _Finder:
    """Finds the one module as others do, and sees to it that the method is there once it has run."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self._name = name
        self._method = method

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for all other modules."""
        del path, target
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)  # from here on the others find it
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_add(module: ModuleType) -> None:
                run(module)
                setattr(module.DataFrame, self._name, self._method)

            spec.loader.exec_module = run_and_add  # type: ignore[method-assign]
        return spec
