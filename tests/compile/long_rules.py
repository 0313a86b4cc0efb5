"""Programs of long rules, four to six atoms: an analysis like kCFA, points-to, disjoint groups, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import Document, Frame, Json, add, call, cast, holds, lit, relation, same

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program


def matched(first: Frame, *others: tuple[Frame, Json | None]) -> Frame:
    """All frames joined, each with its condition."""
    for frame, condition in others:
        first = first.join(frame, condition, "inner" if condition else "cross")
    return first


def both(*conditions: Json) -> Json:
    """All of them."""
    head, *rest = conditions
    return call("And", head, both(*rest), type_="boolean") if rest else head


def flow_analysis() -> Program:
    """Three recursive rules over two relations, with six, six and four atoms; the order written is not a good one.

    store(a, v) :- calls(c, f, x), eval(f, l), lambda(l, p, b), eval(x, v), time(c, t), address(p, t, a)
    eval(e, v)  :- reads(e, p), at(e, t), address(p, t, a), store(a, v), live(e), kind(e, 1)
    eval(c, v)  :- calls(c, f, x), eval(f, l), lambda(l, p, b), eval(b, v)
    """
    doc = Document(relation("eval", "e bigint, v bigint"), relation("store", "a bigint, v bigint", base=1))

    def named(name: str, size: int, *names: str) -> Frame:
        return doc.source(name, size, **dict.fromkeys(names, "bigint"))

    c, f = named("calls", 24_000, "c", "f", "x"), doc.reference("eval")
    la, x, t = named("lambda", 2_400, "l", "p", "b"), doc.reference("eval"), named("time", 1_600, "c", "t")
    a = named("address", 240_000, "p", "t", "a")
    bind = matched(
        c,
        (f, same(f["e"], c["f"])),
        (la, same(la["l"], f["v"])),
        (x, same(x["e"], c["x"])),
        (t, same(t["c"], c["c"])),
        (a, both(same(a["p"], la["p"]), same(a["t"], t["t"]))),
    ).select(a=a["a"], v=x["v"])
    r, at, b = named("reads", 16_000, "e", "p"), named("at", 16_000, "e", "t"), named("address", 240_000, "p", "t", "a")
    s, live, kind = doc.reference("store"), named("live", 800, "e"), named("kind", 16_000, "e", "k")
    read = matched(
        r,
        (at, same(r["e"], at["e"])),
        (b, both(same(b["p"], r["p"]), same(b["t"], at["t"]))),
        (s, same(s["a"], b["a"])),
        (live, same(live["e"], at["e"])),
        (kind, both(same(kind["e"], live["e"]), same(kind["k"], cast(lit(1), "bigint")))),
    ).select(e=r["e"], v=s["v"])
    d, g = named("calls", 24_000, "c", "f", "x"), doc.reference("eval")
    lb, body = named("lambda", 2_400, "l", "p", "b"), doc.reference("eval")
    result = matched(d, (g, same(g["e"], d["f"])), (lb, same(lb["l"], g["v"])), (body, same(body["e"], lb["b"])))
    return doc.program(eval=read.union(result.select(e=d["c"], v=body["v"])), store=bind)


def points_to() -> Program:
    """Andersen's: four rules over one relation of variables and one of heap cells, of up to four atoms."""
    doc = Document(relation("var", "v bigint, o bigint"), relation("cell", "o bigint, f bigint, p bigint", base=1))

    def named(name: str, *names: str) -> Frame:
        return doc.source(name, 8_000, **dict.fromkeys(names, "bigint"))

    m, v = named("assign", "to", "source"), doc.reference("var")
    moved = v.join(m, same(m["source"], v["v"])).select(v=m["to"], o=v["o"])
    ld, base, h = named("load", "to", "base", "f"), doc.reference("var"), doc.reference("cell")
    loaded = matched(
        ld, (base, same(base["v"], ld["base"])), (h, both(same(h["o"], base["o"]), same(h["f"], ld["f"])))
    ).select(v=ld["to"], o=h["p"])
    st, into, of = named("store", "base", "f", "source"), doc.reference("var"), doc.reference("var")
    stored = matched(st, (into, same(into["v"], st["base"])), (of, same(of["v"], st["source"])))
    return doc.program(var=moved.union(loaded), cell=stored.select(o=into["o"], f=st["f"], p=of["o"]))


def disjoint_groups() -> Program:
    """``pair(x, y) :- pair(w, u), f(u, x), g(b, c), h(c, y), b < 9``: two groups that share nothing."""
    doc = Document(relation("pair", "x bigint, y bigint"))
    p, f = doc.reference("pair"), doc.source("f", 4_000, u="bigint", x="bigint")
    g, h = doc.source("g", 8_000, b="bigint", c="bigint"), doc.source("h", 80_000, c="bigint", y="bigint")
    body = matched(p, (h, None), (f, same(f["u"], p["y"])), (g, same(g["c"], h["c"])))
    return doc.program(pair=body.where(holds("LessThan", g["b"], lit(9, "bigint"))).select(x=f["x"], y=h["y"]))


def costs() -> Program:
    """Five atoms below a sum's rival: the cheapest way over three networks, the middle column read nowhere."""
    doc = Document(relation("cost", "node bigint", "c bigint min"))
    d = doc.reference("cost")
    e = [doc.source(f"net{i}", 8_000 * (5 - i), a="bigint", b="bigint", w="bigint", note="bigint") for i in range(4)]
    body = matched(
        d,
        (e[0], same(e[0]["a"], d["node"])),
        (e[1], same(e[1]["a"], e[0]["b"])),
        (e[2], same(e[2]["a"], d["node"])),
        (e[3], both(same(e[3]["a"], e[1]["b"]), same(e[3]["b"], e[2]["b"]))),
    )
    total = add(add(d["c"], e[0]["w"]), e[3]["w"])
    return doc.program(cost=body.select(node=e[3]["b"], c=total))


def from_one_source() -> Program:
    """``path(x, z) :- path(x, y), edges(a, z, k), y = a, k = 1 + 1, y = 1``: constants reach the edges."""
    doc = Document(relation("path", "x bigint, y bigint"))
    p, e = doc.reference("path"), doc.source("edges", 8_000, src="bigint", dst="bigint", kind="bigint")
    two = cast(call("Add", lit(1), lit(1), type_="int"), "bigint")
    body = p.join(e, both(same(p["y"], e["src"]), same(e["kind"], two), same(p["y"], lit(1, "bigint"))))
    return doc.program(path=body.select(x=p["x"], y=e["dst"]))


def two_networks() -> Program:
    """Non-linear: ``dist(x, z, min d + e + w) :- dist(x, y, d), road(y, u, w), dist(u, z, e), w < 2 * 50``."""
    doc = Document(relation("dist", "x bigint, y bigint", "d bigint min"))
    p, q = doc.reference("dist"), doc.reference("dist")
    road = doc.source("road", 8_000, a="bigint", b="bigint", w="bigint", lanes="bigint")
    body = matched(p, (road, same(road["a"], p["y"])), (q, same(q["x"], road["b"])))
    far = cast(call("Multiply", lit(2), lit(50), type_="int"), "bigint")
    total = add(add(p["d"], q["d"]), road["w"])
    return doc.program(dist=body.where(holds("LessThan", road["w"], far)).select(x=p["x"], y=q["y"], d=total))
