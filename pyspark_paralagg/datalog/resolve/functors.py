"""Check the functors of a text: their declarations, and the Python functions that the caller passes for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.functor import Functor
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.types import Types

    Functions = Mapping[str, Callable[..., Any]]

_MISSING = "PARALAGG_FUNCTOR_MISSING"


def functors_of(text: syntax.Text, types: Types, functions: Functions, places: Places) -> dict[str, Functor]:
    """Return the declared functors by name; raise ``DatalogError`` or ``UsageError`` if one has no function."""
    declared: dict[str, syntax.Functor] = {}
    for c in text.clauses:
        if not isinstance(c, syntax.Functor):
            continue
        if c.name in declared:
            message = f"the functor `{c.name}` is declared twice, see {places.describe(declared[c.name].span)}"
            raise places.error("PARALAGG_DATALOG_DECLARED_TWICE", message, c.span, value=c.name, hint="remove one")
        declared[c.name] = c
    for name, function in functions.items():
        if name not in declared or not callable(function):
            is_known = name in declared
            problem = f"is a {type(function).__name__}, not a function" if is_known else "is not declared by the text"
            hint = did_you_mean(name, declared) if declared else f"declare it: .functor {name}(x: number): number"
            hint = "pass a function of arrays" if is_known else hint
            message, value = f"the functor {name!r} {problem}", function if is_known else name
            raise UsageError(_MISSING, message, value=value, place="functors", hint=hint)
    return {name: _functor(c, types, functions, places) for name, c in declared.items()}


def _functor(c: syntax.Functor, types: Types, functions: Functions, places: Places) -> Functor:
    parameters = tuple(types.base(a.type, a.span) for a in c.parameters)
    result = types.base(c.result.type, c.result.span)
    if not parameters:
        message = f"the functor `{c.name}` has no argument, and its function gets no array whose length it returns"
        hint = f"write its value as a fact, or declare an argument: .functor {c.name}(x: number): {c.result.type}"
        raise places.error("PARALAGG_DATALOG_ARITY", message, c.span, value=c.name, hint=hint)
    if c.name not in functions:
        message = f"the functor `{c.name}` has no Python function"
        hint = f"pass it: ra.datalog(…, functors={{{c.name!r}: function}}), or paralagg run --functors functors.py"
        raise places.error(_MISSING, message, c.span, value=c.name, hint=hint)
    return Functor(c.name, parameters, result, functions[c.name])
