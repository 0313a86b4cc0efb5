"""``ra.progress``: what is heard of runs on each executor, what is drawn and what is not, and that nothing is left."""

from __future__ import annotations

import importlib
import logging
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyspark import InheritableThread
from rows import frame
from scala_objects import scala_object
from spark_versions import RUN_ERRORS

import pyspark_paralagg as ra
from pyspark_paralagg.report import bars
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

LENGTH = 40
MODULE = importlib.import_module("pyspark_paralagg.report.progress")  # the package has the function by that name


def path(spark: SparkSession, length: int = LENGTH, **how: object) -> DataFrame:
    """Distances along a chain: one row is new in each iteration.

    A round of plain DataFrames begins when what was told of the one before is on its way to the listeners.
    """
    edges = spark.range(length).selectExpr("id as src", "id + 1 as dst")
    start = spark.range(1).selectExpr("id as node", "0L as dist")

    def step(d: DataFrame) -> DataFrame:
        while any(watch._pending for watch in MODULE._WATCHES):
            time.sleep(0.01)
        return d.join(edges, d.node == edges.src).select(edges.dst.alias("node"), (d.dist + 1).alias("dist"))

    return start.recursive_agg(
        "node",
        {"dist": "min"},
        step=step,
        **{"name": "path", **how},  # type: ignore[arg-type]
    )


def heard_of(df: DataFrame) -> list[ra.RunProgress]:
    told: list[ra.RunProgress] = []
    with ra.progress(told.append):
        df.count()
    return told


def threads_of_the_jvm(spark: SparkSession) -> list[str]:
    threads = spark._jvm.Thread.getAllStackTraces().keySet()
    return sorted(t.getName() for t in threads if t.getName().startswith("Thread-") or "paralagg" in t.getName())


@pytest.mark.parametrize("backend", ["spark", "local"])
def test_the_end_of_a_lazy_run_is_what_the_report_says(spark: SparkSession, backend: str) -> None:
    found = path(spark, backend=backend)
    *_, last = told = heard_of(found)
    report = ra.report(found)
    assert report is not None
    assert {t.run for t in told} == {last.run}
    assert (last.name, last.backend, last.state) == ("path", backend, "done")
    assert (last.iteration, last.total) == (report.iterations, report.tuples) == (LENGTH + 1, LENGTH + 1)
    assert last.changed in (LENGTH, LENGTH + 1)  # in place, the base is what the first iteration applies
    assert 0 < last.seconds < 600
    assert last.limit is None


def test_the_dataframe_executor_tells_of_each_round(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ra.RunProgress] = []
    monkeypatch.setattr("pyspark_paralagg.backends.dataframe.publish", told.append)
    path(spark, 3, backend="dataframe", max_iterations=9)
    assert [(t.state, t.iteration, t.delta, t.total, t.changed) for t in told] == [
        ("running", 0, 0, 0, 0),
        ("running", 1, 1, 2, 1),
        ("running", 2, 1, 3, 2),
        ("running", 3, 1, 4, 3),
        ("running", 4, 0, 4, 3),
        ("done", 4, 0, 4, 3),
    ]
    assert {(t.backend, t.name, t.limit, t.bytes) for t in told} == {("dataframe", "path", 9, None)}


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_a_run_that_fails_has_failed(spark: SparkSession, backend: str) -> None:
    told: list[ra.RunProgress] = []
    with ra.progress(told.append), pytest.raises((*RUN_ERRORS, ra.FixpointError)):
        path(spark, backend=backend, max_iterations=3).count()
    assert told[-1].state == "failed"
    assert told[-1].iteration in (2, 3)  # the news of the last iteration may be overtaken by that of the end


@contextmanager
def endless(spark: SparkSession, backend: str) -> Iterator[threading.Thread]:
    """A thread with a run that goes on until the context ends."""
    is_over = threading.Event()

    def step(r: DataFrame) -> DataFrame:
        if backend == "dataframe":  # which no job group reaches while it plans
            assert not is_over.is_set(), "cancelled"
        return r.selectExpr("node", "steps + 1 as steps")

    def query() -> None:
        spark.sparkContext.setJobGroup("endless", "watched", interruptOnCancel=False)
        start = spark.range(1).selectExpr("id as node", "0L as steps")
        with pytest.raises(Exception, match="cancelled"):
            start.recursive_agg(
                "node", {"steps": "max"}, step=step, name="endless", max_iterations=2_000_000_000, on_limit="return",
                backend=backend,
            ).count()  # fmt: skip

    thread = InheritableThread(target=query)
    thread.start()
    try:
        yield thread
    finally:
        is_over.set()
        spark.sparkContext.cancelJobGroup("endless")
        thread.join(60)


def test_a_run_is_heard_of_while_it_goes_on(spark: SparkSession) -> None:
    moved = threading.Event()
    told: list[ra.RunProgress] = []

    def hear(run: ra.RunProgress) -> None:
        told.append(run)
        if len({t.iteration for t in told if t.iteration > 0}) > 1:
            moved.set()

    with ra.progress(hear), endless(spark, "spark"):
        assert moved.wait(60)
    running = [t for t in told if t.state == "running"]
    assert [t.iteration for t in running] == sorted(t.iteration for t in running)
    assert {t.limit for t in told} == {2_000_000_000}
    assert told[-1].state == "failed"


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_the_end_does_not_wait_for_a_run_that_another_thread_goes_on_with(
    spark: SparkSession, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "_DRAIN_TIMEOUT_SECONDS", 60)
    moved = threading.Event()
    with endless(spark, backend) as thread:
        with ra.progress(lambda run: run.iteration > 1 and moved.set()):
            assert moved.wait(60)
            assert path(spark, 3).count() == 4
            began = time.monotonic()
        assert time.monotonic() - began < 30
        assert thread.is_alive()


def test_who_watches_nothing_hears_of_no_run_before(spark: SparkSession) -> None:
    path(spark).count()
    assert heard_of(spark.range(3)) == []


def test_a_listener_that_raises_is_logged_once_and_the_query_goes_on(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[ra.RunProgress] = []

    def bad(run: ra.RunProgress) -> None:
        calls.append(run)
        message = "not today"
        raise ValueError(message)

    with ra.progress(bad):
        assert path(spark).count() == LENGTH + 1
        path(spark, 2, backend="dataframe")
    assert len(calls) == 1
    assert [r.levelno for r in caplog.records if "not called again" in r.message] == [logging.ERROR]


def test_no_thread_is_left_here_or_in_the_jvm(spark: SparkSession) -> None:
    spark.conf.set(conf.PROGRESS.name, "on")
    with ra.progress():
        path(spark).count()
    here, there = threading.enumerate(), threads_of_the_jvm(spark)
    for _ in range(3):
        with ra.progress():
            path(spark).count()
    assert threading.enumerate() == here
    until = time.monotonic() + 10
    while len(threads_of_the_jvm(spark)) > len(there) and time.monotonic() < until:
        time.sleep(0.1)  # a connection ends in the JVM a little later than here
    assert len(threads_of_the_jvm(spark)) <= len(there)


def test_bars_say_iteration_rows_and_the_end(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    spark.conf.set(conf.PROGRESS.name, "on")
    with ra.progress():
        path(spark, 3, backend="dataframe")
        path(spark, 3, backend="dataframe", max_iterations=2, on_limit="return", name="near")
    out, err = capsys.readouterr()
    assert out == ""
    assert "path: loading" in err
    assert "path: iteration 2, 1 rows changed, " in err
    assert "path: 4 iterations, 4 rows" in err
    assert "near: 2 iterations, 3 rows 100%" in err


def test_bars_are_quiet_when_asked_and_where_nobody_looks(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ra.progress():  # auto, and standard error is no terminal here
        path(spark, 2, backend="dataframe")
    spark.conf.set(conf.PROGRESS.name, "off")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ra.progress():
        path(spark, 2, backend="dataframe")
    assert capsys.readouterr().err == ""
    assert bars.is_visible()


def test_a_notebook_shows_bars_and_a_terminal_of_ipython_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, shows in (("ZMQInteractiveShell", True), ("TerminalInteractiveShell", False)):
        of_ipython = SimpleNamespace(get_ipython=lambda shell=shell: type(shell, (), {})())
        monkeypatch.setitem(sys.modules, "IPython", of_ipython)
        assert bars.is_visible() is shows


def test_a_wrong_conf_and_no_session_are_said(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.conf.set(conf.PROGRESS.name, "loud")
    with pytest.raises(ra.UsageError, match=r"which is not auto \| on \| off"), ra.progress():
        pass
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(ra.UsageError) as caught, ra.progress():
        pass
    assert caught.value.code == "PARALAGG_NO_SESSION"


def test_two_who_watch_hear_the_same(spark: SparkSession) -> None:
    first: list[ra.RunProgress] = []
    second: list[ra.RunProgress] = []
    with ra.progress(first.append), ra.progress(second.append, spark=spark):
        frame(spark, "x bigint", [(1,)]).recursive_agg("x", step=lambda r: r, backend="dataframe", name="one")
    assert first[-1] == second[-1]
    assert first[-1].state == "done"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("shim", ["there", "missing"])
def test_a_listener_hears_in_another_thread_what_was_last_told_of_a_run(
    shim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shim == "missing":
        monkeypatch.setattr(MODULE, "_open_shim", lambda _: None)
    heard: list[tuple[str, int]] = []
    threads: set[str] = set()

    def hear(run: ra.RunProgress) -> None:
        heard.append((run.run, run.iteration))
        threads.add(threading.current_thread().name)

    began = time.monotonic()
    with ra.progress(hear):
        for iteration in range(10_000):
            for run in ("a", "b"):
                MODULE.publish(ra.RunProgress(run, "it", "dataframe", iteration=iteration))
    looks = 1 + (time.monotonic() - began) / MODULE._POLL_SECONDS
    assert threads == {"paralagg-progress"}
    for run in ("a", "b"):
        iterations = [i for r, i in heard if r == run]
        assert iterations == sorted(iterations)
        assert iterations[-1] == 9_999
        assert len(iterations) <= looks


def test_a_listener_may_run_a_recursion_itself(spark: SparkSession) -> None:
    sizes: list[int] = []

    def hear(run: ra.RunProgress) -> None:
        if run.name == "path" and not sizes:
            one = frame(spark, "x bigint", [(1,)])
            sizes.append(one.recursive_agg("x", step=lambda r: r, backend="dataframe", name="inner").count())

    def query() -> None:
        with ra.progress(hear, spark=spark):
            path(spark, 2, backend="dataframe")

    thread = InheritableThread(target=query, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
    assert sizes == [1]


def test_a_thread_of_a_query_that_has_ended_begins_no_run(spark: SparkSession) -> None:
    """A cancelled query may still plan a stage in another thread; a run that begins there would never end."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    df = spark.range(1).recursive_agg(
        "id", step=lambda r: r.where("id < 2").selectExpr("id + 1 as id"), backend="spark"
    )
    plan = df._jdf.queryExecution().executedPlan()
    live = scala_object(spark, "driver.RunRegistry").liveCount
    spark.sparkContext.setLocalProperty("spark.sql.execution.id", "987654321")
    try:
        with pytest.raises(Exception, match="987654321 ended before its recursion began"):
            plan.execute()
    finally:
        spark.sparkContext.setLocalProperty("spark.sql.execution.id", None)
    assert live() == 0
    assert df.count() == 3
