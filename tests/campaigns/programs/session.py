"""A Spark session for a campaign."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

import pyspark_paralagg as ra


def spark_session() -> SparkSession:
    """Two slots, two partitions, no UI. Java compiles what is hot a second time: a campaign is long."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("paralagg-campaign")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.ui.retainedExecutions": "5",  # the store keeps plan graphs, and programs have large ones
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    session = ra.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
