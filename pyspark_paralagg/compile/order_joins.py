"""Binarize: a body of k atoms becomes a linear chain of binary joins that starts from its driver.

    path(x, z) :- path(x, y), edges(a, z), y = a, x < z
    Δpath(x, y) -> edges[a = y](z) -> x < z -> path(x, z)

Atoms that share an equality with what is bound come first, in the user's order; disjoint ones meet in a product.
Filters and semi joins stand as early as their variables are bound. A column that equals a plain variable is that
variable from then on, so an index' payload has only what is new. (Paper 004, section 4; design section 4.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.compile.chain import Chain, Lookup
from pyspark_paralagg.compile.scope import Variable, inlined, recursive_atoms, variables
from pyspark_paralagg.compile.types import is_float
from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import Call, Col, Expr, columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def order_joins(
    rule: Rule, program: Program, driver: int, version: Literal["delta", "full"], old: frozenset[int] = frozenset()
) -> Chain:
    """The chain of ``rule`` from body atom ``driver``; the recursive atoms ``old`` are probed without the delta."""
    return _Orderer(rule, program, driver, old).chain(version)


class _Orderer:
    def __init__(self, rule: Rule, program: Program, driver: int, old: frozenset[int]) -> None:
        self._rule = rule
        self._scope = variables(rule, program)
        self._driver = driver
        self._old = old
        self._recursive = recursive_atoms(rule)
        self._left = list(rule.conditions)
        self._bound: set[str] = set()
        self._same: dict[str, Expr] = {}
        self._steps: list[Lookup | Filter] = []

    def chain(self, version: Literal["delta", "full"]) -> Chain:
        self._bind(self._driver)
        waiting = [n for n in range(len(self._rule.body)) if n != self._driver]
        self._settle(waiting)
        while waiting:
            atom = self._next(waiting)
            waiting.remove(atom)
            self._look_up(atom)
            self._settle(waiting)
        emit = tuple(inlined(e, self._same) for e in self._rule.exprs)
        read = {v for e in emit for v in columns(e)}
        for step in self._steps:
            exprs = [step.condition] if isinstance(step, Filter) else [e for _, e in step.keys]
            read |= {v for e in exprs for v in columns(e)}
        binds = {
            n: tuple(v if v in read and a.kind == "join" else None for v in a.variables)
            for n, a in enumerate(self._rule.body)
        }
        return Chain(self._rule, self._driver, version, tuple(self._steps), emit, binds)

    def _bind(self, atom: int) -> None:
        self._bound |= {v for v in self._rule.body[atom].variables if v is not None}

    def _settle(self, waiting: list[int]) -> None:
        """Everything that can be decided now: filters first, then semi and anti joins."""
        for c in list(self._left):
            if columns(c) <= self._bound:
                self._left.remove(c)
                self._steps.append(Filter(inlined(c, self._same)))
        for atom in list(waiting):
            if self._rule.body[atom].kind != "join" and self._is_ready(atom):
                waiting.remove(atom)
                self._look_up(atom)

    def _is_ready(self, atom: int) -> bool:
        own = {v for v in self._rule.body[atom].variables if v is not None}
        return all(columns(c) - own <= self._bound for c in self._left if columns(c) & own)

    def _next(self, waiting: list[int]) -> int:
        joins = [n for n in waiting if self._rule.body[n].kind == "join"]
        connected = [n for n in joins if self._keys(n)]
        return (connected or joins)[0]

    def _keys(self, atom: int) -> dict[int, tuple[Expr, Expr]]:
        """Probe keys that are possible now: by column, the condition and the expression looked up."""
        out: dict[int, tuple[Expr, Expr]] = {}
        for c in self._left:
            if not (isinstance(c, Call) and c.fn == "EqualTo"):
                continue
            for own, other in (c.args, c.args[::-1]):
                variable = self._scope.get(own.name) if isinstance(own, Col) else None
                if variable is None or variable.atom != atom or own.type != other.type:
                    continue
                if self._is_indexable(variable) and columns(other) <= self._bound and variable.position not in out:
                    out[variable.position] = (c, other)
                    break
        return out

    def _is_indexable(self, variable: Variable) -> bool:
        # An index of a recursive relation is over its keys; a value of it is compared after the join (iterated only).
        return variable.atom not in self._recursive or variable.role == "key"

    def _look_up(self, atom: int) -> None:
        keys = self._keys(atom)
        for position, (condition, expr) in keys.items():
            self._left.remove(condition)
            name = self._rule.body[atom].variables[position]
            plain = inlined(expr, self._same)
            if name is not None and isinstance(plain, Col) and not is_float(plain.type):
                self._same[name] = plain
        pairs = tuple((p, inlined(e, self._same)) for p, (_, e) in sorted(keys.items()))
        self._steps.append(Lookup(atom, pairs, "old" if atom in self._old else "full"))
        self._bind(atom)
