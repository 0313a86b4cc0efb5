"""Compare dates, timestamps, intervals and rounding of the engine on ranks with Spark, on values at the edges."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from mpi.test_expressions import Drawn, Engine, analysed, same
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from rows import frame

from mpi_backend.codegen.portable import unportable
from mpi_backend.state.types import to_arrow
from pyspark_paralagg.errors import ParalaggError
from pyspark_paralagg.plan.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = [
    ("id", "int"), ("a", "date"), ("a2", "date"), ("n", "timestamp_ntz"), ("n2", "timestamp_ntz"), ("t", "timestamp"),
    ("l", "bigint"), ("i", "int"), ("b", "tinyint"), ("d", "double"), ("m", "decimal(9,2)"), ("w", "decimal(17,0)"),
    ("s", "string"),
]  # fmt: skip
_DATES = [
    date(1, 1, 1), date(1600, 2, 29), date(1899, 12, 31), date(1900, 2, 28), date(1969, 12, 31), date(1970, 1, 1),
    date(2000, 2, 29), date(2024, 1, 31), date(2024, 12, 31), date(9999, 12, 31), None,
]  # fmt: skip
_TIMES = [
    t if t is None else datetime.fromisoformat(t)
    for t in (
        "0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-01-31 18:30:05.000007",
        "2024-02-29 06:00:00", "9999-12-31 23:59:59.999999", None,
    )
]  # fmt: skip
_LONGS = [0, 5, -5, 15, -25, 1_500_000, -1, 10**15, 2**63 - 1, -(2**63), None]
_INTS = [0, 1, -1, 12, -13, 45, -55, 400, 2**31 - 1, -(2**31), None]
_BYTES = [0, 1, -1, 15, -25, 127, -128, None]
_DOUBLES = [0.0, -0.5, 0.5, 1.5, 2.5, -2.5, 1e300, float("nan"), float("-inf"), None]
_MONEY = [Decimal(x) for x in ("0.00", "0.05", "-0.05", "0.15", "2.50", "-2.45", "9999999.99", "-9999999.99")] + [None]
_WIDE = [Decimal(x) for x in ("0", "5", "-15", "25", "99999999999999999", "-99999999999999999")] + [None]
_TEXTS = ["", "a", "日本", "abcd", None]

FAILURES = (PySparkException, Py4JJavaError)
"""What a failed query of Spark raises; Java's own errors have no class in Python."""


def rows() -> list[tuple[Any, ...]]:
    utc = [t if t is None else t.replace(tzinfo=timezone.utc) for t in _TIMES]
    lists: list[list[Any]] = [
        _DATES, _DATES[::-1], _TIMES, _TIMES[::-1], utc, _LONGS, _INTS, _BYTES, _DOUBLES, _MONEY, _WIDE, _TEXTS,
    ]  # fmt: skip
    return list(zip(range(23), *(itertools.islice(itertools.cycle(values), 23) for values in lists), strict=True))


EXPRESSIONS = """
    year(a) quarter(a) month(a) day(a) dayofyear(a) last_day(a) trunc(a,'WEEK') trunc(a,'MM') trunc(a,'QUARTER')
    trunc(a,'yy') add_months(a,b) add_months(a,1) a+interval|1|month a+interval|1|month*b a-interval|1|year unix_date(a)
    date_from_unix_date(b) date_add(a2,extract(day|from|a-a2)) date_add(a2,extract(day|from|(a-a2)*b))
    a+make_ym_interval(b,b) date_add(a,b) datediff(a,a2) cast(a|as|timestamp_ntz) cast(n|as|date) year(n)
    cast(t|as|bigint) unix_micros(t) unix_millis(t) unix_seconds(t) timestamp_micros(l) timestamp_millis(l)
    timestamp_seconds(l) timestamp_seconds(i) n+interval|3|hours n-interval|1|day n+interval|1|hour*i n+interval|1|month
    n+interval|1|month*b n+make_dt_interval(b,b,b) n+(n2-n) n2-(n2-n)*b t+interval|3|hours t-interval|90|minutes
    date_trunc('SECOND',t) date_trunc('millisecond',t) date_trunc('MICROSECOND',t) timestampadd(HOUR,3,t)
    timestampadd(SECOND,-1,t) timestampadd(HOUR,i,n) timestampadd(DAY,b,n) timestampadd(MONTH,b,n)
    timestampadd(QUARTER,b,n) timestampadd(YEAR,-1,n) timestampadd(WEEK,1,n)
    round(l,-1) bround(l,-1) round(i,-1) bround(i,-1) round(b,-1) round(b,-2) bround(b,1) round(l,-18)
    floor(i,-1) ceil(i,-1) floor(m,1) ceil(m,1) floor(m,-1) ceil(m,-1) floor(m) ceil(m) round(m,1) bround(m,1)
    round(m,0) bround(m,-1) round(m,-3) bround(w,-1) floor(w,-1) round(m,5) rint(d) signum(d) sign(m)
    lpad(s,3,'xy') rpad(s,3,'日') lpad(cast(i|as|string),8,'0')
""".split()  # noqa: SIM905 - a list of lines is as long
NUMBERS = {
    "date": "unix_date({})", "timestamp": "unix_micros({})", "timestamp_ntz": "unix_micros(cast({} as timestamp))",
}  # fmt: skip
"""Spark's numbers for times, which may lie after Python's last year."""


def reached(engine: Engine, drawn: Drawn, row: int) -> Any:  # noqa: ANN401 - a value of any type, or an error
    try:
        column = engine.column(drawn, row)
    except ParalaggError as problem:
        return problem
    if column.type.name not in NUMBERS:
        return to_arrow(column).to_pylist()[0]
    return None if column.nulls is not None and column.nulls[0] else int(column.words[0])


def expected(table: DataFrame, text: str, row: int) -> Any:  # noqa: ANN401 - a value of any type, or an error
    try:
        return table.filter(f"id = {row}").selectExpr(text).collect()[0][0]
    except FAILURES as problem:
        return problem


def equal(x: Any, y: Any) -> bool:  # noqa: ANN401 - values of any type
    return isinstance(x, ParalaggError) if isinstance(y, FAILURES) else same(x, y)


@pytest.mark.slow("all functions are compiled to machine code")
@pytest.mark.parametrize("ansi", [True, False])
def test_values_and_errors_at_the_edges_equal_sparks(spark: SparkSession, *, ansi: bool) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    texts = [e.replace("|", " ") for e in EXPRESSIONS]
    data = rows()
    table = frame(spark, ", ".join(f"{n} {t}" for n, t in TYPES), data).orderBy("id").cache()
    engine, wrong = Engine(TYPES, data, ansi=ansi), []
    for text, source in zip(texts, analysed(spark, texts, TYPES), strict=True):
        if (reason := unportable(Plan("x", (source,), ()), inputs=True)) is not None:
            wrong.append(reason)
            continue
        shown = NUMBERS.get(source.exprs[0].type, "{}").format(text)
        try:
            values = [r[0] for r in table.selectExpr(shown).collect()]
        except FAILURES:
            values = [expected(table, shown, n) for n in range(len(data))]
        for n, value in enumerate(values):
            result = reached(engine, Drawn(text, source), n)
            if not equal(result, value):
                wrong.append(f"{text} of {data[n]}: {result!r}, Spark {value!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("t + interval 1 day", "does not know the session's time zone"),
        ("timestampadd(HOUR, i, t)", "does not know the session's time zone"),
        ("date_trunc('HOUR', t)", "does not know the session's time zone"),
        ("unix_date(cast(t as date))", "does not cast timestamp to date"),
        ("n + make_dt_interval(b) / 2", "no DivideDTInterval"),
        ("n + interval 1 day * d", "an interval times a number that is not whole"),
        ("round(d, 1)", "rounding a fraction to digits"),
        ("timestamp_seconds(d)", "a timestamp of a number that is not whole"),
        ("floor(l, -1)", "cannot hold decimal(20,0) in a word"),
        ("trunc(a, s)", "no constant week, month, quarter or year"),
        ("concat_ws('-', s, s)", "no ConcatWs"),
    ],
)
def test_a_reason_comes_before_anything_runs(spark: SparkSession, text: str, reason: str) -> None:
    [source] = analysed(spark, [text], TYPES)
    assert reason in str(unportable(Plan("x", (source,), ()), inputs=True))
