"""One branch of a step on its way to a rule: leaves, conditions, and what each output column is made of.

While a branch is read its variables are the shim's column ids; ``rule_of`` gives them the user's names. An aggregate
at the top of a branch is dropped where the relation's own aggregation does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, substitute
from pyspark_paralagg.program.program import Atom, AtomKind, Dependent, Relation, Rule
from pyspark_paralagg.program.text import show

# What Spark calls the aggregate that a relation may declare. It rewrites bool_or and bool_and to max and min.
_SPARK_NAMES = {
    "min": ("min",),
    "max": ("max",),
    "sum": ("sum",),
    "any": ("max", "bool_or", "any", "some"),
    "all": ("min", "bool_and", "every"),
    "bit_or": ("bit_or",),
    "bit_and": ("bit_and",),
    "min_by": ("min_by",),
    "max_by": ("max_by",),
}


@dataclass(frozen=True)
class Leaf:
    """One reading of a relation or an input; ``columns`` are column ids."""

    columns: tuple[str, ...]
    relation: str | None = None
    input: int | None = None
    kind: AtomKind = "join"


@dataclass(frozen=True)
class Branch:
    """``outputs`` says what each output column id is; ``group_keys`` is set once an aggregate was passed."""

    leaves: tuple[Leaf, ...]
    conditions: tuple[Expr, ...]
    outputs: dict[str, Expr]
    names: dict[str, str]
    group_keys: tuple[Expr, ...] | None = None

    def inlined(self, expr: Expr) -> Expr:
        """``expr`` over the leaves' columns."""
        return substitute(expr, lambda c: self.outputs[c.name])

    def project(self, outputs: dict[str, Expr]) -> Branch:
        """With other outputs, already inlined."""
        return replace(self, outputs=outputs)

    def filtered(self, conditions: tuple[Expr, ...]) -> Branch:
        """With more conditions, already inlined."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def grouped(self, keys: tuple[Expr, ...]) -> Branch:
        """Below an aggregate with these keys; outputs hold its ``agg:`` calls."""
        return replace(self, group_keys=keys)

    def joined(self, other: Branch) -> Branch:
        """Every row of this with every row of ``other``."""
        return Branch(
            self.leaves + other.leaves,
            self.conditions + other.conditions,
            self.outputs | other.outputs,
            self.names | other.names,
        )

    def as_kind(self, kind: AtomKind) -> Branch:
        """With all leaves read by a semi or an anti join."""
        return replace(self, leaves=tuple(replace(leaf, kind=kind) for leaf in self.leaves))


def rule_of(relation: Relation, chosen: dict[str, str], branch: Branch, place: str) -> Rule:
    """The rule of a branch; ``chosen`` maps the relation's column names to the step's column ids."""
    exprs: list[Expr] = []
    grouped = _Grouped(relation, chosen, branch, place)
    for key in relation.keys:
        expr = branch.outputs[chosen[key.name]]
        if branch.group_keys is not None and not _is_made_of(expr, branch.group_keys):
            _refuse(f"the key {key.name} is an aggregate's result", place)
        exprs.append(expr)
    for d in relation.dependents:
        value = branch.outputs[chosen[d.column.name]] if d.column.name in chosen else Lit(1, "bigint")
        exprs.append(_cast(value if branch.group_keys is None else grouped.value(value, d), d))
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
    """Readable and unique: ``node``, and ``node_2`` for the next column of that name."""
    out: dict[str, str] = {}
    taken: set[str] = set()
    for leaf in branch.leaves:
        for c in leaf.columns:
            name, n = branch.names[c], 2
            while name in taken:
                name, n = f"{branch.names[c]}_{n}", n + 1
            taken.add(name)
            out[c] = name
    return out


def _cast(expr: Expr, d: Dependent) -> Expr:
    # What is added up may be narrower than the sum (schema.check_step_columns lets it pass).
    return expr if expr.type == d.column.type else Call("Cast", (expr,), d.column.type)


def _is_made_of(expr: Expr, keys: tuple[Expr, ...]) -> bool:
    # The analyser gives each occurrence of an expression its own handle.
    if isinstance(expr, Lit) or _bare(expr) in [_bare(k) for k in keys]:
        return True
    return isinstance(expr, Call) and not expr.fn.startswith("agg:") and all(_is_made_of(a, keys) for a in expr.args)


def _bare(expr: Expr) -> Expr:
    if isinstance(expr, Call):
        return replace(expr, handle=None, args=tuple(_bare(a) for a in expr.args))
    return replace(expr, handle=None) if isinstance(expr, Lit) else expr


def may_be_null(expr: Expr) -> bool:
    """Whether ``expr`` can be null, as far as the analyser knows."""
    return expr.value is None if isinstance(expr, Lit) else expr.nullable


@dataclass(frozen=True)
class _Grouped:
    """A branch below an aggregate, whose columns are to become what the relation aggregates itself."""

    relation: Relation
    chosen: dict[str, str]
    branch: Branch
    place: str

    def value(self, expr: Expr, d: Dependent) -> Expr:
        """What each row gives to the relation's own aggregate, which then does what the branch's did."""
        if isinstance(expr, Call) and expr.fn.startswith("agg:"):
            return self._argument(expr, d)
        if isinstance(expr, Call) and expr.fn in ("Cast", "Coalesce") and d.aggregator in ("sum", "count"):
            inner = self.value(expr.args[0], d)
            # A sum of a narrower type cast back, and a null that counts 1 where there are none.
            if (expr.fn == "Coalesce" and not may_be_null(inner)) or (expr.fn == "Cast" and inner.type == expr.type):
                return inner
        # A factor may go inside the sum: exact in the sense in which sums of doubles are.
        if isinstance(expr, Call) and d.aggregator == "sum" and expr.type == "double" and len(expr.args) == 2:  # noqa: PLR2004
            left, right = expr.args
            if expr.fn in ("Multiply", "Divide") and _is_made_of(right, self.branch.group_keys or ()):
                return replace(expr, args=(self.value(left, d), right))
            if expr.fn == "Multiply" and _is_made_of(left, self.branch.group_keys or ()):
                return replace(expr, args=(left, self.value(right, d)))
        return self._refuse(expr, d)

    def _argument(self, call: Call, d: Dependent) -> Expr:
        fn = call.fn.removeprefix("agg:")
        if d.aggregator == "count" and fn == "count" and not any(may_be_null(a) for a in call.args):
            return Lit(1, "bigint")
        if d.aggregator == "count" and fn == "sum" and not may_be_null(call.args[0]):
            return call.args[0]
        if fn not in _SPARK_NAMES.get(d.aggregator, ()):
            return self._refuse(call, d)
        if d.order is not None:
            order = self.branch.outputs[self.chosen[d.order]]
            owner = next(o for o in self.relation.dependents if o.column.name == d.order)
            if len(call.args) < 2 or _bare(call.args[1]) != _bare(self.value(order, owner)):  # noqa: PLR2004
                return self._refuse(call, d)
        return call.args[0]

    def _refuse(self, expr: Expr, d: Dependent) -> NoReturn:
        rename = _names(self.branch)
        told = show(substitute(expr, lambda c: replace(c, name=rename[c.name])))
        what = f"the column {d.column.name} is {told} of a groupBy, the relation's own aggregate is {d.aggregator}"
        _refuse(what, self.place)


def _refuse(what: str, place: str) -> NoReturn:
    text = f"{what}: this cannot run inside the loop"
    raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", text, value=what, place=place)
