"""What the documentation shows is run: page by page, in order; ``pages`` says what a page may tell its test.

Python and SQL run, DuckDB's SQL in DuckDB; what is printed is compared with the ``text`` fence right behind it. Datalog
has to parse; commands have to have the options, targets and extras that are shown.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pages import PAGES, PROGRAMS, ROOT, blocks, is_as_shown, needs, run
from rows import frame
from spark_versions import SPARK, skip_without_delta

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import argument_parser
from pyspark_paralagg.datalog.parse.parse import parse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

DATALOG = ROOT / "docs" / "datalog.md"
COMMANDS = ("sh", "bash")


def with_any(*languages: str, among: Sequence[Path] = (*PAGES, ROOT / "README.md")) -> list[Any]:
    """The pages that have a block of one of ``languages``."""
    pages = [page for page in among if any(b.language in languages for b in blocks(page))]
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages]


@pytest.mark.rotates(runs=2)
@pytest.mark.slow("the page about Delta makes many commits")
@pytest.mark.parametrize("page", with_any(*PROGRAMS, among=PAGES))  # test_readme has the README
def test_what_a_page_shows_runs(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    for package in needs(page):
        pytest.importorskip(package)
    if SPARK < (4, 0) and ("WITH RECURSIVE" in page.read_text(encoding="utf-8") or page.name == "connect.md"):
        pytest.skip("Spark 4.0 and later have its SQL, or Connect as the page uses it")
    if SPARK < (4, 1) and ("UNION ALL" in page.read_text(encoding="utf-8") or page.name == "connect.md"):
        pytest.skip("Spark 4.1 and later run their own recursion, and report over Connect")
    if any(b.language == "own process" for b in blocks(page)):
        command = [sys.executable, str(ROOT / "tests" / "pages.py"), str(page)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
        skip_without_delta(done.stderr)
        assert done.returncode == 0, done.stderr[-4000:]
    else:
        run(page, {"spark": request.getfixturevalue("spark")})


@pytest.mark.parametrize(
    ("output", "expected", "is_shown"),
    [
        ("one\n  two  \n", "one\ntwo", True),
        ("spark: 4 iterations, 3 rows", "spark: … iterations,\n3 rows", True),
        ("spark: 4 iterations, 3 rows", "spark: … iterations, 2 rows", False),
        ("one two", "one", False),
        ("a.b", "aXb", False),
        ("", "one", False),
    ],
)
def test_output_is_compared_with_what_is_shown(output: str, expected: str, is_shown: bool) -> None:  # noqa: FBT001
    assert is_as_shown(output, expected) is is_shown


def test_a_page_in_a_process_of_its_own_fails_where_it_prints_otherwise(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "<!-- own process: to see it -->\n```python\nprint(1 + 1)\n```\n\n```text\n{}\n```\n"
    command = [sys.executable, str(ROOT / "tests" / "pages.py"), str(page)]
    for shown, code in (("2", 0), ("3", 1)):
        page.write_text(text.format(shown))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
        assert done.returncode == code, done.stderr
    assert f"{page}:6: it prints\n2" in done.stderr


def test_a_fence_is_left_out_with_a_reason_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('<!-- not run: for once -->\n```python\n1 / 0\n```\n```sql title="DuckDB"\nSELECT 1\n```\n')
    assert [(b.language, b.title, b.line) for b in blocks(page)] == [("sql", "DuckDB", 5)]
    page.write_text("<!-- not run: -->\n```python\n1 / 0\n```\n")
    with pytest.raises(AssertionError, match="says nothing"):
        blocks(page)


@pytest.mark.parametrize("page", with_any("prolog"))
def test_texts_of_a_page_parse(page: Path) -> None:
    for block in blocks(page):
        if block.language == "prolog":
            assert parse(block.text, f"{page.name}:{block.line}").clauses


@pytest.mark.parametrize("page", with_any(*COMMANDS))
def test_commands_of_a_page_are_there(page: Path) -> None:
    lines = [line for b in blocks(page) if b.language in COMMANDS for line in b.text.replace("\\\n", " ").splitlines()]
    for words in filter(None, (shlex.split(line, comments=True) for line in lines)):
        check(words)


def check(words: list[str]) -> None:
    """One command: its program's options, the Makefile's target, the extra of the package."""
    if words[0] == "paralagg":
        argument_parser().parse_args(words[1:])  # ends with a SystemExit where an option is not there
    elif words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE), words
    elif words[:2] == ["pip", "install"]:
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        for extra in re.findall(r"pyspark-paralagg\[(\w+)\]", " ".join(words)):
            assert re.search(rf"^{extra} = \[", project, flags=re.MULTILINE), words


def test_the_indexed_rules_of_datalog_md_are_pagerank(spark: SparkSession) -> None:
    text = next(b.text for b in blocks(DATALOG) if "rank(i + 1" in b.text)
    rules = text + "node(x) :- edge(x, _). node(y) :- edge(_, y). degree(x, $COUNT) :- edge(x, _)."
    edges = frame(spark, "x bigint, y bigint", [(1, 2), (2, 1), (2, 3)])
    found = {r[0]: r[1] for r in ra.datalog(spark, rules, edge=edges)["rank"].collect()}
    # Twenty rounds: the change of a round has fallen to 0.85^20 / 2^10.
    assert found[1] == pytest.approx(0.15 + 0.85 * found[2] / 2, rel=1e-4)
    assert found[3] == pytest.approx(found[1], rel=1e-9)


def test_the_error_of_datalog_md_is_what_is_said(spark: SparkSession) -> None:
    shown = next(b.text for b in blocks(DATALOG) if "UNKNOWN_RELATION" in b.text).strip()
    with pytest.raises(ra.DatalogError) as caught:
        ra.datalog(spark, "p(x) :- egde(x, y).", edge=frame(spark, "x bigint, y bigint", []))
    assert str(caught.value) == shown
