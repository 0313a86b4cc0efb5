"""Tests that take over 20 seconds say why: ``@pytest.mark.slow(reason)``. The end of a run names those that do not.

``pytest --collect-only -q -m slow`` lists them. The limit is for two cores without other work.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

LIMIT_SECONDS = 20


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"slow(reason): it takes over {LIMIT_SECONDS} s, with its first setup")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and "slow" not in report.keywords:  # others are warnings, items
                seconds[report.nodeid] += report.duration
    unnamed = {test: taken for test, taken in seconds.items() if taken > LIMIT_SECONDS}
    if unnamed:
        terminalreporter.section(f"over {LIMIT_SECONDS} s without @pytest.mark.slow(reason)")
        for test in sorted(unnamed, key=lambda t: -unnamed[t]):
            terminalreporter.line(f"{unnamed[test]:6.1f} s  {test}")
