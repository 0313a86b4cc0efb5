"""Reduce records and algebraic data types to symbols: patterns become conditions on parts, values become texts.

    .type List = [head: number, tail: List]
    first(x) :- lists([x, _]).          first(x) :- lists(r), r != "", x = head of r.
    lists([1, nil]).                    lists("r1000001810000018" "1").

``structures`` defines the encoding. A pattern takes apart what something else binds; a structure whose variables are
all bound is a value. Types come from the declarations of the relations that a rule reads and derives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.desugar.structure_types import StructureTypes
from pyspark_paralagg.datalog.desugar.structures import as_text, field_of, has_branch, packed
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.sorts import AGGREGATOR_NAMES
from pyspark_paralagg.datalog.resolve.expand import names_in, nodes, substituted
from pyspark_paralagg.program.functor import is_functor
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.desugar.structures import Structure
    from pyspark_paralagg.datalog.parse.syntax import Span, Term

_OF_TEXTS = ("+", "cat", "strlen", "substr")
_STRUCTURED = (syntax.Record, syntax.Branch, syntax.Nil)


def without_structures(text: syntax.Text) -> syntax.Text:
    """Return ``text`` without structures; its ``structures`` say how results are decoded.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_STRUCTURE``.
    """
    if not any(isinstance(n, (*_STRUCTURED, syntax.RecordType, syntax.AlgebraicType)) for n in nodes(text.clauses)):
        return text
    types = StructureTypes(text)
    clauses: list[syntax.Clause] = []
    for c in text.clauses:
        if isinstance(c, syntax.RecordType | syntax.AlgebraicType):
            clauses.append(syntax.TypeAlias(c.name, ("symbol",), c.span))
        elif isinstance(c, syntax.Rule):
            clauses.append(_Rule(c, types, Places(text.source, text.name)).rewritten())
        else:
            clauses.append(c)
    return replace(text, clauses=tuple(clauses), columns=types.columns, structures=types.structures)


class _Rule:
    """The rewriting of one rule."""

    def __init__(self, rule: syntax.Rule, types: StructureTypes, places: Places) -> None:
        self._rule = rule
        self._types = types
        self._places = places
        self._count = 0
        self._variables = types.variables(self._with_branches(rule))

    def rewritten(self) -> syntax.Rule:
        rule = self._with_branches(self._rule)
        if not self._variables and not any(isinstance(n, (*_STRUCTURED, syntax.Cast)) for n in nodes(rule)):
            return rule
        body = None if rule.body is None else self._body(rule.body, frozenset())
        extra: list[syntax.Literal_] = []
        heads = tuple(self._atom(h, extra) for h in rule.heads)
        if not extra:
            return replace(rule, heads=heads, body=body)
        parts = (*extra,) if body is None else (body, *extra)
        return replace(rule, heads=heads, body=syntax.Conjunction(parts, rule.span))

    def _with_branches(self, rule: syntax.Rule) -> syntax.Rule:
        """Return ``rule`` with each ``$Name`` of a head as what it is: an aggregate or a branch."""
        misspelt = {
            id(a)
            for h in rule.heads
            for a, type_ in zip(h.args, self._types.of_columns(h), strict=True)
            if type_ is not None and isinstance(a, syntax.HeadAggregate)
            if a.written != a.name and a.name not in AGGREGATOR_NAMES
        }

        def change(node: Any) -> Any:  # noqa: ANN401 - any node of the tree
            if isinstance(node, syntax.HeadAggregate) and (
                node.written in self._types.branches or id(node) in misspelt
            ):
                return syntax.Branch(node.written, tuple(substituted(a, change) for a in node.args), node.span)
            return None

        result: syntax.Rule = substituted(rule, change)
        return result

    # --- bodies ------------------------------------------------------------------------------------------------------

    def _body(self, body: syntax.Body, outer: frozenset[str]) -> syntax.Body:
        """Return ``body`` without structures; ``outer`` are the variables that are bound around it."""
        if isinstance(body, syntax.Disjunction):
            return replace(body, parts=tuple(self._body(p, outer) for p in body.parts))
        parts = body.parts if isinstance(body, syntax.Conjunction) else (body,)
        bound, unpacking = self._bound(parts, outer)
        result: list[syntax.Literal_] = []
        for part in parts:
            result.extend(self._literal(part, bound, unpacking))
        return result[0] if len(result) == 1 else syntax.Conjunction(tuple(result), body.span)

    def _bound(self, parts: Sequence[syntax.Literal_], outer: frozenset[str]) -> tuple[frozenset[str], set[int]]:
        """Return the bound variables of a conjunction, and the equations that take a bound variable apart."""
        bound = set(outer)
        for part in parts:
            if isinstance(part, syntax.Atom):
                bound |= {n for a in part.args for n in _pattern_names(a)}
        unpacking: set[int] = set()
        while True:
            before = len(bound)
            for part in parts:
                if not isinstance(part, syntax.Comparison) or part.op != "=":
                    continue
                for left, right in ((part.left, part.right), (part.right, part.left)):
                    if not names_in(left) <= bound:
                        continue
                    if isinstance(right, syntax.Record | syntax.Branch) and not _is_value(right, frozenset(bound)):
                        unpacking.add(id(part))
                    bound |= set(_pattern_names(right))
            if len(bound) == before:
                return frozenset(bound), unpacking

    def _literal(self, part: syntax.Literal_, bound: frozenset[str], unpacking: set[int]) -> Iterator[syntax.Literal_]:
        extra: list[syntax.Literal_] = []
        match part:
            case syntax.Atom():
                args = []
                for a, type_ in zip(part.args, self._types.of_columns(part), strict=True):
                    if isinstance(a, syntax.Record | syntax.Branch) and type_ is not None:
                        variable = self._fresh(a.span)
                        self._unpack(a, variable, type_, extra)
                        args.append(variable)
                    else:
                        args.append(self._term(a, type_, extra, bound))
                result: syntax.Literal_ = replace(part, args=tuple(args))
            case syntax.Negation(body=syntax.Atom() as atom):
                result = replace(part, body=self._atom(atom, extra, bound))
                yield from extra
                extra = []
            case syntax.Negation():
                result = replace(part, body=self._body(part.body, bound))  # type: ignore[arg-type]
            case syntax.Conjunction() | syntax.Disjunction():
                result = self._body(part, bound)
            case syntax.Comparison():
                yield from self._comparison(part, bound, is_unpacking=id(part) in unpacking)
                return
            case _:
                result = replace(part, args=tuple(self._term(a, None, extra, bound) for a in part.args))
        yield result
        yield from extra

    def _comparison(
        self, node: syntax.Comparison, bound: frozenset[str], *, is_unpacking: bool
    ) -> Iterator[syntax.Literal_]:
        extra: list[syntax.Literal_] = []
        left_type, right_type = (self._type(t) for t in (node.left, node.right))
        type_ = left_type or right_type
        if is_unpacking and type_ is not None:
            value, pattern = node.left, node.right
            if not isinstance(pattern, syntax.Record | syntax.Branch) or _is_value(pattern, frozenset(names_in(value))):
                value, pattern = pattern, value
            if isinstance(value, syntax.Record | syntax.Branch):
                variable: Term = self._fresh(value.span)
                extra.append(syntax.Comparison("=", variable, self._term(value, type_, extra, bound), value.span))
                value = variable
            self._unpack(pattern, value, type_, extra)
        else:
            left, right = (self._term(t, type_, extra, bound) for t in (node.left, node.right))
            extra.append(replace(node, left=left, right=right))
        yield from extra

    def _unpack(self, pattern: Term, value: Term, type_: str, extra: list[syntax.Literal_]) -> None:
        """Add the conditions that ``value`` matches ``pattern``."""
        structure, branch = self._structure(pattern, type_)
        args: tuple[Term, ...] = getattr(pattern, "args", ())
        span = pattern.span
        extra.append(has_branch(value, structure, branch, span))
        for n, (a, field_type) in enumerate(zip(args, structure.branches[branch], strict=True)):
            if isinstance(a, syntax.Wildcard):
                continue
            part = field_of(value, structure, branch, n, a.span)
            if isinstance(a, syntax.Record | syntax.Branch):
                inner = self._fresh(a.span)
                extra.append(syntax.Comparison("=", inner, part, a.span))
                self._unpack(a, inner, field_type, extra)
            else:
                extra.append(syntax.Comparison("=", self._term(a, field_type, extra, frozenset()), part, a.span))

    # --- terms -------------------------------------------------------------------------------------------------------

    def _atom(
        self, atom: syntax.Atom, extra: list[syntax.Literal_], bound: frozenset[str] = frozenset()
    ) -> syntax.Atom:
        """Return a head or a negated atom, whose structures are values."""
        types = self._types.of_columns(atom)
        args = tuple(self._term(a, t, extra, bound) for a, t in zip(atom.args, types, strict=True))
        return replace(atom, args=args)

    def _term(self, term: Any, type_: str | None, extra: list[syntax.Literal_], bound: frozenset[str]) -> Any:  # noqa: ANN401 - a term or a head aggregate
        """Return ``term`` without structures; what it needs is added to ``extra``."""

        def change(node: Any) -> Any:  # noqa: ANN401 - any node of the tree
            if (
                isinstance(node, syntax.Apply)
                and (node.name in _OF_TEXTS or is_functor(node.name))
                and any(map(self._type, node.args))
            ):
                message = f"`{node.name}` takes no structure"
                raise self._error(message, node.span, node.name, "take the structure apart, and use its fields")
            if isinstance(node, _STRUCTURED):
                return self._value(node, type_ if node is term else None, extra, bound)
            if isinstance(node, syntax.Cast) and node.type in self._types.structures:
                return self._term(node.term, node.type, extra, bound)
            if isinstance(node, syntax.BodyAggregate):
                value = None if node.value is None else self._term(node.value, None, extra, bound)
                return replace(node, value=value, body=self._body(node.body, bound))
            return None

        return substituted(term, change)

    def _value(self, node: Term, type_: str | None, extra: list[syntax.Literal_], bound: frozenset[str]) -> Term:
        if isinstance(node, syntax.Nil):
            return syntax.String("", node.span)
        structure, branch = self._structure(node, type_)
        fields: list[Term] = []
        for a, field_type in zip(getattr(node, "args", ()), structure.branches[branch], strict=True):
            if isinstance(a, syntax.Wildcard):
                message = "a field of a value cannot be `_`"
                raise self._error(message, a.span, "_", "write a variable that the body binds")
            text = as_text(self._term(a, field_type, extra, bound), field_type, a.span)
            if not isinstance(text, syntax.Variable | syntax.String):
                variable = self._fresh(a.span)
                extra.append(syntax.Comparison("=", variable, text, a.span))
                text = variable
            fields.append(text)
        return packed(structure, branch, fields, node.span)

    def _structure(self, node: Term, type_: str | None) -> tuple[Structure, str]:
        """Return the type of a structure and its branch."""
        branch = ""
        if isinstance(node, syntax.Branch):
            branch = node.name
            if branch not in self._types.branches:
                names = [f"${b}" for b in self._types.branches]
                hint = "declare it in a `.type`, or write an aggregate as a whole argument of a rule's head"
                if names:
                    hint = did_you_mean(f"${branch}", names).replace("'", "`")
                raise self._error(f"no type has the branch `${branch}`", node.span, branch, hint)
            type_ = self._types.branches[branch]
        structure = self._types.structures.get(type_ or "")
        if structure is None or (isinstance(node, syntax.Record) and not structure.is_record):
            hint = "use it as an argument of a declared relation, or write `as([...], Type)`"
            raise self._error("nothing determines the type of this record", node.span, "[]", hint)
        count = len(getattr(node, "args", ()))
        if count != len(structure.branches[branch]):
            expected = len(structure.branches[branch])
            message = f"`{'$' if branch else ''}{branch or structure.name}` has {expected} fields, but here {count}"
            raise self._error(message, node.span, str(count), "write every field, and `_` for an unused one")
        return structure, branch

    def _type(self, term: Term) -> str | None:
        return self._types.of_term(term, self._variables)

    def _fresh(self, span: Span) -> syntax.Variable:
        self._count += 1
        return syntax.Variable(f"part@{self._count}", span)

    def _error(self, message: str, span: Span, value: str, hint: str) -> Exception:
        return self._places.error("PARALAGG_DATALOG_STRUCTURE", message, span, value=value, hint=hint)


def _is_value(term: Term, bound: frozenset[str]) -> bool:
    """Return whether ``bound`` are all variables of ``term``, which has no ``_``."""
    return names_in(term) <= bound and not any(isinstance(n, syntax.Wildcard) for n in nodes(term))


def _pattern_names(term: object) -> Iterator[str]:
    """Yield the variables that matching ``term`` binds: itself, or those of its fields."""
    if isinstance(term, syntax.Variable):
        yield term.name
    elif isinstance(term, syntax.Record | syntax.Branch):
        for a in term.args:
            yield from _pattern_names(a)
