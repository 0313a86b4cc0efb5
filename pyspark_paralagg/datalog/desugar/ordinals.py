"""Replace ``ord``: a comparison of two ordinals compares the values, and other uses read numbers of the values.

    less(x, y) :- s(x), s(y), ord(x) < ord(y).          less(x, y) :- s(x), s(y), x < y.
    number(ord(x)) :- s(x).                             ord@values1(x) :- s(x).
                                                        ord@numbers1(x, autoinc()) :- ord@values1(x).
                                                        number(n) :- s(x), ord@numbers1(x, n).

Soufflé numbers symbols and structures as it meets them, so a program may only rely on some total order. Here the values
of all columns that ``ord`` is applied to are numbered together, by their type, in their order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.aggregates import reached
from pyspark_paralagg.datalog.resolve.expand import nodes, rewritten
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.datalog.parse.syntax import Atom, Term

_WORD = "ord"
_SYMBOL = "symbol"


def without_ordinals(text: syntax.Text) -> syntax.Text:
    """Return ``text`` without ``ord``, except for values whose type no declaration states: these are refused later.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_UNSUPPORTED`` for a rule that derives the values that it numbers.
    """

    def change(node: object) -> object:
        if isinstance(node, syntax.Comparison) and _is_ordinal(node.left) and _is_ordinal(node.right):
            return replace(node, left=node.left.args[0], right=node.right.args[0])  # type: ignore[union-attr] # as checked
        return node

    text = replace(text, clauses=tuple(rewritten(c, change) for c in text.clauses))
    if not any(_is_ordinal(n) for n in nodes(text.clauses)):
        return text
    return _Numbering(text).run()


class _Numbering:
    """The relations that number the values of each type."""

    def __init__(self, text: syntax.Text) -> None:
        self._text = text
        self._places = Places(text.source, text.name)
        self._needs = reached([c for c in text.clauses if isinstance(c, syntax.Rule)])
        self._aliases = {c.name: c.types[0] for c in text.clauses if isinstance(c, syntax.TypeAlias)}
        structured = (c.name for c in text.clauses if isinstance(c, syntax.RecordType | syntax.AlgebraicType))
        self._types = [_SYMBOL, *structured]
        declared = (c for c in text.clauses if isinstance(c, syntax.Declaration))
        self._columns = {c.relation: [self._root(a.type) for a in c.attributes] for c in declared}
        self._sources: dict[str, dict[tuple[str, int], Atom]] = {}

    def run(self) -> syntax.Text:
        clauses = [self._numbered(c) if isinstance(c, syntax.Rule) else c for c in self._text.clauses]
        return replace(self._text, clauses=(*clauses, *(c for type_ in self._sources for c in self._added(type_))))

    def _root(self, name: str) -> str:
        for _ in self._aliases:
            name = self._aliases.get(name, name)
        return name

    def _numbered(self, rule: syntax.Rule) -> syntax.Rule:
        """Return the rule with a variable in place of each ordinal that it can have a number for."""
        numbers: dict[syntax.Apply, Term] = {}
        added: list[Atom] = []
        for ordinal in [n for n in nodes(rule) if _is_ordinal(n)]:
            source = next(self._binding(rule, ordinal), None)
            if source is None or ordinal in numbers:
                continue
            atom, position = source
            own = {h.relation for h in rule.heads} & self._needs.get(atom.relation, set())
            if own:
                message = f"ord is not supported in a recursion: `{min(own)}` derives values that it numbers"
                hint = "number them in a relation that is read by no rule of the recursion"
                raise self._places.error("PARALAGG_DATALOG_UNSUPPORTED", message, ordinal.span, value=_WORD, hint=hint)
            type_ = self._columns[atom.relation][position]
            self._sources.setdefault(type_, {})[atom.relation, position] = atom
            number = syntax.Variable(added_name(_WORD, f"n{len(numbers)}"), ordinal.span)
            numbers[ordinal] = number
            added.append(syntax.Atom(self._name("numbers", type_), (ordinal.args[0], number), ordinal.span))
        if not numbers:
            return rule
        result: syntax.Rule = rewritten(rule, lambda n: numbers.get(n, n) if isinstance(n, syntax.Apply) else n)
        body = result.body
        assert body is not None  # noqa: S101 - it binds a value
        return replace(result, body=syntax.Conjunction((body, *added), rule.span), plan=None)

    def _binding(self, rule: syntax.Rule, ordinal: syntax.Apply) -> Iterator[tuple[Atom, int]]:
        """Yield the atoms of the body that give the value of ``ordinal``, and the position of their column."""
        parts = rule.body.parts if isinstance(rule.body, syntax.Conjunction) else (rule.body,)
        for atom in (p for p in parts if isinstance(p, syntax.Atom)):
            types = self._columns.get(atom.relation, [])
            for position, (a, type_) in enumerate(zip(atom.args, types, strict=False)):
                if isinstance(a, syntax.Variable) and a == ordinal.args[0] and type_ in self._types:
                    yield atom, position

    def _name(self, word: str, type_: str) -> str:
        return added_name(_WORD, f"{word}{self._types.index(type_)}")

    def _added(self, type_: str) -> Iterator[syntax.Clause]:
        """Yield the relations of the values of one type and of their numbers, with their rules."""
        values, numbers = self._name("values", type_), self._name("numbers", type_)
        x = syntax.Variable(added_name(_WORD, "x"))
        column = syntax.Attribute("x", type_)
        yield syntax.Declaration(values, (column,))
        yield syntax.Declaration(numbers, (column, syntax.Attribute("n", "number")))
        for (_, position), atom in self._sources[type_].items():
            args = tuple(x if n == position else syntax.Wildcard() for n in range(len(atom.args)))
            yield syntax.Rule((syntax.Atom(values, (x,)),), syntax.Atom(atom.relation, args, atom.span), span=atom.span)
        counter = syntax.Apply("autoinc", ())
        yield syntax.Rule((syntax.Atom(numbers, (x, counter)),), syntax.Atom(values, (x,)))


def _is_ordinal(term: object) -> bool:
    return isinstance(term, syntax.Apply) and term.name == _WORD and len(term.args) == 1
