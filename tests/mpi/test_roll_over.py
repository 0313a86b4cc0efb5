"""Test that exchanges within an iteration change no row, and that they bound the memory of a rank.

The limit is so small that every full buffer of derived rows is sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from mpi.staged import Staged, run_on_ranks
from mpi.test_refining import TEXTS, stage

from benchmarks.roll_over import TEXTS as TEXTS_OF_BOWTIE
from benchmarks.roll_over import bowtie
from benchmarks.sub_buckets import measure, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rotates(runs=3)

_STEP = "edge(x, y, _)."
MORE = {
    "made texts": 'p(x, x) :- word(x, _, _). p(x, cat(y, "/")) :- p(x, y), strlen(y) < 9. '
    "p(z, y) :- p(x, y), word(x, z, _).",
    "followed": "p(x, y) :- edge(x, y, _). n(y, $MCOUNT(x)) :- p(x, y). "
    "p(x, z) :- p(x, y), edge(y, z, _), n(y, c), c > 0.",
    "tolerance": ".limit p(tolerance=0.5)\np(0, s, x, v) :- base(s, x, v). p(i + 1, s, x, $SUM(v)) :- base(s, x, v). "
    f"p(i + 1, s, y, $SUM(0.5 * v)) :- p(i, s, x, v), {_STEP}",
}
ALL = TEXTS | MORE
TINY = ("--roll-over", 1, "--out-words", 32)
FORCED = {"tiny": TINY, "small": ("--roll-over", 7), "moved": (*TINY, "--refine", 1, 1, 0)}
FAILING = {
    "overflow": f"p(s, x, $SUM(4000000000000000000)) :- base(s, x, _). p(s, y, $SUM(v)) :- p(s, x, v), {_STEP} "
    f"p(0, y, $SUM(v)) :- p(s, x, v), {_STEP}",
    "cycle": "p(x, y, $SUM(1)) :- other(x, y). p(x, z, $SUM(v)) :- p(x, y, v), other(y, z).",
}
ERRORS = {"overflow": "PARALAGG_OVERFLOW", "cycle": "PARALAGG_NO_FIXPOINT"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Staged]]:
    folder = tmp_path_factory.mktemp("roll-over")
    return folder, stage(folder, ALL)


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize(
    ("ranks", "forced"), [(1, "tiny"), (2, "tiny"), (3, "tiny"), (5, "tiny"), (2, "small"), (3, "moved")]
)
def test_early_exchanges_change_no_row(cases: tuple[Path, dict[str, Staged]], ranks: int, forced: str) -> None:
    folder, staged = cases
    tag = f"{forced}-{ranks}"
    run_on_ranks(folder, tag, ranks, *FORCED[forced])
    for name, case in staged.items():
        out = folder / name / f"out-{tag}"
        assert sorted(case.read(out)["p"], key=repr) == sorted(case.run_local()["p"], key=repr), name
        [early] = re.findall(r"(\d+) early exchanges?", (out / "forms").read_text()) if ranks > 1 else [0]
        assert (int(early) > 0) == (ranks > 1), name


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_all_ranks_end_with_the_same_error(tmp_path: Path, ranks: int) -> None:
    """A rank whose sum overflows in an early exchange takes part in those of ranks that continue."""
    stage(tmp_path, FAILING)
    run_on_ranks(tmp_path, "failing", ranks, *TINY)
    for name in FAILING:
        problems = (tmp_path / name / "out-failing" / "failed").read_text()
        assert problems.count("Traceback (most recent call last)") >= ranks
        ends = re.findall(r"FixpointError: (PARALAGG_[A-Z_]+): p: ", problems)
        assert (len(ends), set(ends)) == (ranks, {ERRORS[name]}), problems


def test_a_bowtie_needs_less_memory(tmp_path: Path) -> None:
    """One rank derives all pairs in one iteration, and sends most of them."""
    write(tmp_path, *bowtie(500))
    found = []
    for limit in (0, 10_000):
        report = measure(tmp_path, 3, {"spark.paralagg.rollOverRows": limit}, TEXTS_OF_BOWTIE["lengths"])
        table = pq.read_table(tmp_path / "out" / "p.parquet").sort_by([("x", "ascending"), ("y", "ascending")])
        found.append((report["form"], max(r["bytes"] for r in report["ranks"]), report["iterations"], table))
    (plain, before, _, expected), (early, after, iterations, rows) = found
    assert "early" not in plain
    assert re.search(r"\d\d early exchanges", early)
    assert after < before / 2
    assert iterations == found[0][2]
    assert rows == expected
