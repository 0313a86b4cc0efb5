"""Write programs to folders that ranks run (``plan.json``, ``in/<source>/0.arrow``), and read their results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mpi_backend.loop.alone import run_alone
from mpi_backend.names import result_folder
from mpi_backend.state.types import type_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.plan.read import plan_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.plan.plan import Plan

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]

ROOT = Path(__file__).parent.parent.parent
_DEADLINE_SECONDS = 600


def arrow(columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table whose columns have Spark types."""
    schema = pa.schema([(name, type_of(spark_type).arrow) for name, spark_type in columns])
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(list(v), f.type) for v, f in zip(values, schema, strict=True)], schema=schema)


class Staged:
    """A resolved text with input rows or tables, compiled for the relations ``names``.

    The compiler knows the sizes of tables, not of rows, so it may replicate small tables.
    """

    def __init__(self, resolved: Resolved, facts: Mapping[str, Sequence[Row] | pa.Table], names: Sequence[str]) -> None:
        self.resolved = resolved
        self.names = list(names)
        self.sources = {}
        sizes = {}
        for n, source in enumerate(resolved.sources):
            rows = facts.get(source.relation, ())
            if isinstance(rows, pa.Table):
                self.sources[n], sizes[n] = rows, rows.nbytes
            else:
                self.sources[n] = arrow([(c.name, c.type) for c in source.columns], [*rows, *source.rows])
        program = requested_program(resolved, names)
        inputs = tuple(replace(i, size_bytes=sizes.get(i.source)) for i in program.inputs)
        plan = compile_program(replace(program, inputs=inputs))
        self.json = json.dumps(plan.to_json())
        self.plan: Plan = plan_from_json(json.loads(self.json))

    def run_local(self) -> Rows:
        """Run the engine in this process. Return the rows."""
        return {n: self._rows(n, table) for n, table in self.local_tables().items()}

    def local_tables(self) -> dict[str, pa.Table]:
        """Run the engine in this process. Return tables of the Plan's columns."""
        read = {i.source for i in self.plan.inputs if i.relation is None}
        return run_alone(self.plan, {n: self.sources[n].to_batches() for n in read}, self.names)[0]

    def write(self, folder: Path) -> None:
        """Write the files that ranks read."""
        for n, table in self.sources.items():
            (folder / "in" / str(n)).mkdir(parents=True)
            if table.num_rows:
                file = str(folder / "in" / str(n) / "0.arrow")
                with pa.OSFile(file, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
        (folder / "plan.json").write_text(self.json)

    def read(self, out: Path) -> Rows:
        """Return the rows that ranks wrote. Raise the error that they reported."""
        return {n: self._rows(n, table) for n, table in self.tables(out).items()}

    def tables(self, out: Path) -> dict[str, pa.Table]:
        """Return the tables that ranks wrote, of the Plan's columns."""
        if (out / "failed").exists():
            raise AssertionError((out / "failed").read_text())
        tables = {}
        for name in self.names:
            parts = sorted((out / result_folder(name)).glob("part-*.arrow"))
            assert parts, f"no rank has written {name}"
            tables[name] = pa.concat_tables([pa.ipc.open_stream(p).read_all() for p in parts])
        return tables

    def _rows(self, name: str, table: pa.Table) -> list[Row]:
        columns = [table.column(c).to_pylist() for c in self.resolved.names(name)]
        return list(zip(*columns, strict=True))


def mpiexec(ranks: int, script: str, *arguments: object) -> None:
    """Run ``script``, a file of this folder, on ``ranks`` ranks, which may be more than there are cores."""
    installed = Path(sys.executable).parent / "mpiexec"
    launcher = str(installed) if installed.exists() else shutil.which("mpiexec")
    assert launcher, "pip install mpich"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(  # noqa: S603 - our own script
        [launcher, "-n", str(ranks), sys.executable, str(Path(__file__).parent / script), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def run_on_ranks(folder: Path, tag: str, ranks: int, *arguments: object) -> None:
    """Run all plans in the folders of ``folder`` by one ``mpiexec``. Results go to their ``out-<tag>``."""
    mpiexec(ranks, "all_folders.py", folder, tag, *arguments)
