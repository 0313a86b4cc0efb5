"""Print the table of docs/deployment/index.md: tests of each front and engine on each supported Spark.

It reads the reports that ``make test-spark`` leaves in build/sparks; ``make sparks`` makes those that are missing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

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
ALL = ("all tests", "all")


def main() -> int:
    """Print the table of the reports that the command line names; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, help="JUnit XML of a Spark, named by its version: 3.5.9.xml")
    reports = parser.parse_args().reports
    sys.stdout.write(table({report.stem: report for report in reports}))
    return int(any(int(_suite(report).get(kind, "0")) for report in reports for kind in ("failures", "errors")))


def table(reports: dict[str, Path]) -> str:
    """Return the table of passed and skipped tests, a column a Spark, as Markdown."""
    counts = {version: _counted(path) for version, path in reports.items()}
    lines = ["| front | engine |" + "".join(f" {v} |" for v in counts), "|---|---|" + "--:|" * len(counts)]
    lines += [
        f"| {front} | {engine} |" + "".join(f" {_shown(c[front, engine])} |" for c in counts.values())
        for front, engine in (*ROWS, ALL)
    ]
    return "\n".join(lines) + "\n"


def _suite(report: Path) -> ET.Element:
    suite = ET.parse(report).getroot().find("testsuite")  # noqa: S314 - pytest's own file
    if suite is None:
        raise ValueError(report)
    return suite


def _counted(report: Path) -> dict[tuple[str, str], Counter[str]]:
    counts = {row: Counter[str]() for row in (*ROWS, ALL)}
    for case in _suite(report).iter("testcase"):
        test = f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"
        fits = [(len(b), row) for row, beginnings in ROWS.items() for b in beginnings if test.startswith(b)]
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        for row in (ALL, *([max(fits)[1]] if fits else [])):
            counts[row][outcome] += 1
    return counts


def _shown(counts: Counter[str]) -> str:
    """Return such as ``150``, ``140, 10 skipped``, or ``no`` if all are skipped."""
    if not counts["passed"] + counts["failed"]:
        return "no"
    others = [f"{counts[kind]} {kind}" for kind in ("skipped", "failed") if counts[kind]]
    return ", ".join([str(counts["passed"]), *others])


if __name__ == "__main__":
    sys.exit(main())
