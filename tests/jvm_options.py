"""Options of the JVMs that tests start. ``pytest --whole`` runs with Java's and Delta's defaults.

Most of these JVMs live for seconds, too briefly for Java's second compiler and its parallel collector: without them the
tests take a third less processor time, those of clusters half. Loading and checking Spark's classes is the larger part
of what is left; the archive that ``class_archive.py`` makes has them loaded (a session with a first query: 14 s before,
8 after). Delta keeps the state of a table in 50 partitions.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

VARIABLE = "SPARK_SUBMIT_OPTS"
"""Spark's launcher passes the options in this variable to the driver's JVM."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A JVM that cannot use the archive (its class path is another one) would say so in its standard output."""
ARCHIVE = Path(__file__).parents[1] / "build" / f"classes-{version('pyspark')}.jsa"
_FEW_PARTITIONS = "-Dspark.databricks.delta.snapshotPartitions=2"


def use_quick_jvms() -> None:
    """Let JVMs that this process and its children start use these options, unless the user has set some."""
    os.environ.setdefault(VARIABLE, f"{quick()} {_FEW_PARTITIONS}")


def quick() -> str:
    """Return the options that make a short JVM cheaper, with the archive of classes if there is one."""
    return f"{QUICK} {QUIET} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else QUICK


def executor_conf() -> dict[str, str]:
    """Return the conf that gives executors the driver's options; Spark refuses its own confs there."""
    options = os.environ.get(VARIABLE, "").split()
    return {"spark.executor.extraJavaOptions": " ".join(o for o in options if not o.startswith("-Dspark."))}
