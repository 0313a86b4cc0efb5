"""Random values under sums: whole fixpoints in several rounds, as the compiler runs them and as the definition says.

Each value is an expression of the sum of its own column and of constants. What is refused is left out. What is proved
runs once by ``mode="auto"``, on differences or, if it rounds, on whole values, and once by ``mode="iterate"``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

import pyspark_paralagg as ra

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from decimal import Decimal

    from pyspark.sql import DataFrame, SparkSession

SUMS = ("bigint", "double", "decimal(18,2)")
_OTHERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(18,6)", "decimal(20,2)")
# Parts of one sum arrive in different rounds, cancel each other, and lie where types begin to round.
_EDGES = [(1, 2), (2, 4), (3, 4), (4, 5), (5, 6), (4, 6), (1, 6), (3, 7), (7, 8), (8, 4)]
_PARTS = {
    "bigint": (16_777_217, -16_777_215, 9_007_199_254_740_993, -9_007_199_254_740_991, 10**18, 1 - 10**18, 3, -7, 100),
    "double": (16_777_217.0, -16_777_215.0, 9_007_199_254_740_992.0, -9e15, 1e18, 0.5, -0.25, 3.0, 100.0),
    "decimal(18,2)": ("16777217.25", "-16777215.13", "90071992547409.93", "0.07", "-0.05", "3.33", "1000", "-7"),
}
_FACTORS = {
    "bigint": ("2L", "-1L", "0L", "3"),
    "double": ("0.5D", "2D", "-1D", "0.1D"),
    "decimal(18,2)": ("0.75", "2", "-1", "0.5"),
}
_TOLERANCE = 1e-9
"""Of the largest value of a column: sums of doubles depend on the order of addition."""


class Sums:
    """Runs batches of expressions, each over a sum of its own."""

    def __init__(self, spark: SparkSession, tell: Callable[[str], None]) -> None:
        self._spark = spark
        self._tell = tell
        self.failures: list[str] = []

    def run(self, rng: random.Random, count: int, *, ansi: bool) -> None:
        """Compare ``count`` random values; each call has other base rows."""
        self._spark.conf.set("spark.sql.ansi.enabled", ansi)
        type_ = rng.choice(SUMS)
        bases = [(node, str(rng.choice(_PARTS[type_]))) for node in (1, 2, 3, 7)]
        exprs = [expr for _ in range(count) if self._is_proved(type_, expr := value(rng, type_, 3))]
        self._compare(type_, bases, exprs, ansi=ansi)

    def _is_proved(self, type_: str, expr: str) -> bool:
        try:
            self._fixpoint(type_, [(1, "1")], [expr], "auto")
        except (ra.ParalaggError, PySparkException):
            return False
        return True

    def _compare(self, type_: str, bases: list[tuple[int, str]], exprs: list[str], *, ansi: bool) -> None:
        """Compare the columns of one run; if it fails, such as by an overflow, those of its halves."""
        if not exprs:
            return
        try:
            found, expected = (
                {row[0]: row[1:] for row in self._fixpoint(type_, bases, exprs, mode).collect()}
                for mode in ("auto", "iterate")
            )
        except Exception:  # noqa: BLE001 - an overflow, which Spark raises in many classes
            half = len(exprs) // 2
            for part in (exprs[:half], exprs[half:]) if half else ():
                self._compare(type_, bases, part, ansi=ansi)
            return
        for n, expr in enumerate(exprs):
            self._tell("fixpoint of a sum")
            columns = [{node: row[n] for node, row in rows.items()} for rows in (found, expected)]
            if not _is_same(*columns):
                self.failures.append(f"ansi={ansi} {type_} {expr} of {bases}: {columns[0]}, not {columns[1]}")

    def _fixpoint(self, type_: str, bases: list[tuple[int, str]], exprs: list[str], mode: Any) -> DataFrame:
        spark = self._spark
        rows = ", ".join(f"({node}L, cast('{part}' AS {type_}))" for node, part in bases)
        edges = spark.sql(f"SELECT * FROM VALUES {', '.join(map(str, _EDGES))} AS e(src, dst)")
        names = [f"v{n}" for n in range(len(exprs))]
        base = spark.sql(f"SELECT node, {', '.join(f'v AS {name}' for name in names)} FROM VALUES {rows} AS b(node, v)")
        values = [f"cast({e.replace('#', name)} AS {type_}) AS {name}" for e, name in zip(exprs, names, strict=True)]

        def step(r: DataFrame) -> DataFrame:
            return r.join(edges, r.node == edges.src).selectExpr("cast(dst AS bigint) AS node", *values)

        return base.recursive_agg("node", dict.fromkeys(names, "sum"), step=step, mode=mode, backend="spark")


def value(rng: random.Random, type_: str, depth: int) -> str:
    """Return a random expression of the sum ``#``, mostly linear but for roundings."""
    if depth == 0 or rng.random() < 0.15:
        return "#"
    inner, factor = value(rng, type_, depth - 1), rng.choice(_FACTORS[type_])
    ways = [
        f"cast({inner} AS {rng.choice(_OTHERS)})",
        f"cast(cast({inner} AS {rng.choice(_OTHERS)}) AS {rng.choice(_OTHERS)})",
        f"({inner} * {factor})",
        f"({inner} + {value(rng, type_, depth - 1)})",
        f"({inner} - {value(rng, type_, depth - 1)})",
        f"(- {inner})",
        f"round({inner}, {rng.choice([0, 1, -1])})",
        f"({inner} / {rng.choice([2, 3, 4])})",
        f"coalesce({inner}, 0)",
        f"if({rng.choice(['true', 'node > 3', 'dst = 6'])}, {inner}, {value(rng, type_, depth - 1)})",
    ]
    return rng.choice(ways)


def _is_same(found: dict[int, Any], expected: dict[int, Any]) -> bool:
    if found.keys() != expected.keys():
        return False
    sizes = [abs(v) for v in expected.values() if isinstance(v, float) and math.isfinite(v)]
    slack = _TOLERANCE * max(sizes, default=0.0)
    return all(_is_near(found[node], v, slack) for node, v in expected.items())


def _is_near(a: float | Decimal | None, b: float | Decimal | None, slack: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= slack
    return a == b
