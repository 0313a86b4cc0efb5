"""Encode texts as words: a text's rank among all texts of the inputs, so that words compare as the texts do.

Texts that rules make get the next words, on each rank separately; messages translate them (``exchange.wire``).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mpi_backend.kernels.status import CALL
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.texts import TextError, compute
from mpi_backend.state.types import array_of
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.texts import Scalar, TextCall
    from mpi_backend.state.types import Type, Words
    from pyspark_paralagg.program.functor import Functor


MEMO_PARTS = ("slots", "keys", "meta", "words", "nulls")
"""The arrays of a memo that kernels read."""


class Memo:
    """The results of a function of texts, by the words of its arguments."""

    def __init__(self, arguments: int) -> None:
        self.keys = KeyMap(arguments)
        self.words = np.zeros(16, np.int64)
        self.nulls = np.zeros(16, np.uint8)

    def array(self, name: str) -> Array:
        """Return an array that kernels read: of the table of arguments, or of the results."""
        array: Array = getattr(self.keys if name in ("slots", "keys", "meta") else self, name)
        return array

    def put(self, arguments: Words, words: Sequence[int | None]) -> None:
        """Store the results for rows of arguments; None is null."""
        places = self.keys.add(np.ascontiguousarray(arguments).ravel())
        while len(self.words) < len(self.keys):
            self.words = np.concatenate([self.words, np.zeros_like(self.words)])
            self.nulls = np.concatenate([self.nulls, np.zeros_like(self.nulls)])
        self.words[places] = [0 if w is None else w for w in words]
        self.nulls[places] = [w is None for w in words]


class Strings:
    """The texts of a stratum on this rank: ``ranked``, those of all inputs sorted by bytes, then those of rules."""

    def __init__(
        self, ranked: pa.Array, functors: Mapping[str, Functor] = MappingProxyType({}), *, ansi: bool = True
    ) -> None:
        binary = ranked.cast(pa.large_binary()).cast(pa.large_binary())
        buffers = binary.buffers()
        size = len(binary)
        self.ranked = size
        self._count = size
        self._ansi = ansi
        self._functors = functors
        self.offsets = np.zeros(size + 1, np.int64)
        self.data = np.zeros(0, np.uint8)
        if size:
            self.offsets = np.frombuffer(buffers[1], np.int64, size + 1, binary.offset * 8).copy()
            self.data = np.frombuffer(buffers[2], np.uint8)[: self.offsets[-1]].copy() if buffers[2] else self.data
        self._texts = binary
        self._words: dict[str, int] | None = None
        self._memos: dict[TextCall, Memo] = {}

    def __len__(self) -> int:
        return self._count

    def word(self, text: str) -> int:
        """Return the word of a text. A new text gets the next word."""
        if self._words is None:
            self._words = {t.decode(): n for n, t in enumerate(self._texts.to_pylist())}
        word = self._words.get(text)
        if word is None:
            word = self._words[text] = self._append(text.encode())
        return word

    def text(self, word: int) -> str:
        """Return the text of a word."""
        return self.data[self.offsets[word] : self.offsets[word + 1]].tobytes().decode()

    def words_of(self, texts: Sequence[str]) -> Array:
        """Return the words of constants."""
        return np.array([self.word(t) for t in texts], np.int64)

    def all(self) -> pa.Array:
        """Return all texts by word, for result columns."""
        buffers = [None, pa.py_buffer(self.offsets[: self._count + 1]), pa.py_buffer(self.data)]
        return pa.LargeStringArray.from_buffers(self._count, buffers[1], buffers[2])

    def memo(self, call: TextCall) -> Memo:
        """Return the results of ``call`` so far."""
        if call not in self._memos:
            self._memos[call] = Memo(len(call.args))
        return self._memos[call]

    def evaluate_call(self, call: TextCall, cur: Array, place: str) -> None:
        """Compute and store the result of ``call`` for the arguments in ``cur``. ``place`` is for error messages."""
        self.evaluate_calls(call, cur[CALL : CALL + len(call.args)].reshape(1, -1), place)

    def evaluate_calls(self, call: TextCall, rows: Array, place: str) -> None:
        """Compute and store the results of ``call`` for rows of arguments; equal rows count once."""
        rows = np.unique(rows, axis=0)
        arguments = [[self._scalar(t, int(w)) for w in rows[:, n]] for n, t in enumerate(call.args)]
        try:
            functor = self._functors.get(call.fn)
            if functor is None:
                results = [
                    compute(call.fn, (*args, *call.constants), call.args, call.result, ansi=self._ansi)
                    for args in zip(*arguments, strict=True)
                ]
            else:
                results = functor.values([array_of(t, a) for t, a in zip(call.args, arguments, strict=True)])
        except (TextError, FixpointError) as problem:
            error = (problem.code, problem.message)
            raise type(problem)(*error, value=problem.value, place=place, hint=problem.hint) from problem.__cause__
        self.memo(call).put(rows, [None if r is None else self._word(call.result, r) for r in results])

    def _scalar(self, value_type: Type, word: int) -> str | float | bool:
        if value_type.kind == "text":
            return self.text(word)
        if value_type.kind == "fraction":
            return float(np.int64(word).view(np.float64))
        return word != 0 if value_type.kind == "truth" else word

    def _word(self, value_type: Type, value: Scalar) -> int:
        if value_type.kind == "text":
            return self.word(str(value))
        return int(np.float64(value).view(np.int64)) if value_type.kind == "fraction" else int(value)

    def _append(self, text: bytes) -> int:
        end = int(self.offsets[self._count])
        if self._count + 2 > len(self.offsets):
            self.offsets = np.concatenate([self.offsets, np.zeros(len(self.offsets) + 16, np.int64)])
        if end + len(text) > len(self.data):
            self.data = np.concatenate([self.data, np.zeros(len(self.data) + len(text) + 64, np.uint8)])
        self.data[end : end + len(text)] = np.frombuffer(text, np.uint8)
        self._count += 1
        self.offsets[self._count] = end + len(text)
        return self._count - 1


def sorted_texts(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return the distinct texts of all arrays, sorted by bytes."""
    plain = [a.cast(pa.large_binary()) for a in arrays if len(a)]
    if not plain:
        return pa.array([], pa.large_binary())
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and few runs have texts

    distinct = pc.unique(pa.concat_arrays(plain)).drop_null()
    return distinct.take(pc.sort_indices(distinct))
