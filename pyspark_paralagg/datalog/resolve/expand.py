"""One head and one conjunction a rule: several heads, ``;`` and negated bodies are multiplied out.

    a(x), b(x) :- c(x), (d(x); !(e(x), x < 3)).
    a(x) :- c(x), d(x).    a(x) :- c(x), !e(x).    a(x) :- c(x), x >= 3.    and the same for b

A negated body is its parts negated (De Morgan), so each variable of it must be bound outside, as in Soufflé.
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
"""A literal that is no disjunction or conjunction; a negation is one of an atom or a constraint."""


@dataclass(frozen=True)
class Flat:
    """``head :- literals``. ``rule`` is the rule as written, for messages and hints."""

    head: syntax.Atom
    literals: tuple[Plain, ...]
    rule: syntax.Rule

    @property
    def span(self) -> syntax.Span:
        """Where the rule stands."""
        return self.rule.span


def alternatives(body: syntax.Body) -> list[tuple[Plain, ...]]:
    """The conjunctions whose disjunction ``body`` is."""
    match body:
        case syntax.Disjunction():
            return [a for part in body.parts for a in alternatives(part)]
        case syntax.Conjunction():
            chosen = itertools.product(*(alternatives(part) for part in body.parts))
            return [tuple(itertools.chain.from_iterable(parts)) for parts in chosen]
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


def _parts(node: object) -> tuple[str, ...] | None:
    """The fields of ``node`` that may hold nodes; None where it is no node."""
    return _parts_of(type(node))  # type: ignore[arg-type] # mypy takes no class for hashable


@cache
def _parts_of(of: type) -> tuple[str, ...] | None:
    if not is_dataclass(of) or of is syntax.Span:
        return None
    return tuple(f.name for f in fields(of) if f.name != "span")


def nodes(node: object) -> Iterator[Any]:
    """``node`` and all nodes below it, parents first."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left.extend(reversed(node))
        elif (parts := _parts(node)) is not None:
            yield node
            left.extend([getattr(node, part) for part in reversed(parts)])


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any node of the tree
    """``node`` with each node below it, then itself, replaced by what ``change`` gives for it."""
    below = _below(node, lambda part: rewritten(part, change))
    return below if _parts(node) is None else change(below)


def substituted(node: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - any node of the tree
    """``node`` with what ``change`` gives in the place of nodes, parents first; where that is None, it goes below."""
    other = None if _parts(node) is None else change(node)
    return _below(node, lambda part: substituted(part, change)) if other is None else other


def _below(node: Any, walk: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - likewise
    """``node`` with its parts walked; ``node`` itself where all of them stay."""
    if isinstance(node, tuple):
        walked = [walk(part) for part in node]
        return tuple(walked) if any(map(is_not, walked, node)) else node
    changed = {}
    for name in _parts(node) or ():
        part = getattr(node, name)
        new = walk(part)
        if new is not part:
            changed[name] = new
    return replace(node, **changed) if changed else node


def names_in(node: object) -> frozenset[str]:
    """The variables that occur in ``node``."""
    return frozenset(n.name for n in nodes(node) if isinstance(n, syntax.Variable))
