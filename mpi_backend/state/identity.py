"""The identity of each aggregate as a word: what an accumulator holds before its first value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Dependent


def identity(d: Dependent) -> int:
    """The word of a column before any value came: aggregated with a value it gives the value."""
    of = type_of(d.column.type)
    match d.aggregator:
        case "min" | "min_by" | "max_by":
            return _double(np.nan) if of.kind == "fraction" else 1 if of.kind == "truth" else (1 << 63) - 1
        case "max":
            return _double(-np.inf) if of.kind == "fraction" else 0 if of.kind == "truth" else -(1 << 63)
        case "all":
            return 1
        case "bit_and":
            return -1
        case _:
            return 0


def _double(value: float) -> int:
    return int(np.float64(value).view(np.int64))
