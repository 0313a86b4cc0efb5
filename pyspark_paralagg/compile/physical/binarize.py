"""A body of k atoms becomes a linear chain of binary joins that starts from its driver.

    path(x, z) :- path(x, y), edges(a, z), y = a, x < z
    Δpath(x, y) -> edges[a = y](z) -> x < z -> path(x, z)

``order_joins`` says which atom comes next; disjoint groups of atoms meet in a product, the driver's group first.
Filters and semi joins stand as early as their variables are bound. Equal columns are one variable (paper 004's static
unification): an atom is looked up by whatever is bound of what its column equals, and a column that equals a plain
variable is that variable from then on, so an index' payload has only what is new and no step keeps a column that no
later one reads. (Paper 004, section 3; design section 4.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.compile.physical.chain import Chain, Lookup
from pyspark_paralagg.compile.rewrite.equal import Classes, equality
from pyspark_paralagg.compile.rewrite.order_joins import next_atom, order_reason
from pyspark_paralagg.compile.rewrite.scope import Variable, inlined, recursive_atoms, variables
from pyspark_paralagg.compile.rewrite.types import is_float
from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import Call, Col, Expr, columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def binarize(
    rule: Rule, program: Program, driver: int, version: Literal["delta", "full"], old: frozenset[int] = frozenset()
) -> Chain:
    """The chain of ``rule`` from body atom ``driver``; the recursive atoms ``old`` are probed without the delta."""
    return _Binarizer(rule, program, driver, old).chain(version)


class _Binarizer:
    def __init__(self, rule: Rule, program: Program, driver: int, old: frozenset[int]) -> None:
        self._rule = rule
        self._program = program
        self._scope = variables(rule, program)
        self._driver = driver
        self._old = old
        self._recursive = recursive_atoms(rule)
        self._left = list(rule.conditions)
        self._bound: dict[str, None] = {}  # in the order of binding
        self._same: dict[str, Expr] = {}
        self._classes = Classes.of(rule.conditions, self._is_joined)  # what is equal once all conditions hold
        self._settled = Classes()  # what is equal by now
        self._steps: list[Lookup | Filter] = []

    def chain(self, version: Literal["delta", "full"]) -> Chain:
        """The chain, each step with the columns that a later one reads."""
        self._bind(self._driver)
        waiting = [n for n in range(len(self._rule.body)) if n != self._driver]
        joined = [self._driver]
        self._settle(waiting)
        while waiting:
            joins = [n for n in waiting if self._rule.body[n].kind == "join"]
            bound = {n: len(self._keys(n)) for n in joins}
            atom = next_atom(self._rule, self._program, joins, bound)
            waiting.remove(atom)
            joined.append(atom)
            self._look_up(atom)
            self._settle(waiting)
        emit = tuple(inlined(e, self._same) for e in self._rule.exprs)
        return Chain(
            self._rule,
            self._driver,
            version,
            tuple(self._steps),
            emit,
            self._binds(emit),
            order_reason(self._rule, self._program, joined),
        )

    def _binds(self, emit: tuple[Expr, ...]) -> dict[int, tuple[str | None, ...]]:
        read = {v for e in emit for v in columns(e)}
        for step in self._steps:
            exprs = [step.condition] if isinstance(step, Filter) else [e for _, e in step.keys]
            read |= {v for e in exprs for v in columns(e)}
        return {
            n: tuple(v if v in read and a.kind == "join" else None for v in a.variables)
            for n, a in enumerate(self._rule.body)
        }

    def _is_joined(self, name: str) -> bool:
        # Within an anti join equality holds for what is looked for only; within a semi join it is consumed there.
        return self._rule.body[self._scope[name].atom].kind == "join"

    def _bind(self, atom: int) -> None:
        self._bound |= dict.fromkeys(v for v in self._rule.body[atom].variables if v is not None)

    def _settle(self, waiting: list[int]) -> None:
        """Everything that can be decided now: filters first, then semi and anti joins."""
        for c in list(self._left):
            if columns(c) <= self._bound.keys():
                self._left.remove(c)
                self._filter(c)
        for atom in list(waiting):
            if self._rule.body[atom].kind != "join" and self._is_ready(atom):
                waiting.remove(atom)
                self._look_up(atom)

    def _filter(self, condition: Expr) -> None:
        pair = equality(condition)
        if pair is not None:
            if self._settled.are_equal(*pair):
                return
            self._settled.unite(*pair)
        self._steps.append(Filter(inlined(condition, self._same)))

    def _is_ready(self, atom: int) -> bool:
        keys = {c for c, _ in self._keys(atom).values()}
        own = {v for v in self._rule.body[atom].variables if v is not None}
        return all(c in keys for c in self._left if columns(c) & own)

    def _keys(self, atom: int) -> dict[int, tuple[Expr | None, Expr]]:
        """Probe keys that are possible now: by column, the expression looked up and the condition that is met by it.

        No condition where the column equals, through others that are not bound yet, a variable that is: what it equals
        itself is compared when it is bound.
        """
        out: dict[int, tuple[Expr | None, Expr]] = {}
        for c in self._left:
            if not (isinstance(c, Call) and c.fn == "EqualTo"):
                continue
            for own, other in (c.args, c.args[::-1]):
                variable = self._scope.get(own.name) if isinstance(own, Col) else None
                if variable is None or variable.atom != atom or own.type != other.type:
                    continue
                looked_up = self._by_now(other)
                if self._is_indexable(variable) and looked_up is not None and variable.position not in out:
                    out[variable.position] = (c, looked_up) if looked_up == other else (None, looked_up)
                    break
        if self._rule.body[atom].kind != "join":  # its conditions are about nothing else, so the key meets them
            return {p: (self._condition(atom, p), e) for p, (_, e) in out.items()}
        return out

    def _condition(self, atom: int, position: int) -> Expr:
        name = self._rule.body[atom].variables[position]
        return next(c for c in self._left if name in columns(c))

    def _by_now(self, other: Expr) -> Expr | None:
        """``other`` if it is bound, else a plain variable that it equals and that is."""
        if columns(other) <= self._bound.keys():
            return other
        if not isinstance(other, Col):
            return None
        mates = self._classes.mates(other.name)
        name = next((b for b in self._bound if b in mates), None)
        return None if name is None else Col(name, other.type, self._scope[name].column.nullable)

    def _is_indexable(self, variable: Variable) -> bool:
        # An index of a recursive relation is over its keys; a value of it is compared after the join (iterated only).
        return variable.atom not in self._recursive or variable.role == "key"

    def _look_up(self, atom: int) -> None:
        keys = self._keys(atom)
        for position, (condition, expr) in keys.items():
            if condition is not None:
                self._left.remove(condition)
            name = self._rule.body[atom].variables[position]
            plain = inlined(expr, self._same)
            if name is not None and isinstance(expr, Col):
                self._settled.unite(name, expr.name)
            if name is not None and isinstance(plain, Col) and not is_float(plain.type):
                self._same[name] = plain
        pairs = tuple((p, inlined(e, self._same)) for p, (_, e) in sorted(keys.items()))
        self._steps.append(Lookup(atom, pairs, "old" if atom in self._old else "full"))
        self._bind(atom)
