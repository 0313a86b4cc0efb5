"""Turn the relations of Spark Connect's protocol into the nodes of Step JSON, with the scope of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark_paralagg.connect.calls import alike, function, may_be_null
from pyspark_paralagg.connect.expressions import Expressions, Named
from pyspark_paralagg.connect.messages import one_row, plan_ids
from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.scope import Attribute, Scope, merged
from pyspark_paralagg.program.expr import Call, Expr, Lit, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.connect.messages import Message
    from pyspark_paralagg.connect.sources import Sources
    from pyspark_paralagg.program.functions import Setting

    Data = dict[str, Any]

_JOINS = {1: "inner", 2: "fullouter", 3: "leftouter", 4: "rightouter", 5: "leftanti", 6: "leftsemi", 7: "cross"}
_NAMES = {
    "with_relations": "a subquery, or spark.sql with a DataFrame as an argument,",
    "map_partitions": "mapInPandas or mapInArrow",
    "group_map": "applyInPandas",
    "sql": "spark.sql",
}
_INTERSECT, _UNION, _EXCEPT = 1, 2, 3
_GROUP_BY = 1


@dataclass(frozen=True)
class Node:
    """A node of Step JSON and the columns that an expression above it can read."""

    data: Data
    scope: Scope


class Relations:
    """The nodes of the steps of one query. ``references`` has name and columns of each reference, by plan id."""

    def __init__(
        self,
        references: Mapping[int, tuple[str, tuple[Attribute, ...]]],
        sources: Sources,
        setting: Setting,
        *,
        is_case_sensitive: bool,
    ) -> None:
        self._references = references
        self._sources = sources
        self._setting = setting
        self._is_case_sensitive = is_case_sensitive
        self._ids = 0

    def node(self, relation: Message) -> Node:
        """Return the node of ``relation``. Raises ``UnsupportedError`` if a step cannot have it."""
        plan_id = relation.common.plan_id
        if plan_id in self._references:
            node = self._reference(*self._references[plan_id])
        elif not self._is_recursive(relation):
            return self._source(relation)
        else:
            kind = relation.WhichOneof("rel_type")
            convert = getattr(self, f"_{kind}", None)
            if convert is None:
                name = _NAMES.get(kind) or "".join(word.capitalize() for word in kind.split("_"))
                return refuse(f"{name} in the step", name)
            node = convert(getattr(relation, kind))
        by_plan = dict(merged((node.scope.by_plan, {plan_id: node.scope.output})))
        return replace(node, scope=replace(node.scope, by_plan=by_plan))

    def _is_recursive(self, relation: Message) -> bool:
        return not self._references.keys().isdisjoint(plan_ids(relation))

    def _reference(self, name: str, columns: tuple[Attribute, ...]) -> Node:
        own = self._renewed(columns)
        return Node({"op": "relation", "name": name, "columns": listed(own)}, self._scope(own))

    def _source(self, relation: Message) -> Node:
        source = self._sources.add(relation)
        own = self._renewed(source.columns)
        inside = dict.fromkeys(source.plan_ids, own)
        return Node(
            {"op": "input", "source": source.id, "columns": listed(own)}, replace(self._scope(own), by_plan=inside)
        )

    def _project(self, body: Message) -> Node:
        child = self.node(body.input)
        return self._projected(child, self._over(child).columns(body.expressions))

    def _filter(self, body: Message) -> Node:
        child = self.node(body.input)
        condition = self._over(child).value(body.condition)
        return Node({"op": "filter", "child": child.data, "condition": to_json(condition)}, child.scope)

    def _join(self, body: Message) -> Node:
        left, right = self.node(body.left), self.node(body.right)
        kind = _JOINS.get(body.join_type) or refuse("a join of unknown type")
        scope = left.scope.joined(right.scope)
        keys = [(self._only(left, name), self._only(right, name)) for name in body.using_columns]
        if keys:
            condition: Expr | None = self._all(
                [function("==", (a.col, b.col), self._setting) or _unlike(a, b) for a, b in keys]
            )
        elif body.HasField("join_condition"):
            condition = Expressions(scope, self._setting).value(body.join_condition)
        else:
            condition = None
        is_filter = kind in ("leftsemi", "leftanti")
        data = {
            "op": "join", "type": kind, "left": left.data, "right": right.data,
            "condition": None if condition is None else to_json(condition),
        }  # fmt: skip
        node = Node(data, replace(scope, output=left.scope.output, hidden=left.scope.hidden) if is_filter else scope)
        return self._using(node, keys, right, is_filter=is_filter) if keys else node

    def _using(self, node: Node, keys: Sequence[tuple[Attribute, Attribute]], right: Node, *, is_filter: bool) -> Node:
        """Return the columns of a join by names: the keys once, then the others; the right keys are hidden."""
        firsts, seconds = [a for a, _ in keys], [b for _, b in keys]
        others = [a for a in node.scope.output if a not in firsts and a not in seconds]
        hidden = () if is_filter else tuple(b for b in seconds if b in right.scope.output)
        columns = [Named.same(a) for a in (*firsts, *others, *hidden)]
        projected = self._projected(node, columns)
        visible = projected.scope.output[: len(firsts) + len(others)]
        return replace(projected, scope=replace(projected.scope, output=visible, hidden=hidden))

    def _set_op(self, body: Message) -> Node:
        left, right = self.node(body.left_input), self.node(body.right_input)
        if body.allow_missing_columns:
            refuse("unionByName with missing columns")
        if body.by_name:
            columns = [self._only(right, a.name) for a in left.scope.output]
            right = self._projected(right, [Named.same(a) for a in columns])
        left, right = self._same_types(left, right)
        if body.set_op_type == _UNION:
            union = self._union(left, right)
            return union if body.is_all else _distinct(union)
        if body.is_all or body.set_op_type not in (_INTERSECT, _EXCEPT):
            return refuse("INTERSECT ALL or EXCEPT ALL")
        pairs = zip(left.scope.output, right.scope.output, strict=True)
        same = self._all([Call("EqualNullSafe", (a.col, b.col), "boolean", nullable=False) for a, b in pairs])
        kind = "leftsemi" if body.set_op_type == _INTERSECT else "leftanti"
        data = {
            "op": "join", "type": kind, "left": left.data, "right": right.data,
            "condition": to_json(same),
        }  # fmt: skip
        return _distinct(Node(data, replace(left.scope, hidden=())))

    def _union(self, left: Node, right: Node) -> Node:
        output = tuple(
            replace(a, nullable=a.nullable or b.nullable)
            for a, b in zip(left.scope.output, right.scope.output, strict=True)
        )
        data = {
            "op": "union", "children": [left.data, right.data], "columns": listed(output),
            "child_columns": [[a.id for a in n.scope.output] for n in (left, right)],
        }  # fmt: skip
        return Node(data, replace(left.scope, output=output, hidden=()))

    def _same_types(self, left: Node, right: Node) -> tuple[Node, Node]:
        """Return the sides of a set operation with the casts that Spark inserts."""
        pairs = list(zip(left.scope.output, right.scope.output, strict=False))
        if len(left.scope.output) != len(right.scope.output):
            return refuse("a union of other columns")
        types = []
        for a, b in pairs:
            both = alike((a.col, b.col), self._setting) or _unlike(a, b)
            types.append(both[0])
        nodes = []
        for side, node in enumerate((left, right)):
            exprs = [t[side] for t in types]
            if all(e == a.col for e, a in zip(exprs, node.scope.output, strict=True)):
                nodes.append(node)
            else:
                columns = [
                    Named(a.name, e, a if e == a.col else None) for a, e in zip(node.scope.output, exprs, strict=True)
                ]
                nodes.append(self._projected(node, columns))
        return nodes[0], nodes[1]

    def _aggregate(self, body: Message) -> Node:
        if body.group_type != _GROUP_BY:
            refuse("rollup, cube or pivot")
        child = self.node(body.input)
        over = self._over(child)
        keys = over.columns(body.grouping_expressions)
        node = self._projected(child, [*keys, *over.columns(body.aggregate_expressions)])
        data = {
            "op": "aggregate", "child": child.data, "keys": [to_json(k.expr) for k in keys],
            "outputs": node.data["exprs"],
        }  # fmt: skip
        return replace(node, data=data if keys else data | {"one_row": self._source(one_row()).data})

    def _subquery_alias(self, body: Message) -> Node:
        child = self.node(body.input)
        output = tuple(replace(a, qualifier=body.alias) for a in child.scope.output)
        return replace(child, scope=replace(child.scope, output=output))

    def _hint(self, body: Message) -> Node:
        return self.node(body.input)

    # Rows of a recursion have neither an order nor partitions of the user's choice.
    _sort = _repartition = _repartition_by_expression = _hint

    def _deduplicate(self, body: Message) -> Node:
        child = self.node(body.input)
        if not body.all_columns_as_keys:
            named = {a.id for name in body.column_names for a in child.scope.named(name, child.scope.output)}
            if named != {a.id for a in child.scope.output}:
                refuse("dropDuplicates by some of the columns", hint="aggregate the other columns with min_by")
        return _distinct(child)

    def _to_df(self, body: Message) -> Node:
        child = self.node(body.input)
        pairs = zip(child.scope.output, body.column_names, strict=True)
        return self._projected(child, [Named(name, a.col) for a, name in pairs])

    def _with_columns(self, body: Message) -> Node:
        child = self.node(body.input)
        over = self._over(child)
        columns = [Named.same(a) for a in child.scope.output]
        for alias in body.aliases:
            new = Named(alias.name[0], over.value(alias.expr))
            places = [n for n, c in enumerate(columns) if child.scope.same(c.name, new.name)]
            for n in places:
                columns[n] = new
            columns += [] if places else [new]
        return self._projected(child, columns)

    def _with_columns_renamed(self, body: Message) -> Node:
        child = self.node(body.input)
        renames = dict(body.rename_columns_map)
        for rename in body.renames if "renames" in body.DESCRIPTOR.fields_by_name else ():
            renames[rename.col_name] = rename.new_col_name
        columns = []
        for a in child.scope.output:
            new = next((new for old, new in renames.items() if child.scope.same(old.strip("`"), a.name)), None)
            columns.append(Named.same(a) if new is None else Named(new, a.col))
        return self._projected(child, columns)

    def _drop(self, body: Message) -> Node:
        child = self.node(body.input)
        scope, over = child.scope, self._over(child)
        dropped = {a.id for name in body.column_names for a in scope.named(name, scope.output)}
        for column in over.columns(body.columns):
            dropped.add(column.attribute.id if column.attribute else refuse("drop of an expression"))
        return self._projected(child, [Named.same(a) for a in scope.output if a.id not in dropped])

    def _projected(self, child: Node, columns: Sequence[Named]) -> Node:
        """Return a projection; a column of the child keeps its id."""
        output = tuple(
            c.attribute or Attribute(self._new_id(), c.name, c.expr.type, may_be_null(c.expr)) for c in columns
        )
        exprs = [{"col": a.id, "name": a.name, "expr": to_json(c.expr)} for a, c in zip(output, columns, strict=True)]
        scope = replace(child.scope, output=output, hidden=())
        return Node({"op": "project", "child": child.data, "exprs": exprs}, scope)

    def _over(self, node: Node) -> Expressions:
        return Expressions(node.scope, self._setting)

    def _only(self, node: Node, name: str) -> Attribute:
        found = node.scope.named(name, node.scope.output)
        return found[0] if len(found) == 1 else refuse(f"the column {name}, which is there {len(found)} times,", name)

    def _all(self, conditions: Sequence[Expr]) -> Expr:
        result = conditions[0] if conditions else Lit(value=True, type="boolean")
        for condition in conditions[1:]:
            result = function("and", (result, condition), self._setting) or refuse("a condition that is not boolean")
        return result

    def _scope(self, output: tuple[Attribute, ...]) -> Scope:
        return Scope(output, is_case_sensitive=self._is_case_sensitive)

    def _renewed(self, columns: Sequence[Attribute]) -> tuple[Attribute, ...]:
        return tuple(replace(a, id=self._new_id()) for a in columns)

    def _new_id(self) -> str:
        self._ids += 1
        return f"c{self._ids - 1}"


def listed(attributes: Sequence[Attribute]) -> list[Data]:
    """Return the columns of a node as Step JSON."""
    return [{"col": a.id, "name": a.name, "type": a.type, "nullable": a.nullable} for a in attributes]


def _distinct(child: Node) -> Node:
    return replace(child, data={"op": "distinct", "child": child.data})


def _unlike(a: Attribute, b: Attribute) -> NoReturn:
    refuse(f"{a.name} {a.type} beside {b.name} {b.type}, for which Python knows no common type,", a.name)
