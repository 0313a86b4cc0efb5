"""Marks for tests of what only some Sparks have."""

from __future__ import annotations

import pyspark
import pytest

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])


def since(minor: str, what: str) -> pytest.MarkDecorator:
    """Skip a test where Spark is older than ``minor``, such as ``4.1``."""
    first = tuple(int(part) for part in minor.split("."))
    return pytest.mark.skipif(first > SPARK, reason=f"Spark {minor} and later: {what}")
