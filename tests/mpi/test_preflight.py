"""Test that problems of the environment are errors before anything runs: code, value, place, hint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from mpi_backend.launch.preflight import Problem, Request, check
from mpi_backend.launch.same_python import check_python, own_python
from mpi_backend.launch.world import check_world
from mpi_backend.machine import available_cores
from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.version import VERSION

ELSEWHERE = ("/nowhere/bin/python",)


def problem(request: Request) -> Problem:
    with pytest.raises(Problem) as caught:
        check(request)
    assert caught.value.fields["hint"]
    return caught.value


def test_no_mpiexec_beside_the_interpreter_nor_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    error = problem(Request("local", 2, ELSEWHERE, oversubscribe=True))
    assert error.kind == "environment"
    assert error.fields["code"] == "PARALAGG_MPI_NO_LAUNCHER"
    assert error.fields["place"] == "spark.paralagg.mpi.launcher"
    assert "[mpi]" in error.fields["hint"]


def test_one_local_rank_needs_no_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    check(Request("local", 1, ELSEWHERE))


@pytest.mark.parametrize(("package", "ranks"), [("numba", 1), ("mpi4py", 2)])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str, ranks: int) -> None:
    installed = {"numba", "mpi4py"} - {package}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if name in installed else None)
    fields = problem(Request("local", ranks)).fields
    assert (fields["code"], fields["value"]) == (f"PARALAGG_MPI_NO_{package.upper()}", package)


def test_more_ranks_than_cores_need_oversubscribe() -> None:
    many = available_cores() + 1
    error = problem(Request("local", many, ELSEWHERE))
    assert error.kind == "usage"
    assert (error.fields["code"], error.fields["value"]) == ("PARALAGG_MPI_TOO_MANY_RANKS", many)
    assert error.fields["place"] == "spark.paralagg.mpi.ranks"
    assert "spark.paralagg.mpi.oversubscribe=true" in error.fields["hint"]


@pytest.mark.parametrize("launcher", ["", "srun", "srun -n 4", "srun -n {ranks} 'open"])
def test_a_template_without_the_number_of_ranks_is_refused(launcher: str) -> None:
    error = problem(Request(launcher, 2, ELSEWHERE))
    assert (error.kind, error.fields["code"]) == ("usage", "PARALAGG_MPI_BAD_LAUNCHER")
    assert error.fields["value"] == launcher


def test_the_command_of_a_template_must_exist() -> None:
    fields = problem(Request("no-such-command -n {ranks}", 2, ELSEWHERE)).fields
    assert fields["code"] == "PARALAGG_MPI_NO_LAUNCHER"
    assert "no-such-command" in fields["message"]


def test_staging_must_be_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fields = problem(Request("local", 1, ELSEWHERE, staging=str(tmp_path / "file" / "below"))).fields
    assert fields["code"] == "PARALAGG_MPI_STAGING"
    assert fields["place"] == "spark.paralagg.mpi.stagingDir"
    check(Request("local", 1, ELSEWHERE, staging=str(tmp_path / "made" / "later")))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_rank_that_runs_alone_by_mistake_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALAGG_MPI_RANKS", "4")
    check_world(4)
    with pytest.raises(EnvironmentProblem) as caught:
        check_world(1)
    assert (caught.value.code, caught.value.value) == ("PARALAGG_MPI_MISMATCH", 1)


@pytest.mark.parametrize(
    "driver",
    ["3.9 with pyspark-paralagg " + VERSION, own_python().replace(VERSION, "0.0.9")],
    ids=["python", "package"],
)
def test_a_rank_with_another_python_or_package_names_both(monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    check_python()  # started by hand
    monkeypatch.setenv("PARALAGG_MPI_DRIVER", own_python())
    check_python()
    monkeypatch.setenv("PARALAGG_MPI_DRIVER", driver)
    with pytest.raises(Problem) as caught:
        check_python()
    fields = caught.value.fields
    assert (fields["code"], fields["value"]) == ("PARALAGG_MPI_PYTHON", own_python())
    for side in (driver, own_python(), sys.executable):
        assert side in fields["message"]


def test_the_supervisor_imports_psutil_and_the_standard_library_only() -> None:
    folder = str(Path(psutil.__file__).parents[1])
    code = "import sys; sys.path.append(sys.argv[1]); import mpi_backend.launch.__main__ as _"
    code += "; print(sorted({m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names))"
    command = [sys.executable, "-S", "-c", code, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert run.stdout == "['__main__', 'mpi_backend', 'psutil']\n"
