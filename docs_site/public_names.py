"""The public names of the package, and where mkdocstrings finds each."""

from __future__ import annotations

import inspect
import pkgutil

import pyspark_paralagg as ra

_SUBMODULES = {module.name for module in pkgutil.iter_modules(ra.__path__)}

NAMES: tuple[str, ...] = tuple(ra.__all__)


def identifier(name: str) -> str:
    """The path of a public name: as it is imported, but of a function that is called like its module, where it is."""
    value = getattr(ra, name)
    if name in _SUBMODULES and not inspect.ismodule(value):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{ra.__name__}.{name}"


def public_name(own_name: str) -> str | None:
    """What ``ra`` calls the class or function ``own_name``: ``MinBy`` is ``min_by``. None for what is not public."""
    return next((n for n in NAMES if getattr(getattr(ra, n), "__name__", None) == own_name), None)
