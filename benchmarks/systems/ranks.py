"""This project without Spark: a text on the engine in this process (`local`), or on MPI ranks (`mpi-1`, `mpi-2`)."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.queries import DAMPING, PAGERANK_ROUNDS, SOURCES
from benchmarks.systems import Answer
from benchmarks.systems.run_facts import run_facts
from mpi_backend.launch.preflight import Request
from pyspark_paralagg.command.engine import run_in_process, run_on_ranks
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.datasets import Graph
    from benchmarks.queries import Checksum
    from pyspark_paralagg.command.engine import EngineResult

_TEXTS = {
    "sssp": "found(x, $MIN(0)) :- start(x). found(y, $MIN(d + w)) :- found(x, d), edge(x, y, w).",
    "multi-sssp": "found(s, s, $MIN(0)) :- start(s). found(s, y, $MIN(d + w)) :- found(s, x, d), edge(x, y, w).",
    "components": """
        found(x, $MIN(x)) :- vertex(x).
        found(y, $MIN(c)) :- found(x, c), edge(x, y, _).
        found(y, $MIN(c)) :- found(x, c), edge(y, x, _).
    """,
    "pagerank": f"""
        .limit found(iterations={PAGERANK_ROUNDS})
        degree(x, $COUNT) :- edge(x, _, _).
        found(0, x, r) :- vertex(x), r = 1.0.
        found(i + 1, x, $SUM({1 - DAMPING})) :- vertex(x).
        found(i + 1, y, $SUM({DAMPING} / to_float(d) * r)) :- found(i, x, r), edge(x, y, _), degree(x, d).
    """,
    "closure": "found(x, y) :- edge(x, y, _). found(x, z) :- found(x, y), edge(y, z, _).",
}
_COLUMNS = {
    "edge": [("src", "bigint"), ("dst", "bigint"), ("w", "bigint")],
    "vertex": [("v", "bigint")],
    "start": [("v", "bigint")],
}
_CHECKSUMS: dict[str, Callable[[pa.Table], Checksum]] = {
    "sssp": lambda t: (t.num_rows, pc.sum(t.column(1)).as_py()),
    "multi-sssp": lambda t: (t.num_rows, pc.sum(t.column(2)).as_py()),
    "components": lambda t: (t.num_rows, pc.sum(t.column(1)).as_py()),
    "pagerank": lambda t: (t.num_rows, pc.sum(t.column(1)).as_py(), float(np.square(t.column(1).to_numpy()).sum())),
    "closure": lambda t: (t.num_rows,),
}


class Ranks:
    """No state: every run compiles the text and reads the files again. `ranks` 0 is this process."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self.version = "numba and mpich as constraints.txt has them"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Compile, read, evaluate, reduce; the loop is what the report says."""
        given = {"edge": pq.read_table(graph.edges_file), "vertex": pq.read_table(graph.vertices_file)}
        given["start"] = pa.table({"v": graph.sources[: SOURCES.get(query, 1)]})
        resolved = resolve_text(parse(_TEXTS[query], query), _COLUMNS)
        program = requested_program(resolved, ["found"])
        names = [source.relation for source in resolved.sources]
        inputs = tuple(
            replace(i, size_bytes=given[names[i.source]].nbytes) if names[i.source] in given else i
            for i in program.inputs
        )
        plan = compile_program(replace(program, inputs=inputs))
        read = {i.source for i in plan.inputs if i.relation is None and names[i.source] in given}
        sources = {n: iter(given[names[n]].to_batches()) for n in read}
        if self._ranks == 0:
            found = run_in_process(plan, sources, ["found"], lambda *_: None, ansi=True)
        else:
            request = Request(ranks=self._ranks, launcher="local", python=(sys.executable,), oversubscribe=True)
            with tempfile.TemporaryDirectory() as folder:
                found = run_on_ranks(plan, sources, ["found"], lambda *_: None, request, Path(folder), {})
        return Answer(_CHECKSUMS[query](found.tables["found"]), _loop(found), _facts(found))


def _loop(found: EngineResult) -> float:
    report = found.report
    if "seconds" in report:
        return float(report["seconds"]["loop"])
    return float(sum(s["seconds"]["loop"] for s in report["strata"]))


def _facts(found: EngineResult) -> dict[str, Any]:
    """Of the stratum that is asked for: PageRank's degrees are one of their own."""
    report = found.report
    [iterations] = [s["iterations"] for s in report["strata"] if "found" in s["relations"]]
    rounds = [r for r in report["per_iteration"] if r["relation"] == "found"]
    return run_facts(iterations, rounds, report.get("ranks") or [{"bytes": report["bytes"]}])


def start(name: str, _memory: str) -> Ranks:
    """Nothing to set up."""
    return Ranks({"local": 0, "mpi-1": 1, "mpi-2": 2}[name])
