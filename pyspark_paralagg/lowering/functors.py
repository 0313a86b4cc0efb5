"""Compute the calls of functors in a rule as columns of its DataFrames, by pandas UDFs.

    p(x, @f(y) + 1) :- q(x, y), r(z), @g(x, z) < 3.
    q(x, y, f := @f(y)), r(z), then g := @g(x, z), then g < 3

A call is computed as soon as a DataFrame has its arguments. So calls over inputs alone run before a recursion, and the
engine of the recursion reads their results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from pyspark_paralagg.errors import FixpointError
from pyspark_paralagg.program.expr import Call, Col, Expr, columns
from pyspark_paralagg.program.functor import SIGN, is_functor
from pyspark_paralagg.program.names import added_name
from pyspark_paralagg.program.sql import to_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.program import Rule

_DTYPES = {"bigint": "int64", "double": "float64", "boolean": "bool", "string": "object"}


class FunctorColumns:
    """The calls of functors in ``rule``; ``rule`` then has a variable in place of each."""

    def __init__(self, rule: Rule, functors: Mapping[str, Functor], names: Mapping[str, str]) -> None:
        self._functors = functors
        self._names = names
        self._place = rule.place
        self._pending: dict[Call, Col] = {}
        self.rule = replace(
            rule,
            exprs=tuple(map(self._without_calls, rule.exprs)),
            conditions=tuple(map(self._without_calls, rule.conditions)),
        )

    def _without_calls(self, expr: Expr) -> Expr:
        """Return ``expr`` with a variable in place of each call, inner ones first."""
        if not isinstance(expr, Call):
            return expr
        call = replace(expr, args=tuple(map(self._without_calls, expr.args)))
        if not is_functor(call.fn):
            return call
        name = added_name(call.fn.removeprefix(SIGN), len(self._pending))
        return self._pending.setdefault(call, Col(name, call.type))

    def add(self, df: DataFrame, bound: set[str]) -> DataFrame:
        """Return ``df`` with the calls whose arguments are ``bound``, and add their variables to ``bound``."""
        for call, column in list(self._pending.items()):  # an inner call comes before the outer one
            if columns(call) <= bound:
                del self._pending[call]
                args = [F.expr(to_sql(a, self._names, self._place)) for a in call.args]
                udf = _udf(self._functors[call.fn.removeprefix(SIGN)], call)
                df = df.withColumn(column.name, udf(*args))
                bound.add(column.name)
        return df


def _udf(functor: Functor, call: Call) -> Callable[..., Any]:
    """Return ``functor`` as a pandas UDF; the text of its errors has their code in brackets, as errors of Spark."""
    import pandas as pd  # noqa: PLC0415 - slow to load

    types = [_DTYPES[a.type] for a in call.args]
    dtype = _DTYPES[call.type]

    def values(*series: pd.Series) -> pd.Series:
        import pandas as pd  # noqa: PLC0415 - in the worker

        if any(t != "float64" and s.hasnans for s, t in zip(series, types, strict=True)):
            raise RuntimeError(
                f"[PARALAGG_FUNCTOR_FAILED] the functor `{call.fn}` got a null Hint: drop nulls of inputs"
            )
        try:
            found = functor.values([s.to_numpy(dtype=t) for s, t in zip(series, types, strict=True)])
        except FixpointError as problem:
            raise RuntimeError(f"[{problem.code}] {problem.message} Hint: {problem.hint}") from problem.__cause__
        return pd.Series(found, dtype=dtype)

    values.__name__ = call.fn
    values.__annotations__ = {"series": pd.Series, "return": pd.Series}
    udf: Callable[..., Any] = F.pandas_udf(values, call.type)  # type: ignore[attr-defined] # pyspark's stubs lack it
    return udf
