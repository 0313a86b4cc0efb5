"""Run tasks by name, all without one: ``python -m examples.tasks word_ladder``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from pyspark.sql import SparkSession

import pyspark_paralagg as ra
from examples import tasks
from pyspark_paralagg.delta.tables import DELTA_CONFS

NAMES = [m.name for m in pkgutil.iter_modules(tasks.__path__) if m.name != "__main__"]
WITH_DELTA = ("bill_of_materials",)


def main(names: list[str]) -> None:
    """Print question and answer of each task."""
    names = names or [n for n in NAMES if n not in WITH_DELTA]
    builder = SparkSession.builder.master("local[2]")
    if not set(names).isdisjoint(WITH_DELTA):
        from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - only these tasks need Delta

        for key, value in DELTA_CONFS.items():
            builder = builder.config(key, value)
        builder = configure_spark_with_delta_pip(builder)
    spark = ra.configure(builder).getOrCreate()
    for name in names:
        task = importlib.import_module(f"examples.tasks.{name}")
        sys.stdout.write(f"{task.__doc__}\n")
        task.answer(spark).show(truncate=False)


if __name__ == "__main__":
    main(sys.argv[1:])
