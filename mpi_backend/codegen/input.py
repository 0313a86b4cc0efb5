"""Compute the columns of an input from its source's rows, and drop the rows that its filters reject.

Python computes functions of texts and functors. A pass of the kernel collects the calls whose result is missing and
goes on with the next row; the next pass begins at the first row that lacked one. So a functor gets whole arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.values import Value, from_word
from mpi_backend.codegen.writer import Sites
from mpi_backend.kernels.compiler import Kernel
from mpi_backend.kernels.status import DONE, FAILED, LENGTH, STATUS, WANTED, WORK
from mpi_backend.state.strings import MEMO_PARTS
from mpi_backend.state.types import Column, type_of, words_of_doubles
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.program.program import Input

_MAX_WANTED = 1 << 16
"""The largest number of missing results that a pass collects."""


def evaluate(
    spec: Input, columns: Sequence[Column], count: int, strings: Strings, *, ansi: bool
) -> tuple[list[Column], int]:
    """Return the columns and the row count of an input. ``columns`` are its source's, with texts of ``strings``."""
    return _Evaluation(spec, columns, count, strings, ansi=ansi).run()


class _Evaluation:
    def __init__(self, spec: Input, columns: Sequence[Column], count: int, strings: Strings, *, ansi: bool) -> None:
        self.spec = spec
        self.columns = columns
        self.count = count
        self.strings = strings
        self.sites = Sites()
        self.code = Source()
        self.variables: dict[str, Value] = {}
        self.writer = Expressions(
            self.code, self.variables, self.sites, ansi=ansi, makes_strings=True, leave=self._leave
        )
        self.values: list[Value] = []

    def run(self) -> tuple[list[Column], int]:
        kernel, place = self._kernel(), self.spec.name or f"input {self.spec.id}"
        out = np.zeros((len(self.spec.exprs), self.count), np.int64)
        nulls = np.zeros((len(self.spec.exprs), self.count), np.bool_)
        cur = np.zeros(LENGTH, np.int64)
        cur[1] = self.count
        calls = self.sites.calls
        width = max((len(c.args) for c in calls), default=0)
        wanted = np.zeros((min(self.count, _MAX_WANTED) if calls else 1, 1 + width), np.int64)
        while True:
            kernel(cur, *self._arguments(), out, nulls, wanted)
            status = int(cur[STATUS])
            if status == DONE:
                break
            if status >= FAILED:
                code, message = self.sites.errors[status - FAILED]
                raise FixpointError(code, message, place=place)
            rows = wanted[: cur[WORK]]
            for n, call in enumerate(calls):
                self.strings.evaluate_calls(call, rows[rows[:, 0] == WANTED + n, 1 : 1 + len(call.args)], place)
        size = int(cur[3])
        return [self._column(n, out[n, :size], nulls[n, :size]) for n in range(len(self.spec.exprs))], size

    def _column(self, n: int, words: Array, nulls: Array) -> Column:
        column_type = type_of(self.spec.exprs[n].type)
        plain = words_of_doubles(words.view(np.float64).copy()) if column_type.kind == "fraction" else words.copy()
        return Column(column_type, plain, nulls.copy() if nulls.any() else None)

    def _kernel(self) -> Kernel:
        code = self.code
        for c, (column, like) in enumerate(zip(self.spec.columns, self.columns, strict=True)):
            name = f"c{c}d" if like.type.kind == "fraction" else f"c{c}"
            if like.type.kind == "fraction":
                code.line(f"{name} = c{c}.view(np.float64)")
            null = f"z{c}[i]" if like.nulls is not None else None
            self.variables[column.name] = Value(like.type, from_word(like.type, name, name, "i"), null)
        code.line("i = cur[ROW]")
        code.line("out_n = cur[OUT]")
        code.line("missing = 0")
        with code.block("while i < cur[ROW_END]:"):
            self._filtered()
            code.line("i += 1")
        with code.block("if missing > 0:"):
            code.line("cur[WORK] = missing")
            code.line("return")
        code.line("cur[OUT] = out_n")
        code.line(f"cur[STATUS] = {DONE}")
        arguments = [f"c{c}" for c in range(len(self.columns))] + [f"z{c}" for c in range(len(self.columns))]
        arguments += ["S_offsets", "S_data", "literals"]
        for n in range(len(self.sites.calls)):
            arguments += [f"T{n}_{part}" for part in MEMO_PARTS]
        return Kernel(["cur", *arguments, "out", "nulls", "wanted"], "cur_f = cur.view(np.float64)\n" + code.text)

    def _filtered(self) -> None:
        for condition in self.spec.filters:  # not nested: Python allows a hundred levels
            with self.code.block(f"if not {self.writer.holds(condition)}:"):
                self.code.line("i += 1")
                self.code.line("continue")
        for j, value in enumerate([self.writer.value(e) for e in self.spec.exprs]):
            target = f"out[{j}].view(np.float64)" if value.type.kind == "fraction" else f"out[{j}]"
            code = f"np.int64({value.code})" if value.type.kind == "truth" else value.code
            self.code.line(f"{target}[out_n] = {code}")
            if value.null is not None:
                self.code.line(f"nulls[{j}, out_n] = {value.null}")
        self.code.line("out_n += 1")

    def _leave(self) -> None:
        """Write the code that collects the missing result, whose site is the status, and goes on with the next row."""
        with self.code.block("if missing == 0:"):
            self.code.line("cur[ROW] = i")
            self.code.line("cur[OUT] = out_n")
        self.code.line("wanted[missing, 0] = cur[STATUS]")
        with self.code.block("for part in range(1, wanted.shape[1]):"):
            self.code.line("wanted[missing, part] = cur[CALL + part - 1]")
        self.code.line("missing += 1")
        with self.code.block("if missing == len(wanted):"):
            self.code.line("break")
        self.code.line("i += 1")
        self.code.line("continue")

    def _arguments(self) -> list[Array]:
        none = np.zeros(0, np.bool_)
        memos = [self.strings.memo(c) for c in self.sites.calls]
        return [
            *(np.ascontiguousarray(c.words) for c in self.columns),
            *(none if c.nulls is None else c.nulls for c in self.columns),
            self.strings.offsets, self.strings.data, self.strings.words_of(self.sites.literals),
            *(memo.array(part) for memo in memos for part in MEMO_PARTS),
        ]  # fmt: skip
