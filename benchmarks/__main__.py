"""`python -m benchmarks`: which measurements to make, and where to write them.

python -m benchmarks --all                                                    # everything; writes docs/benchmarks.md
python -m benchmarks --query sssp --graph rmat-18 --system paralagg,duckdb    # some; the table is printed
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import pictures, table
from benchmarks.datasets import DEFAULT_CACHE, PROJECT, Graph, GraphAbsentError, open_graph
from benchmarks.queries import QUERIES
from benchmarks.runner import Measurement, Settings, measure
from benchmarks.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def _names(known: Iterable[str] = ()) -> Callable[[str], list[str]]:
    """Return a parser of comma-separated names that refuses names not known, where any are."""
    choices = list(known)

    def split(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if choices and name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(choices)}")
        return names

    return split


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The same recursive queries by several systems."
    )
    parser.add_argument("--all", action="store_true", help="every query on its graphs; writes docs/benchmarks.md")
    parser.add_argument("--query", type=_names(QUERIES), help=f"of {', '.join(QUERIES)}")
    parser.add_argument(
        "--graph",
        type=_names(),
        help="rmat-<scale>, grid-<side>, tree-<levels>, random-<vertices>-<edges>, or a real one",
    )
    parser.add_argument("--system", type=_names(SYSTEMS), help=f"of {', '.join(SYSTEMS)}")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each system (default 3)")
    parser.add_argument("--runs", type=int, default=2, help="runs in a session, of which the last counts (default 2)")
    parser.add_argument("--cap", type=float, default=300.0, help="seconds that one worker may take (default 300)")
    parser.add_argument("--memory", default="8g", help="heap of Spark's driver (default 8g)")
    parser.add_argument(
        "--cache", type=Path, default=DEFAULT_CACHE, help="where graphs and raw data lie (default .bench)"
    )
    parser.add_argument("--output", type=Path, help="write the page there (default with --all: docs/benchmarks.md)")
    arguments = parser.parse_args()
    if not (arguments.all or arguments.query or arguments.graph or arguments.system):
        parser.error("say --all, or which --query, --graph or --system")
    return arguments


def _questions(arguments: argparse.Namespace) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (query, graph, systems): systems asked for by name on any graph, others where `--all` tries them."""
    for query in arguments.query or QUERIES:
        for graph in arguments.graph or QUERIES[query].graphs:
            if arguments.system:
                yield query, graph, [name for name in arguments.system if query in SYSTEMS[name].graphs]
            else:
                yield query, graph, [name for name in SYSTEMS if SYSTEMS[name].answers_by_default(query, graph)]


def main() -> int:
    """Measure, print rows as they come, write the page and the raw data; 1 if an answer was wrong or missing."""
    arguments = _arguments()
    settings = Settings(arguments.cache.resolve(), arguments.repeat, arguments.runs, arguments.cap, arguments.memory)
    machine, graphs, measurements = table.facts(), dict[str, Graph](), list[Measurement]()
    for query, name, systems in _questions(arguments):
        try:
            graphs[name] = open_graph(name, settings.cache)
        except GraphAbsentError as error:
            print(f"skipped: {error}", file=sys.stderr)
            continue
        found = list(measure(query, graphs[name], systems, settings))
        print(*table.rows(found), sep="\n", flush=True)
        measurements += found
        _keep(measurements, machine, settings.cache)
    output = arguments.output or (PROJECT / "docs" / "benchmarks.md" if arguments.all else None)
    if output is not None:
        output.write_text(table.page(measurements, graphs.values(), machine, settings))
        if arguments.all:
            pictures.illustrate(output)
    bad = [m for m in measurements if m.failure is not None or m.agrees is False]
    for m in bad:
        print(f"!!! {m.query} {m.graph} {m.system}: {m.failure or f'MISMATCH {m.checksum}'}", file=sys.stderr)
    return 1 if bad else 0


def _keep(measurements: list[Measurement], machine: dict[str, str], cache: Path) -> None:
    raw = {"machine": machine, "measurements": [measurement.to_json() for measurement in measurements]}
    (cache / "raw.json").write_text(json.dumps(raw, indent=1))


if __name__ == "__main__":
    sys.exit(main())
