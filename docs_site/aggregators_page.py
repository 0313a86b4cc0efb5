"""``reference/aggregators.md``: every aggregator of ``pyspark_paralagg/program/aggregators.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import AGGREGATORS

if TYPE_CHECKING:
    from pyspark_paralagg.program.aggregators import Aggregator

_HEAD = """\
# Aggregators

What a column that is no key may be aggregated with. [One's own aggregators](../aggregators.md) has examples of
witnesses and says how to make others; [semantics](../semantics.md) says what has to hold where one recurses.

| in `aggs` | in a text | takes | type of the result | class | starts from |
|---|---|---|---|---|---|
"""
_TAIL = """
A *lattice* aggregator is idempotent: a row that comes twice counts once, so values may be taken in any order. An
*accumulating* one adds each row once, and recurses through linear rules only. *Starts from* is the value that changes
nothing; where it is empty, the first value that comes is taken as it is.
"""
_CALLS = {"": '"{}"', "order": 'ra.{}("order")', "witnesses": 'ra.{}({}"witness")'}
_SAMPLES = ("int", "float", "boolean")


def markdown() -> str:
    """One row an aggregator."""
    return _HEAD + "".join(map(_row, AGGREGATORS.values())) + _TAIL


def _row(of: Aggregator) -> str:
    is_lattice = of.is_idempotent
    cells = [
        f"`{_call(of)}`",
        f"`{_head(of)}`",
        of.takes,
        _result(of),
        "lattice" if is_lattice else "accumulating",
        "" if of.identity is None else f"`{str(of.identity).lower()}`",
    ]
    return f"| {' | '.join(cells)} |\n"


def _call(of: Aggregator) -> str:
    value = '"value", ' if of.name == "msum" else ""
    return _CALLS[of.parameters].format(of.name, value)


def _head(of: Aggregator) -> str:
    value = {"": "x", "order": "v, x", "witnesses": "x, w" if of.name == "msum" else "w"}[of.parameters]
    return f"${of.name.upper()}({value})"


def _result(of: Aggregator) -> str:
    """``bigint`` where that is so for every type, or the types that change, or the column's own."""
    taken = [t for t in _SAMPLES if of.accepts(t)]
    changed = {t: of.result(t) for t in taken if of.result(t) != t}
    if not changed:
        return "the same type"
    if len(set(changed.values())) == 1 and len(changed) == len(taken):
        return f"`{next(iter(changed.values()))}`"
    return ", ".join(f"`{new}` for `{old}`" for old, new in changed.items())
