"""Catalyst's functions inside a step: the Spark engine's generated code compiles, and gives what Spark itself gives.

The engine puts Catalyst's code into methods of its own. Their locals must not have names that Catalyst declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

VALUES = {
    "tinyint": "3Y",
    "smallint": "3S",
    "int": "3",
    "bigint": "3L",
    "float": "3.5F",
    "double": "3.5D",
    "decimal(9,2)": "3.25BD",
    "boolean": "true",
    "string": "'3'",
    "date": "DATE'2024-02-29'",
    "timestamp": "TIMESTAMP'1970-01-01 00:00:03'",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-02-29 01:02:03'",
    "interval day to second": "INTERVAL '0 00:00:03' DAY TO SECOND",
    "interval year to month": "INTERVAL '0-3' YEAR TO MONTH",
}
STRINGS = {
    "boolean": "'true'",
    "date": "'2024-02-29'",
    "timestamp": "'2024-02-29 01:02:03'",
    "timestamp_ntz": "'2024-02-29 01:02:03'",
    "interval day to second": "'0 00:00:03'",
    "interval year to month": "'0-3'",
}
"""A text that is a value of each type; of the others `3` is one."""

FUNCTIONS = {
    "int": """
        abs(v) -v v+1 v*2 v%2 pmod(v,2) v/2 (v)div(2) bit_count(v) shiftleft(v,1) shiftright(v,1) hex(v)
        bin(v) conv(v,10,2) factorial(v) sign(v) ~v v&1 v^2 power(v,2) sqrt(v) cbrt(v) exp(v) ln(v) log2(v)
        sin(v) cos(v) greatest(v,2) least(v,2) hash(v) xxhash64(v) nvl(v,0) coalesce(v,1) if(v>1,v,0)
        v|in(1,3) make_date(2024,v,1) space(v) chr(v+60) elt(v,'a','b','c') date_from_unix_date(v)
        width_bucket(v,0,10,5) format_number(v,2) bround(v,0) round(v,-1) timestamp_seconds(v)
        make_dt_interval(v) case|v|when|1|then|'one'|when|3|then|'three'|else|'many'|end""",
    "double": """
        ceil(v) floor(v) round(v,1) v+1 v*v v/3 v%2 rint(v) degrees(v) radians(v) tan(v) atan2(v,1)
        hypot(v,1) isnan(v) nanvl(v,0) expm1(v) log10(v) signum(v) cast(v|as|decimal(12,3)) least(v,1)
        greatest(v,9) string(v) cast(string(v)as|double) cast(string(v)as|float)
        cast(string(v)as|decimal(9,3)) bround(v) pow(v,0.5)""",
    "decimal(9,2)": """
        v+1.5 v*2 v/3 v%2 round(v,1) ceil(v) floor(v) abs(-v) cast(v|as|decimal(5,1)) v|div|2 -v""",
    "string": """
        upper(v) lower(v) length(v) concat(v,'x') substring(v,1,1) trim(v) lpad(v,5,'0') rpad(v,5,'0')
        reverse(v) repeat(v,2) replace(v,'3','4') translate(v,'3','5') regexp_replace(v,'[0-9]','n')
        v|like|'3%' regexp_extract(v,'([0-9])',1) v|rlike|'[0-9]+' instr(v,'3') locate('3',v) ascii(v)
        soundex(v) levenshtein(v,'33') initcap(v) cast(v|as|double) cast(v|as|float) cast(v|as|int)
        cast(v|as|bigint) cast(v|as|smallint) cast(v|as|tinyint) cast(v|as|decimal(9,2)) to_number(v,'9')
        concat_ws(',',v,v) contains(v,'3') startswith(v,'3') endswith(v,'3') left(v,1) right(v,1)
        overlay(v|placing|'y'|from|1) char_length(v) octet_length(v) find_in_set(v,'1,3')
        substring_index(v,'.',1) format_string('%s',v) get_json_object(concat('{"a":',v,'}'),'$.a')
        url_encode(v) btrim(v) date_add('2024-01-01',v)""",
    "date": """
        year(v) month(v) day(v) dayofweek(v) dayofyear(v) weekofyear(v) quarter(v) date_add(v,1)
        date_sub(v,1) add_months(v,1) last_day(v) next_day(v,'monday') trunc(v,'year')
        datediff(v,date'2024-01-01') date_format(v,'yyyy') months_between(v,date'2024-01-01')
        v+interval|1|day unix_date(v) extract(week|from|v) to_timestamp(v)""",
    "timestamp": """
        hour(v) minute(v) second(v) date_trunc('hour',v) unix_timestamp(v) v+interval|1|hour
        date_format(v,'HH') to_utc_timestamp(v,'Asia/Tokyo') from_utc_timestamp(v,'Asia/Tokyo')
        unix_micros(v) to_date(v) extract(second|from|v) timestampadd(hour,1,v)
        timestampdiff(hour,v,timestamp'2024-01-01')""",
}
"""Calls with a value `v` of each type; `|` stands for a space in a call."""


def evaluated(spark: SparkSession, kind: str, value: str, calls: list[str]) -> tuple[DataFrame, DataFrame]:
    """Return the calls' values as Spark gives them, and as a step gives them."""
    base = spark.range(1).selectExpr("int(id) AS k", f"cast({value} AS {kind}) AS v")
    texts = {f"o{i}": f"cast({call} AS string)" for i, call in enumerate(calls)}
    columns = [f"cast(NULL AS string) AS {name}" for name in texts]
    result = base.selectExpr("k", "v", *columns).recursive_agg(
        "k",
        {"v": "max", **dict.fromkeys(texts, "max")},
        step=lambda r: r.where("k < 1").selectExpr("k + 1 AS k", "v", *(f"{t} AS {n}" for n, t in texts.items())),
        mode="iterate",
        backend="spark",
    )
    return base.selectExpr(*(f"{t} AS {n}" for n, t in texts.items())), result.where("k = 1").select(*texts)


def known(spark: SparkSession, kind: str, value: str, calls: list[str]) -> list[str]:
    """Return the calls that this Spark has."""

    def is_known(call: str) -> bool:
        try:
            spark.range(1).selectExpr(f"cast({value} AS {kind}) AS v").selectExpr(f"cast({call} AS string)")
        except PySparkException:
            return False
        return True

    return [call for call in calls if is_known(call)]


def batches(calls: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(calls), size):
        yield calls[start : start + size]


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    value: str = request.param
    spark.conf.set("spark.sql.ansi.enabled", value)
    return value


def differences(spark: SparkSession, kind: str, value: str, calls: list[str]) -> Mapping[str, tuple[object, object]]:
    found: dict[str, tuple[object, object]] = {}
    for batch in batches(calls, 20):
        right, given = evaluated(spark, kind, value, batch)
        pairs = zip(batch, right.first(), given.first(), strict=True)
        found.update({call: (a, b) for call, a, b in pairs if a != b})
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_casts_of_each_type_to_each_other(spark: SparkSession, ansi: str, kind: str) -> None:
    by_value: dict[str, list[str]] = {}
    for target in VALUES:
        value = STRINGS.get(target, VALUES[kind]) if kind == "string" else VALUES[kind]
        casts = [f"cast(v AS {target})"] + [f"try_cast(v AS {target})"] * (ansi == "true")
        calls = known(spark, kind, value, casts)
        by_value.setdefault(value, []).extend(calls)
    assert sum(map(len, by_value.values())) >= 3
    for value, calls in by_value.items():
        assert differences(spark, kind, value, calls) == {}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_of_each_type(spark: SparkSession, kind: str) -> None:
    calls = [call.replace("|", " ") for call in FUNCTIONS[kind].split()]
    if SPARK < (4, 0):  # it compiles the first one not, and takes a constant number of days
        calls = [c for c in calls if not c.startswith(("get_json_object(", "date_add('"))]
    assert differences(spark, kind, VALUES[kind], calls) == {}
