"""Compute the identity of each aggregate as a word: an accumulator's content before its first value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from mpi_backend.state.types import Type
    from pyspark_paralagg.program.program import Dependent


def identity(dependent: Dependent) -> int:
    """Return the word whose aggregate with any value is that value."""
    if dependent.custom is not None:
        return 0  # never read: the first value is stored as it is
    definition = dependent.definition
    if definition.identity is not None:
        return int(definition.identity)
    column_type = type_of(dependent.column.type)
    return _smallest(column_type) if definition.moves == "up" else _largest(column_type)


def _largest(column_type: Type) -> int:
    if column_type.kind == "fraction":
        return _double_bits(np.nan)
    return 1 if column_type.kind == "truth" else (1 << 63) - 1


def _smallest(column_type: Type) -> int:
    if column_type.kind == "fraction":
        return _double_bits(-np.inf)
    return 0 if column_type.kind == "truth" else -(1 << 63)


def _double_bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))
