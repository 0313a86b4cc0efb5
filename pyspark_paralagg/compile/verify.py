"""Puts each stratum in a class, by proof: lattice, accumulating or iterated (design section 3).

    min, max, any, all, bits, min_by, sets    lattice        every value and filter moves with its aggregator
    sum, count                                accumulating   every rule is linear in them
    what mode="iterate" or initial= asks for  iterated       nothing to prove

A refuted claim is a ``VerificationError`` with a counterexample; a claim that is neither proved nor refuted is one too,
unless ``mode="trust"`` takes the user's word for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.check_accumulating import check_accumulating
from pyspark_paralagg.compile.check_lattice import check_lattice
from pyspark_paralagg.compile.refusal import Refuser
from pyspark_paralagg.errors import UnsupportedError, VerificationError
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Relation


def verify(program: Program) -> Program:
    """The program with ``classes`` set and the reasons among its ``notes``.

    Raises ``VerificationError``: ``PARALAGG_JOIN_ON_DEPENDENT``, ``PARALAGG_DEPENDENT_AS_KEY``,
    ``PARALAGG_NOT_MONOTONE``, ``PARALAGG_NOT_LINEAR``, ``PARALAGG_NOT_PROVED``, ``PARALAGG_MIXED_AGGREGATES``.
    """
    classes: list[tuple[str, str]] = []
    notes = [f"assumed by the user: {show(a)}" for a in program.assume]
    for names in program.strata:
        relation_class, why = _stratum(program, names)
        classes += [(n, relation_class) for n in names]
        notes += [f"{', '.join(names)}: {relation_class} ({why[0]})", *why[1:]]
    return replace(program, classes=tuple(classes), notes=(*program.notes, *notes))


def _stratum(program: Program, names: tuple[str, ...]) -> tuple[str, list[str]]:
    relations = [program.relation(n) for n in names]
    rules = tuple(r for r in program.rules if r.head in names)
    if program.mode == "iterate":
        _check_iterable(relations)
        return "iterated", ['mode="iterate" asks for it']
    heads = [r for r in relations if any(rule.head == r.name for rule in rules)] or relations
    kinds = {AGGREGATORS[d.aggregator].is_idempotent for r in heads for d in r.dependents}
    kinds |= {True for r in heads if not r.dependents}
    if len(kinds) > 1:
        return _mixed(program, names, relations)
    refuser = Refuser(program)
    for rule in rules:
        refuser.check_shape(rule)
        if kinds == {False}:
            check_accumulating(rule, program, refuser)
        else:
            check_lattice(rule, program, refuser)
    initial = next((r.name for r in relations if r.initial is not None), None)
    if initial is not None:
        _check_iterable(relations)
        return "iterated", [f"{initial} has initial rows, which may lie beyond the first application", *refuser.notes]
    if kinds == {False}:
        return "accumulating", ["every rule is linear in the columns that are added up", *refuser.notes]
    return "lattice", ["every rule is monotone", *refuser.notes]


def _mixed(program: Program, names: tuple[str, ...], relations: list[Relation]) -> tuple[str, list[str]]:
    is_recursive = any(a.relation in names for r in program.rules if r.head in names for a in r.body if a.relation)
    if len(names) == 1 and not is_recursive:
        _check_iterable(relations)
        return "iterated", ["it is not recursive, so one round is all there is"]
    found = sorted(
        {d.aggregator for r in relations for d in r.dependents} | {"set" for r in relations if not r.dependents}
    )
    raise VerificationError(
        "PARALAGG_MIXED_AGGREGATES",
        f"{', '.join(names)} recurse together under {', '.join(found)}: some keep the best value, some add up",
        value=found,
        place=f"relation {names[0]}",
        hint='compute one after the other, or ask for mode="iterate"',
    )


def _check_iterable(relations: list[Relation]) -> None:
    for r in relations:
        carried = [d.column.name for d in r.dependents if d.order is not None]
        if carried and any(d.aggregator in ("sum", "count") for d in r.dependents):
            raise UnsupportedError(
                "PARALAGG_STEP_UNSUPPORTED",
                f"{carried[0]} follows another column of {r.name} beside a sum: this cannot run inside the loop",
                value=carried[0],
                place=f"relation {r.name}",
            )
