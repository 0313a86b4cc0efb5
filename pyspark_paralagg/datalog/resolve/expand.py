"""Expand rules to one head and one conjunction each: multiply out several heads, ``;`` and negated bodies.

    a(x), b(x) :- c(x), (d(x); !(e(x), x < 3)).
    a(x) :- c(x), d(x).    a(x) :- c(x), !e(x).    a(x) :- c(x), x >= 3.    and the same for b

A negated body becomes its negated parts (De Morgan), so each of its variables must be bound outside, as in Soufflé.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from operator import is_not
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse import syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPPOSITE: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TRUTH = {"true": "false", "false": "true"}

Plain = syntax.Atom | syntax.Negation | syntax.Comparison | syntax.Constraint
"""A literal without disjunction or conjunction. A negation is that of an atom or a constraint."""


@dataclass(frozen=True)
class Flat:
    """A flat rule, ``head :- literals``. ``rule`` is the rule as written, for messages and hints."""

    head: syntax.Atom
    literals: tuple[Plain, ...]
    rule: syntax.Rule

    @property
    def span(self) -> syntax.Span:
        """The place of the rule as written."""
        return self.rule.span


def alternatives(body: syntax.Body) -> list[tuple[Plain, ...]]:
    """Return the conjunctions whose disjunction equals ``body``."""
    match body:
        case syntax.Disjunction():
            return [a for part in body.parts for a in alternatives(part)]
        case syntax.Conjunction():
            combinations = itertools.product(*(alternatives(part) for part in body.parts))
            return [tuple(itertools.chain.from_iterable(parts)) for parts in combinations]
        case syntax.Negation():
            return _negated(body)
        case syntax.Constraint(name="true"):
            return [()]
        case syntax.Constraint(name="false"):
            return []
        case _:
            return [(body,)]


def _negated(negation: syntax.Negation) -> list[tuple[Plain, ...]]:
    inner = negation.body
    match inner:
        case syntax.Disjunction():
            return alternatives(syntax.Conjunction(tuple(syntax.Negation(p, negation.span) for p in inner.parts)))  # type: ignore[arg-type]
        case syntax.Conjunction():
            return alternatives(syntax.Disjunction(tuple(syntax.Negation(p, negation.span) for p in inner.parts)))  # type: ignore[arg-type]
        case syntax.Negation():
            return alternatives(inner.body)
        case syntax.Comparison():
            return [(replace(inner, op=_OPPOSITE[inner.op]),)]
        case syntax.Constraint() if inner.name in _TRUTH:
            return alternatives(replace(inner, name=_TRUTH[inner.name]))  # type: ignore[arg-type]
        case _:
            return [(negation,)]


# --- walking the tree ------------------------------------------------------------------------------------------------


def _part_names(node: object) -> tuple[str, ...] | None:
    """Return the fields of ``node`` that may hold nodes; None if it is no node."""
    return _part_names_of_type(type(node))  # type: ignore[arg-type] # mypy takes no class for hashable


@cache
def _part_names_of_type(node_type: type) -> tuple[str, ...] | None:
    if not is_dataclass(node_type) or node_type is syntax.Span:
        return None
    return tuple(f.name for f in fields(node_type) if f.name != "span")


def nodes(node: object) -> Iterator[Any]:
    """Yield ``node`` and all nodes below it, parents first."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(reversed(node))
        elif (parts := _part_names(node)) is not None:
            yield node
            stack.extend([getattr(node, part) for part in reversed(parts)])


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any node of the tree
    """Rewrite bottom-up: replace each node below ``node``, then ``node`` itself, by the result of ``change``."""
    result = _with_parts(node, lambda part: rewritten(part, change))
    return result if _part_names(node) is None else change(result)


def substituted(node: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any node of the tree
    """Rewrite top-down: replace a node by the result of ``change``; if that is None, continue with its parts."""
    replacement = None if _part_names(node) is None else change(node)
    return _with_parts(node, lambda part: substituted(part, change)) if replacement is None else replacement


def _with_parts(node: Any, walk: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - likewise
    """Return ``node`` with ``walk`` applied to its parts; ``node`` itself if no part changes."""
    if isinstance(node, tuple):
        walked = [walk(part) for part in node]
        return tuple(walked) if any(map(is_not, walked, node)) else node
    changed = {}
    for name in _part_names(node) or ():
        part = getattr(node, name)
        new = walk(part)
        if new is not part:
            changed[name] = new
    return replace(node, **changed) if changed else node


def names_in(node: object) -> frozenset[str]:
    """Return the names of the variables in ``node``."""
    return frozenset(n.name for n in nodes(node) if isinstance(n, syntax.Variable))
