"""Say what to write instead of an operator that a step cannot have: the hint of ``PARALAGG_STEP_UNSUPPORTED``."""

from __future__ import annotations

_ANY_STEP = 'or use mode="iterate", which runs any step and recomputes all rows each round'
_BEFORE = "compute it before the recursion, as a DataFrame that the step joins, or from the result"
_PYTHON = "write it with Spark's functions (pyspark.sql.functions), or compute it before the recursion and join it"
_LIMIT = "bound the values with a filter in the step or the rounds with max_iterations, and limit the result"
_WINDOW = "declare the aggregate in aggs: min, max or min_by keep one row for each key"
_SUBQUERY = "join with its table, or collect its value before the recursion and pass it as a literal"
_OUTER = "keep the rows of the relation's side, as in r.join(other, …, 'left'), or use an inner join"
_LAMBDA = "compute it before the recursion, as a column of the base or of a joined DataFrame"

_HINTS = {
    "a Python UDF": _PYTHON,
    "MapInPandas": _PYTHON,
    "MapInArrow": _PYTHON,
    "PythonMapInArrow": _PYTHON,
    "MapPartitions": _PYTHON,
    "FlatMapGroupsInPandas": _PYTHON,
    "FlatMapGroupsInArrow": _PYTHON,
    "ArrowEvalPython": _PYTHON,
    "BatchEvalPython": _PYTHON,
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "Limit": _LIMIT,
    "Tail": _LIMIT,
    "Offset": _LIMIT,
    "Window": _WINDOW,
    "a window function": _WINDOW,
    "Sample": _BEFORE,
    "Generate": "explode the array before the recursion, into a DataFrame that the step joins",
    "Pivot": _BEFORE,
    "Expand": _BEFORE,
    "a subquery": _SUBQUERY,
    "a correlated subquery": "group its table by the compared columns before the recursion, and join that",
    "a subquery below OR": "write a branch of the union for each side of the OR",
    "a function of a function": _LAMBDA,
    "a left outer join with a recursive right side": _OUTER,
    "a right outer join with a recursive left side": _OUTER,
    "a full outer join": _OUTER,
    "a join above an aggregate": "join before the groupBy, or leave the groupBy out: aggs groups all rows by the keys",
    "an aggregated key": "aggregate in a second relation of ra.recursive(…), and join with that relation",
    "an aggregate above an aggregate": "leave the groupBy out of the step: aggs groups all rows by the keys",
    "a filter on an aggregate's result (HAVING)": "filter the relation's column in the next step: r.filter(…)",
}


def instead_of(operator: str) -> str:
    """Return what to write instead of ``operator``, as the message of the refusal names it.

    >>> instead_of("Sample in the step")[:71]
    'compute it before the recursion, as a DataFrame that the step joins, or'
    """
    other = _LAMBDA if operator.startswith("the function ") else "write the step with joins, filters and unions"
    return f"{_HINTS.get(operator.removesuffix(' in the step'), other)}, {_ANY_STEP}"


def instead_of_aggregate(column: str, declared: str) -> str:
    """Return what to write instead of a groupBy whose ``column`` has another aggregate than the ``declared`` one."""
    return (
        f"leave the groupBy out of the step: the relation keeps the {declared} of {column!r} for each key. "
        f"A mean is a sum and a count, divided in the result. {_ANY_STEP.removeprefix('or ').capitalize()}"
    )
