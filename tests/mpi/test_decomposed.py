"""Test one fixpoint for each value of the carried keys: the same rows and errors on one thread and on several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from mpi.staged import Staged
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from mpi_backend.loop import decomposed
from mpi_backend.loop.decomposed import Decomposed
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = "found(s, s, $MIN(0)) :- start(s). found(s, y, $MIN(d + w)) :- found(s, x, d), edge(x, y, w)."
COLUMNS = {"edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")], "start": [("s", "bigint")]}
VERTICES, EDGES, SOURCES = 300, 900, 40


def count_parallel(monkeypatch: pytest.MonkeyPatch, cores: int) -> list[int]:
    """Set the number of cores. Return a list that gets the number of parallel fixpoints of each evaluation."""
    counts: list[int] = []
    run = Decomposed.run

    def counted(self: Decomposed) -> None:
        counts.append(len(self._all))
        run(self)

    monkeypatch.setattr(decomposed, "available_cores", lambda: cores)
    monkeypatch.setattr(Decomposed, "run", counted)
    return counts


@pytest.fixture(params=[1, 2, 7])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Set the number of cores, and check that each core runs a fixpoint."""
    counts = count_parallel(monkeypatch, request.param)
    yield counts
    assert counts == [request.param]


def staged(weights: np.ndarray, edges: np.ndarray) -> Staged:  # type: ignore[type-arg]
    """Return the program of shortest paths from each source."""
    facts = {
        "edge": pa.table({"x": edges[:, 0], "y": edges[:, 1], "w": weights}),
        "start": pa.table({"s": range(SOURCES)}),
    }
    return Staged(resolve_text(parse(PATHS, "ways"), COLUMNS), facts, ["found"])


def random_edges() -> np.ndarray:  # type: ignore[type-arg]
    return np.unique(np.random.default_rng(5).integers(0, VERTICES, (EDGES, 2)), axis=0)


def assert_every_value_has_its_own_rows() -> None:
    edges = random_edges()
    weights = np.random.default_rng(6).integers(1, 100, len(edges))
    matrix = coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(VERTICES, VERTICES)).tocsr()
    distances = dijkstra(matrix, indices=range(SOURCES))
    expected = [(s, n, int(d)) for s, row in enumerate(distances) for n, d in enumerate(row) if np.isfinite(d)]
    assert sorted(staged(weights, edges).run_local()["found"]) == expected


@pytest.mark.usefixtures("threads")
def test_every_value_has_its_own_rows() -> None:
    assert_every_value_has_its_own_rows()


@pytest.mark.parametrize(("max_bytes", "parallel"), [(0, 1), (1 << 20, 2), (1 << 30, 7)])
def test_memory_limits_the_number_of_cores(monkeypatch: pytest.MonkeyPatch, max_bytes: int, parallel: int) -> None:
    """Each core takes half a megabyte for derived rows, and some 25 bytes for each key."""
    counts = count_parallel(monkeypatch, 7)
    monkeypatch.setattr(decomposed, "MOST_BYTES", max_bytes)
    assert_every_value_has_its_own_rows()
    assert counts == [parallel]


@pytest.mark.usefixtures("threads")
def test_an_error_of_one_value_ends_all() -> None:
    """Only paths from source 17 overflow a word. Other sources may be evaluated before or after."""
    edges = np.array([[s, s + SOURCES] for s in range(SOURCES)] + [[17 + SOURCES, 17 + 2 * SOURCES]])
    weights = np.where(edges[:, 0] % SOURCES == 17, np.iinfo(np.int64).max, 1)
    with pytest.raises(ParalaggError) as caught:
        staged(weights, edges).run_local()
    assert caught.value.code == "ARITHMETIC_OVERFLOW"
