"""Codes for the proof that an aggregate may recurse, and for steps that no rule can express."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

PROOF = (
    ErrorCode(
        "PARALAGG_NOT_MONOTONE",
        "VerificationError",
        cause="A value or a filter can turn a better input of the aggregate into a worse output. "
        "Semi-naive evaluation could then keep a wrong row. The message shows a counterexample.",
        remedy='Write the step so that better inputs give better outputs, or use `mode="iterate"`.',
        example="""
            .decl edge(x: number, y: number, w: number)
            .input edge
            .decl dist(x: number, d: number)
            dist(0, 0).
            dist(y, $MIN(w - d)) :- dist(x, d), edge(x, y, w).
        """,
    ),
    ErrorCode(
        "PARALAGG_NOT_LINEAR",
        "VerificationError",
        cause="A `sum` or `count` feeds back into itself through a rule that is not linear in it. "
        "The step of a sum then differs from the sum of the steps. A mean is never linear.",
        remedy='Multiply and add only values from outside of the recursion, or use `mode="iterate"`. '
        "For a mean, aggregate a sum and a count, and divide after the recursion.",
        example="""
            .decl edge(x: number, y: number)
            .input edge
            .decl paths(x: number, y: number, n: number)
            paths(x, y, $SUM(1)) :- edge(x, y).
            paths(x, z, $SUM(m * n)) :- paths(x, y, m), paths(y, z, n).
        """,
    ),
    ErrorCode(
        "PARALAGG_NOT_PROVED",
        "VerificationError",
        cause="The check neither proves nor refutes that the aggregate may recurse through this step. "
        "Often the proof depends on the data, such as on the sign of a column.",
        remedy='Add the `assume=` of the hint if it holds, or use `mode="iterate"`, '
        'or `mode="trust"` if you know that the step is monotone.',
        example="""
            .decl move(x: number, y: number, p: float)
            .input move
            .decl best(x: number, b: float)
            best(0, 1.0).
            best(y, $MAX(b * p)) :- best(x, b), move(x, y, p).
        """,
    ),
    ErrorCode(
        "PARALAGG_NOT_STRATIFIED",
        "VerificationError",
        cause="A negation or a body aggregate in a Datalog text reads a relation that depends on its result.",
        remedy="Compute the negated relation from relations that do not read the result. "
        "Aggregate in the head: `$MIN`, `$MAX`, `$SUM`, `$MCOUNT`.",
        example="""
            .decl edge(x: number, y: number)
            .input edge
            p(x) :- edge(x, y), !p(y).
        """,
    ),
    ErrorCode(
        "PARALAGG_DEPENDENT_AS_KEY",
        "VerificationError",
        cause="A key of the result is computed from a column that the recursion aggregates. "
        "The key changes while the aggregate improves, and the rows of earlier keys stay.",
        remedy="Compute keys from keys, or read the aggregated column in a later query.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0L AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r.selectExpr("dist AS node", "dist"))
        """,
    ),
    ErrorCode(
        "PARALAGG_JOIN_ON_DEPENDENT",
        "VerificationError",
        cause="The step joins on a column that the recursion aggregates. "
        "The join partner changes while the aggregate improves.",
        remedy="Join on a key, or read the aggregated column in a later query.",
        example="""
            .decl edge(x: number, y: number)
            .input edge
            .decl dist(x: number, d: number)
            dist(0, 0).
            dist(y, $MIN(d)) :- dist(_, d), edge(d, y).
        """,
    ),
    ErrorCode(
        "PARALAGG_MIXED_AGGREGATES",
        "VerificationError",
        cause="Relations that read each other mix aggregates that keep the best value with aggregates that add up. "
        "Columns of one relation can also mix them.",
        remedy='Compute one after the other, or use `mode="iterate"`.',
        example="""
            .decl edge(x: number, y: number)
            .input edge
            .decl mass(x: number, m: number, least: number)
            mass(0, 1, 0).
            mass(y, $SUM(m), $MIN(l)) :- mass(x, m, l), edge(x, y).
        """,
    ),
    ErrorCode(
        "PARALAGG_ROWS_MIXED",
        "VerificationError",
        cause="A recursive CTE with `UNION ALL` below several `min` or `max` reads two of the columns together. "
        "Early aggregation would combine values of different rows. Spark then runs its own recursion.",
        remedy="Aggregate only one column, or write the aggregates in the head of the CTE.",
        tested_by="tests/sql/test_rewrite.py",
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR_LAW",
        "VerificationError",
        cause="A user-defined aggregator breaks a law on sample values: it is not commutative or associative, "
        "returns null, or `improves`, `identity` or `inverse` contradict `combine`. "
        "An aggregator that is not idempotent and has no `inverse` cannot recurse either.",
        remedy="Correct the functions. Give `samples` if the values of the counterexample never occur, "
        "and `inverse` if the values add up.",
        example="""
            ra.aggregator("mean", lambda old, new: (old + new) / 2)
        """,
    ),
    ErrorCode(
        "PARALAGG_NONDETERMINISTIC",
        "UnsupportedError",
        cause="The step calls a function that returns a different value each time, such as `rand()`. "
        "Such a step has no fixpoint.",
        remedy="Compute the value before the recursion, as a column of the base or of a joined DataFrame.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            step = lambda r: r.selectExpr("node", "dist + rand() AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=step, backend="spark")
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_UNSUPPORTED",
        "UnsupportedError",
        cause="The step uses an operation that the engine does not support. Examples are a window, an outer join, "
        "a Python UDF, another aggregate than the declared one, and a type wider than 64 bits.",
        remedy='Write the step with joins, filters and unions, or use `mode="iterate"`, which runs any step.',
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r.limit(3), backend="spark")
        """,
    ),
    ErrorCode(
        "PARALAGG_NOT_CONTINUABLE",
        "UnsupportedError",
        cause="A refresh continues from stored rows, but the backend or the aggregate does not support it. "
        "Plain DataFrames cannot continue, and only aggregates that keep the best value can.",
        remedy='Use `backend="spark"`. `ra.delta.RecursiveTable` recomputes all rows in the other cases.',
        tested_by="tests/test_settled.py",
    ),
)
