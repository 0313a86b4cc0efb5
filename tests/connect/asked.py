"""The functions that tests ask a Connect client to run; arguments and results are JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plans as plans_of
import test_fixtures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fixture(spark: SparkSession, case: str, backend: str) -> None:
    """Compare the rows of a fixture with those that are written down."""
    test_fixtures.check(spark, case, backend)


def plans(spark: SparkSession, case: str) -> list[Any]:
    """Return the Plans of a fixture's recursions."""
    return plans_of.plans(spark, case)
