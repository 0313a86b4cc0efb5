"""Resolve a syntax tree into a Program: check names, arity and types, and reduce all rules to flat ones.

Second stage of a text: ``parse`` -> **resolve** -> ``compile``, or ``api``, which runs it on Spark. First the text
becomes a list of flat rules (``expand``, ``aggregates``, ``ranges``, ``iterations``, ``means``). Then its relations get
shapes and types (``shapes``, ``infer``). Then ``build`` makes the Program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.assumptions import assumptions, condition
from pyspark_paralagg.datalog.lower.bind import bind
from pyspark_paralagg.datalog.lower.build import Builder
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.lower.facts import constants
from pyspark_paralagg.datalog.lower.infer import SlotTypes, infer
from pyspark_paralagg.datalog.lower.resolved import Resolved
from pyspark_paralagg.datalog.lower.row_limits import row_limits
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, SYMBOL, Terms
from pyspark_paralagg.datalog.lower.unsigned import overflowing, positions
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.aggregates import Aggregates
from pyspark_paralagg.datalog.resolve.disjoint import counting, expand
from pyspark_paralagg.datalog.resolve.expand import Flat, nodes
from pyspark_paralagg.datalog.resolve.faults import with_all_problems
from pyspark_paralagg.datalog.resolve.functors import functors_of
from pyspark_paralagg.datalog.resolve.iterations import INITIAL, drop_indexes
from pyspark_paralagg.datalog.resolve.means import without_means
from pyspark_paralagg.datalog.resolve.ranges import Ranges
from pyspark_paralagg.datalog.resolve.shapes import Shapes
from pyspark_paralagg.datalog.resolve.stratified import check_stratified
from pyspark_paralagg.datalog.resolve.types import Types, unsigned_columns
from pyspark_paralagg.program.aggregators import aggregator_named
from pyspark_paralagg.program.names import fresh_name, is_added
from pyspark_paralagg.program.program import Limit, Program
from pyspark_paralagg.program.sets import set_type

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.lower.facts import Fact
    from pyspark_paralagg.datalog.resolve.functors import Functions
    from pyspark_paralagg.program.program import Relation

Columns = Sequence[tuple[str, str]]
_WIDE = {"tinyint": NUMBER, "smallint": NUMBER, "int": NUMBER, "float": FLOAT}


def resolve(text: syntax.Text, inputs: Mapping[str, Columns] | None = None) -> Program:
    """Return the Program of a text whose inputs have these columns and Spark types; raise ``DatalogError``."""
    return resolve_text(text, inputs or {}).program


def resolve_text(
    text: syntax.Text,
    inputs: Mapping[str, Columns],
    user_aggregators: Sequence[str] = (),
    check: Callable[[Resolved], None] = lambda _: None,
    functions: Functions = MappingProxyType({}),
) -> Resolved:
    """Return the Program of a text with the tables needed to run it.

    ``user_aggregators`` are names, ``functions`` those of the text's functors by name.

    Raise ``DatalogError``, or ``VerificationError`` ``PARALAGG_NOT_STRATIFIED`` for a negation or a body aggregate in
    a recursion. The error is the text's first problem; its ``problems`` are all of them, those of ``check`` included.
    """

    def resolved(part: syntax.Text) -> Resolved:
        result = resolve_once(part, inputs, user_aggregators, functions)
        check(result)
        return result

    return with_all_problems(text, resolved)


def resolve_once(
    text: syntax.Text,
    inputs: Mapping[str, Columns],
    user_aggregators: Sequence[str] = (),
    functions: Functions = MappingProxyType({}),
) -> Resolved:
    """Resolve like ``resolve_text``, but raise only the first problem."""
    return _Resolver(text, inputs, user_aggregators, functions).resolved()


class _Resolver:
    def __init__(
        self, text: syntax.Text, inputs: Mapping[str, Columns], user_aggregators: Sequence[str], functions: Functions
    ) -> None:
        self.text = text
        self.places = Places(text.source, text.name)
        self.types = Types(text)
        self.functors = functors_of(text, self.types, functions, self.places)
        self.terms = Terms(self.places, self.types.base, self.functors)
        flat, self.indexed = drop_indexes(tuple(self._flat()), self.places)
        declared = self._declared()
        self.input_spans = {
            c.relation: c.span for c in text.clauses if isinstance(c, syntax.Directive) and c.kind == "input"
        }
        external = {*self.input_spans, *inputs}
        column_types = {n: tuple(_WIDE.get(t, t) for _, t in cs) for n, cs in inputs.items()}
        column_types |= {n: tuple(types) for n, (_, types, _) in declared.items()}
        rules = without_means(flat, self.places)
        self.shapes = Shapes(
            rules,
            {n: (columns, span) for n, (columns, _, span) in declared.items()},
            {n: tuple(c for c, _ in cs) for n, cs in inputs.items()},
            self.places,
            user_aggregators,
        )
        self._check_directives()
        facts, self.rules = constants(rules, self.shapes)
        self.derived = {r.head.relation for r in self.rules}
        check_stratified(self.rules, self.derived, self.places)
        static = self.shapes.shapes.keys() - self.derived
        self.assumed = assumptions(text, self.types, self.shapes, static, external, self.places)
        static_facts = {n: _fact_types(rows) for n, rows in facts.items()}
        column_types |= {n: t for n, t in static_facts.items() if n not in column_types and n not in self.derived}
        column_types, static_facts = self._with_sets(column_types), self._with_sets(static_facts)
        unsigned = unsigned_columns(text)
        flags = {
            n: tuple(c in unsigned[n.removesuffix(INITIAL)] for c in columns) for n, (columns, _, _) in declared.items()
        }
        self.terms.unsigned = positions(rules, flags, self.terms.base)
        slot_types = infer(self.rules, self.shapes, column_types, static_facts, self.terms, self.places)
        self._check_typed(slot_types)
        self.traces = {name: self._traced(name) for name in text.traces if name in self.shapes.shapes}
        self.builder = Builder(
            self.shapes,
            slot_types,
            self.terms,
            self.places,
            facts,
            external,
            self.indexed,
            unsigned,
            {(a.relation, a.column) for a in self.assumed},
            self.traces,
        )
        self.mentioned = frozenset((*declared, *(a.relation for a in _atoms(text))))

    def resolved(self) -> Resolved:
        """Return the resolved text."""
        relations, inputs, rules, sources = self.builder.build(self.rules)
        program = Program(
            relations,
            inputs,
            rules,
            name=_name(relations),
            assume=tuple(condition(a) for a in self.assumed),
            limits=tuple(self._limit(c) for c in self.text.clauses if isinstance(c, syntax.Limit)),
            functors=tuple(self.functors.values()),
        )
        program = replace(program, limits=(*program.limits, *row_limits(self.text, program, self.places)))
        self._check_traces(program)
        clauses = self.text.clauses
        outputs = [c.relation for c in clauses if isinstance(c, syntax.Directive) and c.kind == "output"]
        return Resolved(
            program,
            sources,
            self.shapes.shapes,
            self.mentioned,
            tuple(dict.fromkeys(outputs)) or tuple(r.name for r in relations if not is_added(r.name)),
            self.assumed,
            {self.places.describe(f.span): f.span for f in self.rules},
            self.input_spans,
            self.places,
            overflowing(self.rules, self.terms.unsigned, self.terms.base),
            self.traces,
        )

    def _with_sets(self, columns: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Return the types of relations; of a set, declarations, inputs and facts give the type of the elements."""
        limits = {name: dict(self.shapes.shapes[name.removesuffix(INITIAL)].limits) for name in columns}
        return {
            name: tuple(set_type(t) if p in limits[name] else t for p, t in enumerate(types))
            for name, types in columns.items()
        }

    def _traced(self, name: str) -> tuple[syntax.TracedColumn, ...]:
        """Return the traced columns of a relation, under names that its other columns do not have."""
        names, result = list(self.shapes.shapes[name].columns), []
        for traced in self.text.traces[name]:
            result.append(replace(traced, name=fresh_name(traced.name, names)))
            names.append(result[-1].name)
        return tuple(result)

    def _check_traces(self, program: Program) -> None:
        needs = Dependencies(program)
        for name, columns in self.traces.items():
            if not needs.recursive_rules(name):
                message = f"`{name}` does not recurse, so a path of it is its own row"
                hint = f"write ${columns[0].word} in the recursive relation whose steps it shows"
                problem = self.places.error("PARALAGG_PATH", message, columns[0].span, value=name, hint=hint)
                problem.may_follow_from_others = True
                raise problem
            if any(self.text.columns.get(name, ())):
                message = f"`{name}` has records or branches, which a path does not show"
                hint = "use plain columns in this relation, and make the records in another one"
                raise self.places.error("PARALAGG_PATH", message, columns[0].span, value=name, hint=hint)

    def _flat(self) -> list[Flat]:
        clauses = [c for c in self.text.clauses if isinstance(c, syntax.Rule)]
        aggregates, ranges = Aggregates(clauses, self.places), Ranges(self.places)
        counted = counting(clauses)
        extracted = [a for c in clauses for flat in expand(c, counted, self.places) for a in aggregates.extract(flat)]
        return [r for flat in extracted for r in ranges.extract(flat)]

    def _declared(self) -> dict[str, tuple[tuple[str, ...], list[str], syntax.Span]]:
        declared: dict[str, tuple[tuple[str, ...], list[str], syntax.Span]] = {}
        for c in self.text.clauses:
            if not isinstance(c, syntax.Declaration):
                continue
            if c.relation in declared:
                message = f"`{c.relation}` is declared twice, see {self.places.describe(declared[c.relation][2])}"
                raise self.places.error("PARALAGG_DATALOG_DECLARED_TWICE", message, c.span, value=c.relation)
            names = tuple(a.name for a in c.attributes)
            for p, a in enumerate(c.attributes):
                if a.name in names[:p]:
                    message = f"`{c.relation}` has two columns `{a.name}`"
                    raise self.places.error("PARALAGG_DATALOG_DECLARED_TWICE", message, a.span, value=a.name)
            skip = 1 if c.relation in self.indexed else 0
            declared[c.relation] = (names[skip:], [self.types.spark_type(a) for a in c.attributes[skip:]], c.span)
            if skip:
                declared[c.relation + INITIAL] = declared[c.relation]
        return declared

    def _check_directives(self) -> None:
        for c in self.text.clauses:
            if isinstance(c, syntax.Directive | syntax.Limit) and c.relation not in self.shapes.shapes:
                self.shapes.check(syntax.Atom(c.relation, (), c.span))

    def _check_typed(self, slot_types: SlotTypes) -> None:
        for name, shape in self.shapes.shapes.items():
            untyped = [c for p, c in enumerate(shape.columns) if ("column", p) not in slot_types[name]]
            if untyped:
                rules = [r for r in self.rules if r.head.relation == name]
                for rule in rules:  # raises the reason if binding finds one
                    bind(rule, self.shapes, _with_default_types(slot_types, self.shapes), self.terms, self.places)
                message = f"nothing determines the type of `{untyped[0]}` of `{name}`"
                span = rules[0].head.span if rules else shape.place
                hint = f"declare it: .decl {name}({', '.join(f'{c}: number' for c in shape.columns)})"
                problem = self.places.error("PARALAGG_DATALOG_TYPE", message, span, value=untyped[0], hint=hint)
                problem.may_follow_from_others = True
                raise problem

    def _limit(self, c: syntax.Limit) -> Limit:
        has_sum = any(aggregator_named(a).is_sum for a in self.shapes.shapes[c.relation].aggregates)
        if c.tolerance is not None and not has_sum:
            message = f"`{c.relation}` has no $SUM or $COUNT, so a tolerance has no effect"
            hint = "remove the tolerance"
            raise self.places.error("PARALAGG_BAD_OPTION", message, c.span, value=c.tolerance, hint=hint)
        return Limit(c.relation, c.iterations, c.tolerance)


def _atoms(text: syntax.Text) -> list[syntax.Atom]:
    return [n for n in nodes(text.clauses) if isinstance(n, syntax.Atom)]


def _name(relations: tuple[Relation, ...]) -> str:
    return next((r.name for r in reversed(relations) if not is_added(r.name)), "datalog")


def _with_default_types(types: SlotTypes, shapes: Shapes) -> SlotTypes:
    """Return ``types`` with numbers for unknown types, so that binding finds other errors."""
    return {
        n: {("column", p): NUMBER for p in range(max(1, len(shapes.shapes[n].columns)))} | t
        if n in shapes.shapes
        else t
        for n, t in types.items()
    }


def _fact_types(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the types of a relation's columns according to its facts."""
    columns = zip(*(f.row for f in facts), strict=True)
    return tuple(_value_type(values) for values in columns) or (BOOLEAN,)


def _value_type(values: Sequence[object]) -> str:
    if all(isinstance(v, str) for v in values):
        return SYMBOL
    return FLOAT if any(isinstance(v, float) for v in values) else NUMBER
