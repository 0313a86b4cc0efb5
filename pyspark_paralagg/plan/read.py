"""A Plan from its JSON: the inverse of ``Plan.to_json``, for engines that live in another process."""

from __future__ import annotations

import types
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.plan import plan as planned
from pyspark_paralagg.plan.plan import VERSION, Plan
from pyspark_paralagg.program import custom, expr, program
from pyspark_paralagg.program.expr import from_json

_NAMES = {**vars(expr), **vars(custom), **vars(program), **vars(planned)}


def plan_from_json(data: dict[str, Any]) -> Plan:
    """Reads what ``to_json`` wrote; ``UsageError`` where another version did.

    >>> plan_from_json(Plan("none", (), ()).to_json())
    Plan(name='none', inputs=(), strata=(), reasons=(), narrower=(), version=6)
    """
    if data.get("version") != VERSION:
        raise UsageError(
            "PARALAGG_PLAN_VERSION",
            f"the plan has version {data.get('version')}, this engine reads {VERSION}",
            value=data.get("version"),
            hint="install the same version of pyspark-paralagg everywhere",
        )
    plan: Plan = _decode(Plan, data)
    return plan


def _decode(of: Any, value: Any) -> Any:  # noqa: ANN401 - walks every type of the Plan
    if value is None:
        return None
    if isinstance(value, dict) and (_is_union_of_expressions(of)):
        return from_json(value)
    if get_origin(of) in (Union, types.UnionType):
        return _decode(next(a for a in get_args(of) if _fits(a, value)), value)
    if get_origin(of) is tuple:
        return tuple(_decode(get_args(of)[0], v) for v in value)
    if is_dataclass(of) and isinstance(of, type):
        hints = _hints(of)
        return of(**{name: _decode(hints[name], v) for name, v in value.items()})
    return value


def _is_union_of_expressions(of: Any) -> bool:  # noqa: ANN401 - a type
    return any(a in (expr.Col, expr.Lit, expr.Call) for a in get_args(of))


def _fits(of: Any, value: Any) -> bool:  # noqa: ANN401 - a type and a value
    """Whether ``value`` may be of that member of a union: dataclasses are told apart by their fields."""
    if is_dataclass(of) and isinstance(of, type):
        return isinstance(value, dict) and value.keys() <= _hints(of).keys()
    return of is not type(None)


@cache
def _hints(of: type) -> dict[str, Any]:
    return get_type_hints(of, _NAMES)
