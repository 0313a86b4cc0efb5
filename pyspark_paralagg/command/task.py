"""Define the task that `paralagg run` hands to an executor: options, text, inputs and requested outputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.directives import Format, Rows
    from pyspark_paralagg.command.facts import Columns, InputFile
    from pyspark_paralagg.command.staging import Staging
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.datalog.resolve.functors import Functions
    from pyspark_paralagg.program.program import Mode


@dataclass(frozen=True)
class Options:
    """The options of the command line. ``out`` None is standard output; ``explain`` is a format of ``explain``."""

    program: Path
    facts: Path
    out: Path | None
    format: Format = "text"
    backend: str | None = None
    mode: Mode = "auto"
    master: str = "local[*]"
    ranks: int | None = None
    confs: tuple[tuple[str, str], ...] = ()
    explain: str | None = None
    why: str | None = None
    why_not: str | None = None
    report: Path | None = None
    is_quiet: bool = False
    uses_cpp: bool = False
    shows_jvm: bool = False
    functors: Path | None = None


@dataclass(frozen=True)
class RequestedOutputs:
    """The requested outputs: relations to write, and relations whose size to print.

    ``staged`` maps each file to the staged name that is written.
    """

    rows: tuple[Rows, ...]
    sizes: tuple[str, ...]
    staged: Mapping[Rows, Path] = field(default_factory=dict)
    report: Path | None = None

    @property
    def names(self) -> list[str]:
        """The names of the requested relations, each once."""
        return list(dict.fromkeys([*(rows.relation for rows in self.rows), *self.sizes]))

    @property
    def counted(self) -> list[str]:
        """The names of the relations of which only the size is requested."""
        written = {rows.relation for rows in self.rows}
        return [name for name in self.sizes if name not in written]

    def placed(self, staging: Staging, report_to: Path | None) -> RequestedOutputs:
        """Return these outputs with staged names; raise before the computation if a file cannot be written."""
        staged: dict[Rows, Path] = {}
        databases: dict[Path, Path] = {}  # several relations may be tables of one
        for r in self.rows:
            if r.path is not None:
                is_database = r.format == "sqlite"
                known = databases.get(r.path) if is_database else None
                staged[r] = known or staging.place(r.path, is_table=r.format == "delta")
                if is_database:
                    databases[r.path] = staged[r]
        return replace(self, staged=staged, report=None if report_to is None else staging.place(report_to))


@dataclass(frozen=True)
class Task:
    """The text, its input files, and the requested outputs.

    ``types`` are the declared types of relations, ``functions`` those of the text's functors.
    """

    options: Options
    text: Text
    requested: RequestedOutputs
    types: Mapping[str, Columns]
    inputs: Sequence[InputFile]
    work: Path
    staging: Staging
    functions: Functions = field(default_factory=dict)

    @property
    def deltas(self) -> list[Rows]:
        """The Delta tables among inputs and outputs."""
        return [rows for rows in (*(i.rows for i in self.inputs), *self.requested.rows) if rows.format == "delta"]
