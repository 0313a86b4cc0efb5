"""Enable dynamic allocation: no gang may be submitted, because Spark would stop the whole context."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from queries import chain, chain_total, total
from stage import print_facts, session

import pyspark_paralagg as ra
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTH = 2


def auto(spark: SparkSession) -> dict[str, Any]:
    """`auto` logs why it chooses plain DataFrames."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("pyspark_paralagg").addHandler(handler)
    df = chain(spark, LENGTH)
    report = ra.report(df)
    assert report is not None
    return {"right": total(df) == chain_total(LENGTH), "by": report.backend, "reason": report.reason, "said": messages}


def insisting(spark: SparkSession) -> dict[str, str]:
    """`backend="spark"` is refused."""
    try:
        chain(spark, LENGTH, backend="spark")
    except ParalaggError as problem:
        return {"code": problem.code, "text": str(problem)}
    return {"code": "none", "text": ""}


def alive(spark: SparkSession) -> bool:
    """Return whether the context still runs."""
    return bool(spark.range(10).count() == 10)


if __name__ == "__main__":
    confs = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
    }
    spark = session("local-cluster[1,2,1024]", confs, slots=0)
    print_facts(spark, auto, insisting, alive)
    spark.stop()
