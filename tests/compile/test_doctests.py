"""The examples in the docstrings of the pure layers run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import pyspark_paralagg.compile
import pyspark_paralagg.plan
import pyspark_paralagg.program

LAYERS = (pyspark_paralagg.compile, pyspark_paralagg.plan, pyspark_paralagg.program)
MODULES = [f"{p.__name__}.{m.name}" for p in LAYERS for m in pkgutil.iter_modules(p.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
