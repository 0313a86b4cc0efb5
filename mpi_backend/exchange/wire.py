"""Messages between ranks. Texts that rules made have numbers of their own on each rank: those travel as bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import Loop
    from mpi_backend.state.relation_part import Part


class Wire:
    """Exchanges words; where rules make texts it translates the words of texts."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._translates = loop.facts.stratum.makes_strings and loop.comm.size > 1

    def meet(self, words: Array, counts: Array, parts: Sequence[Part], votes: Array) -> tuple[list[Array], Array]:
        """As ranks meet, with the messages of ``DeltaExchange``: counts, then rows of each relation."""
        comm = self._loop.comm
        if not self._translates:
            return comm.meet(words, counts, votes)
        made = [self._name(m, _message_places(m, parts)) for m in np.split(words, np.cumsum(counts)[:-1])]
        texts = comm.exchange([_packed(t) for t in made])
        received, heard = comm.meet(words, counts, votes)
        for message, told in zip(received, texts, strict=True):
            self._number(message, _message_places(message, parts), told)
        return received, heard

    def exchange_rows(self, messages: list[Array], part: Part, stride: int) -> list[Array]:
        """Rows of one relation as (key, values)."""
        comm = self._loop.comm
        if not self._translates:
            return comm.exchange(messages)
        cells = [*_text_keys(part), *(part.shape.key_words + v for v in _text_values(part))]
        sent = [words.copy() for words in messages]  # a message may go to several ranks
        made = [self._name(w, _places(0, len(w) // stride, stride, cells)) for w in sent]
        texts = comm.exchange([_packed(t) for t in made])
        received = comm.exchange(sent)
        for words, told in zip(received, texts, strict=True):
            self._number(words, _places(0, len(words) // stride, stride, cells), told)
        return received

    def _name(self, words: Array, places: Array) -> list[str]:
        """Numbers the texts of this rank that are in a message by where they stand among those that go with it."""
        strings = self._loop.strings
        moved = words[places]
        mine = moved >= strings.ranked
        new = np.unique(moved[mine])
        moved[mine] = strings.ranked + np.searchsorted(new, moved[mine])
        words[places] = moved
        return [strings.text(int(w)) for w in new]

    def _number(self, words: Array, places: Array, told: Array) -> None:
        """Gives the texts that came with a message the numbers that they have here."""
        strings = self._loop.strings
        here = np.array([strings.word(t) for t in _unpacked(told)], np.int64)
        moved = words[places]
        theirs = moved >= strings.ranked
        moved[theirs] = here[moved[theirs] - strings.ranked]
        words[places] = moved


def _text_keys(part: Part) -> list[int]:
    return [n for n, k in enumerate(part.of.keys) if k.type == "string"]


def _text_values(part: Part) -> list[int]:
    return [n for n, d in enumerate(part.of.dependents) if d.column.type == "string"]


def _message_places(words: Array, parts: Sequence[Part]) -> Array:
    at, found = 2 * len(parts), [np.zeros(0, np.int64)]
    for n, p in enumerate(parts if len(words) else ()):
        for kind, width in ((0, 1), (1, p.shape.key_words)):
            count, stride = int(words[2 * n + kind]), width + p.value_words
            cells = [*(_text_keys(p) if kind else ()), *(width + v for v in _text_values(p))]
            found.append(_places(at, count, stride, cells))
            at += count * stride
    return np.concatenate(found)


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
