"""Read a Plan, or a Program, from its JSON: the inverse of ``to_data``, for another process."""

from __future__ import annotations

import types
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.plan import plan as planned
from pyspark_paralagg.plan.plan import VERSION, Plan
from pyspark_paralagg.program import custom, expr, functor, program, trace
from pyspark_paralagg.program.expr import from_json
from pyspark_paralagg.program.program import Program

_NAMES = {**vars(expr), **vars(custom), **vars(functor), **vars(trace), **vars(program), **vars(planned)}


def plan_from_json(data: dict[str, Any]) -> Plan:
    """Read the result of ``to_json``; raise ``UsageError`` for another schema version.

    >>> plan_from_json(Plan("none", (), ()).to_json())
    Plan(name='none', inputs=(), strata=(), reasons=(), narrower=(), version=12)
    """
    if data.get("version") != VERSION:
        raise UsageError(
            "PARALAGG_PLAN_VERSION",
            f"the plan has version {data.get('version')}, but this engine reads version {VERSION}",
            value=data.get("version"),
            hint="install the same version of pyspark-paralagg on all machines",
        )
    plan: Plan = _decode(Plan, data)
    return plan


def program_from_json(data: dict[str, Any]) -> Program:
    """Read a Program from the result of ``to_data``."""
    read: Program = _decode(Program, data)
    return read


def _decode(type_: Any, value: Any) -> Any:  # noqa: ANN401 - walks every type of the Plan
    if value is None:
        return None
    if isinstance(value, dict) and (_is_union_of_expressions(type_)):
        return from_json(value)
    if get_origin(type_) in (Union, types.UnionType):
        return _decode(next(a for a in get_args(type_) if _fits(a, value)), value)
    if get_origin(type_) is tuple:
        return tuple(_decode(get_args(type_)[0], v) for v in value)
    if is_dataclass(type_) and isinstance(type_, type):
        hints = _hints(type_)
        return type_(**{name: _decode(hints[name], v) for name, v in value.items()})
    return value


def _is_union_of_expressions(type_: Any) -> bool:  # noqa: ANN401 - a type
    return any(a in (expr.Col, expr.Lit, expr.Call) for a in get_args(type_))


def _fits(type_: Any, value: Any) -> bool:  # noqa: ANN401 - a type and a value
    """Return whether ``value`` may have the type ``type_`` of a union: dataclasses are matched by their fields."""
    if is_dataclass(type_) and isinstance(type_, type):
        return isinstance(value, dict) and value.keys() <= _hints(type_).keys()
    return type_ is not type(None)


@cache
def _hints(type_: type) -> dict[str, Any]:
    return get_type_hints(type_, _NAMES)
