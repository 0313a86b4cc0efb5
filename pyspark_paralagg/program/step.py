"""Convert Step JSON, the shim's description of an analysed step DataFrame, to a Program.

Second step of a query: ``dataframe`` -> shim -> **step** -> ``compile``. A step is a tree of projects, filters, joins
and unions over references to the recursive relations and over *inputs* (sub-plans without such a reference). Each
branch of its unions becomes one rule: projects are substituted away, filters and join conditions become the rule's
conditions. An operator that a rule cannot express raises ``UnsupportedError`` with its name; the caller then uses the
DataFrame executor, with the error as the reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.branch import Branch, Leaf, is_function_of, to_rule
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns, conjuncts, from_json, walk
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.having import condition_of_no_rows, row_condition
from pyspark_paralagg.program.instead import instead_of
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Column, Input, JoinOrder, Program, Relation, Rule
from pyspark_paralagg.program.schema import check_step_columns
from pyspark_paralagg.program.traced import step_columns

_UNKNOWN_BYTES = 1 << 50
_JOINS = {
    "leftouter": "left outer join with a recursive right side",
    "rightouter": "right outer join with a recursive left side",
    "fullouter": "full outer join",
    "existence": "subquery below OR",
}


def program_from_step(
    step_json: dict[str, Any],
    relations: tuple[Relation, ...],
    base_inputs: tuple[Input, ...],
    join_order: JoinOrder = "cost",
    **options: Any,  # noqa: ANN401 - the fields of Program that the caller sets: name, mode, assume, limits
) -> Program:
    """Return the program of a step: one rule for each branch of each relation's step.

    ``base_inputs`` are the inputs that ``relations`` name as base and initial. The step's own inputs get the next ids,
    and the ``source`` numbers of ``step_json``. Raises ``UsageError`` if the step's columns are not the relation's
    (``PARALAGG_STEP_COLUMNS_…``), and ``UnsupportedError`` with ``PARALAGG_STEP_UNSUPPORTED`` or
    ``PARALAGG_NONDETERMINISTIC`` if a rule cannot express the step.
    """
    first = max((i.id for i in base_inputs), default=-1) + 1
    inputs = {s["id"]: _source(first + n, s) for n, s in enumerate(step_json["sources"])}
    rules: list[Rule] = []
    for step in step_json["steps"]:
        relation = next(r for r in relations if r.name == step["name"])
        place = branch_place(relation.name)
        shown = step_columns(relation)
        check_step_columns(relation, [(c["name"], c["type"]) for c in step["columns"] if c["name"] not in shown], place)
        column_ids = {c["name"]: c["col"] for c in step["columns"]}
        reader = _StepReader(relations, {source: i.id for source, i in inputs.items()}, relation, place)
        branches = reader.branches(step["plan"])
        number, count = 0, sum(not b.is_of_no_rows for b in branches)
        for branch in branches:
            number += not branch.is_of_no_rows  # the row of no rows belongs to the branch before it
            rule = to_rule(relation, column_ids, branch, branch_place(relation.name, number, count))
            rules.append(_as_written(rule) if _is_ordered(join_order, relation.name, number) else rule)
    setting = Setting(**step_json["setting"]) if "setting" in step_json else Setting()
    return Program(relations, (*base_inputs, *inputs.values()), tuple(rules), setting=setting, **options)


def branch_place(relation: str, branch: int = 1, count: int = 1) -> str:
    """Return the name of a branch of a relation's step in messages; branches count from 1.

    >>> branch_place("dist"), branch_place("dist", 2, count=3)
    ('step of dist', 'step of dist, branch 2')
    """
    return f"step of {relation}" + (f", branch {branch}" if count > 1 else "")


def _is_ordered(join_order: JoinOrder, relation: str, branch: int) -> bool:
    """Return whether the user has set the join order of that branch."""
    return join_order == "written" if isinstance(join_order, str) else branch in join_order.get(relation, ())


def _as_written(rule: Rule) -> Rule:
    return replace(rule, order=tuple(range(len(rule.body))))


def _source(input_id: int, source: dict[str, Any]) -> Input:
    used: set[str] = set()
    source_columns = []
    for c in source["columns"]:
        name = fresh_name(c["name"], used)
        used.add(name)
        source_columns.append(Column(name, c["type"], c["nullable"]))
    exprs = tuple(Col(c.name, c.type, c.nullable) for c in source_columns)
    size = _known_size(source.get("size"))
    return Input(input_id, source["id"], tuple(source_columns), exprs, (), size, name=source.get("name"))


def _known_size(size: int | None) -> int | None:
    """Return None for a size that Spark guessed: its default is 2^63, and a join multiplies the sizes of its inputs."""
    return None if size is None or size >= _UNKNOWN_BYTES else size


class _StepReader:
    """The conversion of the nodes of one relation's step to branches."""

    def __init__(self, relations: tuple[Relation, ...], inputs: dict[int, int], head: Relation, place: str) -> None:
        self._relations = {r.name: r for r in relations}
        self._inputs = inputs
        self._place = place
        self._is_idempotent = head.is_idempotent
        self._head = head

    def branches(self, node: dict[str, Any]) -> list[Branch]:  # noqa: PLR0911 - one kind of node a line
        """Return the branches of the union at ``node``, in the user's order; one branch if it is no union."""
        match node["op"]:
            case "relation" | "input":
                return [self._leaf(node)]
            case "project":
                return [
                    b.project({e["col"]: b.inline(self._expr(e["expr"])) for e in node["exprs"]})
                    for b in self.branches(node["child"])
                ]
            case "filter":
                condition = conjuncts(self._expr(node["condition"]))
                return [self._filter(b, condition) for b in self.branches(node["child"])]
            case "join":
                return self._join(node)
            case "union":
                return self._union(node)
            case "distinct":
                return self._distinct(node)
            case "aggregate":
                return self._aggregate(node)
            case other:
                return self._refuse(f"{node.get('name', other)} in the step")

    def _leaf(self, node: dict[str, Any]) -> Branch:
        cols = tuple(Col(c["col"], c["type"], c["nullable"]) for c in node["columns"])
        names = {c["col"]: c["name"] for c in node["columns"]}
        if node["op"] == "input":
            leaf = Leaf(tuple(c.name for c in cols), input=self._inputs[node["source"]])
        else:
            leaf = Leaf(tuple(c.name for c in cols), relation=node["name"])
            # A count is never null, even if the reference's schema is nullable.
            counts = {
                d.column.name
                for d in self._relations[node["name"]].dependents
                if d.definition.counts_rows or d.definition.is_counted
            }
            cols = tuple(Col(c.name, c.type, c.nullable and names[c.name] not in counts) for c in cols)
        return Branch((leaf,), (), {c.name: c for c in cols}, names)

    def _filter(self, branch: Branch, condition: tuple[Expr, ...]) -> Branch:
        inlined = tuple(branch.inline(c) for c in condition)
        if branch.group_keys is not None:
            inlined = tuple(self._having(c, branch) if _has_aggregate(c) else c for c in inlined)
        return branch.filter(inlined)

    def _having(self, condition: Expr, branch: Branch) -> Expr:
        if branch.is_of_no_rows:
            return condition_of_no_rows(condition)
        keys = branch.group_keys or ()
        return row_condition(condition, self._head, lambda e: is_function_of(e, keys)) or self._refuse(
            "a filter on an aggregate's result (HAVING)"
        )

    def _join(self, node: dict[str, Any]) -> list[Branch]:
        kind = node["type"]
        sides = node["left"], node["right"]
        if kind == "rightouter":
            kind, sides = "leftouter", sides[::-1]
        is_static = sides[1]["op"] == "input"
        if kind not in ("inner", "cross", "leftsemi", "leftanti") and not (kind == "leftouter" and is_static):
            self._refuse(f"a {_JOINS.get(node['type'], f'{kind} join')}")
        condition = conjuncts(self._expr(node["condition"])) if node.get("condition") else ()
        left, right = map(self.branches, sides)
        if any(b.group_keys is not None for b in (*left, *right)):
            self._refuse("a join above an aggregate")
        if kind == "leftsemi":
            if len(right) > 1:
                return self._exists_in_union(left, right, condition)
            return [self._exists(a, right, condition) for a in left]
        if kind == "leftanti":
            return [self._not_exists(a, right, condition) for a in left]
        joined = [a.join(b) for a in left for b in right]
        matched = [b.filter(tuple(b.inline(c) for c in condition)) for b in joined]
        return [*matched, *self._unmatched(left, right, condition)] if kind == "leftouter" else matched

    def _unmatched(self, left: list[Branch], right: list[Branch], condition: tuple[Expr, ...]) -> list[Branch]:
        """Return the rows of an outer join without a match; nothing recursive is on the ``right`` side, an input."""
        [static] = right
        nulls = {c: Lit(None, e.type) for c, e in static.outputs.items()}
        alone = [(a, self._not_exists(a, right, condition)) for a in left]
        return [rest.project(a.outputs | nulls) for a, rest in alone]

    def _exists_in_union(self, left: list[Branch], right: list[Branch], condition: tuple[Expr, ...]) -> list[Branch]:
        # One rule for each branch of the union may repeat a row, so the head has to ignore duplicates.
        if not self._is_idempotent:
            self._refuse("a semi join with a union, under an aggregate that counts repetitions")
        return [self._exists(a, [b], condition) for a in left for b in right]

    def _exists(self, left: Branch, right: list[Branch], condition: tuple[Expr, ...]) -> Branch:
        joined = left.join(right[0].as_kind("semi"))
        conditions = tuple(joined.inline(c) for c in condition)
        if len(right[0].leaves) == 1:
            return joined.filter(conditions).project(left.outputs)
        if not self._is_idempotent:
            self._refuse("a semi join with a join, under an aggregate that counts repetitions")
        return left.join(right[0]).filter(conditions).project(left.outputs)

    def _not_exists(self, left: Branch, right: list[Branch], condition: tuple[Expr, ...]) -> Branch:
        for branch in right:
            if len(branch.leaves) != 1:
                self._refuse("an anti join with a join that reads a recursive relation")
            right_columns = frozenset(branch.leaves[0].columns)
            joined = left.join(branch.as_kind("anti"))
            conditions = tuple(joined.inline(c) for c in condition if not (isinstance(c, Lit) and c.value is True))
            if any(not columns(c) & right_columns for c in conditions):
                self._refuse("an anti join whose condition reads one side only")
            left = joined.filter(conditions).project(left.outputs)
        return left

    def _union(self, node: dict[str, Any]) -> list[Branch]:
        outputs = [c["col"] for c in node["columns"]]
        return [
            b.project({new: b.outputs[old] for new, old in zip(outputs, olds, strict=True)})
            for child, olds in zip(node["children"], node["child_columns"], strict=True)
            for b in self.branches(child)
        ]

    def _distinct(self, node: dict[str, Any]) -> list[Branch]:
        if not self._is_idempotent:
            self._refuse("distinct under an aggregate that counts repetitions")
        return self.branches(node["child"])

    def _aggregate(self, node: dict[str, Any]) -> list[Branch]:
        keys = tuple(self._expr(k) for k in node["keys"])
        outputs = {o["col"]: self._expr(o["expr"]) for o in node["outputs"]}
        branches = self.branches(node["child"])
        if any(b.group_keys is not None for b in branches):
            self._refuse("an aggregate above an aggregate")
        grouped = [
            b.project({c: b.inline(e) for c, e in outputs.items()}).group(tuple(map(b.inline, keys))) for b in branches
        ]
        if not node.get("one_row"):
            return grouped
        of_no_rows = replace(self._leaf(node["one_row"]), group_keys=(), is_of_no_rows=True)
        return [*grouped, of_no_rows.project(outputs)]

    def _expr(self, data: dict[str, Any]) -> Expr:
        expr = from_json(data)
        for e in walk(expr):
            if isinstance(e, Call):
                self._check_call(e)
        return expr

    def _check_call(self, call: Call) -> None:
        if not call.deterministic:
            raise UnsupportedError(
                "PARALAGG_NONDETERMINISTIC",
                f"{call.fn} gives a different value each time, so the step has no fixpoint",
                value=call.fn,
                place=self._place,
                hint="compute it before the recursion, as a column of the base or of a joined DataFrame, or use "
                'mode="iterate", which recomputes all rows each round and may never end',
            )
        if call.fn == "PythonUDF":
            self._refuse("a Python UDF")
        if call.fn == "ScalarSubquery":  # the others are joins by now
            self._refuse("a correlated subquery")
        if not call.codegen and not call.fn.startswith("agg:"):
            self._refuse(f"the function {call.fn}, which Spark cannot compile")

    def _refuse(self, operator: str) -> NoReturn:
        raise UnsupportedError(
            "PARALAGG_STEP_UNSUPPORTED",
            f"{operator} cannot run inside the loop",
            value=operator,
            place=self._place,
            hint=instead_of(operator),
        )


def _has_aggregate(expr: Expr) -> bool:
    return any(isinstance(e, Call) and e.fn.startswith("agg:") for e in walk(expr))
