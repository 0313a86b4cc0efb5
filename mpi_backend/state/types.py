"""How values of Spark's types stand in 64-bit words, and how they come from Arrow and go back.

Integers, dates and timestamps are themselves, decimals of up to 18 digits their unscaled value, booleans 0 and 1,
doubles and floats the bits of a double (one NaN, one zero), strings numbers of a dictionary. Nulls stand beside the
words.
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
MOST_DIGITS = 18
"""Of a decimal that fits into a word."""


@dataclass(frozen=True)
class Type:
    """A Spark type as the engine knows it; ``bits`` is the width of whole numbers and fractions."""

    name: str
    kind: Kind
    bits: int = 64
    precision: int = 0
    scale: int = 0

    @property
    def is_decimal(self) -> bool:
        """Whether words are unscaled values."""
        return self.precision > 0

    @property
    def hashes_as_int(self) -> bool:
        """Whether Spark hashes the value as four bytes."""
        return self.kind == "truth" or self.bits < 64  # noqa: PLR2004 - the width of a word

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type in which Spark writes and reads it."""
        if self.is_decimal:
            return pa.decimal128(self.precision, self.scale)
        return {
            "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
            "boolean": pa.bool_(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
            "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
        }[self.name]  # fmt: skip


def type_of(name: str) -> Type:
    """The engine's view of a Spark type; ``UnsupportedError`` for those that no word can hold.

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
    if decimal and int(decimal[1]) <= MOST_DIGITS:
        return Type(name, "whole", 64, int(decimal[1]), int(decimal[2]))
    raise UnsupportedError(
        "PARALAGG_TYPE_UNSUPPORTED", f"the MPI engine cannot hold {name} in a word", value=name, hint="cast the column"
    )


@dataclass(frozen=True)
class Column:
    """Values of one type: words, where nulls are (None: nowhere), and the texts that the words of strings number."""

    type: Type
    words: Words
    nulls: Mask | None = None
    texts: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: NDArray[Any]) -> Column:
        """The rows with these numbers, or where a mask is true."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return Column(self.type, self.words[rows], nulls, self.texts)


@dataclass(frozen=True)
class Table:
    """Columns of one length; ``count`` says it where there are none."""

    columns: tuple[Column, ...]
    count: int


def from_arrow(of: Type, values: pa.ChunkedArray | pa.Array) -> Column:
    """A column of Arrow values, which may be of a type that is cast to ``of`` without loss."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    nulls = np.asarray(array.is_null()) if array.null_count else None
    if of.kind == "text":
        return _from_strings(of, array, nulls)
    if array.type != of.arrow:
        array = array.cast(of.arrow)
    if of.is_decimal:
        words = _unscaled(array)
    elif of.kind == "truth":
        words = np.asarray(_filled(array.cast(pa.uint8()), 0)).astype(np.int64)
    elif of.kind == "fraction":
        words = words_of_doubles(np.asarray(_filled(array, 0.0)).astype(np.float64))
    else:
        storage = (
            array.cast(pa.int32() if of.name == "date" else pa.int64())
            if of.name in ("date", "timestamp", "timestamp_ntz")
            else array
        )
        words = np.asarray(_filled(storage, 0)).astype(np.int64, copy=False)
    if nulls is not None:
        words = np.where(nulls, 0, words)
    return Column(of, np.ascontiguousarray(words), nulls)


def to_arrow(column: Column) -> pa.Array:
    """The inverse of :func:`from_arrow`."""
    of, words, nulls = column.type, column.words, column.nulls
    if of.kind == "text":
        texts = column.texts if column.texts is not None else pa.array([], pa.string())
        places = pa.array(words, mask=nulls) if nulls is not None else pa.array(words)
        return texts.take(places).cast(pa.string()) if len(words) else pa.array([], pa.string())
    if of.is_decimal:
        high = words >> 63
        pairs = np.ascontiguousarray(np.stack([words, high], axis=1))
        plain = pa.Array.from_buffers(of.arrow, len(words), [None, pa.py_buffer(pairs)])
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and few need it

        return plain if nulls is None else pc.if_else(pa.array(~nulls), plain, pa.scalar(None, of.arrow))
    if of.kind == "truth":
        return pa.array(words != 0, mask=nulls)
    if of.kind == "fraction":
        doubles = words.view(np.float64)
        return pa.array(doubles if of.bits == 64 else doubles.astype(np.float32), mask=nulls)  # noqa: PLR2004 - a word
    if of.name == "date":
        return pa.array(words.astype(np.int32), mask=nulls).cast(pa.date32())
    plain = pa.array(words, mask=nulls)
    return plain if of.name == "bigint" else plain.cast(of.arrow)


def words_of_doubles(values: NDArray[np.float64]) -> Words:
    """The bits, with one NaN and one zero, as Spark's grouping has it."""
    canonical = values + 0.0
    canonical[np.isnan(canonical)] = np.nan
    words: Words = canonical.view(np.int64)
    return words


def _filled(array: pa.Array, value: float) -> pa.Array:
    """Something where nulls are; without nulls pyarrow's functions, which take their time to load, are not needed."""
    return array.fill_null(value) if array.null_count else array


def _unscaled(array: pa.Array) -> Words:
    """The low halves of 128-bit decimals, which hold all of up to 18 digits."""
    pairs = np.frombuffer(array.buffers()[1], np.int64)
    words: Words = pairs[2 * array.offset : 2 * (array.offset + len(array)) : 2].copy()
    return words


def _from_strings(of: Type, array: pa.Array, nulls: Mask | None) -> Column:
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    encoded = plain.cast(pa.large_string()).dictionary_encode()
    words = np.asarray(encoded.indices.fill_null(0)).astype(np.int64)
    return Column(of, words, nulls, encoded.dictionary)
