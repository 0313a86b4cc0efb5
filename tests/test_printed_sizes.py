"""Sizes that the command prints without Spark: as many as rows, and no row gets its values for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpi_backend.loop.bitmap_loop import BitmapLoop
from pyspark_paralagg.command.cli import OK, main

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """.decl e(x: number, y: number)
e(1, 2). e(2, 3). e(3, 1). e(3, 4).
.decl pairs(x: number, y: number)
pairs(x, y) :- e(x, y).
pairs(x, z) :- pairs(x, y), e(y, z).
.decl twice(x: number, y: number)
twice(x, y) :- e(x, y).
twice(x, z) :- twice(x, y), twice(y, z).
.decl highest(d: number)
highest($MAX(y)) :- e(_, y).
highest($MAX(d)) :- highest(d), e(_, _).
.decl least(x: number, d: number)
least(x, $MIN(0)) :- e(x, 2).
least(y, $MIN(d + 1)) :- least(x, d), e(x, y).
.decl even(x: number)
.decl odd(x: number)
even(1).
odd(y) :- even(x), e(x, y), y != 4.
even(y) :- odd(x), e(x, y).
.decl far(x: number)
far(x) :- least(x, d), d > 1.
.decl names(s: symbol)
names("a"). names("b"). names(cat("a", to_string(x))) :- far(x).
.decl none(x: number)
none(x) :- e(x, y), x > y, y > 5.
.decl holds()
holds() :- far(4).
"""
SIZES = {
    "pairs": 12,
    "twice": 12,
    "highest": 1,
    "least": 4,
    "even": 4,
    "odd": 3,
    "far": 2,
    "names": 4,
    "none": 0,
    "holds": 1,
}


@pytest.mark.parametrize("backend", [("local",), ("mpi", "--ranks", "2")], ids=lambda b: b[0])
def test_they_are_the_numbers_of_rows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: tuple[str, ...]
) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    for written in (False, True):  # a relation that is written gets its values
        outputs = "".join(f".printsize {name}\n" + (f".output {name}\n" if written else "") for name in SIZES)
        (tmp_path / "p.dl").write_text(TEXT + outputs)
        assert main(["run", str(tmp_path / "p.dl"), "-D", str(tmp_path), "-q", "--backend", *backend]) == OK
        assert capfd.readouterr().out == "".join(f"{name}\t{size}\n" for name, size in SIZES.items())
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == SIZES["pairs"]


def test_rows_that_nobody_reads_get_no_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(BitmapLoop, "results")
    (tmp_path / "p.dl").write_text(TEXT + ".printsize pairs\n")
    assert main(["run", str(tmp_path / "p.dl"), "-D", str(tmp_path), "-q", "--backend", "local"]) == OK
    assert capfd.readouterr().out == "pairs\t12\n"
