"""Derive the shape of each relation of a text: its columns, their names and their aggregators.

All rules of a relation must have the same aggregate at a position; a plain term there is one value of the aggregate. A
relation of a Program has its keys first; ``Shape.order`` maps the Program's column order to the text's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import NOWHERE, Apply, Atom, HeadAggregate, Negation, Number, Variable
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.names import fresh_column, is_added
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.sets import COLLECT_SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Span
    from pyspark_paralagg.datalog.resolve.expand import Flat

HOLDS = "holds"
"""The column that a relation without columns gets: true if the relation holds."""

_BUILT_IN = (*AGGREGATORS, COLLECT_SET)
_NAMES = {name.upper().replace("_", ""): name for name in _BUILT_IN}


@dataclass(frozen=True)
class Shape:
    """The columns of a relation and their aggregators.

    ``aggregates`` has the aggregator of each of ``columns``, None for a key. ``orders`` maps the position of a
    ``min_by`` to the position of its order column, -1 for a hidden column. ``limits`` maps the position of a set to
    its limit. ``place`` is the declaration or first rule.
    """

    relation: str
    columns: tuple[str, ...]
    aggregates: tuple[str | None, ...]
    orders: tuple[tuple[int, int], ...]
    place: Span
    limits: tuple[tuple[int, int], ...] = ()

    @property
    def keys(self) -> tuple[int, ...]:
        """The positions of the key columns."""
        return tuple(p for p, a in enumerate(self.aggregates) if a is None)

    @property
    def values(self) -> tuple[int, ...]:
        """The positions of the aggregated columns."""
        return tuple(p for p, a in enumerate(self.aggregates) if a is not None)

    @property
    def order(self) -> tuple[int, ...]:
        """The text's positions in the Program's order: keys, then aggregated columns."""
        return (*self.keys, *self.values)

    def hidden(self, position: int) -> str:
        """Return the name of the hidden order column of ``position``."""
        return f"{self.columns[position]}@order"


class Shapes:
    """The shapes of all relations of a text."""

    def __init__(
        self,
        rules: Sequence[Flat],
        declared: Mapping[str, tuple[tuple[str, ...], Span]],
        inputs: Mapping[str, Sequence[str]],
        places: Places,
        user_aggregators: Sequence[str] = (),
    ) -> None:
        self._places = places
        self._user_aggregators = {n.lower(): n for n in user_aggregators}
        self._rules: dict[str, list[Flat]] = {}
        for rule in rules:
            self._rules.setdefault(rule.head.relation, []).append(rule)
        self._relation_names = {**dict.fromkeys(declared), **dict.fromkeys(inputs), **dict.fromkeys(self._rules)}
        self.shapes = {name: self._shape(name, declared, inputs) for name in self._relation_names}
        for rule in rules:
            for literal in rule.literals:
                atom = literal.body if isinstance(literal, Negation) else literal
                if isinstance(atom, Atom):
                    self.check(atom)

    def check(self, atom: Atom) -> Shape:
        """Return the shape of ``atom``'s relation; raise if the relation is unknown or its arity differs."""
        if atom.relation not in self.shapes:
            visible = [n for n in self._relation_names if not is_added(n)]
            hint = did_you_mean(atom.relation, visible).replace("'", "`")
            message = f"relation `{atom.relation}` does not exist"
            raise self._places.error("PARALAGG_UNKNOWN_RELATION", message, atom.span, value=atom.relation, hint=hint)
        shape = self.shapes[atom.relation]
        if len(atom.args) != len(shape.columns):
            raise self._arity_error(atom, len(shape.columns), shape.place)
        for a in atom.args:
            if isinstance(a, HeadAggregate):
                message = f"${a.name} is in a body, but belongs in a rule's head"
                hint = f"write v = {a.name.lower()} x : {{ ... }} in a body"
                raise self._places.error("PARALAGG_DATALOG_AGGREGATE", message, a.span, value=a.name, hint=hint)
        return shape

    def aggregator(self, aggregate: HeadAggregate) -> str:
        """Return the name of a head aggregate in a Program."""
        name = _NAMES.get(aggregate.name.upper().replace("_", ""), aggregate.name.lower())
        name = self._user_aggregators.get(name, name)
        if name not in _BUILT_IN and name not in self._user_aggregators.values() and name != "mean":
            names = [f"${n.upper()}" for n in (*_BUILT_IN, *self._user_aggregators.values())]
            hint = did_you_mean(f"${aggregate.name.upper()}", names).replace("'", "`")
            message = f"${aggregate.name} is not an aggregate"
            raise self._places.error(
                "PARALAGG_UNKNOWN_AGGREGATE", message, aggregate.span, value=aggregate.name, hint=hint
            )
        if name == COLLECT_SET:
            self._limit(aggregate)
        arities = AGGREGATORS[name].arguments if name in AGGREGATORS else (1,)
        if len(aggregate.args) not in arities and name in AGGREGATORS:
            taken = " or ".join(map(_arguments, arities))
            message = f"${aggregate.name.upper()} takes {taken}, not {len(aggregate.args)}"
            raise self._places.error("PARALAGG_DATALOG_ARITY", message, aggregate.span, value=aggregate.name)
        return name

    def _shape(
        self,
        name: str,
        declared: Mapping[str, tuple[tuple[str, ...], Span]],
        inputs: Mapping[str, Sequence[str]],
    ) -> Shape:
        rules = self._rules.get(name, [])
        # A relation that only an input defines has no place in the text.
        place = declared[name][1] if name in declared else rules[0].head.span if rules else None
        if name in declared:
            columns = declared[name][0]
        elif name in inputs:
            columns = tuple(inputs[name])
        else:
            columns = _columns([r.head for r in rules])
        for rule in rules:
            if len(rule.head.args) != len(columns):
                raise self._arity_error(rule.head, len(columns), place)
        aggregates, orders = self._aggregates(rules, len(columns))
        return Shape(name, columns, aggregates, orders, place or NOWHERE, self._limits(rules))

    def _limits(self, rules: list[Flat]) -> tuple[tuple[int, int], ...]:
        """Return the limit of each set by position; raise if the rules have different ones."""
        first: dict[int, HeadAggregate] = {}
        for rule in rules:
            for p, a in enumerate(rule.head.args):
                if not isinstance(a, HeadAggregate) or self.aggregator(a) != COLLECT_SET:
                    continue
                other = first.setdefault(p, a)
                if self._limit(a) != self._limit(other):
                    message = (
                        f"the set has at most {self._limit(a)} elements here, "
                        f"but {self._limit(other)} in {self._places.describe(other.span)}"
                    )
                    hint = "write the same limit in all rules of the relation"
                    raise self._places.error("PARALAGG_DATALOG_AGGREGATE", message, a.span, value=a.name, hint=hint)
        return tuple((p, self._limit(a)) for p, a in first.items())

    def _limit(self, aggregate: HeadAggregate) -> int:
        match aggregate.args:
            case (_, Number(value=int() as limit)) if limit > 0:
                return limit
        message = f"${aggregate.name} takes a value and the largest number of elements"
        hint = "write a whole number above 0: $COLLECT_SET(x, 10)"
        code = "PARALAGG_DATALOG_AGGREGATE"
        raise self._places.error(code, message, aggregate.span, value=aggregate.name, hint=hint)

    def _aggregates(self, rules: list[Flat], count: int) -> tuple[tuple[str | None, ...], tuple[tuple[int, int], ...]]:
        aggregators: list[str | None] = [None] * count
        first: dict[int, HeadAggregate] = {}
        orders: dict[int, int] = {}
        for rule in rules:
            for p, a in enumerate(rule.head.args):
                if not isinstance(a, HeadAggregate):
                    continue
                name = self.aggregator(a)
                if p in first and aggregators[p] != name:
                    message = (
                        f"`{rule.head.relation}` has ${a.name} here, but ${first[p].name} "
                        f"in {self._places.describe(first[p].span)}"
                    )
                    hint = "use the same aggregate for a column in all rules"
                    raise self._places.error("PARALAGG_DATALOG_AGGREGATE", message, a.span, value=a.name, hint=hint)
                aggregators[p] = name
                first.setdefault(p, a)
                if name in AGGREGATORS and AGGREGATORS[name].parameters == "order":
                    order = _order(rule.head, a)
                    orders[p] = order if orders.get(p, order) == order else -1
        return tuple(aggregators), tuple(sorted(orders.items()))

    def _arity_error(self, atom: Atom, expected: int, place: Span | None) -> Exception:
        where = f", see {self._places.describe(place)}" if place is not None and place.line else ""
        message = f"`{atom.relation}` has {_arguments(expected)}, but here {_arguments(len(atom.args))}{where}"
        return self._places.error("PARALAGG_DATALOG_ARITY", message, atom.span, value=len(atom.args))


def _arguments(count: int) -> str:
    return "no arguments" if count == 0 else f"{count} argument{'s' * (count != 1)}"


def _order(head: Atom, aggregate: HeadAggregate) -> int:
    """Return the position of ``$MIN(x)`` in a head with ``$MIN_BY(v, x)``; -1 if there is none."""
    function = "MIN" if "MIN" in aggregate.name.upper() else "MAX"
    for p, a in enumerate(head.args):
        if isinstance(a, HeadAggregate) and a.name.upper() == function and a.args == aggregate.args[1:]:
            return p
    return -1


def _columns(heads: list[Atom]) -> tuple[str, ...]:
    """Return the column names that all heads agree on, if they are distinct in any case, else ``c0, c1, ...``."""
    named = {tuple(_name(a) for a in h.args) for h in heads}
    count = max((len(h.args) for h in heads), default=0)
    columns: list[str] = []
    for p in range(count):
        names = {n[p] for n in named if len(n) > p and n[p] is not None}
        name = next(iter(names)) if len(names) == 1 else None
        is_free = name is not None and fresh_column(name, columns) == name
        columns.append(name if name is not None and is_free else fresh_column(f"c{p}", columns))
    return tuple(columns)


def _name(arg: object) -> str | None:
    if isinstance(arg, Variable):
        return arg.name
    if isinstance(arg, HeadAggregate):
        inner = arg.args[0] if arg.args else None
        return inner.name if isinstance(inner, Variable) else arg.name.lower()
    return arg.name if isinstance(arg, Apply) and arg.name.isidentifier() and arg.name != "neg" else None
