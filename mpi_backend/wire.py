"""Messages between ranks. Texts that rules made have numbers of their own on each rank: those travel as bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop import Loop
    from mpi_backend.part import Part


class Wire:
    """Exchanges words; where rules make texts it translates the words of texts."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._translates = loop.facts.stratum.makes_strings and loop.comm.size > 1

    def exchange(self, messages: list[Array], parts: Sequence[Part]) -> list[Array]:
        """Messages of ``DeltaExchange``: counts, then rows of each relation."""
        return self._exchange(messages, lambda words: _message_cells(words, parts))

    def exchange_rows(self, messages: list[Array], part: Part, stride: int) -> list[Array]:
        """Rows of one relation as (key, values)."""
        cells = [*_text_keys(part), *(part.shape.key_words + v for v in _text_values(part))]
        return self._exchange(messages, lambda words: iter([_places(0, len(words) // stride, stride, cells)]))

    def _exchange(self, messages: list[Array], cells) -> list[Array]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - a function of words
        comm = self._loop.comm
        if not self._translates:
            return comm.exchange(messages)
        strings = self._loop.strings
        made: list[list[str]] = []
        sent = []
        for words in messages:
            out = words.copy()
            places = np.concatenate([*cells(out), np.zeros(0, np.int64)]).astype(np.int64)
            new = np.unique(out[places])
            new = new[new >= strings.ranked]
            made.append([strings.text(int(w)) for w in new])
            moved = out[places]
            mine = moved >= strings.ranked
            moved[mine] = strings.ranked + np.searchsorted(new, moved[mine])
            out[places] = moved
            sent.append(out)
        texts = comm.exchange([_packed(t) for t in made])
        received = comm.exchange(sent)
        for words, told in zip(received, texts, strict=True):
            here = np.array([strings.word(t) for t in _unpacked(told)], np.int64)
            places = np.concatenate([*cells(words), np.zeros(0, np.int64)]).astype(np.int64)
            moved = words[places]
            theirs = moved >= strings.ranked
            moved[theirs] = here[moved[theirs] - strings.ranked]
            words[places] = moved
        return received


def _text_keys(part: Part) -> list[int]:
    return [n for n, k in enumerate(part.of.keys) if k.type == "string"]


def _text_values(part: Part) -> list[int]:
    return [n for n, d in enumerate(part.of.dependents) if d.column.type == "string"]


def _message_cells(words: Array, parts: Sequence[Part]) -> Iterator[Array]:
    if not len(words):
        return
    at = 2 * len(parts)
    for n, p in enumerate(parts):
        for kind, width in ((0, 1), (1, p.shape.key_words)):
            count, stride = int(words[2 * n + kind]), width + p.value_words
            cells = [*(_text_keys(p) if kind else ()), *(width + v for v in _text_values(p))]
            yield _places(at, count, stride, cells)
            at += count * stride


def _places(at: int, count: int, stride: int, cells: Sequence[int]) -> Array:
    rows = at + np.arange(count, dtype=np.int64)[:, None] * stride
    return (rows + np.array(cells, np.int64)[None, :]).ravel()


def _packed(texts: list[str]) -> Array:
    data = json.dumps(texts).encode()
    padded = data + b" " * (-len(data) % 8)
    return np.frombuffer(padded, np.int64)


def _unpacked(words: Array) -> list[str]:
    found: list[str] = json.loads(words.tobytes()) if len(words) else []
    return found
