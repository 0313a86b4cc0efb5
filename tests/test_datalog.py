"""Datalog texts on a real Spark: what `ra.datalog` promises beyond the fixtures."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING, Any

import pytest
from rows import frame, rows_of
from scala_objects import scala_object

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(r) for r in df.collect())


@pytest.fixture
def edge(spark: SparkSession) -> DataFrame:
    table = [(1, 2, 3), (2, 3, 4), (3, 1, 1), (2, 4, 10), (4, 5, 2)]
    return frame(spark, "x bigint, y bigint, w bigint", table)


PATHS = """
    .decl edge(x: number, y: number, w: number)
    .input edge
    .assume edge.w >= 0
    path(1, 0).
    path(y, $MIN(d + w)) :- path(x, d), edge(x, y, w).
    far(x) :- path(x, d), d > 6.
    near(x) :- path(x, d), d <= 6.
    .output far, near
"""


def test_iteration_gives_the_outputs_and_every_relation_can_be_looked_up(spark: SparkSession, edge: DataFrame) -> None:
    found = ra.datalog(spark, PATHS, edge=edge)
    assert list(found) == ["far", "near"]
    assert len(found) == 2
    assert "path" in found
    assert rows(found["path"]) == [(1, 0), (2, 3), (3, 7), (4, 13), (5, 15)]
    assert rows(found["far"]) == [(3,), (4,), (5,)]
    assert rows(found["edge"]) == rows(edge)
    assert repr(found) == "Relations(far(x), near(x))"


def test_without_an_output_all_relations_with_rules_are_given(spark: SparkSession, edge: DataFrame) -> None:
    found = ra.datalog(spark, "a(x) :- edge(x, _, _). b(x) :- a(x), x > 2.", edge=edge)
    assert list(found) == ["a", "b"]


def test_nothing_is_built_before_it_is_looked_up(spark: SparkSession, edge: DataFrame) -> None:
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    text = PATHS + "broken(x / 0) :- edge(x, _, _).\n.output broken"
    found = ra.datalog(spark, text, edge=edge)
    assert rows(found["near"]) == [(1,), (2,)]
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() != jobs
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        found["broken"].collect()


def persisted(spark: SparkSession) -> set[int]:
    """The numbers of the persisted RDDs: those of earlier tests may vanish at any time."""
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


def test_what_two_outputs_share_is_cached_and_freed(spark: SparkSession, edge: DataFrame) -> None:
    before = persisted(spark)
    found = ra.datalog(spark, PATHS, edge=edge)
    assert rows(found["far"]) == [(3,), (4,), (5,)]
    assert persisted(spark) <= before  # one reader: nothing to share
    assert rows(found["near"]) == [(1,), (2,)]
    assert persisted(spark) - before
    assert ra.report(found["far"]) is not None
    found.unpersist()
    assert persisted(spark) <= before


def test_the_cache_ends_with_the_mapping(spark: SparkSession, edge: DataFrame) -> None:
    before = persisted(spark)
    found = ra.datalog(spark, PATHS, edge=edge)
    rows(found["far"])
    rows(found["near"])
    assert persisted(spark) - before
    del found
    gc.collect()
    assert persisted(spark) <= before


def test_columns_match_by_name_where_they_can_and_by_position_else(spark: SparkSession) -> None:
    text = ".decl edge(x: number, y: number)\n.input edge\nout(x, y) :- edge(x, y)."
    turned = frame(spark, "y int, x int", [(2, 1)])
    assert rows(ra.datalog(spark, text, edge=turned)["out"]) == [(1, 2)]
    other = frame(spark, "src smallint, dst bigint", [(1, 2)])
    assert rows(ra.datalog(spark, text, edge=other)["out"]) == [(1, 2)]
    assert ra.datalog(spark, text, {"edge": other})["out"].dtypes == [("x", "bigint"), ("y", "bigint")]


def test_given_rows_and_facts_are_put_together(spark: SparkSession) -> None:
    given = frame(spark, "x bigint", [(1,), (2,), (2,)])
    text = "p(3). p(2). q(x, $COUNT) :- p(x). n(c) :- c = count : { p(_) }."
    found = ra.datalog(spark, text, p=given)
    assert rows(found["p"]) == [(1,), (2,), (3,)]
    assert rows(found["q"]) == [(1, 1), (2, 1), (3, 1)]  # a relation is a set
    assert rows(found["n"]) == [(3,)]


def test_aggregates_of_bodies(spark: SparkSession) -> None:
    text = """
        node(1). node(2). node(3).
        mark(1, 5). mark(1, 7). mark(2, 4).
        n(x, c) :- node(x), c = count : { mark(x, _) }.
        s(x, c) :- node(x), c = sum v : mark(x, v).
        m(x, c) :- node(x), c = max v : { mark(x, v) }.
        a(x, c) :- node(x), c = mean v : { mark(x, v) }.
        all(c) :- c = sum v : { mark(_, v) }.
        none(c) :- c = count : { mark(7, _) }.
        above(x, c) :- node(x), c = count : { mark(_, v), v > x + 3 }.
        both(c) :- c = count : { node(x); mark(x, _) }.
        best(x) :- mark(x, v), v = max w : { mark(_, w) }.
    """
    found = ra.datalog(spark, text)
    assert rows(found["n"]) == [(1, 2), (2, 1), (3, 0)]
    assert rows(found["s"]) == [(1, 12), (2, 4), (3, 0)]
    assert rows(found["m"]) == [(1, 7), (2, 4)]
    assert rows(found["a"]) == [(1, 6.0), (2, 4.0)]
    assert rows(found["all"]) == [(16,)]
    assert rows(found["none"]) == [(0,)]
    assert rows(found["above"]) == [(1, 2), (2, 1), (3, 1)]
    assert rows(found["both"]) == [(6,)]  # three x of node, three (x, _) of mark
    assert rows(found["best"]) == [(1,)]


@pytest.mark.slow(reason="joins of eight atoms on a cold session")
def test_atoms_that_only_have_to_have_a_row_do_not_multiply_rows(spark: SparkSession) -> None:
    atoms = ", ".join(f"n(a{i}), a{i} > {i}" for i in range(6))
    text = f"""
    n(x) :- x = range(0, 1000).
    some(x) :- n(x), x < 2, {atoms}, n(_), n(b), !n(b + 1).
    none(x) :- n(x), n(a), a < 0.
    sums(1, $COUNT) :- n(x), x < 2, n(a), a < 3.
    """
    found = ra.datalog(spark, text)
    assert rows(found["some"]) == [(0,), (1,)]
    assert rows(found["none"]) == []
    assert rows(found["sums"]) == [(1, 6)]


def test_ranges_scopes_and_witnesses_are_those_of_souffle(spark: SparkSession) -> None:
    text = """
    .decl e(x: symbol, y: number)
    .input e
    pairs(x, y) :- x = range(0, 2), y = range(0, 2).
    none(x) :- x = range(9, 0, 1).
    once(x) :- x = range(5, 1, 0).
    most(y) :- y = max y : { e(_, y) }.
    all(x, y) :- most(x), y = sum x : { e(_, x) }.
    where(x, m) :- m = max y : { e(x, y) }.
    """
    found = ra.datalog(spark, text, e=frame(spark, "x string, y long", [("a", 3), ("a", 8), ("b", 8), ("c", 2)]))
    assert rows(found["pairs"]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert (rows(found["none"]), rows(found["once"])) == ([], [(5,)])
    assert (rows(found["most"]), rows(found["all"])) == ([(8,)], [(8, 21)])
    assert rows(found["where"]) == [("a", 8), ("b", 8)]


def test_terms_mean_what_souffle_says(spark: SparkSession) -> None:
    text = r"""
        n(7, 2). s("path/to").
        arithmetic(a + b, a - b, a * b, a / b, a % b, a ^ b, -a) :- n(a, b).
        bits(a band b, a bor b, a bxor b, a bshl b, a bshr 1, bnot a) :- n(a, b).
        logic(a land 0, a lor 0, lnot a) :- n(a, _).
        extreme(max(a, b, 5), min(a, b), max("a", "b")) :- n(a, b).
        text(cat(s, "!"), strlen(s), substr(s, 1, 3), to_number("42"), to_string(7)) :- s(s).
        real(to_float(a) / b, 0.5 * a, ftoi(2.9), itof(3)) :- n(a, b).
        matched("yes") :- s(s), match("p.*o", s), !match("p", s), contains("to", s).
        even(x) :- x = range(0, 7), x % 2 = 0.
        down(x) :- x = range(3, 0).
        upto(a, x) :- n(a, b), x = range(b, a, 2).
        holds() :- n(7, _).
        silent() :- n(8, _).
        told("yes") :- holds(), !silent().
        least(-9223372036854775808).
    """
    found = ra.datalog(spark, text)
    assert rows(found["arithmetic"]) == [(9, 5, 14, 3, 1, 49, -7)]
    assert rows(found["bits"]) == [(2, 7, 5, 28, 3, -8)]
    assert rows(found["logic"]) == [(0, 1, 0)]
    assert rows(found["extreme"]) == [(7, 2, "b")]
    assert rows(found["text"]) == [("path/to!", 7, "ath", 42, "7")]
    assert rows(found["real"]) == [(3.5, 3.5, 2, 3.0)]
    assert rows(found["matched"]) == [("yes",)]
    assert rows(found["even"]) == [(0,), (2,), (4,), (6,)]
    assert rows(found["down"]) == [(1,), (2,), (3,)]
    assert rows(found["upto"]) == [(7, 2), (7, 4), (7, 6)]
    assert rows(found["holds"]) == [(True,)]
    assert rows(found["silent"]) == []
    assert rows(found["told"]) == [("yes",)]
    assert rows(found["least"]) == [(-9223372036854775808,)]


def test_heads_aggregate_outside_of_recursions_too(spark: SparkSession, edge: DataFrame) -> None:
    text = """
        degree(x, $COUNT) :- edge(x, _, _).
        weight(x, $SUM(w)) :- edge(x, _, w).
        first(x, $MIN_BY(y, w)) :- edge(x, y, w).
        cheapest(x, $MIN(w), $MIN_BY(y, w)) :- edge(x, y, w).
        average(x, $MEAN(w)) :- edge(x, _, w).
        heavy(x, $ANY(w > 5), $ALL(w > 3)) :- edge(x, _, w).
        targets(x, $MCOUNT(w / 100)) :- edge(x, _, w).
        most(x, $MSUM(w, y)) :- edge(x, y, w).
        common($GCD(w * 6)) :- edge(_, _, w).
        flags(x, $BITOR(y)) :- edge(x, y, _).
    """
    found = ra.datalog(spark, text, edge=edge)
    assert rows(found["degree"]) == [(1, 1), (2, 2), (3, 1), (4, 1)]
    assert rows(found["weight"]) == [(1, 3), (2, 14), (3, 1), (4, 2)]
    assert rows(found["first"]) == [(1, 2), (2, 3), (3, 1), (4, 5)]
    assert rows(found["cheapest"]) == [(1, 3, 2), (2, 4, 3), (3, 1, 1), (4, 2, 5)]
    assert found["cheapest"].columns == ["x", "w", "y"]
    assert rows(found["average"]) == [(1, 3.0), (2, 7.0), (3, 1.0), (4, 2.0)]
    assert rows(found["heavy"]) == [(1, False, False), (2, True, True), (3, False, False), (4, False, False)]
    assert rows(found["targets"]) == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert rows(found["most"]) == [(1, 3), (2, 14), (3, 1), (4, 2)]
    assert rows(found["common"]) == [(6,)]
    assert rows(found["flags"]) == [(1, 2), (2, 7), (3, 1), (4, 5)]


def test_plan_says_in_which_order_a_rule_joins(spark: SparkSession) -> None:
    small, large = (frame(spark, "x bigint, y bigint", [(n, n + 1) for n in range(size)]) for size in (5, 5000))
    text = "r(x) :- start(x). r(z) :- r(x), large(x, y), small(x, z), y > z - 2."
    start = frame(spark, "x bigint", [(0,)])
    orders = []
    for plan in ("", " .plan 0:(1, 2, 3)", " .plan 0:(1, 3, 2)"):
        found = ra.datalog(spark, text + plan, start=start, large=large, small=small, backend="spark")["r"]
        assert sorted(rows_of(found)) == [(n,) for n in range(6)]
        plan_shown = ra.explain(found, format="plan")
        orders.append(re.findall(r"\]\((y|z)\)", plan_shown))  # what large, small bind
    assert orders == [["z", "y"], ["y", "z"], ["z", "y"]]


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_an_assumption_is_guarded_when_the_rows_are_loaded(spark: SparkSession, backend: str) -> None:
    text = PATHS.replace("edge.w", "w") if backend == "spark" else PATHS
    bad = frame(spark, "x bigint, y bigint, w bigint", [(1, 2, -3)])
    found = ra.datalog(spark, text, edge=bad, backend=backend)
    if backend == "dataframe":  # needs no proof and does not look
        assert rows(found["path"]) == [(1, 0), (2, -3)]
    else:
        with pytest.raises(Exception, match=r"PARALAGG_ASSUMPTION_VIOLATED.*edge\.w.*-3"):
            found["path"].collect()


def test_unsigned_is_an_assumption_by_itself(spark: SparkSession) -> None:
    text = PATHS.replace("w: number", "w: unsigned").replace(".assume edge.w >= 0", "")
    good = frame(spark, "x bigint, y bigint, w bigint", [(1, 2, 3)])
    found = ra.datalog(spark, text, edge=good)
    assert "edge.w >= 0" in ra.explain(found["path"])
    with pytest.raises(Exception, match="PARALAGG_ASSUMPTION_VIOLATED"):
        ra.datalog(spark, text, edge=good.selectExpr("x", "y", "-w w"))["path"].collect()


def test_a_limit_gives_what_so_many_applications_give(spark: SparkSession, edge: DataFrame) -> None:
    text = "hops(1, 0). hops(y, $MIN(n + 1)) :- hops(x, n), edge(x, y, _). .limit hops(iterations=2)"
    for backend in ("spark", "dataframe"):
        assert rows(ra.datalog(spark, text, edge=edge, backend=backend)["hops"]) == [(1, 0), (2, 1), (3, 2), (4, 2)]


def test_keys_that_may_grow_for_ever_are_told_and_stopped(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    found = ra.datalog(spark, "n(0). n(x + 1) :- n(x).", backend="spark")
    with caplog.at_level("WARNING", logger="pyspark_paralagg"):
        df = found["n"]
    assert "has no bound" in caplog.text
    with pytest.raises(Exception, match="PARALAGG_LIMIT_REACHED"):
        df.collect()


# --- wrong use -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "given", "code", "told"),
    [
        (".decl e(x: number)\n.input e\np(x) :- e(x).", None, "PARALAGG_DATALOG_INPUT", "line 2, column 1"),
        (".decl e(x: number)\n.input e\np(x) :- e(x).", "x string", "PARALAGG_DATALOG_INPUT", "see line 1, column 1"),
        (".decl e(x: number)\n.input e\np(x) :- e(x).", "x int, y int", "PARALAGG_DATALOG_INPUT", "has 1 columns"),
        ("p(x) :- egde(x).", "x int", "PARALAGG_UNKNOWN_RELATION", "line 1, column 9"),
        ("p(x) :- q(x). q(1).", "x int", "PARALAGG_DATALOG_INPUT", "does not mention the relation 'e'"),
        ("p(x, $MIN(10 - v)) :- p(x, v), e(x). p(1, 2).", "x int", "PARALAGG_NOT_MONOTONE", "line 1, column 1"),
        ("p(x) :- e(x), !p(x).", "x int", "PARALAGG_NOT_STRATIFIED", "line 1, column 16"),
    ],
)
def test_what_is_wrong_is_told_at_the_call(
    spark: SparkSession, text: str, given: str | None, code: str, told: str
) -> None:
    inputs = {} if given is None else {"e": frame(spark, given, [])}
    with pytest.raises(ra.ParalaggError) as caught:
        ra.datalog(spark, text, inputs)
    assert caught.value.code == code
    assert told in str(caught.value)


def test_what_only_spark_can_tell_has_its_line_too(spark: SparkSession, edge: DataFrame) -> None:
    text = "p(1, 0).\np(y, $MIN(d * w)) :- p(x, d), edge(x, y, w)."
    with pytest.raises(ra.VerificationError) as caught:
        ra.datalog(spark, text, edge=edge)["p"]
    assert caught.value.code == "PARALAGG_NOT_PROVED"
    assert caught.value.place == "line 2, column 1"
    assert "p(y, $MIN(d * w)) :- p(x, d), edge(x, y, w)." in str(caught.value)


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("100 / (z - 3)", "DIVIDE_BY_ZERO"),
        ("v + 4000000000000000000", "ARITHMETIC_OVERFLOW"),
        ('to_number("three")', "CAST_INVALID_INPUT"),
    ],
)
def test_an_error_in_the_data_names_its_rule(spark: SparkSession, value: str, code: str, backend: str) -> None:
    text = f"d(0, 0).\nd(z, {value}) :- d(x, v), z = x + 1, z < 9."
    with pytest.raises(Exception, match=rf"{code}[\s\S]*line 2, column 1"):
        ra.datalog(spark, text, backend=backend)["d"].collect()


def test_an_unknown_relation_is_no_key(spark: SparkSession) -> None:
    found = ra.datalog(spark, "p(1). q(x) :- p(x).")
    with pytest.raises(ra.UsageError, match=r"PARALAGG_UNKNOWN_RELATION.*'pp'"):
        found["pp"]


def test_an_input_that_is_no_dataframe(spark: SparkSession) -> None:
    with pytest.raises(ra.UsageError, match=r"PARALAGG_BAD_OPTION.*'p' is a list"):
        ra.datalog(spark, "q(x) :- p(x).", p=[1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("stops", [[], [(5,)]])
def test_a_negation_without_variables_asks_for_any_row(spark: SparkSession, stops: list[tuple[int]]) -> None:
    text = "d(1). d(y) :- d(x), edge(x, y, _), !stop(_)."
    edge = frame(spark, "x bigint, y bigint, w bigint", [(1, 2, 1), (2, 3, 1)])
    stop = frame(spark, "x bigint", stops)
    for backend in ("spark", "local", "dataframe"):
        found = ra.datalog(spark, text, {"edge": edge, "stop": stop}, backend=backend)["d"]
        assert rows(found) == ([(1,)] if stops else [(1,), (2,), (3,)])


@pytest.mark.parametrize("backend", ["spark", "local", "dataframe"])
def test_texts_that_a_recursion_makes_are_ordered_by_their_bytes(spark: SparkSession, backend: str) -> None:
    text = 'edge("a", "b"). edge("b", "c").\nup("a"). up(y) :- up(x), edge(x, y), cat(x, "a") < y.'
    assert rows(ra.datalog(spark, text, backend=backend)["up"]) == [("a",), ("b",), ("c",)]


@pytest.mark.slow(reason="strata of a text on a cold session")
def test_names_may_differ_in_case_alone(spark: SparkSession) -> None:
    text = """
    e(1, 2). e(2, 3). e(3, 1). e(3, 3).
    pair(x, X) :- e(x, X).
    numbered(c1, 1) :- e(c1, _).
    two(x, X) :- pair(x, X).
    two(x, Y) :- two(x, X), e(X, Y), Y > x, !e(Y, x).
    most(n, N) :- n = count : { e(_, _) }, N = max X : { e(X, x), x > 1 }.
    Pair(x) :- pair(x, _).
    """
    found = ra.datalog(spark, text)
    assert found["pair"].columns == ["x", "c1"]
    assert found["numbered"].columns == ["c1", "c1_2"]
    assert rows(found["two"]) == [(1, 2), (2, 3), (3, 1), (3, 3)]
    assert rows(found["most"]) == [(4, 3)]
    assert rows(found["Pair"]) == [(1,), (2,), (3,)]


@pytest.mark.rotates(runs=3, turn=1)
@pytest.mark.slow(reason="the code of nested fields")
def test_fields_of_records_in_records_are_computed_once(spark: SparkSession) -> None:
    """Each field reads the text of its record several times: the loop's code was beyond the 64 KiB of a method."""
    turn = "(fx - nx) * (sy - ny) - (fy - ny) * (sx - nx)"
    body = "hull([[fx, fy], [[sx, sy], rest]], i), at(i, [nx, ny])"
    text = f"""
    .type Point = [x: number, y: number]
    .type Points = [first: Point, rest: Points]
    .decl at(i: number, p: Point)
    .decl hull(points: Points, i: number)
    .decl result(points: Points)
    at(0, [0, 0]). at(1, [1, 5]). at(2, [2, 1]). at(3, [3, 2]).
    hull([a, [b, nil]], 2) :- at(0, b), at(1, a).
    hull([[nx, ny], [[fx, fy], [[sx, sy], rest]]], i + 1) :- {body}, {turn} > 0.
    hull([[sx, sy], rest], i) :- {body}, rest = [_, _], {turn} <= 0.
    result(p) :- hull(p, 4).
    """
    assert rows(ra.datalog(spark, text)["result"]) == [("[[3, 2], [[1, 5], [[0, 0], nil]]]",)]


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_relations_that_several_atoms_read_are_computed_once(spark: SparkSession, aqe: str) -> None:
    """As a tree, the plan of the last relation would have the recursion 3^12 times."""
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    levels = [f"r{n}(x + 1) :- r{n - 1}(x), r{n - 1}(y), r{n - 1}(z), x = y, y = z." for n in range(1, 13)]
    ends = ["to(x) :- r12(x).", "to(x) :- to(y), r12(x), y < x."]
    text = "\n".join(["r0(x) :- start(x).", "r0(y) :- r0(x), y = x + 1, y < 4.", *levels, *ends])
    found = ra.datalog(spark, text, start=frame(spark, "x bigint", [(1,), (None,)]))
    for name, tuples in [("r12", 4), ("to", 3)]:  # rows of r0 and of to
        plan = found[name]._jdf.queryExecution().analyzed().toString()
        assert "SharedRows r" in plan
        assert plan.count("\n") < 200
        group = f"shared-{name}-{aqe}"
        spark.sparkContext.setJobGroup(group, "relations that are computed once")
        assert rows(found[name]) == [(13,), (14,), (15,)]
        assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)) < 150
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        report = ra.report(found[name])
        assert report is not None
        assert report.tuples == tuples
    assert scala_object(spark, "driver.SharedResults").liveCount() == 0
