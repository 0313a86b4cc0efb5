"""``reference/aggregators.md``: every aggregator of ``pyspark_paralagg/program/aggregators.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import AGGREGATORS

if TYPE_CHECKING:
    from pyspark_paralagg.program.aggregators import Aggregator

_HEAD = """\
# Aggregators

The aggregates of columns that are not keys. [Custom aggregators](../aggregators.md) has examples of witnesses and shows
how to define your own. [Semantics](../semantics.md) says when an aggregate may recurse.

| in `aggs` | in Datalog | takes | type of the result | class | starts from |
|---|---|---|---|---|---|
"""
_TAIL = """
A *lattice* aggregator is idempotent: a repeated row counts once, so rows may come in any order. An *accumulating* one
adds each row once, and recurses only through linear rules. *Starts from* is the value that changes nothing; if it is
empty, the first value is taken as it is.
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
    shares = "".join(f'"{name}", ' for name in _shares(of, "total", "value"))
    return _CALLS[of.parameters].format(of.name, shares)


def _head(of: Aggregator) -> str:
    value = {"": "x", "order": "v, x", "witnesses": ", ".join((*_shares(of, "n", "x"), "w"))}[of.parameters]
    return f"${of.name.upper()}({value})"


def _shares(of: Aggregator, *names: str) -> tuple[str, ...]:
    return names[len(names) - of.shares :]


def _result(of: Aggregator) -> str:
    """``bigint`` where that is so for every type, or the types that change, or the column's own."""
    taken = [t for t in _SAMPLES if of.accepts(t)]
    changed = {t: of.result(t) for t in taken if of.result(t) != t}
    if not changed:
        return "the same type"
    if len(set(changed.values())) == 1 and len(changed) == len(taken):
        return f"`{next(iter(changed.values()))}`"
    return ", ".join(f"`{new}` for `{old}`" for old, new in changed.items())
