"""Add relations to a Program that are computed from its final rows: traces of paths, answers to questions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import recursion_with
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Atom, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input, Program, Relation

_NOTHING = Lit(value=False, type="boolean")
_COMPARISONS = ("EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")
"""Functions that are null if an argument is, so no condition of a rule."""
_DEFAULTS = {
    "string": Lit("", "string"),
    **{type_: Lit(0, type_) for type_ in ("tinyint", "smallint", "int", "bigint")},
}
"""A value in place of null, by which rows are looked up. Any value will do, as tests for null are looked up, too."""


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
        raise unfinished(relation.name, iterations, code, consequence)


def unfinished(relation: str, iterations: int, code: str, consequence: str) -> UsageError:
    """Return the error ``code`` for a limit that returns rows that are not final, with the ``consequence``."""
    return UsageError(
        code,
        f"a limit of {iterations} iterations returns rows {consequence}",
        value=iterations,
        place=f"relation {relation}",
        hint="count the steps in a key and bound it: keys=['node', 'legs'], and .where('legs < 3') in the step",
    )


def no_single_parent(relation: str, place: str, reads: str) -> UsageError:
    """Return ``PARALAGG_PATH`` for a rule whose rows come from several rows of the recursion."""
    return UsageError(
        "PARALAGG_PATH",
        f"a row of {relation!r} has no single parent: this branch reads {reads}",
        value=relation,
        place=place,
        hint="read the relation once in each branch, joined with inputs: dist JOIN edges, not dist JOIN dist",
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


def same_rows(left: Sequence[Expr], right: Sequence[Expr], conditions: Sequence[Expr]) -> list[tuple[Expr, ...]]:
    """Return the cases in which two tuples are the same, nulls included: conditions that joins can look up.

    If one pair may be null, the first case is that of tuples without nulls. The other one looks up which values are
    null, and a default for these. A pair of tuples belongs to one case at most. If several may be null, there is the
    other case alone: with two cases for each read of a rule, planning took three times as long. ``conditions`` hold in
    any case.
    """
    pairs = list(zip(left, right, strict=True))
    equal = tuple(is_equal(a, b) for a, b in pairs)
    compared = [a for c in conditions if isinstance(c, Call) and c.fn in _COMPARISONS for a in c.args]
    nullable = [pair for pair in pairs if all(may_be_null(e) and e not in compared for e in pair)]
    agree = tuple(c for pair in pairs for c in (_same(*pair) if pair in nullable else [is_equal(*pair)]))
    if len(nullable) == 1:
        return [equal, (_is_null(nullable[0][0]), *agree)]
    return [agree]


def _same(left: Expr, right: Expr) -> list[Expr]:
    """Return the conditions that two values are equal or both null, as equalities as far as the type allows."""
    flags = Call("EqualTo", (_is_null(left), _is_null(right)), "boolean", nullable=False)
    default = _DEFAULTS.get(left.type)
    if default is None:
        return [flags, is_same(left, right)]
    values = [Call("Coalesce", (e, default), e.type, nullable=False) for e in (left, right)]
    return [flags, Call("EqualTo", tuple(values), "boolean", nullable=False)]


def _is_null(value: Expr) -> Expr:
    return Call("IsNull", (value,), "boolean", nullable=False)


def fresh_variable(rule: Rule, stem: str) -> str:
    """Return a name that no variable of ``rule`` has."""
    return fresh_name(stem, frozenset[str]().union(*(a.bound for a in rule.body)))
