"""Read and write relations as JSON, in Soufflé's layout: a list of rows, each a list or an object of its values.

A record is a list or an object of its fields, and ``nil`` is ``null``. Floats that JSON lacks are strings: ``"nan"``.
"""

from __future__ import annotations

import json
import math
from typing import IO, TYPE_CHECKING, Any

from pyspark_paralagg.command.values import NULLARY
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.fields import field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pyspark_paralagg.datalog.desugar.structures import Structures
    from pyspark_paralagg.datalog.parse.syntax import Text

    Columns = Sequence[tuple[str, str]]

_FLOATS = ("nan", "inf", "-inf")
_CODE = "PARALAGG_BAD_FACT"


class JsonLayout:
    """The layout of one relation: its structures, by column, and whether rows and records are objects."""

    def __init__(self, text: Text, relation: str, *, is_object: bool = False) -> None:
        self.structures: Structures = text.structures
        self.types = text.columns.get(relation, ())
        self._is_object = is_object

    @property
    def branched(self) -> str | None:
        """The name of an algebraic data type in a column, for which JSON has no form; None if there is none."""
        seen: list[str] = [t for t in self.types if t is not None]
        for type_ in seen:
            structure = self.structures[type_]
            if not structure.is_record:
                return type_
            seen += [t for t in structure.branches[""] if t in self.structures and t not in seen]
        return None

    def write(self, columns: Columns, batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> int:
        """Write the rows, structures as the engine has them, and return their number."""
        names = [json.dumps(name, ensure_ascii=False) for name, _ in columns]
        writers = [self._writer(n) for n in range(len(names))]
        written = 0
        file.write(b"[")
        for batch in batches:
            rows = zip(*(map(w, c.to_pylist()) for w, c in zip(writers, batch.columns, strict=True)), strict=True)
            lines = [self._framed(names, row) for row in rows]
            file.write((",\n" * (written > 0 and batch.num_rows > 0) + ",\n".join(lines)).encode())
            written += batch.num_rows
        file.write(b"]\n")
        return written

    def read(self, path: Path, content: bytes, columns: Columns) -> Iterator[list[str]]:
        """Yield the rows as texts; symbols within structures are quoted.

        Raise ``UsageError``: ``PARALAGG_INPUT_UNREADABLE`` if the content is no list, ``PARALAGG_BAD_FACT`` for a row.
        """
        try:
            rows = json.loads(content, parse_float=_float, parse_constant=_float)
        except (ValueError, RecursionError) as problem:
            reason = "its values are nested too deeply" if isinstance(problem, RecursionError) else str(problem)
            raise _unreadable(path, reason) from problem
        if not isinstance(rows, list):
            raise _unreadable(path, "it is not a list of rows")
        names, kinds = [name for name, _ in columns], dict(enumerate(self.types))
        for number, row in enumerate(rows, 1):
            try:
                if columns[0][1] == NULLARY:
                    values = [NULLARY] if row in (None, [], {}) else _values(row, [], "row")
                    yield values
                    continue
                values = _values(row, names, "row")
            except ValueError as problem:
                hint = "write each row as a list or an object of all declared columns"
                raise UsageError(_CODE, str(problem), value=row, place=f"{path}, row {number}", hint=hint) from None
            for n, (name, value) in enumerate(zip(names, values, strict=True)):
                try:
                    values[n] = self._text(value, kinds.get(n) or columns[n][1])
                except ValueError as problem:  # noqa: PERF203 - each value is converted separately
                    message, hint = f"{name}: {problem}", f"correct the value, or the type of column {name}"
                    raise UsageError(_CODE, message, value=value, place=f"{path}, row {number}", hint=hint) from None
            yield values

    def _framed(self, names: Sequence[str], values: Sequence[str]) -> str:
        if self._is_object:
            return "{" + ", ".join(f"{n}: {v}" for n, v in zip(names, values, strict=True)) + "}"
        return f"[{', '.join(values)}]"

    def _writer(self, column: int) -> Callable[[Any], str]:
        type_ = self.types[column] if self.types else None
        return _scalar if type_ is None else lambda value: self._structure(value, type_)

    def _structure(self, text: str, type_: str) -> str:
        """Return an encoded structure as JSON. Lists are long, so this must not recurse."""
        output: list[str] = []
        stack: list[tuple[str, str | None]] = [(text, type_)]
        while stack:
            value, kind = stack.pop()
            structure = self.structures.get(kind or "")
            if structure is None:
                output.append(value if kind is None or kind in ("number", "unsigned") else _symbol(value, kind))
            elif not value:
                output.append("null")
            else:
                types, names = structure.branches[""], structure.names
                opening, closing = "{}" if self._is_object else "[]"
                stack.append((closing, None))
                for n in range(len(types) - 1, -1, -1):
                    stack.append((field(value, structure.prefix(""), len(types), n, ""), types[n]))
                    label = f"{json.dumps(names[n], ensure_ascii=False)}: " if self._is_object else ""
                    stack.append(((", " if n else "") + label, None))
                output.append(opening)
        return "".join(output)

    def _text(self, value: Any, type_: str) -> str:  # noqa: ANN401 - a value of JSON
        """Return a value of a fact as text, in which symbols of structures are quoted."""
        if type_ not in self.structures:
            return _plain(value, type_)
        output: list[str] = []
        stack: list[tuple[Any, str | None]] = [(value, type_)]
        while stack:
            current, kind = stack.pop()
            structure = self.structures.get(kind or "")
            if kind is None:
                output.append(current)
            elif structure is None:
                plain = _plain(current, kind)
                output.append(
                    '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"' if kind == "symbol" else plain
                )
            elif current is None:
                output.append("nil")
            else:
                parts = [*zip(_values(current, structure.names, kind), structure.branches[""], strict=True)]
                stack.append(("]", None))
                for n, part in reversed([*enumerate(parts)]):
                    stack += [part, (", ", None)] if n else [part]
                output.append("[")
        return "".join(output)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # also the words NaN and Infinity, which Python reads
        message = f"{text} is no number"
        raise ValueError(message)
    return value


def _values(value: Any, names: Sequence[str], what: str) -> list[Any]:  # noqa: ANN401 - a value of JSON
    """Return the values of a row or record in the order of ``names``; raise ``ValueError`` with the reason."""
    if isinstance(value, list) and len(value) == len(names):
        return [*value]
    if isinstance(value, dict) and value.keys() == {*names}:
        return [value[n] for n in names]
    message = f"{_shown(value)} is not a {what} with the values {', '.join(names)}"
    raise ValueError(message)


_KINDS: Mapping[str, tuple[str, str]] = {
    "bigint": ("a number", "number"),
    "number": ("a number", "number"),
    "unsigned": ("a number", "number"),
    "double": ("a number", "float"),
    "float": ("a number", "float"),
    "boolean": ("true or false", "boolean"),
    "string": ("a string", "symbol"),
    "symbol": ("a string", "symbol"),
}


def _plain(value: Any, type_: str) -> str:  # noqa: ANN401 - a value of JSON
    expected, kind = _KINDS[type_]
    if kind == "boolean" and isinstance(value, bool):
        return str(value).lower()
    if kind == "symbol" and isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("number", "float") and (is_number or (kind == "float" and value in _FLOATS)):
        return str(value)
    message = f"{_shown(value)} is not {expected}"
    raise ValueError(message)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."  # noqa: PLR2004 - the end of a message


def _scalar(value: Any) -> str:  # noqa: ANN401 - a value of any column
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{value}"'
    return json.dumps(value, ensure_ascii=False)


def _symbol(value: str, kind: str) -> str:
    if kind == "boolean":
        return value
    return _scalar(float(value)) if kind == "float" else json.dumps(value, ensure_ascii=False)


def _unreadable(path: Path, reason: str) -> UsageError:
    message = f"{path} cannot be read as JSON: {reason}"
    return UsageError("PARALAGG_INPUT_UNREADABLE", message, value=str(path))
