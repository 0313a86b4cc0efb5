"""Add relations to a Program that are computed from its final rows: traces of paths, answers to questions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import recursion_with
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Atom, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input, Program, Relation

_NOTHING = Lit(value=False, type="boolean")


def without_rows(rows: Input) -> Input:
    """Return an input that is known to have no rows."""
    return replace(rows, filters=(*rows.filters, _NOTHING))


def with_relation(program: Program, added: Relation, rules: Sequence[Rule]) -> Program:
    """Return ``program`` with a relation whose rows all come from ``rules``; its own base is replaced by no rows."""
    nulls = tuple(Lit(None, c.type) for c in added.supplied)
    program, base = program.with_new_input(without_rows(replace(program.inputs[0], exprs=nulls)))
    relation = replace(added, base=base, initial=None)
    return replace(program, relations=(*program.relations, relation), rules=(*program.rules, *rules))


def starts(program: Program, relation: Relation) -> Iterator[Rule]:
    """Yield the rules that say that rows of the base, and initial rows, are rows of ``relation``."""
    for input_id, word in ((relation.base, "base"), (relation.initial, "initial rows")):
        if input_id is not None and _NOTHING not in program.input(input_id).filters:
            source = program.input(input_id)
            row = tuple(Col(c.name, e.type) for c, e in zip(relation.supplied, source.exprs, strict=True))
            body = (Atom(tuple(c.name for c in row), input=input_id),)
            is_input = source.name == relation.name  # of a text, where relations have rows of their own
            yield Rule(relation.name, row, body, place=f"{'facts' if is_input else word} of {relation.name}")


def rules_of(program: Program, relation: Relation) -> list[Rule]:
    """Return all that derives rows of ``relation``: its ``starts``, then its rules."""
    return [*starts(program, relation), *(r for r in program.rules if r.head == relation.name)]


def rows_with_keys(relation: Relation, keys: Sequence[Expr], place: str) -> Rule:
    """Return the rule for the rows of ``relation`` with these keys; who calls it sets the head."""
    row = tuple(Col(c.name, c.type) for c in relation.columns)
    conditions = tuple(is_equal(c, k) for c, k in zip(row, keys, strict=False))
    return Rule(relation.name, row, (Atom(tuple(c.name for c in row), relation.name),), conditions, place=place)


def check_is_finished(program: Program, relation: Relation, code: str, consequence: str) -> None:
    """Raise ``UsageError`` ``code`` if a limit returns rows that are not final, with the ``consequence``.

    Rows of a set are final from the first iteration that has them, whatever comes later.
    """
    recursion = recursion_with(program, relation.name)
    recurses = any(a.relation in recursion for r in program.rules if r.head in recursion for a in r.body)
    is_set = program.max_iterations is None and not any(program.relation(n).dependents for n in recursion)
    iterations, on_limit, _ = program.limit(recursion)
    if recurses and not is_set and on_limit == "return" and iterations is not None:
        raise UsageError(
            code,
            f"a limit of {iterations} iterations returns rows {consequence}",
            value=iterations,
            place=f"relation {relation.name}",
            hint="count the steps in a key and bound it: keys=['node', 'legs'], and .where('legs < 3') in the step",
        )


def name_of(atom: Atom, program: Program) -> str:
    """Return the user's name of what an atom reads, else its number."""
    if atom.relation is not None:
        return atom.relation
    source = program.input(atom.input or 0)
    return source.relation or source.name or f"input {source.id}"


def reads(rule: Rule) -> list[Atom]:
    """Return the atoms of a rule's body that read relations."""
    return [a for a in rule.body if a.relation is not None]


def is_equal(left: Expr, right: Expr) -> Expr:
    """Return whether two values are equal; null if one of them is."""
    return Call("EqualTo", (left, right), "boolean")


def is_same(left: Expr, right: Expr) -> Expr:
    """Return whether two values are equal or both null."""
    return Call("EqualNullSafe", (left, right), "boolean", nullable=False)


def fresh_variable(rule: Rule, stem: str) -> str:
    """Return a name that no variable of ``rule`` has."""
    return fresh_name(stem, frozenset[str]().union(*(a.bound for a in rule.body)))
