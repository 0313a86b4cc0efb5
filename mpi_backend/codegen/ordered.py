"""Write a lattice's loop that applies the best rows first: all passes in one call, until no near row is left.

A changed row is *near* if its value is better than a limit, else *far* (Davidson et al. 2014, "near-far"; two buckets
of delta-stepping, Meyer and Sanders 2003). When no row is near, the limit moves by a width. Far rows within the new
limit become near; those that improved and were applied in the meantime are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.source import Source
from mpi_backend.kernels.compiler import Kernel
from mpi_backend.kernels.flags import COUNTED, IN_DELTA, QUEUED
from mpi_backend.kernels.lists import SCAN_FACTOR
from mpi_backend.kernels.status import DONE
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.codegen.rule import RuleKernel
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.types import Type

_PLACES = "NEAR, FAR, PASSES, MOST, LIMIT, WIDTH, NEXT, ALONE, MOVES, UNTIL, ROWS, FOUND, BEST, TOOK = range(14)"
NEAR, FAR, PASSES, MOST, LIMIT, WIDTH, NEXT, ALONE, MOVES, UNTIL, ROWS, FOUND, BEST, TOOK = range(14)
"""Positions in ``order``: near and far rows, passes and their maximum, limit, width of a move; rows applied, found.

The kernel returns when no row is near, or before a pass that would apply more than ``UNTIL`` rows in all.

A single rank (``ALONE``) moves the limit itself. With several ranks the kernel returns the best far value in ``BEST``.
The next call has ``MOVES`` = 1 and the new limit in ``NEXT``, or ``MOVES`` = 2 to make every far row near: values
that are better than no limit (NaN, the largest number) are applied last. ``TOOK``: rows that the last move made near.
"""
FEW = 32
"""With several ranks, the limit also moves if near rows are fewer than 1/FEW of those of the last move."""
SPARSE = 8
"""If a move makes fewer than 1/SPARSE of the far rows near, the width doubles."""
_IS_FAR = IN_DELTA
"""The flag of a far row, which a run in place does not use otherwise."""


class OrderedKernel:
    """The rules of a stratum with the loop around them. ``near`` and ``far`` are lists of ids.

    ``column`` orders the rows by its values. Without it, all changed rows are near.
    """

    def __init__(self, facts: Facts, rules: Sequence[RuleKernel], column: int | None) -> None:
        [relation] = facts.stratum.relations
        self.column = column
        self.descends = column is not None and relation.dependents[column].definition.moves == "up"
        self.type: Type = type_of("bigint" if column is None else relation.dependents[column].column.type)
        self._rules = rules
        calls = {f"rule{n}": r.kernel for n, r in enumerate(rules)}
        arguments = ["cur", "order", "near", "far", "s_v", "s_f", "s_d", "s_n"]
        arguments += [f"r{n}_{a}" for n, r in enumerate(rules) for a in r.kernel.arguments[2:]]
        self.kernel = Kernel(arguments, self._body(), calls)

    @property
    def worst(self) -> str:
        """Return the source of the worst value."""
        if self.type.kind == "fraction":
            return "-np.inf" if self.descends else "np.inf"
        return str(np.iinfo(np.int64).min if self.descends else np.iinfo(np.int64).max)

    def arguments(self, loop: LoopState) -> list[Array]:
        """Return the arguments after ``cur``, ``order``, ``near`` and ``far``."""
        state = next(iter(loop.parts.values())).state
        out: list[Array] = [state.v, state.f, state.d, state.n]
        for r in self._rules:
            out += r.arguments(loop)[1:]
        return out

    def _body(self) -> str:
        code = Source()
        view = ".view(np.float64)" if self.type.kind == "fraction" else ""
        code.line(f"bounds = order{view}")
        if self.column is not None:
            code.line(f"value = s_v[{self.column}]{view}")
            code.line("best, limit = bounds[BEST], bounds[LIMIT]")
        code.line("near_n = order[NEAR]")
        code.line("far_n = order[FAR]")
        self._sort_changed(code)
        with code.block("while True:"):
            if self.column is None:
                with code.block("if near_n == 0:"):
                    code.line("break")
            else:
                is_better = self._better("best", "bounds[NEXT]")
                moves_early = f"order[MOVES] == 1 and order[ROWS] == 0 and far_n > 0 and {is_better}"
                with code.block(f"if near_n == 0 or ({FEW} * near_n < order[TOOK] and {moves_early}):"):
                    self._next_limit(code)
            if not self._rules:
                self._sort_near(code)
                code.line("break")
            with code.block("if order[ROWS] > 0 and order[ROWS] + near_n > order[UNTIL]:"):
                code.line("break")
            code.line("order[PASSES] += 1")
            with code.block("if order[PASSES] > order[MOST]:"):
                code.line("break")
            code.line("order[ROWS] += near_n")
            self._sort_near(code)
            for n, r in enumerate(self._rules):
                code.line("cur[ROW] = 0")
                code.line("cur[ROW_END] = near_n")
                rest = "".join(f", r{n}_{a}" for a in r.kernel.arguments[2:])
                code.line(f"rule{n}(cur, near{rest})")
                with code.block(f"if cur[STATUS] != {DONE}:"):
                    code.line("return")
            code.line("near_n = np.int64(0)")
            self._sort_changed(code)
        code.line("order[NEAR] = near_n")
        code.line("order[FAR] = far_n")
        if self.column is not None:
            code.line("bounds[BEST] = best")
        return f"{_PLACES}\n{code.text}"

    def _better(self, a: str, b: str) -> str:
        return f"{a} > {b}" if self.descends else f"{a} < {b}"

    def _next_limit(self, code: Source) -> None:
        """Write the move of the limit. With several ranks, a meeting has set the new limit.

        ``best`` is no worse than any far value; it may be the value of a far row that was applied since.
        """
        sign = "-" if self.descends else "+"
        with code.block("if far_n == 0:"):
            code.line("break")
        with code.block("if order[ALONE] != 0:"):
            code.line(f"bounds[NEXT] = best {sign} bounds[WIDTH]")
            code.line(f"takes_all = not ({self._better('best', 'bounds[NEXT]')})")
        with code.block("elif order[MOVES] == 0 or order[ROWS] > 0:"):
            code.line("break")
        with code.block(f"elif order[MOVES] == 1 and not ({self._better('best', 'bounds[NEXT]')}):"):
            code.line("bounds[LIMIT] = bounds[NEXT]  # no far row is within it")
            code.line("order[MOVES] = 0")
            code.line("break")
        with code.block("else:"):
            code.line("takes_all = order[MOVES] == 2")
        code.line("order[MOVES] = 0")
        code.line("applied = limit")
        with code.block("if not takes_all:"):
            code.line("bounds[LIMIT] = limit = bounds[NEXT]")
        code.line(f"best = bounds.dtype.type({self.worst})")
        code.line("kept = np.int64(0)")
        with code.block("for i in range(far_n):"):
            code.line("row = np.uint32(far[i])")
            with code.block(f"if {self._better('value[row]', 'applied')}:"):
                code.line(f"s_f[row] &= np.uint8({255 - _IS_FAR})")
            with code.block(f"elif takes_all or {self._better('value[row]', 'limit')}:"):
                code.line(f"s_f[row] = (s_f[row] & np.uint8({255 - _IS_FAR})) | np.uint8({QUEUED})")
                code.line("near[near_n] = row")
                code.line("near_n += 1")
            with code.block("else:"):
                with code.block(f"if {self._better('value[row]', 'best')}:"):
                    code.line("best = value[row]")
                code.line("far[kept] = row")
                code.line("kept += 1")
        with code.block(f"if {SPARSE} * near_n < kept and order[ALONE] != 0:"):
            code.line("bounds[WIDTH] *= 2")
        code.line("far_n = kept")
        code.line("order[TOOK] = near_n")
        with code.block("if near_n == 0:"):
            code.line("continue  # with the best of what is left")

    def _sort_near(self, code: Source) -> None:
        """Write the sorting of near rows, if they are many, so that readers access memory sequentially."""
        with code.block(f"if {SCAN_FACTOR} * near_n > len(s_f):"):
            code.line("near_n = np.int64(0)")
            with code.block("for row in range(len(s_f)):"):
                code.line("near[near_n] = row")
                code.line(f"near_n += (s_f[row] & {QUEUED}) != 0")

    def _sort_changed(self, code: Source) -> None:
        with code.block("for i in range(s_n[0]):"):
            code.line("row = np.uint32(s_d[i])  # as in a rule's loop")
            with code.block(f"if s_f[row] & {COUNTED} == 0:"):
                code.line(f"s_f[row] |= np.uint8({COUNTED})")
                code.line("order[FOUND] += 1")
            near = "True" if self.column is None else self._better("value[row]", "limit")
            with code.block(f"if {near}:"):
                code.line("near[near_n] = row")
                code.line("near_n += 1")
            with code.block("else:"):
                code.line(f"s_f[row] &= np.uint8({255 - QUEUED})")
                if self.column is not None:
                    with code.block(f"if {self._better('value[row]', 'best')}:"):
                        code.line("best = value[row]")
                with code.block(f"if s_f[row] & {_IS_FAR} == 0:"):
                    code.line(f"s_f[row] |= np.uint8({_IS_FAR})")
                    code.line("far[far_n] = row")
                    code.line("far_n += 1")
        code.line("s_n[0] = 0")
