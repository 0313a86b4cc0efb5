"""Every stage of the compiler, before and after, as Datalog: ``passes/<stage>.md``, one program each.

A file holds two texts, and every reason that the stage gives after them. They are compared with what the stage before
and the stage itself really make of the program of that name in ``pass_programs``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pass_programs
import programs
import pytest
from steps import Document, lit, relation, same

from pyspark_paralagg.compile import PASSES, STAGES, Stage, stages
from pyspark_paralagg.compile.rewrite.drive_static import drive_static
from pyspark_paralagg.compile.rewrite.simplify import simplify
from pyspark_paralagg.compile.rewrite.stratify import stratify

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

FOLDER = Path(__file__).parent / "passes"
ONLY_REFUSE = ("check_types",)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_makes_what_its_fixture_shows(name: str) -> None:
    before, after = around(name)
    assert read(FOLDER / f"{name}.md") == (before.text, after.text, list(after.notes))
    assert before.text != after.text or after.notes or name in ONLY_REFUSE


def test_every_fixture_is_of_a_stage() -> None:
    assert sorted(p.stem for p in FOLDER.iterdir()) == sorted(STAGES)


def around(name: str) -> tuple[Stage, Stage]:
    """The stage before, and the stage, of the program that shows it."""
    found = stages(getattr(pass_programs, name)())
    assert [s.name for s in found] == ["program", *STAGES]
    at = next(n for n, s in enumerate(found) if s.name == name)
    return found[at - 1], found[at]


def read(path: Path) -> tuple[str, str, list[str]]:
    """The two texts of a fixture and its reasons."""
    text = path.read_text()
    before, after = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    return before, after, re.findall(r"^- (.*)$", text, re.MULTILINE)


def stage(program: Program, one: Callable[[Program], Program]) -> Program:
    """``program`` as ``one`` leaves it."""
    for run in PASSES[: PASSES.index(one) + 1]:
        program = run(program)
    return program


def test_strata_are_in_the_order_of_need() -> None:
    assert stage(programs.two_strata(), stratify).strata == (("dist",), ("far",))


def test_a_driver_of_static_rows_is_computed_where_they_are_loaded() -> None:
    source = stage(programs.static_branch(), drive_static).input(3)
    assert (len(source.exprs), len(source.filters), source.source) == (2, 1, 1)


def test_a_rule_whose_condition_is_false_is_dropped() -> None:
    doc = Document(relation("reach", "node bigint"))
    r, e = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint")
    step = r.join(e, same(r["node"], e["src"])).where(lit(value=False))
    found = stage(doc.program(reach=step.select(node=e["dst"])), simplify)
    assert found.rules == ()
    assert "never true" in found.notes[0]
