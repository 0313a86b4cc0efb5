"""Read and write relations as tables of SQLite databases, in Soufflé's layout.

The table `_r` has the rows of `r` in the columns `0`, `1`, …, with numbers for symbols. The table `__SymbolTable` has
the symbols of these numbers, and the view `r` has the rows with symbols. Only a table or view `r` is read.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    Columns = Sequence[tuple[str, str]]

_SIGNATURE = b"SQLite format 3\0"
_SYMBOLS = "__SymbolTable"
_KIND = "SELECT type FROM sqlite_master WHERE name = ? AND type IN ('table', 'view')"


def is_database(path: Path) -> bool:
    """Return whether a file is a database; an empty file is one."""
    with path.open("rb") as file:
        return file.read(len(_SIGNATURE)) in (b"", _SIGNATURE)


def read_rows(path: Path, table: str, width: int) -> Iterator[list[str]]:
    """Yield the rows of a table or view as texts; a null is an empty text.

    Raise ``UsageError`` ``PARALAGG_INPUT_UNREADABLE`` if the file is no database, or has no such table of ``width``
    columns.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            if database.execute(_KIND, (table,)).fetchone() is None:
                raise _unreadable(path, f"it has no table or view {table}")
            cursor = database.execute(f"SELECT * FROM {_quoted(table)}")  # noqa: S608 - a quoted name
            if len(cursor.description) != width:
                columns = len(cursor.description)
                raise _unreadable(path, f"{table} has {columns} columns, but {width} are declared")
            for row in cursor:
                yield [_text(value) for value in row]
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        raise _unreadable(path, str(problem)) from problem


def write_rows(columns: Columns, batches: Iterable[pa.RecordBatch], table: str, target: Path, staged: Path) -> int:
    """Write a relation with these columns to the database ``staged`` and return the number of rows.

    A new ``staged`` begins as a copy of the database ``target``, whose other tables stay. Raise ``UsageError``
    ``PARALAGG_BAD_OUTPUT`` if one of them has the name of the relation.
    """
    begins = not staged.exists()
    with closing(sqlite3.connect(staged)) as database:
        if begins and target.exists():
            with closing(sqlite3.connect(target)) as previous:
                previous.backup(database)
        # The file is no result before it is complete, so it needs no journal on disk.
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA synchronous = OFF")
        with database:
            if database.execute(_KIND, (table,)).fetchone() == ("table",):
                message = f"{target} has a table {table}, but the output is a view of this name"
                hint = "write to another file, or set the name of the view, as in name=result"
                raise UsageError("PARALAGG_BAD_OUTPUT", message, value=table, hint=hint)
            _create(database, columns, table)
            return _insert(database, columns, batches, table)


def _create(database: sqlite3.Connection, columns: Columns, name: str) -> None:
    """Create the tables of a relation, in the place of older ones."""
    database.execute(f"DROP VIEW IF EXISTS {_quoted(name)}")
    database.execute(f"DROP TABLE IF EXISTS {_quoted(f'_{name}')}")
    database.execute(f"CREATE TABLE IF NOT EXISTS {_SYMBOLS} (id INTEGER PRIMARY KEY, symbol TEXT UNIQUE)")
    types = [_type(t) for _, t in columns]
    definitions = ", ".join(f'"{n}" {"INTEGER" if t == "TEXT" else t}' for n, t in enumerate(types))
    database.execute(f"CREATE TABLE {_quoted(f'_{name}')} ({definitions})")
    outputs, sources, conditions = [], [_quoted(f"_{name}")], []
    for n, ((column, _), type_) in enumerate(zip(columns, types, strict=True)):
        value = f'{_quoted(f"_{name}")}."{n}"'
        if type_ == "TEXT":
            symbols = f'"_symbols_{n}"'
            sources.append(f"{_SYMBOLS} AS {symbols}")
            conditions.append(f"{value} = {symbols}.id")
            value = f"{symbols}.symbol"
        outputs.append(f"{value} AS {_quoted(column)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"SELECT {', '.join(outputs)} FROM {', '.join(sources)}{where}"  # noqa: S608 - quoted names
    database.execute(f"CREATE VIEW {_quoted(name)} AS {query}")


def _insert(database: sqlite3.Connection, columns: Columns, batches: Iterable[pa.RecordBatch], name: str) -> int:
    symbols: dict[str, int] = {s: n for n, s in database.execute(f"SELECT id, symbol FROM {_SYMBOLS}")}  # noqa: S608 - our name
    stored = len(symbols)
    following = max(symbols.values(), default=0) + 1
    places = ", ".join("?" * len(columns))
    insert = f"INSERT INTO {_quoted(f'_{name}')} VALUES ({places})"  # noqa: S608 - a quoted name
    types = [_type(t) for _, t in columns]
    written = 0
    for batch in batches:
        all_values: list[list[Any]] = []
        for column, type_ in zip(batch.columns, types, strict=True):
            values = column.to_pylist()
            if type_ == "TEXT":
                for value in values:
                    symbols.setdefault(value or "", following + len(symbols) - stored)
                values = [symbols[value or ""] for value in values]
            elif pa.types.is_floating(column.type):
                values = ["nan" if v != v else v for v in values]  # noqa: PLR0124 - SQLite stores NaN as null
            all_values.append(values)
        database.executemany(insert, zip(*all_values, strict=True))
        written += batch.num_rows
    new = list(symbols.items())[stored:]
    database.executemany(f"INSERT INTO {_SYMBOLS} (symbol, id) VALUES (?, ?)", new)  # noqa: S608 - our name
    return written


def _type(spark_type: str) -> str:
    """Return the type of a column in the view."""
    if spark_type in ("float", "double"):
        return "REAL"
    return "INTEGER" if spark_type in ("tinyint", "smallint", "int", "bigint", "boolean") else "TEXT"


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _unreadable(path: Path, reason: str) -> UsageError:
    message = f"{path} cannot be read as SQLite: {reason}"
    return UsageError("PARALAGG_INPUT_UNREADABLE", message, value=str(path))
