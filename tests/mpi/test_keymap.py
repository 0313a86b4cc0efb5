"""Test the map from keys to dense ids: a hash table, a direct table, and the change from direct to hashed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_backend.kernels.keys import DIRECT
from mpi_backend.state.key_map import KeyMap

MIN, MAX = -(1 << 63), (1 << 63) - 1
WORDS = st.one_of(st.integers(-5, 30), st.sampled_from([MIN, MAX, 0]), st.integers(MIN, MAX))


def dictionary_ids(keys: list[tuple[int, ...]]) -> list[int]:
    """Return the ids that a dictionary assigns."""
    ids: dict[tuple[int, ...], int] = {}
    return [ids.setdefault(key, len(ids)) for key in keys]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[WORDS] * n), min_size=1, max_size=200)))
def test_ids_equal_those_of_a_dictionary(keys: list[tuple[int, ...]]) -> None:
    width = len(keys[0])
    ids = KeyMap(width)
    half = len(keys) // 2
    rows = np.array(keys, np.int64).ravel()
    result = [*ids.add(rows[: half * width]).tolist(), *ids.add(rows[half * width :]).tolist()]
    assert result == dictionary_ids(keys)
    assert ids.find(rows).tolist() == result
    other = (77,) * width
    assert ids.find(np.array(other)).tolist() == [result[keys.index(other)] if other in keys else -1]


def test_a_map_keeps_its_ids_when_it_grows() -> None:
    ids = KeyMap(2)
    rows = np.arange(200_000, dtype=np.int64) * 7
    assert ids.add(rows).tolist() == list(range(100_000))
    assert ids.add(rows[::-1].reshape(-1, 2)[:, ::-1].ravel()).tolist() == list(range(99_999, -1, -1))
    assert len(ids) == 100_000


@pytest.mark.parametrize("low", [0, -1000, MIN, MAX - 999])
def test_dense_keys_use_a_direct_table(low: int) -> None:
    ids = KeyMap(1)
    ids.expect(low, low + 999, 1000)
    assert ids.meta[DIRECT]
    rows = np.arange(999, -1, -1, dtype=np.int64) + low
    assert ids.add(rows).tolist() == list(range(1000))
    assert ids.find(rows).tolist() == list(range(1000))


def test_a_key_out_of_range_replaces_the_direct_table_and_keeps_ids() -> None:
    ids = KeyMap(1)
    ids.expect(0, 99, 100)
    before = ids.add(np.arange(50, dtype=np.int64))
    assert ids.find(np.array([-1, 100, MAX, MIN, 70])).tolist() == [-1] * 5
    assert ids.add(np.array([7, 10**12, MIN])).tolist() == [7, 50, 51]
    assert not ids.meta[DIRECT]
    assert ids.find(np.arange(50, dtype=np.int64)).tolist() == before.tolist()


def test_sparse_keys_are_hashed() -> None:
    ids = KeyMap(1)
    ids.expect(0, 10**9, 3)
    assert not ids.meta[DIRECT]


def test_a_key_without_words_is_one_key() -> None:
    ids = KeyMap(0)
    assert ids.find(np.zeros(0, np.int64), count=1).tolist() == [-1]
    assert ids.add(np.zeros(0, np.int64), count=3).tolist() == [0, 0, 0]
    assert len(ids) == 1


def test_rows_may_have_a_stride() -> None:
    ids = KeyMap(1)
    rows = np.array([9, 5, 9, 6, 9, 5], np.int64)
    assert ids.add(rows, 1, 2, 3).tolist() == [0, 1, 0]
    assert ids.find(rows, 0, 2, 3).tolist() == [-1, -1, -1]
