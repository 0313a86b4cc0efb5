"""Start a scenario's session in the working directory, and print its facts.

    session("local-cluster[2,1,1024]", {...}) -> print_facts(spark, fact, ...)   # a fact is a function of the session

A fact that fails is printed with its traceback, and the next one is tried.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jvm_options import executor_conf
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
    """Return a configured session with its files in the working directory, once ``slots`` slots are there."""
    folder = Path.cwd()
    builder = SparkSession.builder.master(master).config("spark.local.dir", str(folder / "local"))
    for key, value in {
        **CONFS,
        **executor_conf(),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(confs or {}),
    }.items():
        builder = builder.config(key, value)
    spark = ra.configure(builder).getOrCreate()
    wait_until(lambda: slots_of(spark) == slots, 60, f"{slots} slots")
    return spark


def slots_of(spark: SparkSession) -> int:
    """Return the number of tasks of a gang that could start now."""
    return int(bridge(spark).slots(spark._jsparkSession))


def print_facts(spark: SparkSession, *facts: Callable[[SparkSession], Any]) -> None:
    """Compute each fact and print it as one line of JSON."""
    for fact in facts:
        _catch_up(spark)
        started_at = time.monotonic()
        line: dict[str, Any] = {"fact": fact.__name__}
        try:
            line["value"] = fact(spark)
        except Exception:  # noqa: BLE001 - a failure is printed, and the next fact is tried
            line["failed"] = traceback.format_exc()
        line["seconds"] = round(time.monotonic() - started_at, 2)
        print(json.dumps(line), flush=True)  # noqa: T201 - the test reads it
        print(f"-- {fact.__name__}: {line['seconds']} s", file=sys.stderr, flush=True)  # noqa: T201


def _catch_up(spark: SparkSession) -> None:
    """Wait until the store of Spark's UI knows that the queries of earlier facts have ended.

    A caller may have its rows before. A fact that waits for iterations would then see those of an earlier query.
    """
    context = spark.sparkContext._jsc.sc()
    if context.isStopped():
        return
    context.listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()

    def all_over() -> bool:
        executions = store.executionsList()
        return executions.isEmpty() or executions.last().completionTime().isDefined()

    with contextlib.suppress(TimeoutError):
        wait_until(all_over, 10, "the queries of earlier facts have ended")


def wait_until(is_true: Callable[[], bool], seconds: float, description: str) -> float:
    """Wait for a condition. Return the seconds that took, or raise ``TimeoutError``."""
    started_at = time.monotonic()
    while not is_true():
        if time.monotonic() - started_at > seconds:
            raise TimeoutError(f"not within {seconds} s: {description}")
        time.sleep(0.02)
    return time.monotonic() - started_at
