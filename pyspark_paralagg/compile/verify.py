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
from pyspark_paralagg.compile.incremental import show_incremental
from pyspark_paralagg.compile.known import Invariants, invariants
from pyspark_paralagg.compile.refusal import check_shape, note
from pyspark_paralagg.errors import UnsupportedError, VerificationError
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.compile.verdict import Judgement
    from pyspark_paralagg.plan.plan import RelationClass
    from pyspark_paralagg.program.program import Program, Relation


def verify(program: Program) -> Program:
    """The program with ``classes`` set and the reasons among its ``notes``.

    Raises ``VerificationError``: ``PARALAGG_JOIN_ON_DEPENDENT``, ``PARALAGG_DEPENDENT_AS_KEY``,
    ``PARALAGG_NOT_MONOTONE``, ``PARALAGG_NOT_LINEAR``, ``PARALAGG_NOT_PROVED``, ``PARALAGG_MIXED_AGGREGATES``.
    """
    classes: list[tuple[str, str]] = []
    known: Invariants = {}
    notes = [f"assumed by the user: {show(a)}" for a in program.assume]
    for names in program.strata:
        known = invariants(program, names, known)
        relation_class, why = _stratum(program, names, known)
        classes += [(n, relation_class) for n in names]
        notes += [f"{', '.join(names)}: {relation_class} ({why[0]})", *why[1:]]
    return replace(program, classes=tuple(classes), notes=(*program.notes, *notes))


def judgements(program: Program) -> Iterator[Judgement]:
    """Everything that the check has to say of ``program``, as the passes before it leave it; ``mode`` plays no part.

    Raises ``VerificationError`` for what is no claim: a join on a dependent column, aggregates that do not mix.
    """
    known: Invariants = {}
    for names in program.strata:
        known = invariants(program, names, known)
        yield from _of_stratum(program, names, _kind(program, names), known)


def _of_stratum(
    program: Program, names: tuple[str, ...], kind: RelationClass, known: Invariants
) -> Iterator[Judgement]:
    for rule in program.rules:
        if rule.head in names and kind != "iterated":
            check_shape(rule, program)
            yield from (
                check_accumulating(rule, program) if kind == "accumulating" else check_lattice(rule, program, known)
            )


def _kind(program: Program, names: tuple[str, ...]) -> RelationClass:
    """What the aggregators of a stratum ask for; ``iterated`` where it is not recursive and nothing does.

    Raises ``VerificationError`` ``PARALAGG_MIXED_AGGREGATES``.
    """
    relations = [program.relation(n) for n in names]
    heads = [r for r in relations if any(rule.head == r.name for rule in program.rules)] or relations
    kinds = {d.is_idempotent for r in heads for d in r.dependents} | {True for r in heads if not r.dependents}
    if len(kinds) == 1:
        return "lattice" if kinds == {True} else "accumulating"
    rules = [r for r in program.rules if r.head in names]
    is_recursive = any(a.relation in names for r in rules for a in r.body if a.relation)
    if len(names) == 1 and not is_recursive:
        return "iterated"
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


def _stratum(program: Program, names: tuple[str, ...], known: Invariants) -> tuple[str, list[str]]:
    relations = [program.relation(n) for n in names]
    if any(r.settled for r in relations):
        kind = "iterated" if program.mode == "iterate" else _kind(program, names)
        if kind != "lattice":
            raise UnsupportedError(
                "PARALAGG_NOT_CONTINUABLE",
                f"{names[0]} is {kind}, and only a lattice goes on from the rows that it has",
                value=kind,
                place=f"relation {names[0]}",
            )
        # What holds of base rows proves the whole; here they are some rows of a later moment, of which it is not known.
        return kind, ["it continues a fixpoint, whose steps were proved when it was computed"]
    if program.mode == "iterate":
        _check_iterable(relations)
        return "iterated", ['mode="iterate" asks for it']
    kind = _kind(program, names)
    if kind == "iterated":
        _check_iterable(relations)
        return "iterated", ["it is not recursive, so one round is all there is"]
    notes = [note(found, program.mode) for found in _of_stratum(program, names, kind, known)]
    initial = next((r.name for r in relations if r.initial is not None), None)
    if initial is not None:
        _check_iterable(relations)
        shown = show_incremental(program, names) if kind == "accumulating" else []
        why = f"{initial} has initial rows, which may lie beyond the first application"
        return "iterated", [why, *notes, *shown]
    if kind == "accumulating":
        return kind, ["every rule is linear in the columns that are added up", *notes]
    return kind, ["every rule is monotone", *notes]


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
