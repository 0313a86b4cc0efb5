"""Scala objects of the engine, in the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE = "org.apache.spark.sql.paralagg"


def scala_object(spark: SparkSession, name: str) -> Any:  # noqa: ANN401 - a py4j object
    """Return the object of this name in the engine's package, as in ``driver.RunRegistry``."""
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(f"{ENGINE}.{name}$").getField("MODULE$").get(None)
