"""Answer a question of the JVM; both are JSON objects. Problems are raised as ``ParalaggError``.

``declare`` returns the column types of one relation, from the types of its branches and the aggregates in its head.
``compile`` returns the Plan of an analysed recursion, stratum by stratum, as ``backends.spark`` makes it of a step.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.collected import CollectSet
from pyspark_paralagg.api.relations import make_relation
from pyspark_paralagg.api.routes import routes_json
from pyspark_paralagg.compile.compile_step import compile_step
from pyspark_paralagg.compile.prove.check_early_aggregation import check_early_aggregation
from pyspark_paralagg.errors import ParalaggError, UnsupportedError, UsageError, VerificationError
from pyspark_paralagg.program.aggregators import AGGREGATORS, MaxBy, MinBy
from pyspark_paralagg.program.sets import COLLECT_SET
from pyspark_paralagg.program.step import branch_place
from pyspark_paralagg.program.trace import Hops, Path
from pyspark_paralagg.program.traced import traced
from pyspark_paralagg.session import conf
from pyspark_paralagg.sql.kept_rows import NotComparedError, omitted, ways

if TYPE_CHECKING:
    from pyspark_paralagg.api.dependents import Aggregation
    from pyspark_paralagg.compile.compile_step import CompiledStep
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Relation
    from pyspark_paralagg.sql.kept_rows import Compared

_TRACES: dict[str, type[Path | Hops]] = {"path": Path, "hops": Hops}
_ONLY_ENGINE = "use df.recursive_agg, because SQL queries run only on the Spark engine and not on plain DataFrames"
_DUCKDB_NAMES = {"arg_min": MinBy.aggregator, "arg_max": MaxBy.aggregator, "bool_or": "any", "bool_and": "all"}
_NO_MODE = "use df.recursive_agg to set a mode, because SQL has none"


class HeadError(Exception):
    """An error in the aggregate of the column ``column`` in a head; without ``relation``, that of the question."""

    def __init__(self, cause: ParalaggError, column: str, relation: str | None = None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.column = column
        self.relation = relation


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to ``question``, whose ``op`` is ``declare`` or ``compile``.

    Raises ``HeadError`` for an aggregate in a head, and the compiler's ``UsageError``, ``VerificationError`` or
    ``UnsupportedError``.
    """
    if question["op"] == "declare":
        return _declare(question)
    return _compile(question)


def _declare(question: dict[str, Any]) -> dict[str, Any]:
    """Return ``{"types": […]}``, in the order of the question's columns."""
    left_out = omitted(question)
    aggs = {c: a for c, a in question["aggs"].items() if c not in left_out}
    relation = _relation({**question, "aggs": aggs}, 0)
    types = {c.name: c.type for c in relation.columns}
    return {"types": [types[name] for name, _ in question["columns"]]}


def _compile(question: dict[str, Any]) -> dict[str, Any]:
    """Return ``strata``, a list of ``{"relations": […], "plan": "…"}``; a plan is the text that the engine reads.

    ``result`` is the relation with the rows of the question's, ``routes`` says how to make its paths, if it has some.
    """
    compiled, relations = _compiled(question)
    if question["only_lattice"]:
        _check_lattice(compiled.plan)
        check_early_aggregation(compiled.program)
    first_result = len(question["analysis"]["sources"]) + len(question["relations"])
    result = _result(next(r for r in relations if r.name == question["name"]))
    strata = [
        {"relations": names, "plan": json.dumps(compiled.to_json(plan))}
        for names, plan in compiled.strata(first_result, [result["result"]])
    ]
    return {"strata": strata, **result}


def _result(relation: Relation) -> dict[str, Any]:
    if not relation.traces:
        return {"result": relation.name}
    result = traced(relation).result
    columns = [c.name for c in relation.columns] + [t.name for t in relation.traces]
    has_paths = any(isinstance(t.kind, Path) for t in relation.traces)
    return {"result": result.name, "routes": routes_json(relation, columns) if has_paths else None}


def _compiled(question: dict[str, Any]) -> tuple[CompiledStep, list[Relation]]:
    """Compile with the first choice of aggregates for omitted columns that the branches show to be right."""
    failed: list[NotComparedError | HeadError | ParalaggError] = []
    for way in ways(question["relations"]):
        try:
            return _compiled_as(question, *way)
        except (NotComparedError, HeadError, ParalaggError) as problem:  # noqa: PERF203 - mostly there is one way
            failed.append(problem)
    # A proof that fails comes after the comparisons. Other errors may be due to the wrong choice.
    refused = next((p for p in failed if isinstance(p, VerificationError)), None)
    not_compared = next((p for p in failed if isinstance(p, NotComparedError)), None)
    if refused is None and not_compared is not None:
        raise HeadError(_unknown_row(not_compared), not_compared.column, not_compared.relation)
    raise refused or failed[0]


def _unknown_row(problem: NotComparedError) -> UsageError:
    column = problem.column
    message = f"USING KEY has no aggregate for {column}, so {column} of a key would depend on the order of evaluation"
    hint = (
        f"write min({column}), max({column}) or min_by({column}, d) into the clause; no mode keeps the last row. "
        f"Without it, each recursive branch must compare its {column} by < or > with that of the key in recurring."
        f"{problem.relation}"
    )
    return UsageError("PARALAGG_SQL_USING_KEY", message, value=column, hint=hint)


def _compiled_as(
    question: dict[str, Any], declarations: list[dict[str, Any]], compared: Compared
) -> tuple[CompiledStep, list[Relation]]:
    relations = [_without_functions(_relation(r, 2 * n)) for n, r in enumerate(declarations)]
    broadcast, climb_limit = (
        conf.parse(key, question["conf"].get(key.name), "SQL")
        for key in (conf.BROADCAST_MAX_BYTES, conf.CLIMB_MAX_ITERATIONS)
    )
    try:
        compiled = compile_step(
            question["analysis"],
            relations,
            broadcast,
            rewrite=compared.rewrite,
            packs=True,
            name=question["name"],
            max_iterations=question.get("max_iterations"),
            climb_limit=climb_limit,
        )
    except (UnsupportedError, VerificationError) as problem:
        advice = _ONLY_ENGINE if isinstance(problem, UnsupportedError) else _NO_MODE
        hint = f"{problem.hint}; {advice}" if problem.hint else advice
        raise type(problem)(
            problem.code, problem.message, value=problem.value, place=problem.place, hint=hint
        ) from None
    return compiled, relations


def _without_functions(relation: Relation) -> Relation:
    """Return ``relation`` as the Plan has it: without the Python functions of sets."""
    dependents = (
        d if d.custom is None else replace(d, custom=replace(d.custom, source=None)) for d in relation.dependents
    )
    return replace(relation, dependents=tuple(dependents))


def _check_lattice(plan: Plan) -> None:
    other = next((s.relation_class for s in plan.strata if s.relation_class != "lattice"), None)
    if other is not None:
        raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", f"the recursion is {other}, not a lattice", value=other)


def located(problem: ParalaggError, question: dict[str, Any]) -> dict[str, Any]:
    """Return the ``relation`` and the ``branch`` (from 0) that are the place of ``problem``, as far as it names them.

    >>> located(UsageError("X", "m", place="step of b, branch 2"), {"relations": [{"name": "b", "branches": 2}]})
    {'relation': 'b', 'branch': 1}
    """
    for relation in question.get("relations", ()):
        name, branches = relation["name"], relation["branches"]
        for n in range(branches):
            if problem.place == branch_place(name, n + 1, branches):
                return {"relation": name, "branch": n}
        if problem.place in (f"relation {name}", branch_place(name)):
            return {"relation": name}
    return {}


def _relation(declaration: dict[str, Any], input_id: int) -> Relation:
    columns = [(name, type_) for name, type_ in declaration["columns"]]
    for column in declaration["aggs"]:
        if [name for name, _ in columns].count(column) > 1:
            message, hint = f"the column {column!r} is both a key and aggregated", "rename one of the two columns"
            raise HeadError(UsageError("PARALAGG_KEY_AGGREGATED", message, value=column, hint=hint), column)
    aggs: dict[str, Aggregation] = {c: _aggregation(c, a) for c, a in declaration["aggs"].items()}
    traces = {c: _TRACES[a["function"]](a.get("argument")) for c, a in declaration.get("traces", {}).items()}
    # Columns that follow another one come last, so that the first failing prefix ends with the wrong column.
    ordered = sorted(aggs, key=lambda c: isinstance(aggs[c], MinBy | MaxBy))
    keys = [name for name, _ in columns if name not in aggs]
    for n, column in enumerate(ordered):
        prefix = [c for c in columns if c[0] not in ordered[n + 1 :]]
        try:
            make_relation(declaration["name"], prefix, keys, {c: aggs[c] for c in ordered[: n + 1]}, input_id)
        except ParalaggError as problem:
            raise HeadError(problem, column) from problem
    in_order = {c: aggs[c] for c, _ in columns if c in aggs}
    try:
        return make_relation(declaration["name"], columns, keys, {**in_order, **traces}, input_id)
    except UsageError as problem:
        if problem.code != "PARALAGG_PATH":
            raise
        column = next((c for c in traces if c == problem.value), next(iter(traces)))
        if column in dict(columns) or not keys:  # this is not about the order
            raise HeadError(problem, column) from problem
        order = next((c for c, a in in_order.items() if a in {"min", "max"}), "dist")
        example = f"{declaration['traces'][column]['function']}({order}) AS {column}"
        hint = f"aggregate a column by min() or max(), and name it, as in {example}"
        raise HeadError(UsageError(problem.code, problem.message, value=problem.value, hint=hint), column) from problem


def _aggregation(column: str, call: dict[str, Any]) -> Aggregation:
    """Return the value of ``aggs`` for ``min()`` or ``min_by(dist)``; in USING KEY, for ``min_by(parent, dist)``."""
    function, argument = str(call["function"]), call.get("argument")
    is_clause = bool(call.get("using_key"))
    if is_clause:
        function = _DUCKDB_NAMES.get(function, function)
        _check_meaning(column, function)
    if function == COLLECT_SET:
        return _collect_set(column, argument, is_clause=is_clause)
    aggregator = AGGREGATORS.get(function)
    parameters = aggregator.parameters if aggregator is not None else ""
    if parameters == "order" and argument is not None:
        return MinBy(argument) if function == MinBy.aggregator else MaxBy(argument)
    where = "USING KEY" if is_clause else "a head"
    if parameters == "order":
        written = f"{function}({column})" if is_clause else f"{function}()"
        advice = f"{function}({column}, dist)" if is_clause else f"{function}(dist) AS {column}"
        message, hint = f"{written} in {where} names no column that decides", f"name one, as in {advice}"
    elif parameters == "witnesses":
        message, hint = f"{function} is not allowed in {where}", "use df.recursive_agg or Datalog, which support it"
    elif aggregator is not None and argument is not None and is_clause:
        message = f"{function}({column}, {argument}) in {where}: {function} takes one column there"
        hint = f"write {function}({column})"
    elif aggregator is not None and argument is not None:
        message = f"{function}({argument}) in {where}: {function}() takes no argument there"
        hint = f"write {function}() AS {column}; the branches supply its values"
    else:
        return function
    raise HeadError(UsageError("PARALAGG_SQL_HEAD_ARGUMENT", message, value=argument, hint=hint), column)


def _collect_set(column: str, limit: str | None, *, is_clause: bool) -> CollectSet:
    """Return the aggregate of ``collect_set(10) AS owners``; in USING KEY, of ``collect_set(owners, 10)``."""
    if limit is not None and re.fullmatch("0*[1-9][0-9]{0,8}", limit):
        return CollectSet(int(limit))
    written = ", ".join([column] * is_clause + ([] if limit is None else [limit]))
    message = f"collect_set({written}) in {'USING KEY' if is_clause else 'a head'} has no limit"
    example = f"collect_set({column}, 10)" if is_clause else f"collect_set(10) AS {column}"
    hint = f"write the largest number of elements that a set may have: {example}"
    raise HeadError(UsageError("PARALAGG_SQL_HEAD_ARGUMENT", message, value=limit, hint=hint), column)


def _check_meaning(column: str, function: str) -> None:
    """Refuse ``count`` in a USING KEY clause: DuckDB counts rows there, and a head adds the selected numbers."""
    if function == "count":
        message = f"count({column}) in USING KEY: in a recursion, count adds the numbers that the branches select"
        hint = f"select 1 in the branches and write sum({column}), or write the head as count() AS {column}"
        raise HeadError(UsageError("PARALAGG_SQL_USING_KEY", message, value=function, hint=hint), column)
