"""Relations in SQLite databases: Soufflé's layout, what stays in a file, and what is refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_cli import DISTANCES

from pyspark_paralagg.command.cli import OK, WRONG, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPES = """
.type List = [head: number, tail: List]
.decl value(n: number, u: unsigned, f: float, s: symbol, l: List)
.input value(IO=sqlite, filename="in.db")
.output value(IO=sqlite, filename="out.db", name="copy")
.output value
"""
VALUES = """
CREATE TABLE value (a, b, c, d, e);
INSERT INTO value VALUES
    (-9223372036854775808, 9223372036854775807, 0.1, 'naïve €', '[7, nil]'), (1, '0x10', 'nan', NULL, 'nil'),
    ('2', 0, 9e999, x'c3a9', '[1, [2, nil]]');
"""


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Run a text on databases with the content of these scripts; outputs go to ``out``."""
    before = Path.cwd()
    os.chdir(tmp_path)
    Path("out").mkdir()

    def run(text: str, *arguments: str, **scripts: str) -> int:
        for name, script in scripts.items():
            with closing(sqlite3.connect(f"{name}.db")) as database:
                database.executescript(script)
        Path("program.dl").write_text(text, encoding="utf-8")
        backend = () if "--backend" in arguments else ("--backend", "local")
        return main(["run", "program.dl", "-q", "-D", "out", *backend, *arguments])

    yield run
    os.chdir(before)


def _rows(path: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("backend", ["local", "spark"])
def test_values_of_all_types_are_read_and_written(case: Callable[..., int], backend: str) -> None:
    assert case(TYPES, "--backend", backend, **{"in": VALUES}) == OK
    assert Path("out/value.csv").read_text(encoding="utf-8") == (
        "-9223372036854775808\t9223372036854775807\t0.1\tnaïve €\t[7, nil]\n1\t16\tnan\t\tnil\n"
        "2\t0\tinf\té\t[1, [2, nil]]\n"
    )
    assert _rows("out/out.db", "SELECT n, u, f, s, l FROM copy ORDER BY n") == [
        (-(1 << 63), (1 << 63) - 1, 0.1, "naïve €", "[7, nil]"),
        (1, 16, "nan", "", "nil"),
        (2, 0, float("inf"), "é", "[1, [2, nil]]"),
    ]
    again = TYPES.replace("in.db", "out/out.db").replace('"out/out.db"', '"out/out.db", name="copy"')
    assert case(again, "-D", "again") == OK
    assert Path("again/value.csv").read_bytes() == Path("out/value.csv").read_bytes()


def test_the_layout_is_souffles(case: Callable[..., int]) -> None:
    text = '.decl p(x: number, y: symbol, z: symbol)\n.output p(IO=sqlite)\np(1, "a", "b"). p(2, "b", "b").'
    assert case(text) == OK
    assert [row[0] for row in _rows("out/p.sqlite", "SELECT name FROM sqlite_master WHERE sql <> '' ORDER BY 1")] == [
        "__SymbolTable",
        "_p",
        "p",
    ]
    assert _rows("out/p.sqlite", 'SELECT "0", "1", "2" FROM _p') == [(1, 1, 2), (2, 2, 2)]
    assert _rows("out/p.sqlite", "SELECT id, symbol FROM __SymbolTable") == [(1, "a"), (2, "b")]


def test_a_database_keeps_its_other_tables_and_symbols(case: Callable[..., int]) -> None:
    text = """
    .decl p(x: symbol)  .decl r()  .comp C { .decl q(x: number) q(1). }  .init s = C
    p("new"). p("old"). r().
    .output p, s.q, r(IO=sqlite, dbname="all.db")
    """
    with closing(sqlite3.connect("out/all.db")) as database:
        database.executescript("""
            CREATE TABLE mine (x); INSERT INTO mine VALUES (7);
            CREATE TABLE __SymbolTable (id INTEGER PRIMARY KEY, symbol TEXT UNIQUE);
            INSERT INTO __SymbolTable VALUES (5, 'old'), (9, 'other');
            CREATE TABLE _p ('0' INTEGER, '1' INTEGER); CREATE VIEW p AS SELECT 1 AS gone;
        """)
    assert case(text) == OK
    assert _rows("out/all.db", "SELECT x FROM mine") == [(7,)]
    assert sorted(_rows("out/all.db", "SELECT * FROM p")) == [("new",), ("old",)]
    assert _rows("out/all.db", 'SELECT * FROM "s.q"') == [(1,)]
    assert _rows("out/all.db", "SELECT * FROM r") == [(1,)]
    assert _rows("out/all.db", "SELECT id, symbol FROM __SymbolTable") == [(5, "old"), (9, "other"), (10, "new")]
    assert [p.name for p in Path("out").iterdir()] == ["all.db"]
    read = '.decl r() .decl t()\n.input r(IO=sqlite, filename="out/all.db")\n.output t\nt() :- r().'
    assert case(read, "-D", "read") == OK
    assert Path("read/t.csv").read_text() == "()\n"


def test_a_failed_run_leaves_the_database(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    text = '.decl p(x: number) .decl q(x: number)\n.output p, q(IO=sqlite, filename="all.db")\np(1). q(2).'
    assert case(text, **{"out/all": "CREATE TABLE q (x); CREATE VIEW p AS SELECT 3 AS x;"}) == WRONG
    assert "PARALAGG_BAD_OUTPUT: out/all.db has a table q" in capfd.readouterr().err
    assert _rows("out/all.db", "SELECT x FROM p") == [(3,)]


EDGE = DISTANCES.replace(".input edge", '.input edge(IO=sqlite, filename="in.db")')


@pytest.mark.parametrize(
    ("text", "script", "told"),
    [
        (EDGE, "CREATE TABLE other (x);", "PARALAGG_INPUT_UNREADABLE: in.db cannot be read as SQLite: it has no table"),
        (EDGE, "CREATE TABLE edge (x, y);", "edge has 2 columns, but 3 are declared"),
        (EDGE, "CREATE TABLE edge (x, y, w); INSERT INTO edge VALUES (1, 2, 3), (1, 'b', 3);", "'b' is not a number"),
        (EDGE, "CREATE TABLE edge (x, y, w); INSERT INTO edge VALUES (1, 2, NULL);", "in.db, edge, row 1"),
        (EDGE, "CREATE TABLE edge (x, y, w); INSERT INTO edge VALUES (1, x'ff', 2);", "can't decode byte 0xff"),
        (EDGE.replace("in.db", "no.db"), "", "PARALAGG_INPUT_MISSING: the file no.db does not exist"),
        (EDGE.replace("in.db", "program.dl"), "", "PARALAGG_INPUT_UNREADABLE: program.dl cannot be read as SQLite"),
        (EDGE.replace("in.db", "file:in.db"), "", "PARALAGG_BAD_DIRECTIVE: 'file:in.db' is not a file name"),
        (
            '.decl p(x: number)\np(1).\n.output p(IO=sqlite, filename="../program.dl")',
            "",
            "PARALAGG_BAD_OUTPUT: out/../program.dl exists but is not a SQLite database",
        ),
        (
            '.decl p(x: number)\np(1).\n.output p(IO=sqlite, filename="p.csv")\n.output p',
            "",
            "PARALAGG_BAD_OUTPUT: two outputs have the target",
        ),
        (
            '.decl p(x: number) .decl q(x: number)\np(1). q(1).\n.output p, q(IO=sqlite, filename="a.db", name="t")',
            "",
            "PARALAGG_BAD_DIRECTIVE: p and q both go to out/a.db",
        ),
    ],
)
def test_what_is_refused(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], text: str, script: str, told: str
) -> None:
    assert case(text, **{"in": script}) == WRONG
    assert told in capfd.readouterr().err
    assert list(Path("out").iterdir()) == []
