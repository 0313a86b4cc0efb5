"""Find the columns of a stratum that may hold null in this run, from the data through the rules.

Files declare nearly every column nullable, but code for nulls is generated only for columns that hold some. All
ranks get the same result, because they vote on the inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.values import Value
from mpi_backend.codegen.writer import Sites
from mpi_backend.state.shape import RelationShape, Shape, column_types
from mpi_backend.state.types import type_of
from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpi_backend.state.facts import Facts
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule
    from pyspark_paralagg.program.expr import Expr

    Nulls = dict[str, tuple[bool, ...]]


def shape_of(
    facts: Facts, starts: Mapping[str, Sequence[bool]], payload: Mapping[int, Sequence[bool]], *, ansi: bool
) -> Shape:
    """Propagate nulls of base and initial rows (``starts``) and of ``payload`` through the rules. Return the shape."""
    current: Nulls = {r.name: tuple(starts[r.name]) for r in facts.stratum.relations}
    while True:
        after = {name: list(nulls) for name, nulls in current.items()}
        for rule in facts.stratum.rules:
            env = _environment(facts, rule, current, payload)
            for c, expr in enumerate(rule.emit):
                after[rule.head][c] |= is_nullable(expr, env, ansi=ansi)
        for r in facts.stratum.relations:
            _carry(facts, r, after)
        updated = {name: tuple(nulls) for name, nulls in after.items()}
        if updated == current:
            break
        current = updated
    widths = {r.name: len(r.keys) for r in facts.stratum.relations}
    relations = {name: RelationShape(nulls[: widths[name]], nulls[widths[name] :]) for name, nulls in current.items()}
    return Shape(relations, {i: tuple(nulls) for i, nulls in payload.items()})


def is_nullable(expr: Expr, env: Mapping[str, Value], *, ansi: bool) -> bool:
    """Return whether ``expr`` may be null in generated code. Without ANSI mode, ``x / 0`` is null."""
    writer = Expressions(Source(), dict(env), Sites(), ansi=ansi, makes_strings=True, leave=lambda: None)
    return writer.value(expr).null is not None


def _environment(  # noqa: C901 - a case for each step
    facts: Facts, rule: PlannedRule, current: Nulls, payload: Mapping[int, Sequence[bool]]
) -> dict[str, Value]:
    env: dict[str, Value] = {}

    def bind(binds: Sequence[str | None], types: Sequence[Type], nulls: Sequence[bool]) -> None:
        for name, column_type, null in zip(binds, types, nulls, strict=True):
            if name is not None:
                env[name] = Value(column_type, "v", "n" if null else None)

    driver = facts.relations[rule.driver.relation]
    bind(rule.driver.binds, column_types(driver), current[driver.name])
    for step in rule.steps:
        if isinstance(step, Filter):
            continue
        if step.kind != "anti":
            for key in step.keys:
                if isinstance(key, Col):
                    env[key.name] = Value(type_of(key.type), "v")  # a null key joins with nothing
        if step.kind == "join" and step.recursive:
            probed = facts.relations[facts.relation_indexes[step.index].relation]
            bind(step.binds, column_types(probed), current[probed.name])
        elif step.kind == "join":
            bind(step.binds, facts.payload_types(step.index), payload[step.index])
    return env


def _carry(facts: Facts, relation: PlannedRelation, nulls: dict[str, list[bool]]) -> None:
    """Propagate nulls from an order to its carried columns, within a user-defined aggregator, and to views."""
    own_nulls, k = nulls[relation.name], len(relation.keys)
    names = [d.column.name for d in relation.dependents]
    for j, d in enumerate(relation.dependents):
        if d.order is not None:
            own_nulls[k + j] |= own_nulls[k + names.index(d.order)]
        if d.custom is not None:
            first = k + j - d.part
            own_nulls[k + j] |= any(own_nulls[first : first + len(d.custom.columns)])
        if d.view is not None:
            viewed_nulls = nulls[d.view.relation]
            for c in range(k):
                own_nulls[c] |= viewed_nulls[c]
            column = facts.column_of(d.view.relation, d.view.column)
            if not d.definition.is_counted and column is not None:
                own_nulls[k + j] |= viewed_nulls[len(facts.relations[d.view.relation].keys) + column]
