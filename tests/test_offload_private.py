"""Rows on their way to ranks are nobody else's to read, and names of relations are data wherever they go."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rows import frame, rows_of
from spark_versions import RUN_ERRORS

import pyspark_paralagg as ra
from mpi_backend.names import listed_names, names_option, result_folder
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self

pytest.importorskip("numba", reason="the MPI engine needs numba")
pytest.importorskip("mpi4py", reason="ranks need mpi4py")

KEYS = [key.name for key in conf.REGISTRY if ".mpi." in key.name]
NAMES = [
    "--no-ansi", "-h", "../x", "/tmp/x", "..", ".", "beats", "report.json", "error-0.json", "two\nlines", "a,b",  # noqa: S108 - a name
    "$(touch x)", "'; touch x; '", "{command}", "%2E.", "größe", "x" * 300, " ",
]  # fmt: skip


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Two ranks and a staging directory that is not there yet; all confs of ranks are unset afterwards."""
    confs = {conf.MPI_RANKS.name: 2, conf.MPI_OVERSUBSCRIBE.name: True}
    ra.attach(spark, {**confs, conf.MPI_STAGING_DIR.name: str(tmp_path / "staging")})
    yield spark
    ra.attach(spark, dict.fromkeys(KEYS))


class Seen:
    """The modes of all that is in folders of offloads, while a thread looks."""

    def __init__(self, above: Path) -> None:
        self.modes: dict[str, set[str]] = {}
        self._above, self._done = above, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.005):
            for above, folders, files in os.walk(self._above):  # unlike rglob, it bears what disappears
                for path in (Path(above) / name for name in (*folders, *files)):
                    if any(part == "staging" or part.startswith("paralagg-") for part in path.parts):
                        self._note(path)

    def _note(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            state = path.lstat()
            kind = "folder" if stat.S_ISDIR(state.st_mode) else "file"
            self.modes.setdefault(f"{kind} {stat.S_IMODE(state.st_mode):04o}", set()).add(path.name)


def counted(spark: SparkSession, name: str, backend: str, most: int = 4, **options: Any) -> DataFrame:  # noqa: ANN401 - of the call
    """A relation of this name that counts up to ``most``."""
    base = frame(spark, "n int", [(1,)])
    relation = {name: ra.relation(base, keys="n")}

    def step(**given: DataFrame) -> dict[str, DataFrame]:
        return {name: given[name].where(f"n < {most}").selectExpr("n + 1 as n")}

    return ra.recursive(relation, step, backend=backend, **options)[name]


@pytest.mark.parametrize("launcher", ["local", "spark", "spark without shared files"])
def test_all_that_is_staged_is_private(session: SparkSession, launcher: str, tmp_path: Path) -> None:
    ra.attach(session, {conf.MPI_LAUNCHER.name: launcher.partition(" ")[0]})
    shares_files = launcher != "spark without shared files"
    if not shares_files:
        ra.attach(session, {conf.MPI_STAGING_DIR.name: None})
    with Seen(tmp_path if shares_files else Path(session.conf.get("spark.local.dir"))) as seen:
        assert sorted(rows_of(counted(session, "r", "mpi"))) == [(1,), (2,), (3,), (4,)]
    assert set(seen.modes) == {"folder 0700", "file 0600"}, seen.modes
    assert "plan.json" in seen.modes["file 0600"]
    assert {"in", "out1" if shares_files else "out"} <= seen.modes["folder 0700"]
    assert any(name.endswith(".arrow") for name in seen.modes["file 0600"])


@pytest.mark.parametrize("backend", ["local", "mpi"])
def test_a_name_is_data(session: SparkSession, backend: str, tmp_path: Path) -> None:
    for name in ("--no-ansi", "..", "beats", "two\nlines", "x" * 300) if backend == "local" else ("../x", "two\nlines"):
        assert sorted(rows_of(counted(session, name, backend))) == [(1,), (2,), (3,), (4,)], name
    assert [p.name for p in tmp_path.iterdir()] == ["staging"]
    assert not Path("x").exists()


def test_a_name_through_a_shell_is_data(session: SparkSession) -> None:
    ra.attach(session, {conf.MPI_LAUNCHER.name: "sh -c 'exec {command}' {ranks}", conf.MPI_RANKS.name: 1})
    for name in ("$(touch x)", "'; touch x; '", "--no-ansi"):
        assert sorted(rows_of(counted(session, name, "mpi"))) == [(1,), (2,), (3,), (4,)], name
    assert not Path("x").exists()


def test_a_relation_named_as_an_option_does_not_turn_it_on(session: SparkSession) -> None:
    """``--no-ansi`` would let the sum wrap around."""
    base = frame(session, "n int, d int", [(1, 2**31 - 1)])
    edges = frame(session, "a int, b int", [(1, 2)])

    def step(**given: DataFrame) -> dict[str, DataFrame]:
        r = given["--no-ansi"]
        return {"--no-ansi": r.join(edges, r.n == edges.a).select(edges.b.alias("n"), (r.d + 1).alias("d"))}

    relation = {"--no-ansi": ra.relation(base, keys="n", aggs={"d": "max"})}
    for backend in ("local", "mpi"):
        with pytest.raises(RUN_ERRORS) as caught:
            ra.recursive(relation, step, backend=backend)["--no-ansi"].collect()
        assert condition_of(caught.value) == "ARITHMETIC_OVERFLOW"


@pytest.mark.parametrize("backend", ["spark", "local"])
def test_a_name_of_a_column_is_no_code(session: SparkSession, backend: str) -> None:
    key, value = '*/ "); open("x", "w"); (" /*', "$x\n" + r"\u0022" + "'" * 3 + '"' * 3
    base = session.sql("SELECT 1 AS k, 0L AS v").toDF(key, value)
    edges = session.sql("SELECT 1 AS a, 2 AS b UNION ALL SELECT 2, 3")

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(edges, r[f"`{key}`"] == edges.a)
        return joined.select(edges.b.alias(key), (r[f"`{value}`"] + 1).alias(value))

    reached = base.recursive_agg([key], {value: "min"}, step=step, backend=backend)
    assert sorted(rows_of(reached)) == [(1, 0), (2, 1), (3, 2)]
    assert not Path("x").exists()


def test_folders_and_options_of_names_are_distinct_and_plain() -> None:
    folders = [result_folder(name) for name in NAMES]
    assert len(set(folders)) == len(NAMES)
    for folder in folders:
        assert folder not in {"", ".", "..", "beats", "report.json"}
        assert not folder.startswith((".", "error-"))
        assert len(folder) < 256
        assert "/" not in folder
    option = names_option("outputs", NAMES)
    assert option.startswith("--outputs=")
    assert listed_names(option.removeprefix("--outputs=")) == NAMES
    assert option.isascii()
    assert not set(option) & set(" \n'\"$;{}")
