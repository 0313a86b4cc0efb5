"""Test that a run lets go of its inputs: rows that a later stratum reads stay, all others can be freed."""

from __future__ import annotations

from mpi.staged import Staged

from mpi_backend.comm import SingleRank
from mpi_backend.load.files import table_of
from mpi_backend.loop.engine import run_plan
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

TEXT = """
    near(x, y) :- edge(x, y), x < 3.
    far(x, y) :- near(x, y).
    far(x, z) :- far(x, y), edge(y, z).
"""


def test_a_run_removes_its_sources() -> None:
    resolved = resolve_text(parse(TEXT), {"edge": [("x", "bigint"), ("y", "bigint")]})
    task = Staged(resolved, {"edge": [(1, 2), (2, 3), (3, 4)]}, ["near", "far"])
    columns = {i.source: i.columns for i in task.plan.inputs if i.relation is None}
    tables = {n: table_of(c, task.sources[n].to_batches()) for n, c in columns.items()}
    assert len(task.plan.strata) > 1
    results = run_plan(task.plan, tables, SingleRank()).results
    assert (results["near"].count, results["far"].count) == (2, 5)
    assert not tables
