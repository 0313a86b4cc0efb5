"""One rule of an accumulating stratum: linear in what is added up (theorem 1 of paper 003, for sum and count)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.counterexample import against_linear
from pyspark_paralagg.compile.linear import degree
from pyspark_paralagg.compile.refusal import Refuser, dependents_in
from pyspark_paralagg.compile.scope import recursive_atoms, variables
from pyspark_paralagg.compile.signs import facts_of
from pyspark_paralagg.program.expr import Expr, columns
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Dependent, Program, Rule

_CODE = "PARALAGG_NOT_LINEAR"


def check_accumulating(rule: Rule, program: Program, refuser: Refuser) -> None:
    """Nothing if ``rule`` is linear; otherwise raises through ``refuser``."""
    head = program.relation(rule.head)
    scope = variables(rule, program)
    names = [str(rule.body[n].relation) for n in recursive_atoms(rule)]
    column = head.dependents[0].column.name
    if len(names) > 1:
        what = f"{column} adds up, and the rule multiplies {' with '.join(names)}"
        example = "rows 1 and 2 of each give (1 + 2) * (1 + 2) = 9 together, but 1 * 1 + 2 * 2 = 5 one by one"
        refuser.refuted(_CODE, what, column, rule, example)
    for condition in rule.conditions:
        found = dependents_in(condition, scope)
        if found:
            v = scope[found[0]]
            what = f"the filter {show(condition)} reads {v.column.name}, which is still being added up"
            example = "a part of a sum may fail it where the whole sum passes"
            refuser.refuted(_CODE, what, v.column.name, rule, example)
    accumulating = frozenset(n for n, v in scope.items() if v.role == "dependent")
    for d, expr in zip(head.dependents, rule.exprs[len(head.keys) :], strict=True):
        _check(expr, d, accumulating, rule, program, refuser)


def _check(  # noqa: PLR0913, PLR0917 - a claim and what it is about
    expr: Expr, d: Dependent, accumulating: frozenset[str], rule: Rule, program: Program, refuser: Refuser
) -> None:
    found = degree(expr, accumulating)
    if found in ("linear", "zero"):
        return
    name = d.column.name
    if found == "const":
        what = f"{name} = {show(expr)} reads no sum, so it counts the keys that are reached and not the rows"
        hint = f"give the recursive {name} on, times what each row adds"
        refuser.refuted(_CODE, what, name, rule, f"a key reached by sums 1 and 2 gives {show(expr)} once; {hint}")
    example = against_linear(expr, accumulating & columns(expr), facts_of(rule, program))
    if example:
        what = f"{name} = {show(expr)} is not linear under {d.aggregator}"
        refuser.refuted(_CODE, what, name, rule, example)
    refuser.unknown(f"that {name} = {show(expr)} is linear under {d.aggregator}", name, rule, None)
