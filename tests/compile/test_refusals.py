"""What the compiler refuses: each with its class, its code, its place, and what it says."""
# ruff: noqa: ANN401  (options of a Program)

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import programs
import pytest
from steps import Document, Frame, Json, add, call, cast, holds, lit, relation, same, subtract, times

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.errors import ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program.assumption import parse_assumptions

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program

Step = Callable[[Document, Frame, Frame], Frame]


def program(
    step: Step,
    aggs: str = "dist bigint min",
    keys: str = "node bigint",
    edges: dict[str, str] | None = None,
    **options: Any,
) -> Program:
    """One relation ``dist`` whose step sees the joined frame's parts: itself and edges."""
    doc = Document(relation("dist", keys, aggs))
    d = doc.reference("dist")
    e = doc.source("edges", **(edges or {"src": "bigint", "dst": "bigint", "w": "bigint"}))
    return doc.program(dist=step(doc, d, e), **options)


def along(d: Frame, e: Frame, how: str = "inner", **values: Json) -> Frame:
    return d.join(e, same(d["node"], e["src"]), how).select(node=e["dst"], **values)


def value(make: Callable[[Json, Json], Json], aggs: str = "dist bigint min", **options: Any) -> Plan:
    """The plan of a step whose dist is made of dist and w."""
    return compile_program(program(lambda _, d, e: along(d, e, dist=make(d["dist"], e["w"])), aggs, **options))


def filtered(make: Callable[[Json, Json], Json], aggs: str = "dist bigint min", **options: Any) -> Plan:
    """The plan of a step that adds w and filters."""
    return compile_program(
        program(
            lambda _, d, e: (
                d.join(e, same(d["node"], e["src"]))
                .where(make(d["dist"], e["w"]))
                .select(node=e["dst"], dist=add(d["dist"], e["w"]))
            ),
            aggs,
            **options,
        )
    )


def refused(kind: type[ParalaggError], code: str, make: Callable[[], object], *texts: str) -> ParalaggError:
    with pytest.raises(kind) as caught:
        make()
    assert caught.value.code == code
    for text in texts:
        assert text in str(caught.value)
    return caught.value


def unsupported(step: Step, *texts: str, aggs: str = "dist bigint min", **more: Any) -> ParalaggError:
    error = refused(
        UnsupportedError, "PARALAGG_STEP_UNSUPPORTED", lambda: compile_program(program(step, aggs, **more)), *texts
    )
    assert error.place is not None
    assert "dist" in error.place
    return error


# Schemas


def test_a_dropped_column_is_missing() -> None:
    error = refused(
        UsageError,
        "PARALAGG_STEP_COLUMNS_MISSING",
        lambda: program(lambda _, d, e: d.join(e, same(d["node"], e["src"])).select(node=e["dst"])),
        "'dist'",
    )
    assert error.place == "step of dist"


def test_an_added_column_is_extra() -> None:
    refused(
        UsageError,
        "PARALAGG_STEP_COLUMNS_EXTRA",
        lambda: program(lambda _, d, e: along(d, e, dist=d["dist"], hop=d["dist"])),
        "'hop'",
    )


def test_a_retyped_column_names_both_types() -> None:
    refused(
        UsageError,
        "PARALAGG_STEP_COLUMNS_TYPE",
        lambda: program(lambda _, d, e: along(d, e, dist=cast(d["dist"], "double"))),
        "double",
        "bigint",
    )


# What a rule cannot say


OUTER_JOINS = {"rightouter": "right outer join with a recursive left side", "fullouter": "full outer join"}


@pytest.mark.parametrize("how", OUTER_JOINS)
def test_outer_joins(how: str) -> None:
    unsupported(lambda _, d, e: along(d, e, how, dist=d["dist"]), OUTER_JOINS[how])


def test_windows_sorts_and_limits_are_named() -> None:
    for name in ("Window", "Sort", "GlobalLimit"):
        unsupported(lambda _, d, e, name=name: along(d, e, dist=d["dist"]).opaque(name), name)


@pytest.mark.parametrize(
    ("operator", "advice"),
    [
        ("Window", "declare the aggregate in aggs"),
        ("GlobalLimit", "limit the result"),
        ("MapInPandas", "pyspark.sql.functions"),
        ("Generate", "explode the array before the recursion"),
        ("Unknown", "write the step with joins, filters and unions"),
    ],
)
def test_a_refused_operator_has_a_hint_of_its_own(operator: str, advice: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        program(lambda _, d, e: along(d, e, dist=d["dist"]).opaque(operator))
    assert advice in (error.value.hint or "")
    assert 'mode="iterate"' in (error.value.hint or "")


@pytest.mark.parametrize("how", OUTER_JOINS)
def test_an_outer_join_has_a_hint_of_its_own(how: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        program(lambda _, d, e: along(d, e, how, dist=d["dist"]))
    assert "r.join(other, …, 'left')" in (error.value.hint or "")


def test_python_udf_has_a_hint_of_its_own() -> None:
    udf = call("PythonUDF", lit(1, "bigint"), type_="bigint", codegen=False)
    with pytest.raises(UnsupportedError) as error:
        program(lambda _, d, e: along(d, e, dist=udf))
    assert "pyspark.sql.functions" in (error.value.hint or "")


def test_python_udf() -> None:
    udf = lambda d: call("PythonUDF", d["dist"], type_="bigint", codegen=False)  # noqa: E731
    unsupported(lambda _, d, e: along(d, e, dist=udf(d)), "Python UDF")


def test_a_function_that_spark_interprets() -> None:
    fn = lambda d: call("JsonTuple", d["dist"], type_="bigint", codegen=False)  # noqa: E731
    unsupported(lambda _, d, e: along(d, e, dist=fn(d)), "JsonTuple")


def test_non_deterministic_function() -> None:
    error = refused(
        UnsupportedError,
        "PARALAGG_NONDETERMINISTIC",
        lambda: program(lambda _, d, e: along(d, e, dist=call("Rand", lit(1), type_="bigint", deterministic=False))),
        "Rand",
    )
    assert error.place == "step of dist"


def test_distinct_under_a_sum() -> None:
    unsupported(lambda _, d, e: along(d, e, dist=d["dist"]).distinct(), "distinct", aggs="dist bigint sum")


def test_anti_join_with_the_growing_relation() -> None:
    def step(doc: Document, d: Frame, e: Frame) -> Frame:
        seen = doc.reference("dist")
        return (
            d.join(e, same(d["node"], e["src"]))
            .join(seen, same(e["dst"], seen["node"]), "leftanti")
            .select(node=e["dst"], dist=d["dist"])
        )

    unsupported(step, "anti join", "still grows")


def test_anti_join_on_an_inequality() -> None:
    def step(doc: Document, d: Frame, e: Frame) -> Frame:
        b = doc.source("banned", id="bigint")
        return (
            d.join(b, holds("LessThan", d["node"], b["id"]), "leftanti")
            .join(e, same(d["node"], e["src"]))
            .select(node=e["dst"], dist=d["dist"])
        )

    unsupported(step, "anti join on more than equal columns")


def test_semi_join_with_the_growing_relation_under_a_sum() -> None:
    def step(doc: Document, d: Frame, e: Frame) -> Frame:
        seen = doc.reference("dist")
        return (
            d.join(seen, same(d["node"], seen["node"]), "leftsemi")
            .join(e, same(d["node"], e["src"]))
            .select(node=e["dst"], dist=d["dist"])
        )

    unsupported(step, "semi join", aggs="dist bigint sum")


def test_another_aggregate_than_the_declared() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        return d.join(e, same(d["node"], e["src"])).group(
            [e["dst"]], node=e["dst"], dist=call("agg:max", d["dist"], type_="bigint")
        )

    unsupported(step, "max(dist) of a groupBy", "min")


def test_a_constant_beside_the_sum_of_a_group() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        total = call("agg:sum", d["dist"], type_="double")
        return d.join(e, same(d["node"], e["src"])).group([e["dst"]], node=e["dst"], dist=add(total, 0.15))

    unsupported(step, "0.15", aggs="dist double sum")


def test_having() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        least = call("agg:min", d["dist"], type_="bigint")
        g = d.join(e, same(d["node"], e["src"])).group([e["dst"]], node=e["dst"], dist=least)
        return g.where(holds("GreaterThan", g["dist"], lit(5, "bigint")))

    unsupported(step, "HAVING")


def test_a_new_string_is_made_in_the_head() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        longer = call("Concat", d["name"], e["tail"], type_="string")
        return d.join(e, same(d["name"], e["src"])).select(name=longer)

    plan = compile_program(program(step, "", "name string", {"src": "string", "tail": "string"}))
    assert plan.strata[0].makes_strings


def test_a_constant_string_in_the_head_is_made() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        return d.join(e, same(d["name"], e["src"])).select(name=lit("x"))

    plan = compile_program(program(step, "", "name string", {"src": "string"}))
    assert plan.strata[0].makes_strings


def test_strings_are_read_in_conditions_and_copied() -> None:
    def step(_: Document, d: Frame, e: Frame) -> Frame:
        return d.join(e, same(d["name"], e["src"])).where(holds("Like", e["dst"], d["name"])).select(name=e["dst"])

    plan = compile_program(program(step, "", "name string", {"src": "string", "dst": "string"}))
    assert plan.strata[0].relation_class == "lattice"
    assert not plan.strata[0].makes_strings


def test_types_without_a_word() -> None:
    unsupported(
        lambda _, d, e: along(d, e, dist=e["w"]),
        "decimal(38,2)",
        aggs="dist decimal(38,2) min",
        edges={"src": "bigint", "dst": "bigint", "w": "decimal(38,2)"},
    )
    unsupported(
        lambda _, d, e: along(d, e, dist=e["w"]),
        "array<int>",
        aggs="dist array<int> min",
        edges={"src": "bigint", "dst": "bigint", "w": "array<int>"},
    )


# What the check refuses


def test_a_dependent_as_join_key() -> None:
    step: Step = lambda _, d, e: d.join(e, same(d["dist"], e["src"])).select(node=e["dst"], dist=d["dist"])  # noqa: E731
    error = refused(
        VerificationError,
        "PARALAGG_JOIN_ON_DEPENDENT",
        lambda: compile_program(program(step)),
        "dist.dist",
        "dist = src",
    )
    assert (error.place, error.value) == ("step of dist", "dist")


def test_a_dependent_as_key_of_the_head() -> None:
    step: Step = lambda _, d, e: d.join(e, same(d["node"], e["src"])).select(node=d["dist"], dist=e["w"])  # noqa: E731
    error = refused(
        VerificationError, "PARALAGG_DEPENDENT_AS_KEY", lambda: compile_program(program(step)), "the key node is dist"
    )
    assert (error.place, error.value) == ("step of dist", "dist")


@pytest.mark.parametrize(
    ("make", "aggs", "example"),
    [
        (lambda d, _: times(d, -1), "dist bigint min", "dist=1 improves dist=2, but dist * -1 gives -1, worse than -2"),
        (
            lambda d, w: subtract(w, d),
            "dist bigint min",
            "with w=1: dist=1 improves dist=2, but w - dist gives 0, worse than -1",
        ),
        (lambda d, _: times(d, d), "dist bigint min", "dist=-1 improves dist=0, but dist * dist gives 1, worse than 0"),
        (
            lambda d, _: call("Remainder", d, lit(3, "bigint"), type_="bigint"),
            "dist bigint max",
            "dist=3 improves dist=2",
        ),
        (
            lambda d, _: call("Coalesce", d, lit(0, "bigint"), type_="bigint"),
            "dist bigint min",
            "dist=1 improves dist=null",
        ),
    ],
)
def test_values_that_get_worse(make: Callable[[Json, Json], Json], aggs: str, example: str) -> None:
    error = refused(VerificationError, "PARALAGG_NOT_MONOTONE", lambda: value(make, aggs), example, 'mode="iterate"')
    assert (error.place, error.value) == ("step of dist", "dist")


@pytest.mark.parametrize("mode", ["auto", "trust"])
def test_filters_that_lose_rows(mode: str) -> None:
    text = "dist=1 improves dist=2, but no longer passes dist > 1"
    refused(
        VerificationError,
        "PARALAGG_NOT_MONOTONE",
        lambda: filtered(lambda d, _: holds("GreaterThan", d, lit(1, "bigint")), mode=mode),
        text,
    )
    refused(
        VerificationError,
        "PARALAGG_NOT_MONOTONE",
        lambda: filtered(lambda d, _: same(d, lit(1, "bigint")), "dist bigint max", mode=mode),
    )
    refused(VerificationError, "PARALAGG_NOT_MONOTONE", lambda: filtered(lambda d, _: holds("IsNull", d), mode=mode))


def test_a_factor_of_unknown_sign_names_the_assumption() -> None:
    refused(
        VerificationError,
        "PARALAGG_NOT_PROVED",
        lambda: value(times, "dist double max", edges={"src": "bigint", "dst": "bigint", "w": "double"}),
        'assume="w >= 0"',
        'mode="trust"',
    )


def test_an_opaque_function_is_not_proved_and_can_be_trusted() -> None:
    make = lambda d, _: call("Crc32", d, type_="bigint")  # noqa: E731
    refused(VerificationError, "PARALAGG_NOT_PROVED", lambda: value(make), "crc32(dist)", 'mode="trust"')
    plan = value(make, mode="trust")
    assert plan.strata[0].relation_class == "lattice"
    assert any("trusted by the user" in r for r in plan.reasons)


@pytest.mark.parametrize(("mode", "how"), [("auto", "which is checked for each row"), ("trust", "trusted by the user")])
def test_what_a_proof_needs_of_the_data_is_checked_or_trusted(mode: str, how: str) -> None:
    plan = value(lambda d, _: call("Least", d, lit(5, "bigint"), type_="bigint"), "dist bigint max", mode=mode)
    assert [r for r in plan.reasons if "not null" in r] == [f"dist.dist is not null, {how}"]
    assert ("Present" in str(plan.to_json())) == (mode == "auto")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda n, _: add(n, 1), "n=1 and n=2 give 2 and 3, but their sum n=3 gives 4, not 5"),
        (lambda n, _: times(n, n), "n=1 and n=2 give 1 and 4, but their sum n=3 gives 9, not 5"),
        (
            lambda n, w: call("Least", n, w, type_="bigint"),
            "with w=1: n=1 and n=2 give 1 and 1, but their sum n=3 gives 1, not 2",
        ),
        (lambda _, w: w, "counts reached keys instead of rows"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "trust"])
def test_sums_that_are_not_linear(make: Callable[[Json, Json], Json], says: str, mode: str) -> None:
    step: Step = lambda _, d, e: d.join(e, same(d["node"], e["src"])).select(node=e["dst"], n=make(d["n"], e["w"]))  # noqa: E731
    error = refused(
        VerificationError,
        "PARALAGG_NOT_LINEAR",
        lambda: compile_program(program(step, "n bigint sum", mode=mode)),
        says,
    )
    assert (error.place, error.value) == ("step of dist", "n")


def test_a_count_without_its_column_counts_keys() -> None:
    step: Step = lambda _, d, e: d.join(e, same(d["node"], e["src"])).select(node=e["dst"])  # noqa: E731
    refused(
        VerificationError,
        "PARALAGG_NOT_LINEAR",
        lambda: compile_program(program(step, "n bigint count")),
        "counts reached keys",
    )


def test_a_sum_over_a_product_of_two_recursive_atoms() -> None:
    def step(doc: Document, d: Frame, _: Frame) -> Frame:
        other = doc.reference("dist")
        return d.join(other, same(d["node"], other["node"])).select(node=d["node"], n=times(d["n"], other["n"]))

    refused(
        VerificationError,
        "PARALAGG_NOT_LINEAR",
        lambda: compile_program(program(step, "n bigint sum")),
        "dist with dist",
    )


def test_a_filter_on_a_sum() -> None:
    step: Step = (  # noqa: E731
        lambda _, d, e: (
            d.join(e, same(d["node"], e["src"]))
            .where(holds("GreaterThan", d["n"], lit(1, "bigint")))
            .select(node=e["dst"], n=d["n"])
        )
    )
    refused(VerificationError, "PARALAGG_NOT_LINEAR", lambda: compile_program(program(step, "n bigint sum")), "n > 1")


def test_a_label_along_a_widest_path() -> None:
    error = refused(
        VerificationError,
        "PARALAGG_NOT_MONOTONE",
        lambda: compile_program(programs.labels(least=True)),
        "label",
        "stays",
    )
    assert error.value == "label"


def test_kinds_that_do_not_mix() -> None:
    step: Step = lambda _, d, e: along(d, e, dist=d["dist"], n=d["n"])  # noqa: E731
    aggs = "dist bigint min, n bigint sum"
    refused(VerificationError, "PARALAGG_MIXED_AGGREGATES", lambda: compile_program(program(step, aggs)), "min, sum")
    assert compile_program(program(step, aggs, mode="iterate")).strata[0].relation_class == "iterated"


# The ways out


def test_an_assumption_proves_a_factor() -> None:
    plan = compile_program(programs.most_probable(assume=parse_assumptions("p >= 0")))
    assert plan.strata[0].relation_class == "lattice"
    assert any("p >= 0" in r for r in plan.reasons)


def test_a_filter_proves_a_factor_as_well() -> None:
    step: Step = (  # noqa: E731
        lambda _, d, e: (
            d.join(e, same(d["node"], e["src"]))
            .where(holds("GreaterThan", e["w"], cast(0, "bigint")))
            .select(node=e["dst"], dist=times(d["dist"], e["w"]))
        )
    )
    assert compile_program(program(step)).strata[0].relation_class == "lattice"


@pytest.mark.parametrize("make", [lambda d, _: times(d, -1), lambda d, _: call("Crc32", d, type_="bigint")])
def test_iterate_takes_what_the_check_refuses(make: Callable[[Json, Json], Json]) -> None:
    plan = value(make, mode="iterate")
    [stratum] = plan.strata
    assert (stratum.relation_class, stratum.in_place, stratum.rules[0].driver.version) == ("iterated", False, "full")
