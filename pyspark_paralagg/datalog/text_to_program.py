"""Syntax tree -> Program: names, arity, types; several heads, ``;``, aggregates in bodies, ranges and indexes are gone.

Second station of a text: ``parse`` -> **resolve** -> ``compile``, or ``api``, which runs it on Spark. In between a
text is a list of flat rules (``expand``, ``aggregates``, ``ranges``, ``iterations``, ``means``), then gets shapes and
types (``shapes``, ``infer``), and becomes a Program (``build``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.assumptions import assumptions, condition
from pyspark_paralagg.datalog.lower.bind import bind
from pyspark_paralagg.datalog.lower.build import Builder
from pyspark_paralagg.datalog.lower.facts import constants
from pyspark_paralagg.datalog.lower.infer import TypesOf, infer
from pyspark_paralagg.datalog.lower.resolved import Resolved
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, SYMBOL, Terms
from pyspark_paralagg.datalog.lower.unsigned import overflowing, positions
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.aggregates import Aggregates
from pyspark_paralagg.datalog.resolve.disjoint import counting, expand
from pyspark_paralagg.datalog.resolve.expand import Flat, nodes
from pyspark_paralagg.datalog.resolve.faults import with_all_problems
from pyspark_paralagg.datalog.resolve.iterations import INITIAL, drop_indexes
from pyspark_paralagg.datalog.resolve.means import without_means
from pyspark_paralagg.datalog.resolve.ranges import Ranges
from pyspark_paralagg.datalog.resolve.shapes import Shapes
from pyspark_paralagg.datalog.resolve.stratified import check_stratified
from pyspark_paralagg.datalog.resolve.types import Types, unsigned_columns
from pyspark_paralagg.program.program import Limit, Program

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.lower.facts import Fact
    from pyspark_paralagg.program.program import Relation

Columns = Sequence[tuple[str, str]]
_WIDE = {"tinyint": NUMBER, "smallint": NUMBER, "int": NUMBER, "float": FLOAT}


def resolve(text: syntax.Text, inputs: Mapping[str, Columns] | None = None) -> Program:
    """The Program of a text whose inputs have these columns and Spark types. Raises ``DatalogError``."""
    return resolve_text(text, inputs or {}).program


def resolve_text(
    text: syntax.Text,
    inputs: Mapping[str, Columns],
    own: Sequence[str] = (),
    check: Callable[[Resolved], None] = lambda _: None,
) -> Resolved:
    """The Program of a text, and what is needed to run it; ``own`` are names of the user's aggregators.

    Raises ``DatalogError``, and ``VerificationError`` ``PARALAGG_NOT_STRATIFIED`` for a negation or an aggregate of a
    body through the recursion; the first problem of the text is the error, whose ``problems`` are all. What ``check``
    raises is one of them.
    """

    def resolved(part: syntax.Text) -> Resolved:
        out = resolve_once(part, inputs, own)
        check(out)
        return out

    return with_all_problems(text, resolved)


def resolve_once(text: syntax.Text, inputs: Mapping[str, Columns], own: Sequence[str] = ()) -> Resolved:
    """As ``resolve_text``; raises the first problem alone that it comes across."""
    return _Resolver(text, inputs, own).resolved()


class _Resolver:
    def __init__(self, text: syntax.Text, inputs: Mapping[str, Columns], own: Sequence[str]) -> None:
        self.text = text
        self.places = Places(text.source, text.name)
        self.types = Types(text)
        self.terms = Terms(self.places, self.types.base)
        flat, self.indexed = drop_indexes(tuple(self._flat()), self.places)
        declared = self._declared()
        self.input_spans = {
            c.relation: c.span for c in text.clauses if isinstance(c, syntax.Directive) and c.kind == "input"
        }
        external = {*self.input_spans, *inputs}
        given = {n: tuple(_WIDE.get(t, t) for _, t in cs) for n, cs in inputs.items()}
        given |= {n: tuple(types) for n, (_, types, _) in declared.items()}
        self.shapes = Shapes(
            without_means(flat, self.places),
            {n: (columns, span) for n, (columns, _, span) in declared.items()},
            {n: tuple(c for c, _ in cs) for n, cs in inputs.items()},
            self.places,
            own,
        )
        self._check_directives()
        rules = without_means(flat, self.places)
        facts, self.rules = constants(rules, self.shapes)
        self.derived = {r.head.relation for r in self.rules}
        check_stratified(self.rules, self.derived, self.places)
        static = self.shapes.shapes.keys() - self.derived
        self.assumed = assumptions(text, self.types, self.shapes, static, external, self.places)
        static_facts = {n: _types_of(found) for n, found in facts.items()}
        given |= {n: t for n, t in static_facts.items() if n not in given and n not in self.derived}
        unsigned = unsigned_columns(text)
        flags = {
            n: tuple(c in unsigned[n.removesuffix(INITIAL)] for c in columns) for n, (columns, _, _) in declared.items()
        }
        self.terms.unsigned = positions(rules, flags, self.terms.base)
        of = infer(self.rules, self.shapes, given, static_facts, self.terms, self.places)
        self._check_typed(of)
        assumed = {(a.relation, a.column) for a in self.assumed}
        self.builder = Builder(
            self.shapes, of, self.terms, self.places, facts, external, self.indexed, unsigned_columns(text), assumed
        )
        self.mentioned = frozenset((*declared, *(a.relation for a in _atoms(text))))

    def resolved(self) -> Resolved:
        """The whole."""
        relations, inputs, rules, sources = self.builder.build(self.rules)
        program = Program(
            relations,
            inputs,
            rules,
            name=_name(relations),
            assume=tuple(condition(a) for a in self.assumed),
            limits=tuple(self._limit(c) for c in self.text.clauses if isinstance(c, syntax.Limit)),
        )
        clauses = self.text.clauses
        outputs = [c.relation for c in clauses if isinstance(c, syntax.Directive) and c.kind == "output"]
        return Resolved(
            program,
            sources,
            self.shapes.shapes,
            self.mentioned,
            tuple(dict.fromkeys(outputs)) or tuple(r.name for r in relations if "@" not in r.name),
            self.assumed,
            {self.places.describe(f.span): f.span for f in self.rules},
            self.input_spans,
            self.places,
            overflowing(self.rules, self.terms.unsigned, self.terms.base),
        )

    def _flat(self) -> list[Flat]:
        clauses = [c for c in self.text.clauses if isinstance(c, syntax.Rule)]
        aggregates, ranges = Aggregates(clauses, self.places), Ranges(self.places)
        counted = counting(clauses)
        taken = [a for c in clauses for flat in expand(c, counted, self.places) for a in aggregates.extract(flat)]
        return [r for flat in taken for r in ranges.extract(flat)]

    def _declared(self) -> dict[str, tuple[tuple[str, ...], list[str], syntax.Span]]:
        out: dict[str, tuple[tuple[str, ...], list[str], syntax.Span]] = {}
        for c in self.text.clauses:
            if not isinstance(c, syntax.Declaration):
                continue
            if c.relation in out:
                message = f"`{c.relation}` is declared twice, see {self.places.describe(out[c.relation][2])}"
                raise self.places.error("PARALAGG_DATALOG_DECLARED_TWICE", message, c.span, value=c.relation)
            names = tuple(a.name for a in c.attributes)
            for p, a in enumerate(c.attributes):
                if a.name in names[:p]:
                    message = f"`{c.relation}` has two columns `{a.name}`"
                    raise self.places.error("PARALAGG_DATALOG_DECLARED_TWICE", message, a.span, value=a.name)
            skip = 1 if c.relation in self.indexed else 0
            out[c.relation] = (names[skip:], [self.types.spark_type(a) for a in c.attributes[skip:]], c.span)
            if skip:
                out[c.relation + INITIAL] = out[c.relation]
        return out

    def _check_directives(self) -> None:
        for c in self.text.clauses:
            if isinstance(c, syntax.Directive | syntax.Limit) and c.relation not in self.shapes.shapes:
                self.shapes.check(syntax.Atom(c.relation, (), c.span))

    def _check_typed(self, of: TypesOf) -> None:
        for name, shape in self.shapes.shapes.items():
            open_ = [c for p, c in enumerate(shape.columns) if ("column", p) not in of[name]]
            if open_:
                rules = [r for r in self.rules if r.head.relation == name]
                for rule in rules:  # the reason, where there is one to tell
                    bind(rule, self.shapes, _all_known(of, self.shapes), self.terms, self.places)
                message = f"what type `{open_[0]}` of `{name}` has cannot be told"
                span = rules[0].head.span if rules else shape.place
                hint = f"declare it: .decl {name}({', '.join(f'{c}: number' for c in shape.columns)})"
                raise self.places.error("PARALAGG_DATALOG_TYPE", message, span, value=open_[0], hint=hint)

    def _limit(self, c: syntax.Limit) -> Limit:
        if c.tolerance is not None and not {"sum", "count"} & set(self.shapes.shapes[c.relation].aggregates):
            message = f"`{c.relation}` has no $SUM or $COUNT whose change a tolerance could be about"
            hint = "the other aggregates end exactly, without one"
            raise self.places.error("PARALAGG_BAD_OPTION", message, c.span, value=c.tolerance, hint=hint)
        return Limit(c.relation, c.iterations, c.tolerance)


def _atoms(text: syntax.Text) -> list[syntax.Atom]:
    return [n for n in nodes(text.clauses) if isinstance(n, syntax.Atom)]


def _name(relations: tuple[Relation, ...]) -> str:
    return next((r.name for r in reversed(relations) if "@" not in r.name), "datalog")


def _all_known(types: TypesOf, shapes: Shapes) -> TypesOf:
    """``types`` with numbers for what is not known, to find what is wrong besides."""
    return {
        n: {("column", p): NUMBER for p in range(max(1, len(shapes.shapes[n].columns)))} | t
        if n in shapes.shapes
        else t
        for n, t in types.items()
    }


def _types_of(facts: Sequence[Fact]) -> tuple[str, ...]:
    """The types of a relation's columns as its facts have them."""
    columns = zip(*(f.row for f in facts), strict=True)
    return tuple(_type_of(values) for values in columns) or (BOOLEAN,)


def _type_of(values: Sequence[object]) -> str:
    if all(isinstance(v, str) for v in values):
        return SYMBOL
    return FLOAT if any(isinstance(v, float) for v in values) else NUMBER
