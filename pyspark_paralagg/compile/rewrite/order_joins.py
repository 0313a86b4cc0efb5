"""Which atom of a body is joined next: the one that leaves the fewest rows, as far as the inputs' statistics tell.

    h(x, z) :- Δr(x), wide(x, y), narrow(x), f(y, z)        r, narrow, wide, f: a test first, then what fans out least

What Spark says of an input is its size in bytes, so rows are bytes by columns; a filter keeps a part of them; and
each bound column divides what is found evenly: ``rows ** (unbound / columns)``, where only keys count of what a lower
relation gives. Estimates within a factor of two are taken for equal and the written order decides, as it does where
nothing is known. The user's own order (``.plan``) always wins. Atoms that share a column with what is bound come
before all others: a product comes last. (Paper 004, section 3, *Partitioning*; design section 4.)
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
"""What an input of unknown size, and a relation that is still growing, is taken to hold."""

_WORD = 8
_KEPT_BY_EQUALITY = 0.1
_KEPT_BY_FILTER = 0.33


def next_atom(rule: Rule, program: Program, waiting: Sequence[int], bound: Mapping[int, int]) -> int:
    """The atom among ``waiting`` that a chain joins next; ``bound``: how many columns each could be looked up by."""
    if rule.order is not None:
        return min(waiting, key=rule.rank)
    connected = [n for n in waiting if bound[n]] or list(waiting)
    return min(connected, key=lambda n: (*_cost(rule.body[n], program, bound[n]), n))


def expected_rows(atom: Atom, program: Program, bound: int = 0) -> float:
    """How many rows a look-up of ``atom`` by ``bound`` of its columns finds, on average.

    >>> from pyspark_paralagg.program.program import Atom, Column, Input, Program
    >>> edges = Input(0, 0, (Column("a", "bigint"), Column("b", "bigint")), (), (), size_bytes=160_000)
    >>> expected_rows(Atom(("x", "y"), input=0), Program((), (edges,), ()), bound=1)
    100.0
    """
    rows = UNKNOWN_ROWS if atom.input is None else _rows(program.input(atom.input))
    columns = _independent(atom, program)
    return rows if columns == 0 else float(rows ** (1 - min(bound, columns) / columns))


def why(rule: Rule, program: Program, joined: Sequence[int]) -> str | None:
    """The reason for joining the atoms of ``rule`` in the order ``joined``, where it is not the written one."""
    if list(joined[1:]) == sorted(joined[1:]):
        return None
    names = " then ".join(_name(rule.body[n], program) for n in joined)
    because = "as the user's order says" if rule.order is not None else "what is connected, then what finds fewer rows"
    return f"{rule.place}: joined as {names} ({because})"


def _cost(atom: Atom, program: Program, bound: int) -> tuple[int, int]:
    # Where all columns are bound each finds one row at most: the smaller input then drops more.
    return _magnitude(expected_rows(atom, program, bound)), _magnitude(expected_rows(atom, program))


def _independent(atom: Atom, program: Program) -> int:
    """How many columns tell the rows apart: of a lower relation the keys, of any other input all."""
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
