"""`autoinc()` in heads: the same numbers on every engine, in the order of the rows, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rows import rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.errors import DatalogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

TEXT = """
.type Pair = [a: symbol, b: number]
.decl road(x: symbol, y: symbol, km: float)
.decl one(n: number, x: symbol)
.decl two(n: number)
.decl pair(p: Pair, n: number)
.decl names(x: symbol, n: number)
.decl reached(n: number)
road("b", "a", 10.0). road("a", "é", 9.5). road("a", "b", -1.0). road("a", "é", 9.0).
one(autoinc(), x) :- road(x, _, km), km > 0.0.                // 0, 1, 2: a row for each road
two(autoinc()) :- road("b", _, _).                            // 3
two(autoinc()) :- pair(_, _).                                 // 7 to 9: after the rule that it reads
pair([y, 10 * autoinc()], k) :- one(k, _), road("a", y, -1.0).  // 4 to 6
two(autoinc()) :- !road("z", "z", 0.0).                       // 10: one row without variables
names(x, autoinc()) :- road(x, _, _), n = count : { road(x, _, _) }, n > 2.  // 11 to 13
reached(0).
reached(n + 1) :- reached(n), one(n, _).
"""
EXPECTED = {
    "one": [(0, "a"), (1, "a"), (2, "b")],
    "two": [(3,), (7,), (8,), (9,), (10,)],
    "pair": [("[b, 40]", 0), ("[b, 50]", 1), ("[b, 60]", 2)],
    "names": [("a", 11), ("a", 12), ("a", 13)],
    "reached": [(0,), (1,), (2,), (3,)],
}


@pytest.mark.parametrize("backend", [("local",), ("mpi", "--ranks", "2")])
def test_the_command_numbers_rows_in_their_order(
    backend: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(f"{TEXT}.output {', '.join(EXPECTED)}", encoding="utf-8")
    assert main(["run", "p.dl", "-q", "--backend", *backend]) == OK
    for name, rows in EXPECTED.items():
        lines = Path(f"{name}.csv").read_text(encoding="utf-8").splitlines()
        assert lines == ["\t".join(map(str, row)) for row in rows], name


@pytest.mark.rotates(runs=2)
@pytest.mark.slow(reason="five relations on two engines")
@pytest.mark.parametrize("backend", ["spark", "local"])
def test_dataframes_have_the_same_numbers(spark: SparkSession, backend: str) -> None:
    found = ra.datalog(spark, TEXT, backend=backend)
    for name, rows in EXPECTED.items():
        assert sorted(rows_of(found[name])) == rows, name
    with pytest.raises(ra.errors.UnsupportedError, match="a proof does not show why"):
        ra.why(found["reached"], n=1)


IN_BODIES = """
.decl road(x: symbol, km: number) .decl id(x: symbol, n: number, m: number) .decl both(n: number, m: number)
.decl hit(n: number) .output id, both, hit
road("b", 3). road("a", 7). road("c", 0). road("d", 1).
id(x, n, m) :- road(x, km), n = autoinc(), km > 0, m = 2 * n, m < 4.  // a, b, d are 0, 1, 2
both(n, autoinc()) :- road(_, km), n = 10 * autoinc(), km > 1.        // two rows: 3, 4, then 5, 6
hit(k) :- road(_, k), road(_, autoinc() - 9).                         // 7 to 22, in the order of both symbols
"""
"""Rows are counted in the order of their values. What reads a number is tested afterwards."""


def test_counters_in_bodies_number_the_rows_of_the_other_literals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(IN_BODIES, encoding="utf-8")
    assert main(["run", "p.dl", "-q", "--backend", "local"]) == OK
    lines = {name: Path(f"{name}.csv").read_text(encoding="utf-8").splitlines() for name in ("id", "both", "hit")}
    assert lines["id"] == ["a\t0\t0", "b\t1\t2"]
    assert lines["both"] == ["30\t5", "40\t6"]
    pairs = [(k, km) for k in (7, 3, 0, 1) for km in (7, 3, 0, 1)]
    assert lines["hit"] == sorted({str(k) for n, (k, km) in enumerate(pairs, 7) if km == n - 9}) == ["3", "7"]


def test_counters_in_bodies_on_spark(spark: SparkSession) -> None:
    found = ra.datalog(spark, IN_BODIES)
    assert sorted(rows_of(found["id"])) == [("a", 0, 0), ("b", 1, 2)]


@pytest.mark.parametrize(
    ("rule", "reason", "column"),
    [
        ("p(autoinc()).", "it is not in a rule", 3),
        ("p(n) :- q(_), n = autoinc() + autoinc().", "the body has two counters", 19),
        ("p(n) :- n = autoinc().", "the body has no atom whose rows it could number", 13),
        ("p(x) :- q(x), !r(autoinc()). r(1).", "it is inside of a negation or an aggregate", 18),
        ("p(n) :- q(_), n = count : { r(autoinc()) }. r(1).", "it is inside of a negation or an aggregate", 31),
        ("p(n) :- q(_), n = autoinc(1).", "it has an argument", 19),
        ("p(n) :- (q(_); r(_)), n = autoinc(). r(1).", "the body has alternatives", 27),
        ("p(n) :- p(_), n = autoinc().", "`p` reads itself", 19),
        ("p(autoinc(), autoinc()) :- q(_).", "the rule has two heads or counters", 3),
        ("p(autoinc()), r(x) :- q(x).", "the rule has two heads or counters", 3),
        ("p(autoinc(1)) :- q(_).", "it has an argument", 3),
        ("p(autoinc()) :- q(_); r(_).", "the body has alternatives", 3),
        ("p(autoinc()) :- p(_).", "`p` reads itself", 3),
        ("p(autoinc()) :- r(_). r(x) :- p(x).", "`p` reads itself", 3),
    ],
)
def test_what_is_refused(rule: str, reason: str, column: int) -> None:
    with pytest.raises(DatalogError) as refused:
        read(f"q(1).\n{rule}")
    assert refused.value.code == "PARALAGG_DATALOG_UNSUPPORTED"
    assert refused.value.message == f"`autoinc()` is not supported here: {reason}"
    assert refused.value.position == (2, column)
