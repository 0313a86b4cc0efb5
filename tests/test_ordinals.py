"""`ord` as a value: one number for each value of a type, the same in all rules and on all engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rows import rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.errors import DatalogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
.type Pair = [x: number, y: number]
.type Name <: symbol
.decl pair(p: Pair) .decl of_pair(n: number) .decl name(x: Name) .decl other(a: symbol, b: number)
.decl number(x: symbol, n: number) .decl tens(x: symbol, n: number)
pair([2, 3]). pair([1, 2]).
name("b"). name("a"). other("c", 1). other("a", 2).
of_pair(n) :- pair(p), n = ord(p).
number(x, ord(x)) :- name(x).
tens(x, n) :- other(x, _), n = 10 * ord(x), !name("z").
.output of_pair, number, tens
"""
EXPECTED = {"of_pair": [(0,), (1,)], "number": [("a", 2), ("b", 3)], "tens": [("a", 20), ("c", 40)]}


@pytest.mark.parametrize("backend", [("local",), ("mpi", "--ranks", "2")])
def test_the_command_numbers_values(backend: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`a` has one number in both rules; pairs and symbols have none in common."""
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(TEXT, encoding="utf-8")
    assert main(["run", "p.dl", "-q", "--backend", *backend]) == OK
    for name, rows in EXPECTED.items():
        lines = Path(f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert lines == ["\t".join(map(str, row)) for row in rows], name


def test_dataframes_have_the_same_numbers(spark: SparkSession) -> None:
    found = ra.datalog(spark, TEXT)
    for name, rows in EXPECTED.items():
        assert sorted(rows_of(found[name])) == rows, name


@pytest.mark.parametrize(
    ("rules", "message", "column"),
    [
        ('.decl p(x: symbol)\np(x) :- p(y), ord(y) > 3, x = "a".', "`p` derives values that it numbers", 15),
        ('.decl p(x: symbol) p("a"). .decl q(n: number)\nq(ord("a")) :- p(_).', "ord is not supported here", 3),
        (".decl p(x: number) p(1). .decl q(n: number)\nq(ord(x)) :- p(x).", "ord is not supported here", 3),
    ],
)
def test_what_is_refused(spark: SparkSession, rules: str, message: str, column: int) -> None:
    with pytest.raises(DatalogError, match=message) as refused:
        ra.datalog(spark, rules)
    assert refused.value.code == "PARALAGG_DATALOG_UNSUPPORTED"
    assert refused.value.position == (2, column)
