"""Hand-written Step JSON, as the shim would send it: a small tree of builders that read like a DataFrame.

Columns get fresh ids as the analyser gives them; ``Frame`` keeps which name means which id.
"""
# ruff: noqa: ANN401, FBT001, FBT002  (builders in the manner of DataFrame; values of any type)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Column, Dependent, Input, Program, Relation
from pyspark_paralagg.program.step import program_from_step

Json = dict[str, Any]


@dataclass
class Frame:
    """A node with its output columns."""

    node: Json
    columns: list[Json]
    doc: Document

    def __getitem__(self, name: str) -> Json:
        c = next(c for c in self.columns if c["name"] == name)
        return {"col": c["col"], "type": c["type"], "nullable": c["nullable"]}

    def join(self, other: Frame, on: Json | None = None, how: str = "inner") -> Frame:
        node = {"op": "join", "type": how, "left": self.node, "right": other.node}
        if on is not None:  # the shim leaves the field out
            node["condition"] = on
        columns = self.columns if how in ("leftsemi", "leftanti") else self.columns + other.columns
        return Frame(node, columns, self.doc)

    def where(self, condition: Json) -> Frame:
        return Frame({"op": "filter", "child": self.node, "condition": condition}, self.columns, self.doc)

    def select(self, **exprs: Json) -> Frame:
        columns = [self.doc.column(n, e["type"], e.get("nullable", e.get("lit", 0) is None)) for n, e in exprs.items()]
        outputs = [{"col": c["col"], "name": n, "expr": e} for c, (n, e) in zip(columns, exprs.items(), strict=True)]
        return Frame({"op": "project", "child": self.node, "exprs": outputs}, columns, self.doc)

    def group(self, keys: list[Json], **outputs: Json) -> Frame:
        columns = [self.doc.column(n, e["type"], e.get("nullable", True)) for n, e in outputs.items()]
        out = [{"col": c["col"], "name": n, "expr": e} for c, (n, e) in zip(columns, outputs.items(), strict=True)]
        return Frame({"op": "aggregate", "child": self.node, "keys": keys, "outputs": out}, columns, self.doc)

    def distinct(self) -> Frame:
        return Frame({"op": "distinct", "child": self.node}, self.columns, self.doc)

    def union(self, *others: Frame) -> Frame:
        frames = (self, *others)
        columns = [self.doc.column(c["name"], c["type"], c["nullable"]) for c in self.columns]
        node = {
            "op": "union",
            "children": [f.node for f in frames],
            "columns": columns,
            "child_columns": [[c["col"] for c in f.columns] for f in frames],
        }
        return Frame(node, columns, self.doc)

    def opaque(self, name: str) -> Frame:
        return Frame({"op": "unsupported", "name": name, "children": [self.node]}, self.columns, self.doc)


class Document:
    """One analysis: relations, sources, and ids for columns and expressions."""

    def __init__(self, *relations: Relation) -> None:
        self.relations = relations
        self.sources: list[Json] = []
        self.names: dict[str, int] = {}
        self.next_col = 0

    def column(self, name: str, type_: str, nullable: bool = True) -> Json:
        self.next_col += 1
        return {"col": f"c{self.next_col}", "name": name, "type": type_, "nullable": nullable}

    def reference(self, name: str) -> Frame:
        relation = next(r for r in self.relations if r.name == name)
        columns = [self.column(c.name, c.type, c.nullable) for c in relation.columns]
        return Frame({"op": "relation", "name": name, "columns": columns}, columns, self)

    def source(self, name: str, size: int | None = 1000, **types: str) -> Frame:
        columns = [self.column(n, t.removesuffix("!"), not t.endswith("!")) for n, t in types.items()]
        if name not in self.names:
            self.names[name] = len(self.sources)
            self.sources.append({"id": len(self.sources), "columns": columns, "size": size})
        return Frame({"op": "input", "source": self.names[name], "columns": columns}, columns, self)

    def program(self, **steps_and_options: Any) -> Program:
        steps, options = [], {}
        for name, value in steps_and_options.items():
            if isinstance(value, Frame):
                steps.append({"name": name, "columns": value.columns, "plan": value.node})
            else:
                options[name] = value
        inputs = []
        for r in self.relations:
            for n in (r.base, r.initial):
                if n is not None:
                    exprs = tuple(Col(c.name, c.type, c.nullable) for c in r.columns)
                    inputs.append(Input(n, len(self.sources) + n, r.columns, exprs))
        return program_from_step({"steps": steps, "sources": self.sources}, self.relations, tuple(inputs), **options)


def relation(name: str, keys: str, aggs: str = "", *, base: int = 0, initial: int | None = None) -> Relation:
    """``relation("dist", "node bigint", "dist double min")``: a column is ``name type[!] [aggregator [order]]``."""
    columns = [k.split() for k in keys.split(", ") if k.strip()]
    dependents = []
    for part in (p.split() for p in aggs.split(", ") if p.strip()):
        order = part[3] if len(part) > 3 else None
        dependents.append(
            Dependent(Column(part[0], part[1].removesuffix("!"), not part[1].endswith("!")), part[2], order)
        )
    key_columns = tuple(Column(n, t.removesuffix("!"), not t.endswith("!")) for n, t in columns)
    return Relation(name, key_columns, tuple(dependents), base, initial)


_HANDLES = iter(range(1_000_000))


def lit(value: Any, type_: str | None = None) -> Json:
    named = {bool: "boolean", int: "int", float: "double", str: "string", type(None): "void"}
    return {"lit": value, "type": type_ or named[type(value)], "handle": next(_HANDLES)}


def call(fn: str, *args: Any, type_: str, **flags: bool) -> Json:
    given = [a if isinstance(a, dict) else lit(a) for a in args]
    nullable = flags.get("nullable", any(a.get("nullable", a.get("lit", 0) is None) for a in given))
    return {
        "fn": fn,
        "args": given,
        "type": type_,
        "nullable": nullable,
        "handle": next(_HANDLES),
        "deterministic": flags.get("deterministic", True),
        "codegen": flags.get("codegen", not fn.startswith("agg:")),
    }


def same(a: Any, b: Any) -> Json:
    return call("EqualTo", a, b, type_="boolean")


def holds(fn: str, *args: Any) -> Json:
    return call(fn, *args, type_="boolean")


def arithmetic(fn: str, a: Json, b: Any) -> Json:
    """As the analyser does it: the literal gets the column's type."""
    other = b if isinstance(b, dict) else lit(b)
    if other["type"] != a["type"]:
        if "lit" not in other and "lit" in a:
            a = cast(a, other["type"])
        else:
            other = cast(other, a["type"])
    return call(fn, a, other, type_=other["type"] if "lit" in a else a["type"])


def add(a: Json, b: Any) -> Json:
    return arithmetic("Add", a, b)


def subtract(a: Json, b: Any) -> Json:
    return arithmetic("Subtract", a, b)


def times(a: Json, b: Any) -> Json:
    return arithmetic("Multiply", a, b)


def cast(a: Any, type_: str) -> Json:
    return call("Cast", a, type_=type_)
