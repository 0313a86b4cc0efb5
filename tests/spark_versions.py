"""Marks for tests of what only some Sparks have."""

from __future__ import annotations

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

RUN_ERRORS: tuple[type[Exception], ...] = (PySparkException,) if SPARK >= (4, 0) else (PySparkException, Py4JJavaError)
"""What a job raises that a row ends; PySpark 3.5 converts only the errors of the driver."""

STATIC_CONDITION = "CANNOT_MODIFY_STATIC_CONFIG" if SPARK >= (4, 0) else "_LEGACY_ERROR_TEMP_1325"
"""The condition of a static conf that a session sets."""

RAISED = r"\[USER_RAISED_EXCEPTION\] " if SPARK >= (4, 0) else ""
"""What stands before the message of ``raise_error``, as a pattern."""

KNOWS_SIZES = SPARK >= (4, 0)
"""Whether Spark knows the size of a DataFrame of the driver's rows; without it, the compiler joins in another order."""


def since(minor: str, what: str) -> pytest.MarkDecorator:
    """Skip a test where Spark is older than ``minor``, such as ``4.1``."""
    first = tuple(int(part) for part in minor.split("."))
    return pytest.mark.skipif(first > SPARK, reason=f"Spark {minor} and later: {what}")
