"""Prove the class of each stratum: lattice, accumulating or iterated (docs/architecture.md, "The proof").

    min, max, any, all, bits, min_by, sets    lattice        every value and filter moves with its aggregator
    sum, count                                accumulating   every rule is linear in them
    sum                                       iterated       every rule is linear but for a rounding
    mode="iterate", or initial rows           iterated       nothing to prove

A refuted claim raises a ``VerificationError`` with a counterexample. So does a claim that is neither proved nor
refuted, unless ``mode="trust"`` accepts it. Conditions that a proof needs of the data are guarded; ``mode="trust"``
accepts them without guards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.check_accumulating import check_accumulating
from pyspark_paralagg.compile.prove.check_lattice import check_lattice
from pyspark_paralagg.compile.prove.facts import Invariants
from pyspark_paralagg.compile.prove.guard import add_guards, guard_levels, weaken, with_overflow_checks
from pyspark_paralagg.compile.prove.incremental import show_incremental
from pyspark_paralagg.compile.prove.invariants import find_invariants
from pyspark_paralagg.compile.prove.refusal import check_shape, note_or_raise
from pyspark_paralagg.compile.prove.verdict import Proved
from pyspark_paralagg.errors import UnsupportedError, VerificationError
from pyspark_paralagg.program.names import stem_of
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.compile.prove.decide import Provers
    from pyspark_paralagg.compile.prove.guard import Guard
    from pyspark_paralagg.compile.prove.verdict import Judgement
    from pyspark_paralagg.plan.plan import RelationClass
    from pyspark_paralagg.program.program import Program, Relation


def verify(program: Program) -> Program:
    """Return the program with ``classes`` set, the guards that its proofs need, and reasons in ``notes``.

    Raises ``VerificationError``: ``PARALAGG_JOIN_ON_DEPENDENT``, ``PARALAGG_DEPENDENT_AS_KEY``,
    ``PARALAGG_NOT_MONOTONE``, ``PARALAGG_NOT_LINEAR``, ``PARALAGG_NOT_PROVED``, ``PARALAGG_MIXED_AGGREGATES``.
    """
    classes: list[tuple[str, str]] = []
    invariants = Invariants()
    notes = [f"assumed by the user: {show(a)}" for a in program.assume]
    for names in program.strata:
        program, relation_class, reasons = _stratum(program, names, invariants)
        invariants = find_invariants(program, names, invariants)
        classes += [(n, relation_class) for n in names]
        notes += [f"{', '.join(names)}: {relation_class} ({reasons[0]})", *reasons[1:]]
    return replace(program, classes=tuple(classes), notes=(*program.notes, *notes))


def judgements(program: Program) -> Iterator[Judgement]:
    """Yield all judgements of ``program``, a program after the earlier passes; ``mode`` has no effect.

    Raises ``VerificationError`` for a join on a dependent column and for aggregates that do not mix.
    """
    invariants = Invariants()
    for names in program.strata:
        decided = _decide(program, names, _kind(program, names), invariants)
        program = decided.program
        invariants = find_invariants(program, names, invariants)
        yield from decided.judgements


@dataclass(frozen=True)
class _Decided:
    """The judgements of a stratum, and the program with the guards that its proofs need."""

    program: Program
    judgements: tuple[Judgement, ...]
    guards: tuple[Guard, ...] = ()


def _decide(program: Program, names: tuple[str, ...], kind: RelationClass, invariants: Invariants) -> _Decided:
    """Prove the stratum with as few guards as possible; without a proof, judge it with all guards."""
    if kind == "iterated":
        return _Decided(program, ())
    if kind == "accumulating":
        return _Decided(program, tuple(_stratum_judgements(program, names, kind, invariants, provers="all")))
    levels = list(guard_levels(program, names))
    for provers in ("rules", "z3"):
        for guards in levels:
            if _prove(program, guards, names, invariants, provers) is not None:
                return _with_fewest_guards(program, guards, names, invariants, provers)
    candidate = add_guards(program, levels[-1])
    return _Decided(program, tuple(_stratum_judgements(candidate, names, kind, invariants, provers="all")))


def _with_fewest_guards(
    program: Program, guards: tuple[Guard, ...], names: tuple[str, ...], invariants: Invariants, provers: Provers
) -> _Decided:
    for g in guards:
        fewer = tuple(x for x in guards if x != g)
        if _prove(program, fewer, names, invariants, provers) is not None:
            guards = fewer
        elif (less := weaken(g)) is not None:
            fewer = tuple(less if x == g else x for x in guards)
            guards = fewer if _prove(program, fewer, names, invariants, provers) is not None else guards
    proofs = _prove(program, guards, names, invariants, provers) or ()
    if program.mode == "trust":
        return _Decided(program, proofs, guards)
    program = add_guards(program, guards)
    places = {j.place for j in proofs if isinstance(j.verdict, Proved) and j.verdict.checks_overflow}
    rules = tuple(with_overflow_checks(r, program) if r.place in places else r for r in program.rules)
    return _Decided(replace(program, rules=rules), proofs, guards)


def _prove(
    program: Program, guards: tuple[Guard, ...], names: tuple[str, ...], invariants: Invariants, provers: Provers
) -> tuple[Judgement, ...] | None:
    """Return the proofs of all claims of a stratum with ``guards``; None if a claim is not proved."""
    proofs: list[Judgement] = []
    for j in _stratum_judgements(add_guards(program, guards), names, "lattice", invariants, provers=provers):
        if not isinstance(j.verdict, Proved):
            return None
        proofs.append(j)
    return tuple(proofs)


def _stratum_judgements(
    program: Program, names: tuple[str, ...], kind: RelationClass, invariants: Invariants, *, provers: Provers
) -> Iterator[Judgement]:
    invariants = find_invariants(program, names, invariants)
    for rule in program.rules:
        if rule.head in names:
            check_shape(rule, program)
            if kind == "accumulating":
                yield from check_accumulating(rule, program, invariants)
            else:
                yield from check_lattice(rule, program, invariants, provers=provers)


def _kind(program: Program, names: tuple[str, ...]) -> RelationClass:
    """Return the class that the aggregators of a stratum need; ``iterated`` if they mix without recursion.

    Raises ``VerificationError`` ``PARALAGG_MIXED_AGGREGATES``.
    """
    relations = [program.relation(n) for n in names]
    heads = [r for r in relations if any(rule.head == r.name for rule in program.rules)] or relations
    kinds = {d.is_idempotent for r in heads for d in r.dependents} | {True for r in heads if not r.dependents}
    if len(kinds) == 1:
        return "lattice" if kinds == {True} else "accumulating"
    rules = [r for r in program.rules if r.head in names]
    is_recursive = any(a.relation in names for r in rules for a in r.body if a.relation)
    if not is_recursive:
        return "iterated"
    aggregators = sorted(
        {d.aggregator for r in relations for d in r.dependents} | {"set" for r in relations if not r.dependents}
    )
    shown = ", ".join(dict.fromkeys(map(stem_of, names)))
    raise VerificationError(
        "PARALAGG_MIXED_AGGREGATES",
        f"{shown} recurse together under {', '.join(aggregators)}: some keep the best value, others add up",
        value=aggregators,
        place=f"relation {stem_of(names[0])}",
        hint='compute one after the other, or use mode="iterate"',
    )


def _stratum(program: Program, names: tuple[str, ...], invariants: Invariants) -> tuple[Program, str, list[str]]:
    relations = [program.relation(n) for n in names]
    if any(r.settled for r in relations):
        return _continued(program, names, invariants)
    given = _given(program, relations)
    if given is not None:
        return program, *given
    kind = _kind(program, names)
    if kind == "iterated":
        _check_iterable(relations)
        return program, "iterated", ["it is not recursive, so it needs one round"]
    decided = _decide(program, names, kind, invariants)
    judged = [note_or_raise(found, program.mode) for found in decided.judgements]
    notes = dict.fromkeys((*judged, *(g.note(program.mode) for g in decided.guards)))
    initial = next((r.name for r in relations if r.initial is not None), None)
    if initial is not None:
        _check_iterable(relations)
        shown = show_incremental(program, names) if kind == "accumulating" else []
        reason = f"{initial} has initial rows, which the first round may not derive"
        return program, "iterated", [reason, *notes, *shown]
    if kind == "lattice":
        return decided.program, kind, ["every rule is monotone", *notes]
    inexact = _of_whole_values(decided)
    if inexact is not None:
        _check_iterable(relations)
    whole = f"{inexact}, so each round computes all rows from whole values"
    kind, reason = ("iterated", whole) if inexact else ("accumulating", "every rule is linear in its sums")
    return program, kind, [reason, *notes]


def _continued(program: Program, names: tuple[str, ...], invariants: Invariants) -> tuple[Program, str, list[str]]:
    """Return the class of a stratum that goes on from stored rows, and the reasons."""
    kind = "iterated" if program.mode == "iterate" else _kind(program, names)
    if kind == "iterated":
        raise _not_continuable(names[0], kind)
    # A proof relies on facts about all base rows, and a continued run has only later ones. The steps were proved in
    # the first run, so only the guards matter here.
    decided = _decide(program, names, kind, invariants)
    if _of_whole_values(decided) is not None:
        raise _not_continuable(names[0], "iterated")
    proved_before = "it continues a fixpoint, whose steps were proved when it was computed"
    notes_of_guards = (g.note(program.mode) for g in decided.guards)
    return decided.program if kind == "lattice" else program, kind, [proved_before, *notes_of_guards]


def _of_whole_values(decided: _Decided) -> str | None:
    """Return why each round has to compute all rows; None if all judgements hold of differences."""
    for j in decided.judgements:
        if isinstance(j.verdict, Proved) and j.verdict.of_whole_values:
            return f"{j.column} is linear only up to rounding"
    return None


def _not_continuable(relation: str, kind: RelationClass) -> UnsupportedError:
    return UnsupportedError(
        "PARALAGG_NOT_CONTINUABLE",
        f"{relation} is {kind}, and only a lattice can continue from stored rows",
        value=kind,
        place=f"relation {relation}",
    )


def _given(program: Program, relations: list[Relation]) -> tuple[str, list[str]] | None:
    """Return the class of a stratum that needs no proof, and the reason; None if it needs one."""
    followed = next((r.follows for r in relations if r.follows is not None), None)
    if followed is not None:
        return "lattice", [f"it begins with the rows of {followed}, which only get hops and parents"]
    if program.mode != "iterate":
        return None
    _check_iterable(relations)
    return "iterated", ['mode="iterate" is set']


def _check_iterable(relations: list[Relation]) -> None:
    for r in relations:
        carried = [d.column.name for d in r.dependents if d.order is not None]
        if carried and any(d.definition.is_sum for d in r.dependents):
            raise UnsupportedError(
                "PARALAGG_STEP_UNSUPPORTED",
                f"{carried[0]} follows another column of {r.name}, which also has a sum: this cannot run "
                "inside the loop",
                value=carried[0],
                place=f"relation {r.name}",
            )
