"""Wrong use: each error by its code and its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame, rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.program.assumption import parse_assumptions
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

Tables = dict[str, "DataFrame"]


@pytest.fixture
def t(spark: SparkSession) -> Tables:
    return {
        "base": frame(spark, "node bigint, dist double", [(1, 0.0)]),
        "names": frame(spark, "node bigint, name string, flag boolean, n int", [(1, "a", True, 1)]),
        "edges": frame(spark, "src bigint, dst bigint, w double", [(1, 2, 1.0), (2, 1, 1.0)]),
        "maps": frame(spark, "node map<string,int>, dist double", []),
    }


def shortest(t: Tables) -> Callable[[DataFrame], DataFrame]:
    """Give a right step, for calls that are wrong elsewhere."""
    e = t["edges"]
    return lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.w).alias("dist"))


@pytest.mark.parametrize(
    ("table", "keys", "aggs", "code", "hint"),
    [
        ("base", "nod", {"dist": "min"}, "PARALAGG_KEY_MISSING", "did you mean 'node'?"),
        ("base", [1], {"dist": "min"}, "PARALAGG_KEY_MISSING", 'keys="node"'),
        ("base", ["node", "node"], {"dist": "min"}, "PARALAGG_KEY_TWICE", "once"),
        ("base", ["node", "dist"], {"dist": "min"}, "PARALAGG_KEY_AGGREGATED", "remove it from keys or from aggs"),
        ("maps", "node", {"dist": "min"}, "PARALAGG_KEY_TYPE", "other types"),
        ("base", "node", {"dist": "mim"}, "PARALAGG_UNKNOWN_AGGREGATE", "did you mean 'min'?"),
        ("base", "node", {"dist": min}, "PARALAGG_UNKNOWN_AGGREGATE", "did you mean 'min'?"),
        ("base", "node", {"dist": "min_by"}, "PARALAGG_UNKNOWN_AGGREGATE", "ra.min_by("),
        ("base", "node", None, "PARALAGG_COLUMN_UNDECLARED", "add it to keys or aggs"),
        ("base", "node", {"dits": "min"}, "PARALAGG_AGG_COLUMN_MISSING", "did you mean 'dist'?"),
        ("base", "node", {"dist": "any"}, "PARALAGG_AGG_TYPE", "boolean"),
        ("base", "node", {"dist": "bit_or"}, "PARALAGG_AGG_TYPE", "bigint"),
        ("names", "node", {"name": "sum", "flag": "any", "n": "min"}, "PARALAGG_AGG_TYPE", "a number"),
        (
            "names",
            "node",
            {"name": ra.min_by("flag"), "flag": "any", "n": "min"},
            "PARALAGG_MIN_BY_ORDER",
            "'flag': 'min'",
        ),
        ("names", "node", {"name": ra.max_by("n"), "flag": "any", "n": "min"}, "PARALAGG_MIN_BY_ORDER", "'n': 'max'"),
        ("names", "node", {"name": ra.min_by("x"), "flag": "any", "n": "min"}, "PARALAGG_MIN_BY_ORDER", "'x'"),
    ],
)
def test_declaration(  # noqa: PLR0913, PLR0917 - one a column of the table above
    t: Tables,
    table: str,
    keys: Any,  # noqa: ANN401 - wrong on purpose
    aggs: Any,  # noqa: ANN401 - wrong on purpose
    code: str,
    hint: str,
) -> None:
    with pytest.raises(ra.UsageError) as e:
        t[table].recursive_agg(keys, aggs, step=lambda d: d, name="reach")
    assert e.value.code == code
    assert e.value.place == "relation reach"
    assert hint in str(e.value.hint)


@pytest.mark.parametrize(
    ("declared", "code", "hint"),
    [
        (lambda: (F.col("node"), {"dist": "min"}), "PARALAGG_KEY_MISSING", 'keys="node"'),
        (lambda: ([F.col("node")], {"dist": "min"}), "PARALAGG_KEY_MISSING", 'keys="node"'),
        (lambda: (F.upper("node"), {"dist": "min"}), "PARALAGG_KEY_MISSING", "compute other columns in the base"),
        (lambda: (3, {"dist": "min"}), "PARALAGG_KEY_MISSING", 'keys="node"'),
        (lambda: ("node", {"dist": F.min("dist")}), "PARALAGG_UNKNOWN_AGGREGATE", """{'dist': "min"}"""),
        (lambda: ("node", {"dist": 3}), "PARALAGG_UNKNOWN_AGGREGATE", ""),
        (lambda: ("node", F.min("dist")), "PARALAGG_UNKNOWN_AGGREGATE", 'aggs={"dist": "min"}'),
        (lambda: ("node", [F.min("dist")]), "PARALAGG_UNKNOWN_AGGREGATE", 'aggs={"dist": "min"}'),
        (lambda: ("node", "min"), "PARALAGG_UNKNOWN_AGGREGATE", 'aggs={"dist": "min"}'),
        (lambda: ("node", {"dist": ra.min_by(F.col("cost"))}), "PARALAGG_UNKNOWN_AGGREGATE", '"cost"'),
        (lambda: ("node", {"n": ra.mcount(F.col("dist"))}), "PARALAGG_UNKNOWN_AGGREGATE", '"dist"'),
        (lambda: ("node", {"n": ra.msum(F.col("dist"), "who")}), "PARALAGG_UNKNOWN_AGGREGATE", '"dist"'),
    ],
)
def test_columns_where_names_belong(t: Tables, declared: Callable[[], Any], code: str, hint: str) -> None:
    keys, aggs = declared()
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg(keys, aggs, step=lambda d: d)
    assert (e.value.code, e.value.place) == (code, "relation r")
    assert hint in str(e.value.hint)


def test_dataframes_of_other_libraries(t: Tables, spark: SparkSession) -> None:
    rows: Any = t["base"].toPandas()
    calls: list[Callable[[], object]] = [
        lambda: ra.recursive_agg(rows, "node", {"dist": "min"}, step=lambda d: d),
        lambda: ra.recursive({"r": ra.relation(rows, keys="node")}, step=lambda r: {"r": r}),
        lambda: t["base"].recursive_agg("node", {"dist": "min"}, step=lambda d: d, initial=rows),
        lambda: t["base"].recursive_agg("node", {"dist": "min"}, step=lambda _: rows),
        lambda: ra.datalog(spark, ".decl e(x:number,y:float)\n.input e\n.decl r(x:number)\nr(x) :- e(x,_).", e=rows),
    ]
    for call in calls:
        with pytest.raises(ra.UsageError, match=r"is a pandas\.DataFrame, not a Spark DataFrame") as e:
            call()
        assert "spark.createDataFrame" in str(e.value.hint)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"mode": "fast"}, "mode"),
        ({"on_limit": "stop"}, "on_limit"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": 2.5}, "max_iterations"),
        ({"max_iterations": True}, "max_iterations"),
        ({"tolerance": 0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"tolerance": 0.1}, "tolerance"),  # min ends exactly, so nothing would ever be measured
        ({"join_order": "size"}, "join_order"),
        ({"join_order": {"other": [1]}}, "join_order"),
        ({"backend": "gpu"}, "backend"),
        ({"step": None}, "step"),
    ],
)
def test_option(t: Tables, options: dict[str, Any], place: str) -> None:
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg("node", {"dist": "min"}, **{"step": shortest(t), **options})
    assert (e.value.code, e.value.place) == ("PARALAGG_BAD_OPTION", place)


def test_conf_of_another_type(t: Tables, spark: SparkSession) -> None:
    spark.conf.set("spark.paralagg.backend", "sparc")
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg("node", {"dist": "min"}, step=shortest(t))
    assert e.value.code == "PARALAGG_BAD_CONF"
    assert conf.BROADCAST_MAX_BYTES.parse("512 MB") == 512 << 20


@pytest.mark.parametrize("text", ["0.5", "-1", "many"])
def test_conf_that_is_no_number_says_which_numbers_are(text: str) -> None:
    with pytest.raises(ra.UsageError, match=f"'{text}', which is not a whole number from 0 on") as e:
        conf.parse(conf.HEAVY_PARTS, text, "here")
    assert e.value.hint == "use a whole number from 0 on; the default is 8"


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (["node"], "PARALAGG_STEP_COLUMNS_MISSING"),
        (["dst AS node", "dist AS cost"], "PARALAGG_STEP_COLUMNS_MISSING"),
        (["dst AS node", "dist", "w"], "PARALAGG_STEP_COLUMNS_EXTRA"),
        (["dst AS node", "dist", "dist"], "PARALAGG_STEP_COLUMNS_EXTRA"),
        (["dst AS node", "CAST(dist AS string) AS dist"], "PARALAGG_STEP_COLUMNS_TYPE"),
        (["CAST(dst AS string) AS node", "dist"], "PARALAGG_STEP_COLUMNS_TYPE"),
    ],
)
def test_columns_of_a_step(t: Tables, columns: list[str], code: str, backend: str) -> None:
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.join(t["edges"], F.col("node") == F.col("src")).selectExpr(*columns),
            name="dist",
            backend=backend,
        )
    assert (e.value.code, e.value.place) == (code, "step of dist")


@pytest.mark.parametrize("result", [None, 7, "rows"])
def test_step_that_returns_no_dataframe(t: Tables, result: object) -> None:
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg("node", {"dist": "min"}, step=lambda _: result)
    assert e.value.code == "PARALAGG_STEP_RESULT"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda a: a, "PARALAGG_STEP_RESULT"),
        (lambda a: {}, "PARALAGG_STEP_RESULT"),  # noqa: ARG005 - the name is what the step is called with
        (lambda a: {"a": a, "b": a}, "PARALAGG_STEP_RESULT"),
        (lambda a: {"a": None}, "PARALAGG_STEP_RESULT"),  # noqa: ARG005 - likewise
        (lambda a, b: {"a": b}, "PARALAGG_STEP_PARAMETERS"),  # noqa: ARG005 - likewise
    ],
)
def test_step_of_several_relations(t: Tables, step: Callable[..., Any], code: str) -> None:
    with pytest.raises(ra.UsageError) as e:
        ra.recursive({"a": ra.relation(t["base"], keys="node", aggs={"dist": "min"})}, step=step)
    assert e.value.code == code


def test_relations_that_are_none(t: Tables) -> None:
    for relations in ({}, {"a": t["base"]}):
        with pytest.raises(ra.UsageError) as e:
            ra.recursive(relations, step=dict)
        assert e.value.code == "PARALAGG_BAD_OPTION"


def test_initial_rows_of_another_schema(t: Tables) -> None:
    for initial in (t["base"].select("node"), t["base"].withColumn("dist", F.lit("1")), t["edges"]):
        with pytest.raises(ra.UsageError) as e:
            t["base"].recursive_agg("node", {"dist": "min"}, step=shortest(t), initial=initial)
        assert e.value.code == "PARALAGG_INITIAL_SCHEMA"


@pytest.mark.parametrize("assume", ["w >= 0 AND w < 1", "w", "0 <= w", "w = 1", "w >= x", ["w >= 0", 3], "", 3])
def test_assumption_that_is_no_comparison(t: Tables, assume: Any) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg("node", {"dist": "min"}, step=shortest(t), assume=assume)
    assert e.value.code == "PARALAGG_ASSUME_SYNTAX"


def test_assumptions_are_read() -> None:
    found = parse_assumptions(["w >= 0", "`a b` < -1.5e3", "roads.`a b`<=2"])
    assert [(a.fn, a.args[0].name, a.args[1].value) for a in found] == [
        ("GreaterThanOrEqual", "w", 0),
        ("LessThan", "a b", -1500.0),
        ("LessThanOrEqual", "roads.a b", 2),
    ]


@pytest.mark.parametrize("assume", ["weight >= 0", "edges.w >= 0"])
def test_assumption_about_an_unknown_column(t: Tables, assume: str) -> None:
    with pytest.raises(ra.UsageError) as e:
        t["base"].recursive_agg("node", {"dist": "min"}, step=shortest(t), assume=assume, backend="spark")
    assert e.value.code == "PARALAGG_ASSUME_COLUMN"


@pytest.mark.parametrize("backend", ["spark", "python"])
def test_an_assumption_names_one_of_two_sources_with_the_column(spark: SparkSession, backend: str) -> None:
    base = frame(spark, "node bigint, p double", [(1, 1.0)])
    ways, gains = (
        frame(spark, "src bigint, dst bigint, f double", [(1, 2, factor), (2, 3, factor)]).alias(name)
        for name, factor in (("ways", 0.5), ("gains", -1.0))
    )

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(ways, r.node == F.col("ways.src")).join(gains, F.col("gains.src") == F.col("ways.src"))
        return joined.select(F.col("ways.dst").alias("node"), (r.p * F.col("ways.f")).alias("p"))

    def run(assume: str | None) -> DataFrame:
        return base.recursive_agg("node", {"p": "max"}, step=step, assume=assume, backend=backend)

    with pytest.raises(ra.VerificationError, match=r'add assume="ways\.f >= 0"'):
        run(None)
    assert sorted(run("ways.f >= 0").collect()) == [(1, 1.0), (2, 0.5), (3, 0.25)]
    with pytest.raises(Exception, match=r"PARALAGG_ASSUMPTION_VIOLATED.*0\.5"):
        run("ways.f >= 1").collect()
    with pytest.raises(ra.UsageError, match="PARALAGG_ASSUME_COLUMN"):
        run("f_2 >= 0")


def test_a_violated_assumption_ends_the_query_with_the_value(t: Tables, spark: SparkSession) -> None:
    t["edges"] = frame(spark, "src bigint, dst bigint, w double", [(1, 2, 1.0), (2, 3, -7.25), (3, 1, None)])
    dist = t["base"].recursive_agg("node", {"dist": "min"}, step=shortest(t), assume="w >= 0", backend="spark")
    with pytest.raises(Exception, match=r"PARALAGG_ASSUMPTION_VIOLATED.*-7\.25"):
        rows_of(dist)


def test_non_monotone_aggregate_is_refused_with_the_column_and_ways_out(t: Tables) -> None:
    e = t["edges"]
    with pytest.raises(ra.VerificationError) as refused:
        t["base"].recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (e.w - d.dist).alias("dist")),
            name="r",
            backend="spark",
        )
    assert refused.value.code.startswith("PARALAGG_")
    assert "dist" in str(refused.value)
    assert "mode" in str(refused.value)


def test_dependent_column_as_join_key_is_refused(t: Tables) -> None:
    e = t["edges"]
    with pytest.raises(ra.VerificationError, match="dist"):
        t["base"].recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.join(e, d.dist == e.w).select(e.dst.alias("node"), e.w.alias("dist")),
            backend="spark",
        )


def test_dependent_column_as_key_of_the_head_is_refused(t: Tables) -> None:
    with pytest.raises(ra.VerificationError, match="dist"):
        t["base"].recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.select(F.col("dist").cast("bigint").alias("node"), d.dist),
            backend="spark",
        )


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_overflow_is_sparks_own_error(spark: SparkSession, backend: str) -> None:
    base = frame(spark, "k bigint, n bigint", [(1, 2**62)])
    with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|overflow"):
        rows_of(
            base.recursive_agg("k", {"n": "max"}, step=lambda r: r.select("k", (r.n + r.n).alias("n")), backend=backend)
        )
