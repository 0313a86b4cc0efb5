"""A run on Spark: the session, DataFrames of the files, `ra.datalog`, its relations as results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_paralagg.api.datalog import datalog
from pyspark_paralagg.api.explain import explain
from pyspark_paralagg.command import frames, jobs, outputs
from pyspark_paralagg.command.failure import as_fixpoint_errors, without_sparks_records
from pyspark_paralagg.command.frame_results import FrameResult
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.started import session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.command.task import Task


def run(task: Task) -> None:
    """Runs or explains the program. What is wrong with its files is told before Spark starts."""
    with as_fixpoint_errors():
        if task.options.shows_jvm:
            _run(task)
        else:
            with without_sparks_records():
                _run(task)


def _run(task: Task) -> None:
    options, text = task.options, task.text
    inputs = frames.copied(task.inputs, task.work)
    log = None if options.shows_jvm else task.work / "spark.log"
    with (
        session(options.program.name, options.master, dict(options.confs), log, uses_delta=bool(task.deltas)) as spark,
        Progress(sys.stderr, is_quiet=options.is_quiet) as progress,
    ):
        given = frames.load(spark, inputs)
        relations = datalog(spark, text.source, given, name=text.name, backend=options.backend, mode=options.mode)
        try:
            with jobs.shown(spark, progress):
                found = {}
                for name in task.wanted.names:  # all of them first: what several outputs share runs once
                    progress.on(name)
                    with as_fixpoint_errors(name):
                        found[name] = relations[name]
                if options.explain:
                    _explain(found, options.explain)
                else:
                    outputs.write_all(task, {n: FrameResult(n, df) for n, df in found.items()}, progress)
        finally:
            relations.unpersist()


def _explain(found: Mapping[str, DataFrame], part: str) -> None:
    """Relations of one recursion are explained together."""
    names: dict[str, list[str]] = {}
    for name, df in found.items():
        names.setdefault(explain(df, part), []).append(name)
    for told, of in names.items():
        outputs.print_explained(of, told, part)
