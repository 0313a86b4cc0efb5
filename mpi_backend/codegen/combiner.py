"""Write the code that combines rows into an accumulator: flat rows (base, buffers, messages), or an accumulator's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.aggregates import Accumulating, has_sets
from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.values import Value, from_word
from mpi_backend.codegen.writer import Sites
from mpi_backend.kernels.compiler import Kernel
from mpi_backend.kernels.status import DONE
from mpi_backend.state.strings import MEMO_PARTS
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import Accumulator
    from mpi_backend.state.shape import Shape

_STRINGS = ("S_offsets", "S_data")


class Combiner:
    """The two kernels of a relation. At an error they stop, with its number in ``cur``.

    Rows whose merge of sets is not known yet are left out and listed in ``wanted``, which relations with sets have:
    (site, its two arguments, position of the row). ``cur[WORK]`` counts them. The caller computes merges and repeats.
    """

    def __init__(self, facts: Facts, shape: Shape, relation: str, *, ansi: bool, traced: bool) -> None:
        self._facts = facts
        self._relation = facts.relations[relation]
        self._nullable = shape.relations[relation].dependents
        self._ansi = ansi
        self._traced = traced
        self.merges_sets = has_sets(self._relation)
        self.sites = Sites()
        self.rows = self._rows()
        self.apply = self._apply()

    def rows_arguments(self, loop: LoopState, into: Accumulator) -> list[Array]:
        """Return the first arguments of ``rows``.

        Then come ids, row numbers, words, ``wanted`` if it merges sets, and ``cur`` with (at, stride).
        """
        return [*into.arrays, *self._strings(loop)]

    def apply_arguments(self, loop: LoopState, source: Accumulator, into: Accumulator) -> list[Array]:
        """Return the first arguments of ``apply``.

        Then come ``difference``, positions of rows and ``wanted`` if it merges sets, and ``cur``.
        """
        return [*source.arrays, *into.arrays, *self._strings(loop)]

    def _strings(self, loop: LoopState) -> list[Array]:
        """Return the arrays of texts, to compare them, and of constants in user-defined aggregators."""
        out: list[Array] = [loop.strings.offsets, loop.strings.data] if self._compares_texts else []
        out += [loop.strings.words_of(self.sites.literals)] if self.sites.literals else []
        memos = [loop.strings.memo(call) for call in self.sites.calls]
        return [*out, *(memo.array(part) for memo in memos for part in MEMO_PARTS)]

    @property
    def _compares_texts(self) -> bool:
        return self._facts.stratum.makes_strings and any(
            type_of(d.column.type).kind == "text" for d in self._relation.dependents
        )

    def _writer(self, code: Source) -> Expressions:
        def leave() -> None:
            for n, cell in enumerate(("cur[STATUS]", "cur[CALL]", "cur[CALL + 1]", "i")):
                code.line(f"wanted[missing, {n}] = {cell}")
            code.line("missing += 1")
            code.line("continue")

        return Expressions(
            code, {}, self.sites, ansi=self._ansi, makes_strings=self._facts.stratum.makes_strings, leave=leave
        )

    def _accumulating(self, name: str, writer: Expressions) -> Accumulating:
        return Accumulating(name, self._relation, self._nullable, writer, traced=self._traced)

    def _rows(self) -> Kernel:
        """Write the kernel that combines row ``picked[i]`` of ``words`` into row ``ids[i]``."""
        code = Source()
        into = self._accumulating("h", self._writer(code))
        into.declare()
        code.line("doubles = words.view(np.float64)")
        code.line("first, stride = cur[0], cur[1]")
        mask_at = len(self._relation.dependents)
        code.line("missing = 0")
        with code.block("for i in range(len(ids)):"):
            code.line("row = ids[i]")
            code.line("at = first + picked[i] * stride")
            values = []
            for j, d in enumerate(self._relation.dependents):
                column_type = type_of(d.column.type)
                null = f"((words[at + {mask_at}] >> {j}) & 1) != 0" if self._nullable[j] else None
                word = code.keep("v", from_word(column_type, "words", "doubles", f"at + {j}"))
                values.append(Value(column_type, word, None if null is None else code.keep("n", null)))
            origin = f"words[at + {mask_at + any(self._nullable)}]"
            (into.join if self._facts.is_lattice else into.add)("row", values, origin)
        code.line("cur[WORK] = missing")
        code.line(f"cur[STATUS] = {DONE}")
        wanted = ["wanted"] if self.merges_sets else []
        return Kernel([*into.arrays, *self._names(), "ids", "picked", "words", *wanted, "cur"], code.text)

    def _apply(self) -> Kernel:
        """Write the kernel that combines changed rows of ``g`` into ``h``. ``difference[0]`` gets Σ|Δ| of sums."""
        code = Source()
        writer = self._writer(code)
        into, source = self._accumulating("h", writer), self._accumulating("g", writer)
        into.declare()
        source.declare()
        code.line("total = 0.0")
        code.line("missing = 0")
        with code.block("for i in range(len(picked)):" if self.merges_sets else "for i in range(g_n[0]):"):
            code.line("row = g_d[picked[i]]" if self.merges_sets else "row = g_d[i]")
            values = []
            for j in range(len(self._relation.dependents)):
                value = source.read(j, "row")
                null = None if value.null is None else code.keep("n", value.null)
                values.append(Value(value.type, code.keep("v", value.code), null))
            origin = "g_p[row]" if self._traced else "-1"
            if self._facts.is_accumulating:
                into.add_change("row", values, origin, "total")
            else:
                into.join("row", values, origin)
        code.line("difference[0] += total")
        code.line("cur[WORK] = missing")
        code.line(f"cur[STATUS] = {DONE}")
        wanted = ["picked", "wanted"] if self.merges_sets else []
        return Kernel([*source.arrays, *into.arrays, *self._names(), "difference", *wanted, "cur"], code.text)

    def _names(self) -> list[str]:
        out = list(_STRINGS) if self._compares_texts else []
        out += ["literals"] if self.sites.literals else []
        return [*out, *(f"T{n}_{part}" for n in range(len(self.sites.calls)) for part in MEMO_PARTS)]
