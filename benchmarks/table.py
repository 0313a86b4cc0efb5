"""Measurements as one Markdown page: the machine, the table, what failed, and how to read it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.queries import CLOSURE, QUERIES, TOLERANCE
from benchmarks.systems import SYSTEMS
from mpi_backend.machine import available_cores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.datasets import Graph
    from benchmarks.runner import Measurement, Settings

BASELINES = ("duckdb", "scan")
_HEADER = (
    "| query | graph | system | whole, s | median | ÷ DuckDB | ÷ scan | loop, s | rounds | bytes sent a round "
    "| memory, MB | heap, MB | bytes a row | answer |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)

_INTRODUCTION = """\
Made by `python -m benchmarks --all` (`make bench`); `benchmarks/README.md` says what is counted. Times are in seconds:
{measured}, in a process of its own. One process runs at a time. On a shared machine gaps under 2x are noise."""
_MEASURED_ONCE = "one measurement, run number {runs} of a session"
_MEASURED = (
    "the least of up to {repeat} measurements, in turns with the other systems; each is run number {runs} of a session"
)


def facts() -> dict[str, str]:
    """Say what the machine is, by what matters to a reader: no host names, no paths."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)  # noqa: S607 (the one on PATH)
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "cores": str(available_cores()),
        "processor": _processor(),
        "load before the start": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "Java": (java.stderr.splitlines() or ["none"])[0],
    }


def page(measurements: list[Measurement], graphs: Iterable[Graph], machine: dict[str, str], settings: Settings) -> str:
    """Return the Markdown page; wrong and missing answers stand at its top."""
    measured = _MEASURED_ONCE if settings.repeat == 1 else _MEASURED
    versions = sorted({measurement.version for measurement in measurements if measurement.version})
    parts = [
        "# Benchmarks",
        _INTRODUCTION.format(measured=measured.format(repeat=settings.repeat, runs=settings.runs)),
        "; ".join([f"{name}: {value}" for name, value in machine.items()] + versions) + ".",
        *_complaints(measurements),
        "## Results",
        "\n".join([_HEADER, *rows(measurements)]),
        "## The questions",
        "\n".join(f"- **{query.name}**: {query.meaning}. Compared: {query.checksum}." for query in QUERIES.values()),
        f"Whole numbers are compared exactly, sums of doubles to {TOLERANCE:.0e} (relative).",
        "## The systems",
        "\n".join(f"- **{system.name}**: {system.about}." for system in SYSTEMS.values()),
        "## The graphs",
        "\n".join(
            f"- **{graph.name}**: {graph.vertices:,} vertices, {graph.edges:,} directed edges; source {graph.source}."
            for graph in graphs
        ),
    ]
    return "\n\n".join(parts) + "\n"


def rows(measurements: list[Measurement]) -> list[str]:
    """Return a row a measurement, with its ratios to the baselines in the same query and graph."""
    lines = []
    for _, group in groupby(measurements, key=lambda measurement: (measurement.query, measurement.graph)):
        members = list(group)
        whole = {member.system: member.whole() for member in members}
        lines += [_row(member, [whole.get(system) for system in BASELINES]) for member in members]
    return lines


def _row(measurement: Measurement, baselines: list[float | None]) -> str:
    whole = measurement.whole()
    cells = [
        measurement.query,
        measurement.graph,
        measurement.system,
        _seconds(whole),
        _seconds(measurement.whole_median()),
        *(f"{whole / baseline:.2f}" if whole is not None and baseline else "" for baseline in baselines),
        _seconds(measurement.loop()),
        _whole_number(measurement.fact("iterations")),
        _whole_number(measurement.fact("sent_bytes_round")),
        _whole_number(max(measurement.memory_mb, default=None)),
        _whole_number(measurement.fact("heap_peak_mb")),
        _bytes_a_row(measurement),
        _verdict(measurement),
    ]
    return "| " + " | ".join(cells) + " |"


def _bytes_a_row(measurement: Measurement) -> str:
    """Of a closure, whose rows are many: what the engine says it holds, else (`≤`) by how much its processes grew."""
    checksum, held, grown = measurement.checksum, measurement.fact("held_bytes"), measurement.grown_mb()
    if measurement.query != CLOSURE.name or checksum is None:
        return ""
    rows = checksum[0]
    if held is not None:
        return f"{held / rows:.1f}"
    return f"≤ {grown * 1e6 / rows:.0f}" if grown else ""


def _verdict(measurement: Measurement) -> str:
    if measurement.failure is not None:
        return "**FAILED**"
    if measurement.turns and measurement.checksum is None:
        return "none"
    return {True: "agrees", False: "**MISMATCH**", None: "alone"}[measurement.agrees]


def _complaints(measurements: list[Measurement]) -> list[str]:
    lines = [
        f"- **{_verdict(m).strip('*')}** {m.query}, {m.graph}, {m.system}: {m.failure or m.checksum}".replace("\n", " ")
        for m in measurements
        if m.failure is not None or m.agrees is False
    ]
    return ["**Not all is well:**\n\n" + "\n".join(lines)] if lines else []


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _seconds(value: float | None) -> str:
    """Three digits that mean something, no more.

    >>> _seconds(0.00123), _seconds(1.23456), _seconds(123.4), _seconds(None)
    ('0.00123', '1.23', '123', '')
    """
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:#.3g}"  # noqa: PLR2004


def _whole_number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
