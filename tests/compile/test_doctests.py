"""The examples in the docstrings run, of the pure layers and of what needs no Spark."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

# By name: the package's attribute `datalog` is the function of that name.
LAYERS = [
    importlib.import_module(f"pyspark_paralagg.{n}") for n in ("compile", "plan", "program", "datalog", "command")
]
MODULES = [f"{p.__name__}.{m.name}" for p in LAYERS for m in pkgutil.iter_modules(p.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
