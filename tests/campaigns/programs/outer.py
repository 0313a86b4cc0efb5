"""Random queries over recursions: with all rules of the extension, without each, without any, and over kept rows.

A case is a recursion of ``test_property`` (a step over a graph with nulls) and a query of 1-4 operators above it, drawn
from a seed: filters, projections, groupings, joins, unions, windows, limits of a total order. Expected are the rows of
the same query over the interpreter's rows.
"""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING, Any

from campaigns.programs.campaign import Tally
from rows import assert_same_rows, frame, rows_of
from rules.plans import RULES, without
from test_property import draw, expected
from test_property import run as recursion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

QUERIES = 10
"""Over each recursion."""
CONDITIONS = (
    "x = 3", "y = 3", "x > 2 AND y < 5", "x IS NULL OR x + y = 7", "x IN (1, 2, 5)", "y BETWEEN 1 AND 4", "x <=> NULL",
    "v < 6", "v IS NOT NULL", "v >= x", "NOT (x = 2 OR v > 4)", "x % 2 = 0", "coalesce(v, 0) + x > 3",
    "x = 1 AND v < 9", "y IN (SELECT x FROM {r} WHERE x < 3)", "EXISTS (SELECT 1 FROM {r} o WHERE o.x = {r}.y)",
)  # fmt: skip


class Query:
    """A text of SQL while it is drawn; ``columns`` are those of its result, all numbers."""

    def __init__(self, dice: random.Random, columns: tuple[str, ...]) -> None:
        self.dice, self.columns, self.base = dice, columns, columns
        self.text = "SELECT * FROM r"

    def fits(self, text: str) -> bool:
        read = {*_words(text), *re.findall(r"{r}\.(\w+)", text)}
        return read.isdisjoint(set("xyv") - set(self.columns))

    def filter(self) -> None:
        """``WHERE``."""
        fitting = [c for c in CONDITIONS if self.fits(c)]
        if fitting:
            condition = self.dice.choice(fitting).replace("FROM {r}", "FROM r").replace("{r}.", "q.")
            self.text = f"SELECT * FROM ({self.text}) q WHERE {condition}"

    def project(self) -> None:
        """Fewer columns, or other ones."""
        kept = self.dice.sample(self.columns, self.dice.randint(1, len(self.columns)))
        made = [f"{kept[0]} + 1 AS {kept[0]}", *kept[1:]] if self.dice.random() < 0.3 else kept
        distinct = "DISTINCT " if self.dice.random() < 0.3 else ""
        self.text, self.columns = f"SELECT {distinct}{', '.join(made)} FROM ({self.text}) q", tuple(kept)

    def group(self) -> None:
        """``GROUP BY`` some columns; of the others an aggregate each."""
        by = self.dice.sample(self.columns, self.dice.randint(0, len(self.columns)))
        rest = [c for c in self.columns if c not in by]
        aggregates = [f"{self.dice.choice(('min', 'max', 'sum', 'count'))}({c}) AS {c}" for c in rest]
        aggregates = aggregates or ["count(*) AS n"]
        grouped = f" GROUP BY {', '.join(by)}" if by else ""
        self.text = f"SELECT {', '.join([*by, *aggregates])} FROM ({self.text}) q{grouped}"
        self.columns = (*by, *(rest or ["n"]))

    def join(self) -> None:
        """With the recursion once more."""
        one, other = self.dice.choice(self.columns), self.dice.choice(self.base)
        how = self.dice.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        more = f" AND o.x = {self.dice.randint(0, 6)}" if self.dice.random() < 0.4 else ""
        self.text = f"SELECT q.* FROM ({self.text}) q {how} r o ON q.{one} = o.{other}{more}"

    def union(self) -> None:
        """With a part of the recursion."""
        if self.columns == self.base:
            both = self.dice.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
            self.text = f"SELECT * FROM ({self.text}) q {both} SELECT * FROM r WHERE x < {self.dice.randint(1, 6)}"

    def window(self) -> None:
        """A count beside each row."""
        by = self.dice.choice(self.columns)
        name = f"n{len(self.text)}"
        self.text = f"SELECT *, count(*) OVER (PARTITION BY {by}) AS {name} FROM ({self.text}) q"
        self.columns = (*self.columns, name)

    def limit(self) -> None:
        """The first rows in a total order."""
        order = ", ".join(self.columns)
        self.text = f"SELECT * FROM ({self.text}) q ORDER BY {order} LIMIT {self.dice.randint(1, 9)}"


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.partition("(SELECT")[0]).split()


def query_of(seed: int, columns: tuple[str, ...]) -> str:
    """The query of a seed."""
    dice = random.Random(seed)
    query = Query(dice, columns)
    kinds = ("filter", "filter", "filter", "project", "group", "join", "union", "window", "limit")
    for name in dice.choices(kinds, k=dice.randint(1, 4)):
        getattr(query, name)()
    return query.text


def run(spark: SparkSession, seeds: Iterable[int], until: float = float("inf")) -> Tally:
    """Ten queries over each recursion, each with all rules, without one, without any, and over kept rows."""
    tally = Tally()
    last = None
    for seed in seeds:
        if time.monotonic() > until:
            break
        tally.tick()
        if seed // QUERIES != last:
            last = seed // QUERIES
            case = draw(last)
            ddl = "x bigint, y bigint" + ("" if case.aggregator == "set" else ", v bigint")
            meant = frame(spark, ddl, expected(case))
            found = recursion(spark, case, mode="trust", backend="spark")
            kept = found.localCheckpoint()
        text = query_of(seed, tuple(meant.columns))
        wanted = _rows(spark, meant, text)
        problem = _difference(spark, found, text, wanted, RULES[seed % len(RULES)])
        problem = problem or _compared(spark, kept, text, wanted, "over kept rows")
        if problem is None:
            tally.agreed += 1
        else:
            tally.fail(f"seed {seed}: {problem}\n{text}\n{case}")
    return tally


def _difference(
    spark: SparkSession, found: DataFrame, text: str, wanted: list[tuple[Any, ...]], rule: str
) -> str | None:
    for off in ((), (rule,), RULES):
        with without(spark, *off):
            problem = _compared(spark, found, text, wanted, f"without {off or 'nothing'}")
        if problem:
            return problem
    return None


def _compared(spark: SparkSession, df: DataFrame, text: str, wanted: list[tuple[Any, ...]], how: str) -> str | None:
    try:
        assert_same_rows(_rows(spark, df, text), wanted)
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is a finding
        return f"{how}: {type(problem).__name__}: {str(problem)[:600]}"
    return None


def _rows(spark: SparkSession, df: DataFrame, text: str) -> list[tuple[Any, ...]]:
    df.createOrReplaceTempView("r")
    return rows_of(spark.sql(text))
