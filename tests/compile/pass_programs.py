"""The programs of the before/after fixtures in ``passes/``: each shows one stage of the compiler at work."""

from __future__ import annotations

from long_rules import costs as binarize
from programs import all_pairs as select_indexes
from programs import closure_left as plan
from programs import closure_non_linear as differentiate
from programs import components as check_types
from programs import same_generation as assign_placement
from programs import shortest_paths as verify
from programs import static_branch as drive_static
from programs import two_strata as stratify
from steps import Document, add, call, cast, holds, lit, relation, same

from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.program import Atom, Column, Dependent, Input, Program, Relation, Rule

__all__ = [
    "assign_placement",
    "binarize",
    "check_types",
    "differentiate",
    "drive_static",
    "hoist",
    "limit_growth",
    "place_semi",
    "plan",
    "prune",
    "select_indexes",
    "separate_nulls",
    "simplify",
    "stratify",
    "track_witnesses",
    "verify",
]


def track_witnesses() -> Program:
    """Who attends: whoever has three friends that attend."""
    person, friend = Column("person", "bigint"), Column("friend", "bigint")
    attends = Relation("attends", (person,), (Dependent(Column("n", "bigint"), "mcount", supplied=(friend,)),), base=0)
    p, f, known, n = (Col(name, "bigint") for name in ("person", "friend", "known", "n"))
    base = Input(0, 1, (person, friend), (p, f))
    knows = Input(1, 0, (friend, person), (f, p))
    body = (Atom(("friend", "n"), relation="attends"), Atom(("known", "person"), input=1))
    enough = Call("GreaterThanOrEqual", (n, Lit(3, "bigint")), "boolean")
    rule = Rule("attends", (p, f), body, (Call("EqualTo", (f, known), "boolean"), enough), "step of attends")
    return Program((attends,), (base, knows), (rule,))


def simplify() -> Program:
    """Constants that meet, an equality that carries one to the edges, a branch that can give nothing."""
    doc = Document(relation("path", "x bigint, y bigint"))
    p, e = doc.reference("path"), doc.source("edges", src="bigint", dst="bigint", kind="bigint")
    q, f = doc.reference("path"), doc.source("edges", src="bigint", dst="bigint", kind="bigint")
    two = cast(call("Add", lit(1), lit(1), type_="int"), "bigint")
    along = (
        p.join(e, same(p["y"], e["src"]))
        .where(same(p["y"], lit(7, "bigint")))
        .where(same(e["kind"], two))
        .where(holds("LessThan", e["dst"], lit(9, "bigint")))
        .select(x=p["x"], y=add(e["dst"], e["kind"]))
    )
    never = q.join(f, same(q["y"], f["src"])).where(same(f["src"], lit(1, "bigint"))).where(same(q["y"], two))
    return doc.program(path=along.union(never.select(x=q["x"], y=f["dst"])))


def limit_growth() -> Program:
    """Levels of a graph as keys: on a cycle there is always one more."""
    doc = Document(relation("level", "node bigint, n bigint"))
    d, e = doc.reference("level"), doc.source("edges", src="bigint", dst="bigint")
    return doc.program(level=d.join(e, same(d["node"], e["src"])).select(node=e["dst"], n=add(d["n"], 1)))


def hoist() -> Program:
    """Constants, a filter on the input, a cast in the join, a string function, columns that nobody reads."""
    doc = Document(relation("dist", "node bigint", "dist bigint min"))
    d, e = doc.reference("dist"), doc.source("edges", src="int", dst="bigint", w="bigint", kind="string", note="string")
    joined = d.join(e, same(d["node"], cast(e["src"], "bigint"))).where(same(lit(1), lit(1)))
    kept = joined.where(holds("LessThan", e["w"], lit(9, "bigint"))).where(
        holds("LessThan", d["dist"], lit(99, "bigint"))
    )
    length = cast(call("Length", e["kind"], type_="int"), "bigint")
    return doc.program(dist=kept.select(node=e["dst"], dist=add(add(d["dist"], length), cast(e["w"], "bigint"))))


prune = hoist


def separate_nulls() -> Program:
    """A join and an anti join that take nulls for equal, on columns that may all be null."""
    doc = Document(relation("reach", "node bigint"))
    r, e, s = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint"), doc.source("stop", id="bigint")
    found = r.join(e, call("EqualNullSafe", r["node"], e["src"], type_="boolean"))
    left = found.join(s, call("EqualNullSafe", e["dst"], s["id"], type_="boolean"), "leftanti")
    return doc.program(reach=left.select(node=e["dst"]))


def place_semi() -> Program:
    """A semi join on an inequality."""
    doc = Document(relation("reach", "node bigint"))
    r, e, a = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint"), doc.source("ok", id="bigint")
    step = r.join(e, same(r["node"], e["src"])).join(a, holds("LessThan", a["id"], e["dst"]), "leftsemi")
    return doc.program(reach=step.select(node=e["dst"]))
