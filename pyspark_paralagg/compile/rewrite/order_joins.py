"""Choose the atom of a body to join next: the one with the smallest estimated result.

    h(x, z) :- Δr(x), wide(x, y), narrow(x), f(y, z)        r, narrow, wide, f: a test first, then the smallest fan-out

Spark reports the size of an input in bytes. Rows are bytes divided by 8 bytes a column; a filter keeps a fixed
fraction. Each bound column divides the rows evenly: a lookup finds ``rows ** (unbound / columns)``. For the result of a
lower relation only keys count as columns. Estimates within a factor of two are equal, and then the written order
decides. The user's order (``.plan``) always wins. Atoms without a bound column (products) come last. (docs/papers.md:
Compiling Data-Parallel Datalog, section 3.2, *Partitioning*; docs/architecture.md, "The compiler's stages".)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Call, Expr, Lit
from pyspark_paralagg.program.text import input_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.program.program import Atom, Input, Program, Rule

UNKNOWN_ROWS = 1e6
"""The estimated rows of an input of unknown size and of a recursive relation."""

_WORD = 8
_KEPT_BY_EQUALITY = 0.1
_KEPT_BY_FILTER = 0.33


def next_atom(rule: Rule, program: Program, waiting: Sequence[int], bound: Mapping[int, int]) -> int:
    """Return the atom of ``waiting`` to join next; ``bound`` is the number of columns that each is looked up by."""
    if rule.order is not None:
        return min(waiting, key=rule.rank)
    connected = [n for n in waiting if bound[n]] or list(waiting)
    return min(connected, key=lambda n: (*_cost(rule.body[n], program, bound[n]), n))


def expected_rows(atom: Atom, program: Program, bound: int = 0) -> float:
    """Return the rows that a lookup of ``atom`` by ``bound`` of its columns finds on average.

    >>> from pyspark_paralagg.program.program import Atom, Column, Input, Program
    >>> edges = Input(0, 0, (Column("a", "bigint"), Column("b", "bigint")), (), (), size_bytes=160_000)
    >>> expected_rows(Atom(("x", "y"), input=0), Program((), (edges,), ()), bound=1)
    100.0
    """
    rows = UNKNOWN_ROWS if atom.input is None else _rows(program.input(atom.input))
    columns = _identifying_columns(atom, program)
    return rows if columns == 0 else float(rows ** (1 - min(bound, columns) / columns))


def order_reason(rule: Rule, program: Program, joined: Sequence[int]) -> str | None:
    """Return the reason for the join order ``joined``; None if it is the written order."""
    if list(joined[1:]) == sorted(joined[1:]):
        return None
    names = " then ".join(_name(rule.body[n], program) for n in joined)
    by_size = "connected inputs first, then those with fewer matches"
    because = by_size if rule.order is None else "in the user's order"
    return f"{rule.place}: joined as {names} ({because})"


def _cost(atom: Atom, program: Program, bound: int) -> tuple[int, int]:
    # With all columns bound each finds one row at most; then the smaller input drops more rows.
    return _magnitude(expected_rows(atom, program, bound)), _magnitude(expected_rows(atom, program))


def _identifying_columns(atom: Atom, program: Program) -> int:
    """Return the number of columns that identify a row: the keys of a lower relation, all columns of another input."""
    name = None if atom.input is None else program.input(atom.input).relation
    keys = next((len(r.keys) for r in program.relations if r.name == name), None)
    return len(atom.variables) if keys is None else min(keys, len(atom.variables))


def _magnitude(rows: float) -> int:
    return round(math.log2(max(rows, 1.0)))


def _rows(source: Input) -> float:
    size = source.size_bytes
    rows = UNKNOWN_ROWS if size is None else size / (_WORD * max(1, len(source.columns)))
    for f in source.filters:
        rows *= _KEPT_BY_EQUALITY if _is_equality(f) else _KEPT_BY_FILTER
    return max(rows, 1.0)


def _is_equality(condition: Expr) -> bool:
    return isinstance(condition, Call) and condition.fn == "EqualTo" and any(isinstance(a, Lit) for a in condition.args)


def _name(atom: Atom, program: Program) -> str:
    return atom.relation if atom.relation is not None else input_name(program.input(atom.input or 0))
