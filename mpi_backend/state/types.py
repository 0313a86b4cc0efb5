"""Encode values of Spark's types as 64-bit words, from Arrow and back.

Integers, dates and timestamps are their number; decimals of up to 18 digits their unscaled value; booleans 0 and 1;
doubles and floats the bits of a double (one NaN, one zero); strings the index in a dictionary. Nulls are a separate
mask.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pyspark_paralagg.errors import UnsupportedError

Words = NDArray[np.int64]
Mask = NDArray[np.bool_]
Kind = Literal["whole", "fraction", "truth", "text"]

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64, "timestamp_ntz": 64}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_GROWTH = 8
"""A column that is full grows by one part in so many."""
MAX_DIGITS = 18
"""The largest precision of decimals that fit into a word."""


@dataclass(frozen=True)
class Type:
    """A Spark type in the engine; ``bits`` is the width of whole numbers and fractions."""

    name: str
    kind: Kind
    bits: int = 64
    precision: int = 0
    scale: int = 0

    @property
    def is_decimal(self) -> bool:
        """Return whether words are unscaled values."""
        return self.precision > 0

    @property
    def hashes_as_int(self) -> bool:
        """Return whether Spark hashes the value as four bytes."""
        return self.kind == "truth" or self.bits < 64  # noqa: PLR2004 - the width of a word

    @property
    def arrow(self) -> pa.DataType:
        """Return the Arrow type that Spark reads and writes."""
        if self.is_decimal:
            return pa.decimal128(self.precision, self.scale)
        return {
            "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
            "boolean": pa.bool_(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
            "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
        }[self.name]  # fmt: skip


def type_of(name: str) -> Type:
    """Return the engine's type for a Spark type. Raise ``UnsupportedError`` if no word can hold its values.

    >>> type_of("decimal(10,2)").scale
    2
    """
    if name in _BITS:
        return Type(name, "whole", _BITS[name])
    if name in ("double", "float"):
        return Type(name, "fraction", 64 if name == "double" else 32)
    if name == "boolean":
        return Type(name, "truth")
    if name == "string":
        return Type(name, "text")
    decimal = _DECIMAL.fullmatch(name)
    if decimal and int(decimal[1]) <= MAX_DIGITS:
        return Type(name, "whole", 64, int(decimal[1]), int(decimal[2]))
    raise UnsupportedError(
        "PARALAGG_TYPE_UNSUPPORTED", f"the MPI engine cannot hold {name} in a word", value=name, hint="cast the column"
    )


@dataclass(frozen=True)
class Column:
    """The values of one type: words, a mask of nulls (None: no nulls), and the texts that words of strings index."""

    type: Type
    words: Words
    nulls: Mask | None = None
    texts: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: NDArray[Any]) -> Column:
        """Return the rows at these positions, or those where a mask is true."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return Column(self.type, self.words[rows], nulls, self.texts)


@dataclass(frozen=True)
class Table:
    """Columns of the same length, ``count``."""

    columns: tuple[Column, ...]
    count: int


def from_arrow(column_type: Type, values: pa.ChunkedArray | pa.Array) -> Column:
    """Return a column of Arrow values. Their type may be any that casts to ``column_type`` without loss."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    nulls = np.asarray(array.is_null()) if array.null_count else None
    if column_type.kind == "text":
        return _from_strings(column_type, array, nulls)
    if array.type != column_type.arrow:
        array = array.cast(column_type.arrow)
    if column_type.is_decimal:
        words = _unscaled(array)
    elif column_type.kind == "truth":
        words = np.asarray(_fill(array.cast(pa.uint8()), 0)).astype(np.int64)
    elif column_type.kind == "fraction":
        words = words_of_doubles(np.asarray(_fill(array, 0.0)).astype(np.float64))
    else:
        storage = (
            array.cast(pa.int32() if column_type.name == "date" else pa.int64())
            if column_type.name in ("date", "timestamp", "timestamp_ntz")
            else array
        )
        words = np.asarray(_fill(storage, 0)).astype(np.int64, copy=False)
    if nulls is not None:
        words = np.where(nulls, 0, words)
    return Column(column_type, np.ascontiguousarray(words), nulls)


class ColumnBuilder:
    """A builder of a column whose values come in pieces. ``capacity`` is the number of values, if it is known.

    Words are copied to their place at once, so that a piece may be freed. Pieces that wait for the last one would take
    as much memory again, and Arrow keeps it. Large arrays grow in place. Texts are encoded together, at the end.
    """

    def __init__(self, column_type: Type, capacity: int = 0) -> None:
        self._type = column_type
        self._is_text = column_type.kind == "text"
        self._texts: list[pa.Array] = []
        self._words = np.empty(0 if self._is_text else capacity, np.int64)
        self._nulls: Mask | None = None
        self._size = 0

    def add(self, values: pa.Array) -> None:
        """Append values; their type may be any that casts to the column's without loss."""
        if self._is_text:
            self._texts.append(values)
            return
        at = slice(self._size, self._size + len(values))
        self._size += len(values)
        if self._size > len(self._words):
            self._resize(self._size + self._size // _GROWTH)
        column = from_arrow(self._type, values)
        self._words[at] = column.words
        if column.nulls is not None:
            if self._nulls is None:
                self._nulls = np.zeros(len(self._words), np.bool_)
            self._nulls[at] = column.nulls

    def build(self) -> Column:
        """Return the column."""
        if self._is_text:
            texts = pa.chunked_array(self._texts) if self._texts else pa.array([], self._type.arrow)
            return from_arrow(self._type, texts)
        self._resize(self._size)
        return Column(self._type, self._words, self._nulls)

    def _resize(self, count: int) -> None:
        for array in (self._words, self._nulls):
            if array is not None and len(array) != count:
                array.resize(count, refcheck=False)  # no other object has the array yet


def to_arrow(column: Column) -> pa.Array:
    """Return the Arrow values of a column: the inverse of :func:`from_arrow`."""
    column_type, words, nulls = column.type, column.words, column.nulls
    if column_type.kind == "text":
        texts = column.texts if column.texts is not None else pa.array([], pa.string())
        indices = pa.array(words, mask=nulls) if nulls is not None else pa.array(words)
        return texts.take(indices).cast(pa.string()) if len(words) else pa.array([], pa.string())
    if column_type.is_decimal:
        high = words >> 63
        pairs = np.ascontiguousarray(np.stack([words, high], axis=1))
        plain = pa.Array.from_buffers(column_type.arrow, len(words), [None, pa.py_buffer(pairs)])
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and rarely needed

        return plain if nulls is None else pc.if_else(pa.array(~nulls), plain, pa.scalar(None, column_type.arrow))
    if column_type.kind == "truth":
        return pa.array(words != 0, mask=nulls)
    if column_type.kind == "fraction":
        doubles = words.view(np.float64)
        values = doubles if column_type.bits == 64 else doubles.astype(np.float32)  # noqa: PLR2004 - a word
        return pa.array(values, mask=nulls)
    if column_type.name == "date":
        return pa.array(words.astype(np.int32), mask=nulls).cast(pa.date32())
    plain = pa.array(words, mask=nulls)
    return plain if column_type.name == "bigint" else plain.cast(column_type.arrow)


def array_of(value_type: Type, values: list[Any]) -> NDArray[Any]:
    """Return the array that a functor of the user gets."""
    dtypes: dict[str, Any] = {"whole": np.int64, "fraction": np.float64, "truth": np.bool_}
    return np.array(values, dtypes.get(value_type.kind, np.object_))


def words_of_doubles(values: NDArray[np.float64]) -> Words:
    """Return the bits of the values with one NaN and one zero, as Spark groups them."""
    canonical = values + 0.0
    canonical[np.isnan(canonical)] = np.nan
    words: Words = canonical.view(np.int64)
    return words


def _fill(array: pa.Array, value: float) -> pa.Array:
    """Replace nulls by ``value``. Without nulls this does not load pyarrow.compute, which is slow to load."""
    return array.fill_null(value) if array.null_count else array


def _unscaled(array: pa.Array) -> Words:
    """Return the low halves of 128-bit decimals, which hold up to 18 digits."""
    pairs = np.frombuffer(array.buffers()[1], np.int64)
    words: Words = pairs[2 * array.offset : 2 * (array.offset + len(array)) : 2].copy()
    return words


def _from_strings(column_type: Type, array: pa.Array, nulls: Mask | None) -> Column:
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    encoded = plain.cast(pa.large_string()).dictionary_encode()
    words = np.asarray(encoded.indices.fill_null(0)).astype(np.int64)
    return Column(column_type, words, nulls, encoded.dictionary)
