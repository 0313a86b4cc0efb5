"""Take ``$PATH`` and ``$HOPS`` out of a text: columns that no rule computes, as ``ra.path`` and ``ra.hops``.

    dist(x, 0, $PATH()) :- start(x).                            dist(x, 0) :- start(x).
    dist(y, $MIN(d + w), $PATH(d + w)) :-                       dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w).
        dist(x, d, _), edge(x, y, w).                           and the traced column, beside the rules

The argument names the ``$MIN`` or ``$MAX`` of the head that decides which derivation is best; it may be left out if the
relation has only one. ``lower.build`` gives the columns to the relation, ``compile.rewrite.trace_paths`` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import rewritten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_paralagg.errors import DatalogError

T = TypeVar("T")
_TYPES = {"PATH": "path", "HOPS": "number"}
_ORDERS = ("MIN", "MAX")
_CODE = "PARALAGG_PATH"


def without_traces(text: syntax.Text, inputs: Collection[str] = ()) -> syntax.Text:
    """Return ``text`` without traced columns, which ``Text.traces`` then has.

    Raise ``DatalogError`` ``PARALAGG_PATH`` for a column that follows nothing, that a rule reads, or that an input or a
    rule without it fills.
    """
    heads = [h for c in text.clauses if isinstance(c, syntax.Rule) for h in c.heads]
    names = dict.fromkeys(h.relation for h in heads if any(_word(a) for a in h.args))
    if not names:
        return text
    places = Places(text.source, text.name)
    tracers = {name: _Tracer(name, [h for h in heads if h.relation == name], places) for name in names}
    external = {*inputs, *(c.relation for c in text.clauses if isinstance(c, syntax.Directive) and c.kind == "input")}
    for name in external & tracers.keys():
        raise tracers[name].error(
            f"`{name}` is an input, whose rows have no path",
            hint=f"give the input another name, and derive `{name}` from it: {name}(x, 0, $PATH()) :- input(x).",
        )
    clauses = tuple(_without(c, tracers) for c in text.clauses)
    declared = {c.relation: c for c in text.clauses if isinstance(c, syntax.Declaration)}
    return replace(text, clauses=clauses, traces={name: t.columns(declared.get(name)) for name, t in tracers.items()})


def _word(arg: object) -> str | None:
    """Return ``PATH`` or ``HOPS`` for such an aggregate, None for any other argument."""
    return arg.name if isinstance(arg, syntax.HeadAggregate) and arg.name in _TYPES else None


def _without(clause: syntax.Clause, tracers: Mapping[str, _Tracer]) -> syntax.Clause:
    if isinstance(clause, syntax.Declaration) and clause.relation in tracers:
        return tracers[clause.relation].declared(clause)
    if not isinstance(clause, syntax.Rule):
        return clause
    heads = tuple(tracers[h.relation].head(h) if h.relation in tracers else h for h in clause.heads)

    def read(node: object) -> object:
        return tracers[node.relation].read(node) if isinstance(node, syntax.Atom) and node.relation in tracers else node

    return replace(clause, heads=heads, body=rewritten(clause.body, read) if clause.body else clause.body)


@dataclass(frozen=True)
class _Place:
    """A traced column: its position, its word, and where it is written first."""

    position: int
    word: str
    span: syntax.Span


class _Tracer:
    """The traced columns of one relation, whose rules have the heads ``heads``."""

    def __init__(self, relation: str, heads: list[syntax.Atom], places: Places) -> None:
        self._relation = relation
        self._places = places
        self._arity = max(len(h.args) for h in heads)
        found: dict[int, _Place] = {}
        for head in heads:
            for p, arg in enumerate(head.args):
                if word := _word(arg):
                    found.setdefault(p, _Place(p, word, arg.span))
        self._found = found
        self._span = next(iter(found.values())).span
        for head in heads:
            self._check_head(head)
        orders = {p: [o for h in heads if (o := self._order(h, p)) is not None] for p in found}
        self._orders = {p: self._single(p, positions, heads) for p, positions in orders.items()}

    def error(self, message: str, *, span: syntax.Span | None = None, hint: str) -> DatalogError:
        """Return a ``DatalogError`` at ``span``, or where the first traced column is written."""
        return self._places.error(_CODE, message, span or self._span, value=self._relation, hint=hint)

    def head(self, head: syntax.Atom) -> syntax.Atom:
        """Return a head without traced columns."""
        return replace(head, args=self._stripped(head.args))

    def read(self, atom: syntax.Atom) -> syntax.Atom:
        """Return an atom of a body without traced columns; raise if a rule reads one."""
        if len(atom.args) != self._arity:
            message = f"`{self._relation}` has {self._arity} arguments, but here {len(atom.args)}"
            raise self._places.error("PARALAGG_DATALOG_ARITY", message, atom.span, value=len(atom.args))
        for p, found in self._found.items():
            if not isinstance(atom.args[p], syntax.Wildcard):
                raise self.error(
                    f"a rule reads the ${found.word} of `{self._relation}`, which is known only after the rules",
                    span=atom.span,
                    hint=f"write _ for argument {p + 1}, and read the column in the result",
                )
        return replace(atom, args=self._stripped(atom.args))

    def declared(self, declaration: syntax.Declaration) -> syntax.Declaration:
        """Return the declaration without traced columns; raise if one has another type than its own."""
        attributes = declaration.attributes
        for p, found in self._found.items():
            type_ = _TYPES[found.word]
            if p < len(attributes) and attributes[p].type != type_:
                raise self.error(
                    f"the ${found.word} of `{self._relation}` is declared as {attributes[p].type}",
                    span=attributes[p].span,
                    hint=f"declare it as {attributes[p].name}: {type_}",
                )
        return replace(declaration, attributes=self._stripped(attributes))

    def columns(self, declaration: syntax.Declaration | None) -> tuple[syntax.TracedColumn, ...]:
        """Return the traced columns, with the names that the declaration gives them."""
        attributes = () if declaration is None else declaration.attributes
        result: list[syntax.TracedColumn] = []
        for p, found in sorted(self._found.items()):
            name = attributes[p].name if p < len(attributes) else found.word.lower()
            order = self._orders[p]
            at = None if order is None else order - sum(q < order for q in self._found)
            result.append(syntax.TracedColumn(name, p, found.word, at, found.span))
        return tuple(result)

    def _stripped(self, parts: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(part for p, part in enumerate(parts) if p not in self._found)

    def _check_head(self, head: syntax.Atom) -> None:
        for p, found in self._found.items():
            arg = head.args[p] if p < len(head.args) else None
            if _word(arg) != found.word:
                where = self._places.describe(found.span)
                raise self.error(
                    f"`{self._relation}` has ${found.word} in {where}, but not here",
                    span=head.span,
                    hint=f"write ${found.word}() as argument {p + 1} in each rule of `{self._relation}`",
                )
            if isinstance(arg, syntax.HeadAggregate) and len(arg.args) > 1:
                raise self.error(
                    f"${found.word} takes one argument or none, not {len(arg.args)}",
                    span=arg.span,
                    hint=f"write the value that $MIN or $MAX has in this head: ${found.word}(d + w)",
                )

    def _order(self, head: syntax.Atom, position: int) -> int | None:
        """Return the position of the aggregate that the traced column of a head names; None if it names none."""
        arg = head.args[position]
        named = arg.args if isinstance(arg, syntax.HeadAggregate) else ()
        if not named:
            return None
        for p, other in enumerate(head.args):
            value = other.args if isinstance(other, syntax.HeadAggregate) else (other,)
            if p not in self._found and value == named:
                return p
        raise self.error(
            f"${self._found[position].word} names a value that no $MIN or $MAX of this head has",
            span=arg.span,
            hint="repeat the argument of the $MIN or $MAX that decides: r(y, $MIN(d + w), $PATH(d + w))",
        )

    def _single(self, position: int, named: list[int], heads: list[syntax.Atom]) -> int | None:
        """Return the position of the deciding aggregate; None for a relation of keys alone."""
        aggregates = {
            p: a.name
            for h in heads
            for p, a in enumerate(h.args)
            if isinstance(a, syntax.HeadAggregate) and p not in self._found
        }
        deciding = {p for p, name in aggregates.items() if name in _ORDERS}
        found = set(named) or deciding
        if len(found) == 1 and found <= deciding:
            return found.pop()
        if not aggregates and not found:
            return None
        word = self._found[position].word
        if not deciding:
            raise self.error(
                f"`{self._relation}` has no $MIN or $MAX that decides its ${word}",
                span=self._found[position].span,
                hint="aggregate a column with $MIN or $MAX, or make all other columns keys",
            )
        raise self.error(
            f"nothing says which $MIN or $MAX of `{self._relation}` decides its ${word}",
            span=self._found[position].span,
            hint=f"give ${word} the argument of one of them: r(y, $MIN(d + w), ${word}(d + w))",
        )
