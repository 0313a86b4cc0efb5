"""Options of the JVMs that tests start. ``pytest --whole`` runs with Java's and Delta's defaults.

Most of these JVMs live for seconds, too briefly for Java's second compiler and its parallel collector: without them the
tests take a third less processor time, those of clusters half. Delta keeps the state of a table in 50 partitions.
"""

from __future__ import annotations

import os

VARIABLE = "SPARK_SUBMIT_OPTS"
"""Spark's launcher passes the options in this variable to the driver's JVM."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_FEW_PARTITIONS = "-Dspark.databricks.delta.snapshotPartitions=2"


def use_quick_jvms() -> None:
    """Let JVMs that this process and its children start use these options, unless the user has set some."""
    os.environ.setdefault(VARIABLE, f"{QUICK} {_FEW_PARTITIONS}")


def executor_conf() -> dict[str, str]:
    """Return the conf that gives executors the driver's options; Spark refuses its own confs there."""
    options = os.environ.get(VARIABLE, "").split()
    return {"spark.executor.extraJavaOptions": " ".join(o for o in options if not o.startswith("-Dspark."))}
