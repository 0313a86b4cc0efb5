"""Build the strata of a resolved text as DataFrames, on first use.

A stratum without recursion is the aggregated union of its rules. A recursive stratum becomes a call of ``recursive``:
rules that read none of its relations form the base, the others the step.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.collected import CollectSet
from pyspark_paralagg.api.dataframe import Declaration, recursive
from pyspark_paralagg.api.inputs import literal_rows
from pyspark_paralagg.api.relations import conform, make_relation, typed_relation
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.lowering.aggregate import aggregate
from pyspark_paralagg.lowering.numbered import numbered
from pyspark_paralagg.lowering.rows import rows_of
from pyspark_paralagg.program.aggregators import BY_ORDER, BY_WITNESS
from pyspark_paralagg.program.expr import columns
from pyspark_paralagg.program.functor import calls_of
from pyspark_paralagg.program.names import visible_names
from pyspark_paralagg.program.sets import limit_of
from pyspark_paralagg.program.sql import quoted, to_sql
from pyspark_paralagg.program.step import branch_place
from pyspark_paralagg.session.attach import keep_run, shared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.errors import ParalaggError
    from pyspark_paralagg.program.program import Atom, Dependent, Input, Relation, Rule

    Step = Callable[..., Mapping[str, DataFrame]]
    Layer = tuple[dict[str, Declaration], Step, dict[str, Any]]

_MOST_REPEATED = 40
"""Operators of a relation that its readers may add to a plan. Spark pushes filters into them, but not into a leaf."""


class Strata:
    """The DataFrames of a text's relations. ``inputs`` are the input DataFrames by relation, in the text's columns."""

    def __init__(
        self,
        spark: SparkSession,
        resolved: Resolved,
        inputs: Mapping[str, DataFrame],
        options: Mapping[str, Any],
        aggregators: Mapping[str, Any],
    ) -> None:
        self._spark = spark
        self._resolved = resolved
        self._program = resolved.program
        self._inputs = inputs
        self._functors = {f.name: f for f in self._program.functors}
        self._sources = {s.relation: s for s in resolved.sources}
        self._rows: dict[str, DataFrame] = {}
        self._options = options
        self._aggregators = aggregators
        self._dependencies = Dependencies(self._program)
        self._sets: dict[str, DataFrame] = {}
        self._bags: dict[str, DataFrame] = {}
        self._built: dict[str, DataFrame] = {}
        self._leaves: dict[str, DataFrame] = {}
        self._readers: dict[tuple[str, ...], set[str]] = {}
        self._kept: list[Callable[[], Any]] = []
        self._together: set[str] = set()
        self._assumed = {(a.relation, a.column) for a in resolved.assumed}

    def frame(self, name: str) -> DataFrame:
        """Return the relation with the text's columns in their order, without columns that the compiler added."""
        if name not in self._dependencies.strata:
            return self._distinct(name)
        frame = self._relation(name)
        for other in self._dependencies.reached(name):
            self._share(self._dependencies.strata[other], name)
        columns = self._resolved.names(name)
        return frame if tuple(frame.columns) == columns else frame.select(*(quoted(c) for c in columns))

    def unpersist(self) -> None:
        """Free the cached recursions."""
        while self._kept:
            self._kept.pop()()

    def located(self, problem: ParalaggError) -> ParalaggError:
        """Return ``problem`` with the line of its rule, if its place is a branch of a step."""
        for name in self._dependencies.strata:
            rules = self._dependencies.recursive_rules(name)
            for n, rule in enumerate(rules, 1):
                if problem.place in (branch_place(name, n, len(rules)), rule.place):
                    return self._resolved.places.located(problem, self._resolved.spans[rule.place])
        return problem

    def layers(self, name: str, build: Callable[[Layer], Mapping[str, DataFrame]]) -> str | None:
        """Call ``build`` for each recursion that ``name`` needs, its own last: declarations, step, options.

        Later ones read the relations of earlier ones as ``build`` returns them, so the strata are of no other use.
        Return the reason as text if ``name`` does not recurse, or if a recursion is not its step's fixpoint alone.
        """
        if not self._dependencies.recursive_rules(name):
            return f"{name} does not recurse"
        reached = self._dependencies.reached(name)
        for names in dict.fromkeys(self._dependencies.strata.values()):
            if names[0] not in reached or not any(map(self._dependencies.recursive_rules, names)):
                continue
            layer = self._recursion(names)
            for n, declaration in layer[0].items():
                if declaration.initial is not None:
                    return f"{n} has initial rows"
                if declaration.max_rows is not None:
                    return f"{n} ends after {declaration.max_rows} rows"
                if declaration.functors:
                    return f"{n} calls the functor {declaration.functors[0]} on rows of the recursion"
            self._built |= build(layer)
        return None

    def combined(self) -> list[Relation]:
        """Return the relations with user-defined aggregators, with the types that the engines use."""
        relations = [r for r in self._program.relations if any(d.aggregator in self._aggregators for d in r.dependents)]
        return [
            make_relation(
                r.name,
                [(c.name, c.type) for c in r.columns],
                [k.name for k in r.keys],
                self._aggs(r),
                r.base,
                self._spark,
            )
            for r in relations
        ]

    # --- relations ---------------------------------------------------------------------------------------------------

    def _relation(self, name: str) -> DataFrame:
        if name not in self._built:
            names = self._dependencies.strata[name]
            if self._dependencies.recursive_rules(name):
                self._built |= self._fixpoint(names)
            else:
                self._built[name] = self._plain(self._program.relation(name))
        return self._built[name]

    def _plain(self, relation: Relation) -> DataFrame:
        rows = self._start(relation)
        if relation.numbered:
            return numbered(rows.distinct())
        if not relation.dependents:
            return rows.distinct()
        typed = typed_relation(
            relation.name, rows, [k.name for k in relation.keys], self._aggs(relation), relation.base
        )
        return aggregate(conform(rows, typed), typed)

    def _fixpoint(self, names: tuple[str, ...]) -> dict[str, DataFrame]:
        declarations, step, options = self._recursion(names)
        relations = recursive(declarations, step, **options)
        outputs = [n for n, d in declarations.items() if d.is_output]
        forget = keep_run(relations[outputs[0]]) if len(outputs) > 1 else None
        if forget is not None:
            self._kept.append(forget)
            self._together.update(outputs)
        return relations

    def _recursion(self, names: tuple[str, ...]) -> tuple[dict[str, Declaration], Step, dict[str, Any]]:
        declarations = {}
        for name in names:
            relation = self._program.relation(name)
            initial = None
            if relation.initial is not None:
                source = self._program.input(relation.initial)
                initial = self._selected(self._relation(str(source.relation)), source, relation)
            keys = [k.name for k in relation.keys]
            aggs = self._aggs(relation) or None
            is_output = name in self._resolved.outputs
            declarations[name] = Declaration(
                self._start(relation),
                keys,
                aggs,
                initial,
                is_output=is_output,
                functors=self._loop_functors(name, names),
                max_rows=self._program.row_limit((name,)),
            )

        def step(**state: DataFrame) -> dict[str, DataFrame]:
            return {n: _union([self._rule(r, state) for r in self._dependencies.recursive_rules(n)]) for n in names}

        iterations, on_limit, tolerance = self._program.limit(names)
        # These branches join in the order of `.plan`.
        join_order = {
            n: [b for b, r in enumerate(self._dependencies.recursive_rules(n), 1) if r.order is not None] for n in names
        }
        options = {**self._options, "join_order": join_order, "max_iterations": iterations, "tolerance": tolerance}
        if iterations is not None:
            options["on_limit"] = on_limit
        options |= {"name": "_".join(visible_names(names)), "assume": self._assumptions(names)}
        return declarations, step, options

    def _loop_functors(self, name: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the functors that rules of ``name`` call on rows of the recursion, not of one other relation alone."""
        found: dict[str, None] = {}
        for rule in self._dependencies.recursive_rules(name):
            others = [a.bound for a in rule.body if a.kind == "join" and a.relation not in names]
            for call in (c for e in (*rule.exprs, *rule.conditions) for c in calls_of(e)):
                if not any(columns(call) and columns(call) <= bound for bound in others):
                    found[call.fn] = None
        return tuple(found)

    def _start(self, relation: Relation) -> DataFrame:
        """Return the rows of a relation without recursion: its input rows, and the rules that do not recurse."""
        rules = [r for r in self._program.rules if r.head == relation.name and not self._dependencies.recurses(r)]
        source = self._program.input(relation.base)
        origin = self._resolved.sources[source.source]
        has_input = origin.is_external or origin.rows or not rules
        parts = [self._selected(self._input_rows(relation.name), source, relation)] if has_input else []
        return _union([*parts, *(self._rule(r, {}) for r in rules)])

    def _selected(self, df: DataFrame, source: Input, relation: Relation) -> DataFrame:
        """Return the rows of ``source`` with the column names of ``relation``."""
        renamed = df.toDF(*(c.name for c in source.columns))
        columns = zip(map(to_sql, source.exprs), relation.supplied, strict=True)
        return renamed.selectExpr(*(f"{value} AS {quoted(c.name)}" for value, c in columns))

    def _input_rows(self, name: str) -> DataFrame:
        """Return the input rows of ``name``: those of its DataFrame and the facts of the text."""
        if name not in self._rows:
            source, df = self._sources[name], self._inputs.get(name)
            facts = [literal_rows(self._spark, source)] if source.rows or df is None else []
            self._rows[name] = _union([df, *facts] if df is not None else facts)
        return self._rows[name]

    # --- rules -------------------------------------------------------------------------------------------------------

    def _rule(self, rule: Rule, state: Mapping[str, DataFrame]) -> DataFrame:
        head = self._program.relation(rule.head)
        # A user's own aggregator may count them.
        counts_duplicates = any(d.aggregator in self._aggregators or not d.is_idempotent for d in head.dependents)

        def frame(atom: Atom) -> DataFrame:
            if atom.relation is not None and atom.relation in state:
                return state[atom.relation]
            # A relation is a set; an idempotent head ignores duplicates, so they need not be removed.
            if atom.relation is not None:
                return self._read(atom.relation, is_set=counts_duplicates).alias(atom.relation)
            name = self._resolved.sources[self._program.input(atom.input or 0).source].relation
            return (self._distinct(name) if counts_duplicates else self._input_rows(name)).alias(name)

        is_set = not (counts_duplicates or state or self._functors)
        return rows_of(rule, tuple(c.name for c in head.supplied), frame, self._alias, self._functors, is_set=is_set)

    def _read(self, name: str, *, is_set: bool) -> DataFrame:
        """Return the rows of a relation for a rule; if it need not be a set, perhaps with duplicates."""
        is_bag = not is_set and self._dependencies.is_lean(name)
        found = self._bags if is_bag else self._leaves
        if name not in found:
            rows = self._start(self._program.relation(name)) if is_bag else self._relation(name)
            found[name] = shared(rows, name, self._dependencies.readers(name), _MOST_REPEATED)
        return found[name]

    def _distinct(self, name: str) -> DataFrame:
        if name not in self._sets:
            self._sets[name] = self._input_rows(name).distinct()
        return self._sets[name]

    def _alias(self, atom: Atom, position: int) -> str | None:
        """Return the name of an input's column that has an assumption, by which the guard finds it; else None."""
        if atom.input is None:
            return None
        column = self._program.input(atom.input).columns[position].name
        relation_name = self._resolved.sources[self._program.input(atom.input).source].relation
        assumed = {f"{r}.{c}" for r, c in self._assumed if r == relation_name}
        return column if column in assumed else None

    def _assumptions(self, names: tuple[str, ...]) -> list[str]:
        out = []
        for a in self._resolved.assumed:
            column = f"{a.relation}.{a.column}"
            uses = max(
                (self._count(r, column) for n in names for r in self._dependencies.recursive_rules(n)), default=0
            )
            aliases = [column, *(f"{column}_{n}" for n in range(2, uses + 1))][:uses]
            out += [f"{quoted(alias)} {a.op} {a.value}" for alias in aliases]
        return out

    def _count(self, rule: Rule, column: str) -> int:
        """Return how many variables of ``rule`` stand for an assumed column."""
        return sum(v is not None and self._alias(a, p) == column for a in rule.body for p, v in enumerate(a.variables))

    def _aggs(self, relation: Relation) -> dict[str, Any]:
        aggregated = {d.column.name: self._aggregation(d) for d in relation.dependents}
        return aggregated | {t.name: t.kind for t in relation.traces}

    def _aggregation(self, d: Dependent) -> Any:  # noqa: ANN401 - any value of aggs
        if d.custom is not None:
            return CollectSet(limit_of(d.custom.combine[0]))
        if d.aggregator in self._aggregators:
            return self._aggregators[d.aggregator]
        supplied = [c.name for c in d.supplied]
        if d.definition.is_counted:
            return BY_WITNESS[d.aggregator](*supplied)
        if d.order is not None:
            return BY_ORDER[d.aggregator](d.order)
        return d.aggregator

    def _share(self, names: tuple[str, ...], reader: str) -> None:
        """Cache a stratum when a second relation that needs it is looked up."""
        readers = self._readers.setdefault(names, set())
        readers.add(reader)
        if len(readers) == 2 and names[0] in self._built:  # noqa: PLR2004 - the second one
            for name in names:
                if name not in self._together:
                    self._kept.append(self._built[name].persist().unpersist)


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionAll(b), parts)
