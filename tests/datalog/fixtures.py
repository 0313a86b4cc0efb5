"""Read the fixtures that have a Datalog text: ``program.dl``, its tables, and the expected rows of each output."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rows import assert_same_rows, read_table

from pyspark_paralagg.datalog.parse import parse as parser
from pyspark_paralagg.datalog.parse import syntax

Table = tuple[str, list[tuple[Any, ...]]]

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = sorted(p.parent.name for p in FIXTURES.glob("*/program.dl"))


class Case:
    """A fixture folder: the text, the inputs that it reads, and the expected rows of each output."""

    def __init__(self, name: str) -> None:
        self.path = FIXTURES / name / "program.dl"
        self.source = self.path.read_text()
        self.text = parser.parse(self.source, name)
        tables = {path.stem: read_table(path) for path in sorted(self.path.parent.glob("*.tsv"))}
        outputs = [c.relation for c in self.text.clauses if isinstance(c, syntax.Directive) and c.kind == "output"]
        self.inputs = {n: t for n, t in tables.items() if not n.startswith("expected") and f"{n}(" in self.source}
        self.expected = {n: tables["expected" if len(outputs) == 1 else f"expected.{n}"] for n in outputs}
        assert len(self.expected) == len(tables.keys() - self.inputs.keys() - self.unread(tables))

    def unread(self, tables: dict[str, Table]) -> set[str]:
        """Return the tables that only the step reads, such as one without rows."""
        return {n for n in tables if not n.startswith("expected") and n not in self.inputs}

    @property
    def values(self) -> list[Any]:
        return [value for _, rows in self.inputs.values() for row in rows for value in row]

    @property
    def types(self) -> dict[str, list[tuple[str, str]]]:
        """Return the columns of the inputs: name and Spark type."""
        return {
            relation: [(c.strip("`"), t) for c, _, t in (column.rpartition(" ") for column in ddl.split(", "))]
            for relation, (ddl, _) in self.inputs.items()
        }

    @property
    def is_declared(self) -> bool:
        return self.inputs.keys() <= {c.relation for c in self.text.clauses if isinstance(c, syntax.Declaration)}

    def compare(self, results: dict[str, list[tuple[Any, ...]]]) -> None:
        assert results.keys() == self.expected.keys()
        for name, rows in results.items():
            assert_same_rows(rows, self.expected[name][1])


ALL = {name: Case(name) for name in CASES}
WITHOUT_NULLS = [name for name, case in ALL.items() if None not in case.values]
"""The reference interpreter and files of facts have no nulls."""
WITHOUT_NAN = [n for n in WITHOUT_NULLS if not any(isinstance(v, float) and math.isnan(v) for v in ALL[n].values)]
"""In the reference interpreter a NaN does not equal another."""
