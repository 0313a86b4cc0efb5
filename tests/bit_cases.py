"""Programs that rows of bits evaluate, over random facts, with the rows that the definition gives."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from datalog.interpreter import evaluate

from pyspark_paralagg.datalog.parse.parse import parse

FACTS = ("new", "assign", "load", "store")

POINTS_TO = """
pt(v, o) :- new(v, o).
pt(v, o) :- assign(v, w), pt(w, o).
pt(v, o) :- load(v, w), pt(w, p), hpt(p, o).
hpt(p, o) :- store(v, w), pt(v, p), pt(w, o).
"""
ONE_RELATION = """
pt(v, o) :- new(v, o).
pt(v, o) :- assign(v, w), pt(w, o).
pt(v, o) :- load(v, w), pt(w, p), pt(p, o).
pt(p, o) :- store(v, w), pt(v, p), pt(w, o).
"""
FIRST_KEY = """
by(o, v) :- new(v, o).
by(o, v) :- by(o, w), assign(v, w).
by(o, v) :- by(p, w), load(v, w), of(p, o).
of(p, o) :- by(p, v), store(v, w), by(o, w).
"""
BY_THE_CARRIED_KEY = """
pt(v, o) :- new(v, o).
pt(v, o) :- load(p, v), pt(w, p), pt(w, o).
pt(v, o) :- pt(v, w), pt(w, o).
"""
TEXTS = {
    "points-to": POINTS_TO,
    "points-to in one relation": ONE_RELATION,
    "the first key carried": FIRST_KEY,
    "a lookup by the carried key": BY_THE_CARRIED_KEY,
}


@dataclass(frozen=True)
class BitCase:
    """A text over the relations ``FACTS``, their rows, and the expected rows of each derived relation."""

    text: str
    facts: dict[str, pa.Table]
    rows: dict[str, list[tuple[object, object]]]


@cache
def bit_case(name: str, seed: int, *, are_strings: bool = False) -> BitCase:
    """Return the case of ``TEXTS[name]`` with the facts of ``seed``."""
    drawn = random.Random(seed)  # noqa: S311 - for a test
    vertices = drawn.choice((5, 12, 25))

    def pairs(count: int) -> set[tuple[object, object]]:
        numbers = {(drawn.randrange(vertices), drawn.randrange(vertices)) for _ in range(count)}
        return {(f"x{v}", f"x{o}") for v, o in numbers} if are_strings else set(numbers)

    facts = {name: pairs(drawn.randrange(vertices)) for name in FACTS}
    facts["new"] |= pairs(3)
    kind = "symbol" if are_strings else "number"
    text = f".decl {', '.join(FACTS)}(v: {kind}, w: {kind})\n.input {', '.join(FACTS)}\n{TEXTS[name]}"
    found = evaluate(parse(text), facts)
    arrow = pa.string() if are_strings else pa.int64()
    tables = {
        name: pa.table({"v": pa.array([v for v, _ in rows], arrow), "w": pa.array([w for _, w in rows], arrow)})
        for name, rows in facts.items()
    }
    return BitCase(text, tables, {name: sorted(rows) for name, rows in found.items() if name not in FACTS})


@cache
def many_values(seed: int) -> BitCase:
    """Return a points-to case with thousands of values of the carried key: rows of several blocks, few of them used."""
    drawn = random.Random(seed)  # noqa: S311 - for a test
    size = 3000

    def pairs(count: int) -> set[tuple[int, int]]:
        return {(drawn.randrange(size), drawn.randrange(size)) for _ in range(count)}

    new, assign, load, store = facts = [pairs(2500), pairs(2000), pairs(200), pairs(200)]
    pt, hpt = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for v, o in new:
        pt[v].add(o)
    before = -1
    while before != (before := sum(map(len, [*pt.values(), *hpt.values()]))):
        for v, w in assign:
            pt[v] |= pt[w]
        for v, w in load:
            pt[v].update(*(hpt[p] for p in pt[w]))
        for v, w in store:
            for p in pt[v]:
                hpt[p] |= pt[w]
    tables = {
        name: pa.table({"v": [v for v, _ in rows], "w": [w for _, w in rows]})
        for name, rows in zip(FACTS, facts, strict=True)
    }
    rows = {
        name: sorted((v, o) for v, found in sets.items() for o in found) for name, sets in (("pt", pt), ("hpt", hpt))
    }
    text = f".decl {', '.join(FACTS)}(v: number, w: number)\n.input {', '.join(FACTS)}\n{POINTS_TO}"
    return BitCase(text, tables, rows)
