"""Convert one branch of a step into a rule: its leaves, its conditions, and the expression of each output column.

``step`` builds the branch; its variables are the shim's column ids until ``to_rule`` gives them the user's names. An
aggregate at the top of a branch is dropped if the relation's own aggregation does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, substitute
from pyspark_paralagg.program.instead import instead_of, instead_of_aggregate
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.no_rows import changes_nothing, over_no_rows
from pyspark_paralagg.program.program import Atom, AtomKind, Column, Dependent, Relation, Rule
from pyspark_paralagg.program.text import show
from pyspark_paralagg.program.traced import step_columns


@dataclass(frozen=True)
class Leaf:
    """One read of a relation or an input; ``columns`` are column ids."""

    columns: tuple[str, ...]
    relation: str | None = None
    input: int | None = None
    kind: AtomKind = "join"


@dataclass(frozen=True)
class Branch:
    """A branch; ``outputs`` maps output column ids to expressions; ``group_keys`` is set below an aggregate.

    ``is_of_no_rows``: the row that an aggregate without keys returns if it reads no rows.
    """

    leaves: tuple[Leaf, ...]
    conditions: tuple[Expr, ...]
    outputs: dict[str, Expr]
    names: dict[str, str]
    group_keys: tuple[Expr, ...] | None = None
    is_of_no_rows: bool = False

    def inline(self, expr: Expr) -> Expr:
        """Return ``expr`` over the leaves' columns."""
        return substitute(expr, lambda c: self.outputs[c.name])

    def project(self, outputs: dict[str, Expr]) -> Branch:
        """Return the branch with other outputs, which are already inlined."""
        return replace(self, outputs=outputs)

    def filter(self, conditions: tuple[Expr, ...]) -> Branch:
        """Return the branch with further conditions, which are already inlined."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def group(self, keys: tuple[Expr, ...]) -> Branch:
        """Return the branch below an aggregate with these keys; its outputs have the ``agg:`` calls."""
        return replace(self, group_keys=keys)

    def join(self, other: Branch) -> Branch:
        """Return the cross product with ``other``."""
        return Branch(
            self.leaves + other.leaves,
            self.conditions + other.conditions,
            self.outputs | other.outputs,
            self.names | other.names,
        )

    def as_kind(self, kind: AtomKind) -> Branch:
        """Return the branch with all leaves read by a semi or an anti join."""
        return replace(self, leaves=tuple(replace(leaf, kind=kind) for leaf in self.leaves))


def to_rule(relation: Relation, column_ids: dict[str, str], branch: Branch, place: str) -> Rule:
    """Convert a branch to a rule; ``column_ids`` maps the relation's column names to the step's column ids.

    The head's expressions are followed by those of ``step_columns``, which ``trace_paths`` takes away.
    """
    exprs: list[Expr] = []
    grouped = _Grouped(relation, column_ids, branch, place)
    owners = {c.name: d for d in relation.dependents for c in d.supplied or (d.column,) if _is_value(c, d)}
    for column in relation.supplied:
        d = owners.get(column.name)
        expr = branch.outputs[column_ids[column.name]] if column.name in column_ids else Lit(1, "bigint")
        if d is not None:
            exprs.append(_cast(expr if branch.group_keys is None else grouped.value(expr, d), column))
            continue
        if branch.group_keys is not None and not is_function_of(expr, branch.group_keys):
            kind = "key" if column in relation.keys else "witness"
            _refuse(f"the {kind} {column.name} is the result of an aggregate", place, instead_of("an aggregated key"))
        exprs.append(expr)
    for name in step_columns(relation):
        expr = branch.outputs[column_ids[name]]
        if branch.group_keys is not None and not is_function_of(expr, branch.group_keys):
            _refuse(f"the path's column {name} is the result of an aggregate", place, "show a key or a joined column")
        exprs.append(expr)
    rename = _names(branch)

    def variable(c: Col) -> Expr:
        return replace(c, name=rename[c.name])

    return Rule(
        relation.name,
        tuple(substitute(e, variable) for e in exprs),
        tuple(Atom(tuple(rename[c] for c in x.columns), x.relation, x.input, x.kind) for x in branch.leaves),
        tuple(substitute(c, variable) for c in branch.conditions),
        place,
    )


def _names(branch: Branch) -> dict[str, str]:
    """Return a unique name for each column id: ``node``, and ``node_2`` for the next column of that name."""
    names: dict[str, str] = {}
    used: set[str] = set()
    for leaf in branch.leaves:
        for c in leaf.columns:
            names[c] = fresh_name(branch.names[c], used)
            used.add(names[c])
    return names


def _is_value(column: Column, d: Dependent) -> bool:
    """Return whether ``column`` is the value that ``d`` aggregates, and not one of its witnesses."""
    return not d.supplied or column in d.supplied[: d.definition.shares]


def _cast(expr: Expr, column: Column) -> Expr:
    # A summand may be narrower than the sum (schema.check_step_columns allows it).
    return expr if expr.type == column.type else Call("Cast", (expr,), column.type)


def is_function_of(expr: Expr, keys: tuple[Expr, ...]) -> bool:
    """Return whether ``expr`` has one value in each group of ``keys``."""
    # Handles are ignored: the analyser gives each occurrence of an expression its own.
    if isinstance(expr, Lit) or strip_handles(expr) in [strip_handles(k) for k in keys]:
        return True
    return isinstance(expr, Call) and not expr.fn.startswith("agg:") and all(is_function_of(a, keys) for a in expr.args)


def strip_handles(expr: Expr) -> Expr:
    """Return ``expr`` as another spelling of it compares equal: without the handles of Catalyst's expressions."""
    if isinstance(expr, Call):
        return replace(expr, handle=None, args=tuple(strip_handles(a) for a in expr.args))
    return replace(expr, handle=None) if isinstance(expr, Lit) else expr


def may_be_null(expr: Expr) -> bool:
    """Return whether ``expr`` can be null according to the analyser."""
    return expr.value is None if isinstance(expr, Lit) else expr.nullable


@dataclass(frozen=True)
class _Grouped:
    """A branch below an aggregate, which the relation's own aggregation replaces."""

    relation: Relation
    column_ids: dict[str, str]
    branch: Branch
    place: str

    def value(self, expr: Expr, d: Dependent) -> Expr:
        """Return the value of each row that the relation's own aggregate turns into the result of the branch's."""
        if self.branch.is_of_no_rows:
            return self._of_no_rows(expr, d)
        if isinstance(expr, Call) and expr.fn.startswith("agg:"):
            return self._argument(expr, d)
        if isinstance(expr, Call) and expr.fn in ("Cast", "Coalesce") and d.definition.is_sum:
            inner = self.value(expr.args[0], d)
            # The cast of a sum back to a narrower type, and a default for a null that cannot occur, change nothing.
            if (expr.fn == "Coalesce" and not may_be_null(inner)) or (expr.fn == "Cast" and inner.type == expr.type):
                return inner
        moved = self._moved(expr, d) if isinstance(expr, Call) else None
        return moved or self._refuse(expr, d)

    def _moved(self, expr: Call, d: Dependent) -> Expr | None:
        """Return ``expr`` with its aggregate's argument in the aggregate's place, if that gives the same result.

        A factor moves into a sum of integers or doubles, where it is as exact as the sum. The better of an aggregate
        and a bound is the aggregate of the better of each value and the bound.
        """
        fixed = [is_function_of(a, self.branch.group_keys or ()) for a in expr.args]
        if fixed.count(False) != 1:
            return None
        at = fixed.index(False)
        if d.definition.is_sum:
            is_factor = expr.fn == "Multiply" and expr.type in ("bigint", "double")
            if not is_factor and (expr.fn, expr.type, at) != ("Divide", "double", 0):
                return None
        elif expr.fn not in ("Least", "Greatest") or d.definition.moves not in ("up", "down") or d.order is not None:
            return None
        inner = self.value(expr.args[at], d)
        keeps_nulls = expr.fn == ("Greatest" if d.definition.moves == "up" else "Least")
        if not d.definition.is_sum and may_be_null(inner) and not keeps_nulls:
            return None  # a null would pass the bound on as a value
        type_ = expr.args[at].type
        typed = inner if inner.type == type_ else Call("Cast", (inner,), type_)
        return replace(expr, args=(*expr.args[:at], typed, *expr.args[at + 1 :]))

    def _of_no_rows(self, expr: Expr, d: Dependent) -> Expr:
        """Return the value over no rows. The row is added even if there are rows, so it must not change their value."""
        value = over_no_rows(expr)
        if value is None or not changes_nothing(value, d):
            self._refuse(expr, d)
        return value

    def _argument(self, call: Call, d: Dependent) -> Expr:
        fn = call.fn.removeprefix("agg:")
        if d.definition.counts_rows and fn == "count" and not any(may_be_null(a) for a in call.args):
            return Lit(1, "bigint")
        if d.definition.counts_rows and fn == "sum" and not may_be_null(call.args[0]):
            return call.args[0]
        if fn not in d.definition.absorbs:
            return self._refuse(call, d)
        if d.order is not None:
            order = self.branch.outputs[self.column_ids[d.order]]
            owner = next(o for o in self.relation.dependents if o.column.name == d.order)
            if len(call.args) < 2 or strip_handles(call.args[1]) != strip_handles(self.value(order, owner)):  # noqa: PLR2004
                return self._refuse(call, d)
        return call.args[0]

    def _refuse(self, expr: Expr, d: Dependent) -> NoReturn:
        rename = _names(self.branch)
        text = show(substitute(expr, lambda c: replace(c, name=rename[c.name])))
        cause = f"the column {d.column.name} is {text} of a groupBy, but the relation aggregates it by {d.aggregator}"
        _refuse(cause, self.place, instead_of_aggregate(d.column.name, d.aggregator))


def _refuse(cause: str, place: str, hint: str) -> NoReturn:
    text = f"{cause}: this cannot run inside the loop"
    raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", text, value=cause, place=place, hint=hint)
