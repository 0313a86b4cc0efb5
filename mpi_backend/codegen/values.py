"""Write the source that compares, stores and reads a value of any type.

Whole numbers and texts are ``int64`` variables, fractions ``float64``, truths ``bool``. Comparisons are Spark's: NaN
equals itself and is the largest number; texts compare by bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpi_backend.state.types import Type, type_of
from pyspark_paralagg.program.functions.value_range import is_day_time_interval, is_year_month_interval


def value_type(name: str) -> Type:
    """Return the type of a value inside an expression, which may be an interval: no column of the engine is one.

    >>> value_type("interval month").bits
    32
    """
    if is_year_month_interval(name):
        return Type(name, "whole", 32)
    return Type(name, "whole") if is_day_time_interval(name) else type_of(name)


def is_interval(value_type: Type) -> bool:
    """Return whether values of the type are intervals, whose overflow is an error with and without ANSI rules."""
    return value_type.name.startswith("interval ")


@dataclass(frozen=True)
class Value:
    """A value in generated code: its Python expression, and the condition that it is null (None: it never is)."""

    type: Type
    code: str
    null: str | None = None

    @property
    def present(self) -> str:
        """Return the condition that the value is not null."""
        return "True" if self.null is None else f"(not {self.null})"


def less(value_type: Type, a: str, b: str, *, makes_strings: bool) -> str:
    """Return the condition that ``a`` is less than ``b``."""
    if value_type.kind == "fraction":
        return f"({a} < {b} or ({b} != {b} and {a} == {a}))"
    if value_type.kind == "text" and makes_strings:
        return f"text_less(S_offsets, S_data, {a}, {b})"
    return f"({a} < {b})"


def equal(value_type: Type, a: str, b: str) -> str:
    """Return the condition that ``a`` and ``b`` are the same value."""
    return f"({a} == {b} or ({a} != {a} and {b} != {b}))" if value_type.kind == "fraction" else f"({a} == {b})"


def from_word(value_type: Type, words: str, doubles: str, place: str) -> str:
    """Return the expression that reads a value from an array of words; ``doubles`` is its float64 view."""
    if value_type.kind == "fraction":
        return f"{doubles}[{place}]"
    return f"({words}[{place}] != 0)" if value_type.kind == "truth" else f"{words}[{place}]"


def wrap(a: str, sign: str, b: str) -> str:
    """Return a sum, difference or product that wraps at 64 bits.

    Numba declares that signed arithmetic does not overflow, so LLVM would remove a later overflow check.
    """
    return f"np.int64(np.uint64({a}) {sign} np.uint64({b}))"


def store(value_type: Type, words: str, doubles: str, place: str, code: str) -> str:
    """Return the statement that writes a value into an array of words."""
    if value_type.kind == "fraction":
        return f"{doubles}[{place}] = {code}"
    return f"{words}[{place}] = {f'np.int64({code})' if value_type.kind == 'truth' else code}"
