"""Every fixture that a text can say, by the engine of ``mpi_backend``: the command in this process, and ranks.

The command's tests come first: they compile all kernels, which the ranks find on disk. Each number of ranks is one
``mpiexec`` for all fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from datalog.fixtures import ALL, CASES
from mpi.staged import Staged, arrow, run_on_ranks
from rotation import parameters_of

from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = {
    "1": (1,),
    "2": (2,),
    "3": (3,),
    "5": (5,),
    "small-pieces": (3, "--piece-bytes", "64"),
    "more-buckets": (2, "--buckets", "7"),
    "sub-buckets": (3, "--sub-buckets", "4"),
    "as many sub-buckets as ranks": (2, "--sub-buckets", "2", "--buckets", "5"),
    "sub-buckets that are split and merged": (3, "--refine", "1", "0", "0"),
    "early exchanges": (3, "--roll-over", "1"),
    "early exchanges, and sub-buckets that are split": (2, "--roll-over", "3", "--refine", "1", "0", "0"),
    "mirrors": (3, "--edges-a-rank", "-1", "--heavy-parts", "0"),
    "no-mirrors": (2, "--edges-a-rank", "1000", "--heavy-parts", "0"),
    "mirrors but for heavy ends": (3, "--edges-a-rank", "-1", "--heavy-parts", "2"),
    "at sources but for heavy ends": (5, "--edges-a-rank", "1000", "--heavy-parts", "2"),
    "all ends heavy": (2, "--edges-a-rank", "1000", "--heavy-parts", "1e9"),
}

A_THIRD = pytest.mark.rotates(runs=3, turns={"name": CASES})
"""Most of the time is compilation: a run takes the same fixtures by the command and on ranks."""


@A_THIRD
@pytest.mark.parametrize("name", CASES)
def test_command_without_spark_gives_the_rows_of_the_fixture(tmp_path: Path, name: str) -> None:
    """By Parquet, which can say nulls, NaN, and types that Datalog has no name for."""
    case = ALL[name]
    for relation, (_, rows) in case.inputs.items():
        pq.write_table(arrow(case.types[relation], rows), tmp_path / f"{relation}.parquet")
    out = tmp_path / "out"
    command = ["run", str(case.path), "--facts", str(tmp_path), "--out", str(out), "--format", "parquet", "--quiet"]
    assert main([*command, "--backend", "local"]) == OK
    assert {p.name for p in out.iterdir()} == {f"{relation}.parquet" for relation in case.expected}
    found = {n: [tuple(r.values()) for r in pq.read_table(out / f"{n}.parquet").to_pylist()] for n in case.expected}
    case.compare(found)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Staged]]:
    """All fixtures as folders for ranks."""
    folder = tmp_path_factory.mktemp("fixtures")
    made = {}
    for name, case in ALL.items():
        given = {relation: rows for relation, (_, rows) in case.inputs.items()}
        made[name] = Staged(resolve_text(case.text, case.types), given, list(case.expected))
        made[name].write(folder / name)
    return folder, made


@pytest.fixture(scope="module")
def on_ranks(
    staged: tuple[Path, dict[str, Staged]], request: pytest.FixtureRequest
) -> Callable[[str, str], dict[str, list[tuple[Any, ...]]]]:
    """Return the rows of a fixture in a setting; the first call for a setting runs all that this run takes in it."""
    folder, made = staged
    parameters = parameters_of("test_ranks_give_the_rows_of_the_fixture", request)
    done: set[str] = set()

    def rows(setting: str, name: str) -> dict[str, list[tuple[Any, ...]]]:
        if setting not in done:
            done.add(setting)
            ranks, *arguments = SETTINGS[setting]
            names = [p["name"] for p in parameters if p["setting"] == setting]
            run_on_ranks(folder, setting, int(ranks), *arguments, "--only", *names)
        return made[name].read(folder / name / f"out-{setting}")

    return rows


@A_THIRD
@pytest.mark.rotates(runs=5, by=("name",))
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_ranks_give_the_rows_of_the_fixture(
    on_ranks: Callable[[str, str], dict[str, list[tuple[Any, ...]]]], setting: str, name: str
) -> None:
    ALL[name].compare(on_ranks(setting, name))
