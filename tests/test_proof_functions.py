"""Functions of dates, timestamps, intervals, texts and digits under ``min`` and ``max``: accepted where they keep order.

``proof_case`` says what a case runs. Each one runs under ``max`` from ``first`` to ``later``, and under ``min`` back.
"""

# ruff: noqa: E501  (a case a line)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from proof_case import by_definition, refused_or_right, rows, rows_of_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

DATE = {"type": "date", "first": "date'2023-12-31'", "later": "date'2024-02-29'"}
TIME = {
    "type": "timestamp", "first": "timestamp'2024-01-31 23:59:59.999999Z'", "later": "timestamp'2024-02-29 12:30:00Z'",
}  # fmt: skip
NEW_YORK = {
    "type": "timestamp", "first": "timestamp'2024-11-03 05:59:00Z'", "later": "timestamp'2024-11-03 06:01:00Z'",
    "zone": "America/New_York",
}  # fmt: skip
# Clocks went back from 00:01 to 23:01 of the day before.
ST_JOHNS = {
    "type": "timestamp", "first": "timestamp'2006-10-29 02:30:30Z'", "later": "timestamp'2006-10-29 02:31:30Z'",
    "zone": "America/St_Johns",
}  # fmt: skip
EVENING = {
    "type": "timestamp_ntz", "first": "timestamp_ntz'2024-01-30 18:00:00'", "later": "timestamp_ntz'2024-01-31 06:00:00'",
}  # fmt: skip
PLAIN = {
    "type": "timestamp_ntz", "first": "timestamp_ntz'2024-01-30 01:00:00'", "later": "timestamp_ntz'2024-01-31 01:00:00'",
}  # fmt: skip
DAYS = {"type": "interval day to second", "first": "interval '-1 12:00:00' day to second", "later": "interval 2 days"}
TEXT = {"type": "string", "first": "'ab'", "later": "'b日'"}
DOUBLE = {"first": "-1.35D", "later": "1.25D"}
MONEY = {"type": "decimal(10,2)", "first": "-1.35", "later": "1.25"}
WHOLE = {"type": "bigint", "first": "-125", "later": "135"}

SOUND: dict[str, dict[str, Any]] = {
    **{f"trunc to {u}": {**DATE, "expr": f"trunc(v, '{u}')"} for u in ("WEEK", "mm", "QUARTER", "yyyy")},
    **{f"date_trunc to {u}": {**TIME, "expr": f"date_trunc('{u}', v)"} for u in ("HOUR", "day", "WEEK", "MON", "YEAR")},
    "date_trunc without a zone": {**PLAIN, "expr": "date_trunc('MONTH', v)"},
    "date_trunc in a fixed zone": {**TIME, "expr": "date_trunc('DAY', v)", "zone": "+05:30"},
    "seconds need no zone": {**NEW_YORK, "expr": "date_trunc('SECOND', v)"},
    "the last day": {**DATE, "expr": "last_day(v)"},
    "the next Monday": {**DATE, "expr": "next_day(v, 'MON')"},
    "a year": {**DATE, "expr": "date_add(date'1970-01-01', year(v))"},
    "a quarter of one year": {
        **DATE, "expr": "date_add(date'2024-01-01', quarter(least(greatest(v, date'2024-01-01'), date'2024-12-31')))",
    },
    "days between": {**DATE, "expr": "date_add(date'2020-01-01', datediff(v, date'2020-01-01'))"},
    "days of a column": {**DATE, "expr": "v + w", "w": "7"},
    "dates subtracted": {**DATE, "expr": "date'2020-01-01' + (v - date'2020-01-01')"},
    "the number of a day": {**DATE, "expr": "date_from_unix_date(unix_date(v) + 1)"},
    "hours added": {**NEW_YORK, "expr": "timestampadd(HOUR, 3, v)"},
    "hours of a column": {**TIME, "expr": "timestampadd(HOUR, w, v)", "w": "3"},
    "months of a column added": {**WHOLE, "first": "1", "later": "2", "expr": "unix_micros(timestampadd(MONTH, cast(least(greatest(v, 0), 9) as int), w))", "w": "timestamp'2024-01-31 06:00:00Z'"},
    "days added to a date": {**DATE, "expr": "dateadd(DAY, 3, v)"},
    "hours between": {**TIME, "expr": "timestampadd(HOUR, cast(timestampdiff(HOUR, timestamp'2024-01-01 00:00:00Z', v) as int), v)"},
    "months up to": {**TIME, "expr": "timestampadd(DAY, cast(timestampdiff(MONTH, timestamp'2024-01-01 00:00:00Z', v) as int), v)"},
    "microseconds and back": {**NEW_YORK, "expr": "timestamp_micros(unix_micros(v) + 5)"},
    "milliseconds and back": {**NEW_YORK, "expr": "timestamp_millis(unix_millis(v))"},
    "seconds and back": {**NEW_YORK, "expr": "timestamp_seconds(unix_seconds(v))"},
    "timestamps subtracted": {**TIME, "expr": "w + (v - w)", "w": "timestamp'2024-01-01 00:00:00Z'"},
    "an interval of a column": {**TIME, "expr": "v + interval 1 hour * w", "w": "3"},
    "an interval made of a column": {**TIME, "expr": "v + make_dt_interval(0, w)", "w": "3"},
    "intervals times a number": {**DAYS, "expr": "v * 3"},
    "intervals by a number": {**DAYS, "expr": "v / 7"},
    "intervals times a fraction": {**DAYS, "expr": "v * 0.5D"},
    "months of a column": {**DATE, "expr": "v + interval 1 month * w", "w": "1"},
    "floor with a scale": {**DOUBLE, "expr": "floor(v, 1)"},
    "ceil with a scale": {**DOUBLE, "expr": "ceil(v, 1)"},
    "floor to tens": {**WHOLE, "expr": "floor(v, -1)"},
    "ceil of decimals": {**MONEY, "expr": "ceil(v, 1)"},
    "floor of decimals without ANSI": {**MONEY, "expr": "floor(v, -1)", "ansi": "false"},
    **{f"bround of {t.get('type', 'double')}": {**t, "expr": "bround(v, 1)"} for t in (DOUBLE, MONEY)},
    "bround to tens": {**WHOLE, "expr": "bround(v, -1)"},
    "rint": {**DOUBLE, "expr": "rint(v)"},
    "the first characters": {**TEXT, "expr": "substring(v, 1, 1)"},
    "the left characters": {**TEXT, "expr": "left(v, w)", "w": "1"},
    "a text behind a constant": {**TEXT, "expr": "concat('x', v)"},
    "a text behind a separator": {**TEXT, "expr": "concat_ws('-', w, v)", "w": "'x'"},
    "digits with zeros before": {
        **TEXT, "first": "'00'", "expr": "greatest(v, lpad(cast(w as string), 8, '0'))", "w": "77",
    },
    "a date as a text": {**DATE, "expr": "case when cast(v as string) >= '2024' then date'2024-06-01' else date'2024-01-01' end"},
}  # fmt: skip

ONE_WAY: dict[str, dict[str, Any]] = {
    "from a column on": {**WHOLE, "expr": "v", "filter": "w between -300 and v", "w": "-200"},
    "a null is skipped": {**TEXT, "first": "NULL", "expr": "concat_ws('-', 'x', v)"},
}
"""Sound under ``max`` only."""

NOT_SOUND: dict[str, dict[str, Any]] = {
    **{
        f"the last days of a month meet, {expr}": {**EVENING, "expr": expr}
        for expr in ("v + interval 1 month", "timestampadd(MONTH, 1, v)", "timestampadd(YEAR, 1, v + interval 1 month)")
    },
    "a day in St. John's": {**ST_JOHNS, "expr": "date_trunc('DAY', v)"},
    "an hour in St. John's": {**ST_JOHNS, "expr": "date_trunc('HOUR', v)"},
    "a year in a zone": {
        **ST_JOHNS, "expr": "timestampadd(YEAR, year(v) - 2000, v)",
    },
    "a day later in New York": {**NEW_YORK, "expr": "timestampadd(DAY, 1, v)"},
    "wall clocks subtracted": {**NEW_YORK, "expr": "w + (v - w)", "w": "timestamp'2024-11-01 00:00:00Z'"},
    "a quarter": {**DATE, "expr": "date_add(date'2024-01-01', quarter(v))"},
    "months from": {
        **TIME, "first": "timestamp'2024-01-30 18:00:00Z'", "later": "timestamp'2024-01-31 06:00:00Z'",
        "expr": "timestampadd(DAY, -cast(timestampdiff(MONTH, v, timestamp'2024-03-01 12:00:00Z') as int), timestamp'2024-03-01 00:00:00Z')",
    },
    "a text before a constant": {**TEXT, "first": "'a'", "later": "'ab'", "expr": "concat(v, 'z')"},
    "a text before a separator": {**TEXT, "first": "'a'", "later": "'a '", "expr": "concat_ws('-', v, 'z')"},
    "a text in an array": {**TEXT, "first": "'a'", "later": "'a '", "expr": "concat_ws('-', array(v, 'z'))"},
    "characters within": {**TEXT, "first": "'az'", "later": "'b'", "expr": "substring(v, 2, 1)"},
    "characters from the end": {**TEXT, "first": "'az'", "later": "'b'", "expr": "substring(v, -1, 1)"},
    "a text with zeros before": {**TEXT, "first": "'aa'", "later": "'b'", "expr": "lpad(v, 5, '0')"},
    "a text with letters behind": {**TEXT, "first": "'a'", "later": "'ab'", "expr": "rpad(v, 3, 'z')"},
    "numbers as texts": {**WHOLE, "first": "9", "later": "10", "expr": "case when cast(v as string) >= '5' then 1 else 0 end"},
    "a unit that is none": {**DATE, "expr": "trunc(v, 'DAY')"},
}  # fmt: skip


def backwards(case: dict[str, Any]) -> dict[str, Any]:
    return {**case, "agg": "min", "first": case["later"], "later": case["first"]}


def settings(case: dict[str, Any]) -> tuple[str, str]:
    return case.get("ansi", "true"), case.get("zone", "UTC")


@pytest.mark.slow("a recursion of forty columns, and its definition")
@pytest.mark.parametrize("agg", ["max", "min"])
@pytest.mark.parametrize("setting", sorted({settings(c) for c in SOUND.values()}))
def test_what_keeps_the_order_runs_on_the_engine(spark: SparkSession, setting: tuple[str, str], agg: str) -> None:
    cases = [c for c in SOUND.values() if settings(c) == setting]
    reached = rows_of_all(spark, cases, agg, backend="spark")
    assert reached == rows_of_all(spark, cases, agg, mode="iterate", max_iterations=20, backend="dataframe")


@pytest.mark.parametrize("name", ONE_WAY)
def test_what_only_grows_runs_under_max(spark: SparkSession, name: str) -> None:
    assert rows(spark, ONE_WAY[name], backend="spark") == by_definition(spark, ONE_WAY[name])


@pytest.mark.parametrize("agg", ["max", "min"])
@pytest.mark.parametrize("name", [*NOT_SOUND, *ONE_WAY])
def test_what_may_change_the_order_is_refused_or_right(spark: SparkSession, name: str, agg: str) -> None:
    case = {**NOT_SOUND, **ONE_WAY}[name]
    refused_or_right(spark, case if agg == "max" else backwards(case), backend="spark")
