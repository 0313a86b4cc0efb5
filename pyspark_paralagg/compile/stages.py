"""Every stage of the compiler as readable Datalog: the Program after each pass, then what ``plan`` is made of.

    differentiate     path(x, z) :- Δpath(x, y), old path(y, z).
    binarize          int1(x, y) :- Δpath(x, z), edges(z, y).      path(x, w) :- int1(x, y), hop(y, w).
    select_indexes    index path by x: canonical; a copy by y follows: path(x, y) :- Δpath(x, y).
    assign_placement  where each probe finds its rows, and how the head's row is found
    plan              the whole Plan

``explain``, ``--explain`` and docs/architecture.md show them. Nothing here decides anything: the passes run once more
with their results written down.
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


_IN_THE_PLAN = ("assign_placement", "plan")


@dataclass(frozen=True)
class Stage:
    """What the program is after a pass, as text, and the reasons that the pass gave."""

    name: str
    text: str
    notes: tuple[str, ...] = ()


def after_pass(name: str, program: Program, before: Program | None = None) -> Stage:
    """``program`` as the pass ``name`` left it, with the notes and warnings that it added to those of ``before``."""
    known = {*before.notes, *before.warnings} if before is not None else set()
    return Stage(name, _text(program), tuple(n for n in (*program.notes, *program.warnings) if n not in known))


def news(stages: list[Stage]) -> list[Stage]:
    """Of each stage but the first only the lines that the stage before has not; none where nothing is new."""
    found = []
    for before, after in itertools.pairwise(stages):
        known = set(before.text.splitlines())
        fresh = "\n".join(line for line in after.text.splitlines() if line not in known)
        if fresh or after.notes:
            found.append(Stage(after.name, fresh, after.notes))
    return found


def beside_plan(stages: list[Stage]) -> list[tuple[str, str, tuple[str, ...]]]:
    """The news as name, text and notes: short enough to travel with a plan, which shows the last stages itself."""
    return [(s.name, s.text, s.notes) for s in news(stages) if s.name not in _IN_THE_PLAN]


def _text(program: Program) -> str:
    classes = dict(program.classes)
    lines = []
    for n, names in enumerate(program.strata):
        kind = f", {classes[names[0]]}" if classes else ""
        lines.append(f"stratum {n + 1}{kind}: {', '.join(names)}")
    return "\n".join([*lines, show_program(program)])


def of_plan(program: Program, made: Plan, broadcast_max_bytes: int = BROADCAST_MAX_BYTES) -> list[Stage]:
    """The stages by which the plan ``made`` came of the verified ``program``."""
    chains: list[Chain] = []
    reasons: list[str] = []
    for names, stratum in zip(program.strata, made.strata, strict=True):
        own = tuple(_chains(program, names, stratum.relation_class))
        chains += own
        reasons += distribute(tuple(program.relation(n) for n in names), own, program, broadcast_max_bytes).reasons
    data = made.to_json()
    orders = list(dict.fromkeys(c.reason for c in chains if c.reason is not None))
    told = {*program.notes, *orders, *reasons}
    return [
        Stage("differentiate", "\n".join(show_variant(c, program) for c in chains)),
        Stage("binarize", "\n".join(_binary(chains, program)), tuple(orders)),
        Stage("select_indexes", "\n".join(show_indexes(data))),
        Stage("assign_placement", "\n".join(show_strata(data)), tuple(reasons)),
        Stage("plan", show_plan(data, reasons=False), tuple(r for r in made.reasons if r not in told)),
    ]


def _chains(program: Program, names: tuple[str, ...], relation_class: RelationClass) -> Iterable[Chain]:
    for rule in program.rules:
        if rule.head in names:
            yield from differentiate(rule, program, relation_class)


def _binary(chains: Iterable[Chain], program: Program) -> list[str]:
    lines: list[str] = []
    first = 1
    for chain in chains:
        made = show_binary_rules(chain, program, first)
        first += len(made) - 1
        lines += made
    return lines
