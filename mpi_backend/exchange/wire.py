"""Exchange words between ranks. Texts that rules make have different numbers on each rank and travel as bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.comm import by_sender

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import RelationPart


class Wire:
    """The exchange of a loop's messages, with translation if rules make texts."""

    def __init__(self, loop: LoopState) -> None:
        self._loop = loop
        self._translates = loop.facts.stratum.makes_strings and loop.comm.size > 1

    def exchange_and_vote(
        self, words: Array, counts: Array, parts: Sequence[RelationPart], votes: Array
    ) -> tuple[Array, Array, Array]:
        """Call ``Comm.exchange_and_vote`` with messages of ``DeltaExchange``: counts, then rows of each relation."""
        comm = self._loop.comm
        if not self._translates:
            return comm.exchange_and_vote(words, counts, votes)
        messages = np.split(words, np.cumsum(counts)[:-1])
        sent_texts = [self._replace_texts(m, _message_places(m, parts)) for m in messages]
        received_texts = comm.exchange([_pack(t) for t in sent_texts])
        received, lengths, all_votes = comm.exchange_and_vote(words, counts, votes)
        for rank, message in by_sender(received, lengths):
            self._insert_texts(message, _message_places(message, parts), received_texts[rank])
        return received, lengths, all_votes

    def exchange_rows(self, messages: list[Array], part: RelationPart, stride: int) -> list[Array]:
        """Exchange rows of one relation, as (key, values)."""
        comm = self._loop.comm
        if not self._translates:
            return comm.exchange(messages)
        cells = [*_text_keys(part), *(part.shape.key_words + v for v in _text_values(part))]
        sent = [words.copy() for words in messages]  # a message may go to several ranks
        sent_texts = [self._replace_texts(w, _places(0, len(w) // stride, stride, cells)) for w in sent]
        received_texts = comm.exchange([_pack(t) for t in sent_texts])
        received = comm.exchange(sent)
        for words, texts in zip(received, received_texts, strict=True):
            self._insert_texts(words, _places(0, len(words) // stride, stride, cells), texts)
        return received

    def _replace_texts(self, words: Array, places: Array) -> list[str]:
        """Replace this rank's text numbers in a message by positions in a list of texts. Return the list."""
        strings = self._loop.strings
        cells = words[places]
        is_made = cells >= strings.ranked
        new = np.unique(cells[is_made])
        cells[is_made] = strings.ranked + np.searchsorted(new, cells[is_made])
        words[places] = cells
        return [strings.text(int(w)) for w in new]

    def _insert_texts(self, words: Array, places: Array, texts: Array) -> None:
        """Replace positions in a message's list of texts by the numbers of these texts on this rank."""
        strings = self._loop.strings
        numbers = np.array([strings.word(t) for t in _unpack(texts)], np.int64)
        cells = words[places]
        is_made = cells >= strings.ranked
        cells[is_made] = numbers[cells[is_made] - strings.ranked]
        words[places] = cells


def _text_keys(part: RelationPart) -> list[int]:
    return [n for n, k in enumerate(part.planned.keys) if k.type == "string"]


def _text_values(part: RelationPart) -> list[int]:
    return [n for n, d in enumerate(part.planned.dependents) if d.column.type == "string"]


def _message_places(words: Array, parts: Sequence[RelationPart]) -> Array:
    at, places = 2 * len(parts), [np.zeros(0, np.int64)]
    for n, p in enumerate(parts if len(words) else ()):
        for kind, width in ((0, 1), (1, p.shape.key_words)):
            count, stride = int(words[2 * n + kind]), width + p.value_words
            cells = [*(_text_keys(p) if kind else ()), *(width + v for v in _text_values(p))]
            places.append(_places(at, count, stride, cells))
            at += count * stride
    return np.concatenate(places)


def _places(at: int, count: int, stride: int, cells: Sequence[int]) -> Array:
    rows = at + np.arange(count, dtype=np.int64)[:, None] * stride
    return (rows + np.array(cells, np.int64)[None, :]).ravel()


def _pack(texts: list[str]) -> Array:
    data = json.dumps(texts).encode()
    padded = data + b" " * (-len(data) % 8)
    return np.frombuffer(padded, np.int64)


def _unpack(words: Array) -> list[str]:
    texts: list[str] = json.loads(words.tobytes()) if len(words) else []
    return texts
