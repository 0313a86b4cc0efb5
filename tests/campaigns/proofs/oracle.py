"""Compares what the rule system claims of an expression with what Spark computes."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from claims import FAILED, Case, Claims, claims_by_z3, claims_of
from generate import Generator
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.types import StructType
from settings import GRID, TYPES, column

from pyspark_paralagg.compile.prove.facts import Facts
from pyspark_paralagg.program.expr import Expr, columns, from_json, substitute
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.functions.value_range import Range, finite, type_range
from pyspark_paralagg.session.attach import bridge, reference

if TYPE_CHECKING:
    import random

BATCH = 100
_BATCHES_A_GRID = 8
_RESULTS = tuple(t for t in TYPES if not t.startswith("interval"))
_ASSUMPTIONS = 6
"""How many sets of assumptions an expression is tried under, until something is claimed."""
_OTHERS = 0.1
"""Of the expressions that the rules say nothing of: some are put to z3, of some only ranges are compared."""


@dataclass
class Tally:
    """How many expressions, and claims of each kind that were compared."""

    expressions: int = 0
    compared: int = 0
    claims: Counter[str] = field(default_factory=Counter)

    def tell(self, claim: str) -> None:
        """A claim is compared."""
        self.claims[claim] += 1

    def table(self) -> str:
        """As Markdown."""
        lines = ["| claim | compared |", "|---|--:|", f"| expressions drawn | {self.expressions:,} |"]
        lines.append(f"| evaluated by Spark | {self.compared:,} |")
        return "\n".join([*lines, *(f"| {name} | {n:,} |" for name, n in sorted(self.claims.items()))])


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
        drawn = self._analysable([self._case(rng, Setting(ansi, zone)) for _ in range(BATCH)])
        self.tally.expressions += len(drawn)
        claims = [
            found for c, e in zip(drawn, self._analysed(drawn), strict=True) if (found := self._claims(rng, c, e))
        ]
        cases = [c.case for c in claims]
        results = self._evaluated(cases) if cases else []
        strictly = results
        if not ansi and cases:  # what rests on overflow being an error holds where there is none
            self._spark.conf.set("spark.sql.ansi.enabled", value=True)
            strictly = self._evaluated(cases)
        for of, plain, checked in zip(claims, results, strictly, strict=True):
            self.tally.compared += 1
            problem = of.broken(self._rows, checked if of.checked else plain, self.tally.tell)
            if problem:
                facts = of.case.facts
                given = f"{facts.ranges}, present {sorted(facts.present)}"
                self.failures.append(f"{setting} {of.case.move} {of.case.sql}: {problem} given {given}")

    @staticmethod
    def _claims(rng: random.Random, case: Case, expr: Expr) -> Claims | None:
        """What is claimed under the first assumptions and direction where something is; else of few expressions."""
        for n in range(_ASSUMPTIONS):
            other = replace(case, facts=_facts(rng, case.facts.setting), move=rng.choice(["up", "down"]))
            of = other if n else case
            found = claims_of(of, expr)
            if found.found:
                return found
        if case.moving in columns(expr) and rng.random() < 3 * _OTHERS:
            return claims_by_z3(case, expr)
        return found if rng.random() < _OTHERS else None

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
        elif rng.random() < 0.4:
            type_ = "boolean"
        sql = Generator(rng, moving).expression(type_, rng.choice([1, 2, 2, 3]))
        return Case(sql, type_, column("v", moving), rng.choice(["up", "down"]), _facts(rng, setting))

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
        """What Python can hold and compare: times as numbers or what has passed since 1970."""
        if type_ == "date":
            return F.unix_date(value)
        if type_ == "timestamp":
            return F.unix_micros(value)
        if type_ == "timestamp_ntz":
            return value - F.lit("1970-01-01").cast("timestamp_ntz")
        return value


def _renamed(expr: Expr, names: dict[str, str]) -> Expr:
    return substitute(expr, lambda c: type(c)(names[c.name], c.type, c.nullable))


def _facts(rng: random.Random, setting: Setting) -> Facts:
    """Random ranges of some columns, and some that are never null."""
    facts = Facts(setting=setting)
    for kind in "vw":
        for t in TYPES:
            name = column(kind, t)
            roll = rng.random()
            if roll < 0.25 and type_range(t) is not None and t not in ("date", "timestamp", "timestamp_ntz"):
                ranges = [Range(0, math.inf, has_nan=True), Range(0, 1), Range(-1, 3), Range(1, math.inf)]
                facts = facts.with_range(name, rng.choice(ranges))
            elif roll < 0.6 and finite(t) is not None:
                facts = facts.with_range(name, finite(t))
            if rng.random() < 0.6:
                facts = Facts(facts.ranges, facts.present | {name}, setting)
    return facts
