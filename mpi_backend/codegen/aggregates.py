"""Write the code that aggregates a row into an accumulator: one pass removes duplicates and aggregates.

In generated code an accumulator ``h`` is arrays: ``h_v`` words by column and id, ``h_k`` 1 for each value that is not
null, ``h_f`` flags, ``h_d`` changed ids and ``h_n`` their number, ``h_p`` (traced runs) the origin of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.values import Value, equal, less, store, wrap
from mpi_backend.kernels.flags import PRESENT, QUEUED, SETTLED
from mpi_backend.state.identity import identity
from mpi_backend.state.types import type_of
from pyspark_paralagg.program.sets import is_set_merge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from mpi_backend.codegen.expressions import Expressions
    from mpi_backend.codegen.source import Source
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRelation

ARRAYS = ("v", "k", "f", "d", "n", "p")
"""The arrays of an accumulator (see the head of this module)."""


def has_sets(relation: PlannedRelation) -> bool:
    """Return whether a relation has a column of sets, which only the kernels of ``Combiner`` merge."""
    return any(d.custom is not None and is_set_merge(d.custom.combine[0]) for d in relation.dependents)


class Accumulating:
    """A writer of updates of the accumulator ``name``; ``nullable`` says which columns may hold nulls."""

    def __init__(
        self, name: str, relation: PlannedRelation, nullable: Sequence[bool], writer: Expressions, *, traced: bool
    ) -> None:
        self.name = name
        self.dependents = relation.dependents
        self.types = [type_of(d.column.type) for d in relation.dependents]
        self.nullable = nullable
        self.writer = writer
        self.traced = traced

    @property
    def code(self) -> Source:
        """Return the source that this writes to."""
        return self.writer.code

    @property
    def arrays(self) -> list[str]:
        """Return the accumulator's arguments of the kernel."""
        return [f"{self.name}_{a}" for a in ARRAYS]

    def declare(self) -> None:
        """Write variables for the columns."""
        for j, column_type in enumerate(self.types):
            view = ".view(np.float64)" if column_type.kind == "fraction" else ""
            self.code.line(f"{self._v(j)} = {self.name}_v[{j}]{view}")
            if self.nullable[j]:
                self.code.line(f"{self._k(j)} = {self.name}_k[{j}]")

    def read(self, j: int, row: str) -> Value:
        """Return column ``j`` of a row."""
        cell = self._cell(j, row)
        code = f"({cell} != 0)" if self.types[j].kind == "truth" else cell
        return Value(self.types[j], code, f"({self._k(j)}[{row}] == 0)" if self.nullable[j] else None)

    def join(self, row: str, values: Sequence[Value], origin: str) -> None:
        """Write the join of a row into a lattice. If any value changes, the row is listed as changed."""
        values = self._with_merged_sets(row, values)
        changed = self.code.keep("c", "False")
        self._join_columns(range(len(values)), row, values, changed)
        # A row that improves nothing may still be new. If all columns are plain, that needs identity values, so only
        # then are flags read.
        absent = f"({self.name}_f[{row}] & {PRESENT}) == 0"
        is_plain = all(d.order is None and d.custom is None for d in self.dependents)
        if is_plain and not any(self.nullable):
            equals_identity = [self._is_identity(j, v.code) for j, v in enumerate(values)]
            absent = " and ".join([*equals_identity, absent])
        with self.code.block(f"if {changed} or ({absent}):"):
            self._mark(row, origin)

    def add(self, row: str, values: Sequence[Value], origin: str) -> None:
        """Write the addition of a row to sums; other columns join as in a lattice. The row is always listed."""
        values = self._with_merged_sets(row, values)
        ignored = self.code.keep("c", "False")
        sums = [j for j, d in enumerate(self.dependents) if d.definition.is_sum]
        for j in sums:
            with self._if_present(values[j].null):
                self.code.line(f"{self._cell(j, row)} = {self._sum(j, self._cell(j, row), values[j].code)}")
                self._set_valid(j, row)
        self._join_columns([j for j in range(len(values)) if j not in sums], row, values, ignored)
        self._mark(row, origin)

    def add_change(self, row: str, values: Sequence[Value], origin: str, difference: str) -> None:
        """Write the addition of a change to totals. A row that changes is listed; ``difference`` sums up Σ|Δ|."""
        values = self._with_merged_sets(row, values)
        changed = self.code.keep("c", f"({self.name}_f[{row}] & {PRESENT}) == 0")
        for j, d in enumerate(self.dependents):
            if d.custom is not None and d.part == 0:
                self._combine(j, row, values, changed)
            if not d.definition.is_sum:
                continue
            with self._if_present(values[j].null):
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

    def _join_columns(self, columns: Iterable[int], row: str, values: Sequence[Value], changed: str) -> None:
        """Write the join of columns as in a lattice; a carried column goes with the column that orders it."""
        for j in columns:
            d = self.dependents[j]
            if d.custom is not None:
                if d.part == 0:
                    self._combine(j, row, values, changed)
            elif d.order is None:
                with self._if_present(values[j].null):
                    if self._carried(j):
                        self._lexicographic(j, row, values, changed)
                    else:
                        self._single(j, row, values[j], changed)

    def _single(self, j: int, row: str, value: Value, changed: str) -> None:
        """Write the join of a single column: keep the better value."""
        if not self.nullable[j]:
            self._improve(j, row, value.code, changed)
            return
        with self.code.block(f"if {self._k(j)}[{row}] == 0:"):
            identity_word = f"np.int64({identity(self.dependents[j])})"
            self._put(j, row, self._merge(j, identity_word, value.code) or value.code)
            self._set_valid(j, row)
            self.code.line(f"{changed} = True")
        with self.code.block("else:"):
            self._improve(j, row, value.code, changed)

    def _improve(self, j: int, row: str, new: str, changed: str) -> None:
        old = self._cell(j, row)
        merged = self._merge(j, old, new)
        if merged is not None:
            with self.code.block(f"if {merged} != {old}:"):
                self.code.line(f"{old} = {merged}")
                self.code.line(f"{changed} = True")
            return
        better = self._better(j, new, old)
        if self.types[j].kind == "text" and self.writer.makes_strings and not self.nullable[j]:
            better = f"{old} == {identity(self.dependents[j])} or {better}"  # the identity is no text
        with self.code.block(f"if {better}:"):
            self._put(j, row, new)
            self.code.line(f"{changed} = True")

    def _carried(self, j: int) -> list[int]:
        return [c for c, other in enumerate(self.dependents) if other.order == self.dependents[j].column.name]

    def _lexicographic(self, o: int, row: str, values: Sequence[Value], changed: str) -> None:
        """Write the join of (order, carried...): a better order replaces all; on a tie the smallest value wins.

        A carried column may carry others itself, which go with it. Null loses.
        """
        old, new = self._cell(o, row), values[o].code
        present = f"{self._k(o)}[{row}] != 0" if self.nullable[o] else f"({self.name}_f[{row}] & {PRESENT}) != 0"
        with self.code.block(f"if not ({present}) or {self._better(o, new, old)}:"):
            self._replace(o, row, values, changed)
        with self.code.block(f"elif {equal(self.types[o], new, self._word(o, old))}:"):
            for c in self._carried(o):
                self._on_tie(c, row, values, changed)

    def _replace(self, j: int, row: str, values: Sequence[Value], changed: str) -> None:
        self._put(j, row, values[j].code)
        if self.nullable[j]:
            self.code.line(f"{self._k(j)}[{row}] = np.uint8({values[j].present})")
        self.code.line(f"{changed} = True")
        for c in self._carried(j):
            self._replace(c, row, values, changed)

    def _on_tie(self, j: int, row: str, values: Sequence[Value], changed: str) -> None:
        new, old = values[j].code, self._word(j, self._cell(j, row))
        wins = less(self.types[j], new, old, makes_strings=self.writer.makes_strings)
        empty = f"{self._k(j)}[{row}] == 0" if self.nullable[j] else "False"
        with self.code.block(f"if {values[j].present} and ({empty} or {wins}):"):
            self._replace(j, row, values, changed)
        if carried := self._carried(j):
            same = f"(not ({empty}) and {equal(self.types[j], new, old)}) if {values[j].present} else ({empty})"
            with self.code.block(f"elif {same}:"):
                for c in carried:
                    self._on_tie(c, row, values, changed)

    def _with_merged_sets(self, row: str, values: Sequence[Value]) -> list[Value]:
        """Write the merges of sets with those of ``row``, and return the values with the results in their place.

        A row whose result is missing is left out, and combined later. So no cell of ``row`` has changed yet.
        """
        result = list(values)
        for j, d in enumerate(self.dependents):
            if d.custom is None or not is_set_merge(d.custom.combine[0]):
                continue
            new = values[j]
            merged, null = self.code.keep("z", new.code), new.null and self.code.keep("n", new.null)
            differs = [f"({self.name}_f[{row}] & {PRESENT}) != 0", f"{self._cell(j, row)} != {merged}"]
            differs += [f"{self._k(j)}[{row}] != 0"] if self.nullable[j] else []
            differs += [f"not {null}"] if null else []
            with self.code.block(f"if {' and '.join(differs)}:"):
                sides = {"old.value": self._cell(j, row), "new.value": merged}
                bound = {name: Value(self.types[j], code) for name, code in sides.items()}
                self.code.line(f"{merged} = {self.writer.over(bound).value(d.custom.combine[0]).code}")
            result[j] = Value(self.types[j], merged, null)
        return result

    def _combine(self, first: int, row: str, values: Sequence[Value], changed: str) -> None:
        """Write a user-defined aggregator. A row with a null in one of its columns contributes nothing."""
        custom = self.dependents[first].custom
        assert custom is not None  # noqa: S101 - for the type checker
        parts = range(first, first + len(custom.columns))
        nulls = [values[j].null for j in parts if values[j].null is not None]
        with self._if_present(" or ".join(n for n in nulls if n) or None):
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
                inner = self.writer.over(bound)
                if custom.improves is not None:
                    with self.code.block(f"if {inner.holds(custom.improves)}:"):
                        self._set_all(parts, row, self._combined(inner, custom.name, custom.combine), changed)
                else:
                    is_merged = is_set_merge(custom.combine[0])  # see _with_merged_sets
                    codes = [values[first].code] if is_merged else self._combined(inner, custom.name, custom.combine)
                    old_codes = [bound[f"old.{c}"].code for c in custom.columns]
                    differs = " or ".join(
                        f"not {equal(self.types[j], o, c)}" for j, o, c in zip(parts, old_codes, codes, strict=True)
                    )
                    with self.code.block(f"if {differs}:"):
                        self._set_all(parts, row, codes, changed)

    def _combined(self, inner: Expressions, name: str, exprs: Sequence[object]) -> list[str]:
        out = []
        for expr in exprs:
            value = inner.value(expr)  # type: ignore[arg-type]
            if value.null is not None:
                inner.fail(value.null, "PARALAGG_AGGREGATOR_NULL", f"combine of the aggregator {name} returns null")
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
        return less(self.types[j], a, b, makes_strings=self.writer.makes_strings)

    def _merge(self, j: int, old: str, new: str) -> str | None:
        """Return the variable of the merged value; None if the aggregate keeps one of the two."""
        definition = self.dependents[j].definition
        if not definition.merged:
            return None
        merged = self.code.keep("z", definition.merged.format(old=old, new=new))
        if definition.overflow:
            bits = self.types[j].bits
            self.writer.fail(f"{merged} < 0 or {merged} >> {bits - 1} != 0", "PARALAGG_OVERFLOW", definition.overflow)
        return merged

    def _sum(self, j: int, a: str, b: str) -> str:
        column_type: Type = self.types[j]
        if column_type.kind == "fraction":
            return f"{a} + {b}" if column_type.bits == 64 else f"np.float64(np.float32({a} + {b}))"
        z = self.code.keep("z", wrap(a, "+", b))
        message = f"a sum of {column_type.name} overflows"
        if column_type.is_decimal:
            self.writer.fail(f"abs({z}) >= {10**column_type.precision}", "PARALAGG_OVERFLOW", message)
        elif column_type.bits == 64:
            self.writer.fail(f"(({a} ^ {z}) & ({b} ^ {z})) < 0", "PARALAGG_OVERFLOW", message)
        else:
            unused = 64 - column_type.bits
            self.writer.fail(f"({z} << {unused}) >> {unused} != {z}", "PARALAGG_OVERFLOW", message)
        return z

    def _if_present(self, null: str | None) -> AbstractContextManager[None]:
        return self.code.block("if True:" if null is None else f"if not ({null}):")

    def _mark(self, row: str, origin: str) -> None:
        marked = QUEUED | PRESENT
        flags = f"{self.name}_f[{row}]"
        with self.code.block(f"if ({flags} & {marked}) != {marked}:"):
            with self.code.block(f"if ({flags} & {QUEUED}) == 0:"):
                self.code.line(f"{self.name}_d[{self.name}_n[0]] = {row}")
                self.code.line(f"{self.name}_n[0] += 1")
            self.code.line(f"{flags} = {flags} & np.uint8({255 - SETTLED}) | np.uint8({marked})")
        if self.traced:
            self.code.line(f"{self.name}_p[{row}] = {origin}")
