"""Compare the engine's generated code with Spark on random SQL expressions, including errors.

Spark's analyser resolves the SQL, types and casts included, as it does for a step. One query computes Spark's rows. If
the engine raises an error for a row, a query computes that row alone. ``PARALAGG_EXPRESSIONS`` is the number of
expressions in each part of a test. Each is compiled once and then loaded from the cache of kernels.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from mpi.expressions_random import COLUMNS, Expressions, rows
from mpi.staged import arrow
from pyspark.errors import PySparkException
from rows import frame, schema_of

from mpi_backend.codegen.input import evaluate
from mpi_backend.codegen.portable import unportable
from mpi_backend.comm import SingleRank
from mpi_backend.load.files import table_of
from mpi_backend.load.inputs import intern
from mpi_backend.state.types import to_arrow
from pyspark_paralagg.errors import ParalaggError
from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.program.expr import Col, Lit, from_json, walk
from pyspark_paralagg.program.program import Column, Input
from pyspark_paralagg.session.attach import Shim
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from mpi_backend.state.types import Column as EngineColumn


COUNT = int(os.environ.get("PARALAGG_EXPRESSIONS", "17"))
PARTS = range(3)
ROWS, ERRORS = 40, 20
TYPES = [("id", "int"), *((name, spark_type) for name, (spark_type, _) in COLUMNS.items())]
DATA = rows(ROWS, seed=1)
_MAX_UNPORTABLE = 0.35


@dataclass(frozen=True)
class Drawn:
    """A random expression as SQL, and as analysed by Spark: the expression of the input ``source``."""

    sql: str
    source: Input

    @property
    def type(self) -> str:
        return self.source.exprs[0].type


def drawn(spark: SparkSession, seed: int) -> list[Drawn]:
    """Return random expressions that the engine supports, analysed."""
    texts = [Expressions(seed + n).draw() for n in range(COUNT)]
    typed = [t for t in texts if _is_typed(spark, t)]
    inputs = [Drawn(t, e) for t, e in zip(typed, analysed(spark, typed), strict=True)]
    portable = [d for d in inputs if unportable(Plan("x", (d.source,), ()), inputs=True) is None]
    assert len(portable) >= (1 - _MAX_UNPORTABLE) * len(inputs), f"{len(portable)} of {len(inputs)}"
    return portable


def _is_typed(spark: SparkSession, text: str) -> bool:
    try:
        frame(spark, ", ".join(f"{n} {t}" for n, t in TYPES), []).selectExpr(text)
    except PySparkException:
        return False
    return True


def analysed(spark: SparkSession, texts: list[str], types: list[tuple[str, str]] = TYPES) -> list[Input]:
    """Analyse expressions over the columns of the data. Return an input for each."""
    schema = schema_of(", ".join(f"{n} {t}" for n, t in types))
    shim = Shim(spark)
    df = shim.reference("r", schema).selectExpr(*(f"{t} AS e{n}" for n, t in enumerate(texts)))
    analysis = shim.analyse({"q": df})
    node = analysis.json()["steps"][0]["plan"]
    assert node["op"] == "project", node
    columns = tuple(Column(c["col"], t) for c, (_, t) in zip(node["child"]["columns"], types, strict=True))
    exprs = [from_json(e["expr"]) for e in node["exprs"]]
    return [Input(n, 0, columns, (e,), name=t) for n, (e, t) in enumerate(zip(exprs, texts, strict=True))]


class Engine:
    """The engine's evaluation of expressions over the data."""

    def __init__(self, types: list[tuple[str, str]] = TYPES, data: list[tuple[Any, ...]] = DATA, *, ansi: bool) -> None:
        self._ansi = ansi
        columns = [Column(name, spark_type) for name, spark_type in types]
        self._table = table_of(columns, arrow(types, data).to_batches())

    def values(self, expression: Drawn, row: int | None = None) -> list[Any]:
        """Return the values of all rows, or of one row. Raise the error of the first row that has one."""
        return to_arrow(self.column(expression, row)).to_pylist()

    def column(self, expression: Drawn, row: int | None = None) -> EngineColumn:
        """Return the values of all rows, or of one row, as the engine has them."""
        table = self._table
        if row is not None:
            table = type(table)(tuple(c.take(slice(row, row + 1)) for c in table.columns), 1)
        texts = [str(e.value) for e in walk(expression.source.exprs[0]) if isinstance(e, Lit) and e.type == "string"]
        strings, tables = intern({0: table}, texts, SingleRank(), ansi=self._ansi)
        [column], _ = evaluate(expression.source, tables[0].columns, table.count, strings, ansi=self._ansi)
        if column.type.kind == "text":
            column = type(column)(column.type, column.words, column.nulls, strings.all())
        return column

    def value(self, expression: Drawn, row: int) -> Any:  # noqa: ANN401 - a value of any type, or an error
        """Return the value or the error of one row."""
        try:
            return self.values(expression, row)[0]
        except ParalaggError as problem:
            return problem


def same(a: Any, b: Any) -> bool:  # noqa: ANN401 - a value of any type
    """Compare values. Functions such as ``exp`` may differ in the last digits."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-12)
    return type(a) is type(b) and bool(a == b)


def data(spark: SparkSession) -> DataFrame:
    return frame(spark, ", ".join(f"{n} {t}" for n, t in TYPES), DATA)


@pytest.fixture
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield bool(request.param)
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.slow("all functions are compiled to machine code")
@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ansi", [False], indirect=True)
def test_values_equal_sparks_without_ansi(spark: SparkSession, part: int, *, ansi: bool) -> None:
    engine = Engine(ansi=ansi)
    expressions = drawn(spark, seed=10_000 + part * COUNT)
    spark_rows = (
        data(spark).selectExpr("id", *(f"{d.sql} AS e{n}" for n, d in enumerate(expressions))).orderBy("id").collect()
    )
    wrong = []
    for n, expression in enumerate(expressions):
        values = engine.values(expression)
        wrong += [
            f"{expression.sql}\n   with {_format_row(expression, r)}: {values[r]!r}, Spark {row[n + 1]!r}"
            for r, row in enumerate(spark_rows)
            if not same(values[r], row[n + 1])
        ][:2]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow("all functions are compiled to machine code")
@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("ansi", [True], indirect=True)
def test_values_and_errors_equal_sparks_with_ansi(spark: SparkSession, part: int, *, ansi: bool) -> None:
    engine = Engine(ansi=ansi)
    expressions = drawn(spark, seed=20_000 + part * COUNT)
    values: dict[tuple[int, int], Any] = {}
    errors: dict[int, tuple[int, str]] = {}
    for n, expression in enumerate(expressions):
        for r in range(ROWS):
            value = engine.value(expression, r)
            if isinstance(value, ParalaggError):
                errors.setdefault(n, (r, value.code))
            else:
                values[n, r] = value
    wrong = _wrong_values(data(spark), expressions, values)
    for n, (r, code) in list(errors.items())[:ERRORS]:
        condition = _condition(data(spark).filter(f"id = {r}"), expressions[n].sql)
        if condition != code:
            wrong.append(f"{expressions[n].sql}\n   with {_format_row(expressions[n], r)}: {code}, Spark {condition}")
    assert not wrong, "\n".join(wrong)
    assert errors


def _wrong_values(df: DataFrame, expressions: list[Drawn], values: dict[tuple[int, int], Any]) -> list[str]:
    """Return the differences between ``values`` and Spark's values of the same rows."""
    columns = [f"case when id in ({_ids(values, n)}) then {d.sql} end AS e{n}" for n, d in enumerate(expressions)]
    try:
        rows = df.selectExpr("id", *columns).orderBy("id").collect()
    except PySparkException:  # query each alone to find the failing ones
        conditions = [_condition(df, sql) for sql in columns]
        return [f"{d.sql}\n   is no error here, Spark: {c}" for d, c in zip(expressions, conditions, strict=True) if c]
    return [
        f"{expressions[n].sql}\n   with {_format_row(expressions[n], r)}: {value!r}, Spark {rows[r][n + 1]!r}"
        for (n, r), value in values.items()
        if not same(value, rows[r][n + 1])
    ]


def _ids(values: dict[tuple[int, int], Any], n: int) -> str:
    return ", ".join(str(r) for m, r in values if m == n) or "-1"


def _condition(df: DataFrame, sql: str) -> str | None:
    try:
        df.selectExpr(sql).collect()
    except PySparkException as problem:
        return str(condition_of(problem))
    return None


def _format_row(expression: Drawn, r: int) -> str:
    names = {c.name: n for n, c in enumerate(expression.source.columns)}
    read = {names[e.name] for e in walk(expression.source.exprs[0]) if isinstance(e, Col)}
    return ", ".join(f"{TYPES[p][0]}={DATA[r][p]!r}" for p in sorted(read))
