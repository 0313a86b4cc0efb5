"""Count the tests of each front and engine on each supported Spark, and print the table of docs/deployment/index.md.

``make sparks`` runs it. Each Spark is a folder ``build/spark-<version>`` in front of the installed one on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parent.parent.parent
ROWS = {
    ("DataFrames", "Spark engine"): ("test_fixtures::test_fixture",),
    ("DataFrames", "plain DataFrames"): ("test_fixtures::test_fixture_on_plain_dataframes",),
    ("DataFrames", "Python workers"): ("test_python_backend::",),
    ("DataFrames", "ranks, local"): ("test_offload::",),
    ("Datalog", "Spark engine"): ("test_datalog_fixtures::test_text_gives_the_rows_of_the_fixture",),
    ("Datalog", "plain DataFrames"): ("test_datalog_fixtures::test_text_gives_the_rows_of_the_fixture_on_plain",),
    ("SQL", "Spark engine"): ("sql.test_results::", "sql.test_statements::", "sql.test_rewrite::", "sql.test_errors::"),
    ("Connect", "Python workers, plain DataFrames"): ("connect.test_connect::", "connect.test_lacking::"),
    ("Connect", "Spark engine (jar in the server)"): ("connect.test_shim_in_server::",),
    ("spark-submit, two executors", "Spark engine"): ("cluster.test_two_executors::", "test_submitted_commands::"),
    ("Delta tables", "Spark engine"): ("cluster.test_refresh::",),
}
"""How the ids of tests begin, for each row of the table; an id counts for the longest beginning that fits."""
FILES = (
    "tests/test_fixtures.py", "tests/test_python_backend.py", "tests/test_offload.py", "tests/test_datalog_fixtures.py",
    "tests/sql", "tests/connect", "tests/cluster/test_two_executors.py", "tests/test_submitted_commands.py",
    "tests/cluster/test_refresh.py",
)  # fmt: skip


def main() -> int:
    """Run the tests on the Sparks that the command line names, and print the table; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="+", help="such as 3.5.9; the installed one has no folder in build")
    parser.add_argument("--processes", default="2")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "sparks", help="folder for pytest's reports")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    failed = 0
    for version in options.versions:
        started = time.monotonic()
        failed += _run(version, options.processes, _report(options.into, version))
        sys.stdout.write(f"{version}: {time.monotonic() - started:.0f} s\n")
    sys.stdout.write(table({v: _report(options.into, v) for v in options.versions}))
    return min(failed, 1)


def table(reports: dict[str, Path]) -> str:
    """Return the table of passed and skipped tests, a column a Spark, as Markdown."""
    counts = {version: _counted(path) for version, path in reports.items()}
    lines = ["| front | engine |" + "".join(f" {v} |" for v in counts), "|---|---|" + "--:|" * len(counts)]
    lines += [
        f"| {front} | {engine} |" + "".join(f" {_shown(c[front, engine])} |" for c in counts.values())
        for front, engine in ROWS
    ]
    return "\n".join(lines) + "\n"


def _run(version: str, processes: str, report: Path) -> int:
    home = ROOT / "build" / f"spark-{version}"
    path = [str(home)] if home.is_dir() else []
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", processes, "--dist", "loadfile"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
    return subprocess.run([*command, f"--junitxml={report}", *FILES], cwd=ROOT, env=environment, check=False).returncode  # noqa: S603 - a fixed command


def _report(folder: Path, version: str) -> Path:
    return folder / f"{version}.xml"


def _counted(report: Path) -> dict[tuple[str, str], Counter[str]]:
    counts = {row: Counter[str]() for row in ROWS}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest's own file
        test = f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"
        fits = [(len(b), row) for row, beginnings in ROWS.items() for b in beginnings if test.startswith(b)]
        if fits:
            outcomes = {child.tag for child in case}
            bad = "failed" if outcomes & {"failure", "error"} else None
            counts[max(fits)[1]][bad or ("skipped" if "skipped" in outcomes else "passed")] += 1
    return counts


def _shown(counts: Counter[str]) -> str:
    """Return such as ``150``, ``140, 10 skipped``, or ``no`` if all are skipped."""
    if not counts["passed"] + counts["failed"]:
        return "no"
    others = [f"{counts[kind]} {kind}" for kind in ("skipped", "failed") if counts[kind]]
    return ", ".join([str(counts["passed"]), *others])


if __name__ == "__main__":
    sys.exit(main())
