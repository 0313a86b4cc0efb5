"""Test Soufflé's larger constructs: components, eqrel, records, algebraic types, pragmas, includes, `cpp`."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, WRONG, main
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.errors import DatalogError
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.fields import FIELD, PACK, field, pack
from pyspark_paralagg.program.sql import to_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

BACKENDS = ("spark", "local", "dataframe", "python")


def rows(df: DataFrame) -> set[tuple[Any, ...]]:
    collected = [tuple(r) for r in df.collect()]
    assert len(collected) == len(set(collected))
    return set(collected)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Run a text in a folder of its own, on ``local`` or as the arguments say; outputs go to ``out`` there."""
    before = Path.cwd()
    os.chdir(tmp_path)

    def run_text(text: str, *arguments: str, **files: str) -> int:
        for name, content in files.items():
            Path(name.replace("_dl", ".dl")).write_text(content, encoding="utf-8")
        Path("p.dl").write_text(text, encoding="utf-8")
        return main(["run", "p.dl", "-D", "out", "-q", "--backend", "local", *arguments])

    yield run_text
    os.chdir(before)


def lines(name: str) -> list[str]:
    return Path(f"out/{name}.csv").read_text(encoding="utf-8").splitlines()


# --- components ------------------------------------------------------------------------------------------------------

COMPONENTS = """
.type City <: symbol
.decl road(x: City, y: City)
road("a", "b"). road("b", "c").
.comp Base<N> {
    .decl edge(x: N, y: N) overridable
    edge(x, y) :- given(x, y).
    .decl given(x: N, y: N)
}
.comp Closure<N> : Base<N> {
    .decl path(x: N, y: N)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
}
.comp Backwards<N> : Closure<N> {
    .override edge
    edge(y, x) :- given(x, y).
}
.comp Pair<C> {
    .init one = C
    .decl size(n: number)
    size(n) :- n = count : { one.path(_, _) }.
}
.comp Numbers : Closure<number> { given(1, 2). given(2, 1). }
.init forth = Closure<City>
.init back = Backwards<City>
.init pair = Pair<Numbers>
forth.given(x, y) :- road(x, y).
back.given(x, y) :- road(x, y).
.output forth.path, back.path, pair.size, pair.one.path
"""


def test_components_with_parameters_bases_overrides_and_instances_inside(run: Callable[..., int]) -> None:
    assert run(COMPONENTS) == OK
    assert lines("forth.path") == ["a\tb", "a\tc", "b\tc"]
    assert lines("back.path") == ["b\ta", "c\ta", "c\tb"]
    assert lines("pair.one.path") == ["1\t1", "1\t2", "2\t1", "2\t2"]
    assert lines("pair.size") == ["4"]


@pytest.mark.slow("a chain of recursions, each compiled by Spark")
def test_components_on_spark(spark: SparkSession) -> None:
    found = ra.datalog(spark, COMPONENTS)
    assert rows(found["back.path"]) == {("b", "a"), ("c", "a"), ("c", "b")}
    assert rows(found["pair.size"]) == {(4,)}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (".init g = Grph\n.comp Graph {}", "component `Grph` does not exist", 1),
        (".comp G<N> {}\n.init g = G", "component `G` has 1 parameters, but here 0", 2),
        (".comp G {}\n.comp G {}", "component `G` is defined twice", 2),
        (".comp G : G {}\n.init g = G", "component `G` inherits from itself", 1),
        (".comp G { .init h = G }\n.init g = G", "component `G` has an instance of itself", 1),
        (".override p", "`.override p` is outside of a component", 1),
        (".comp A { .decl p(x: number) }\n.comp B : A { .override p }\n.init b = B", "`p` is not overridable", 2),
        (".comp A { }\n.comp B : A {\n.override p }\n.init b = B", "no base of component `B` declares `p`", 3),
    ],
)
def test_wrong_components(text: str, message: str, line: int) -> None:
    with pytest.raises(DatalogError) as caught:
        read(text)
    error = caught.value
    assert (error.code, error.message) == ("PARALAGG_DATALOG_COMPONENT", message)
    assert error.position is not None
    assert error.position[0] == line
    assert error.hint


# --- equivalences ----------------------------------------------------------------------------------------------------


def same_component(pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {p for c in nx.connected_components(nx.Graph(pairs)) for p in itertools.product(c, c)}


@pytest.mark.slow("each executor compiles the recursions")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_eqrel_is_the_equivalence_of_its_links(spark: SparkSession, backend: str) -> None:
    generator = random.Random(7)  # noqa: S311 - test data
    links = [(generator.randrange(30), generator.randrange(30)) for _ in range(18)]
    frame = spark.createDataFrame(links, "x bigint, y bigint")
    text = ".decl same(x: number, y: number) eqrel\nsame(x, y) :- link(x, y)."
    assert rows(ra.datalog(spark, text, link=frame, backend=backend)["same"]) == same_component(links)


def test_the_rows_of_an_input_count_as_links(spark: SparkSession) -> None:
    text = ".decl same(x: number, y: number) eqrel\n.input same\nsame(3, 4)."
    frame = spark.createDataFrame([(1, 2), (2, 3)], "x bigint, y bigint")
    assert rows(ra.datalog(spark, text, same=frame)["same"]) == same_component([(1, 2), (2, 3), (3, 4)])


@pytest.mark.parametrize(
    ("columns", "code"), [("x: number", "PARALAGG_DATALOG_ARITY"), ("x: number, y: symbol", "PARALAGG_DATALOG_TYPE")]
)
def test_an_eqrel_has_two_columns_of_one_type(columns: str, code: str) -> None:
    with pytest.raises(DatalogError, match=code):
        read(f".decl same({columns}) eqrel")


# --- records and algebraic types -------------------------------------------------------------------------------------

LISTS = """
.type List = [head: number, tail: List]
.decl lists(l: List)
lists(nil).
lists([h, t]) :- lists(t), t = nil, h = -5.
lists([h + 3, t]) :- t = [h, _], lists(t), h < 4.
.decl size(l: List, n: number)
size(nil, 0).
size(l, n + 1) :- lists(l), l = [_, t], size(t, n).
.decl second(x: number, y: number)
second(x, y) :- lists([x, [y, _]]).
.decl inner(l: List)
inner(l) :- lists([_, l]).
.decl outermost(l: List)
outermost(l) :- lists(l), !inner(l).
.decl rising(n: number)
rising(n) :- n = count : { lists([x, [y, _]]), x > y }.
"""


def list_text(numbers: tuple[int, ...]) -> str:
    return f"[{numbers[0]}, {list_text(numbers[1:])}]" if numbers else "nil"


@pytest.mark.slow("each executor compiles the recursions")
@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_on_every_executor(spark: SparkSession, backend: str) -> None:
    full = (4, 1, -2, -5)
    suffixes = [full[n:] for n in range(5)]
    found = ra.datalog(spark, LISTS, backend=backend)
    assert rows(found["lists"]) == {(list_text(s),) for s in suffixes}
    assert rows(found["size"]) == {(list_text(s), len(s)) for s in suffixes}
    assert rows(found["second"]) == set(itertools.pairwise(full))
    assert rows(found["outermost"]) == {(list_text(full),)}
    assert rows(found["rising"]) == {(3,)}


TREES = """
.type Pair = [name: symbol, weight: float]
.type Tree = Leaf {n: number} | Node {left: Tree, right: Tree} | Empty {} | Named {pair: Pair}
.decl tree(t: Tree)
tree($Leaf(1)). tree($Leaf(-2)). tree($Empty). tree($Node($Leaf(1), $Node($Empty(), $Leaf(-2)))).
tree($Named(["a, [b", 2.5])).
tree($Node(x, $Empty)) :- tree(x), x = $Leaf(n), n > 0.
.decl leaves(n: number)
leaves(n) :- tree($Leaf(n)).
.decl left(n: number)
left(n) :- tree($Node($Leaf(n), $Node(_, _))).
.decl other(t: Tree)
other(t) :- tree(t), t != $Empty, !tree($Node(t, $Empty)).
.decl names(s: symbol, w: float)
names(s, w * 2.0) :- tree($Named([s, w])).
.output tree, leaves, left, other, names
"""
NESTED = "$Node($Leaf(1), $Node($Empty, $Leaf(-2)))"
NAMED = "$Named([a, [b, 2.5])"


@pytest.mark.slow("the kernels of nine rules are compiled")
def test_algebraic_types_on_local(run: Callable[..., int]) -> None:
    assert run(TREES) == OK
    expected = ["$Leaf(1)", "$Leaf(-2)", "$Empty", NESTED, NAMED, "$Node($Leaf(1), $Empty)"]
    assert sorted(lines("tree")) == sorted(expected)
    assert lines("leaves") == ["-2", "1"]
    assert lines("left") == ["1"]
    assert sorted(lines("other")) == sorted(["$Leaf(-2)", NESTED, NAMED, "$Node($Leaf(1), $Empty)"])
    assert lines("names") == ["a, [b\t5.0"]


@pytest.mark.slow("Spark compiles nine rules")
def test_algebraic_types_on_spark(spark: SparkSession) -> None:
    found = ra.datalog(spark, TREES)
    assert rows(found["other"]) == {("$Leaf(-2)",), (NESTED,), (NAMED,), ("$Node($Leaf(1), $Empty)",)}
    assert rows(found["names"]) == {("a, [b", 5.0)}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("p([1]).", "`List` has 2 fields, but here 1"),
        ("p([1, _]).", "a field of a value cannot be `_`"),
        ("q(x) :- r(x), [x, nil] != [x, nil].", "nothing determines the type of this record"),
        ("q(x) :- r(x), x = $Nothing(1).", "no type has the branch `$Nothing`"),
        ("p([1, nil]). t($Bb(1)).", "no type has the branch `$Bb`"),
        ("p([1, nil]). t($Bb(x)) :- r(x).", "no type has the branch `$Bb`"),
        ("q(1) :- t($B(1, 2)).", "`$B` has 1 fields, but here 2"),
        (".type V = B {}", "branch `B` is defined twice"),
    ],
)
def test_wrong_structures(rule: str, message: str) -> None:
    types = ".type List = [head: number, tail: List]\n.type T = A {} | B {n: number}\n"
    with pytest.raises(DatalogError) as caught:
        read(f"{types}.decl p(x: List)\n.decl t(x: T)\n.decl q(x: number)\n.decl r(x: number)\n{rule}")
    error = caught.value
    assert (error.code, error.message) == ("PARALAGG_DATALOG_STRUCTURE", message)
    assert error.position is not None
    assert error.position[0] in (6 + rule.startswith("."), 7, 8) or rule.startswith("p")
    assert error.hint


def test_an_aggregate_of_structures_may_be_in_lower_case() -> None:
    types = ".type T = A {} | B {n: number}\n.decl t(x: T)\n.decl least(x: T)\n"
    assert read(types + "t($B(1)). least($min(x)) :- t(x).")


TEXTS = st.text("01r9 ,[]ü🙂\n", max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4))
def test_packed_fields_are_read_back_and_differ_if_the_fields_differ(first: list[str], second: list[str]) -> None:
    text = pack("r", *first)
    assert [field(text, "r", len(first), n, "?") for n in range(len(first))] == first
    if len(first) == len(second):
        assert (text == pack("r", *second)) == (first == second)
    assert field("", "r", 2, 1, "?") == "?"


def test_a_structure_has_a_greatest_size() -> None:
    assert field(pack("r", "x" * 9_999_000), "r", 1, 0, "") == "x" * 9_999_000
    with pytest.raises(OverflowError, match="10,000,000"):
        pack("r", "x" * 10**7)


def test_sql_packs_and_reads_the_same_texts(spark: SparkSession) -> None:
    cases = [("", ""), ("7", "ab"), ("-5", "é, ["), ("r100", "x" * 20)]
    df = spark.createDataFrame(cases, "a string, b string")
    a, b = Col("a", "string"), Col("b", "string")
    packed = Call(PACK, (Lit("r", "string"), a, b), "string")
    layout = (Lit("r", "string"), Lit(2, "bigint"))
    read_b = Call(FIELD, (packed, *layout, Lit(1, "bigint"), Lit("?", "string")), "string")
    read_none = Call(FIELD, (a, *layout, Lit(0, "bigint"), Lit("?", "string")), "string")
    found = df.selectExpr("a", "b", *(to_sql(e) for e in (packed, read_b, read_none))).collect()
    assert sorted(map(tuple, found))[:3] == sorted((x, y, pack("r", x, y), y, "?") for x, y in cases)[:3]


# --- pragmas, addresses, files ---------------------------------------------------------------------------------------


def test_pragmas_have_no_effect_and_addresses_are_numbers(run: Callable[..., int]) -> None:
    text = '.pragma "magic-transform" "*"\n.pragma "legacy"\n.decl p(x: unsigned)\np(10.0.0.1). p(0xff).\n.output p'
    assert run(text) == OK
    assert lines("p") == ["255", str(10 * 2**24 + 1)]


def test_an_address_has_bytes() -> None:
    with pytest.raises(DatalogError, match="this is not an IPv4 address"):
        read("p(10.0.0.256).")


def test_files_are_included_once_if_they_say_so(run: Callable[..., int]) -> None:
    text = '.include "a_.dl"\n.include "b_.dl" // again\n.include "b_.dl"\n.output p'
    assert run(text, a__dl='.include "b_.dl"\np(1).', b__dl=".once\n.decl p(x: number)\np(2).") == OK
    assert lines("p") == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('.include "none.dl"', "cannot read none.dl"),
        ('.include "p.dl"', "p.dl includes itself"),
        (".include", "no file"),
    ],
)
def test_wrong_includes(run: Callable[..., int], capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    assert run(text) == WRONG
    assert message in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cpp") is None, reason="needs the C preprocessor")
def test_the_preprocessor_runs_on_request(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    text = "#define BOTH(a, b) p(a). p(b).\n.decl p(x: number)\nBOTH(1, 2)\n#ifdef NO\np(3).\n#endif\n.output p"
    text += "\n#if RAM_DOMAIN_SIZE == 64\np(4).\n#endif"
    assert run(text, "--cpp") == OK
    assert lines("p") == ["1", "2", "4"]
    assert run(text) == WRONG
    assert "paralagg run --cpp" in capsys.readouterr().err
    assert run('#include "none.h"\n.output p', "--cpp") == WRONG
    assert "cpp fails" in capsys.readouterr().err
