"""No line of SQL starts a program or names a folder: confs that do are static, and a session's value is not read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from rows import frame, rows_of
from scala_objects import scala_object
from spark_versions import STATIC_CONDITION, python_path, since

import pyspark_paralagg as ra
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
STATIC = [key for key in conf.REGISTRY if key.is_static]
DYNAMIC = [key for key in conf.REGISTRY if not key.is_static]
THRIFT_SECONDS = 180

RECURSION = (
    "WITH RECURSIVE t({0}) AS (SELECT 1 UNION SELECT {0} + 1 FROM t WHERE {0} < 4) SELECT {0} FROM t ORDER BY {0}"
)


def forced(spark: SparkSession, key: str, value: str) -> None:
    """Puts a value into the session's own conf without Spark's check."""
    spark._jsparkSession.sessionState().conf().setConfString(key, value)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """All confs as they were, afterwards."""
    before = {key.name: spark.sparkContext.getConf().get(key.name) for key in STATIC}
    yield spark
    ra.attach(spark, {**before, **dict.fromkeys(key.name for key in DYNAMIC)})


def test_what_names_a_program_or_a_folder_is_static() -> None:
    assert {key.name for key in conf.REGISTRY if key.type in ("path", "command") or "command" in key.type} == {
        key.name for key in STATIC
    }


def test_both_sides_know_the_same_static_keys(session: SparkSession) -> None:
    listed = scala_object(session, "StaticConfs").All()
    assert {listed.apply(n) for n in range(listed.size())} == {key.name for key in STATIC}


@pytest.mark.parametrize("key", STATIC, ids=lambda key: key.name)
@pytest.mark.parametrize(
    "change",
    [
        lambda spark, name: spark.conf.set(name, "/tmp/x"),  # noqa: S108 - refused
        lambda spark, name: spark.conf.unset(name),
        lambda spark, name: spark.sql(f"SET {name}=/tmp/x"),
        lambda spark, name: spark.sql(f"RESET {name}"),
        lambda spark, name: spark.newSession().sql(f"SET {name}=/tmp/x"),
    ],
    ids=["conf.set", "conf.unset", "SET", "RESET", "SET in another session"],
)
def test_a_session_cannot_change_a_static_key(
    session: SparkSession, key: conf.Key, change: Callable[[SparkSession, str], Any]
) -> None:
    before = conf.read(session, key)
    with pytest.raises(AnalysisException) as caught:
        change(session, key.name)
    assert condition_of(caught.value) == STATIC_CONDITION
    assert key.name in str(caught.value)
    assert conf.read(session, key) == before


@pytest.mark.parametrize("key", DYNAMIC, ids=lambda key: key.name)
def test_other_keys_are_set_by_sql(session: SparkSession, key: conf.Key) -> None:
    value = {"progress": "off", "backend": "spark"}.get(key.name.rpartition(".")[2], "1")
    value = "true" if key.type == "true | false" else value
    session.sql(f"SET {key.name}={value}")
    found = conf.read(session, key)
    assert found == 1 if value == "1" else str(found).lower() == value


@since("4.0", "WITH RECURSIVE")
def test_a_python_in_the_sessions_conf_is_not_started(session: SparkSession, tmp_path: Path) -> None:
    """Even where it got past Spark's check, as options of a session that is made beside others do."""
    mark, script = tmp_path / "started", tmp_path / "python"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    forced(session, "spark.paralagg.python", str(script))
    forced(session, "spark.paralagg.pythonPath", str(tmp_path))
    assert rows_of(session.sql(RECURSION.format("a_python_in_the_session"))) == [(1,), (2,), (3,), (4,)]
    assert not mark.exists()


def test_a_launcher_in_the_sessions_conf_is_not_started(session: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    forced(session, conf.MPI_LAUNCHER.name, f"touch {mark} {{ranks}}")
    assert conf.read(session, conf.MPI_LAUNCHER) == "local"
    assert not conf.is_set(session, conf.MPI_LAUNCHER)
    session.conf.set(conf.OFFLOAD_MIN_CORES.name, "1")
    start, edges = frame(session, "n int", [(1,)]), frame(session, "a int, b int", [(1, 2), (2, 3)])
    reached = start.recursive_agg(
        "n", step=lambda r: r.join(edges, r.n == edges.a).select(edges.b.alias("n")), backend="auto"
    )
    assert sorted(rows_of(reached)) == [(1,), (2,), (3,)]
    assert not mark.exists()


def test_checkpoints_go_where_the_application_says_and_not_the_session(session: SparkSession, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ra.attach(session, {"spark.paralagg.checkpoint.dir": ours.as_uri(), "spark.paralagg.checkpoint.interval": 1})
    forced(session, "spark.paralagg.checkpoint.dir", theirs.as_uri())
    chain = [(n, n + 1) for n in range(1, 300)]
    start, edges = frame(session, "n int", [(1,)]), frame(session, "a int, b int", chain)
    reached = start.recursive_agg(
        "n", step=lambda r: r.join(edges, r.n == edges.a).select(edges.b.alias("n")), backend="spark"
    )
    with ThreadPoolExecutor(1) as pool:
        count = pool.submit(reached.count)
        while not (parts := list(ours.glob("*/run-*/iteration-*/part-0"))) and not count.done():
            time.sleep(0.005)
        # While it runs, since a run's checkpoints go with its end.
        modes = [part.parents[1].stat().st_mode & 0o777 for part in parts[:1]]
        # Two masters give the applications that start in one second the same id.
        assert all(len(part.parents[2].name) > len(session.sparkContext.applicationId) + 30 for part in parts)
        assert count.result() == 300
    assert modes == [0o700]
    assert not theirs.exists()


def test_attach_sets_and_unsets(session: SparkSession, tmp_path: Path) -> None:
    ra.attach(session, {conf.MPI_STAGING_DIR.name: str(tmp_path), conf.MPI_FALLBACK.name: True})
    assert conf.read(session, conf.MPI_STAGING_DIR) == str(tmp_path)
    assert conf.read(session.newSession(), conf.MPI_STAGING_DIR) == str(tmp_path)  # of the application
    assert session.conf.get(conf.MPI_STAGING_DIR.name) == str(tmp_path)
    assert conf.read(session, conf.MPI_FALLBACK) is True
    ra.attach(session, {conf.MPI_STAGING_DIR.name: None, conf.MPI_FALLBACK.name: None})
    assert conf.read(session, conf.MPI_STAGING_DIR) is None
    assert conf.read(session, conf.MPI_FALLBACK) is False


@pytest.mark.parametrize(
    ("confs", "message"),
    [
        ({"spark.paralagg.mpi.luncher": "local"}, "did you mean 'spark.paralagg.mpi.launcher'"),
        ({"spark.paralagg.mpi.ranks": 0}, "which is not a whole number from 1 on"),
    ],
)
@pytest.mark.parametrize("how", ["attach", "configure"])
def test_a_wrong_conf_is_refused_before_anything_is_set(
    session: SparkSession, how: str, confs: dict[str, object], message: str
) -> None:
    with pytest.raises(ra.UsageError, match=message) as caught:
        ra.attach(session, confs) if how == "attach" else ra.configure(type(session).builder, confs)
    assert (caught.value.code, caught.value.place is None) == ("PARALAGG_BAD_CONF", False)


@pytest.mark.slow("a thrift server")
@since("4.0", "WITH RECURSIVE")
def test_a_client_of_a_thrift_server_cannot_change_a_static_key() -> None:
    """Neither by SET nor by what it sends when it connects."""
    statements = ["SET spark.paralagg.python=/bin/false", "SET spark.paralagg.mpi.launcher=touch x {ranks}"]
    switch = "SET spark.paralagg.backend=spark"
    done = subprocess.run(  # noqa: S603 - this Python and our own script
        [
            *(sys.executable, str(ROOT / "tests" / "thrift_session.py")),
            *("?spark.paralagg.python=/bin/false", *statements, switch, RECURSION.format("n")),
        ],
        env={**os.environ, "PYTHONPATH": python_path(ROOT)},
        capture_output=True,
        text=True,
        timeout=THRIFT_SECONDS,
        check=False,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert told, done.stderr[-2000:]
    sent, *refused, switched, rows = json.loads(told[0].removeprefix("TOLD "))
    assert all(STATIC_CONDITION in answer["error"] for answer in (sent, *refused))
    assert switched == {"rows": [["spark.paralagg.backend", "spark"]]}
    assert rows == {"rows": [["1"], ["2"], ["3"], ["4"]]}
