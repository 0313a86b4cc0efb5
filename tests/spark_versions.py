"""Marks for tests of what only some Sparks have."""

from __future__ import annotations

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

RUN_ERRORS: tuple[type[Exception], ...] = (PySparkException,) if SPARK >= (4, 0) else (PySparkException, Py4JJavaError)
"""What a job raises that a row ends; PySpark 3.5 converts only the errors of the driver."""


def since(minor: str, what: str) -> pytest.MarkDecorator:
    """Skip a test where Spark is older than ``minor``, such as ``4.1``."""
    first = tuple(int(part) for part in minor.split("."))
    return pytest.mark.skipif(first > SPARK, reason=f"Spark {minor} and later: {what}")
