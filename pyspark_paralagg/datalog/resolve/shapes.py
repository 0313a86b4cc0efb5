"""What each relation of a text looks like: columns, their names, which of them are aggregated and how.

The rules of a head with aggregates name the same ones at the same positions; a plain term there gives its value. A
relation of a Program has its keys first, so ``Shape.order`` says where the text's columns went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import NOWHERE, Apply, Atom, HeadAggregate, Negation, Variable
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Span
    from pyspark_paralagg.datalog.resolve.expand import Flat

HOLDS = "holds"
"""The column of a relation without columns: true where the relation holds."""

_NAMES = {name.upper().replace("_", ""): name for name in AGGREGATORS}


@dataclass(frozen=True)
class Shape:
    """``aggregates`` has the aggregator of each of ``columns``, None for a key; ``place`` is where that was said.

    ``orders`` gives, for a ``min_by`` at a position, the position of its order column, or -1 for a hidden column.
    """

    relation: str
    columns: tuple[str, ...]
    aggregates: tuple[str | None, ...]
    orders: tuple[tuple[int, int], ...]
    place: Span

    @property
    def keys(self) -> tuple[int, ...]:
        """Positions of the key columns."""
        return tuple(p for p, a in enumerate(self.aggregates) if a is None)

    @property
    def values(self) -> tuple[int, ...]:
        """Positions of the aggregated columns."""
        return tuple(p for p, a in enumerate(self.aggregates) if a is not None)

    @property
    def order(self) -> tuple[int, ...]:
        """The text's positions in the Program's order: keys, then what is aggregated."""
        return (*self.keys, *self.values)

    def hidden(self, position: int) -> str:
        """The name of the hidden order column of ``position``."""
        return f"{self.columns[position]}@order"


class Shapes:
    """The shapes of all relations of a text."""

    def __init__(
        self,
        rules: Sequence[Flat],
        declared: Mapping[str, tuple[tuple[str, ...], Span]],
        inputs: Mapping[str, Sequence[str]],
        places: Places,
        own: Sequence[str] = (),
    ) -> None:
        self._places = places
        self._own = {n.lower(): n for n in own}
        self._rules: dict[str, list[Flat]] = {}
        for rule in rules:
            self._rules.setdefault(rule.head.relation, []).append(rule)
        self._known = {**dict.fromkeys(declared), **dict.fromkeys(inputs), **dict.fromkeys(self._rules)}
        self.shapes = {name: self._shape(name, declared, inputs) for name in self._known}
        for rule in rules:
            for literal in rule.literals:
                atom = literal.body if isinstance(literal, Negation) else literal
                if isinstance(atom, Atom):
                    self.check(atom)

    def check(self, atom: Atom) -> Shape:
        """The shape of ``atom``'s relation, which is known and has as many columns as ``atom`` arguments."""
        if atom.relation not in self.shapes:
            spoken = [n for n in self._known if "@" not in n]
            hint = did_you_mean(atom.relation, spoken).replace("'", "`")
            message = f"relation `{atom.relation}` is not known"
            raise self._places.error("PARALAGG_UNKNOWN_RELATION", message, atom.span, value=atom.relation, hint=hint)
        shape = self.shapes[atom.relation]
        if len(atom.args) != len(shape.columns):
            raise self._arity(atom, len(shape.columns), shape.place)
        for a in atom.args:
            if isinstance(a, HeadAggregate):
                message = f"${a.name} stands in a body, and is an argument of a rule's head"
                hint = f"in a body write v = {a.name.lower()} x : {{ ... }}"
                raise self._places.error("PARALAGG_DATALOG_AGGREGATE", message, a.span, value=a.name, hint=hint)
        return shape

    def aggregator(self, of: HeadAggregate) -> str:
        """The name of a head aggregate in a Program."""
        name = _NAMES.get(of.name.upper().replace("_", ""), of.name.lower())
        name = self._own.get(name, name)
        if name not in AGGREGATORS and name not in self._own.values() and name != "mean":
            known = [f"${n.upper()}" for n in (*AGGREGATORS, *self._own.values())]
            hint = did_you_mean(f"${of.name.upper()}", known).replace("'", "`")
            message = f"${of.name} is no aggregate"
            raise self._places.error("PARALAGG_UNKNOWN_AGGREGATE", message, of.span, value=of.name, hint=hint)
        wanted = AGGREGATORS[name].arguments if name in AGGREGATORS else (1,)
        if len(of.args) not in wanted and name in AGGREGATORS:
            message = f"${of.name.upper()} takes {' or '.join(map(str, wanted))} arguments, not {len(of.args)}"
            raise self._places.error("PARALAGG_DATALOG_ARITY", message, of.span, value=of.name)
        return name

    def _shape(
        self,
        name: str,
        declared: Mapping[str, tuple[tuple[str, ...], Span]],
        inputs: Mapping[str, Sequence[str]],
    ) -> Shape:
        rules = self._rules.get(name, [])
        # A relation that only an input names has no place.
        place = declared[name][1] if name in declared else rules[0].head.span if rules else None
        if name in declared:
            columns = declared[name][0]
        elif name in inputs:
            columns = tuple(inputs[name])
        else:
            columns = _columns([r.head for r in rules])
        for rule in rules:
            if len(rule.head.args) != len(columns):
                raise self._arity(rule.head, len(columns), place)
        aggregates, orders = self._aggregates(rules, len(columns))
        return Shape(name, columns, aggregates, orders, place or NOWHERE)

    def _aggregates(self, rules: list[Flat], count: int) -> tuple[tuple[str | None, ...], tuple[tuple[int, int], ...]]:
        found: list[str | None] = [None] * count
        first: dict[int, HeadAggregate] = {}
        orders: dict[int, int] = {}
        for rule in rules:
            for p, a in enumerate(rule.head.args):
                if not isinstance(a, HeadAggregate):
                    continue
                name = self.aggregator(a)
                if p in first and found[p] != name:
                    message = (
                        f"`{rule.head.relation}` has ${a.name} here and ${first[p].name} "
                        f"in {self._places.describe(first[p].span)}"
                    )
                    hint = "a column has one aggregate, in all rules"
                    raise self._places.error("PARALAGG_DATALOG_AGGREGATE", message, a.span, value=a.name, hint=hint)
                found[p] = name
                first.setdefault(p, a)
                if name in ("min_by", "max_by"):
                    order = _order(rule.head, a)
                    orders[p] = order if orders.get(p, order) == order else -1
        return tuple(found), tuple(sorted(orders.items()))

    def _arity(self, atom: Atom, wanted: int, place: Span | None) -> Exception:
        where = f", see {self._places.describe(place)}" if place is not None and place.line else ""
        message = f"`{atom.relation}` has {_arguments(wanted)}, and here {_arguments(len(atom.args))}{where}"
        return self._places.error("PARALAGG_DATALOG_ARITY", message, atom.span, value=len(atom.args))


def _arguments(count: int) -> str:
    return "no arguments" if count == 0 else f"{count} argument{'s' * (count != 1)}"


def _order(head: Atom, of: HeadAggregate) -> int:
    """The position of ``$MIN(x)`` beside ``$MIN_BY(v, x)``; -1 where there is none."""
    wanted = "MIN" if "MIN" in of.name.upper() else "MAX"
    for p, a in enumerate(head.args):
        if isinstance(a, HeadAggregate) and a.name.upper() == wanted and a.args == of.args[1:]:
            return p
    return -1


def _columns(heads: list[Atom]) -> tuple[str, ...]:
    """Names that all heads agree on, where they are distinct; else ``c0, c1, ...``."""
    named = {tuple(_name(a) for a in h.args) for h in heads}
    count = max((len(h.args) for h in heads), default=0)
    out: list[str] = []
    for p in range(count):
        names = {n[p] for n in named if len(n) > p and n[p] is not None}
        name = next(iter(names)) if len(names) == 1 else None
        out.append(name if name is not None and name not in out else f"c{p}")
    return tuple(out)


def _name(arg: object) -> str | None:
    if isinstance(arg, Variable):
        return arg.name
    if isinstance(arg, HeadAggregate):
        inner = arg.args[0] if arg.args else None
        return inner.name if isinstance(inner, Variable) else arg.name.lower()
    return arg.name if isinstance(arg, Apply) and arg.name.isidentifier() and arg.name != "neg" else None
