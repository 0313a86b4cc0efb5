"""What explain shows without Spark: stages as text, what is new in each, the Plan as a mermaid flowchart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import long_rules
import programs
import pytest

from pyspark_paralagg.compile import STAGES, compile_program, compile_stages, stages
from pyspark_paralagg.compile.stages import changes
from pyspark_paralagg.plan.mermaid import show_mermaid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

MAKERS = [
    programs.pagerank,
    programs.two_strata,
    programs.all_pairs,
    programs.allowed_only,
    programs.with_initial,
    long_rules.flow_analysis,
]

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"

NODE = r"""(?P<id>\w+)(?:\(\["[^"]*"\]\)|\[\("[^"]*"\)\]|\{\{"[^"]*"\}\}|\["[^"]*"\])"""
EDGE = r"(\w+) (?:-->|-- [^->=]+ -->|== [^->=]+ ==>|-\. follows \.->) (\w+)"


@pytest.mark.parametrize("make", MAKERS)
def test_stages_end_in_the_plan_that_is_compiled(make: Callable[[], Program]) -> None:
    program = make()
    made, found = compile_stages(program)
    assert made == compile_program(program)
    assert [s.name for s in found] == ["program", *STAGES]
    assert found == stages(program)
    told = {n for s in found for n in s.notes}
    assert set(made.reasons) <= told


def test_news_are_the_lines_that_a_stage_changed() -> None:
    found = {s.name: s for s in changes(stages(programs.shortest_paths()))}
    assert "hoist" not in found
    assert found["stratify"].text == "stratum 1: dist"
    assert found["verify"].text == "stratum 1, lattice: dist"
    assert found["binarize"].text == "dist(dst, min dist + weight) :- Δdist(node, dist), in1(node, dst, weight)."


@pytest.mark.parametrize("make", MAKERS)
def test_the_picture_joins_what_it_has(make: Callable[[], Program]) -> None:
    """Mermaid's own parser took these when they were written; this keeps to the part of its grammar that they use."""
    lines = [line.strip() for line in show_mermaid(compile_program(make())).splitlines()]
    assert lines[0] == "flowchart LR"
    nodes: set[str] = set()
    edges: set[tuple[str, str]] = set()
    for line in lines[1:]:
        if node := re.fullmatch(NODE, line):
            assert node["id"] not in nodes
            nodes.add(node["id"])
        elif edge := re.fullmatch(EDGE, line):
            edges.add((edge[1], edge[2]))
        else:
            assert line == "end" or re.fullmatch(r'subgraph s\d+\["[^"]*"\]', line), line
    assert {end for edge in edges for end in edge} <= nodes
    rules = {n for n in nodes if re.fullmatch(r"s\d+r\d+", n)}
    assert len(rules) == sum(len(s.rules) for s in compile_program(make()).strata)
    assert all(any(b == r for _, b in edges) and any(a == r for a, _ in edges) for r in rules)


def test_signs_of_mermaids_own_are_quoted() -> None:
    assert "n #lt; 3" in show_mermaid(compile_program(programs.hops()))


def described() -> str:
    """The stages of one program as docs/architecture.md shows them."""
    lines = []
    for stage in changes(stages(long_rules.two_networks())):
        lines += [stage.name, *(f"  {line}" for line in stage.text.splitlines())]
        lines += [f"  because {note}" for note in stage.notes]
    return "\n".join(lines)


def test_the_documented_stages_are_what_the_compiler_does() -> None:
    assert f"```\n{described()}\n```" in ARCHITECTURE.read_text()
