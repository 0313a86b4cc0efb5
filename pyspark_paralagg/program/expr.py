"""Define the expressions of a Program and of a Plan: columns, literals, calls.

A call has the name of Spark's expression class (``Add``, ``Cast``, ``Least``). The passes reason about the functions
in ``functions`` and treat every other function as opaque. ``handle`` is an index into the table of Catalyst
expressions that the shim keeps with a step. The Spark engine rebuilds an expression as
``table[handle].withNewChildren(args)``, which keeps Spark's exact semantics for any function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASSERT_UNSIGNED = "AssertUnsigned"
"""A function of a number and a message: it returns the number, or fails with the message if it is negative."""

PACKED, UNPACKED = "Packed", "Unpacked"
"""Functions of a value that is no word: its text, which the loop stores, and the value of that text."""


@dataclass(frozen=True)
class Col:
    """A variable of a rule: one column of one atom of its body."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Lit:
    """A constant. ``value`` is a JSON value: None, bool, int, float or str (other types as Spark prints them)."""

    value: bool | int | float | str | None
    type: str
    handle: int | None = None


@dataclass(frozen=True)
class Call:
    """A scalar function of other expressions.

    ``deterministic`` and ``codegen`` describe this node, not its arguments. ``codegen`` is false if no engine can run
    it inside its loop (a Python UDF, an interpreted function). ``checked``: overflow is an error even if the session
    has ANSI mode off, because the proof depends on it. ``variant`` numbers functions of one class and the same types
    that differ in something other than their arguments: the ordinal of a field, the unit of a difference.
    """

    fn: str
    args: tuple[Expr, ...]
    type: str
    nullable: bool = True
    handle: int | None = None
    deterministic: bool = True
    codegen: bool = True
    checked: bool = False
    variant: int = 0


Expr = Col | Lit | Call


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield ``expr`` and all expressions below it, parents first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns(expr: Expr) -> frozenset[str]:
    """Return the names of the variables that ``expr`` reads."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, Col))


def substitute(expr: Expr, binding: Callable[[Col], Expr]) -> Expr:
    """Replace each column of ``expr`` by the result of ``binding``."""
    if isinstance(expr, Col):
        return binding(expr)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(substitute(a, binding) for a in expr.args))
    return expr


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Split a condition at its ANDs: ``a AND (b AND c)`` gives ``a, b, c``."""
    if isinstance(expr, Call) and expr.fn == "And":
        return tuple(c for arg in expr.args for c in conjuncts(arg))
    return (expr,)


def to_json(expr: Expr) -> dict[str, Any]:
    """Return the expression as JSON, as the shim sends and receives it."""
    if isinstance(expr, Col):
        return {"col": expr.name, "type": expr.type, "nullable": expr.nullable}
    if isinstance(expr, Lit):
        return {"lit": expr.value, "type": expr.type, "handle": expr.handle}
    return {
        "fn": expr.fn,
        "args": [to_json(a) for a in expr.args],
        "type": expr.type,
        "nullable": expr.nullable,
        "handle": expr.handle,
        "deterministic": expr.deterministic,
        "codegen": expr.codegen,
        **({"checked": True} if expr.checked else {}),
        **({"variant": expr.variant} if expr.variant else {}),
    }


def from_json(data: dict[str, Any]) -> Expr:
    """Return the expression of JSON from :func:`to_json`."""
    if "col" in data:
        return Col(data["col"], data["type"], data["nullable"])
    if "lit" in data:
        return Lit(data["lit"], data["type"], data["handle"])
    return Call(
        data["fn"],
        tuple(from_json(a) for a in data["args"]),
        data["type"],
        data["nullable"],
        data["handle"],
        data["deterministic"],
        data["codegen"],
        data.get("checked", False),
        data.get("variant", 0),
    )


def branches(expr: Call) -> tuple[list[Expr], list[Expr]]:
    """Return conditions and values of an ``If`` or ``CaseWhen``; without ELSE the default null is left out."""
    args = list(expr.args)
    if expr.fn == "If":
        return args[:1], args[1:]
    pairs = len(args) // 2 * 2
    return args[0:pairs:2], args[1:pairs:2] + args[pairs:]
