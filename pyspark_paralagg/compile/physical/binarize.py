"""Turn a body of k atoms into a linear chain of binary joins that starts from its driver.

    path(x, z) :- path(x, y), edges(a, z), y = a, x < z
    Δpath(x, y) -> edges[a = y](z) -> x < z -> path(x, z)

``order_joins`` chooses the next atom; disjoint groups of atoms form a product, the driver's group first. Filters and
semi joins run as soon as their variables are bound. Equal columns are one variable (static unification): an atom is
looked up by any bound variable that its column equals, and a column equal to a plain variable is replaced by it. So an
index' payload has only new columns, and no step keeps a column that no later step reads.
(docs/papers.md: Compiling Data-Parallel Datalog, section 3.2; docs/architecture.md, "The compiler's stages".)
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
    """Return the chain of ``rule`` from body atom ``driver``; atoms in ``old`` are probed without the delta."""
    return _Binarizer(rule, program, driver, old).chain(version)


class _Binarizer:
    def __init__(self, rule: Rule, program: Program, driver: int, old: frozenset[int]) -> None:
        self._rule = rule
        self._program = program
        self._scope = variables(rule, program)
        self._driver = driver
        self._old = old
        self._recursive = recursive_atoms(rule)
        self._conditions_left = list(rule.conditions)
        self._bound: dict[str, None] = {}  # in the order of binding
        self._replacements: dict[str, Expr] = {}
        # equalities once all conditions hold
        self._all_equal = Classes.from_conditions(rule.conditions, self._is_joined)
        self._equal_now = Classes()  # equalities that hold at this step
        self._steps: list[Lookup | Filter] = []

    def chain(self, version: Literal["delta", "full"]) -> Chain:
        """Return the chain; each step binds the columns that a later step reads."""
        self._bind(self._driver)
        waiting = [n for n in range(len(self._rule.body)) if n != self._driver]
        joined = [self._driver]
        self._add_ready_steps(waiting)
        while waiting:
            joins = [n for n in waiting if self._rule.body[n].kind == "join"]
            bound = {n: len(self._keys(n)) for n in joins}
            atom = next_atom(self._rule, self._program, joins, bound)
            waiting.remove(atom)
            joined.append(atom)
            self._add_lookup(atom)
            self._add_ready_steps(waiting)
        emit = tuple(inlined(e, self._replacements) for e in self._rule.exprs)
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
        # An equality with an anti or semi join does not hold for rows that leave it.
        return self._rule.body[self._scope[name].atom].kind == "join"

    def _bind(self, atom: int) -> None:
        self._bound |= dict.fromkeys(v for v in self._rule.body[atom].variables if v is not None)

    def _add_ready_steps(self, waiting: list[int]) -> None:
        """Add the steps whose variables are bound: filters first, then semi and anti joins."""
        for c in list(self._conditions_left):
            if columns(c) <= self._bound.keys():
                self._conditions_left.remove(c)
                self._add_filter(c)
        for atom in list(waiting):
            if self._rule.body[atom].kind != "join" and self._is_ready(atom):
                waiting.remove(atom)
                self._add_lookup(atom)

    def _add_filter(self, condition: Expr) -> None:
        pair = equality(condition)
        if pair is not None:
            if self._equal_now.are_equal(*pair):
                return
            self._equal_now.unite(*pair)
        self._steps.append(Filter(inlined(condition, self._replacements)))

    def _is_ready(self, atom: int) -> bool:
        keys = {c for c, _ in self._keys(atom).values()}
        bound_by_atom = {v for v in self._rule.body[atom].variables if v is not None}
        return all(c in keys for c in self._conditions_left if columns(c) & bound_by_atom)

    def _keys(self, atom: int) -> dict[int, tuple[Expr | None, Expr]]:
        """Return possible probe keys: by column, the condition that the lookup satisfies and the expression looked up.

        The condition is None if the column equals a bound variable only through unbound ones; the condition is then
        checked when those are bound.
        """
        keys: dict[int, tuple[Expr | None, Expr]] = {}
        for c in self._conditions_left:
            if not (isinstance(c, Call) and c.fn == "EqualTo"):
                continue
            for side, other in (c.args, c.args[::-1]):
                variable = self._scope.get(side.name) if isinstance(side, Col) else None
                if variable is None or variable.atom != atom or side.type != other.type:
                    continue
                looked_up = self._bound_form(other)
                if self._is_indexable(variable) and looked_up is not None and variable.position not in keys:
                    keys[variable.position] = (c, looked_up) if looked_up == other else (None, looked_up)
                    break
        if self._rule.body[atom].kind != "join":  # all its conditions are equalities with keys
            return {p: (self._condition(atom, p), e) for p, (_, e) in keys.items()}
        return keys

    def _condition(self, atom: int, position: int) -> Expr:
        name = self._rule.body[atom].variables[position]
        return next(c for c in self._conditions_left if name in columns(c))

    def _bound_form(self, other: Expr) -> Expr | None:
        """Return ``other`` if it is bound, or a bound variable equal to it; otherwise None."""
        if columns(other) <= self._bound.keys():
            return other
        if not isinstance(other, Col):
            return None
        mates = self._all_equal.mates(other.name)
        name = next((b for b in self._bound if b in mates), None)
        return None if name is None else Col(name, other.type, self._scope[name].column.nullable)

    def _is_indexable(self, variable: Variable) -> bool:
        # An index of a recursive relation covers keys only; its values are compared after the join (iterated only).
        return variable.atom not in self._recursive or variable.role == "key"

    def _add_lookup(self, atom: int) -> None:
        keys = self._keys(atom)
        for position, (condition, expr) in keys.items():
            if condition is not None:
                self._conditions_left.remove(condition)
            name = self._rule.body[atom].variables[position]
            plain = inlined(expr, self._replacements)
            if name is not None and isinstance(expr, Col):
                self._equal_now.unite(name, expr.name)
            if name is not None and isinstance(plain, Col) and not is_float(plain.type):
                self._replacements[name] = plain
        pairs = tuple((p, inlined(e, self._replacements)) for p, (_, e) in sorted(keys.items()))
        self._steps.append(Lookup(atom, pairs, "old" if atom in self._old else "full"))
        self._bind(atom)
