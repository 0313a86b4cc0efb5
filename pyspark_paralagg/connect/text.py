"""Parse the SQL texts of a step (``selectExpr``, ``F.expr``, ``filter("…")``) with sqlglot, in Spark's dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pyspark_paralagg.connect.calls import is_known
from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.types import constant_of, decimal_type, plain
from pyspark_paralagg.program.expr import Lit

if TYPE_CHECKING:
    from collections.abc import Callable

Node: TypeAlias = Any  # sqlglot types few attributes of its nodes
_INT_MAX = (1 << 31) - 1
_DIALECT = "databricks"  # as Spark's, with CAST that may fail
_READ = re.compile(r"(?:[^\\]|\\[\\'\"nrt])*")  # sqlglot reads fewer escape sequences than Spark
_LOGARITHMS = {"10": "log10", "2": "log2"}


@dataclass(frozen=True)
class Item:
    """A part of a text. ``value`` is a constant, the identifier of a column, or the name of a call's function."""

    value: Lit | str | None = None
    args: tuple[Item, ...] = ()
    is_call: bool = False
    is_star: bool = False
    is_distinct: bool = False
    alias: str | None = None
    cast: str | None = None


@lru_cache(maxsize=1000)
def parsed(text: str) -> Item:
    """Return the parts of an SQL expression. Raises ``UnsupportedError`` for what it does not know.

    >>> parsed("d + 1 AS d").alias
    'd'
    """
    if not _READ.fullmatch(text):
        refuse(f"the text {text!r}, which has an escape sequence that Python does not read,", text)
    try:
        return _item(sqlglot.parse_one(text, dialect=_DIALECT))
    except SqlglotError as problem:
        return refuse(f"the text {text!r}, which sqlglot does not read ({str(problem).splitlines()[0]}),", text)


def _item(node: Node) -> Item:  # noqa: PLR0911 - a return for each kind of node
    match node:
        case exp.Alias():
            return replace(_item(node.this), alias=node.alias)
        case exp.Paren():
            return _item(node.this)
        case exp.Column() if isinstance(node.this, exp.Star) and not any(node.this.args.values()):
            return Item(".".join(p.name for p in node.parts[:-1]), is_star=True)
        case exp.Star() if not any(node.args.values()):  # no EXCEPT
            return Item(is_star=True)
        case exp.Column():
            return Item(".".join("`" + p.name.replace("`", "``") + "`" for p in node.parts))
        case exp.Literal() | exp.Boolean() | exp.Null():
            return Item(_literal(node))
        case exp.Cast():
            return _cast(node)
        case exp.Case() | exp.If():
            return _case(node)
        case _:
            return _call(node)


def _literal(node: Node) -> Lit:
    kind = node.key
    if kind == "null":
        return Lit(None, "void")
    if kind == "boolean":
        return Lit(bool(node.this), "boolean")
    if node.is_string:
        return Lit(node.this, "string")
    text = node.this
    if re.fullmatch(r"\d+", text):
        return Lit(int(text), "int" if int(text) <= _INT_MAX else "bigint")
    if re.fullmatch(r"[\d.]+", text):
        value = Decimal(text)
        scale = max(0, -int(value.as_tuple().exponent))
        return Lit(text, decimal_type((max(len(value.as_tuple().digits), scale), scale)))
    return Lit(float(text), "double")


def _cast(node: Node) -> Item:
    target = plain(node.to.sql(dialect=_DIALECT))
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:  # sqlglot reads 1L and 1.5D as casts
        constant = constant_of(Decimal(inner.this), target)
        if constant is not None:
            return Item(constant)
    return Item("try" if isinstance(node, exp.TryCast) else None, (_item(inner),), cast=target)


def _case(node: Node) -> Item:
    if isinstance(node, exp.If):
        default = node.args.get("false")
        return _called("if", node.this, node.args["true"], exp.Null() if default is None else default)
    pairs = []
    for way in node.args["ifs"]:
        condition = way.this if node.this is None else exp.EQ(this=node.this.copy(), expression=way.this)
        pairs += [condition, way.args["true"]]
    default = node.args.get("default")
    return _called("when", *pairs, *([] if default is None else [default]))


def _call(node: Node) -> Item:
    special = _SPECIAL.get(node.key)
    found = special(node) if special is not None else None
    if found is not None:
        return found
    text = node.sql(dialect=_DIALECT)
    name = _operators().get(type(node)) or _function_name(node)
    if name is None:
        return refuse(f"the text {text}, which Python does not analyse,", text)
    parts = [node.args.get(k) for k in node.arg_types]
    values = [v for p in parts for v in (p if isinstance(p, list) else [p]) if isinstance(v, exp.Expression)]
    return _called(name, *values)


def _between(node: Node) -> Item:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
    return _called("and", low, exp.LTE(this=node.this.copy(), expression=node.args["high"]))


def _is(node: Node) -> Item | None:
    return _called("isnull", node.this) if node.expression.key == "null" else None


def _not(node: Node) -> Item | None:
    is_null = node.this.key == "is" and node.this.expression.key == "null"
    return _called("isnotnull", node.this.this) if is_null else None


def _in(node: Node) -> Item | None:
    return _called("in", node.this, *node.expressions) if node.args.get("query") is None else None


def _negative(node: Node) -> Item | None:
    constant = _literal(node.this) if node.this.key == "literal" else None
    if constant is None or not isinstance(constant.value, int | float):
        return None
    return Item(Lit(-constant.value, constant.type))


def _count(node: Node) -> Item:
    inner = exp.Literal.number(1) if node.this.key == "star" else node.this
    if inner.key == "distinct":
        return replace(_called("count", *inner.expressions), is_distinct=True)
    return _called("count", inner)


def _logarithm(node: Node) -> Item | None:
    name = _LOGARITHMS.get(node.this.name) if node.expression is not None else None
    return None if name is None else _called(name, node.expression)


def _date(node: Node) -> Item | None:
    """Return the argument of sqlglot's own function around what has to be a date."""
    return _item(node.this) if node.args.get("format") is None else None


def _days_between(node: Node) -> Item | None:
    is_days = str(node.args.get("unit") or "DAY").upper() == "DAY"
    return _called("datediff", node.this, node.expression) if is_days else None


def _days_added(node: Node) -> Item | None:
    is_days = str(node.args.get("unit")).upper() == "DAY"
    return _called("date_add", node.this, node.expression) if is_days else None


def _rounded(node: Node) -> Item | None:
    return _called(node.key, node.this) if node.args.get("decimals") is None else None


def _concat(node: Node) -> Item | None:
    if all(e.key == "literal" for e in node.expressions):  # 'it''s', which Spark 4 reads as one literal
        refuse(f"the text {node.sql(dialect=_DIALECT)} of literals side by side", node.sql(dialect=_DIALECT))
    return None


_SPECIAL: dict[str, Callable[[Node], Item | None]] = {
    "between": _between, "is": _is, "not": _not, "in": _in, "neg": _negative, "count": _count, "log": _logarithm,
    "tsordstodate": _date, "datediff": _days_between, "tsordsdiff": _days_between, "tsordsadd": _days_added,
    "dateadd": _days_added, "concat": _concat, "floor": _rounded, "ceil": _rounded,
    "regexpinstr": lambda node: _called("regexp_instr", node.this, node.expression),
    "anonymous": lambda node: _called(node.name, *node.expressions),
}  # fmt: skip


def _function_name(node: Node) -> str | None:
    """Return Spark's name of a function that sqlglot knows by several names; its arguments are in Spark's order."""
    names = [n.lower() for n in type(node).sql_names()] if isinstance(node, exp.Func) else []
    return next((n for n in names if is_known(n)), None)


def _called(name: str, *args: Node) -> Item:
    return Item(name, tuple(map(_item, args)), is_call=True)


@lru_cache(maxsize=1)
def _operators() -> dict[type, str]:
    """Return Spark's name of each operator."""
    return {
        exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
        exp.EQ: "=", exp.NEQ: "!=", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
        exp.And: "and", exp.Or: "or", exp.Not: "not", exp.Neg: "negative", exp.DPipe: "concat",
        exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseNot: "~",
        exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright", exp.RegexpLike: "rlike",
    }  # fmt: skip
