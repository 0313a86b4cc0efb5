"""Find recursions that rows of bits evaluate: sets with two keys, of which every rule copies one from a single atom.

    pt(v, o)  :- assign(v, w), pt(w, o).                 the bits of row w go to row v
    pt(v, o)  :- load(v, w), pt(w, p), hpt(p, o).        the pair (w, p) adds an edge from row p of hpt to row v of pt
    hpt(p, o) :- store(v, w), pt(v, p), pt(w, o).        the pair (v, p) adds an edge from row w of pt to row p of hpt

A row is one value of the other key, with a bit for each value of the *carried* key (here ``o``). A rule with one
recursive atom has an edge for each row of an input; a rule with two has an edge for each pair of the atom that is not
copied. Along an edge, 64 pairs are joined by one operation on a word, where rules on tuples derive each pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.equal import Classes, equality
from pyspark_paralagg.compile.rewrite.types import is_float
from pyspark_paralagg.plan.plan import BitRows, Flow, StaticIndex
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_paralagg.plan.plan import End
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Atom, Input, Program, Relation, Rule


@dataclass(frozen=True)
class Lookup:
    """An input of a rule, looked up by its column ``key``; the column ``found`` of its rows is read."""

    input: int
    key: int
    found: int


@dataclass(frozen=True)
class BitForm:
    """The carried key of each relation, as a position, and the flows with the lookup of each."""

    carried: Mapping[str, int]
    flows: tuple[tuple[Flow, Lookup | None], ...]


def bit_form(program: Program, relations: tuple[Relation, ...]) -> BitForm | None:
    """Return how rows of bits evaluate the relations of a stratum; None if they cannot, or would gain nothing."""
    if any(len(r.keys) != 2 or r.dependents or r.initial is not None for r in relations):  # noqa: PLR2004
        return None
    if any(is_float(k.type) for r in relations for k in r.keys):
        return None  # equal floats may differ in the sign of zero, which the result shows
    rules = [r for r in program.rules if r.head in {x.name for x in relations}]
    if not any(_makes_edges(r) for r in rules):
        return None
    carried = next(_choices({}, tuple(r.name for r in relations), rules, program), None)
    if carried is None:
        return None
    flows = (_flow(rule, program, carried) for rule in rules)
    return BitForm(carried, tuple(f for f in flows if f is not None))


def _makes_edges(rule: Rule) -> bool:
    """Return whether a rule has two recursive atoms and an input."""
    recursive = sum(a.relation is not None for a in rule.body)
    return recursive == 2 and len(rule.body) > recursive  # noqa: PLR2004 - the one that is copied, and the other


def _choices(
    carried: dict[str, int], names: tuple[str, ...], rules: list[Rule], program: Program
) -> Iterator[dict[str, int]]:
    """Yield each choice of a carried key for all relations by which every rule has a flow, by trying one at a time."""
    if not names:
        yield carried
        return
    # A relation that shares a rule with those chosen: a wrong choice fails at once, not after all others.
    name = next((n for n in names if any(carried.keys() & _read(r) and n in _read(r) for r in rules)), names[0])
    for position in (1, 0):
        chosen = {**carried, name: position}
        known = [r for r in rules if name in _read(r) and _read(r) <= chosen.keys()]
        if all(_flow(r, program, chosen) is not None for r in known):
            yield from _choices(chosen, tuple(n for n in names if n != name), rules, program)


def _read(rule: Rule) -> set[str]:
    return {rule.head, *(a.relation for a in rule.body if a.relation is not None)}


def bit_rows(
    form: BitForm, names: tuple[str, ...], program: Program, statics: tuple[StaticIndex, ...]
) -> tuple[BitRows, tuple[StaticIndex, ...]]:
    """Return the planned form of the relations ``names``, and ``statics`` with the indexes that it reads besides."""
    flows = []
    for flow, lookup in form.flows:
        if lookup is None:
            flows.append(flow)
            continue
        is_local = flow.key == "carried"
        index, found = _existing(lookup, program, statics, is_local=is_local)
        if index is None:
            index = StaticIndex(len(statics), lookup.input, (lookup.key,), (lookup.found,), "everywhere", ())
            statics, found = (*statics, index), 0
        flows.append(replace(flow, index=index.id, found=found))
    return BitRows(tuple(form.carried[r] for r in names), tuple(flows)), statics


def _existing(
    lookup: Lookup, program: Program, statics: tuple[StaticIndex, ...], *, is_local: bool
) -> tuple[StaticIndex | None, int]:
    """Return the index of the rows of ``lookup`` by its key, and the place of the column that it reads; or None."""
    looked_up = program.input(lookup.input)
    for index in statics:
        source = program.input(index.input)
        columns = [source.exprs[p] for p in index.payload]
        if (
            _rows(source) == _rows(looked_up)
            and [source.exprs[k] for k in index.keys] == [looked_up.exprs[lookup.key]]
            and looked_up.exprs[lookup.found] in columns
            and (index.placement == "everywhere" or is_local)
        ):
            return index, columns.index(looked_up.exprs[lookup.found])
    return None, 0


def _rows(source: Input) -> Input:
    return replace(source, id=0, exprs=())


def _flow(rule: Rule, program: Program, carried: Mapping[str, int]) -> tuple[Flow, Lookup | None] | None:
    """Return the flow of a rule if it copies the carried key from one atom and its other atoms make edges."""
    if any(equality(c) is None for c in rule.conditions) or any(a.kind != "join" for a in rule.body):
        return None
    classes = Classes.from_conditions(rule.conditions, lambda _: True)
    head = _variables(rule.exprs, classes)
    atoms = [[None if v is None else min(classes.mates(v)) for v in a.variables] for a in rule.body]
    if None in head or not _types_agree(rule, program) or any(_repeats(variables) for variables in atoms):
        return None
    bits, to = head[carried[rule.head]], head[1 - carried[rule.head]]
    recursive = [n for n, a in enumerate(rule.body) if a.relation is not None]
    inputs = [n for n, a in enumerate(rule.body) if a.relation is None]
    copied = [n for n in recursive if atoms[n][carried[_name(rule.body[n])]] == bits]
    others = [n for n in recursive if n not in copied]
    is_carried = bits != to and sum(variables.count(bits) for variables in atoms) == 1
    if not is_carried or len(copied) != 1 or len(others) > 1 or len(inputs) > 1:
        return None
    source = _name(rule.body[copied[0]])
    origin = atoms[copied[0]][1 - carried[source]]
    reads = _name(rule.body[others[0]]) if others else None
    pair = atoms[others[0]] if others else []
    ends: dict[str | None, End] = {origin: "row"}
    if reads is not None:
        ends = {pair[1 - carried[reads]]: "row", pair[carried[reads]]: "carried"}
    lookup, key = None, None
    if inputs:
        lookup = _lookup(rule.body[inputs[0]], atoms[inputs[0]], ends, {origin, to})
    if lookup is not None:
        variables = atoms[inputs[0]]
        key = ends[variables[lookup.key]]
        ends[variables[lookup.found]] = "found"
    if (lookup is None and inputs) or None in ends or not {origin, to} <= set(ends):
        return None
    return Flow(rule.head, source, reads, None, key, None, ends[origin], ends[to]), lookup


def _lookup(
    atom: Atom, variables: list[str | None], ends: Mapping[str | None, End], needed: set[str | None]
) -> Lookup | None:
    """Return the lookup of an input with one column that is known and one that is needed; else None."""
    known = [p for p, v in enumerate(variables) if v in ends]
    found = [p for p, v in enumerate(variables) if v is not None and v not in ends]
    if len(known) != 1 or len(found) != 1 or variables[found[0]] not in needed:
        return None
    return Lookup(atom.input or 0, known[0], found[0])


def _variables(exprs: tuple[Expr, ...], classes: Classes) -> list[str | None]:
    return [min(classes.mates(e.name)) if isinstance(e, Col) else None for e in exprs]


def _repeats(variables: list[str | None]) -> bool:
    used = [v for v in variables if v is not None]
    return len(set(used)) < len(used)


def _name(atom: Atom) -> str:
    return str(atom.relation)


def _types_agree(rule: Rule, program: Program) -> bool:
    """Return whether every key of the head has the type of what it copies, so that words are the same."""
    keys = program.relation(rule.head).keys
    return all(e.type == k.type for e, k in zip(rule.exprs, keys, strict=True))
