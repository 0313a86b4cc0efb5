"""Hold a user-defined aggregator: its functions of Spark columns, with checks of their arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.trace import TRACE_WORDS

if TYPE_CHECKING:
    from pyspark.sql import Column

    from pyspark_paralagg.program.custom import Custom

Side = Any
"""The ``old`` or ``new`` of a lambda: a Column, or an object with a Column for each name of ``columns``."""


class UserAggregator:
    """A user-defined aggregator; :func:`aggregator` returns it."""

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments of `aggregator`
        self,
        name: str,
        combine: Callable[[Side, Side], Any] | None,
        improves: Callable[[Side, Side], Any] | None,
        identity: Any,  # noqa: ANN401 - a value of any type
        inverse: Callable[[Side, Side], Any] | None,
        columns: Sequence[str] | None,
        samples: Sequence[Any] | None,
    ) -> None:
        self.name = name
        self.is_single = columns is None
        self.columns = ("value",) if columns is None else tuple(columns)
        self._combine, self._improves, self._inverse = combine, improves, inverse
        self._check_arguments()
        self.identity = None if identity is None else self._tuple("identity", identity)
        self.samples = None if samples is None else tuple(self._tuple("samples", s) for s in samples)
        self.checked: dict[tuple[str, ...], Custom] = {}
        """The results of ``laws.check_laws`` by column types."""

    def __repr__(self) -> str:
        return f"aggregator({self.name!r})"

    def result_type(self, type_: str) -> str:
        """Return the type of the column in a relation whose base has a column of ``type_``."""
        return type_

    def lawful(self, types: tuple[str, ...]) -> Custom | None:  # noqa: ARG002 - for subclasses
        """Return the aggregator over columns of ``types`` if its laws need no check; else None."""
        return None

    @property
    def has_improves(self) -> bool:
        """Return whether the user passed ``improves``."""
        return self._improves is not None

    @property
    def has_inverse(self) -> bool:
        """Return whether the user passed ``inverse``."""
        return self._inverse is not None

    def combined(self, old: Sequence[Column], new: Sequence[Column]) -> list[Column]:
        """Return the value of ``combine`` for each column."""
        if self._combine is not None:
            return self._values("combine", self._combine(self._side(old), self._side(new)))
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional

        better = self.improved(old, new)
        return [F.when(better, n).otherwise(o) for o, n in zip(old, new, strict=True)]

    def improved(self, old: Sequence[Column], new: Sequence[Column]) -> Column:
        """Return the value of ``improves``; requires ``has_improves``."""
        if self._improves is None:
            raise AssertionError(self)
        return self._column("improves", self._improves(self._side(old), self._side(new)))

    def inverted(self, all_: Sequence[Column], part: Sequence[Column]) -> list[Column]:
        """Return the value of ``inverse`` for each column; requires ``has_inverse``."""
        if self._inverse is None:
            raise AssertionError(self)
        return self._values("inverse", self._inverse(self._side(all_), self._side(part)))

    def _check_arguments(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise self._bad_argument(f"the name {self.name!r} is not an identifier", self.name, "use an identifier")
        if self.name.lower() in (*AGGREGATORS, *TRACE_WORDS):
            raise self._bad_argument(f"the aggregator {self.name!r} already exists", self.name, "choose another name")
        if self._combine is None and self._improves is None:
            hint = f'pass a function: ra.aggregator("{self.name}", combine=lambda old, new: ...)'
            raise self._bad_argument("neither combine nor improves is given", None, hint)
        for name, value in (("combine", self._combine), ("improves", self._improves), ("inverse", self._inverse)):
            if value is not None and not callable(value):
                raise self._bad_argument(f"{name} is a {type(value).__name__}, not a function", value, "pass a lambda")
        if self._inverse is not None and self._combine is None:
            raise self._bad_argument("an inverse needs combine", None, "pass combine, or remove inverse")
        if not self.columns or not all(isinstance(c, str) and c.isidentifier() for c in self.columns):
            raise self._bad_argument(f"columns={self.columns!r} are not identifiers", self.columns, "use identifiers")
        if len(set(self.columns)) < len(self.columns):
            raise self._bad_argument(f"columns={self.columns!r} has a name twice", self.columns, "name each once")

    def _bad_argument(self, message: str, value: object, hint: str) -> UsageError:
        return UsageError("PARALAGG_AGGREGATOR", message, value=value, place=f"aggregator {self.name}", hint=hint)

    def _tuple(self, argument: str, value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a value of any type
        if self.is_single:
            return (value,)
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(self.columns):
            raise self._bad_argument(
                f"{argument}: {value!r} is not a tuple of {', '.join(self.columns)}", value, "pass a value for each"
            )
        return tuple(value)

    def _side(self, values: Sequence[Column]) -> Side:
        import pyspark  # noqa: PLC0415 - optional

        if pyspark.__version__.startswith("3."):  # it compares structs only if their fields have the same names
            values = [v.alias(name) for name, v in zip(self.columns, values, strict=True)]
        return values[0] if self.is_single else _Side(self, dict(zip(self.columns, values, strict=True)))

    def _values(self, function: str, result: Any) -> list[Column]:  # noqa: ANN401 - whatever a lambda returns
        if self.is_single:
            return [self._column(function, result)]
        if isinstance(result, Mapping):
            for name in (*result, *self.columns):
                if name not in result or name not in self.columns:
                    problem = "returns no" if name not in result else "returns an unknown"
                    raise self._bad_result(f"{function} {problem} column {name!r}", result)
            result = [result[c] for c in self.columns]
        if not isinstance(result, Sequence) or isinstance(result, str):
            message = f"{function} returns a {type(result).__name__}, not {len(self.columns)} columns"
            raise self._bad_result(message, result)
        if len(result) != len(self.columns):
            raise self._bad_result(f"{function} returns {len(result)} columns instead of {len(self.columns)}", result)
        return [self._column(function, r) for r in result]

    def _column(self, function: str, result: Any) -> Column:  # noqa: ANN401 - whatever a lambda returns
        from pyspark.sql import Column  # noqa: PLC0415 - pyspark is optional

        if not isinstance(result, Column):
            raise self._bad_result(f"{function} returns a {type(result).__name__}, not a Column", result)
        return result

    def _bad_result(self, message: str, result: object) -> UsageError:
        names = ", ".join(f"{c!r}: ..." for c in self.columns)
        shape = "a Column of old and new" if self.is_single else f"{{{names}}}, each a Column"
        return UsageError(
            "PARALAGG_AGGREGATOR_RESULT",
            message,
            value=result,
            place=f"aggregator {self.name}",
            hint=f"return {shape} from combine, and one boolean Column from improves",
        )


class _Side:
    """``old`` or ``new`` of an aggregator over several columns."""

    def __init__(self, aggregator: UserAggregator, values: dict[str, Column]) -> None:
        self._aggregator, self._values = aggregator, values

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._values:
            raise UsageError(
                "PARALAGG_AGGREGATOR_RESULT",
                f"there is no column {name!r}",
                value=name,
                place=f"aggregator {self._aggregator.name}",
                hint=did_you_mean(name, self._values),
            )
        return self._values[name]

    __getitem__ = __getattr__
