"""The scenario's side: a session in the working directory, and facts told one by one.

    session("local-cluster[2,1,1024]", {...}) -> tell(spark, fact, fact, ...)      # a fact is a function of the session

A fact that fails is told as well, with its traceback, and the next one is tried.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import pyspark_paralagg as ra
from pyspark_paralagg.session.attach import bridge

if TYPE_CHECKING:
    from collections.abc import Callable

CONFS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def session(master: str, confs: dict[str, str] | None = None, slots: int = 2) -> SparkSession:
    """A configured session whose files lie in the working directory, with so many slots there."""
    here = Path.cwd()
    builder = SparkSession.builder.master(master).config("spark.local.dir", str(here / "local"))
    for key, value in {**CONFS, "spark.sql.warehouse.dir": str(here / "warehouse"), **(confs or {})}.items():
        builder = builder.config(key, value)
    spark = ra.configure(builder).getOrCreate()
    wait_until(lambda: slots_of(spark) == slots, 60, f"{slots} slots")
    return spark


def slots_of(spark: SparkSession) -> int:
    """Tasks of a gang that could start now."""
    return int(bridge(spark).slots(spark._jsparkSession))


def tell(spark: SparkSession, *facts: Callable[[SparkSession], Any]) -> None:
    """Print each fact as one line of JSON."""
    for fact in facts:
        began = time.monotonic()
        told: dict[str, Any] = {"fact": fact.__name__}
        try:
            told["value"] = fact(spark)
        except Exception:  # noqa: BLE001 - a failure is told, and the next fact is tried
            told["failed"] = traceback.format_exc()
        told["seconds"] = round(time.monotonic() - began, 2)
        print(json.dumps(told), flush=True)  # noqa: T201 - this is how the test hears of it
        print(f"-- {fact.__name__}: {told['seconds']} s", file=sys.stderr, flush=True)  # noqa: T201


def wait_until(is_so: Callable[[], bool], seconds: float, what: str) -> float:
    """Seconds until it was so; an error where it never was."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return time.monotonic() - began
