"""Tests that take over 20 seconds say why: ``@pytest.mark.slow(reason)``. The end of a run names those that do not.

``pytest --collect-only -q -m slow`` lists them. The limit is for two cores without other work. The end of a run also
lists the files that take longest, since a process of ``make test`` takes a file as a whole.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

LIMIT_SECONDS = 20
_LISTED_FILES = 12


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"slow(reason): it takes over {LIMIT_SECONDS} s, with its first setup")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: dict[str, float] = defaultdict(float)
    of_files: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if not isinstance(report, pytest.TestReport):  # warnings, items
                continue
            of_files[report.nodeid.partition("::")[0]] += report.duration
            if "slow" not in report.keywords:
                seconds[report.nodeid] += report.duration
    unnamed = {test: taken for test, taken in seconds.items() if taken > LIMIT_SECONDS}
    if unnamed:
        terminalreporter.section(f"over {LIMIT_SECONDS} s without @pytest.mark.slow(reason)")
        for test in sorted(unnamed, key=lambda t: -unnamed[t]):
            terminalreporter.line(f"{unnamed[test]:6.1f} s  {test}")
    longest = sorted(of_files, key=lambda f: -of_files[f])[:_LISTED_FILES]
    if any(of_files[file] > LIMIT_SECONDS for file in longest):
        terminalreporter.section(f"longest files, of {sum(of_files.values()):.0f} s in all processes")
        for file in longest:
            terminalreporter.line(f"{of_files[file]:6.1f} s  {file}")
