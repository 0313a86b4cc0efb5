"""Check that docs/design.md and docs/papers.md name existing files, and that code cites existing headings of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SCALA = ROOT / "jvm_shim/src/main/scala/org/apache/spark/sql/paralagg"
PAGES = ("design", "papers")
SOURCES = ("pyspark_paralagg", "mpi_backend", "jvm_shim", "docs", "tests", "examples", "benchmarks")
SUFFIXES = (".py", ".scala", ".md", ".lark", ".gradle", ".dl")


def paths_of(page: str) -> list[str]:
    """Return what a page writes as code and what looks like a file or a folder."""
    text = re.sub(r"^( {4}|```).*$", "", (DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    spans = re.findall(r"`([\w./-]+)`", text)
    return sorted({s for s in spans if s.endswith(SUFFIXES) or re.fullmatch(r"\w[\w.-]*(/[\w.-]+)+/?", s)})


def shown(text: str) -> str:
    """Return ``text`` without line breaks, and without the signs that begin lines of comments."""
    return re.sub(r"\s*\n[ *#/]*", " ", text)


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_of_a_page_exist(page: str) -> None:
    paths = paths_of(page)
    assert len(paths) > 20
    assert [p for p in paths if not (SCALA / p if p.endswith(".scala") else ROOT / p).exists()] == []


def test_cited_headings_and_papers_exist() -> None:
    names = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603, S607
    files = [ROOT / n for n in names.splitlines() if n.endswith((".py", ".scala", ".md"))]
    texts = [shown(f.read_text(encoding="utf-8")) for f in files if f.exists() and f != Path(__file__)]
    design, papers = ((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
    headings = {h for t in texts for h in re.findall(r'docs/design\.md, "([^"]+)"', t)}
    cited = {p for t in texts for p in re.findall(r"docs/papers\.md: ([^,;:.)]+)", t)}
    assert len(headings) > 5
    assert len(cited) > 3
    assert headings <= set(re.findall(r"^#+ (.+)$", design, flags=re.MULTILINE))
    assert cited <= set(re.findall(r"^## (.+)$", papers, flags=re.MULTILINE))
