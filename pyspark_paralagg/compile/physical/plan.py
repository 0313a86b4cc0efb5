"""Build the Plan: strata with indexes and Δ rules, optional faster evaluations, and a reason for each choice.

The last step of ``compile``: it calls differentiate, binarize, distribute, assign_placement and select_indexes.

All rules of a stratum run in one epoch. Placement makes every probe of a chain local, so an iteration has one exchange,
for the derived rows. Gilray et al. (Compiling Data-Parallel Datalog) exchange once for each join of the longest chain.
Indexes that cannot be placed are replicated to every task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.annotate import annotate
from pyspark_paralagg.compile.physical.assign_placement import assign_placement
from pyspark_paralagg.compile.physical.bit_rows import bit_form, bit_rows
from pyspark_paralagg.compile.physical.decompose import without_carried
from pyspark_paralagg.compile.physical.differentiate import differentiate
from pyspark_paralagg.compile.physical.distribute import Distribution, carried_keys, distribute
from pyspark_paralagg.compile.physical.find_carried import find_carried
from pyspark_paralagg.compile.physical.hubs import with_hubs
from pyspark_paralagg.compile.physical.mirror import mirrored
from pyspark_paralagg.compile.physical.narrow import narrow
from pyspark_paralagg.compile.physical.select_indexes import Indexes
from pyspark_paralagg.compile.physical.spread import spread
from pyspark_paralagg.compile.prove.bounded import climbs, translates
from pyspark_paralagg.plan.plan import (
    Bitmap,
    Decomposition,
    Filter,
    Narrower,
    Plan,
    PlannedRelation,
    PlannedRule,
    Probe,
    RelationClass,
    StaticIndex,
    Stratum,
    hashed_heads,
)
from pyspark_paralagg.program.aggregators import is_numeric
from pyspark_paralagg.program.expr import Call, Col, walk
from pyspark_paralagg.program.text import input_name, show_size

if TYPE_CHECKING:
    from pyspark_paralagg.compile.physical.chain import Chain
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input, Program, Relation, Rule

BROADCAST_MAX_BYTES = 1 << 30
_ORDERING = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Least", "Greatest")


def plan(program: Program, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> Plan:
    """Build the plan of a verified program."""
    reasons = [*program.notes, *program.warnings]
    strata: list[Stratum] = []
    narrower: list[Narrower] = []
    for position, names in enumerate(program.strata):
        stratum, inputs, stratum_reasons = _stratum(program, names, broadcast_max_bytes)
        program = replace(program, inputs=inputs)
        strata.append(_with_placements(stratum, inputs))
        reasons += [*stratum_reasons, *_placement_reasons(strata[-1])]
        for smaller in narrow(program, stratum):
            narrowed, narrowed_inputs, _ = _stratum(smaller.program, names, broadcast_max_bytes)
            narrower += smaller.narrowers(position, _with_placements(narrowed, narrowed_inputs), narrowed_inputs)
    used = {i for s in strata for i in s.input_ids}
    read = tuple(i for i in program.inputs if i.id in used)
    return Plan(program.name, read, tuple(strata), tuple(reasons), tuple(narrower), functors=program.functors)


def _stratum(
    program: Program, names: tuple[str, ...], broadcast_max_bytes: int
) -> tuple[Stratum, tuple[Input, ...], list[str]]:
    iterations, on_limit, tolerance = program.limit(names)
    max_rows = program.row_limit(names)
    program = replace(program, max_iterations=iterations, on_limit=on_limit, tolerance=tolerance, max_rows=max_rows)
    relations = tuple(program.relation(n) for n in names)
    relation_class = _class(program, names[0])
    rules = tuple(r for r in program.rules if r.head in names)
    chains = tuple(c for r in rules for c in differentiate(r, program, relation_class))
    is_unlimited = relation_class == "lattice" and (iterations, tolerance, max_rows) == (None, None, None)
    # Bits start from an empty relation; a bit does not record when its pair was derived.
    may_use_bits = is_unlimited and not any(r.settled for r in relations)
    form = bit_form(program, relations) if may_use_bits else None
    distribution = distribute(relations, chains, program, broadcast_max_bytes, form)
    reasons = [*dict.fromkeys(c.reason for c in chains if c.reason is not None), *distribution.reasons]
    indexes = Indexes()
    planned = tuple(assign_placement(c, program, distribution, indexes, broadcast_max_bytes) for c in chains)
    is_linear = all(sum(a.relation is not None for a in r.body) == 1 for r in rules)
    has_views = any(d.view for r in relations for d in r.dependents)
    has_copies = any(i.copy for i in indexes.relations)
    in_place = is_unlimited and is_linear and not has_views and not has_copies
    bitmap = _bitmap(program, names, chains, planned, indexes, distribution) if may_use_bits else None
    statics = indexes.statics
    if bitmap is None:
        program, statics, planned = indexes.shared(program, planned)
    rows = None
    if form is not None and distribution.has_bit_rows:
        rows, statics = bit_rows(form, names, program, statics)
    reasons += _replicated_large_inputs(program, statics, broadcast_max_bytes)
    label = ", ".join(names)
    if chains:
        reasons.append(f"{label}: {_epoch_reason(chains, planned, indexes, distribution)}")
    if bitmap:
        reasons.append(
            f"{label}: evaluated in bitmaps, because it is a set that carries one key and moves the other along edges"
        )
    if rows:
        reasons.append(f"{label}: evaluated in rows of bits, because every rule copies one key from one atom")
    if in_place:
        reasons.append(f"{label}: an iteration reads the values that it writes (a lattice without an iteration limit)")
    else:
        why = _rounds_reason(program, relation_class, has_views=has_views, is_linear=is_linear)
        reasons.append(f"{label}: strict rounds ({why})")
    ordered_by = _ordered_by(relations, planned) if in_place else None
    if ordered_by is not None:
        column = relations[0].dependents[ordered_by].column.name
        reasons.append(f"{label}: rows may be applied in the order of {column}, best first")
    decomposition = None
    if in_place and distribution.is_decomposed and bitmap is None and len(relations) == 1 and may_use_bits:
        decomposition = _decomposition(program, relations[0], carried_keys(relations[0], chains), statics)
        if decomposition is not None:
            reasons.append(f"{label}: may be evaluated for one carried value at a time, without hashing")
    may_climb = _may_climb(program, relation_class, rules)
    stratum = Stratum(
        tuple(
            PlannedRelation(
                r.name,
                r.keys,
                r.dependents,
                distribution.by[r.name],
                r.base,
                r.initial,
                r.settled and r.initial is not None,
                r.numbered,
            )
            for r in relations
        ),
        statics,
        indexes.relations,
        planned,
        relation_class,
        in_place,
        may_climb,
        any(map(_makes_strings, planned)) or any(_combines_strings(r) for r in relations),
        bitmap,
        ordered_by,
        decomposition,
        program.max_iterations,
        program.on_limit,
        program.tolerance,
        find_carried(program, relations),
        None if not may_climb or translates(program, rules, relation_class) else program.climb_limit,
        bit_rows=rows,
        ends_at=max_rows,
    )
    annotated = annotate(stratum)
    return annotated, program.inputs, [*reasons, *_sums_by_target(label, annotated)]


def _with_placements(stratum: Stratum, inputs: tuple[Input, ...]) -> Stratum:
    """Return the stratum with its forms for several ranks, which a decomposed stratum, in one task, has no use for."""
    return replace(stratum, mirrored=mirrored(stratum, inputs), spread=spread(stratum), hubs=with_hubs(stratum, inputs))


def _placement_reasons(stratum: Stratum) -> list[str]:
    """Return what the engine may do with edges once it knows them (docs/balance.md)."""
    label = ", ".join(r.name for r in stratum.relations)
    if stratum.hubs is None:
        return []
    return [f"{label}: edges of a key with a large part of them may be spread: each rule follows one index of edges"]


def _ordered_by(relations: tuple[Relation, ...], rules: tuple[PlannedRule, ...]) -> int | None:
    """Return the position of the single number that a lattice minimises or maximises; None if there is none.

    Applying the best values first avoids work on worse ones. Rows located by hashing gain nothing by it.
    """
    if len(relations) > 1 or any(r.target.kind == "computed" for r in rules):
        return None
    dependents = relations[0].dependents
    uncarried = [n for n, d in enumerate(dependents) if d.order is None]
    if len(uncarried) != 1 or dependents[uncarried[0]].aggregator not in ("min", "max"):
        return None
    return uncarried[0] if is_numeric(dependents[uncarried[0]].column.type) else None


def _decomposition(
    program: Program, relation: Relation, carried: tuple[int, ...], statics: tuple[StaticIndex, ...]
) -> Decomposition | None:
    """Return the stratum without its carried keys; None if it locates rows by hashing or has other static indexes."""
    smaller = without_carried(program, relation, carried)
    if smaller is None:
        return None
    inner, _, _ = _stratum(smaller, (relation.name,), 0)
    loaded = {(i.input, i.keys, i.payload) for i in statics}
    is_same = {(i.input, i.keys, i.payload) for i in inner.static_indexes} <= loaded
    if not (is_same and inner.in_place) or any(r.target.kind == "computed" for r in inner.rules):
        return None
    return Decomposition(carried, inner)


def _epoch_reason(
    chains: tuple[Chain, ...], planned: tuple[PlannedRule, ...], indexes: Indexes, distribution: Distribution
) -> str:
    joins = max(len(c.lookups) for c in chains)
    rules = f"{len(chains)} rules in one epoch" if len(chains) > 1 else "one rule"
    text = f"{rules}, {joins} {'join' if joins == 1 else 'joins'} in the longest chain, every probe local"
    if joins == 0:
        text = f"{rules} without a join"
    if distribution.is_decomposed:
        return f"{text}: no rows are exchanged"
    copies = sum(i.copy for i in indexes.relations)
    follow = f", and updates {'a copy' if copies == 1 else f'{copies} copies'}" if copies else ""
    early = ""
    if hashed_heads(planned):
        early = " (earlier, too, if a task holds many for others)"
    elif any(r.target.kind == "resolved" for r in planned):
        early = " (not earlier: row ids are resolved at load)"
    return f"{text}: each iteration exchanges the derived rows once{early}{follow}"


def _sums_by_target(label: str, stratum: Stratum) -> list[str]:
    """Return the reason for adding up sums by target, if a rule allows it."""
    if not any(r.adds_by_target for r in stratum.rules):
        return []
    return [f"{label}: an iteration in which every source contributes writes each sum once, by target"]


def _may_climb(program: Program, relation_class: RelationClass, rules: tuple[Rule, ...]) -> bool:
    if relation_class == "iterated":  # an iterated step may also oscillate
        return program.max_iterations is None and program.tolerance is None
    return relation_class == "accumulating" or climbs(program, rules)


def _makes_strings(rule: PlannedRule) -> bool:
    """Return whether a computed or constant string is a lookup key or in the head, or a computed one is ordered."""
    looked_up = [key for step in rule.steps if isinstance(step, Probe) for key in step.keys]
    conditions = [step.condition for step in rule.steps if isinstance(step, Filter)]
    is_stored = any(e.type == "string" and not isinstance(e, Col) for e in (*rule.emit, *looked_up))
    return is_stored or any(map(_orders_strings, (*rule.emit, *looked_up, *conditions)))


def _orders_strings(expr: Expr) -> bool:
    """Return whether ``expr`` contains a comparison by order with a computed string."""
    ordering = (e for e in walk(expr) if isinstance(e, Call) and e.fn in _ORDERING)
    return any(isinstance(a, Call) and a.type == "string" for e in ordering for a in e.args)


def _combines_strings(relation: Relation) -> bool:
    """Return whether a user-defined aggregator may combine strings into new ones."""
    return any(d.custom is not None and d.column.type == "string" for d in relation.dependents)


def _replicated_large_inputs(program: Program, statics: tuple[StaticIndex, ...], broadcast_max_bytes: int) -> list[str]:
    """Return the reasons for large inputs that are replicated because no key of the recursion looks them up."""
    reasons = []
    for index in statics:
        source = program.input(index.input)
        if index.placement == "everywhere" and (source.size_bytes is None or source.size_bytes > broadcast_max_bytes):
            size = show_size(source.size_bytes) or "of unknown size"
            reasons.append(
                f"{input_name(source)} ({size}) is stored in every task, because no key of the recursion alone looks "
                "it up"
            )
    return reasons


def _class(program: Program, name: str) -> RelationClass:
    kind = dict(program.classes)[name]
    return "iterated" if kind == "iterated" else "accumulating" if kind == "accumulating" else "lattice"


def _rounds_reason(program: Program, relation_class: RelationClass, *, has_views: bool, is_linear: bool) -> str:
    if relation_class != "lattice":
        return f"the class is {relation_class}"
    if has_views:
        return "witnesses are counted between rounds"
    if program.max_iterations is not None:
        return "the number of iterations is limited"
    if program.max_rows is not None:
        return "the number of rows is limited"
    if program.tolerance is not None:
        return "a tolerance is set"
    return "a rule reads a copy, which is updated between rounds" if is_linear else "a rule reads two recursive atoms"


def _bitmap(  # noqa: PLR0913, PLR0917 - the parts of a stratum
    program: Program,
    names: tuple[str, ...],
    chains: tuple[Chain, ...],
    rules: tuple[PlannedRule, ...],
    indexes: Indexes,
    distribution: Distribution,
) -> Bitmap | None:
    """Return the bitmap form of a decomposed set with two keys if every rule is one lookup of the moving key."""
    relation = program.relation(names[0])
    if len(names) > 1 or relation.dependents or len(relation.keys) != 2 or not distribution.is_decomposed:  # noqa: PLR2004
        return None
    moving = 1 - carried_keys(relation, chains)[0]
    edges = []
    for rule in rules:
        if len(rule.steps) != 1 or not isinstance(rule.steps[0], Probe):
            return None
        probe = rule.steps[0]
        if not _moves(rule, probe, indexes.statics[probe.index], moving):
            return None
        edges.append(probe.index)
    return Bitmap(relation.name, moving, tuple(dict.fromkeys(edges)))


def _moves(rule: PlannedRule, probe: Probe, index: StaticIndex, moving: int) -> bool:
    key, to = probe.keys, rule.emit[moving]
    return (
        probe.kind == "join"
        and not probe.recursive
        and index.placement == "everywhere"
        and len(key) == 1
        and isinstance(key[0], Col)
        and key[0].name == rule.driver.binds[moving]
        and len(probe.binds) == 1
        and isinstance(to, Col)
        and to.name == probe.binds[0]
    )
