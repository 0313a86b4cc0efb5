r"""The documentation's pages as what can be run: fences with their language, and what a page says to its test alone.

Comments of HTML are for the test: ``<!-- test:`` and lines of Python run where they stand, and no reader sees them;
``<!-- needs: mpi4py -->`` skips the page where that package is not installed; ``<!-- not run: why -->`` leaves out the
next fence; ``<!-- own process: why -->`` is for a page that makes a Spark session of its own, in a folder of its own:
``python tests/pages.py PAGE`` is that process.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PROGRAMS = ("python", "sql")

_PART = re.compile(
    r"^<!-- (?P<word>test|needs|not run|own process):(?P<comment>.*?)-->|^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fence, or a comment: then its word is the ``language``. ``title`` is the fence's, ``line`` counts from 1."""

    language: str
    text: str
    line: int
    title: str = ""


def blocks(page: Path) -> list[Block]:
    """What can be run of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    is_left_out = False
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["word"]:
            assert part["comment"].strip(), f"{page}:{line} says nothing"
        if part["word"] == "not run":
            is_left_out = True
        elif part["word"]:
            found.append(Block(part["word"], part["comment"], line))
        else:
            language, _, rest = part["info"].partition(" ")
            title = re.search(r'title="([^"]*)"', rest)
            found += [] if is_left_out else [Block(language, part["text"], line, title[1] if title else "")]
            is_left_out = False
    return found


def needs(page: Path) -> list[str]:
    """The packages without which a page cannot run."""
    return [package for b in blocks(page) if b.language == "needs" for package in b.text.split()]


def run(page: Path, names: dict[str, Any]) -> None:
    """Runs a page's programs among ``names``; ``AssertionError`` where one prints something else than is shown."""
    output: str | None = None
    parts = blocks(page)
    for block, behind in zip(parts, [*parts[1:], None], strict=True):
        if block.language == "text" and output is not None:
            assert is_as_shown(output, block.text), f"{page}:{block.line}: it prints\n{output}"
            output = None
        elif block.language in ("test", *PROGRAMS):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                try:
                    _run_block(block, names, str(page))
                except AnalysisException as problem:
                    if block.language != "sql" or behind is None or not behind.text.startswith("["):
                        raise
                    print(problem)  # noqa: T201 - the page shows it
            output = printed.getvalue()
        else:
            output = None


def _run_block(block: Block, names: dict[str, Any], file: str) -> None:
    """What SQL gives is ``theirs`` among ``names``, and printed where it is Spark that gives it."""
    if block.language == "sql" and block.title == "DuckDB":
        import duckdb  # noqa: PLC0415 - a page that has such a block needs it

        with duckdb.connect() as db:
            db.register("edges", names["edges"].toArrow())
            names["theirs"] = db.execute(block.text).fetchall()
    elif block.language == "sql":
        for statement in re.split(r";\s*$", block.text.strip(), flags=re.MULTILINE):
            if statement.strip():
                names["theirs"] = names["spark"].sql(statement)
                names["theirs"].show()
    else:
        lines = "\n" * block.line  # so that a traceback names the page's line
        exec(compile(lines + block.text, file, "exec"), names)  # noqa: S102 - the documentation's own code


def is_as_shown(output: str, expected: str) -> bool:
    """Whether ``output`` is what a page shows: ``…`` stands for anything, long lines may go on in the next one."""
    pattern = ".*?".join(map(re.escape, " ".join(expected.split()).split("…")))
    return re.fullmatch(pattern, " ".join(output.split())) is not None


if __name__ == "__main__":
    run(Path(sys.argv[1]), {})
