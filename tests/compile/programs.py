"""The programs of the compiler's tests, written as steps: one function each, no Spark."""
# ruff: noqa: ANN401  (options of a Program)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steps import Document, Frame, add, call, cast, holds, lit, relation, same, times

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program

EDGES = {"src": "bigint", "dst": "bigint", "weight": "double"}


def shortest_paths(size: int | None = 1000, **options: Any) -> Program:
    doc = Document(relation("dist", "node bigint", "dist double min"))
    d, e = doc.reference("dist"), doc.source("edges", size, **EDGES)
    step = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], dist=add(d["dist"], e["weight"]))
    return doc.program(dist=step, **options)


def multi_source(size: int | None = 1000, **options: Any) -> Program:
    doc = Document(relation("dist", "origin bigint, node bigint", "dist double min"))
    d, e = doc.reference("dist"), doc.source("edges", size, **EDGES)
    step = d.join(e, same(d["node"], e["src"])).select(
        origin=d["origin"], node=e["dst"], dist=add(d["dist"], e["weight"])
    )
    return doc.program(dist=step, **options)


def widest_path() -> Program:
    doc = Document(relation("wide", "node bigint", "cap double max"))
    d, e = doc.reference("wide"), doc.source("pipes", src="bigint", dst="bigint", cap="double")
    least = call("Least", d["cap"], e["cap"], type_="double")
    return doc.program(wide=d.join(e, same(d["node"], e["src"])).select(node=e["dst"], cap=least))


def components() -> Program:
    doc = Document(relation("comp", "node bigint", "label bigint min"))
    there, e = doc.reference("comp"), doc.source("edges", src="bigint", dst="bigint")
    back, f = doc.reference("comp"), doc.source("edges", src="bigint", dst="bigint")
    one = there.join(e, same(there["node"], e["src"])).select(node=e["dst"], label=there["label"])
    two = back.join(f, same(back["node"], f["dst"])).select(node=f["src"], label=back["label"])
    return doc.program(comp=one.union(two))


def pagerank(**options: Any) -> Program:
    """Dangling mass is a relation without keys, which every node gets its part of."""
    doc = Document(
        relation("rank", "node bigint", "rank double sum"),
        relation("dangling", "", "mass double sum", base=1),
    )
    r, e = doc.reference("rank"), doc.source("links", src="bigint", dst="bigint", degree="bigint")
    share = call("Divide", times(r["rank"], 0.85), cast(e["degree"], "double"), type_="double")
    along = r.join(e, same(r["node"], e["src"])).select(node=e["dst"], rank=share)
    m, n = doc.reference("dangling"), doc.source("nodes", id="bigint", part="double")
    spread = m.join(n, how="cross").select(node=n["id"], rank=times(m["mass"], n["part"]))
    s, z = doc.reference("rank"), doc.source("sinks", node="bigint")
    lost = s.join(z, same(s["node"], z["node"])).select(mass=times(s["rank"], 0.85))
    return doc.program(rank=along.union(spread), dangling=lost, **options)


def bill_of_materials() -> Program:
    doc = Document(relation("needs", "product bigint, part bigint", "quantity bigint sum"))
    d, p = doc.reference("needs"), doc.source("parts", whole="bigint", part="bigint", amount="bigint")
    step = d.join(p, same(d["part"], p["whole"])).select(
        product=d["product"], part=p["part"], quantity=times(d["quantity"], p["amount"])
    )
    return doc.program(needs=step)


def path_counts() -> Program:
    """As the API sends it: null counts 1, and the sum of a groupBy is cast back."""
    doc = Document(relation("paths", "node bigint", "n bigint count"))
    d, e = doc.reference("paths"), doc.source("edges", src="bigint", dst="bigint")
    inner = d.join(e, same(d["node"], e["src"]))
    grouped = inner.group([e["dst"]], node=e["dst"], n=call("agg:sum", d["n"], type_="bigint"))
    one = call("Coalesce", grouped["n"], cast(1, "bigint"), type_="bigint", nullable=False)
    return doc.program(paths=grouped.select(node=grouped["node"], n=cast(one, "bigint")))


def _closure(doc: Document, size: int | None = 1000) -> tuple[Frame, Frame]:
    return doc.reference("path"), doc.source("edges", size, src="bigint", dst="bigint")


def closure_left(size: int | None = 1000, **options: Any) -> Program:
    doc = Document(relation("path", "x bigint, y bigint"))
    p, e = _closure(doc, size)
    return doc.program(path=p.join(e, same(p["y"], e["src"])).select(x=p["x"], y=e["dst"]), **options)


def closure_right() -> Program:
    doc = Document(relation("path", "x bigint, y bigint"))
    p, e = _closure(doc)
    return doc.program(path=e.join(p, same(e["dst"], p["x"])).select(x=e["src"], y=p["y"]))


def closure_non_linear() -> Program:
    doc = Document(relation("path", "x bigint, y bigint"))
    p, q = doc.reference("path"), doc.reference("path")
    return doc.program(path=p.join(q, same(p["y"], q["x"])).select(x=p["x"], y=q["y"]))


def all_pairs() -> Program:
    doc = Document(relation("dist", "x bigint, y bigint", "d bigint min"))
    p, q = doc.reference("dist"), doc.reference("dist")
    step = p.join(q, same(p["y"], q["x"])).select(x=p["x"], y=q["y"], d=add(p["d"], q["d"]))
    return doc.program(dist=step)


def same_generation() -> Program:
    doc = Document(relation("sg", "x bigint, y bigint"))
    s = doc.reference("sg")
    a, b = doc.source("parent", child="bigint", par="bigint"), doc.source("parent", child="bigint", par="bigint")
    step = s.join(a, same(s["x"], a["par"])).join(b, same(s["y"], b["par"])).select(x=a["child"], y=b["child"])
    return doc.program(sg=step)


def parents() -> Program:
    doc = Document(relation("dist", "node bigint", "dist double min, parent bigint min_by dist"))
    d, e = doc.reference("dist"), doc.source("edges", **EDGES)
    step = d.join(e, same(d["node"], e["src"])).select(
        node=e["dst"], dist=add(d["dist"], e["weight"]), parent=d["node"]
    )
    return doc.program(dist=step)


def labels(least: bool = False) -> Program:  # noqa: FBT001, FBT002
    """The first label is carried along: fine with a strict step, wrong along a widest path."""
    how = ("max", "max_by") if least else ("min", "min_by")
    doc = Document(relation("dist", "node bigint", f"dist bigint {how[0]}, label bigint {how[1]} dist"))
    d, e = doc.reference("dist"), doc.source("edges", src="bigint", dst="bigint", weight="bigint")
    value = call("Least", d["dist"], e["weight"], type_="bigint") if least else add(d["dist"], e["weight"])
    step = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], dist=value, label=d["label"])
    return doc.program(dist=step)


def allowed_only() -> Program:
    doc = Document(relation("reach", "node bigint"))
    r, e, a = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint"), doc.source("ok", id="int")
    step = r.join(e, same(r["node"], e["src"])).join(a, same(e["dst"], cast(a["id"], "bigint")), "leftsemi")
    return doc.program(reach=step.select(node=e["dst"]))


def hops(**options: Any) -> Program:
    doc = Document(relation("hop", "node bigint", "n int min"))
    r, e = doc.reference("hop"), doc.source("edges", src="bigint", dst="bigint")
    step = r.join(e, same(r["node"], e["src"])).where(holds("LessThan", r["n"], lit(3)))
    return doc.program(hop=step.select(node=e["dst"], n=add(r["n"], 1)), **options)


def most_probable(**options: Any) -> Program:
    doc = Document(relation("best", "state bigint", "prob double max"))
    b, t = doc.reference("best"), doc.source("moves", src="bigint", dst="bigint", p="double")
    step = b.join(t, same(b["state"], t["src"])).select(state=t["dst"], prob=times(b["prob"], t["p"]))
    return doc.program(best=step, **options)


def two_strata() -> Program:
    """``far`` reads the finished distances: not recursive itself, and with an anti join."""
    doc = Document(
        relation("dist", "node bigint", "dist bigint min"), relation("far", "node bigint", "n bigint max", base=1)
    )
    d, e = doc.reference("dist"), doc.source("edges", src="bigint", dst="bigint", weight="bigint")
    step = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], dist=add(d["dist"], e["weight"]))
    x, b = doc.reference("dist"), doc.source("banned", id="bigint")
    far = x.where(holds("GreaterThan", x["dist"], lit(9, "bigint"))).join(b, same(x["node"], b["id"]), "leftanti")
    return doc.program(dist=step, far=far.select(node=x["node"], n=x["dist"]))


def three_atoms() -> Program:
    """Three recursive atoms in a rule: what cannot be placed stands everywhere."""
    doc = Document(relation("path", "x bigint, y bigint"))
    p, q, r = doc.reference("path"), doc.reference("path"), doc.reference("path")
    step = p.join(q, same(p["y"], q["x"])).join(r, same(q["y"], r["x"])).select(x=p["x"], y=r["y"])
    return doc.program(path=step)


def static_branch() -> Program:
    doc = Document(relation("dist", "node bigint", "dist bigint min"))
    d, e = doc.reference("dist"), doc.source("edges", src="bigint", dst="bigint", weight="bigint")
    f = doc.source("more", node="bigint", dist="bigint")
    along = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], dist=add(d["dist"], e["weight"]))
    given = f.where(holds("LessThan", f["node"], lit(5, "bigint"))).select(node=f["node"], dist=add(f["dist"], 1))
    return doc.program(dist=along.union(given))


def static_sum_branch() -> Program:
    doc = Document(relation("paths", "node bigint", "n bigint sum"))
    d, e = doc.reference("paths"), doc.source("edges", src="bigint", dst="bigint")
    f = doc.source("more", node="bigint", n="bigint")
    along = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], n=d["n"])
    return doc.program(paths=along.union(f.select(node=f["node"], n=f["n"])))


def with_initial() -> Program:
    """PageRank as LDBC has it: the base in every round, initial rows at the start only."""
    doc = Document(relation("rank", "node bigint", "rank double sum", initial=1))
    r, e = doc.reference("rank"), doc.source("links", src="bigint", dst="bigint", share="double")
    step = r.join(e, same(r["node"], e["src"])).select(node=e["dst"], rank=times(r["rank"], e["share"]))
    return doc.program(rank=step, max_iterations=4, on_limit="return")


def ring(relations: int) -> Program:
    """Each relation reads the next one and hands on its origin, which stands elsewhere in each."""

    def keys(i: int) -> list[str]:
        return [*"ab"[: i % 3], "origin", *"ab"[i % 3 :]]

    names = [f"r{i}" for i in range(relations)]
    doc = Document(*(relation(r, ", ".join(f"{k} bigint" for k in keys(i)), base=i) for i, r in enumerate(names)))
    steps = {}
    for i, name in enumerate(names):
        d, e = doc.reference(names[(i + 1) % relations]), doc.source("edges", src="bigint", dst="bigint")
        moved = {"origin": d["origin"], "a": d["b"], "b": e["dst"]}
        steps[name] = d.join(e, same(d["a"], e["src"])).select(**{k: moved[k] for k in keys(i)})
    return doc.program(**steps)


def equal_keys() -> Program:
    """Two keys of ``odd`` are the one that ``even`` has."""
    doc = Document(
        relation("even", "s bigint, node bigint"), relation("odd", "a bigint, b bigint, node bigint", base=1)
    )
    o, e = doc.reference("odd"), doc.source("edges", src="bigint", dst="bigint")
    even = o.where(same(o["a"], o["b"])).join(e, same(o["node"], e["src"])).select(s=o["a"], node=e["dst"])
    x, f = doc.reference("even"), doc.source("edges", src="bigint", dst="bigint")
    odd = x.join(f, same(x["node"], f["src"])).select(a=x["s"], b=x["s"], node=f["dst"])
    return doc.program(even=even, odd=odd)
