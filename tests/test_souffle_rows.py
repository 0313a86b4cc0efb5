"""Test which rows a relation keeps, as in Soufflé: subsumption, choice-domain, ord, inline; and structures in files."""

from __future__ import annotations

import functools
import gzip
import itertools
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.datalog.desugar.structure_reader import StructureReader
from pyspark_paralagg.datalog.desugar.structures import Structure, decoder
from pyspark_paralagg.datalog.parse.show import show
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.errors import DatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

BACKENDS = ("local", "spark")
KEPT_ROWS, UNSUPPORTED = "PARALAGG_DATALOG_KEPT_ROWS", "PARALAGG_DATALOG_UNSUPPORTED"


def rows(df: DataFrame) -> set[tuple[Any, ...]]:
    collected = [tuple(r) for r in df.collect()]
    assert len(collected) == len(set(collected))
    return set(collected)


def refused(text: str) -> DatalogError:
    with pytest.raises(DatalogError) as caught:
        read(text)
    return caught.value


# --- subsumption -----------------------------------------------------------------------------------------------------

SHORTEST = """
.decl e(x: number, y: number, w: number)
.input e
.decl sp(x: number, y: number, c: number) btree_delete
sp(x, y, c1) <= sp(x, y, c2) :- c2 <= c1.
sp(x, y, w) :- e(x, y, w).
sp(x, z, c + w) :- sp(x, y, c), e(y, z, w).
.assume e.w >= 0
.output sp
"""


@pytest.mark.slow("each executor compiles the recursion")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_subsumption_of_one_value_recurses_as_a_minimum(spark: SparkSession, backend: str) -> None:
    draw = random.Random(5)  # noqa: S311 - repeatable
    edges = {(x, draw.randrange(9)): draw.randrange(1, 9) for x in range(9) for _ in range(2)}
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((x, y, w) for (x, y), w in edges.items())
    expected = set()
    for x, y in itertools.product(graph, graph):
        steps = [
            w + nx.dijkstra_path_length(graph, z, y)
            for _, z, w in graph.out_edges(x, "weight")
            if nx.has_path(graph, z, y)
        ]
        expected |= {(x, y, min(steps))} if steps else set()
    df = spark.createDataFrame([(x, y, w) for (x, y), w in edges.items()], "x bigint, y bigint, w bigint")
    assert rows(ra.datalog(spark, SHORTEST, e=df, backend=backend)["sp"]) == expected


INTERVALS = """
.decl given(a: number, b: number)
.input given
.decl r(a: number, b: number)
r(a, b) :- given(a, b).
r(a, b) <= r(c, d) :- c <= a, b <= d.
r(min(a, c), max(b, d)) :- r(a, b), r(c, d), c < b.
.decl wide(a: number)
wide(a) :- r(a, b), b - a > 10.
.output r, wide
"""


def joined(intervals: list[tuple[int, int]]) -> set[tuple[int, int]]:
    result = set(intervals)
    while True:
        more = {(min(a, c), max(b, d)) for a, b in result for c, d in result if c < b} - result
        if not more:
            return {r for r in result if not any(o != r and o[0] <= r[0] and r[1] <= o[1] for o in result)}
        result |= more


@pytest.mark.slow("each executor compiles the recursion")
@pytest.mark.parametrize("backend", BACKENDS)
def test_other_subsumptions_keep_what_no_row_of_the_fixpoint_dominates(spark: SparkSession, backend: str) -> None:
    draw = random.Random(3)  # noqa: S311 - repeatable
    given = [(a, a + draw.randrange(1, 12)) for a in (draw.randrange(100) for _ in range(12))]
    found = ra.datalog(spark, INTERVALS, given=spark.createDataFrame(given, "a bigint, b bigint"), backend=backend)
    assert rows(found["r"]) == joined(given)
    assert rows(found["wide"]) == {(a,) for a, b in joined(given) if b - a > 10}


def test_what_a_subsumption_becomes() -> None:
    text = show(read("p(x, y) <= p(x, z) :- z < y. p(x, y) :- q(x, y). p(1, 2)."))
    assert text == "p(x, $MIN(y)) :- q(x, y).\np(1, 2).\n"
    text = show(read("p(x, y) <= p(x, z) :- y <= z. p(x, y) :- q(x, y)."))
    assert text == "p(x, $MAX(y)) :- q(x, y).\n"
    text = show(read("p(x) <= p(y) :- q(x, y). p(x) :- r(x). s(x) :- p(x)."))
    assert text == (
        "p@all(x) :- r(x).\ns(x) :- p(x).\n"
        "p@dominated(x) :- p@all(x), p@all(y), q(x, y), (x != y).\n"
        "p(c@0) :- p@all(c@0), !p@dominated(c@0).\n"
    )


def test_a_row_does_not_dominate_itself() -> None:
    text = show(read("p(x) <= p(x) :- p(x). p(x) :- r(x)."))
    assert text == "p@all(x) :- r(x).\np(c@0) :- p@all(c@0).\n"


def test_what_recurses_with_the_relation_reads_all_its_rows() -> None:
    text = show(read("p(x) <= p(y) :- s(x, y). p(x) :- r(x). s(x, y) :- p(x), p(y). t(x) :- p(x)."))
    assert "s(x, y) :- p@all(x), p@all(y)." in text
    assert "t(x) :- p(x)." in text


def test_a_limit_is_that_of_the_recursion() -> None:
    text = show(read("p(x + 1) :- p(x). p(x) <= p(y) :- s(x, y). p(0). .limit p(iterations=3)"))
    assert ".limit p@all(iterations=3)" in text


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("p(x) <= q(y) :- x < y.", KEPT_ROWS, "a row of `p` cannot be compared with one of `q`"),
        ("p(x) <= p(x, y) :- x < y.", "PARALAGG_DATALOG_ARITY", "`p` has 1 columns here, and then 2"),
        (
            ".decl p(x: number)\n.input p\np(x) <= p(y) :- x < y.",
            KEPT_ROWS,
            "`p` is an input, so all of its rows are kept",
        ),
        (".decl p(x: number) choice-domain y", KEPT_ROWS, "`p` has no column `y`"),
        (
            ".decl p(x: number, y: number) choice-domain x\np(x, y) :- p(y, x).",
            UNSUPPORTED,
            "choice-domain is not supported in a recursion: `p` reads itself",
        ),
    ],
)
def test_rows_that_cannot_be_chosen(text: str, code: str, message: str) -> None:
    error = refused(text)
    assert (error.code, error.message) == (code, message)
    assert error.position is not None


# --- choice-domain ---------------------------------------------------------------------------------------------------

CHOICE = """
.decl lives(name: symbol, town: symbol, floor: number)
.input lives
.decl home(floor: number, name: symbol, town: symbol) choice-domain name, (town, name), (name, town, floor)
home(f, n, t) :- lives(n, t, f).
.decl two(n: symbol)
two(n) :- home(_, n, t), home(_, n, u), t != u.
.output home, two
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_row_of_each_key_is_chosen(spark: SparkSession, backend: str) -> None:
    lives = [("ann", "rome", 3), ("ann", "oslo", 1), ("ann", "bonn", 1), ("bob", "rome", 2)]
    df = spark.createDataFrame(lives, "name string, town string, floor bigint")
    found = ra.datalog(spark, CHOICE, lives=df, backend=backend)
    assert rows(found["home"]) == {(1, "ann", "bonn"), (2, "bob", "rome")}
    assert rows(found["two"]) == set()


SEVERAL = """
.decl e(x: number, y: symbol, z: float)
.input e
.decl r(x: number, y: symbol, z: float) choice-domain x, (y, z), (x, y, z)
r(x, y, z) :- e(x, y, z).
.decl pair(x: number, z: float) choice-domain x, z
pair(x, z) :- e(x, _, z).
.output r, pair
"""


def _in_order(candidates: set[tuple[Any, ...]], keys: list[tuple[int, ...]]) -> set[tuple[Any, ...]]:
    """Take the rows in their order, each unless one before it has one of its keys."""
    kept: list[tuple[Any, ...]] = []
    for row in sorted(candidates):
        if not any(all(row[n] == other[n] for n in key) for other in kept for key in keys):
            kept.append(row)
    return set(kept)


@pytest.mark.slow("each executor compiles the chains of four keys")
@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_several_keys_are_chosen_in_their_order(spark: SparkSession, backend: str) -> None:
    dice = random.Random(4)  # noqa: S311 - for a test
    drawn = {(dice.randrange(9), dice.choice("abc"), float(dice.randrange(4))) for _ in range(60)}
    df = spark.createDataFrame(sorted(drawn, reverse=True), "x bigint, y string, z double")
    found = ra.datalog(spark, SEVERAL, e=df, backend=backend)
    assert rows(found["r"]) == _in_order(drawn, [(0,), (1, 2)])
    assert rows(found["pair"]) == _in_order({(x, z) for x, _, z in drawn}, [(0,), (1,)])


def test_a_key_that_is_the_row_chooses_nothing() -> None:
    text = show(read(".decl p(x: number, y: number) choice-domain (x, y), (y, x)\np(1, 2). p(1, 3)."))
    assert text == ".decl p(x: number, y: number)\np(1, 2).\np(1, 3).\n"


# --- ord, inline -----------------------------------------------------------------------------------------------------

INLINE = """
.type Pair = [a: number, b: number]
.decl q(x: number)
q(1). q(2). q(5).
.decl same(a: number, b: number) inline
same(a, b) :- a = b.
same(a, b) :- a = b + 1, a < 3.
.decl total(p: Pair, s: number) inline
total([a, b], s) :- s = a + b.
.decl p(x: number, y: number)
p(x, y) :- q(x), q(y), same(x, y).
.decl n(c: number)
n(c) :- c = count : { q(x), q(y), same(x, y) }.
.decl t(s: number)
t(s) :- q(x), total([x, 10], s).
.decl less(x: symbol, y: symbol)
less(x, y) :- s(x), s(y), ord(x) < ord(y).
s("b"). s("a").
.output p, n, t, less
"""


@pytest.mark.slow("each executor compiles eight rules")
@pytest.mark.parametrize("backend", BACKENDS)
def test_inline_relations_need_not_bind_their_columns(spark: SparkSession, backend: str) -> None:
    found = ra.datalog(spark, INLINE, backend=backend)
    assert rows(found["p"]) == {(1, 1), (2, 2), (5, 5), (2, 1)}
    assert rows(found["n"]) == {(4,)}
    assert rows(found["t"]) == {(11,), (12,), (15,)}
    assert rows(found["less"]) == {("a", "b")}


def test_an_inline_relation_must_not_read_itself() -> None:
    error = refused(
        ".decl p(x: number, y: number) inline\np(x, y) :- x = y.\np(x, y) :- p(y, x).\nq(x) :- r(x), p(x, x)."
    )
    assert (error.code, error.message) == ("PARALAGG_DATALOG_UNBOUND", "the inline relation `p` reads itself")


def test_an_inline_relation_that_binds_its_columns_stays_a_relation() -> None:
    text = ".decl p(x: number) inline\np(x) :- r(x).\nq(x) :- p(x).\n"
    assert show(read(text)) == text


# --- structures in files ---------------------------------------------------------------------------------------------

TYPES = """
.type List = [head: number, tail: List]
.type Named = [name: symbol, weight: float]
.type Tree = Leaf {n: Named} | Node {left: Tree, right: Tree} | Empty {}
"""
STRUCTURES = read(f"{TYPES}.decl l(x: List)").structures


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


COPY = f"""{TYPES}
.decl given(x: number, l: List, t: Tree)
.input given(delimiter=", ")
.decl out(l: List, t: Tree)
out(l, t) :- given(_, l, t).
.decl heads(h: number, name: symbol)
heads(h, s) :- given(_, [h, _], $Leaf([s, _])).
.output out, heads
"""
FACTS = """1, [1, [-2, nil]], $Leaf([a b, 2.5])
2, nil, $Node($Leaf(["x, \\"y\\")", 1]), $Empty)
3, [7,nil] , $Leaf( [ c , 1e3 ] )
"""


@pytest.mark.slow("each executor compiles two rules")
@pytest.mark.parametrize("backend", ["local", "spark"])
def test_files_may_have_structures(folder: Path, backend: str) -> None:
    Path("p.dl").write_text(COPY)
    Path("given.facts").write_bytes(gzip.compress(FACTS.encode()))
    assert main(["run", "p.dl", "-D", "out", "-q", "--backend", backend]) == OK
    lines = (folder / "out/out.csv").read_text().splitlines()
    assert set(lines) == {
        "[1, [-2, nil]]\t$Leaf([a b, 2.5])",
        'nil\t$Node($Leaf([x, "y"), 1.0]), $Empty)',
        "[7, nil]\t$Leaf([c, 1000.0])",
    }
    assert set((folder / "out/heads.csv").read_text().splitlines()) == {"1\ta b", "7\tc"}


def test_dataframes_may_have_structures(spark: SparkSession) -> None:
    text = f"{TYPES}.decl given(l: List)\n.input given\n.decl h(x: number)\nh(x) :- given([x, _]).\n.output h"
    df = spark.createDataFrame([("[4, [5, nil]]",), ("nil",)], "l string")
    assert rows(ra.datalog(spark, text, given=df)["h"]) == {(4,)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1, [1 nil], $Empty", "has 'nil], $Empty' at character 7, but `,` is expected"),
        ("1, [x, nil], $Empty", "has 'x, nil], $Empty' at character 5, but a number is expected"),
        ("1, nil, $Other", "has '$Other' at character 9, but a branch of Tree: $Leaf, $Node, $Empty is expected"),
        ("1, nil, $Empty x", "has ' x' at character 7, but nothing is expected"),
        ("1, nil", "'1, nil' has 2 values, but given has 3 columns"),
    ],
)
def test_wrong_structures_in_files(folder: Path, capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    Path("p.dl").write_text(COPY)
    Path("given.facts").write_text(f"2, nil, $Empty\n{line}\n")
    assert main(["run", "p.dl", "-D", "out", "-q", "--backend", "local"]) != OK
    shown = capsys.readouterr().err
    assert "PARALAGG_BAD_FACT" in shown
    assert message in shown
    assert "line 2" in shown
    assert not (folder / "out").exists()


@functools.cache
def values(type_: str) -> st.SearchStrategy[str]:
    if type_ == "number":
        return st.integers(-(10**18), 10**18).map(str)
    if type_ == "float":
        return st.floats(allow_nan=False, allow_infinity=False).map(repr)
    if type_ == "symbol":
        return st.text("ab1 .-$é", max_size=5).map(str.strip)
    structure: Structure = STRUCTURES[type_]
    if structure.is_record:
        fields = st.tuples(*(st.deferred(lambda t=t: values(t)) for t in structure.branches[""]))
        return st.none().map(lambda _: "nil") | fields.map(lambda f: f"[{', '.join(f)}]")
    return st.just("$Empty") | values("Named").map(lambda n: f"$Leaf({n})")


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["List", "Named", "Tree"]))
def test_decoding_what_was_read_gives_the_text(data: st.DataObject, type_: str) -> None:
    text = data.draw(values(type_))
    assert decoder(type_, STRUCTURES)(StructureReader(type_, STRUCTURES).encode(text)) == text


def test_long_lists_are_read_without_recursion() -> None:
    text = "".join(f"[{n}, " for n in range(3_000)) + "nil" + "]" * 3_000
    assert decoder("List", STRUCTURES)(StructureReader("List", STRUCTURES).encode(text)) == text


# --- smaller ones ----------------------------------------------------------------------------------------------------

SMALL = """
.decl p(x: symbol)
p("a" + "b" + to_string(2.5)).
.decl n(x: number)
n(to_number("0x1f")). n(to_number("-0b101")). n(255.255.255.255).
.decl m(x: symbol)
m(x) :- w(x), match("[[:digit:]_]+", x).
w("1_2"). w("x").
.output p(compress=true, filename="p.gz")
.output n, m
"""


def test_texts_are_joined_literals_have_bases_and_patterns_named_classes(folder: Path) -> None:
    Path("p.dl").write_text(SMALL)
    assert main(["run", "p.dl", "-D", "out", "-q", "--backend", "local"]) == OK
    assert gzip.decompress((folder / "out/p.gz").read_bytes()) == b"ab2.5\n"
    assert (folder / "out/n.csv").read_text() == "-5\n-1\n31\n"
    assert (folder / "out/m.csv").read_text() == "1_2\n"


def test_structures_are_no_texts() -> None:
    error = refused(f"{TYPES}.decl p(l: List)\n.decl q(x: symbol)\nq(x + y) :- p(x), p(y).")
    assert (error.code, error.message) == ("PARALAGG_DATALOG_STRUCTURE", "`+` takes no structure")
