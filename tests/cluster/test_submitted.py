"""Test applications of spark-submit on a standalone cluster: the user's jars and extensions, all our features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from conftest import submit
from spark_versions import since
from user_jars import EXTENSION, as_package

from pyspark_paralagg.session.jvm import EXTENSION as OURS
from pyspark_paralagg.session.shim import find_jar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from standalone import Standalone

WAYS = ("configure", "attach", "listed")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=3, turns={"how": WAYS}),
    pytest.mark.slow("an application by spark-submit on a standalone cluster"),
]
ROWS = [[1, 0], [2, 7], [3, 8]]


@pytest.fixture(scope="module")
def facts(
    standalone: Standalone, user_jars: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Any]:
    """Return a function: ``facts(how)`` submits the application once and returns its facts."""
    done: dict[str, Any] = {}

    def facts_of(how: str) -> Any:  # noqa: ANN401 - Facts, which pytest has imported under another name
        if how not in done:
            folder = tmp_path_factory.mktemp(how)
            staging = folder / "staging"
            confs = {
                "spark.sql.extensions": EXTENSION,
                "spark.paralagg.mpi.launcher": "spark" if how == "configure" else "local",
                "spark.paralagg.mpi.ranks": "2",
                "spark.paralagg.mpi.oversubscribe": "true",
                "spark.paralagg.mpi.stagingDir": str(staging),
            }
            jars = [user_jars["function"]]
            if how == "listed":
                jars += [user_jars["extension"], find_jar()]
                confs["spark.sql.extensions"] = f"{EXTENSION},{OURS}"
            options = ["--jars", ",".join(map(str, jars))]
            if how != "listed":
                options += as_package(user_jars["extension"], folder)
            options += [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
            done[how] = submit(standalone, folder, "submitted", how, options=options)
        return done[how]

    return facts_of


@pytest.mark.parametrize("how", WAYS)
def test_jars_packages_and_extensions_of_the_user_are_kept(facts: Callable[[str], Any], how: str) -> None:
    result = facts(how)
    assert result["extension"] == 42
    assert result["function"] == 14
    jars = ["extension.jar" if how == "listed" else "mine_extension-1.0.jar", "function.jar"]
    ours = [] if how == "attach" else [find_jar().name]
    assert result["surroundings"]["jars"] == sorted([*jars, *ours])
    assert result["surroundings"]["extensions"] == (EXTENSION if how == "attach" else f"{EXTENSION},{OURS}")


@pytest.mark.parametrize("how", ["configure"])
def test_pyspark_is_a_zip_there(facts: Callable[[str], Any], how: str) -> None:
    assert "pyspark.zip" in facts(how)["surroundings"]["pyspark"]


@pytest.mark.parametrize("how", WAYS)
def test_dataframes_and_datalog_work(facts: Callable[[str], Any], how: str) -> None:
    result = facts(how)
    assert result["spark"] == {"rows": ROWS, "by": "spark"}
    assert result["datalog"] == ROWS


@since("4.0", "Spark 3.5 parses no recursive query")
@pytest.mark.parametrize("how", ["configure", "listed"])
def test_recursive_sql_works(facts: Callable[[str], Any], how: str) -> None:
    assert facts(how)["sql"] == ROWS


@since("4.0", "Spark 3.5 parses no recursive query")
@pytest.mark.parametrize("how", ["attach"])
def test_recursive_sql_in_an_attached_session_is_an_error_with_a_hint(facts: Callable[[str], Any], how: str) -> None:
    message = facts(how)["sql_refused"]
    assert "PARALAGG_SQL_NOT_CONFIGURED" in message
    assert "ra.configure" in message


@pytest.mark.parametrize("how", ["listed"])
def test_the_spark_engine_waits_while_executors_restart(facts: Callable[[str], Any], how: str) -> None:
    assert facts(how)["restarting"] == {"rows": ROWS, "by": "spark"}


@pytest.mark.parametrize("how", ["configure", "attach"])
@pytest.mark.parametrize("backend", ["dataframe", "local", "mpi"])
def test_every_engine_runs_on_the_cluster(facts: Callable[[str], Any], how: str, backend: str) -> None:
    if backend == "mpi":
        pytest.importorskip("mpi4py")
    if backend != "dataframe":
        pytest.importorskip("numba")
    assert facts(how)[backend] == {"rows": ROWS, "by": backend}
    assert facts(how)["surroundings"]["executors"] == 2
