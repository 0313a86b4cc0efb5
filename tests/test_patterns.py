"""A pattern that is none is one error, whoever computes, whether the text has it or the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import FAILED, OK, WRONG, main
from pyspark_paralagg.program.patterns import fault

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")  # with it, the command starts no JVM of its own
BACKENDS = [("local",), ("mpi", "--ranks", "2"), ("spark",)]
OF_ROWS = """.decl q(p: symbol, t: symbol)
.input q
.output o
o(t) :- q(p, t), match(p, t).
o(t) :- o(p), q(_, t), match(p, t).
"""


def run(folder: Path, text: str, rows: str, *arguments: str) -> int:
    (folder / "p.dl").write_text(text)
    (folder / "q.facts").write_text(rows)
    return main(["run", str(folder / "p.dl"), "-F", str(folder), "-D", str(folder / "out"), "-q", *arguments])


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b[0])
@pytest.mark.parametrize("pattern", ["a(", "a)|(b", "\\d('"])
def test_one_of_the_rows_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: tuple[str, ...], pattern: str
) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    assert run(tmp_path, OF_ROWS, f"c\tc\n{pattern}\tb\n", "--backend", *backend) == FAILED
    told = capfd.readouterr().err
    assert told.startswith(f"PARALAGG_DATALOG_PATTERN: `{pattern}` is not a regular expression (in ")
    assert "Hint: write a backslash before a special character" in told


def test_one_of_the_text_that_only_java_rejects(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = OF_ROWS.replace("match(p, t).", 'match("\\\\p{Foo}", t).')
    assert run(tmp_path, text, "c\tc\n", "--backend", "spark") == FAILED
    assert capfd.readouterr().err.startswith("PARALAGG_DATALOG_PATTERN: `\\p{Foo}` is not a regular expression")


@pytest.mark.parametrize("backend", ["spark", "dataframe", "local"])
@pytest.mark.parametrize(("pattern", "rows"), [("x.*", ["x😀y", "x😀yq"]), ("y", []), ("x[", None)])
def test_queries_have_a_code_for_it(spark: SparkSession, backend: str, pattern: str, rows: list[str] | None) -> None:
    text = f"""p("{pattern}"). t("x😀y").
    t(cat(x, "q")) :- o(x), strlen(x) < 4.
    o(x) :- t(x), p(y), match(y, x).
    .decl t(x: symbol)
    .output o
    """

    def found() -> list[str]:
        return sorted(r[0] for r in ra.datalog(spark, text, backend=backend)["o"].collect())

    if rows is None:  # Spark's code where Spark computes it
        with pytest.raises(Exception, match=r"\[(PARALAGG_DATALOG_|INVALID_PARAMETER_VALUE\.)PATTERN\].*x\["):
            found()
    else:
        assert found() == rows


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b[0])
def test_one_of_the_text_is_shown_before_anything_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], backend: tuple[str, ...]
) -> None:
    text = OF_ROWS.replace("match(p, t).", 'match("x[", t).')
    assert run(tmp_path, text, "c\tc\n", "--backend", *backend) == WRONG
    told = capfd.readouterr().err
    assert f"PARALAGG_DATALOG_PATTERN: `x[` is not a regular expression (in {tmp_path}/p.dl, line 4, column 24)" in told


@pytest.mark.parametrize("backend", [BACKENDS[0], BACKENDS[2]], ids=lambda b: b[0])
def test_the_whole_text_matches_with_its_line_breaks(tmp_path: Path, backend: tuple[str, ...]) -> None:
    text = """.decl q(p: symbol, t: symbol)
    .input q
    .output o
    line("c\\n"). line("c").
    o("text", strlen(t)) :- line(t), match("c", t).
    o("rows", strlen(t)) :- line(t), q(p, _), match(p, t).
    o("none", strlen(t)) :- line(t), q(p, _), !match(p, t).
    """
    assert run(tmp_path, text, "c|d\tx\n", "--backend", *backend) == OK
    assert (tmp_path / "out" / "o.csv").read_text() == "none\t2\nrows\t1\ntext\t1\n"


@pytest.mark.parametrize(
    "pattern",
    ["a(", "a)", "a{", "a{,3}", "a{2", "a**", "[z-a]", "[a", "*a", "a\\", "a|*", "a{3,2}", "(*a)", "[]", "a)|(b"],
)
def test_what_is_no_pattern(pattern: str) -> None:
    assert fault(pattern) == f"`{pattern}` is not a regular expression"


@pytest.mark.parametrize(
    "pattern", ["", "a", "()", "(a|b)*", "a{2}", "a{2,}b?", "[{]", "\\{", "[^a-z{]+", "a}", "\\[]"]
)
def test_what_is_one(pattern: str) -> None:
    assert fault(pattern) is None
