"""Run a task on Spark: start a session, load files as DataFrames, call `ra.datalog`, write its relations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark_paralagg.api.datalog import datalog
from pyspark_paralagg.api.explain import explain
from pyspark_paralagg.command import frames, jobs, outputs
from pyspark_paralagg.command.failure import as_fixpoint_errors
from pyspark_paralagg.command.frame_results import FrameResult
from pyspark_paralagg.command.progress import Progress
from pyspark_paralagg.command.started import session
from pyspark_paralagg.session.quiet import without_spark_logs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.command.task import Task


def run(task: Task) -> None:
    """Run or explain the program; raise the problems of text files before Spark starts."""
    with as_fixpoint_errors():
        if task.options.shows_jvm:
            _run(task)
        else:
            with without_spark_logs():
                _run(task)


def _run(task: Task) -> None:
    options, text = task.options, task.text
    inputs = frames.copy_texts(task.inputs, task.work)
    log = None if options.shows_jvm else task.work / "spark.log"
    with (
        session(options.program.name, options.master, dict(options.confs), log, uses_delta=bool(task.deltas)) as spark,
        Progress(sys.stderr, is_quiet=options.is_quiet) as progress,
    ):
        dataframes = frames.load(spark, inputs)
        relations = datalog(
            spark,
            text.source,
            dataframes,
            name=text.name,
            backend=options.backend,
            mode=options.mode,
            functors=task.functions,
        )
        try:
            with jobs.show_jobs(spark, progress):
                results = {}
                for name in task.requested.names:  # all are built before any is written, so shared recursions run once
                    progress.start_relation(name)
                    with as_fixpoint_errors(name):
                        results[name] = relations[name]
                if options.explain:
                    _explain(results, options.explain)
                else:
                    as_json = {r.relation for r in task.requested.rows if r.format == "json"} & task.text.columns.keys()
                    encoded = {n: relations.encoded(n) for n in as_json}
                    frame_results = {n: FrameResult(n, df, encoded.get(n)) for n, df in results.items()}
                    outputs.write_all(task, frame_results, progress)
        finally:
            relations.unpersist()


def _explain(results: Mapping[str, DataFrame], part: str) -> None:
    """Print each distinct explanation once, with the names of its relations."""
    names: dict[str, list[str]] = {}
    for name, df in results.items():
        names.setdefault(explain(df, part), []).append(name)
    for explanation, relation_names in names.items():
        outputs.print_explained(relation_names, explanation, part)
