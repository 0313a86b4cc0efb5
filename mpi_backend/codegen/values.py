"""A value in generated code, and what every kind of value can do: compare, be stored, be read.

Whole numbers and texts are ``int64`` variables, fractions ``float64``, truths ``bool``. Comparisons are Spark's: one
NaN, which is the largest number, texts by their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi_backend.state.types import Type


@dataclass(frozen=True)
class Value:
    """``code`` is the Python expression of the value, ``null`` that of whether it is null; None: it never is."""

    type: Type
    code: str
    null: str | None = None

    @property
    def present(self) -> str:
        """The condition that it is not null."""
        return "True" if self.null is None else f"(not {self.null})"


def less(of: Type, a: str, b: str, *, makes_strings: bool) -> str:
    """The condition that ``a`` is less than ``b``."""
    if of.kind == "fraction":
        return f"({a} < {b} or ({b} != {b} and {a} == {a}))"
    if of.kind == "text" and makes_strings:
        return f"text_less(S_offsets, S_data, {a}, {b})"
    return f"({a} < {b})"


def equal(of: Type, a: str, b: str) -> str:
    """The condition that both are the same value."""
    return f"({a} == {b} or ({a} != {a} and {b} != {b}))" if of.kind == "fraction" else f"({a} == {b})"


def from_word(of: Type, words: str, doubles: str, place: str) -> str:
    """Reads a value from an array of words, which ``doubles`` shows as fractions."""
    if of.kind == "fraction":
        return f"{doubles}[{place}]"
    return f"({words}[{place}] != 0)" if of.kind == "truth" else f"{words}[{place}]"


def wrapped(a: str, sign: str, b: str) -> str:
    """A sum, difference or product of 64 bits that goes around.

    Numba tells LLVM that signed ones never do, and so what asks afterwards whether one did is optimised away.
    """
    return f"np.int64(np.uint64({a}) {sign} np.uint64({b}))"


def store(of: Type, words: str, doubles: str, place: str, code: str) -> str:
    """The statement that writes a value into an array of words."""
    if of.kind == "fraction":
        return f"{doubles}[{place}] = {code}"
    return f"{words}[{place}] = {f'np.int64({code})' if of.kind == 'truth' else code}"
