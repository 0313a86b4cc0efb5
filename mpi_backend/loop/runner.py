"""Call the compiled kernels of a stratum: apply rules to the delta, and combine rows into accumulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.combiner import Combiner
from mpi_backend.codegen.rule import RuleKernel
from mpi_backend.codegen.target_sums import Contribution, may_add_by_target, sums_kernel
from mpi_backend.kernels import lists
from mpi_backend.kernels.compiler import prepare
from mpi_backend.kernels.status import DONE, FAILED, FULL, LENGTH, OUT, ROW_END, STATUS, WANTED, WORK
from mpi_backend.state.index import reverse_edges
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.writer import Sites
    from mpi_backend.kernels.compiler import Array, Kernel
    from mpi_backend.state.loop_state import LoopState, Rows
    from mpi_backend.state.relation_part import Accumulator, RelationPart

_OVERFLOW = "PARALAGG_OVERFLOW"
_WANTED_WORDS = 4
"""Of a missing merge of sets: its site, two arguments, and the position of the row."""


class SumOverflowError(FixpointError):
    """A sum left the range of its type."""


class Runner:
    """The kernels of a stratum. With ``traced``, they store the row from which each change came."""

    def __init__(self, loop: LoopState, *, ansi: bool, traced: bool) -> None:
        self._loop = loop
        facts, shape = loop.facts, loop.shape
        self._combiners = {
            r.name: Combiner(facts, shape, r.name, ansi=ansi, traced=traced) for r in facts.stratum.relations
        }
        seen: set[str] = set()
        self.rules: list[RuleKernel] = []
        for n, rule in sorted(enumerate(facts.stratum.rules), key=lambda r: r[1].driver.relation):
            first = facts.stratum.in_place and rule.driver.relation not in seen
            seen.add(rule.driver.relation)
            self.rules.append(RuleKernel(facts, shape, n, ansi=ansi, traced=traced, dequeues=first))
        self._by_target = {} if traced else {n: self._sums_by_target(n, ansi=ansi) for n in self._rules_by_target()}
        self._cur = np.zeros(LENGTH, np.int64)
        self.added_by_target = 0
        self.on_derived: Callable[[], None] | None = None
        """Is called when a rule, suspended or at its end, has derived rows of other ranks."""

    def prepare(self) -> None:
        """Compile all kernels, or load them from the cache."""
        work = [(r.kernel, [self._cur, *r.arguments(self._loop)]) for r in self.rules]
        for position, (contribution, kernel) in self._by_target.items():
            sums, part = self._loop.target_sums[position], self._loop.parts[contribution.head.name]
            edges = [sums.local.ids, sums.local.offsets, sums.local.sources, sums.contributions]
            work += [
                (contribution.kernel, [self._cur, *contribution.arguments(self._loop)]),
                (kernel, [*part.pending.arrays, *edges]),
            ]
        ids, words = np.zeros(0, np.int32), np.zeros(0, np.int64)
        positions, wanted = np.arange(0), np.empty((0, _WANTED_WORDS), np.int64)
        for name, combiner in self._combiners.items():
            part = self._loop.parts[name]
            merged = [wanted] if combiner.merges_sets else []
            rows = combiner.rows_arguments(self._loop, part.state)
            work.append((combiner.rows, [*rows, ids, ids, words, *merged, self._cur]))
            if part.pending is not part.state:
                accumulators = combiner.apply_arguments(self._loop, part.pending, part.state)
                picked = [positions, *merged] if combiner.merges_sets else []
                work.append((combiner.apply, [*accumulators, np.zeros(1), *picked, self._cur]))
            lists.list_queued(part.state.f, part.state.d, 0)
        prepare(work, self._loop.comm.rank)

    def run_rules(self) -> None:
        """Apply all rules to the current delta of their drivers."""
        for rule in self.rules:
            if self._loop.driver(rule.rule).size and not self._run_dense(rule):
                self._run_rule(rule)

    def put(self, part: RelationPart, into: Accumulator, rows: Rows) -> None:
        """Combine base or initial rows. In a traced run their parent is -1."""
        words, stride, at = rows.words, rows.stride, rows.at
        if part.traced:
            table = words.reshape(len(rows.ids), stride)
            words = np.concatenate([table, np.full((len(rows.ids), 1), -1, np.int64)], axis=1).ravel()
            stride += 1
        self.combine(part, into, rows.ids, words, at, stride)

    def combine(
        self,
        part: RelationPart,
        into: Accumulator,
        ids: Array,
        words: Array,
        at: int,
        stride: int,
        picked: Array | None = None,
    ) -> None:
        """Combine flat rows into an accumulator. ``picked`` are their positions (None: all rows in order)."""
        if not len(ids):
            return
        combiner = self._combiners[part.name]
        chosen = np.arange(len(ids), dtype=np.int32) if picked is None else picked
        cur = np.zeros(LENGTH, np.int64)
        cur[0], cur[1] = at, stride
        if combiner.merges_sets:
            self._merge_sets(
                combiner,
                part.name,
                ids,
                lambda rows, wanted: combiner.rows(
                    *combiner.rows_arguments(self._loop, into), ids[rows], chosen[rows], words, wanted, cur
                ),
                cur,
            )
            return
        combiner.rows(*combiner.rows_arguments(self._loop, into), ids, chosen, words, cur)
        _check(cur, combiner.sites, f"{part.name}")

    def apply(self, part: RelationPart, source: Accumulator, into: Accumulator) -> float:
        """Combine the changed rows of ``source`` into ``into``. Return Σ|Δ| of the sum columns."""
        combiner = self._combiners[part.name]
        cur, difference = np.zeros(LENGTH, np.int64), np.zeros(1)
        if combiner.merges_sets:
            self._merge_sets(
                combiner,
                part.name,
                source.dirty,
                lambda rows, wanted: combiner.apply(
                    *combiner.apply_arguments(self._loop, source, into), difference, rows, wanted, cur
                ),
                cur,
            )
            return float(difference[0])
        combiner.apply(*combiner.apply_arguments(self._loop, source, into), difference, cur)
        _check(cur, combiner.sites, part.name)
        return float(difference[0])

    def _merge_sets(
        self, combiner: Combiner, name: str, ids: Array, call: Callable[[Array, Array], None], cur: Array
    ) -> None:
        """Call a kernel for all rows, then for those whose merge of sets was missing, until none is.

        Of several rows with one id, each merge is with the result of the one before.
        """
        rows = np.arange(len(ids))
        while len(rows):
            wanted = np.empty((len(rows), _WANTED_WORDS), np.int64)
            call(rows, wanted)
            _check(cur, combiner.sites, name)
            missed = wanted[: cur[WORK]]
            rows = rows[missed[:, -1]]
            first = missed[np.unique(ids[rows], return_index=True)[1]]
            for n, merge in enumerate(combiner.sites.calls):
                pairs = first[first[:, 0] == WANTED + n, 1:-1]
                if len(pairs):
                    self._loop.strings.evaluate_calls(merge, pairs, name)

    def check(self, cur: Array) -> None:
        """Raise the error of a kernel that applies all rules, if it failed. Its status does not name the rule."""
        for rule in self.rules:
            if int(cur[STATUS]) - FAILED < len(rule.sites.errors):
                _check(cur, rule.sites, rule.rule.place)

    def _rules_by_target(self) -> list[int]:
        return [n for n, r in enumerate(self._loop.facts.stratum.rules) if may_add_by_target(self._loop.shape, r)]

    def _sums_by_target(self, position: int, *, ansi: bool) -> tuple[Contribution, Kernel]:
        loop, facts, shape = self._loop, self._loop.facts, self._loop.shape
        rule = facts.stratum.rules[position]
        head = rule.head
        if position not in loop.target_sums:
            offsets = loop.statics[rule.resolving_probe.index].offsets
            loop.target_sums[position] = reverse_edges(
                offsets, loop.targets[position], len(facts.relations[head].dependents)
            )
        contribution = Contribution(facts, shape, position, ansi=ansi, traced=False, dequeues=False)
        return contribution, sums_kernel(facts, shape, head, ansi=ansi)

    def _run_dense(self, rule: RuleKernel) -> bool:
        """Apply a rule by target, if every source of an edge contributes. Return whether it was applied."""
        if rule.position not in self._by_target:
            return False
        loop, size = self._loop, self._loop.driver(rule.rule).size
        sums = loop.target_sums[rule.position]
        if size < sums.sources:
            return False
        contribution, kernel = self._by_target[rule.position]
        cur = self._cur
        cur[:] = 0
        cur[ROW_END] = size
        contribution.kernel(cur, *contribution.arguments(loop))
        _check(cur, contribution.sites, rule.rule.place)
        if int(cur[OUT]) < sums.sources:
            return False
        loop.work += int(cur[WORK])
        part = loop.parts[rule.head.name]
        for into, edges in ((part.pending, sums.local), (part.ghost, sums.ghosts)):
            if len(edges.ids):
                kernel(*into.arrays, edges.ids, edges.offsets, edges.sources, sums.contributions)
                loop.work += len(edges.sources)
        self.added_by_target += 1
        return True

    def _run_rule(self, rule: RuleKernel) -> None:
        cur, loop = self._cur, self._loop
        cur[:] = 0
        cur[ROW_END] = loop.driver(rule.rule).size
        while True:
            rule.kernel(cur, *rule.arguments(loop))
            status = int(cur[STATUS])
            if status == FULL or (status == DONE and cur[OUT]):
                self._combine_derived(rule, int(cur[OUT]))
                cur[OUT] = 0
            if status == DONE:
                loop.work += int(cur[WORK])
                return
            if status >= FAILED:
                _check(cur, rule.sites, rule.rule.place)
            elif status >= WANTED:
                loop.strings.evaluate_call(rule.sites.calls[status - WANTED], cur, rule.rule.place)

    def _combine_derived(self, rule: RuleKernel, count: int) -> None:
        """Combine the rows in the buffer by their keys or targets, into own rows or ghosts."""
        loop, stride = self._loop, rule.row_words
        part = loop.parts[rule.head.name]
        width = part.shape.key_words
        rows = loop.out[: count * stride]
        if rule.defers:
            self._combine_deferred(part, rows, stride)
            return
        if loop.comm.size == 1:
            ids = part.keys.add(rows, 0, stride, count)
            part.grow()
            self.combine(part, part.pending, ids, rows, width, stride)
            return
        mask_at = width - 1 if part.shape.has_null_keys else -1
        ranks = loop.owners[part.name].ranks(rows, stride, mask_at, loop.strings, count)
        own, remote = np.empty(count, np.int32), np.empty(count, np.int32)
        n, m = lists.split_by_owner(ranks, loop.comm.rank, own, remote)
        own, remote = own[:n], remote[:m]
        table = rows.reshape(count, stride)
        if n:
            ids = part.keys.add(np.ascontiguousarray(table[own, :width]).ravel(), count=n)
            part.grow()
            self.combine(part, part.pending, ids, rows, width, stride, own)
        if m:
            before = len(part.ghosts)
            ghosts = part.ghosts.add(np.ascontiguousarray(table[remote, :width]).ravel(), count=m)
            part.grow_ghosts()
            part.ghost_owner[ghosts] = ranks[remote]
            part.ghost_remote[before : len(part.ghosts)] = -1
            self.combine(part, part.ghost, ghosts, rows, width, stride, remote)
            if self.on_derived is not None:
                self.on_derived()

    def _combine_deferred(self, part: RelationPart, rows: Array, stride: int) -> None:
        """Combine rows that begin with their target: an own row, or the complement of a ghost."""
        targets = rows[::stride].astype(np.int32)
        own, remote = (np.flatnonzero(x).astype(np.int32) for x in (targets >= 0, targets < 0))
        self.combine(part, part.pending, targets[own], rows, 1, stride, own)
        if len(remote):
            self.combine(part, part.ghost, ~targets[remote], rows, 1, stride, remote)
            if self.on_derived is not None:
                self.on_derived()


def _check(cur: Array, sites: Sites, place: str) -> None:
    status = int(cur[STATUS])
    if status < FAILED:
        return
    code, message = sites.errors[status - FAILED]
    error = SumOverflowError if code == _OVERFLOW else FixpointError
    raise error(code, message, place=place)
