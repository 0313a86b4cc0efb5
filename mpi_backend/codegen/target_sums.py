"""Write sums by target: compute each source's contribution once, then each target adds up those of its sources.

If all rows contribute (PageRank's rounds), reading contributions in the order of targets writes each sum once, not
once for each edge (docs/design.md, "Evaluation forms"). Only for sums of fractions, whose order is unspecified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.aggregates import Accumulating
from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.rule import RuleKernel
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.values import Value
from mpi_backend.codegen.writer import Sites
from mpi_backend.kernels.compiler import Kernel

if TYPE_CHECKING:
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.shape import Shape
    from pyspark_paralagg.plan.plan import PlannedRule, Probe


def may_add_by_target(shape: Shape, rule: PlannedRule) -> bool:
    """Return whether a rule adds by target, and no sum is null in this run."""
    return rule.adds_by_target and not any(shape.relations[rule.head].dependents)


class Contribution(RuleKernel):
    """The contribution of each row of the driver to its targets. ``cur[OUT]`` counts rows that have targets."""

    _CARRIED = "gives"

    def _probe_static(self, p: Probe, at: int) -> None:
        if at < len(self.rule.steps) - 1:
            super()._probe_static(p, at)
            return
        code = self._code
        self._arguments.add("s_offsets", lambda loop: loop.statics[p.index].offsets)
        with code.block("if u + 1 < len(s_offsets) and s_offsets[u] < s_offsets[u + 1]:"):
            for j, expr in enumerate(self.rule.emit[len(self.head.keys) :]):
                code.line(f"given[{j}, u] += {self._writer.value(expr).code}")
            code.line("gives = True")

    def _row(self) -> None:
        self._arguments.add("given", lambda loop: loop.target_sums[self.position].contributions)
        self._code.line("gives = False")
        with self._code.block("if u < given.shape[1]:"):
            for j in range(len(self.head.dependents)):
                self._code.line(f"given[{j}, u] = 0.0")
        self._step(0)
        with self._code.block("if gives:"):
            self._code.line("out_n += 1")


def sums_kernel(facts: Facts, shape: Shape, relation: str, *, ansi: bool) -> Kernel:
    """Return the kernel that adds to ``ids[g]`` the sum of ``given`` over ``sources[offsets[g] : offsets[g + 1]]``."""
    code = Source()
    planned = facts.relations[relation]
    writer = Expressions(code, {}, Sites(), ansi=ansi, makes_strings=False, leave=lambda: None)
    accumulating = Accumulating("h", planned, shape.relations[relation].dependents, writer, traced=False)
    accumulating.declare()
    count = len(planned.dependents)
    for j in range(count):
        code.line(f"given{j} = given[{j}]")
    with code.block("for g in range(len(ids)):"):
        for j in range(count):
            code.line(f"sum{j} = 0.0")
        with code.block("for p in range(np.uint32(offsets[g]), np.uint32(offsets[g + 1])):"):
            code.line("source = np.uint32(sources[p])")
            for j in range(count):
                code.line(f"sum{j} += given{j}[source]")
        code.line("row = np.uint32(ids[g])")
        accumulating.add("row", [Value(accumulating.types[j], f"sum{j}") for j in range(count)], "-1")
    return Kernel([*accumulating.arrays, "ids", "offsets", "sources", "given"], code.text, reorders=True)
