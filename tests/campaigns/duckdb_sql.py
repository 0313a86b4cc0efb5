"""Run the recursive queries of DuckDB's own tests in Spark, and print how many give its rows, and why others do not.

``make duckdb DUCKDB=path`` runs it on a checkout of DuckDB. The statements of a test file make its tables in DuckDB;
Spark gets the same rows as views. A query counts if it has the expected rows, in any order. Queries in a dialect that
Spark does not parse, UNION ALL without USING KEY (Spark's own), errors that are expected, and EXPLAIN are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

FOLDER = "test/sql/cte"
_RECURSION = re.compile(r"\bwith\s+recursive\b", re.IGNORECASE)
_KEYED = re.compile(r"\busing\s+key\s*\(", re.IGNORECASE)
_CALL = re.compile(r"(\w+)\s*\(")
_CODE = re.compile(r"\[(\w[\w.]*)\]\s*(.*)")
_SECONDS = 30
_AGGREGATES = frozenset(
    ["min", "max", "sum", "count", "min_by", "max_by", "arg_min", "arg_max", "bool_or", "bool_and", "bit_or", "bit_and"]
)
_DIALECT = (
    "PARSE_SYNTAX_ERROR",
    "UNRESOLVED_",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    "COLLATION_INVALID_NAME",
    "UNSUPPORTED_DATATYPE",
    "DATATYPE_",
    "INVALID_EXTRACT_BASE_FIELD_TYPE",
)
"""How the names of Spark's errors begin for what DuckDB's dialect has alone: functions, types, collations, syntax."""


@dataclass(frozen=True)
class Query:
    """A query of a test file with its expected rows, one string a row."""

    file: str
    line: int
    text: str
    expected: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return what kind of recursion it has."""
        if not _KEYED.search(self.text):
            return "UNION"
        calls = {c.lower() for c in _CALL.findall(self.clause)}
        if not calls:
            return "USING KEY, the last row"
        return "USING KEY, our aggregates" if calls <= _AGGREGATES else "USING KEY, other aggregates"

    @property
    def clause(self) -> str:
        """Return what is between the parentheses of its USING KEY."""
        found = _KEYED.search(self.text)
        start = end = found.end() if found else 0
        depth = 1 if found else 0
        while depth and end < len(self.text):
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        return self.text[start : end - 1]


def records(path: Path) -> Iterator[tuple[int, str, str, tuple[str, ...]]]:
    """Yield line, kind, text and expected lines of each record of a sqllogictest."""
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").rstrip("\n"))
    line = 1
    for block in blocks:
        lines = block.split("\n")
        first = next((n for n, text in enumerate(lines) if re.match(r"(statement|query)\b", text)), None)
        if first is not None:
            body = [text for text in lines[first + 1 :] if not text.startswith("#")]
            bar = body.index("----") if "----" in body else len(body)
            yield line + first, lines[first], "\n".join(body[:bar]), tuple(body[bar + 1 :])
        line += len(lines) + 1


def queries(path: Path, database: duckdb.DuckDBPyConnection) -> Iterator[Query]:
    """Yield the recursive queries of a file, each after the statements before it have run in ``database``."""
    for line, head, text, expected in records(path):
        if head.startswith("statement ok"):
            try:
                database.execute(text)
            except Exception as problem:  # noqa: BLE001 - tables of a dialect that this DuckDB has not
                sys.stderr.write(f"{path.name}:{line}: {problem}\n")
            continue
        is_shown = bool(expected) and not any(e.startswith("<REGEX>") for e in expected)
        is_plan = re.match(r"\s*explain", text, re.IGNORECASE)
        is_ours = _KEYED.search(text) or not re.search(r"\bunion\s+all\b", text, re.IGNORECASE)
        if is_ours and head.startswith("query") and _RECURSION.search(text) and is_shown and not is_plan:
            yield Query(path.name, line, text.strip().rstrip(";"), expected)


def outcome(query: Query, spark: SparkSession, database: duckdb.DuckDBPyConnection) -> tuple[str, str]:
    """Return ``rows``, ``other rows``, ``refused`` or ``dialect``, and the reason."""
    for (name,) in database.execute("SELECT table_name FROM information_schema.tables").fetchall():
        table = database.execute(f'SELECT * FROM "{name}"').to_arrow_table()
        spark.createDataFrame(table).createOrReplaceTempView(name)
    timer = threading.Timer(_SECONDS, spark.sparkContext.cancelAllJobs)
    timer.start()
    try:
        rows = spark.sql(query.text).collect()
    except Exception as problem:  # noqa: BLE001 - the reason is counted
        found = _CODE.search(str(problem))
        code, text = found.groups() if found else (type(problem).__name__, str(problem).split("\n")[0])
        kind = "dialect" if code.startswith(_DIALECT) else "refused"
        return kind, code if kind == "dialect" else f"{code}: {re.sub(r'[0-9]+', 'N', text)[:110]}"
    finally:
        timer.cancel()
    ours, theirs = (
        sorted(_words(line) for line in lines)
        for lines in (["\t".join(map(_shown, row)) for row in rows], query.expected)
    )
    is_list = len(theirs) == len(ours) * len(rows[0]) if rows else False  # a value a line
    if is_list and sorted(w for line in ours for w in line) == sorted(w for line in theirs for w in line):
        return "rows", ""
    return ("rows", "") if ours == theirs else ("other rows", f"{ours[:2]} instead of {theirs[:2]}"[:160])


def _words(line: str) -> tuple[str, ...]:
    words = []
    for word in line.split("\t"):
        try:
            words.append(f"{float(Decimal(word)):.6g}")
        except ArithmeticError:  # noqa: PERF203 - a word at a time
            words.append(word.lower())
    return tuple(words)


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return "(empty)" if value == "" else str(value)


def main() -> int:
    """Print the counts by kind, and each query that does not give DuckDB's rows with its reason."""
    import duckdb  # noqa: PLC0415 - Python 3.10 has none

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--file", help="only files whose name contains this")
    arguments = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = ra.configure(builder.config("spark.sql.shuffle.partitions", "2")).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((arguments.checkout / FOLDER).glob("*.test*")):
        if arguments.file and arguments.file not in path.name:
            continue
        with duckdb.connect() as database:
            for query in queries(path, database):
                result, reason = outcome(query, spark, database)
                counts[query.kind][result] += 1
                if result != "rows":
                    sys.stdout.write(f"{query.file}:{query.line}\t{query.kind}\t{result}\t{reason}\n")
                    sys.stdout.flush()
    for kind, results in sorted(counts.items()):
        sys.stdout.write(f"{kind}: {', '.join(f'{n} {r}' for r, n in results.most_common())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
