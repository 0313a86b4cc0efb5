"""Warn of steps that are hardly meant: they ignore their relation, or join without a condition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import columns
from pyspark_paralagg.program.text import read_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.program.program import Atom, Program, Rule

_SMALL_BYTES = 10_000
"""Inputs below this size are parameters: each row is meant to be joined with each of theirs."""


def with_doubts(program: Program) -> Program:
    """Return ``program`` with warnings of doubtful steps."""
    doubts = [*_ignored(program), *(d for rule in program.rules for d in _unconnected(rule, program))]
    return replace(program, warnings=(*program.warnings, *doubts))


def _ignored(program: Program) -> Iterator[str]:
    if program.rules and not any(a.relation is not None for rule in program.rules for a in rule.body):
        names = ", ".join(r.name for r in program.relations)
        yield (
            f"the step does not read {names}, so nothing recurses: build what it returns from its argument, as in "
            "step=lambda r: r.join(edges, r.node == edges.src)"
        )


def _unconnected(rule: Rule, program: Program) -> Iterator[str]:
    """Yield a warning if the body falls into parts that no condition connects."""
    parts = [(a.bound, [a]) for a in rule.body if a.kind == "join"]
    for condition in rule.conditions:
        touched = [p for p in parts if p[0] & columns(condition)]
        if len(touched) > 1:
            parts = [p for p in parts if p not in touched]
            parts.append((frozenset[str]().union(*(p[0] for p in touched)), [a for p in touched for a in p[1]]))
    large = [atoms for _, atoms in parts if not all(_is_small(a, program) for a in atoms)]
    if len(large) > 1:
        left, right = (", ".join(read_name(a, program) for a in atoms) for atoms in large[:2])
        yield (
            f"{rule.place} joins {left} with {right} without a condition, so each row with each: add a condition, such "
            "as r.node == edges.src"
        )


def _is_small(atom: Atom, program: Program) -> bool:
    if atom.relation is not None:
        return not program.relation(atom.relation).keys
    size = program.input(atom.input or 0).size_bytes
    return size is not None and size < _SMALL_BYTES
