"""``backend="mpi"`` and ``"local"``: Spark's rows, partitioned as they say; lazy; what cannot run says so at once."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame, rows_of
from spark_versions import RUN_ERRORS
from test_fixtures import CASES, FIXTURES, check

import pyspark_paralagg as ra
from mpi_backend.launch.same_python import own_python
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.condition import condition_of
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

pytest.importorskip("numba", reason="the MPI engine needs numba")
pytest.importorskip("mpi4py", reason="ranks need mpi4py")

WITHOUT_TEXT = [c for c in CASES if not (FIXTURES / c / "program.dl").exists()]
"""Fixtures that only a DataFrame can say; ``test_mpi_fixtures`` has the others."""
KEYS = [key.name for key in conf.REGISTRY if ".mpi." in key.name or ".offload." in key.name]
OFFLOADED = pytest.mark.parametrize("backend", ["local", "mpi"])
CLEARED_SECONDS = 5.0


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Two ranks, also where there is one core; all confs of ranks are unset afterwards."""
    spark.conf.set(conf.MPI_RANKS.name, "2")
    spark.conf.set(conf.MPI_OVERSUBSCRIBE.name, "true")
    yield spark
    ra.attach(spark, dict.fromkeys(KEYS))


def paths(spark: SparkSession, backend: str | None, length: int = 50, **options: Any) -> DataFrame:  # noqa: ANN401 - of the call
    """Shortest paths along a chain with a shortcut: two inputs."""
    edges = (
        spark.range(length)
        .selectExpr("id as src", "id + 1 as dst", "2L as w")
        .union(spark.range(1).selectExpr("id as src", f"{length // 2}L as dst", "3L as w"))
    )
    return (
        spark.range(1)
        .selectExpr("id as node", "0L as dist")
        .recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.join(edges, d.node == edges.src).select(
                edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
            ),
            assume="w >= 0",
            backend=backend,
            **options,
        )
    )


def jobs(spark: SparkSession) -> int:
    """Jobs that this application has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


@pytest.mark.rotates(runs=6)
@OFFLOADED
@pytest.mark.parametrize("case", WITHOUT_TEXT)
def test_fixture_without_a_text(session: SparkSession, case: str, backend: str) -> None:
    check(session, case, backend)


def test_carried_column_of_rounds_goes_with_its_order(session: SparkSession) -> None:
    """Rows are added up in rounds (``mode="iterate"``), where `via` was aggregated on its own."""
    check(session, "max_by_source", "local")


def empties(folder: Path) -> bool:
    until = time.monotonic() + CLEARED_SECONDS
    while list(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    return not list(folder.iterdir())


@OFFLOADED
@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_are_those_of_spark_and_where_they_should_be(session: SparkSession, backend: str, partitions: int) -> None:
    session.conf.set("spark.sql.shuffle.partitions", partitions)
    found = paths(session, backend)
    assert_same_rows(rows_of(found), rows_of(paths(session, "spark")))
    owner = F.expr(f"pmod(hash(node), {partitions})")
    assert found.where(owner != F.spark_partition_id()).count() == 0
    assert found.rdd.getNumPartitions() == partitions


def test_a_group_by_the_key_shuffles_nothing(session: SparkSession) -> None:
    grouped = paths(session, "local").groupBy("node").agg(F.max("dist"))
    plan = grouped._jdf.queryExecution().executedPlan().toString()
    assert "OffloadedFixpoint" in plan
    assert "Exchange" not in plan
    assert grouped.count() == 51


@pytest.mark.parametrize("stored", ["rows", "columns", "result"])
def test_values_of_all_types_go_out_and_come_back(session: SparkSession, stored: str, tmp_path: Path) -> None:
    base = session.range(40).selectExpr(
        "id as k",
        "string(id) as s",
        "case when id % 3 > 0 then date_add(date'2020-01-01', int(id)) end as d",
        "timestamp_micros(id * 1000001) as t",
        "timestamp_ntz'2020-01-01 00:00:00.000001' as n",
        "cast(cast(id as decimal(12, 2)) / 4 as decimal(12, 2)) as x",
        "cast(id as float) / 3 as g",
        "cast(id as smallint) as h",
        "cast(id as tinyint) as y",
        "id % 2 = 0 as b",
        "cast(id as int) as i",
        "case when id % 5 > 0 then cast(id as double) / 3 end as f",
    )
    if stored != "rows":
        base.write.parquet(str(tmp_path / "base"))
        base = session.read.parquet(str(tmp_path / "base"))
    if stored == "result":  # of ranks themselves
        keys = [c for c in base.columns if c not in ("i", "f")]
        base = base.recursive_agg(keys, {"i": "min", "f": "max"}, step=lambda r: r.where("k < 0"), backend="local")
    others = [c for c in base.columns if c not in ("k", "i", "f")]
    next_ = session.range(20).selectExpr("id as from", "id + 100 as to")

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(next_, r.k == next_["from"])
        return joined.select(next_["to"].alias("k"), *(r[c] for c in others), r.i, r.f)

    def found(backend: str) -> list[Any]:
        result = base.recursive_agg(["k", *others], {"i": "min", "f": "max"}, step=step, backend=backend)
        return rows_of(result)

    expected = found("spark")
    assert len(expected) == 60
    assert_same_rows(found("local"), expected)


def test_columns_of_files_with_nulls(session: SparkSession, tmp_path: Path) -> None:
    edges = session.range(300).selectExpr(
        "case when id % 7 > 0 then id end as src",
        "id + 1 as dst",
        "case when id % 11 > 0 then id % 3 end as w",
        "string(id % 5) as kind",
    )
    edges.write.parquet(str(tmp_path / "edges"))
    table = session.read.parquet(str(tmp_path / "edges"))
    base = session.range(0, 300, 10).selectExpr("id as node", "'0' as kind", "0L as dist")

    def step(d: DataFrame) -> DataFrame:
        joined = d.join(table, d.node == table.src)
        return joined.select(table.dst.alias("node"), table.kind, (d.dist + table.w).alias("dist"))

    def found(backend: str) -> list[Any]:
        return rows_of(base.recursive_agg(["node", "kind"], {"dist": "max"}, step=step, backend=backend))

    expected = found("spark")
    assert any(dist is None for *_, dist in expected)
    assert_same_rows(found("local"), expected)


@OFFLOADED
def test_every_part_of_a_union_goes_out(session: SparkSession, backend: str, tmp_path: Path) -> None:
    """Column batches are read below a union: of several files, and of one file twice, whose rows count twice."""
    for start in (0, 4):
        edges = session.range(start, start + 4).selectExpr("id as src", "id + 1 as dst")
        edges.write.parquet(str(tmp_path / str(start)))
    first, second = (session.read.parquet(str(tmp_path / str(start))) for start in (0, 4))
    edges = first.union(second).union(first)
    ways = session.sql("SELECT 0L AS node, 1L AS ways").recursive_agg(
        "node",
        {"ways": "sum"},
        step=lambda w: w.join(edges, w.node == edges.src).select(edges.dst.alias("node"), w.ways),
        backend=backend,
    )
    assert sorted(rows_of(ways)) == [(node, 2 ** min(node, 4)) for node in range(9)]


def test_relations_that_read_each_other_run_together(session: SparkSession) -> None:
    edges = session.range(20).selectExpr("id as src", "id + 1 as dst")

    def step(even: DataFrame, odd: DataFrame) -> dict[str, DataFrame]:
        return {
            "odd": even.join(edges, even.n == edges.src).select(edges.dst.alias("n")),
            "even": odd.join(edges, odd.n == edges.src).select(edges.dst.alias("n")),
        }

    found = ra.recursive(
        {
            "even": ra.relation(frame(session, "n bigint", [(0,)]), keys="n"),
            "odd": ra.relation(frame(session, "n bigint", []), keys="n"),
        },
        step,
        backend="local",
    )
    assert sorted(rows_of(found["even"])) == [(n,) for n in range(0, 21, 2)]
    assert sorted(rows_of(found["odd"])) == [(n,) for n in range(1, 21, 2)]


@OFFLOADED
def test_nothing_runs_before_the_result_is_wanted(session: SparkSession, backend: str, tmp_path: Path) -> None:
    ra.attach(session, {conf.MPI_STAGING_DIR.name: str(tmp_path)})
    before = jobs(session)
    found = paths(session, backend)
    assert ra.report(found) is None
    assert (jobs(session), list(tmp_path.iterdir())) == (before, [])
    assert "Executor: " + backend in ra.explain(found)
    assert f'why: requested by backend="{backend}"' in ra.explain(found)
    found.collect()
    report = ra.report(found)
    assert report is not None
    assert (report.backend, report.reason, report.tuples) == (backend, f'requested by backend="{backend}"', 51)
    assert [r["rank"] for r in report.ranks] == ([0] if backend == "local" else [0, 1])
    assert {"export", "start", "load", "loop", "store"} <= report.seconds.keys()
    assert empties(tmp_path)
    assert ra.RunReport.from_json(report.to_json()) == report


def test_a_result_is_kept_and_ranks_run_once(session: SparkSession) -> None:
    found = paths(session, "local")
    first = (rows_of(found), ra.report(found))
    assert (rows_of(found), ra.report(found)) == first


def test_the_conf_is_as_good_as_the_argument(session: SparkSession) -> None:
    session.conf.set("spark.paralagg.backend", "local")
    assert "Executor: local\n  why: requested by spark.paralagg.backend=local" in ra.explain(paths(session, None))


@pytest.mark.parametrize(
    ("key", "value", "error", "code"),
    [
        ("ranks", "1000", ra.UsageError, "PARALAGG_MPI_TOO_MANY_RANKS"),
        ("ranks", "none", ra.UsageError, "PARALAGG_BAD_CONF"),
        ("launcher", "srun -n 4", ra.UsageError, "PARALAGG_MPI_BAD_LAUNCHER"),
        ("launcher", "no-such-command -n {ranks}", ra.EnvironmentProblem, "PARALAGG_MPI_NO_LAUNCHER"),
        ("stagingDir", "/dev/null/staging", ra.EnvironmentProblem, "PARALAGG_MPI_STAGING"),
    ],
)
def test_what_cannot_run_is_said_at_the_call(
    session: SparkSession, key: str, value: str, error: type[ra.ParalaggError], code: str
) -> None:
    session.conf.unset(conf.MPI_OVERSUBSCRIBE.name)
    if key == "ranks":
        session.conf.set(conf.MPI_RANKS.name, value)
    else:
        ra.attach(session, {f"spark.paralagg.mpi.{key}": value})
    before = jobs(session)
    with pytest.raises(error) as caught:
        paths(session, "mpi")
    assert (caught.value.code, jobs(session)) == (code, before)
    if code != "PARALAGG_BAD_CONF":
        assert caught.value.place == f"spark.paralagg.mpi.{key}"
        assert caught.value.hint


def test_an_expression_that_is_not_portable_is_named(session: SparkSession) -> None:
    edges = session.range(9).selectExpr("id as src", "id + 1 as dst", "sin(id) as w")

    def reached(backend: str, condition: str) -> DataFrame:
        start = session.range(1).selectExpr("id as node")
        return start.recursive_agg(
            "node",
            step=lambda r: r.where(condition).join(edges, r.node == edges.src).select(edges.dst.alias("node")),
            backend=backend,
        )

    assert reached("local", "node < 5").count() == 6  # what an input computes is Spark's business
    with pytest.raises(ra.UnsupportedError) as caught:
        reached("mpi", "sin(node) < 2")
    assert caught.value.code == "PARALAGG_NOT_PORTABLE"
    assert "sin" in caught.value.message.lower()
    ra.attach(session, {conf.MPI_LAUNCHER.name: "local"})
    session.conf.set(conf.OFFLOAD_MIN_CORES.name, "1")
    told = ra.explain(reached("auto", "sin(node) < 2"))
    assert "Executor: spark" in told
    assert "not on MPI ranks: the engine outside of the JVM does not support" in told
    # It gives null where the engine would raise an error.
    for condition in ("try_add(node, 1L) < 5", "try_cast(node AS tinyint) < 5"):
        with pytest.raises(ra.UnsupportedError, match=r"Try(Add|Cast)"):
            reached("mpi", condition)
        assert reached("spark", condition).count() == reached("auto", condition).count()


def test_auto_takes_ranks_only_with_a_launcher_and_for_much(session: SparkSession) -> None:
    told = ra.explain(paths(session, "auto"))
    assert told.count("the Spark engine runs every step that it supports") == 1
    assert "MPI" not in told
    ra.attach(session, {conf.MPI_LAUNCHER.name: "local"})
    told = ra.explain(paths(session, "auto"))
    assert "Executor: spark" in told
    assert "rows, fewer than spark.paralagg.offload.minRows=50,000,000, and the 7 cores are fewer than" in told
    session.conf.set(conf.OFFLOAD_MIN_CORES.name, "7")
    told = ra.explain(paths(session, "auto"))
    assert "Executor: mpi\n  why: spark.paralagg.mpi.launcher is set, and the job is large enough" in told
    session.conf.unset(conf.OFFLOAD_MIN_CORES.name)
    session.conf.set(conf.OFFLOAD_MIN_ROWS.name, "10")
    assert "Executor: mpi" in ra.explain(paths(session, "auto"))


def test_auto_asks_for_the_size_of_the_whole_and_not_of_its_parts(session: SparkSession) -> None:
    """The upper stratum has few rows, and is a plan of its own where nobody reads ``via``."""
    many = session.range(1000).selectExpr("id as src", "id + 1 as dst")
    few = session.range(5).selectExpr("id as src", "id + 1 as dst", "1L as w")

    def step(below: DataFrame, above: DataFrame) -> dict[str, DataFrame]:
        joined = above.join(few, above.node == few.src).join(below, few.dst == below.node, "left_semi")
        return {
            "below": below.join(many, below.node == many.src).select(many.dst.alias("node")),
            "above": joined.select(few.dst.alias("node"), (above.dist + few.w).alias("dist"), above.node.alias("via")),
        }

    def found(backend: str) -> DataFrame:
        relations = {
            "below": ra.relation(frame(session, "node bigint", [(0,)]), keys="node"),
            "above": ra.relation(
                frame(session, "node bigint, dist bigint, via bigint", [(0, 0, 0)]),
                keys="node",
                aggs={"dist": "min", "via": ra.min_by("dist")},
            ),
        }
        return ra.recursive(relations, step, assume="w >= 0", backend=backend)["above"]

    ra.attach(session, {conf.MPI_LAUNCHER.name: "local"})
    session.conf.set(conf.OFFLOAD_MIN_ROWS.name, "500")
    on_ranks = found("auto")
    assert "Executor: mpi" in ra.explain(on_ranks)
    assert_same_rows(rows_of(on_ranks.select("node", "dist")), [(n, n) for n in range(6)])
    session.conf.set(conf.OFFLOAD_MIN_ROWS.name, "5000")
    assert "Executor: spark" in ra.explain(found("auto"))


def test_auto_stays_on_spark_where_ranks_cannot_start(session: SparkSession) -> None:
    ra.attach(session, {conf.MPI_LAUNCHER.name: "no-such-command -n {ranks}"})
    told = ra.explain(paths(session, "auto"))
    assert "Executor: spark" in told
    assert "not on MPI ranks: the command 'no-such-command' is not on PATH" in told


@OFFLOADED
def test_an_error_in_the_data_has_its_code_and_the_session_goes_on(
    session: SparkSession, backend: str, tmp_path: Path
) -> None:
    ra.attach(session, {conf.MPI_STAGING_DIR.name: str(tmp_path)})
    with pytest.raises(RUN_ERRORS) as caught:
        paths(session, backend, max_iterations=3).collect()
    assert condition_of(caught.value) == "PARALAGG_LIMIT_REACHED"
    assert "max_iterations" in str(caught.value)
    assert empties(tmp_path)
    assert paths(session, backend).count() == 51


@pytest.mark.parametrize(
    ("launcher", "code", "message"),
    [
        ("false {ranks}", "PARALAGG_MPI_RANK_FAILED", "a rank ended with exit code 1 and without a result"),
        ("sh -c 'exec {command}' {ranks}", "PARALAGG_MPI_MISMATCH", "the launcher started 2 ranks"),
        (
            f"sh -c 'PYTHONPATH={Path(__file__).parent / 'other_python'}:$PYTHONPATH exec {{command}}' {{ranks}}",
            "PARALAGG_MPI_PYTHON",
            f"of a rank is Python 3.99 with pyspark-paralagg {VERSION}, but the driver runs Python {own_python()}",
        ),
    ],
)
def test_ranks_that_fail_are_an_error_or_with_fallback_a_reason(
    session: SparkSession, launcher: str, code: str, message: str, tmp_path: Path
) -> None:
    ra.attach(session, {conf.MPI_STAGING_DIR.name: str(tmp_path)})
    ra.attach(session, {conf.MPI_LAUNCHER.name: launcher})
    with pytest.raises(RUN_ERRORS) as caught:
        paths(session, "mpi").collect()
    assert condition_of(caught.value) == code
    assert message in str(caught.value)
    assert empties(tmp_path)
    session.conf.set(conf.MPI_FALLBACK.name, "true")
    found = paths(session, "mpi")
    assert_same_rows(rows_of(found), rows_of(paths(session, "spark")))
    report = ra.report(found)
    assert report is not None
    assert report.backend == "spark"
    assert report.reason.startswith(f"the ranks failed: [{code}]")
    assert empties(tmp_path)


def test_ranks_that_work_again_have_no_reason_of_an_earlier_run(session: SparkSession, tmp_path: Path) -> None:
    flag, mpiexec = tmp_path / "mended", Path(sys.executable).with_name("mpiexec")
    launcher = f"sh -c 'test -e {flag} && exec {mpiexec} -n $0 {{command}}' {{ranks}}"
    ra.attach(session, {conf.MPI_LAUNCHER.name: launcher})
    session.conf.set(conf.MPI_FALLBACK.name, "true")
    found = paths(session, "mpi")
    told = []
    for _ in range(2):
        found.select("*").collect()
        report = ra.report(found)
        assert report is not None
        told.append((report.backend, report.reason.partition(":")[0]))
        flag.touch()
    assert told[0] == ("spark", "the ranks failed")
    assert told[1][0] == "mpi"
    assert "failed" not in told[1][1]


def test_fallback_where_ranks_cannot_even_start(session: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    ra.attach(session, {conf.MPI_LAUNCHER.name: "no-such-command -n {ranks}"})
    session.conf.set(conf.MPI_FALLBACK.name, "true")
    told = ra.explain(paths(session, "mpi"))
    assert "Executor: spark\n  why: spark.paralagg.mpi.fallback=true, and ranks cannot start" in told
    assert "no-such-command" in caplog.text


@OFFLOADED
def test_a_tolerance_is_not_met_while_a_set_grows(session: SparkSession, backend: str) -> None:
    check(session, "tolerance_beside_a_set", backend)
