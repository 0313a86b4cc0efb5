"""Compile Step JSON to the Plan that the Spark engine reads. Needs no JVM.

``backends.spark`` calls it in the session's Python process, ``sql.answer`` in the Python process that the JVM starts.
Sources are numbered in one sequence: sources of the analysed step, then bases and initial rows, then results of lower
strata.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile import BROADCAST_MAX_BYTES, compile_program, explain_texts, prove_program
from pyspark_paralagg.compile.rewrite.pack import pack
from pyspark_paralagg.compile.rewrite.trace_paths import trace_paths
from pyspark_paralagg.plan import EXTRAS
from pyspark_paralagg.plan.plan import to_data
from pyspark_paralagg.plan.read import program_from_json
from pyspark_paralagg.program.doubtful import with_doubts
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Input
from pyspark_paralagg.program.step import program_from_step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import JoinOrder, Program, Relation

    Present = Mapping[int, Collection[str]]

_NONE: Present = MappingProxyType({})


@dataclass(frozen=True)
class CompiledStep:
    """A plan and the Program as written, from which ``explain`` compiles its texts, and the seconds of compilation."""

    program: Program
    plan: Plan
    broadcast_max_bytes: int
    seconds: float

    def strata(self, first_result: int, outputs: Collection[str]) -> Iterator[tuple[tuple[str, ...], Plan]]:
        """Yield for each stratum its results and the plan with the results of lower strata as sources.

        Results are the relations that a later stratum reads, and ``outputs``. The first of them is source
        ``first_result``; the others follow in the order of their strata. The plan's ``narrower`` are those of the
        stratum's results.
        """
        read = {*outputs, *(i.relation for i in self.plan.inputs)}
        results: list[str] = []
        for position, stratum in enumerate(self.plan.strata):
            inputs = tuple(
                i if i.relation is None else replace(i, source=first_result + results.index(i.relation))
                for i in self.plan.inputs
                if i.relation is None or i.relation in results
            )
            names = tuple(r.name for r in stratum.relations if r.name in read)
            narrower = tuple(n for n in self.plan.narrower if n.position == position and n.relation in names)
            yield names, replace(self.plan, inputs=inputs, narrower=narrower)
            results += names

    def to_json(self, plan: Plan) -> dict[str, Any]:
        """Return the JSON of ``plan``, a plan that ``strata`` yields."""
        return {**plan.to_json(), EXTRAS: self._extras}

    @cached_property
    def _extras(self) -> dict[str, Any]:
        return {
            "program": to_data(self.program),
            "broadcast_max_bytes": self.broadcast_max_bytes,
            "seconds": self.seconds,
        }


def _start_inputs(relations: Sequence[Relation], first_source: int, present: Present) -> tuple[Input, ...]:
    """Return bases and initial rows of ``relations`` as inputs, in order; sources count from ``first_source``."""
    starts = [(i, r) for r in relations for i in (r.base, r.initial) if i is not None]
    return tuple(_start_input(i, r, first_source + n, present.get(i, ())) for n, (i, r) in enumerate(starts))


def _start_input(input_id: int, relation: Relation, source: int, present: Collection[str]) -> Input:
    columns = tuple(replace(c, nullable=c.nullable and c.name not in present) for c in relation.supplied)
    return Input(input_id, source, columns, tuple(Col(c.name, c.type, c.nullable) for c in columns))


def compile_step(  # noqa: PLR0913 - all that a caller may set
    step_json: dict[str, Any],
    relations: Iterable[Relation],
    broadcast_max_bytes: int = BROADCAST_MAX_BYTES,
    join_order: JoinOrder = "cost",
    rewrite: Callable[[Program], Program] | None = None,
    *,
    packs: bool = False,
    present: Present = _NONE,
    **options: Any,  # noqa: ANN401 - the fields of Program that the caller sets
) -> CompiledStep:
    """Compile an analysed step, with what ``rewrite`` changes; raises what its parts raise.

    ``packs``: the engine can store values that are no words as texts. ``present``: the columns of bases and initial
    rows, by the number of the input, that Spark knows to have no nulls.
    """
    start = time.perf_counter()
    program = trace_paths(with_doubts(_program(step_json, relations, present, join_order=join_order, **options)))
    if rewrite is not None:
        program = rewrite(program)
    if packs:
        program = pack(program)
    plan = compile_program(program, broadcast_max_bytes)
    return CompiledStep(program, plan, broadcast_max_bytes, time.perf_counter() - start)


def prove_step(
    step_json: dict[str, Any],
    relations: Iterable[Relation],
    present: Present = _NONE,
    **options: Any,  # noqa: ANN401 - the fields of Program that the caller sets
) -> None:
    """Raise what ``compile_step`` raises for a step that is not proved, whatever the types of its columns are."""
    prove_program(trace_paths(_program(step_json, relations, present, **options)))


def _program(
    step_json: dict[str, Any],
    relations: Iterable[Relation],
    present: Present,
    **options: Any,  # noqa: ANN401 - those of program_from_step
) -> Program:
    """Return the Program of a step, with bases and initial rows as inputs behind the step's own sources."""
    relations = tuple(relations)
    base_inputs = _start_inputs(relations, len(step_json["sources"]), present)
    return program_from_step(step_json, relations, base_inputs, **options)


def texts_of(plan_json: dict[str, Any]) -> tuple[str, list[tuple[str, str, tuple[str, ...]]]]:
    """Return the texts of ``explain`` for a result of ``CompiledStep.to_json``: Program, and changes of each stage."""
    extras = plan_json[EXTRAS]
    return explain_texts(program_from_json(extras["program"]), extras["broadcast_max_bytes"])
