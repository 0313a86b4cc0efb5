"""Reduce a text to one Program for the requested relations, for engines that run the whole Program at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import without_rows
from pyspark_paralagg.compile.rewrite.trace_paths import trace_paths
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.program import Column, Relation
from pyspark_paralagg.program.traced import traced

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.program.program import Input, Program
    from pyspark_paralagg.program.question import Question


def requested_program(resolved: Resolved, names: Sequence[str], question: Question | None = None) -> Program:
    """Return the Program of the relations ``names`` and those that they need, with the answer to ``question``.

    A relation without rules has the rows of its source, without duplicates. Without a question, the relations that
    compute hops and paths are part of it.
    """
    program = resolved.program
    needs = Dependencies(program)
    source_ids = {source.relation: number for number, source in enumerate(resolved.sources)}
    without_rules = tuple(
        Relation(name, tuple(Column(c.name, c.type) for c in resolved.sources[source_ids[name]].columns), (), base.id)
        for name in dict.fromkeys(names)
        if name not in needs.strata
        for base in program.inputs
        if base.source == source_ids[name]
    )
    requested = _needed(program, names)
    requested = replace(requested, relations=(*requested.relations, *without_rules))
    empty = {n for n, s in enumerate(resolved.sources) if not s.rows and not s.is_external}
    if question is not None and any(r.numbered for r in requested.relations):
        message = f"`autoinc()` numbers rows that `{names[0]}` is derived from, and a proof does not show why"
        hint = "ask about the relations whose rows are numbered"
        raise UnsupportedError("PARALAGG_WHY_UNSUPPORTED", message, value="autoinc", hint=hint)
    if question is None:
        return _needed(trace_paths(whole_program(requested, empty)), [result_name(program, n) for n in names])
    inputs = (i if i.relation is not None else _named(i, resolved, empty) for i in requested.inputs)
    relations = (replace(r, traces=()) for r in requested.relations)
    requested = question.rewrite(replace(requested, relations=tuple(relations), inputs=tuple(inputs)))
    return whole_program(requested, empty)


def _named(rows: Input, resolved: Resolved, empty: Container[int]) -> Input:
    """Return an input with the name of its relation, for messages."""
    named = replace(rows, name=resolved.sources[rows.source].relation)
    return without_rows(named) if rows.source in empty else named


def result_name(program: Program, name: str) -> str:
    """Return the relation that has the rows of ``name``, with what its hops and paths are made of."""
    relation = next((r for r in program.relations if r.name == name), None)
    return name if relation is None or not relation.traces else traced(relation).result.name


def _needed(program: Program, names: Sequence[str]) -> Program:
    """Return the Program of the relations ``names`` and those that they need."""
    needs = Dependencies(program)
    needed = {other for n in names if n in needs.strata for other in needs.reached(n)} | {*names}
    return replace(
        program,
        relations=tuple(r for r in program.relations if r.name in needed),
        rules=tuple(r for r in program.rules if r.head in needed),
        limits=tuple(x for x in program.limits if x.relation in needed),
    )


def recursion_of(program: Program, name: str) -> tuple[str, ...] | None:
    """Return the relations of the recursion that ``name`` is part of, else of the last that it needs; None if none."""
    needs = Dependencies(program)
    if name not in needs.strata:
        return None
    reached = needs.reached(name)
    recursions = [names for n, names in needs.strata.items() if n in reached and needs.recursive_rules(n)]
    return needs.strata[name] if needs.strata[name] in recursions else next(reversed(recursions), None)
