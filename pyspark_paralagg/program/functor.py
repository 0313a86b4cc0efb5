"""Define a functor of the user: a Python function over columns, and the check of what it returns.

A call is ``Call("@f", …)``. No entry of ``program.functions`` has such a name, so the proof treats it as an
uninterpreted function. The engine of ``mpi_backend`` and plain DataFrames call ``Functor.values``.
"""

from __future__ import annotations

import numbers
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import FixpointError
from pyspark_paralagg.program.expr import Call, Expr, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SIGN = "@"
_LIMIT = 1 << 63
_SHOWN = 60


@dataclass(frozen=True)
class Functor:
    """A function with the Datalog types of its parameters and of its result; ``name`` has no sign."""

    name: str
    parameters: tuple[str, ...]
    result: str
    function: Callable[..., Any] = field(compare=False, repr=False)

    def values(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the function's values for arrays of the same length, as Python values of the result's type.

        Raise ``FixpointError`` ``PARALAGG_FUNCTOR_FAILED`` or ``PARALAGG_FUNCTOR_RESULT``.
        """
        count = len(arrays[0])
        if count == 0:
            return []
        try:
            result = self.function(*arrays)
        except Exception as problem:
            raise self._failure(problem, arrays) from problem
        to_list = next((m for n in ("tolist", "to_pylist") if (m := getattr(result, n, None)) is not None), None)
        try:
            found = result if to_list is None else to_list()
            size = -1 if isinstance(found, str | bytes) else len(found)
        except TypeError:
            size = -1
        if size != count:
            what = f"{size} values" if size >= 0 else _shown(result)
            raise self._wrong(f"returned {what} for {count} rows", result)
        return [self._value(v, n, arrays) for n, v in enumerate(found)]

    def _value(self, value: Any, row: int, arrays: Sequence[Any]) -> Any:  # noqa: ANN401 - whatever it returned
        is_truth = isinstance(value, bool)
        if self.result == "symbol" and isinstance(value, str):
            return str(value)
        if self.result == "boolean" and is_truth:
            return value
        if self.result == "float" and isinstance(value, numbers.Real) and not is_truth:
            return float(value)
        if self.result in ("number", "unsigned") and isinstance(value, numbers.Integral) and not is_truth:
            number = operator.index(value)
            if (0 if self.result == "unsigned" else -_LIMIT) <= number < _LIMIT:
                return number
        raise self._wrong(f"returned {_shown(value)} for {_arguments(arrays, row)}, which is no {self.result}", value)

    def _failure(self, problem: Exception, arrays: Sequence[Any]) -> FixpointError:
        """Return the error of a call that raised ``problem``, with the first row whose call raises."""
        arguments: str | None = None
        for row in range(len(arrays[0])):
            try:
                self.function(*(a[row : row + 1] for a in arrays))
            except Exception as own:  # noqa: BLE001, PERF203 - whatever it raises; the first one ends the loop
                problem, arguments = own, _arguments(arrays, row)
                break
        text = f"{type(problem).__name__}: {problem}".strip().splitlines()[0]
        message = f"the functor `{SIGN}{self.name}` raised {text}{f' for {arguments}' if arguments else ''}"
        hint = "the function must accept every value of its types: rows that a rule drops later may reach it"
        return FixpointError("PARALAGG_FUNCTOR_FAILED", message, value=arguments, hint=hint)

    def _wrong(self, message: str, value: object) -> FixpointError:
        hint = f"return one {self.result} for each row, as an array or a list"
        message = f"the functor `{SIGN}{self.name}` {message}"
        return FixpointError("PARALAGG_FUNCTOR_RESULT", message, value=value, hint=hint)


def is_functor(name: str) -> bool:
    """Return whether ``name`` is that of a call of a user's functor."""
    return name.startswith(SIGN)


def calls_of(expr: Expr) -> Iterator[Call]:
    """Yield the calls of functors in ``expr``, outer ones first."""
    return (e for e in walk(expr) if isinstance(e, Call) and is_functor(e.fn))


def _arguments(arrays: Sequence[Any], row: int) -> str:
    return f"({', '.join(_shown(a[row : row + 1].tolist()[0]) for a in arrays)})"


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
