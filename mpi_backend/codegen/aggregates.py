"""Source that aggregates a row into an accumulator: deduplication and aggregation are one pass over what comes.

An accumulator called ``h`` is arrays in generated code: ``h_v`` words by column and id, ``h_k`` what is not null,
``h_f`` flags, ``h_d`` ids that changed and ``h_n`` their number, ``h_p`` (traced runs) where each row came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.values import Value, equal, less, store, wrapped
from mpi_backend.kernels.flags import PRESENT, QUEUED
from mpi_backend.state.identity import identity
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from mpi_backend.codegen.source import Source
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRelation

ARRAYS = ("v", "k", "f", "d", "n", "p")
"""The arrays of an accumulator, as the head of this module explains them."""


class Accumulating:
    """Writes what a row does to the accumulator ``name``; ``nullable`` says which columns may hold nulls."""

    def __init__(
        self, name: str, of: PlannedRelation, nullable: Sequence[bool], to: Expressions, *, traced: bool
    ) -> None:
        self.name = name
        self.dependents = of.dependents
        self.types = [type_of(d.column.type) for d in of.dependents]
        self.nullable = nullable
        self.to = to
        self.traced = traced

    @property
    def code(self) -> Source:
        """Where the source goes."""
        return self.to.code

    @property
    def arrays(self) -> list[str]:
        """The kernel's arguments for it."""
        return [f"{self.name}_{a}" for a in ARRAYS]

    def declare(self) -> None:
        """Columns as variables."""
        for j, of in enumerate(self.types):
            view = ".view(np.float64)" if of.kind == "fraction" else ""
            self.code.line(f"{self._v(j)} = {self.name}_v[{j}]{view}")
            if self.nullable[j]:
                self.code.line(f"{self._k(j)} = {self.name}_k[{j}]")

    def read(self, j: int, row: str) -> Value:
        """Column ``j`` of a row."""
        cell = self._cell(j, row)
        code = f"({cell} != 0)" if self.types[j].kind == "truth" else cell
        return Value(self.types[j], code, f"({self._k(j)}[{row}] == 0)" if self.nullable[j] else None)

    def join(self, row: str, values: Sequence[Value], origin: str) -> None:
        """One row into a lattice; it is listed as changed if it changed anything."""
        changed = self.code.keep("c", "False")
        carriers = [j for j, d in enumerate(self.dependents) if d.order is not None]
        own = [j for j, d in enumerate(self.dependents) if d.custom is not None]
        plain = [j for j in range(len(values)) if j not in carriers and j not in own]
        for first in own:
            if self.dependents[first].part == 0:
                self._combine(first, row, values, changed)
        for j in plain:
            names = {self.dependents[c].order for c in carriers}
            carried = [c for c in carriers if self.dependents[c].order == self.dependents[j].column.name]
            with self._where(values[j].null):
                if self.dependents[j].column.name in names:
                    self._lexicographic(j, carried, row, values, changed)
                else:
                    self._single(j, row, values[j], changed)
        # A row that improves nothing is still new if there was none; where all columns are plain, only one whose values
        # are what an empty row holds can be that, so flags need not be read for the others.
        absent = f"({self.name}_f[{row}] & {PRESENT}) == 0"
        if len(plain) == len(values) and not any(self.nullable):
            same = [self._is_identity(j, values[j].code) for j in plain]
            absent = " and ".join([*same, absent])
        with self.code.block(f"if {changed} or ({absent}):"):
            self._mark(row, origin)

    def add(self, row: str, values: Sequence[Value], origin: str) -> None:
        """One row into running sums; other columns as in a lattice. It is always listed."""
        ignored = self.code.keep("c", "False")
        for j, d in enumerate(self.dependents):
            if d.custom is not None:
                if d.part == 0:
                    self._combine(j, row, values, ignored)
                continue
            with self._where(values[j].null):
                if d.definition.is_sum:
                    self.code.line(f"{self._cell(j, row)} = {self._sum(j, self._cell(j, row), values[j].code)}")
                    self._set_valid(j, row)
                else:
                    self._single(j, row, values[j], ignored)
        self._mark(row, origin)

    def add_change(self, row: str, values: Sequence[Value], origin: str, difference: str) -> None:
        """A difference to a total: listed if the total is another one then; ``difference`` sums up how much."""
        changed = self.code.keep("c", f"({self.name}_f[{row}] & {PRESENT}) == 0")
        for j, d in enumerate(self.dependents):
            if d.custom is not None and d.part == 0:
                self._combine(j, row, values, changed)
            if not d.definition.is_sum:
                continue
            with self._where(values[j].null):
                total = self.code.keep("z", self._sum(j, self._cell(j, row), values[j].code))
                if self.nullable[j]:
                    with self.code.block(f"if {self._k(j)}[{row}] == 0:"):
                        self._set_valid(j, row)
                        self.code.line(f"{changed} = True")
                with self.code.block(f"if not {equal(self.types[j], total, self._cell(j, row))}:"):
                    self.code.line(f"{self._cell(j, row)} = {total}")
                    self.code.line(f"{changed} = True")
                scale = f" / {float(10 ** self.types[j].scale)}" if self.types[j].scale else ""
                self.code.line(f"{difference} += abs(np.float64({values[j].code})){scale}")
        with self.code.block(f"if {changed}:"):
            self._mark(row, origin)

    # --- columns ------------------------------------------------------------------------------------------------------

    def _single(self, j: int, row: str, value: Value, changed: str) -> None:
        """A column of its own: put the better value there."""
        if not self.nullable[j]:
            self._improve(j, row, value.code, changed)
            return
        with self.code.block(f"if {self._k(j)}[{row}] == 0:"):
            identity_word = f"np.int64({identity(self.dependents[j])})"
            self._put(j, row, self._merged(j, identity_word, value.code) or value.code)
            self._set_valid(j, row)
            self.code.line(f"{changed} = True")
        with self.code.block("else:"):
            self._improve(j, row, value.code, changed)

    def _improve(self, j: int, row: str, new: str, changed: str) -> None:
        old = self._cell(j, row)
        merged = self._merged(j, old, new)
        if merged is not None:
            with self.code.block(f"if {merged} != {old}:"):
                self.code.line(f"{old} = {merged}")
                self.code.line(f"{changed} = True")
            return
        better = self._better(j, new, old)
        if self.types[j].kind == "text" and self.to.makes_strings and not self.nullable[j]:
            better = f"{old} == {identity(self.dependents[j])} or {better}"  # which is no text to compare with
        with self.code.block(f"if {better}:"):
            self._put(j, row, new)
            self.code.line(f"{changed} = True")

    def _lexicographic(self, o: int, carried: list[int], row: str, values: Sequence[Value], changed: str) -> None:
        """(order, carried...): a better order replaces all; at a tie the smallest carried value wins, null last."""
        old, new = self._cell(o, row), values[o].code
        present = f"{self._k(o)}[{row}] != 0" if self.nullable[o] else f"({self.name}_f[{row}] & {PRESENT}) != 0"
        with self.code.block(f"if not ({present}) or {self._better(o, new, old)}:"):
            self._put(o, row, new)
            self._set_valid(o, row)
            self.code.line(f"{changed} = True")
            for c in carried:
                self._put(c, row, values[c].code)
                if self.nullable[c]:
                    self.code.line(f"{self._k(c)}[{row}] = np.uint8({values[c].present})")
        with self.code.block(f"elif {equal(self.types[o], new, self._word(o, old))}:"):
            for c in carried:
                wins = less(
                    self.types[c],
                    values[c].code,
                    self._word(c, self._cell(c, row)),
                    makes_strings=self.to.makes_strings,
                )
                condition = f"({self._k(c)}[{row}] == 0 or {wins})" if self.nullable[c] else wins
                with self.code.block(f"if {values[c].present} and {condition}:"):
                    self._put(c, row, values[c].code)
                    self._set_valid(c, row)
                    self.code.line(f"{changed} = True")

    def _combine(self, first: int, row: str, values: Sequence[Value], changed: str) -> None:
        """A user's own aggregator. A row with a null in one of its columns contributes nothing."""
        custom = self.dependents[first].custom
        assert custom is not None  # noqa: S101 - for the type checker
        parts = range(first, first + len(custom.columns))
        nulls = [values[j].null for j in parts if values[j].null is not None]
        with self._where(" or ".join(n for n in nulls if n) or None):
            empty = (
                f"{self._k(first)}[{row}] == 0" if self.nullable[first] else f"({self.name}_f[{row}] & {PRESENT}) == 0"
            )
            with self.code.block(f"if {empty}:"):
                self._set_all(parts, row, [values[j].code for j in parts], changed)
            with self.code.block("else:"):
                bound = {f"new.{custom.columns[n]}": Value(self.types[j], values[j].code) for n, j in enumerate(parts)}
                for n, j in enumerate(parts):
                    bound[f"old.{custom.columns[n]}"] = Value(
                        self.types[j], self.code.keep("o", self.read(j, row).code)
                    )
                inner = Expressions(
                    self.code,
                    bound,
                    self.to.sites,
                    ansi=self.to.ansi,
                    makes_strings=self.to.makes_strings,
                    leave=self.to.leave,
                )
                if custom.improves is not None:
                    with self.code.block(f"if {inner.holds(custom.improves)}:"):
                        self._set_all(parts, row, self._combined(inner, custom.name, custom.combine), changed)
                else:
                    codes = self._combined(inner, custom.name, custom.combine)
                    olds = [bound[f"old.{c}"].code for c in custom.columns]
                    differs = " or ".join(
                        f"not {equal(self.types[j], o, c)}" for j, o, c in zip(parts, olds, codes, strict=True)
                    )
                    with self.code.block(f"if {differs}:"):
                        self._set_all(parts, row, codes, changed)

    def _combined(self, inner: Expressions, name: str, exprs: Sequence[object]) -> list[str]:
        out = []
        for expr in exprs:
            value = inner.value(expr)  # type: ignore[arg-type]
            if value.null is not None:
                inner.fail(value.null, "PARALAGG_AGGREGATOR_NULL", f"combine of the aggregator {name} gives null")
            out.append(self.code.keep("z", value.code))
        return out

    def _set_all(self, parts: range, row: str, codes: list[str], changed: str) -> None:
        for j, code in zip(parts, codes, strict=True):
            self._put(j, row, code)
            self._set_valid(j, row)
        self.code.line(f"{changed} = True")

    # --- cells --------------------------------------------------------------------------------------------------------

    def _v(self, j: int) -> str:
        return f"{self.name}_v{j}"

    def _k(self, j: int) -> str:
        return f"{self.name}_k{j}"

    def _cell(self, j: int, row: str) -> str:
        return f"{self._v(j)}[{row}]"

    def _is_identity(self, j: int, code: str) -> str:
        word = identity(self.dependents[j])
        if self.types[j].kind == "truth":
            return f"({code}) == {bool(word)}"
        if self.types[j].kind != "fraction":
            return f"{code} == {word}"
        value = np.int64(word).view(np.float64)
        return (
            f"{code} != {code}"
            if np.isnan(value)
            else f"{code} == {'-np.inf' if np.isinf(value) else repr(float(value))}"
        )

    def _word(self, j: int, cell: str) -> str:
        return f"({cell} != 0)" if self.types[j].kind == "truth" else cell

    def _put(self, j: int, row: str, code: str) -> None:
        self.code.line(store(self.types[j], self._v(j), self._v(j), row, code))

    def _set_valid(self, j: int, row: str) -> None:
        if self.nullable[j]:
            self.code.line(f"{self._k(j)}[{row}] = np.uint8(1)")

    def _better(self, j: int, new: str, old: str) -> str:
        a, b = (new, old) if self.dependents[j].definition.moves == "down" else (old, new)
        if self.types[j].kind == "truth":
            return f"(np.int64({a}) < np.int64({b}))"
        return less(self.types[j], a, b, makes_strings=self.to.makes_strings)

    def _merged(self, j: int, old: str, new: str) -> str | None:
        """The variable of what is held then, where that is neither of the two."""
        definition = self.dependents[j].definition
        if not definition.merged:
            return None
        z = self.code.keep("z", definition.merged.format(old=old, new=new))
        if definition.overflow:
            bits = self.types[j].bits
            self.to.fail(f"{z} < 0 or {z} >> {bits - 1} != 0", "PARALAGG_OVERFLOW", definition.overflow)
        return z

    def _sum(self, j: int, a: str, b: str) -> str:
        of: Type = self.types[j]
        if of.kind == "fraction":
            return f"{a} + {b}" if of.bits == 64 else f"np.float64(np.float32({a} + {b}))"
        z = self.code.keep("z", wrapped(a, "+", b))
        what = f"a sum of {of.name} overflows"
        if of.is_decimal:
            self.to.fail(f"abs({z}) >= {10**of.precision}", "PARALAGG_OVERFLOW", what)
        elif of.bits == 64:
            self.to.fail(f"(({a} ^ {z}) & ({b} ^ {z})) < 0", "PARALAGG_OVERFLOW", what)
        else:
            self.to.fail(f"({z} << {64 - of.bits}) >> {64 - of.bits} != {z}", "PARALAGG_OVERFLOW", what)
        return z

    def _where(self, null: str | None) -> AbstractContextManager[None]:
        return self.code.block("if True:" if null is None else f"if not ({null}):")

    def _mark(self, row: str, origin: str) -> None:
        both = QUEUED | PRESENT
        flags = f"{self.name}_f[{row}]"
        with self.code.block(f"if ({flags} & {both}) != {both}:"):
            with self.code.block(f"if ({flags} & {QUEUED}) == 0:"):
                self.code.line(f"{self.name}_d[{self.name}_n[0]] = {row}")
                self.code.line(f"{self.name}_n[0] += 1")
            self.code.line(f"{flags} |= np.uint8({both})")
        if self.traced:
            self.code.line(f"{self.name}_p[{row}] = {origin}")
