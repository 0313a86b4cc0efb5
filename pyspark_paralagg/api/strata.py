"""The strata of a resolved text as DataFrames, built when somebody asks.

A stratum without recursion is a union of its rules, aggregated; a recursive one is given to ``recursive``: rules that
read none of its relations make the base, the others the step.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import Declaration, recursive, relation
from pyspark_paralagg.api.inputs import literal_rows
from pyspark_paralagg.api.relations import conform, relation_of, typed_relation
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.lowering.aggregate import aggregate
from pyspark_paralagg.lowering.rows import rows_of
from pyspark_paralagg.program.aggregators import BY_ORDER, MCount, MSum
from pyspark_paralagg.program.sql import quoted, to_sql
from pyspark_paralagg.program.step import branch_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.errors import ParalaggError
    from pyspark_paralagg.program.program import Atom, Dependent, Input, Relation, Rule

    Step = Callable[..., Mapping[str, DataFrame]]


class Strata:
    """Builds relations; ``inputs`` are the given rows by relation, in the text's columns."""

    def __init__(
        self,
        spark: SparkSession,
        resolved: Resolved,
        inputs: Mapping[str, DataFrame],
        options: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> None:
        self._spark = spark
        self._resolved = resolved
        self._program = resolved.program
        self._inputs = inputs
        self._sources = {s.relation: s for s in resolved.sources}
        self._rows: dict[str, DataFrame] = {}
        self._options = options
        self._own = own
        self._needs = Dependencies(self._program)
        self._sets: dict[str, DataFrame] = {}
        self._bags: dict[str, DataFrame] = {}
        self._built: dict[str, DataFrame] = {}
        self._readers: dict[tuple[str, ...], set[str]] = {}
        self._persisted: list[DataFrame] = []
        self._assumed = {(a.relation, a.column) for a in resolved.assumed}

    def shown(self, name: str) -> DataFrame:
        """The relation as the text has it: its columns in their order, none that the compiler added."""
        if name not in self._needs.strata:
            return self._distinct(name)
        found = self._relation(name)
        for other in self._needs.reached(name):
            self._share(self._needs.strata[other], name)
        columns = self._resolved.names(name)
        return found if tuple(found.columns) == columns else found.select(*(quoted(c) for c in columns))

    def unpersist(self) -> None:
        """Frees what is shared."""
        while self._persisted:
            self._persisted.pop().unpersist()

    def located(self, problem: ParalaggError) -> ParalaggError:
        """``problem`` at the line of its rule, where its place is a branch of a step."""
        for name in self._needs.strata:
            rules = self._needs.recursive_rules(name)
            for n, rule in enumerate(rules, 1):
                if problem.place in (branch_place(name, n, len(rules)), rule.place):
                    return self._resolved.places.located(problem, self._resolved.spans[rule.place])
        return problem

    def single(self, name: str) -> tuple[Declaration, Step, dict[str, Any]] | str:
        """The recursion of ``name``, if it is the only one that ``name`` needs; else why it is not."""
        names = self._needs.strata.get(name, ())
        if not names or not self._needs.recursive_rules(name):
            return f"{name} does not recurse"
        if len(names) > 1:
            return f"{name} recurses together with {', '.join(n for n in names if n != name)}"
        if self._program.relation(name).initial is not None:
            return f"{name} has initial rows"
        for other in sorted(self._needs.reached(name) - {name}):
            if other in self._needs.strata and self._needs.recursive_rules(other):
                return f"{name} needs {other}, which is a recursion of its own"
        declarations, step, options = self._recursion(names)
        return declarations[name], step, options

    def combined(self) -> list[Relation]:
        """The relations whose values users' aggregators combine, typed as the engines see them."""
        found = [r for r in self._program.relations if any(d.aggregator in self._own for d in r.dependents)]
        return [
            relation_of(
                r.name,
                [(c.name, c.type) for c in r.columns],
                [k.name for k in r.keys],
                self._aggs(r),
                r.base,
                self._spark,
            )
            for r in found
        ]

    # --- relations ---------------------------------------------------------------------------------------------------

    def _relation(self, name: str) -> DataFrame:
        if name not in self._built:
            names = self._needs.strata[name]
            if self._needs.recursive_rules(name):
                self._built |= self._fixpoint(names)
            else:
                self._built[name] = self._plain(self._program.relation(name))
        return self._built[name]

    def _plain(self, of: Relation) -> DataFrame:
        rows = self._start(of)
        if not of.dependents:
            return rows.distinct()
        typed = typed_relation(of.name, rows, [k.name for k in of.keys], self._aggs(of), of.base)
        return aggregate(conform(rows, typed), typed)

    def _fixpoint(self, names: tuple[str, ...]) -> dict[str, DataFrame]:
        declarations, step, options = self._recursion(names)
        return recursive(declarations, step, **options)

    def _recursion(self, names: tuple[str, ...]) -> tuple[dict[str, Declaration], Step, dict[str, Any]]:
        declarations = {}
        for name in names:
            of = self._program.relation(name)
            initial = None
            if of.initial is not None:
                source = self._program.input(of.initial)
                initial = self._selected(self._relation(str(source.relation)), source, of)
            keys = [k.name for k in of.keys]
            declarations[name] = relation(self._start(of), keys=keys, aggs=self._aggs(of) or None, initial=initial)

        def step(**state: DataFrame) -> dict[str, DataFrame]:
            return {n: _union([self._rule(r, state) for r in self._needs.recursive_rules(n)]) for n in names}

        iterations, on_limit, tolerance = self._program.limit(names)
        # The joins stand in the order of `.plan` there.
        ordered = {
            n: [b for b, r in enumerate(self._needs.recursive_rules(n), 1) if r.order is not None] for n in names
        }
        options = {**self._options, "join_order": ordered, "max_iterations": iterations, "tolerance": tolerance}
        if iterations is not None:
            options["on_limit"] = on_limit
        visible = [n for n in names if "@" not in n] or list(names)
        return declarations, step, {**options, "name": "_".join(visible), "assume": self._assumptions(names)}

    def _start(self, of: Relation) -> DataFrame:
        """The rows of a relation that need nothing of its stratum: what is given, and rules without recursion."""
        rules = [r for r in self._program.rules if r.head == of.name and not self._needs.recurses(r)]
        source = self._program.input(of.base)
        given = self._resolved.sources[source.source]
        has_given = given.is_external or given.rows or not rules
        parts = [self._selected(self._given(of.name), source, of)] if has_given else []
        return _union([*parts, *(self._rule(r, {}) for r in rules)])

    def _selected(self, df: DataFrame, source: Input, of: Relation) -> DataFrame:
        """The rows of ``source`` under the names of ``of``."""
        plain = df.toDF(*(c.name for c in source.columns))
        shown = zip(map(to_sql, source.exprs), of.supplied, strict=True)
        return plain.selectExpr(*(f"{value} AS {quoted(c.name)}" for value, c in shown))

    def _given(self, name: str) -> DataFrame:
        """The rows of ``name`` that are given: by a DataFrame, and as facts in the text."""
        if name not in self._rows:
            source, given = self._sources[name], self._inputs.get(name)
            facts = [literal_rows(self._spark, source)] if source.rows or given is None else []
            self._rows[name] = _union([given, *facts] if given is not None else facts)
        return self._rows[name]

    # --- rules -------------------------------------------------------------------------------------------------------

    def _rule(self, rule: Rule, state: Mapping[str, DataFrame]) -> DataFrame:
        head = self._program.relation(rule.head)
        counts = not head.is_idempotent

        def frame(atom: Atom) -> DataFrame:
            if atom.relation is not None and atom.relation in state:
                return state[atom.relation]
            # A relation is a set; where repetition does not count, nobody has to make it one.
            if atom.relation is not None:
                return (self._relation if counts else self._bag)(atom.relation).alias(atom.relation)
            name = self._resolved.sources[self._program.input(atom.input or 0).source].relation
            return (self._distinct(name) if counts else self._given(name)).alias(name)

        return rows_of(rule, tuple(c.name for c in head.supplied), frame, self._alias)

    def _bag(self, name: str) -> DataFrame:
        """The rows of a relation, some perhaps several times."""
        if not self._needs.is_lean(name):
            return self._relation(name)
        if name not in self._bags:
            self._bags[name] = self._start(self._program.relation(name))
        return self._bags[name]

    def _distinct(self, name: str) -> DataFrame:
        if name not in self._sets:
            self._sets[name] = self._given(name).distinct()
        return self._sets[name]

    def _alias(self, atom: Atom, position: int) -> str | None:
        """The name of an input's column of which something is assumed: the guard finds it by that."""
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
            most = max((self._count(r, column) for n in names for r in self._needs.recursive_rules(n)), default=0)
            aliases = [column, *(f"{column}_{n}" for n in range(2, most + 1))][:most]
            out += [f"{quoted(alias)} {a.op} {a.value}" for alias in aliases]
        return out

    def _count(self, rule: Rule, column: str) -> int:
        """How many variables of ``rule`` stand for an assumed column."""
        return sum(v is not None and self._alias(a, p) == column for a in rule.body for p, v in enumerate(a.variables))

    def _aggs(self, of: Relation) -> dict[str, Any]:
        return {d.column.name: self._aggregation(d) for d in of.dependents}

    def _aggregation(self, d: Dependent) -> Any:  # noqa: ANN401 - whatever stands in aggs
        if d.aggregator in self._own:
            return self._own[d.aggregator]
        supplied = [c.name for c in d.supplied]
        if d.definition.is_counted:
            return (MSum if d.definition.has_shares else MCount)(*supplied)
        if d.order is not None:
            return BY_ORDER[d.aggregator](d.order)
        return d.aggregator

    def _share(self, names: tuple[str, ...], reader: str) -> None:
        """Caches a stratum once a second relation that needs it was looked up."""
        readers = self._readers.setdefault(names, set())
        readers.add(reader)
        if len(readers) == 2 and names[0] in self._built:  # noqa: PLR2004 - the second one
            for name in names:
                self._persisted.append(self._built[name].persist())


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionAll(b), parts)
