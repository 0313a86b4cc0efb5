"""Compare values in place of their ordinals: ``ord(x) < ord(y)`` becomes ``x < y``.

Soufflé numbers symbols as it meets them, so a program may only rely on ``ord`` being some total order. Other uses of
``ord`` need these numbers, and are refused when the functor is resolved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.resolve.expand import rewritten

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.syntax import Term


def without_ordinals(text: syntax.Text) -> syntax.Text:
    """Return ``text`` without ``ord`` on both sides of a comparison."""

    def change(node: object) -> object:
        if isinstance(node, syntax.Comparison) and _is_ordinal(node.left) and _is_ordinal(node.right):
            return replace(node, left=node.left.args[0], right=node.right.args[0])  # type: ignore[union-attr] # as checked
        return node

    return replace(text, clauses=tuple(rewritten(c, change) for c in text.clauses))


def _is_ordinal(term: Term) -> bool:
    return isinstance(term, syntax.Apply) and term.name == "ord" and len(term.args) == 1
