"""Show every stage of the compiler as Datalog: the Program after each pass, then the steps that build the Plan.

    differentiate     path(x, z) :- Δpath(x, y), old path(y, z).
    binarize          int1(x, y) :- Δpath(x, z), edges(z, y).      path(x, w) :- int1(x, y), hop(y, w).
    select_indexes    index path by x: canonical; a copy by y follows: path(x, y) :- Δpath(x, y).
    assign_placement  the index that each probe reads, and how the head's row is located
    plan              the whole Plan

``explain``, ``--explain`` and docs/architecture.md show them. This module makes no choice: it repeats the steps of
``plan`` and records their results.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.physical.differentiate import differentiate
from pyspark_paralagg.compile.physical.distribute import distribute
from pyspark_paralagg.compile.physical.plan import BROADCAST_MAX_BYTES
from pyspark_paralagg.compile.physical.show_chain import show_binary_rules, show_variant
from pyspark_paralagg.plan.printer import show_indexes, show_plan, show_strata
from pyspark_paralagg.program.text import show_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_paralagg.compile.physical.chain import Chain
    from pyspark_paralagg.plan.plan import Plan, RelationClass
    from pyspark_paralagg.program.program import Program


_SHOWN_BY_PLAN = ("assign_placement", "plan")


@dataclass(frozen=True)
class Stage:
    """The program after a pass, as text, with the reasons that the pass gave."""

    name: str
    text: str
    notes: tuple[str, ...] = ()


def stage_after(name: str, program: Program, before: Program | None = None) -> Stage:
    """Return the stage after the pass ``name``, with the notes and warnings that ``before`` does not have."""
    previous = {*before.notes, *before.warnings} if before is not None else set()
    return Stage(name, _text(program), tuple(n for n in (*program.notes, *program.warnings) if n not in previous))


def changes(stages: list[Stage]) -> list[Stage]:
    """Return each stage but the first, reduced to the lines that are new; skip stages without a change."""
    changed = []
    for before, after in itertools.pairwise(stages):
        previous = set(before.text.splitlines())
        new_lines = "\n".join(line for line in after.text.splitlines() if line not in previous)
        if new_lines or after.notes:
            changed.append(Stage(after.name, new_lines, after.notes))
    return changed


def stage_changes(stages: list[Stage]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the changes as name, text and notes, to be stored with a plan; the plan itself shows the last stages."""
    return [(s.name, s.text, s.notes) for s in changes(stages) if s.name not in _SHOWN_BY_PLAN]


def _text(program: Program) -> str:
    classes = dict(program.classes)
    lines = []
    for n, names in enumerate(program.strata):
        kind = f", {classes[names[0]]}" if classes else ""
        lines.append(f"stratum {n + 1}{kind}: {', '.join(names)}")
    return "\n".join([*lines, show_program(program)])


def plan_stages(program: Program, physical_plan: Plan, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> list[Stage]:
    """Return the stages that lead from the verified ``program`` to the Plan ``physical_plan``."""
    chains: list[Chain] = []
    reasons: list[str] = []
    for names, stratum in zip(program.strata, physical_plan.strata, strict=True):
        stratum_chains = tuple(_chains(program, names, stratum.relation_class))
        chains += stratum_chains
        relations = tuple(map(program.relation, names))
        reasons += distribute(relations, stratum_chains, program, broadcast_max_bytes).reasons
    data = physical_plan.to_json()
    orders = list(dict.fromkeys(c.reason for c in chains if c.reason is not None))
    shown_before = {*program.notes, *orders, *reasons}
    return [
        Stage("differentiate", "\n".join(show_variant(c, program) for c in chains)),
        Stage("binarize", "\n".join(_binary_rules(chains, program)), tuple(orders)),
        Stage("select_indexes", "\n".join(show_indexes(data))),
        Stage("assign_placement", "\n".join(show_strata(data)), tuple(reasons)),
        Stage("plan", show_plan(data, reasons=False), tuple(r for r in physical_plan.reasons if r not in shown_before)),
    ]


def _chains(program: Program, names: tuple[str, ...], relation_class: RelationClass) -> Iterable[Chain]:
    for rule in program.rules:
        if rule.head in names:
            yield from differentiate(rule, program, relation_class)


def _binary_rules(chains: Iterable[Chain], program: Program) -> list[str]:
    lines: list[str] = []
    first = 1
    for chain in chains:
        rules = show_binary_rules(chain, program, first)
        first += len(rules) - 1
        lines += rules
    return lines
