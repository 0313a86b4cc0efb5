"""Test that all errors of a text are reported together, in order, without errors that follow from other errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_paralagg.command.cli import WRONG, main
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import DatalogError, ParalaggError

if TYPE_CHECKING:
    from pathlib import Path

SYNTAX = """.decl e(x: number, y: number)
p(x, y) :- e(x, y) e(y, x).
q(x) :- e(x, y)
r(x) :- e(x, _).
s(x :- e(x, _).
u(x) :- e(x, 3)].
v(x) :- e(x, _).
"""
MEANING = """.decl e(x: number, y: number)
.decl f(x: nmber)
.input e
p(x, z) :- e(x, y).
q(x) :- e(x, "a").
r(x) :- e(x).
s(x) :- egde(x, _).
t(x) :- p(x, _), f(x), s(x).
w(y, $MIN(10 - v)) :- w(x, v), e(x, y).
w(1, 2).
k(x) :- e(x, _), match("(", "a").
g(x) :- x = range(1).
h(x) :- e(x, _), !h(x).
.output p, t, zz
"""


def problems(text: str) -> list[tuple[str, str | None]]:
    with pytest.raises(ParalaggError) as caught:
        resolve_text(parse(text), {"e": [("x", "bigint"), ("y", "bigint")]})
    first, *_ = errors = caught.value.problems
    assert (first.code, first.place, type(first)) == (caught.value.code, caught.value.place, type(caught.value))
    assert all(str(p) in str(caught.value) for p in errors)
    return [(p.code, p.place) for p in errors]


def test_each_clause_reports_its_syntax_error() -> None:
    assert problems(SYNTAX) == [
        ("PARALAGG_DATALOG_SYNTAX", "line 2, column 20"),
        ("PARALAGG_DATALOG_SYNTAX", "line 3, column 16"),
        ("PARALAGG_DATALOG_SYNTAX", "line 5, column 5"),
        ("PARALAGG_DATALOG_SYNTAX", "line 6, column 16"),
    ]


def test_each_clause_reports_its_semantic_error() -> None:
    assert problems(MEANING.replace("nmber", "number")) == [
        ("PARALAGG_DATALOG_UNBOUND", "line 4, column 6"),
        ("PARALAGG_DATALOG_TYPE", "line 5, column 9"),
        ("PARALAGG_DATALOG_ARITY", "line 6, column 9"),
        ("PARALAGG_UNKNOWN_RELATION", "line 7, column 9"),
        ("PARALAGG_DATALOG_PATTERN", "line 11, column 24"),
        ("PARALAGG_DATALOG_ARITY", "line 12, column 13"),
        ("PARALAGG_NOT_STRATIFIED", "line 13, column 19"),
        ("PARALAGG_UNKNOWN_RELATION", "line 14, column 1"),
    ]


def test_one_problem_is_the_error_itself() -> None:
    with pytest.raises(DatalogError) as caught:
        resolve_text(parse("p(x) :- q(y). q(1)."), {})
    assert caught.value.problems == (caught.value,)
    assert caught.value.position == (1, 3)


def test_twenty_errors_are_reported_at_most() -> None:
    assert len(problems("p(x) :- e(y, _).\n" * 1000)) == 20
    assert len(problems("p(x) :- e(x _).\n" * 1000)) == 20


@pytest.mark.parametrize("backend", ["local", "spark"])
def test_the_command_checks_the_text_before_it_looks_for_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: str
) -> None:
    (tmp_path / "p.dl").write_text(MEANING)
    arguments = ["-F", str(tmp_path / "nowhere"), "-D", str(tmp_path / "out"), "--backend", backend]
    assert main(["run", str(tmp_path / "p.dl"), *arguments]) == WRONG
    codes = [line.partition(":")[0] for line in capfd.readouterr().err.splitlines() if line.startswith("PARALAGG_")]
    assert codes == [
        "PARALAGG_DATALOG_TYPE",
        "PARALAGG_DATALOG_UNBOUND",
        "PARALAGG_DATALOG_TYPE",
        "PARALAGG_DATALOG_ARITY",
        "PARALAGG_UNKNOWN_RELATION",
        "PARALAGG_NOT_MONOTONE",
        "PARALAGG_DATALOG_PATTERN",
        "PARALAGG_DATALOG_ARITY",
        "PARALAGG_NOT_STRATIFIED",
        "PARALAGG_UNKNOWN_RELATION",
    ]
