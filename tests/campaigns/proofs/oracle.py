"""Compares what the rule system claims of an expression with what Spark computes."""

from __future__ import annotations

import decimal
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from generate import Generator
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.types import StructType
from settings import GRID, TYPES, column

from pyspark_paralagg.compile.carried import strict_in
from pyspark_paralagg.compile.facts import Facts
from pyspark_paralagg.compile.monotone import Monotone
from pyspark_paralagg.program.expr import Expr, columns, from_json, substitute
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.functions.value_range import Range, finite, type_range
from pyspark_paralagg.session import bridge, reference

if TYPE_CHECKING:
    import random

BATCH = 100
_BATCHES_A_GRID = 8
_RESULTS = tuple(t for t in TYPES if not t.startswith("interval"))
FAILED = object()
"""What stands for a value where the query fails."""


@dataclass
class Tally:
    """How many expressions, and claims of each kind that were compared."""

    expressions: int = 0
    claims: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        """As Markdown."""
        lines = ["| claim | compared |", "|---|--:|", f"| expressions | {self.expressions:,} |"]
        return "\n".join([*lines, *(f"| {name} | {n:,} |" for name, n in sorted(self.claims.items()))])


@dataclass(frozen=True)
class Case:
    """One expression: the column that improves, which way, and what is assumed of the columns."""

    sql: str
    type: str
    moving: str
    move: str
    facts: Facts


class Oracle:
    """Runs batches of expressions in one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._bridge = bridge(spark)
        self.tally = Tally()
        self._batches = 0
        self.failures: list[str] = []

    def run(self, setting: tuple[bool, str], rng: random.Random) -> None:
        """One batch under one setting of the session."""
        ansi, zone = setting
        self._spark.conf.set("spark.sql.session.timeZone", zone)
        self._spark.conf.set("spark.sql.ansi.enabled", ansi)
        if self._batches % _BATCHES_A_GRID == 0:
            self._grid, self._rows = self._new_grid(rng)
        self._batches += 1
        cases = self._analysable([self._case(rng, Setting(ansi, zone)) for _ in range(BATCH)])
        analysed = self._analysed(cases)
        results = self._evaluated(cases)
        strictly = results
        if not ansi:  # what rests on overflow being an error holds where there is none
            self._spark.conf.set("spark.sql.ansi.enabled", value=True)
            strictly = self._evaluated(cases)
        for case, expr, plain, checked in zip(cases, analysed, results, strictly, strict=True):
            self.tally.expressions += 1
            problem = self._compare(case, expr, self._rows, plain, checked)
            if problem:
                given = f"{case.facts.ranges}, present {sorted(case.facts.present)}"
                self.failures.append(f"{setting} {case.move} {case.sql}: {problem} given {given}")

    def _analysable(self, cases: list[Case]) -> list[Case]:
        """The cases whose expressions Spark's analyser takes in either mode."""
        try:
            self._grid.selectExpr(*(c.sql for c in cases))
        except Exception:  # noqa: BLE001 - whatever the analyser refuses
            half = len(cases) // 2
            return [*self._analysable(cases[:half]), *self._analysable(cases[half:])] if half else []
        return cases

    def _new_grid(self, rng: random.Random) -> tuple[Any, list[dict[str, Any]]]:
        """Rows of all columns: ``i`` goes through improving values, ``j`` through what stays."""
        moving = {t: ["NULL", *GRID[t]] for t in TYPES}
        still = {t: rng.sample(["NULL", *GRID[t]], min(5, len(GRID[t]))) for t in TYPES}
        most = max(map(len, moving.values()))
        rows = []
        for i in range(most):
            for j in range(5):
                v = [f"cast({moving[t][min(i, len(moving[t]) - 1)]} as {t})" for t in TYPES]
                w = [f"cast({still[t][j % len(still[t])]} as {t})" for t in TYPES]
                rows.append(f"({i}, {j}, {', '.join((*v, *w))})")
        wanted = [column(k, t) for k in "vw" for t in TYPES]
        df = self._spark.sql(f"select * from values {', '.join(rows)} as t(i, j, {', '.join(wanted)})")
        collected = df.select(
            "i", "j", *(self._plain(F.col(c), t).alias(c) for c, t in zip(wanted, (*TYPES, *TYPES), strict=True))
        ).collect()
        return df, [r.asDict() for r in collected]

    def _case(self, rng: random.Random, setting: Setting) -> Case:
        moving = rng.choice(TYPES)
        type_ = rng.choice(_RESULTS)
        if rng.random() < 0.5:
            type_ = moving if moving in _RESULTS else "timestamp"
        sql = Generator(rng, moving).expression(type_, rng.choice([1, 2, 2, 3]))
        facts = Facts(setting=setting)
        for kind in "vw":
            for t in TYPES:
                name = column(kind, t)
                roll = rng.random()
                if roll < 0.25 and type_range(t) is not None and t not in ("date", "timestamp", "timestamp_ntz"):
                    facts = facts.with_range(
                        name,
                        rng.choice([Range(0, math.inf, has_nan=True), Range(0, 1), Range(-1, 3), Range(1, math.inf)]),
                    )
                elif roll < 0.5 and finite(t) is not None:
                    facts = facts.with_range(name, finite(t))
                if rng.random() < 0.4:
                    facts = Facts(facts.ranges, facts.present | {name}, setting)
        return Case(sql, type_, column("v", moving), rng.choice(["up", "down"]), facts)

    def _analysed(self, cases: list[Case]) -> list[Expr]:
        """Each expression as the compiler reads it."""
        spark = self._spark
        nullable = StructType([type(f)(f.name, f.dataType, nullable=True) for f in self._grid.schema])
        rows = reference(spark, "r", nullable)
        step = rows.selectExpr(*(f"{c.sql} as x{n}" for n, c in enumerate(cases)))
        names, frames = spark._jvm.java.util.ArrayList(), spark._jvm.java.util.ArrayList()
        names.add("r")
        frames.add(step._jdf)
        plan = json.loads(self._bridge.analyse(names, frames).json())["steps"][0]["plan"]
        called = {c["col"]: c["name"] for c in plan["child"]["columns"]}
        return [_renamed(from_json(e["expr"]), called) for e in plan["exprs"]]

    def _evaluated(self, cases: list[Case]) -> list[list[Any]]:
        """The values of each expression on the grid's rows, ``FAILED`` where it fails."""
        utils = self._spark._jvm.org.apache.spark.sql.classic.ExpressionUtils
        make = self._spark._jvm.org.apache.spark.sql.catalyst.expressions.TryEval
        types = self._grid.selectExpr(*(c.sql for c in cases)).schema
        chosen = []
        for n, (case, of) in enumerate(zip(cases, types, strict=True)):
            boxed = F.struct(self._plain(F.expr(case.sql), of.dataType.simpleString()).alias("x"))
            chosen.append(Column(utils.column(make(utils.expression(boxed._jc)))).alias(f"x{n}"))
        rows = self._grid.select(*chosen).collect()
        return [[FAILED if r[n] is None else r[n][0] for r in rows] for n in range(len(cases))]

    @staticmethod
    def _plain(value: Column, type_: str) -> Column:
        """What Python can hold and compare: times as whole numbers."""
        if type_ == "date":
            return F.unix_date(value)
        if type_ == "timestamp":
            return F.unix_micros(value)
        if type_ == "timestamp_ntz":
            return value.cast("string")
        return value

    def _compare(
        self, case: Case, expr: Expr, rows: list[dict[str, Any]], plain: list[Any], checked: list[Any]
    ) -> str | None:
        system = Monotone({case.moving: case.move}, case.facts)
        found = system.behaviour(expr)
        results = checked if system.overflows else plain
        read = columns(expr)
        kept = [
            n for n, r in enumerate(rows) if all(_holds(case.facts, c, r[c]) for c in read) and results[n] is not FAILED
        ]
        pairs = [
            (a, b)
            for a in kept
            for b in kept
            if rows[a]["j"] == rows[b]["j"] and _improves(rows[a][case.moving], rows[b][case.moving], case.move)
        ]
        truth = case.type == "boolean"
        claims = [("range", self._range(found, expr, kept, results))]
        if truth and found.keeps_true and not found.is_const:
            claims.append(("true stays true", _first(pairs, lambda a, b: results[a] is not True or results[b] is True)))
        if truth and found.keeps_false and not found.is_const:
            claims.append(
                ("false stays false", _first(pairs, lambda a, b: results[a] is not False or results[b] is False))
            )
        if found.move in ("up", "down") and found.presence != "unknown":
            claims.append(("monotone", _first(pairs, lambda a, b: _no_worse(results[a], results[b], found.move))))
        if case.moving in read and strict_in(expr, case.moving, case.facts) == "exact" and case.facts.setting.ansi:
            claims.append(
                (
                    "strict",
                    _first(
                        pairs,
                        lambda a, b: (
                            results[a] is None
                            or rows[a][case.moving] == rows[b][case.moving]
                            or _key(results[a]) != _key(results[b])
                            or _same(rows[a][case.moving], rows[b][case.moving])
                        ),
                    ),
                )
            )
        for name, broken in claims:
            self.tally.claims[name] += 1
            if broken is not None:
                a, b = broken
                told = [{c: rows[n][c] for c in sorted(read)} for n in (a, b)]
                return f"{name} is broken: {told[0]} gives {results[a]!r}, {told[1]} gives {results[b]!r}; {found}"
        return None

    @staticmethod
    def _range(found: Any, expr: Expr, kept: list[int], results: list[Any]) -> tuple[int, int] | None:
        for n in kept:
            value = results[n]
            if value is None and not found.is_nullable:
                return n, n
            numeric = (
                found.range is not None
                and isinstance(value, int | float | decimal.Decimal)
                and not isinstance(value, bool)
            )
            if (
                numeric
                and getattr(expr, "type", "") not in ("date", "timestamp")
                and (Fraction(value) if isinstance(value, decimal.Decimal) else value) not in found.range
            ):
                return n, n
        return None


def _renamed(expr: Expr, names: dict[str, str]) -> Expr:
    return substitute(expr, lambda c: type(c)(names[c.name], c.type, c.nullable))


def _holds(facts: Facts, name: str, value: Any) -> bool:
    if value is None:
        return name not in facts.present
    known = facts.ranges.get(name)
    if known is None or isinstance(value, bool | str | timedelta):
        return not isinstance(value, timedelta) or known is None or int(value / timedelta(microseconds=1)) in known
    return (Fraction(value) if isinstance(value, decimal.Decimal) else value) in known


def _key(value: Any) -> Any:
    if isinstance(value, str):
        return (0, value.encode())
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def _same(a: Any, b: Any) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and _key(a) == _key(b))


def _improves(a: Any, b: Any, move: str) -> bool:
    """Whether ``b`` is as good as ``a`` or better, where values go ``move``."""
    if a is None:
        return True
    return b is not None and (_key(a) <= _key(b) if move == "up" else _key(b) <= _key(a))


def _no_worse(a: Any, b: Any, move: str) -> bool:
    return _improves(a, b, move)


def _first(pairs: list[tuple[int, int]], holds: Any) -> tuple[int, int] | None:
    return next(((a, b) for a, b in pairs if not holds(a, b)), None)
