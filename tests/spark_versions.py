"""What tests need to run on each supported Spark: marks for what only some have, and how their processes find it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyspark
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pathlib import Path

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

RUN_ERRORS: tuple[type[Exception], ...] = (PySparkException,) if SPARK >= (4, 0) else (PySparkException, Py4JJavaError)
"""What a job raises that a row ends; PySpark 3.5 converts only the errors of the driver."""

INTERRUPTED: tuple[type[BaseException], ...] = (
    (KeyboardInterrupt,) if SPARK >= (4, 0) else (KeyboardInterrupt, Py4JError)
)
"""What Ctrl-C raises in a call that waits for the JVM."""

CANCELLED = "SPARK_JOB_CANCELLED" if SPARK >= (4, 0) else "cancelled "
"""What the error of a cancelled job says."""

STATIC_CONDITION = {(3, 5): "_LEGACY_ERROR_TEMP_1325", (4, 0): "CANNOT_MODIFY_CONFIG"}.get(
    SPARK, "CANNOT_MODIFY_STATIC_CONFIG"
)
"""The condition of a static conf that a session sets."""

RAISED = r"\[USER_RAISED_EXCEPTION\] " if SPARK >= (4, 0) else ""
"""What stands before the message of ``raise_error``, as a pattern."""

KNOWS_SIZES = SPARK >= (4, 0)
"""Whether Spark knows the size of a DataFrame of the driver's rows; without it, the compiler joins in another order."""


def since(minor: str, what: str) -> pytest.MarkDecorator:
    """Skip a test where Spark is older than ``minor``, such as ``4.1``."""
    first = tuple(int(part) for part in minor.split("."))
    return pytest.mark.skipif(first > SPARK, reason=f"Spark {minor} and later: {what}")


def python_path(*folders: Path | str) -> str:
    """The PYTHONPATH of a test's process: ``folders``, then that of this process, which may name another Spark."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


def skip_without_delta(output: str) -> None:
    """Skip the test if a process could not resolve Delta's jars, which its ``output`` says: Spark 4.3 has none."""
    if "unresolved dependenc" in output:
        pytest.skip("Delta's jars cannot be resolved here")
