"""Write the innermost code of a rule: aggregate the derived row into its target, or append it to the buffer.

The Plan says where the target is: it is the driver's row, or was resolved at load (a ghost is the complement of its
id), or its key is computed and looked up outside of the loop. Rows with sets always go into the buffer, with their
target in place of the key, because Python merges sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.aggregates import has_sets
from mpi_backend.codegen.values import Value
from mpi_backend.state.types import type_of
from pyspark_paralagg.program.expr import Col, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mpi_backend.codegen.aggregates import Accumulating
    from mpi_backend.codegen.arguments import Arguments
    from mpi_backend.codegen.expressions import Expressions
    from mpi_backend.codegen.source import Source
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.shape import Shape
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRule, Probe


class Head:
    """A writer of the code for the rows that a rule derives."""

    def __init__(
        self, facts: Facts, shape: Shape, rule: PlannedRule, writer: Expressions, arguments: Arguments, *,
        traced: bool,
    ) -> None:  # fmt: skip
        self._facts = facts
        self._rule = rule
        self._name = rule.head
        self._keys = len(facts.relations[rule.head].keys)
        self._form = shape.relations[rule.head]
        self._writer = writer
        self._arguments = arguments
        self._traced = traced
        self._early_values: dict[int, Value] = {}
        self.defers = rule.target.kind != "computed" and has_sets(facts.relations[rule.head])

    @property
    def row_words(self) -> int:
        """Return the number of words of a row in the buffer: key or target, then values."""
        key_words = 1 if self.defers else self._form.key_words
        return max(1, key_words + self._form.value_words(traced=self._traced))

    def compute_early(self, last: Probe, bound: Collection[str]) -> None:
        """Compute values that do not depend on the last probe once for each of its groups, not for each row."""
        for j, expr in enumerate(self._rule.emit[self._keys :]):
            names = columns(expr)
            if not isinstance(expr, Col) and names <= set(bound) and not names & set(last.binds):
                self._early_values[j] = self._writer.value(expr)

    def emit(self, rows: Mapping[int, str], position: int, leave: Callable[[], None]) -> None:
        """Write the code for a row. ``rows`` has each static probe's row by step; ``leave`` suspends the kernel."""
        if self._rule.target.kind == "computed":
            keys = [self._writer.value(e) for e in self._rule.emit[: self._keys]]
            self._append_to_buffer(keys, self._form.keys, leave)
            return
        if self.defers:
            row = "np.int64(u)" if self._rule.target.kind == "same" else f"np.int64({self._target(rows, position)})"
            self._append_to_buffer([Value(type_of("bigint"), self._code.keep("h", row))], [False], leave)
            return
        name = self._name
        values = self._values()
        local = self._arguments.accumulator("h", name, lambda loop: loop.part(name).pending, self._writer)
        if self._rule.target.kind == "same":
            self._combine(local, "u", values)
            return
        ghost = self._arguments.accumulator("g", name, lambda loop: loop.part(name).ghost, self._writer)
        target = self._code.keep("h", self._target(rows, position))
        with self._code.block(f"if {target} >= 0:"):
            self._combine(local, self._code.keep("h", f"np.uint32({target})"), values)
        with self._code.block("else:"):
            self._combine(ghost, self._code.keep("h", f"np.uint32(~{target})"), values)

    def _target(self, rows: Mapping[int, str], position: int) -> str:
        """Return the expression of a target that was resolved at load."""
        self._arguments.add("targets", lambda loop: loop.targets[position])
        assert self._rule.target.step is not None  # noqa: S101 - for the type checker
        return f"targets[{rows[self._rule.target.step]}]"

    @property
    def _code(self) -> Source:
        return self._writer.code

    def _values(self) -> list[Value]:
        emitted = self._rule.emit[self._keys :]
        return [self._early_values.get(j) or self._writer.value(e) for j, e in enumerate(emitted)]

    def _combine(self, into: Accumulating, row: str, values: list[Value]) -> None:
        (into.join if self._facts.is_lattice else into.add)(row, values, "origin")

    def _append_to_buffer(self, keys: list[Value], key_nulls: Sequence[bool], leave: Callable[[], None]) -> None:
        """Write the derived row into the buffer. If the buffer is full, the kernel is suspended."""
        code = self._code
        self._arguments.add("out", lambda loop: loop.out)
        values = self._values()
        with code.block(f"if (out_n + 1) * {self.row_words} > len(out):"):
            code.line("cur[STATUS] = FULL")
            leave()
        at = code.keep("o", f"out_n * {self.row_words}")
        position = 0
        for part_values, nulls in ((keys, key_nulls), (values, self._form.dependents)):
            for n, v in enumerate(part_values):
                put_word(code, v.type, "out", f"{at} + {position + n}", v.code)
                if v.null is not None:  # a null is stored as 0, so that equal keys have equal words
                    with code.block(f"if {v.null}:"):
                        code.line(f"out[{at} + {position + n}] = 0")
            position += len(part_values)
            if any(nulls):
                bits = [f"(np.int64({v.null}) << {n})" for n, v in enumerate(part_values) if v.null is not None]
                code.line(f"out[{at} + {position}] = {' | '.join(bits) or '0'}")
                position += 1
        if self._traced:
            code.line(f"out[{at} + {position}] = origin")
        code.line("out_n += 1")


def put_word(code: Source, value_type: Type, words: str, place: object, value: str) -> None:
    """Write a value into words in the form of keys: one zero, one NaN."""
    if value_type.kind == "fraction":
        code.line(f"{words}_f[{place}] = {value} + 0.0 if {value} == {value} else np.nan")
    elif value_type.kind == "truth":
        code.line(f"{words}[{place}] = np.int64({value})")
    else:
        code.line(f"{words}[{place}] = {value}")
