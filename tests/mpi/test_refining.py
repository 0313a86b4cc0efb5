"""Test that sub-buckets are split and merged while a loop runs, and that this changes no row.

Thresholds are so small that buckets are split and merged in nearly every round.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from mpi.staged import Staged, run_on_ranks

from benchmarks.sub_buckets import measure, trees, write
from mpi_backend.state.owner import Owner
from mpi_backend.state.refinable import refinable
from mpi_backend.state.strings import Strings, sorted_texts
from mpi_backend.state.sub_buckets import Refinement, refine, whole_buckets
from mpi_backend.state.types import type_of
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mpi.staged import Row

NUMBERS = [("x", "bigint"), ("y", "bigint")]
COLUMNS = {
    "edge": [*NUMBERS, ("w", "bigint")],
    "other": NUMBERS,
    "word": [("x", "string"), ("y", "string"), ("w", "bigint")],
    "base": [("s", "bigint"), ("x", "bigint"), ("v", "double")],
}
_STEP = "edge(y, z, _)."
TEXTS = {
    "set": f"p(x, y) :- edge(x, y, _). p(x, z) :- p(x, y), {_STEP}",
    "shortest": "p(x, y, $MIN(w)) :- word(x, y, w). p(x, z, $MIN(v + w)) :- p(x, y, v), word(y, z, w).",
    "best": f"p(x, y, $MIN(w), $MAX(w)) :- edge(x, y, w). p(x, z, $MIN(v), $MAX(w)) :- p(x, y, v, w), {_STEP}",
    "limit": f".limit p(iterations=12)\np(x, y, $MIN(w)) :- edge(x, y, w). p(x, z, $MIN(v)) :- p(x, y, v), {_STEP}",
    "counts": f"p(x, y, $SUM(1)) :- edge(x, y, _). p(x, z, $SUM(v)) :- p(x, y, v), {_STEP}",
    "rounds": ".limit p(iterations=12)\np(0, s, x, v) :- base(s, x, v). p(i + 1, s, x, $SUM(v)) :- base(s, x, v). "
    "p(i + 1, s, y, $SUM(0.5 * v)) :- p(i, s, x, v), edge(x, y, _).",
    "both sides": "p(x, y) :- other(x, y). p(x, z) :- p(x, y), q(y, z). q(x, y) :- edge(x, y, _). "
    "q(z, x) :- q(y, x), edge(y, z, _), p(x, x).",
    "one another": "p(x, y) :- edge(x, y, _). p(x, z) :- q(y, x), p(y, z). "
    "q(x, y) :- other(x, y). q(x, z) :- q(x, y), p(x, z).",
}
CLASSES = {"counts": "accumulating", "rounds": "iterated"}
"""The class of a case's stratum; the others are lattices. "both sides" and "one another" look up rows that move."""
SIZE = 60
FORCED = ("--refine", 1, 1, 0)


def inputs() -> dict[str, list[Row]]:
    """Return a tree whose edges lead to the root of a chain, with two null keys; names of its vertices; other pairs."""
    edges: list[Row] = [(i, i - 1 if i < SIZE // 3 else i * i % (SIZE // 3), i % 7) for i in range(1, SIZE)]
    words = [(f"v{x}", f"v{y}", w) for x, y, w in edges]
    base = [(s, s, float(1 << 20)) for s in range(0, SIZE, 3)]
    other = [(i % 20, (i * 7 + 3) % 20) for i in range(30)]
    return {"edge": [*edges, (None, 5, 1), (5, None, 1)], "word": words, "base": base, "other": other}


def stage(folder: Path, texts: Mapping[str, str]) -> dict[str, Staged]:
    """Write each text with ``inputs`` to a folder of its name."""
    staged = {}
    for name, text in texts.items():
        columns = {k: v for k, v in COLUMNS.items() if f"{k}(" in text}
        staged[name] = Staged(resolve_text(parse(text), columns), inputs(), ["p"])
        staged[name].write(folder / name)
    return staged


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Staged]]:
    folder = tmp_path_factory.mktemp("refining")
    return folder, stage(folder, TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_each_class_has_a_form(cases: tuple[Path, dict[str, Staged]], name: str) -> None:
    stratum = cases[1][name].plan.strata[-1]
    form = refinable(stratum)
    assert form is not None
    assert stratum.relation_class == CLASSES.get(name, "lattice")
    assert bool(form.to_all) == (name in ("both sides", "one another"))


@pytest.mark.rotates(runs=2)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_splits_and_merges_change_no_row(cases: tuple[Path, dict[str, Staged]], ranks: int) -> None:
    folder, staged = cases
    run_on_ranks(folder, str(ranks), ranks, *FORCED)
    for name, case in staged.items():
        out = folder / name / f"out-{ranks}"
        expected = case.run_local()["p"]
        assert len(expected) > SIZE
        assert sorted(case.read(out)["p"], key=repr) == sorted(expected, key=repr), name
        counts = re.findall(r"(\d+) buckets? split, (\d+) merged", (out / "forms").read_text())
        assert (len(counts) == 1) == (ranks > 1)
        for splits, merges in counts:
            assert int(splits) > 0, name
            assert int(merges) > 0, name


@pytest.mark.rotates(runs=2)
@pytest.mark.parametrize("ranks", [2, 4])
def test_conf_balances_the_closure_of_a_tree(tmp_path: Path, ranks: int) -> None:
    write(tmp_path, *trees(1 << 12)["skewed"])
    found = []
    confs = {"spark.paralagg.subBuckets": "auto", "spark.paralagg.subBuckets.rounds": 2}
    never = {"spark.paralagg.subBuckets.splitRatio": 1000}
    for settings in ({}, confs | never, confs):
        report = measure(tmp_path, ranks, settings)
        table = pq.read_table(tmp_path / "out" / "p.parquet").sort_by([("x", "ascending"), ("y", "ascending")])
        found.append((report["form"], report["work_balance"], table))
    (plain, before, expected), (whole, same, unmoved), (split, after, moved) = found
    assert ("split" in plain, "0 buckets split, 0 merged" in whole) == (False, True)
    assert re.search(r"[1-9]\d* buckets? split, 0 merged", split)
    assert same == before
    assert after < before
    assert unmoved == expected
    assert moved == expected


def test_an_endless_climb_is_traced_over_rows_that_have_moved(tmp_path: Path) -> None:
    edges = [(i, (i + 1) % 12, -1) for i in range(12)]
    text = "p(x, y, $MIN(w)) :- edge(x, y, w). p(x, z, $MIN(v + w)) :- p(x, y, v), edge(y, z, w)."
    staged = Staged(resolve_text(parse(text), {"edge": COLUMNS["edge"]}), {"edge": edges}, ["p"])
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", 3, *FORCED)
    with pytest.raises(AssertionError, match=r"PARALAGG_NO_FIXPOINT.*a cycle never ends"):
        staged.read(tmp_path / "case" / "out-x")


def test_map_of_whole_buckets_changes_no_rank() -> None:
    rows, strings = np.arange(2000), Strings(sorted_texts([]))
    types = [type_of("bigint")] * 2
    fixed, mapped = Owner([0], types, 7, 3), Owner([0], types, 7, 3, [1], 1, whole_buckets(7))
    assert (mapped.ranks(rows, 2, -1, strings, 1000) == fixed.ranks(rows, 2, -1, strings, 1000)).all()


def test_rows_of_a_split_bucket_are_where_lookups_go() -> None:
    rows = np.stack([np.arange(1000) % 10, np.arange(1000)], axis=1).ravel()
    owner = Owner([0], [type_of("bigint")] * 2, 5, 5, [1], 1, whole_buckets(5))
    assert owner.counts is not None
    keys = rows, 2, -1, Strings(sorted_texts([])), 1000
    whole, parts = owner.ranks(*keys), owner.parts(*keys)
    owner.counts[parts[7]] = 16
    ranks, places = owner.ranks(*keys), np.stack(owner.all_ranks(*keys))
    is_split = parts == parts[7]
    assert set(ranks[is_split]) == set(range(5))
    assert (ranks[~is_split] == whole[~is_split]).all()
    assert ((places == ranks).sum(axis=0) == 1).all()
    assert ((places >= 0).sum(axis=0) == np.where(is_split, 5, 1)).all()


def test_buckets_are_split_above_the_ratio_and_merged_above_the_share() -> None:
    counts = np.array([1, 4, 4, 1], np.int32)
    sizes = np.array([90, 1, 1, 1, 1, 5, 5, 5, 5, 0])
    assert refine(counts, sizes, Refinement(), 4).tolist() == [4, 4, 4, 1]  # half of the buckets is split
    assert refine(counts, sizes, Refinement(merge_share=0.4), 4).tolist() == [4, 1, 1, 1]
    assert refine(counts, sizes, Refinement(split_ratio=9), 4).tolist() == [1, 4, 4, 1]
    assert refine(np.array([16]), np.ones(16), Refinement(split_ratio=0), 4).tolist() == [16]  # four on each rank
