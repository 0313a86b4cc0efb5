"""Unsigned numbers: as in Soufflé up to 2^63-1; what cannot be held is an error with a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import FAILED, OK, WRONG, main
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from pathlib import Path

HEAD = ".decl u(x: unsigned, y: unsigned)\n.decl n(x: number)\n.input u, n\n.output o\n"
pytestmark = pytest.mark.usefixtures("spark")  # with it, the command starts no JVM of its own
BACKENDS = [("local",), ("mpi", "--ranks", "2"), ("spark",)]
U = "5\t3\n9223372036854775807\t1\n0\t0\n"


def run(folder: Path, text: str, *arguments: str) -> int:
    (folder / "p.dl").write_text(HEAD + text)
    (folder / "u.facts").write_text(U)
    (folder / "n.facts").write_text("-1\n2\n")
    return main(["run", str(folder / "p.dl"), "-F", str(folder), "-D", str(folder / "out"), "-q", *arguments])


HELD = """
o("difference", x - y) :- u(x, y), x >= y.
o("first down, then up", x - y - 3u + 3u) :- u(x, y), x = 5.
o("bits of a complement", bnot(x) band 255) :- u(x, y), x = 5.
o("shifted", x bshl 2) :- u(x, y), x = 5.
o("quotient", x / (y + 1)) :- u(x, y), x = 5.
o("of a text", to_unsigned("7")) :- u(0, _).
"""
VALUES = [
    ("bits of a complement", 250),
    ("difference", 0),
    ("difference", 2),
    ("difference", 9223372036854775806),
    ("first down, then up", 2),
    ("of a text", 7),
    ("quotient", 1),
    ("shifted", 20),
]
LEAVING = {
    "a_difference_below_0": ("o(y - x) :- u(x, y).", "line 5, column 3"),
    "its_comparison": ("o(1) :- u(x, y), y - x > 0.", "line 5, column 18"),
    "a_difference_of_literals": ("o(1) :- u(_, _), 0u - 1u > 0u.", "line 5, column 18"),
    "a_complement": ("o(1) :- u(x, _), bnot(x) > 0.", "line 5, column 18"),
    "a_shift": ("o(x bshl 62) :- u(x, _).", "line 5, column 3"),
    "a_text": ('o(to_unsigned("-1")) :- u(_, _).', "line 5, column 3"),
    "a_number": ("o(itou(x)) :- n(x).", "line 5, column 3"),
    "a_cast": ("o(as(x, unsigned)) :- n(x).", "line 5, column 3"),
    "a_number_in_an_unsigned_column": (".decl o(x: unsigned)\no(x) :- n(x).", "line 6, column 3"),
    "what_an_equation_gives": ("o(z) :- u(x, y), z = y - x.", "line 5, column 22"),
    "of_a_column_that_is_not_declared": ("v(y) :- u(_, y). o(y - 2) :- v(y).", "line 5, column 20"),
    "divided": ("o(((y - x) / 2)) :- u(x, y).", "line 5, column 5"),
}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b[0])
def test_what_can_be_held_is_that_of_souffle(tmp_path: Path, backend: tuple[str, ...]) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    assert run(tmp_path, HELD, "--backend", *backend) == OK
    assert (tmp_path / "out" / "o.csv").read_text() == "".join(f"{t}\t{n}\n" for t, n in VALUES)


@pytest.mark.parametrize("name", list(LEAVING))
def test_what_cannot_be_held_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    text, place = LEAVING[name]
    assert run(tmp_path, text, "--backend", "local") == FAILED
    told = capfd.readouterr().err
    assert told.startswith(
        f"PARALAGG_DATALOG_UNSIGNED: an unsigned number in {tmp_path}/p.dl, {place} is below 0 or above"
    )


@pytest.mark.parametrize("backend", BACKENDS[1:], ids=lambda b: b[0])
def test_others_say_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: tuple[str, ...]) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    for name in ("a_difference_below_0", "a_complement"):
        assert run(tmp_path, LEAVING[name][0], "--backend", *backend) == FAILED
        told = capfd.readouterr().err
        assert told.startswith(f"PARALAGG_DATALOG_UNSIGNED: an unsigned number in {tmp_path}/p.dl, {LEAVING[name][1]}")


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b[0])
def test_a_sum_that_is_too_large_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: tuple[str, ...]
) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    assert run(tmp_path, "o(x + y) :- u(x, y).", "--backend", *backend) == FAILED
    assert "ARITHMETIC_OVERFLOW" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("o(x) :- u(x, _), x < 18446744073709551615.", "PARALAGG_DATALOG_NUMBER"),
        ("o(x) :- u(x, _), x < 9223372036854775808u.", "PARALAGG_DATALOG_NUMBER"),
        ("o(-x) :- u(x, _).", "PARALAGG_DATALOG_UNSIGNED"),
        ("o(x) :- u(x, _), x > -5u.", "PARALAGG_DATALOG_UNSIGNED"),
        (".decl o(x: unsigned)\no(9223372036854775808).", "PARALAGG_BAD_FACT"),
    ],
)
def test_a_literal_that_cannot_be_held_is_refused(rule: str, code: str) -> None:
    with pytest.raises(ParalaggError) as caught:
        resolve_text(parse(HEAD + rule), {"u": [("x", "bigint"), ("y", "bigint")], "n": [("x", "bigint")]})
    assert (caught.value.code, str(caught.value.place)[:5]) == (code, "line ")


def test_a_recursion_over_unsigned_numbers_is_proved(tmp_path: Path) -> None:
    text = "o(0, 0).\no(y, $MIN(d + y)) :- o(x, d), u(y, x).\no(y, $MIN(d + x)) :- o(x, d), u(x, y)."
    assert run(tmp_path, text, "--backend", "local") == OK
    assert run(tmp_path, "o(5u, 2u).\no(y, $MIN(d - y)) :- o(x, d), u(x, y).", "--backend", "local") == FAILED


@pytest.mark.parametrize("backend", ["local", "spark"])
def test_without_ansi_rules_nothing_wraps_around(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: str, request: pytest.FixtureRequest
) -> None:
    text, message = "o(x + y) :- u(x, y).", "PARALAGG_DATALOG_UNSIGNED: without ANSI mode, a sum or product"
    if backend == "local":
        assert run(tmp_path, text, "--backend", "local", "--conf", "spark.sql.ansi.enabled=false") == WRONG
        told = capfd.readouterr().err
        assert told.startswith(message)
        assert "line 5, column 3" in told
        return
    spark = request.getfixturevalue("spark")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    u = spark.sql("select 1L x, 2L y")
    with pytest.raises(ParalaggError, match=message):
        ra.datalog(spark, ".decl u(x: unsigned, y: unsigned)\n.input u\n" + text, u=u)
    assert ra.datalog(spark, text, u=u)["o"].collect() == [(3,)]
