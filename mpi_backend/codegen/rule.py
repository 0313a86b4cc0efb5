"""Write the loop of a rule over its driver's rows: steps nest, and the innermost passes the derived row to the head.

If the target of the row is already located (``same``, ``resolved``), the loop aggregates the row. Otherwise the row
goes into a buffer. When the buffer is full, the kernel is suspended, because tables grow outside of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.arguments import Arguments
from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.head import Head, put_word
from mpi_backend.codegen.source import Source, written_names
from mpi_backend.codegen.values import Value, from_word
from mpi_backend.codegen.writer import Sites
from mpi_backend.kernels.compiler import Kernel
from mpi_backend.kernels.flags import IN_DELTA, PRESENT, QUEUED
from mpi_backend.kernels.status import DONE, MAX_LOOPS
from mpi_backend.state.shape import column_types
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.plan.plan import Filter, Probe

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.aggregates import Accumulating
    from mpi_backend.codegen.arguments import Getter
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.shape import Shape

_MAX_NESTED_LOOPS, _MAX_LEVELS = 12, 40
"""The nested loops and levels of a generated function; Python allows 20 loops and 100 levels."""


class RuleKernel:
    """One rule of a stratum, compiled. ``dequeues``: it is the first rule that reads a delta which rules also write."""

    _CARRIED = "out_n"

    def __init__(self, facts: Facts, shape: Shape, position: int, *, ansi: bool, traced: bool, dequeues: bool) -> None:
        self.facts = facts
        self.shape = shape
        self.position = position
        self.rule = facts.stratum.rules[position]
        self.head = facts.relations[self.rule.head]
        self.traced = traced
        self.sites = Sites()
        self._code = Source()
        self._loops_before = 0  # outside of the function that is being written
        self._variables: dict[str, Value] = {}
        self._arguments = Arguments(facts, shape, traced=traced)
        self._places: list[str] = []
        self._rows: dict[int, str] = {}
        self._writer = Expressions(
            self._code,
            self._variables,
            self.sites,
            ansi=ansi,
            makes_strings=facts.stratum.makes_strings,
            leave=self._leave,
        )
        self._head = Head(facts, shape, self.rule, self._writer, self._arguments, traced=traced)
        self._write(dequeues=dequeues)
        text = self._code.everything
        self._arguments.add_texts(self.sites, text)
        words = max((len(s.keys) for s in self.rule.steps if isinstance(s, Probe)), default=0)
        prologue = self._arguments.prologue(text, words)
        names = ["cur", *self._arguments.names]
        functions, source = self._code.functions([*names, *written_names(prologue)])
        self.kernel = Kernel(names, prologue + source, {n: Kernel(*f) for n, f in functions.items()})

    @property
    def computes(self) -> bool:
        """Return whether derived rows go into the buffer."""
        return self.rule.target.kind == "computed" or self.defers

    @property
    def defers(self) -> bool:
        """Return whether rows in the buffer have a resolved target in place of a key."""
        return self._head.defers

    @property
    def row_words(self) -> int:
        """Return the number of words of a row in the buffer: key, then values."""
        return self._head.row_words

    def arguments(self, loop: LoopState) -> list[Array]:
        """Return the kernel's current arguments."""
        return self._arguments.arrays(loop)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _write(self, *, dequeues: bool) -> None:
        code, rule = self._code, self.rule
        copy = rule.driver.index
        self._arguments.add("rows", lambda loop: loop.driver(rule).current)
        values = self._arguments.accumulator(
            "d", rule.driver.relation, lambda loop: loop.driver(rule).driver_values, self._writer
        )
        if copy is None and self.traced:
            self._arguments.add("me", lambda loop: loop.part(rule.driver.relation).origin)
        code.line("i = cur[ROW]")
        code.line("end = cur[ROW_END]")
        code.line("resumed = cur[RESUMED]  # loops that were inside of one another when it was left, and one")
        code.line("out_n = cur[OUT]")
        with code.block("while i < end:"):
            code.line("u = np.uint32(rows[i])  # an unsigned index is not looked at for being negative")
            if dequeues:
                with code.block("if resumed == 0:"):
                    code.line(f"d_f[u] &= np.uint8({255 - QUEUED})")
            if self.traced:
                driver_origin = "d_p[u]" if copy == self.facts.mirror else "np.int64(-1)"
                code.line("origin = me[0] + u" if copy is None else f"origin = {driver_origin}")
            self._bind_row(
                "d", rule.driver.relation, rule.driver.binds, values, "u", lambda loop: loop.driver(rule).keys.keys
            )
            self._row()
            code.line("i += 1")
            code.line("resumed = 0")
        code.line("cur[ROW] = i")
        code.line("cur[OUT] = out_n")
        code.line("cur[RESUMED] = 0")
        code.line(f"cur[STATUS] = {DONE}")

    def _row(self) -> None:
        """Write the code for one row of the driver."""
        self._step(0)

    def _step(self, at: int) -> None:
        if len(self._places) - self._loops_before < _MAX_NESTED_LOOPS and self._code.depth < _MAX_LEVELS:
            self._write_step(at)
            return
        before, self._loops_before = self._loops_before, len(self._places)
        with self._code.function(f"rule{self.position}_from{at}", self._CARRIED):
            self._write_step(at)
        self._loops_before = before

    def _write_step(self, at: int) -> None:
        if at == len(self.rule.steps):
            self._head.emit(self._rows, self.position, self._leave)
            return
        step = self.rule.steps[at]
        if isinstance(step, Filter):
            with self._code.block(f"if {self._writer.holds(step.condition)}:"):
                self._step(at + 1)
        elif step.recursive:
            self._probe_relation(step, at)
        else:
            self._probe_static(step, at)

    def _leave(self) -> None:
        """Write code that stores the positions of the loops and suspends the kernel."""
        self._code.line("cur[ROW] = i")
        self._code.line("cur[OUT] = out_n")
        for n, place in enumerate(self._places):
            self._code.line(f"cur[PLACES + {n}] = {place}")
        self._code.line(f"cur[RESUMED] = {len(self._places) + 1}")
        self._code.leave()

    def _loop(self, kind: str, place: str, start: str, condition: str, step: str, body: Callable[[], None]) -> None:
        """Write a loop that continues where the kernel was suspended."""
        code, depth = self._code, len(self._places)
        if depth == MAX_LOOPS:
            raise UnsupportedError(
                "PARALAGG_RULE_TOO_LONG",
                f"the MPI engine joins up to {MAX_LOOPS} atoms in a rule",
                value=len(self.rule.steps),
                place=self.rule.place,
                hint="let a relation of its own have a part of the body, or use backend='spark'",
            )
        code.line(f"{place} = {kind}({start})")
        with code.block(f"if resumed > {depth + 1}:"):
            code.line(f"{place} = {kind}(cur[PLACES + {depth}])")
        with code.block(f"while {condition}:"):
            self._places.append(place)
            body()
            self._places.pop()
            code.line(f"{place} = {kind}({step})")
            code.line("resumed = 0")

    def _count_work(self, depth: int, rows: str) -> None:
        """Write code that counts rows which the loop at ``depth`` reads, but not again after a suspension."""
        with self._code.block(f"if resumed <= {depth + 1}:"):
            self._code.line(f"cur[WORK] += {rows}")

    # --- probes -----------------------------------------------------------------------------------------------------

    def _probe_static(self, p: Probe, at: int) -> None:
        index, code = f"s{at}", self._code
        self._arguments.add(f"{index}_offsets", lambda loop: loop.statics[p.index].offsets)
        if not p.keys:
            group = "0"
            condition = f"len({index}_offsets) > 1"
        elif p.aligned:
            group = "u"
            condition = f"u + 1 < len({index}_offsets)"
        else:
            group = self._lookup(p, index, lambda loop: loop.statics[p.index].keys)
            condition = f"{group} >= 0"
        has_group = code.keep("f", condition)
        start, stop = code.keep("b", "np.uint32(0)"), code.keep("e", "np.uint32(0)")
        with code.block(f"if {has_group}:"):
            code.line(f"{start} = np.uint32({index}_offsets[{group}])")
            code.line(f"{stop} = np.uint32({index}_offsets[{group} + 1])")
        if p.kind != "join":
            with code.block(f"if {start} {'<' if p.kind == 'semi' else '=='} {stop}:"):
                self._step(at + 1)
            return
        row = code.name("p")
        with code.block(f"if {start} < {stop}:"):
            if at == len(self.rule.steps) - 1:
                self._head.compute_early(p, self._variables.keys())

            def inner() -> None:
                self._bind_payload(p, index, row)
                self._rows[at] = row
                self._step(at + 1)

            self._count_work(len(self._places), f"np.int64({stop} - {start})")
            self._loop("np.uint32", row, start, f"{row} < {stop}", f"{row} + 1", inner)

    def _probe_relation(self, p: Probe, at: int) -> None:
        index, code = f"r{at}", self._code
        relation = self.facts.relation_indexes[p.index].relation
        is_old = p.version == "old"
        heads = f"{index}_{'old_' if is_old else ''}heads"
        self._arguments.add(
            heads, lambda loop: loop.indexes[p.index].old_heads if is_old else loop.indexes[p.index].heads
        )
        self._arguments.add(f"{index}_next", lambda loop: loop.indexes[p.index].next)
        values = self._arguments.accumulator(
            index, relation, lambda loop: loop.indexes[p.index].part.state, self._writer
        )
        if p.keys:
            group = self._lookup(p, index, lambda loop: loop.indexes[p.index].groups)
        else:
            self._arguments.add(f"{index}_meta", lambda loop: loop.indexes[p.index].groups.meta)
            group = code.keep("g", f"{index}_meta[0] - 1")
        row = code.name("t")
        is_visible = (
            f"({index}_f[{row}] & {PRESENT | IN_DELTA}) == {PRESENT}"
            if is_old  # a row of the delta may be an old one with a new value
            else f"({index}_f[{row}] & {PRESENT}) != 0"
        )

        def inner() -> None:
            self._count_work(len(self._places) - 1, "1")
            with code.block(f"if {is_visible}:"):
                self._bind_row(index, relation, p.binds, values, row, lambda loop: loop.indexes[p.index].part.keys.keys)
                self._step(at + 1)

        with code.block(f"if {group} >= 0:"):
            self._loop("np.int64", row, f"{heads}[{group}]", f"{row} >= 0", f"{index}_next[{row}]", inner)

    def _lookup(self, p: Probe, index: str, keys: Callable[[LoopState], object]) -> str:
        """Write the lookup of the group of the probe's keys. It is -1 if there is none or a key is null."""
        for name in ("slots", "keys", "meta"):
            self._arguments.add(f"{index}m_{name}", lambda loop, name=name: getattr(keys(loop), name))  # type: ignore[misc]
        code = self._code
        values = [self._writer.value(k) for k in p.keys]
        for n, v in enumerate(values):
            put_word(code, v.type, "key", n, v.code)
        group = code.keep("g", "np.int64(-1)")
        present = " and ".join(v.present for v in values)
        with code.block(f"if {present}:"):
            tables = f"{index}m_slots, {index}m_keys, {index}m_meta"
            lookup = f"find1({tables}, key[0])" if len(values) == 1 else f"find({tables}, key, 0)"
            code.line(f"{group} = np.int64({lookup})")
        return group

    # --- variables --------------------------------------------------------------------------------------------------

    def _bind_row(
        self, name: str, relation: str, binds: tuple[str | None, ...], values: Accumulating, row: str, keys: Getter
    ) -> None:
        """Bind the columns of a relation's row that the rule reads."""
        bound_relation = self.facts.relations[relation]
        shape, k = self.shape.relations[relation], len(bound_relation.keys)
        for c, bind in enumerate(binds):
            if bind is None or bind not in self.rule.reads:
                continue
            if c >= k:
                value = values.read(c - k, row)
            else:
                self._arguments.add(f"{name}_keys", keys)
                column_type = column_types(bound_relation)[c]
                view = f"{name}_keys.view(np.float64)" if column_type.kind == "fraction" else f"{name}_keys"
                null = f"(({name}_keys[{row}, {k}] >> {c}) & 1) != 0" if shape.keys[c] else None
                value = Value(column_type, from_word(column_type, view, view, f"{row}, {c}"), null)
            self._bind(bind, value)

    def _bind_payload(self, p: Probe, index: str, row: str) -> None:
        types, nulls = self.facts.payload_types(p.index), self.shape.payload[p.index]
        for c, bind in enumerate(p.binds):
            if bind is None or bind not in self.rule.reads:
                continue
            column = f"{index}_c{c}"
            self._arguments.add(column, lambda loop, c=c: loop.statics[p.index].payload[c])  # type: ignore[misc]
            null = None
            if nulls[c]:
                self._arguments.add(f"{column}z", lambda loop, c=c: loop.statics[p.index].nulls[c])  # type: ignore[misc]
                null = f"{column}z[{row}]"
            column_type = types[c]
            code = (
                f"({column}[{row}] != 0)"
                if column_type.kind == "truth"
                else f"np.{'float64' if column_type.kind == 'fraction' else 'int64'}({column}[{row}])"
            )
            self._bind(bind, Value(column_type, code, null))

    def _bind(self, name: str, value: Value) -> None:
        null = None if value.null is None else self._code.keep("n", value.null)
        self._variables[name] = Value(value.type, self._code.keep("v", value.code), null)
