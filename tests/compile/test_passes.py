"""Each pass, before and after, as Datalog text. What is written here is what the docstrings promise."""

from __future__ import annotations

from collections.abc import Callable

import programs
import pytest
from steps import Document, add, call, cast, holds, lit, relation, same

from pyspark_paralagg.compile import PASSES
from pyspark_paralagg.compile.drive_static import drive_static
from pyspark_paralagg.compile.hoist import hoist
from pyspark_paralagg.compile.place_semi import place_semi
from pyspark_paralagg.compile.prune import prune
from pyspark_paralagg.compile.simplify import simplify
from pyspark_paralagg.compile.stratify import stratify
from pyspark_paralagg.program.program import Program
from pyspark_paralagg.program.text import show_program

Pass = Callable[[Program], Program]


def before(program: Program, one: Pass) -> Program:
    """``program`` as ``one`` gets it."""
    for earlier in PASSES[: PASSES.index(one)]:
        program = earlier(program)
    return program


def check(program: Program, one: Pass, old: str, new: str) -> None:
    given = before(program, one)
    assert show_program(given) == old.strip()
    assert show_program(one(given)) == new.strip()


def test_stratify_reads_lower_relations_as_inputs() -> None:
    check(
        programs.two_strata(),
        stratify,
        """
relation dist(node, min dist) from input 0
relation far(node, max n) from input 1
in2(src, dst, weight) := source 0
in3(id) := source 1
dist(dst, min dist + weight) :- dist(node, dist), in2(src, dst, weight), node = src
far(node, max dist) :- dist(node, dist), !in3(id), dist > 9, node = id
""",
        """
relation dist(node, min dist) from input 0
relation far(node, max n) from input 1
in2(src, dst, weight) := source 0
in3(id) := source 1
dist(node, dist) := result of dist
dist(dst, min dist + weight) :- dist(node, dist), in2(src, dst, weight), node = src
far(node, max dist) :- dist(node, dist), !in3(id), dist > 9, node = id
""",
    )
    assert stratify(programs.two_strata()).strata == (("dist",), ("far",))


def test_drive_static_gives_every_rule_a_recursive_atom() -> None:
    check(
        programs.static_branch(),
        drive_static,
        """
relation dist(node, min dist) from input 0
in1(src, dst, weight) := source 0
in2(node, dist) := source 1
dist(dst, min dist + weight) :- dist(node, dist), in1(src, dst, weight), node = src
dist(node, min dist + 1) :- in2(node, dist), node < 5
""",
        """
relation dist(node, min dist) from input 0
relation dist_rows(node, min dist) from input 3
in1(src, dst, weight) := source 0
dist(dst, min dist + weight) :- dist(node, dist), in1(src, dst, weight), node = src
dist(node, min dist) :- dist_rows(node, dist)
""",
    )
    source = drive_static(before(programs.static_branch(), drive_static)).input(3)
    assert (len(source.exprs), len(source.filters), source.source) == (2, 1, 1)


def messy() -> Program:
    """Constants, a filter on the input, a cast in the join, a string function, columns that nobody reads."""
    doc = Document(relation("dist", "node bigint", "dist bigint min"))
    d, e = doc.reference("dist"), doc.source("edges", src="int", dst="bigint", w="bigint", kind="string", note="string")
    joined = d.join(e, same(d["node"], cast(e["src"], "bigint")))
    kept = joined.where(
        call(
            "And",
            holds("EqualTo", lit(1), lit(1)),
            call(
                "And",
                holds("LessThan", e["w"], lit(9, "bigint")),
                holds("LessThan", d["dist"], lit(99, "bigint")),
                type_="boolean",
            ),
            type_="boolean",
        )
    )
    length = cast(call("Length", e["kind"], type_="int"), "bigint")
    return doc.program(dist=kept.select(node=e["dst"], dist=add(add(d["dist"], length), cast(e["w"], "bigint"))))


MESSY = {
    simplify: (
        """
relation dist(node, min dist) from input 0
in1(src, dst, w, kind, note) := source 0
dist(dst, min dist + cast(length(kind) as bigint) + cast(w as bigint)) :- \
dist(node, dist), in1(src, dst, w, kind, note), node = cast(src as bigint), 1 = 1, w < 9, dist < 99
""",
        """
relation dist(node, min dist) from input 0
in2(src, dst, w, kind, note) := source 0, w < 9
dist(dst, min dist + cast(length(kind) as bigint) + w) :- \
dist(node, dist), in2(src, dst, w, kind, note), node = cast(src as bigint), dist < 99
""",
    ),
    hoist: (
        """
relation dist(node, min dist) from input 0
in2(src, dst, w, kind, note) := source 0, w < 9
dist(dst, min dist + cast(length(kind) as bigint) + w) :- \
dist(node, dist), in2(src, dst, w, kind, note), node = cast(src as bigint), dist < 99
""",
        """
relation dist(node, min dist) from input 0
in4(src, dst, w, kind, note, length(kind), cast(src as bigint)) := source 0, w < 9
dist(dst, min dist + cast(kind_1 as bigint) + w) :- \
dist(node, dist), in4(src, dst, w, kind, note, kind_1, src_1), node = src_1, dist < 99
""",
    ),
    prune: (
        """
relation dist(node, min dist) from input 0
in4(src, dst, w, kind, note, length(kind), cast(src as bigint)) := source 0, w < 9
dist(dst, min dist + cast(kind_1 as bigint) + w) :- \
dist(node, dist), in4(src, dst, w, kind, note, kind_1, src_1), node = src_1, dist < 99
""",
        """
relation dist(node, min dist) from input 0
in5(dst, w, length(kind), cast(src as bigint)) := source 0, w < 9
dist(dst, min dist + cast(kind_1 as bigint) + w) :- \
dist(node, dist), in5(dst, w, kind_1, src_1), node = src_1, dist < 99
""",
    ),
}


@pytest.mark.parametrize("one", MESSY, ids=lambda p: p.__name__)
def test_expressions_and_columns_move_out_of_the_loop(one: Pass) -> None:
    check(messy(), one, *MESSY[one])


def test_place_semi_makes_a_join_of_an_inequality() -> None:
    doc = Document(relation("reach", "node bigint"))
    r, e, a = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint"), doc.source("ok", id="bigint")
    step = r.join(e, same(r["node"], e["src"])).join(a, holds("LessThan", a["id"], e["dst"]), "leftsemi")
    given = before(doc.program(reach=step.select(node=e["dst"])), place_semi)
    assert "exists in2(id)" in show_program(given)
    assert "exists" not in show_program(place_semi(given))


def test_a_rule_whose_condition_is_false_is_dropped() -> None:
    doc = Document(relation("reach", "node bigint"))
    r, e = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint")
    step = r.join(e, same(r["node"], e["src"])).where(lit(value=False))
    found = simplify(before(doc.program(reach=step.select(node=e["dst"])), simplify))
    assert found.rules == ()
    assert "never true" in found.notes[0]
