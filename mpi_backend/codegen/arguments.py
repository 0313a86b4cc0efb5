"""List the arguments of a generated kernel: names in its source, and functions that get the arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.aggregates import ARRAYS, Accumulating
from mpi_backend.codegen.expressions import Expressions
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.writer import Sites
from mpi_backend.state.strings import MEMO_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.shape import Shape

    Getter = Callable[[LoopState], Array]


class Arguments:
    """The arrays by name, in the order in which the source needs them."""

    def __init__(self, facts: Facts, shape: Shape, *, traced: bool) -> None:
        self._facts = facts
        self._shape = shape
        self._traced = traced
        self._getters: dict[str, Getter] = {}
        self._relations: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of the kernel's parameters."""
        return list(self._getters)

    def arrays(self, loop: LoopState) -> list[Array]:
        """Return the current arrays."""
        return [get(loop) for get in self._getters.values()]

    def add(self, name: str, get: Getter) -> None:
        """Add an array, unless its name exists."""
        self._getters.setdefault(name, get)

    def accumulator(
        self, name: str, relation: str, get: Callable[[LoopState], object], writer: Expressions
    ) -> Accumulating:
        """Add the arrays of an accumulator. Return the writer of its updates."""
        self._relations[name] = relation
        for part in ARRAYS:
            self.add(f"{name}_{part}", lambda loop, part=part: getattr(get(loop), part))  # type: ignore[misc]
        return self._accumulating(name, writer, traced=self._traced)

    def add_texts(self, sites: Sites, source: str) -> None:
        """Add the arrays of constants, of texts, and of the results of text functions."""
        if sites.literals:
            self.add("literals", lambda loop: loop.strings.words_of(sites.literals))
        if "S_offsets" in source:
            self.add("S_offsets", lambda loop: loop.strings.offsets)
            self.add("S_data", lambda loop: loop.strings.data)
        for n, call in enumerate(sites.calls):
            for part in MEMO_PARTS:
                self.add(f"T{n}_{part}", lambda loop, call=call, part=part: loop.strings.memo(call).array(part))  # type: ignore[misc]

    def prologue(self, source: str, key_words: int) -> str:
        """Return the code before ``source``: variables for columns, views, space for keys."""
        prologue = Source()
        for array in ("cur", "out"):
            if f"{array}_f[" in source:
                prologue.line(f"{array}_f = {array}.view(np.float64)")
        if "key[" in source or "key, 0" in source:
            prologue.line(f"key = np.empty({max(key_words, 1)}, np.int64)")
            prologue.line("key_f = key.view(np.float64)")
        writer = Expressions(prologue, {}, Sites(), ansi=True, makes_strings=False, leave=lambda: None)
        for name in self._relations:
            self._accumulating(name, writer, traced=False).declare()
        return prologue.text

    def _accumulating(self, name: str, writer: Expressions, *, traced: bool) -> Accumulating:
        relation = self._relations[name]
        nullable = self._shape.relations[relation].dependents
        return Accumulating(name, self._facts.relations[relation], nullable, writer, traced=traced)
