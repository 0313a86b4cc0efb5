"""Raise the errors of the proof, with column, place, cause and hints; the wording is the same for all claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.verdict import Judgement, Proved, Refuted
from pyspark_paralagg.compile.rewrite.scope import Variable, dependents_in, variables
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.expr import Call, columns
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Mode, Program, Rule

_WAYS_OUT = 'rewrite the step, or use mode="iterate", which recomputes all rows each round'


def check_shape(rule: Rule, program: Program) -> None:
    """Raise ``VerificationError`` if an aggregated column of the recursion is a key of the head or joins atoms."""
    scope = variables(rule, program)
    head = program.relation(rule.head)
    for key, expr in zip(head.keys, rule.exprs, strict=False):
        names = dependents_in(expr, scope)
        if names:
            v = scope[names[0]]
            raise VerificationError(
                "PARALAGG_DEPENDENT_AS_KEY",
                f"the key {key.name} is {show(expr)}, computed from {v.relation}.{v.column.name}, which "
                f"{_aggregator(v)} aggregates in this recursion",
                value=v.column.name,
                place=rule.place,
                hint=f"compute the key from keys, or read {v.relation} in a later query",
            )
    for condition in rule.conditions:
        names = dependents_in(condition, scope)
        atoms = {scope[c].atom for c in columns(condition)}
        if names and len(atoms) > 1 and isinstance(condition, Call) and condition.fn in ("EqualTo", "EqualNullSafe"):
            v = scope[names[0]]
            raise VerificationError(
                "PARALAGG_JOIN_ON_DEPENDENT",
                f"{show(condition)} joins on {v.relation}.{v.column.name}, which {_aggregator(v)} aggregates in "
                "this recursion",
                value=v.column.name,
                place=rule.place,
                hint=f"join on a key column, or read {v.relation} in a later query",
            )


def note_or_raise(judgement: Judgement, mode: Mode) -> str:
    """Return the note for a claim that is proved or trusted; raise ``VerificationError`` otherwise.

    A refuted claim is always an error here; only ``mode="trust"`` accepts an unknown one.
    """
    verdict = judgement.verdict
    if isinstance(verdict, Refuted):
        raise VerificationError(
            judgement.code,
            f"{judgement.problem}: {verdict.counterexample}",
            value=judgement.column,
            place=judgement.place,
            hint=judgement.instead + _WAYS_OUT,
        )
    if isinstance(verdict, Proved):
        return str(judgement)
    if mode == "trust":
        return f"{judgement.place}: {judgement.claim}: not proved, trusted by the user"
    assume = f'add assume="{verdict.assume}" if it holds, ' if verdict.assume else ""
    raise VerificationError(
        "PARALAGG_NOT_PROVED",
        f"the claim that {judgement.claim} is {verdict}",
        value=judgement.column,
        place=judgement.place,
        hint=f'{judgement.instead}{assume}use mode="trust" if you know that the claim holds, {_WAYS_OUT}',
    )


def _aggregator(v: Variable) -> str:
    return v.dependent.aggregator if v.dependent else ""
