"""Move expressions from the loop to the load of an input.

    dist(y, min d + w) :- dist(x, d), in1(a, y, w), x = cast(a as bigint), kind(y) ...
    dist(y, min d + w) :- dist(x, d), in2(y, w, a_1), x = a_1          in2 computes a_1 := cast(a as bigint)

Three reasons: a join needs a plain column on the input's side, the loop cannot compute with strings, and a functor of
the user gets whole columns. Other arithmetic stays in the loop: at load it might fail on rows that never join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.compile.rewrite.types import is_storable, is_word
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Col, Expr, columns, walk
from pyspark_paralagg.program.functor import is_functor

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def hoist(program: Program) -> Program:
    """Return the program with computed input columns for string expressions and join keys."""
    rules = []
    for rule in program.rules:
        hoister = _Hoister(program, rule)
        hoisted = replace(
            rule,
            exprs=tuple(hoister.without_calls(e) for e in rule.exprs),
            conditions=tuple(hoister.join_key(hoister.without_calls(c)) for c in rule.conditions),
        )
        program, body = hoister.finish(hoisted)
        rules.append(body)
    return replace(program, rules=tuple(rules))


def _raises(expr: Expr) -> bool:
    """Return whether ``expr`` contains an error of the step, which rows that never join must not raise."""
    return any(isinstance(e, Call) and e.fn == "RaiseError" for e in walk(expr))


class _Hoister:
    """Collects the expressions of one rule that its inputs compute."""

    def __init__(self, program: Program, rule: Rule) -> None:
        self._program = program
        self._atoms = {v: s.atom for v, s in variables(rule, program).items()}
        self._inputs = {n for n, a in enumerate(rule.body) if a.input is not None}
        self._added: dict[Expr, Col] = {}

    def without_calls(self, expr: Expr) -> Expr:
        """Return ``expr`` with columns for calls over one input: of functors, and over strings or other non-words."""
        if not isinstance(expr, Call):
            return expr
        may_move = is_storable(expr.type) and self._only_atom(expr) is not None and not _raises(expr)
        if may_move and (is_functor(expr.fn) or not all(is_word(e.type) for e in (expr, *expr.args))):
            return self._column(expr)
        return replace(expr, args=tuple(self.without_calls(a) for a in expr.args))

    def join_key(self, condition: Expr) -> Expr:
        """Return an equality between atoms with plain columns on the sides of inputs; other conditions unchanged."""
        if not isinstance(condition, Call) or condition.fn != "EqualTo":
            return condition
        atoms = [self._only_atom(a) for a in condition.args]
        if atoms[0] == atoms[1]:
            return condition
        args = tuple(
            a if atom is None or not isinstance(a, Call) else self._column(a)
            for a, atom in zip(condition.args, atoms, strict=True)
        )
        return replace(condition, args=args)

    def _only_atom(self, expr: Expr) -> int | None:
        """Return the atom of the single input that ``expr`` reads; None if it reads others."""
        atoms = {self._atoms[v] for v in columns(expr)}
        return next(iter(atoms)) if len(atoms) == 1 and atoms <= self._inputs else None

    def _column(self, expr: Expr) -> Col:
        if expr not in self._added:
            stem, n = min(columns(expr)), 1
            while f"{stem}_{n}" in self._atoms:
                n += 1
            name = f"{stem}_{n}"
            self._atoms[name] = self._atoms[stem]
            self._added[expr] = Col(name, expr.type, may_be_null(expr))
        return self._added[expr]

    def finish(self, rule: Rule) -> tuple[Program, Rule]:
        """Return the program with the new inputs, and the rule whose atoms bind the new columns."""
        program, body = self._program, list(rule.body)
        for expr, col in self._added.items():
            n = self._atoms[col.name]
            atom = body[n]
            source = program.input(atom.input or 0)
            inner = {v: source.exprs[p] for p, v in enumerate(atom.variables) if v is not None}
            computed = inlined(expr, inner)
            program, input_id = with_input(program, replace(source, exprs=(*source.exprs, computed)))
            body[n] = replace(atom, input=input_id, variables=(*atom.variables, col.name))
        return program, replace(rule, body=tuple(body))
