"""Generated steps over generated graphs: every executor gives what the reference interpreter gives.

A case is a few branches over a relation of pairs ``(x, y)`` with one value: extend at the end, at the start, double, or
turn round, each with a function of the values and maybe a filter. Each is drawn from a seed, so a failure has a name.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from reference import Meaning, State, fixpoint
from rows import assert_same_rows, frame, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

    Value = int | None

VERTICES = 7
LIMIT = 3

# What a step may do with two values, by aggregator: as SQL and as Python. All are monotone, and none climbs for ever
# under its aggregator: weights are not negative.
COMBINE: dict[str, dict[str, Callable[[int, int], int]]] = {
    "min": {"{0} + {1}": lambda a, b: a + b, "greatest({0}, {1})": max, "least({0}, {1})": min},
    "max": {"least({0}, {1})": min, "greatest({0}, {1})": max, "least({0} + {1}, 40L)": lambda a, b: min(a + b, 40)},
    "bit_or": {"{0} | {1}": lambda a, b: a | b, "{0} & {1}": lambda a, b: a & b},
    "sum": {"{0} * {1}": lambda a, b: a * b},
    "set": {"": lambda a, b: a},  # noqa: ARG005 - a set has no value
}


@dataclass(frozen=True)
class Branch:
    """One part of a step's union."""

    kind: str  # right, left, double, turn
    combine: str
    most_weight: int | None  # only edges of at most this weight
    most_key: int | None  # only where x is at most this


@dataclass(frozen=True)
class Case:
    """A step, a graph, and how it is run."""

    aggregator: str
    branches: tuple[Branch, ...]
    edges: list[tuple[Value, Value, Value]]
    base: list[tuple[Value, ...]]
    max_iterations: int | None


def draw(seed: int) -> Case:
    """The case of a seed."""
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    aggregator = dice.choice(list(COMBINE))
    kinds = ["right", "left", "turn"] + ([] if aggregator == "sum" else ["double"])
    branches = tuple(
        Branch(
            dice.choice(kinds),
            dice.choice(list(COMBINE[aggregator])),
            dice.choice([None, None, 4]),
            dice.choice([None, None, 4]),
        )
        for _ in range(dice.randint(1, 3))
    )

    def vertex() -> Value:
        return None if dice.random() < 0.04 else dice.randrange(VERTICES)

    def value() -> Value:
        return None if dice.random() < 0.05 else dice.randrange(9)

    edges = [(vertex(), vertex(), value()) for _ in range(dice.randint(3, 14))]
    base: list[tuple[Value, ...]] = [(vertex(), vertex(), value()) for _ in range(dice.randint(0, 4))]
    if aggregator == "set":
        base = [row[:2] for row in base]
    limited = aggregator == "sum" or dice.random() < 0.25
    return Case(aggregator, branches, edges, base, LIMIT if limited else None)


def as_python(case: Case, state: State) -> State:
    """The step over Python rows."""
    rows, out = state["r"], []
    for b in case.branches:
        combine = COMBINE[case.aggregator][b.combine]
        edges = [e for e in case.edges if b.most_weight is None or (e[2] is not None and e[2] <= b.most_weight)]
        for row in rows:
            x, y, v = row[0], row[1], row[2] if len(row) > 2 else None
            if b.most_key is not None and (x is None or x > b.most_key):
                continue
            if b.kind == "right":
                out += [(x, t, _both(b, combine, v, w)) for s, t, w in edges if y is not None and s == y]
            elif b.kind == "left":
                out += [(s, y, _both(b, combine, v, w)) for s, t, w in edges if x is not None and t == x]
            elif b.kind == "double":
                out += [
                    (x, o[1], _both(b, combine, v, o[2] if len(o) > 2 else None))
                    for o in rows
                    if y is not None and o[0] == y
                ]
            else:
                out.append((y, x, v))
    return {"r": [row[:2] for row in out] if case.aggregator == "set" else out}


def _both(b: Branch, combine: Callable[[int, int], int], a: Value, c: Value) -> Value:
    if a is None or c is None:
        # least and greatest skip nulls, as Spark has it; the rest gives null
        skips = b.combine.startswith(("greatest({0}, {1})", "least({0}, {1})"))
        if b.combine.startswith("least({0} + {1}"):
            return 40
        return (c if a is None else a) if skips else None
    return combine(a, c)


def as_dataframe(case: Case, edges: DataFrame, r: DataFrame) -> DataFrame:
    """The step over DataFrames."""
    parts = []
    has_value = case.aggregator != "set"

    def columns(x: str, y: str, value: str) -> list[Column]:
        return [F.expr(x).alias("x"), F.expr(y).alias("y"), *([F.expr(value).alias("v")] if has_value else [])]

    for b in case.branches:
        rows = r.alias("a") if b.most_key is None else r.where(F.col("x") <= b.most_key).alias("a")
        e = (edges if b.most_weight is None else edges.where(F.col("w") <= b.most_weight)).alias("e")
        if b.kind == "right":
            parts.append(
                rows.join(e, F.expr("a.y = e.src")).select(*columns("a.x", "e.dst", b.combine.format("a.v", "e.w")))
            )
        elif b.kind == "left":
            parts.append(
                e.join(rows, F.expr("e.dst = a.x")).select(*columns("e.src", "a.y", b.combine.format("a.v", "e.w")))
            )
        elif b.kind == "double":
            joined = rows.join(r.alias("o"), F.expr("a.y = o.x"))
            parts.append(joined.select(*columns("a.x", "o.y", b.combine.format("a.v", "o.v"))))
        else:
            parts.append(rows.select(*columns("a.y", "a.x", "a.v")))
    result = parts[0]
    for part in parts[1:]:
        result = result.union(part)
    return result


def run(spark: SparkSession, case: Case, **options: Any) -> DataFrame:  # noqa: ANN401 - options of the call
    edges = frame(spark, "src bigint, dst bigint, w bigint", case.edges)
    ddl = "x bigint, y bigint" + ("" if case.aggregator == "set" else ", v bigint")
    return frame(spark, ddl, case.base).recursive_agg(
        ["x", "y"],
        None if case.aggregator == "set" else {"v": case.aggregator},
        step=lambda r: as_dataframe(case, edges, r),
        assume="w >= 0" if any(b.kind in ("right", "left") for b in case.branches) else None,
        max_iterations=case.max_iterations,
        on_limit="return",
        **options,
    )


def expected(case: Case) -> list[tuple[Any, ...]]:
    aggs = () if case.aggregator == "set" else (case.aggregator,)
    state, _ = fixpoint(
        {"r": Meaning(2, aggs)}, {"r": case.base}, lambda s: as_python(case, s), max_iterations=case.max_iterations
    )
    return state["r"]


@pytest.mark.parametrize("seed", range(40))
def test_spark_engine_gives_what_is_meant(spark: SparkSession, seed: int) -> None:
    case = draw(seed)
    spark.conf.set("spark.sql.shuffle.partitions", (1, 2, 7)[seed % 3])
    spark.conf.set("spark.paralagg.oneTask.maxRows", seed % 2 << 20)
    found = run(spark, case, mode="trust", backend="spark")
    assert_same_rows(rows_of(found), expected(case))


@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_recomputed_rounds_give_what_is_meant(spark: SparkSession, seed: int) -> None:
    case = draw(seed)
    found = run(spark, case, mode="iterate", backend="spark")
    assert_same_rows(rows_of(found), expected(case))


@pytest.mark.parametrize("seed", range(0, 40, 6))
def test_dataframe_executor_gives_what_is_meant(spark: SparkSession, seed: int) -> None:
    case = draw(seed)
    found = run(spark, case, backend="dataframe")
    assert_same_rows(rows_of(found), expected(case))


def test_the_interpreter_itself() -> None:
    state, applied = fixpoint(
        {"r": Meaning(1, ("min", ("min_by", 0)))},
        {"r": [("a", 3, "x"), ("a", 1, "z"), ("a", 1, "y"), ("b", None, "lost")]},
        lambda s: {"r": [("c", v + 1, "via") for k, v, _ in s["r"] if k == "a"]},
    )
    assert sorted(state["r"]) == [("a", 1, "y"), ("b", None, None), ("c", 2, "via")]
    assert applied == 2
