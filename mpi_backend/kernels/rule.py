"""Source of a rule's loop: for each row of its driver the steps nest, the innermost gives the derived row to the head.

Where the row of the head is known (``same``, ``resolved``) it is aggregated right there; else the row goes into a
buffer, and the kernel stops when that is full: its tables grow outside of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels.aggregates import IN_DELTA, PRESENT, QUEUED, Accumulating
from mpi_backend.kernels.compiler import Kernel
from mpi_backend.kernels.expressions import Expressions, Sites
from mpi_backend.kernels.source import Source
from mpi_backend.kernels.status import DONE
from mpi_backend.kernels.values import Value, from_word
from mpi_backend.shape import column_types
from pyspark_paralagg.plan.plan import Filter, Probe
from pyspark_paralagg.program.expr import Col, columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.facts import Facts
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop import Loop
    from mpi_backend.shape import Shape
    from mpi_backend.types import Type

    Getter = Callable[[Loop], Array]

ACCUMULATOR = ("v", "k", "f", "d", "n", "p")


class RuleKernel:
    """One rule of a stratum, compiled. ``takes_off`` rules are the first to read a delta that is written meanwhile."""

    def __init__(self, facts: Facts, shape: Shape, position: int, *, ansi: bool, traced: bool, takes_off: bool) -> None:
        self.facts = facts
        self.shape = shape
        self.position = position
        self.rule = facts.stratum.rules[position]
        self.head = facts.relations[self.rule.head]
        self.traced = traced
        self.sites = Sites()
        self._code = Source()
        self._variables: dict[str, Value] = {}
        self._getters: dict[str, Getter] = {}
        self._places: list[str] = []
        self._rows: dict[int, str] = {}
        self._ready: dict[int, Value] = {}
        self._to = Expressions(
            self._code,
            self._variables,
            self.sites,
            ansi=ansi,
            makes_strings=facts.stratum.makes_strings,
            leave=self._leave,
        )
        self._write(takes_off=takes_off)
        self._texts()
        self.kernel = Kernel(["cur", *self._getters], self._prologue() + self._code.text)

    @property
    def computes(self) -> bool:
        """Whether derived rows go into the buffer."""
        return self.rule.target.kind == "computed"

    @property
    def row_words(self) -> int:
        """Words of a derived row in the buffer: key, then values."""
        of = self.shape.relations[self.head.name]
        return max(1, of.key_words + of.value_words(traced=self.traced))

    def arguments(self, loop: Loop) -> list[Array]:
        """What the kernel is called with, as it is now."""
        return [get(loop) for get in self._getters.values()]

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _write(self, *, takes_off: bool) -> None:
        code, rule = self._code, self.rule
        copy = self.facts.copy_of(rule)
        self._arg("rows", lambda loop: loop.driver(rule).current)
        values = self._accumulator("d", rule.driver.relation, lambda loop: loop.driver(rule).driver_values)
        if self.facts.copy_of(rule) is None and self.traced:
            self._arg("me", lambda loop: loop.part(rule.driver.relation).origin)
        code.line("i = cur[ROW]")
        code.line("end = cur[ROW_END]")
        code.line("resumed = cur[RESUMED]  # loops that were inside of one another when it was left, and one")
        code.line("out_n = cur[OUT]")
        with code.block("while i < end:"):
            code.line("u = np.uint32(rows[i])  # an unsigned index is not looked at for being negative")
            if takes_off:
                with code.block("if resumed == 0:"):
                    code.line(f"d_f[u] &= np.uint8({255 - QUEUED})")
            if self.traced:
                code.line("origin = np.int64(-1)" if copy is not None else "origin = me[0] + u")
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
        """What happens for one row of the driver."""
        self._step(0)

    def _step(self, at: int) -> None:
        if at == len(self.rule.steps):
            self._emit()
            return
        step = self.rule.steps[at]
        if isinstance(step, Filter):
            with self._code.block(f"if {self._to.holds(step.condition)}:"):
                self._step(at + 1)
        elif step.recursive:
            self._probe_relation(step, at)
        else:
            self._probe_static(step, at)

    def _leave(self) -> None:
        """Notes where the loops are, and ends the kernel."""
        self._code.line("cur[ROW] = i")
        self._code.line("cur[OUT] = out_n")
        for n, place in enumerate(self._places):
            self._code.line(f"cur[PLACES + {n}] = {place}")
        self._code.line(f"cur[RESUMED] = {len(self._places) + 1}")
        self._code.line("return")

    def _each(self, kind: str, place: str, start: str, going: str, after: str, body: Callable[[], None]) -> None:
        """A loop that can be entered where it was left."""
        code, depth = self._code, len(self._places)
        code.line(f"{place} = {kind}({start})")
        with code.block(f"if resumed > {depth + 1}:"):
            code.line(f"{place} = {kind}(cur[PLACES + {depth}])")
        with code.block(f"while {going}:"):
            self._places.append(place)
            body()
            self._places.pop()
            code.line(f"{place} = {kind}({after})")
            code.line("resumed = 0")

    # --- probes -----------------------------------------------------------------------------------------------------

    def _probe_static(self, p: Probe, at: int) -> None:
        index, code = f"s{at}", self._code
        self._arg(f"{index}_offsets", lambda loop: loop.statics[p.index].offsets)
        if not p.keys:
            group = "0"
            condition = f"len({index}_offsets) > 1"
        elif self.facts.is_aligned(self.rule, at):
            group = "u"
            condition = f"u + 1 < len({index}_offsets)"
        else:
            group = self._lookup(p, index, lambda loop: loop.statics[p.index].keys)
            condition = f"{group} >= 0"
        found = code.keep("f", condition)
        start, stop = code.keep("b", "np.uint32(0)"), code.keep("e", "np.uint32(0)")
        with code.block(f"if {found}:"):
            code.line(f"{start} = np.uint32({index}_offsets[{group}])")
            code.line(f"{stop} = np.uint32({index}_offsets[{group} + 1])")
        if p.kind != "join":
            with code.block(f"if {start} {'<' if p.kind == 'semi' else '=='} {stop}:"):
                self._step(at + 1)
            return
        row = code.name("p")
        with code.block(f"if {start} < {stop}:"):
            if at == len(self.rule.steps) - 1:
                self._compute_early(p)

            def inner() -> None:
                self._bind_payload(p, index, row)
                self._rows[at] = row
                self._step(at + 1)

            self._each("np.uint32", row, start, f"{row} < {stop}", f"{row} + 1", inner)

    def _probe_relation(self, p: Probe, at: int) -> None:
        index, code = f"r{at}", self._code
        relation = self.facts.relation_indexes[p.index].relation
        self._arg(f"{index}_heads", lambda loop: loop.indexes[p.index].heads)
        self._arg(f"{index}_next", lambda loop: loop.indexes[p.index].next)
        values = self._accumulator(index, relation, lambda loop: loop.indexes[p.index].part.state)
        if p.keys:
            group = self._lookup(p, index, lambda loop: loop.indexes[p.index].groups)
        else:
            self._arg(f"{index}_meta", lambda loop: loop.indexes[p.index].groups.meta)
            group = code.keep("g", f"{index}_meta[0] - 1")
        row = code.name("t")
        wanted = (
            f"({index}_f[{row}] & {PRESENT | IN_DELTA}) == {PRESENT}"
            if p.version == "old"
            else f"({index}_f[{row}] & {PRESENT}) != 0"
        )

        def inner() -> None:
            with code.block(f"if {wanted}:"):
                self._bind_row(index, relation, p.binds, values, row, lambda loop: loop.indexes[p.index].part.keys.keys)
                self._step(at + 1)

        with code.block(f"if {group} >= 0:"):
            self._each("np.int64", row, f"{index}_heads[{group}]", f"{row} >= 0", f"{index}_next[{row}]", inner)

    def _lookup(self, p: Probe, index: str, keys: Callable[[Loop], object]) -> str:
        """The group of the probe's keys; -1: there is none, as for a null."""
        for name in ("slots", "keys", "meta"):
            self._arg(f"{index}m_{name}", lambda loop, name=name: getattr(keys(loop), name))  # type: ignore[misc]
        code = self._code
        values = [self._to.value(k) for k in p.keys]
        for n, v in enumerate(values):
            self._put_word(v.type, "key", n, v.code)
        group = code.keep("g", "np.int64(-1)")
        present = " and ".join(v.present for v in values)
        with code.block(f"if {present}:"):
            table = f"{index}m_slots, {index}m_keys, {index}m_meta"
            found = f"find1({table}, key[0])" if len(values) == 1 else f"find({table}, key, 0)"
            code.line(f"{group} = np.int64({found})")
        return group

    def _put_word(self, of: Type, words: str, place: object, code: str) -> None:
        """Writes a value into words as keys have it: one zero, one NaN."""
        if of.kind == "fraction":
            self._code.line(f"{words}_f[{place}] = {code} + 0.0 if {code} == {code} else np.nan")
        elif of.kind == "truth":
            self._code.line(f"{words}[{place}] = np.int64({code})")
        else:
            self._code.line(f"{words}[{place}] = {code}")

    # --- variables --------------------------------------------------------------------------------------------------

    def _bind_row(
        self, name: str, relation: str, binds: tuple[str | None, ...], values: Accumulating, row: str, keys: Getter
    ) -> None:
        """The columns of a relation's row that the rule reads."""
        of = self.facts.relations[relation]
        form, k = self.shape.relations[relation], len(of.keys)
        for c, bind in enumerate(binds):
            if bind is None or bind not in self._used:
                continue
            if c >= k:
                value = values.read(c - k, row)
            else:
                self._arg(f"{name}_keys", keys)
                kind = column_types(of)[c]
                view = f"{name}_keys.view(np.float64)" if kind.kind == "fraction" else f"{name}_keys"
                null = f"(({name}_keys[{row}, {k}] >> {c}) & 1) != 0" if form.keys[c] else None
                value = Value(kind, from_word(kind, view, view, f"{row}, {c}"), null)
            self._bind(bind, value)

    def _bind_payload(self, p: Probe, index: str, row: str) -> None:
        types, nulls = self.facts.payload_types(p.index), self.shape.payload[p.index]
        for c, bind in enumerate(p.binds):
            if bind is None or bind not in self._used:
                continue
            column = f"{index}_c{c}"
            self._arg(column, lambda loop, c=c: loop.statics[p.index].payload[c])  # type: ignore[misc]
            null = None
            if nulls[c]:
                self._arg(f"{column}z", lambda loop, c=c: loop.statics[p.index].nulls[c])  # type: ignore[misc]
                null = f"{column}z[{row}]"
            of = types[c]
            code = (
                f"({column}[{row}] != 0)"
                if of.kind == "truth"
                else f"np.{'float64' if of.kind == 'fraction' else 'int64'}({column}[{row}])"
            )
            self._bind(bind, Value(of, code, null))

    def _bind(self, name: str, value: Value) -> None:
        null = None if value.null is None else self._code.keep("n", value.null)
        self._variables[name] = Value(value.type, self._code.keep("v", value.code), null)

    @property
    def _used(self) -> frozenset[str]:
        return frozenset().union(*(columns(e) for e in self.facts.evaluated(self.rule)), frozenset())

    # --- the head ---------------------------------------------------------------------------------------------------

    def _compute_early(self, last: Probe) -> None:
        """Values that the last probe does not change are computed once a group, not once a row of it."""
        for j, expr in enumerate(self.rule.emit[len(self.head.keys) :]):
            names = columns(expr)
            if not isinstance(expr, Col) and names <= self._variables.keys() and not names & set(last.binds):
                self._ready[j] = self._to.value(expr)

    def _emit(self) -> None:
        keys = len(self.head.keys)
        if self.computes:
            self._put_out(keys)
            return
        values = [self._ready.get(j) or self._to.value(e) for j, e in enumerate(self.rule.emit[keys:])]
        own = self._accumulator("h", self.head.name, lambda loop: loop.part(self.head.name).pending)
        if self.rule.target.kind == "same":
            self._combine(own, "u", values)
            return
        ghost = self._accumulator("g", self.head.name, lambda loop: loop.part(self.head.name).ghost)
        self._arg("targets", lambda loop: loop.targets[self.position])
        assert self.rule.target.step is not None  # noqa: S101 - for the type checker
        target = self._code.keep("h", f"targets[{self._rows[self.rule.target.step]}]")
        with self._code.block(f"if {target} >= 0:"):
            self._combine(own, self._code.keep("h", f"np.uint32({target})"), values)
        with self._code.block("else:"):
            self._combine(ghost, self._code.keep("h", f"np.uint32(~{target})"), values)

    def _combine(self, into: Accumulating, row: str, values: list[Value]) -> None:
        (into.join if self.facts.is_lattice else into.add)(row, values, "origin")

    def _put_out(self, keys: int) -> None:
        """The derived row into the buffer; with it full, the kernel waits for a new one."""
        code, form = self._code, self.shape.relations[self.head.name]
        self._arg("out", lambda loop: loop.out)
        found = [self._to.value(e) for e in self.rule.emit[:keys]]
        found += [self._ready.get(j) or self._to.value(e) for j, e in enumerate(self.rule.emit[keys:])]
        with code.block(f"if (out_n + 1) * {self.row_words} > len(out):"):
            code.line("cur[STATUS] = FULL")
            self._leave()
        at = code.keep("o", f"out_n * {self.row_words}")
        where = 0
        for part, nulls in ((found[:keys], form.keys), (found[keys:], form.dependents)):
            for n, v in enumerate(part):
                self._put_word(v.type, "out", f"{at} + {where + n}", v.code if v.null is None else f"{v.code}")
            where += len(part)
            if any(nulls):
                bits = [f"(np.int64({v.null}) << {n})" for n, v in enumerate(part) if v.null is not None]
                code.line(f"out[{at} + {where}] = {' | '.join(bits) or '0'}")
                self._blank(part, at, where - len(part))
                where += 1
        if self.traced:
            code.line(f"out[{at} + {where}] = origin")
        code.line("out_n += 1")

    def _blank(self, part: list[Value], at: str, where: int) -> None:
        """Beside a null stands 0, so that equal keys have equal words."""
        for n, v in enumerate(part):
            if v.null is not None:
                with self._code.block(f"if {v.null}:"):
                    self._code.line(f"out[{at} + {where + n}] = 0")

    # --- arguments --------------------------------------------------------------------------------------------------

    def _arg(self, name: str, get: Getter) -> None:
        self._getters.setdefault(name, get)

    def _accumulator(self, name: str, relation: str, get: Callable[[Loop], object]) -> Accumulating:
        for part in ACCUMULATOR:
            self._arg(f"{name}_{part}", lambda loop, part=part: getattr(get(loop), part))  # type: ignore[misc]
        nullable = self.shape.relations[relation].dependents
        return Accumulating(name, self.facts.relations[relation], nullable, self._to, traced=self.traced)

    def _texts(self) -> None:
        """Arguments for constants, for texts in their order, and for what functions of texts gave so far."""
        if self.sites.literals:
            self._arg("literals", lambda loop: loop.strings.words_of(self.sites.literals))
        if "S_offsets" in self._code.text:
            self._arg("S_offsets", lambda loop: loop.strings.offsets)
            self._arg("S_data", lambda loop: loop.strings.data)
        for n, call in enumerate(self.sites.calls):
            for part in ("slots", "keys", "meta", "words", "nulls"):
                self._arg(f"T{n}_{part}", lambda loop, call=call, part=part: loop.strings.memo(call).array(part))  # type: ignore[misc]

    def _prologue(self) -> str:
        """What stands before the loop: columns of accumulators as variables, room for keys."""
        before = Source()
        text = self._code.text
        if "cur_f[" in text:
            before.line("cur_f = cur.view(np.float64)")
        if "out_f[" in text:
            before.line("out_f = out.view(np.float64)")
        if "key[" in text or "key, 0" in text:
            most = max(len(s.keys) for s in self.rule.steps if isinstance(s, Probe))
            before.line(f"key = np.empty({max(most, 1)}, np.int64)")
            before.line("key_f = key.view(np.float64)")
        writer = Expressions(before, {}, Sites(), ansi=True, makes_strings=False, leave=lambda: None)
        for name in [g[:-2] for g in self._getters if g.endswith("_v") and len(g) > 2]:
            relation = self._relation_of(name)
            form = self.shape.relations[relation].dependents
            Accumulating(name, self.facts.relations[relation], form, writer, traced=False).declare()
        return before.text

    def _relation_of(self, accumulator: str) -> str:
        if accumulator == "d":
            return self.rule.driver.relation
        if accumulator in ("h", "g"):
            return self.head.name
        step = self.rule.steps[int(accumulator[1:])]
        assert isinstance(step, Probe)  # noqa: S101 - for the type checker
        return self.facts.relation_indexes[step.index].relation


def buffer(rows: int, words: int) -> Array:
    """Room for derived rows."""
    return np.empty(rows * words, np.int64)
