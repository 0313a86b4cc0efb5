"""Type the expressions of a step, messages of Spark Connect's protocol, as the shim's ``Analysis.scala`` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.connect import calls
from pyspark_paralagg.connect.messages import type_name
from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.types import decimal_type, plain
from pyspark_paralagg.program.expr import Call, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.connect.messages import Message
    from pyspark_paralagg.connect.scope import Attribute, Scope
    from pyspark_paralagg.connect.text import Item
    from pyspark_paralagg.program.functions import Setting

_NUMBERS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_OTHER_VALUES = {
    "boolean": "boolean", "float": "float", "double": "double", "string": "string", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_RANDOM = ("rand", "randn", "random", "uuid", "monotonically_increasing_id", "spark_partition_id", "shuffle", "randstr")
_REFUSED = {
    "common_inline_user_defined_function": "a Python UDF",
    "call_function": "a function of the catalog",
    "window": "a window function",
    "subquery_expression": "a subquery",
    "lambda_function": "a function of a function",
}


@dataclass(frozen=True)
class Named:
    """A column of a projection. ``attribute`` is set if it is a column of the child as it is."""

    name: str
    expr: Expr
    attribute: Attribute | None = None

    @classmethod
    def same(cls, attribute: Attribute) -> Named:
        """Return a column of the child as it is."""
        return cls(attribute.name, attribute.col, attribute)


class Expressions:
    """The expressions over rows of ``scope``."""

    def __init__(self, scope: Scope, setting: Setting) -> None:
        self._scope = scope
        self._setting = setting

    def columns(self, messages: Sequence[Message]) -> list[Named]:
        """Return the columns of a projection; a star has several."""
        return [column for m in messages for column in self._columns(m)]

    def value(self, message: Message) -> Expr:  # noqa: PLR0911 - a return for each kind
        """Return the typed expression. Raises ``UnsupportedError`` for what Python cannot type."""
        kind = message.WhichOneof("expr_type")
        body = getattr(message, kind)
        match kind:
            case "literal":
                return _literal(body)
            case "unresolved_attribute":
                return self._attribute(message).col
            case "unresolved_function":
                if body.is_user_defined_function:
                    refuse(f"the function {body.function_name} of the session", body.function_name)
                counts_rows = body.function_name.lower() == "count" and _is_star(body.arguments)
                args: list[Expr] = [Lit(1, "int")] if counts_rows else [self.value(a) for a in body.arguments]
                return self._function(body.function_name, args, body.is_distinct)
            case "alias":
                return self.value(body.expr)
            case "cast":
                return self._cast(body)
            case "expression_string":
                return self.item(_parsed(body.expression))
            case _:
                return refuse(_REFUSED.get(kind, f"the expression {kind}"))

    def item(self, item: Item) -> Expr:
        """Return the typed expression of a part of an SQL text."""
        if isinstance(item.value, Lit):
            return item.value
        args = [self.item(a) for a in item.args]
        if item.cast is not None:
            return _raised(args[0], item.cast) or calls.cast(args[0], item.cast, may_fail_as_null=item.value == "try")
        if not item.is_call:
            return self._scope.resolve(str(item.value)).col
        return self._function(str(item.value), args, is_distinct=item.is_distinct)

    def _columns(self, message: Message) -> Iterator[Named]:
        kind = message.WhichOneof("expr_type")
        if kind == "unresolved_star":
            star = message.unresolved_star
            for a in self._star(star.unparsed_target, star.plan_id if star.HasField("plan_id") else None):
                yield Named.same(a)
        elif kind == "unresolved_attribute":
            a = self._attribute(message)
            yield Named.same(a)
        elif kind == "alias":
            yield Named(message.alias.name[0], self.value(message.alias.expr))
        elif kind == "expression_string":
            item = _parsed(message.expression_string.expression)
            if item.is_star:
                for a in self._star(str(item.value or ""), None):
                    yield Named.same(a)
            elif not item.is_call and item.cast is None and item.alias is None and not isinstance(item.value, Lit):
                a = self._scope.resolve(str(item.value))
                yield Named.same(a)
            else:
                yield Named(item.alias or "", self.item(item))
        else:
            yield Named("", self.value(message))  # Spark makes a name that a step cannot rely on

    def _star(self, target: str, plan_id: int | None) -> tuple[Attribute, ...]:
        if plan_id is not None:
            own = {a.id for a in self._scope.by_plan.get(plan_id) or refuse(f"the star of DataFrame {plan_id}")}
            return tuple(a for a in self._scope.output if a.id in own)
        qualifier = target.removesuffix(".*").strip("`")
        if qualifier in ("", "*"):
            return self._scope.output
        found = tuple(a for a in self._scope.output if a.qualifier and self._scope.same(a.qualifier, qualifier))
        return found or refuse(f"the star {target}")

    def _attribute(self, message: Message) -> Attribute:
        body = message.unresolved_attribute
        return self._scope.resolve(body.unparsed_identifier, body.plan_id if body.HasField("plan_id") else None)

    def _function(self, name: str, args: list[Expr], is_distinct: bool) -> Expr:  # noqa: FBT001 - a field of the message
        if name.lower() in _RANDOM:
            return Call(name, tuple(args), "double", deterministic=False)
        if name.lower() == "raise_error" and len(args) == 1 and args[0].type == "string":
            return Call("RaiseError", tuple(args), "void")
        if calls.is_aggregate(name):
            found = calls.aggregate(name, args, is_distinct=is_distinct)
        else:
            found = calls.function(name, args, self._setting)
        types = ", ".join(a.type for a in args)
        return found or refuse(f"the function {name}({types}), which Python does not analyse,", name)

    def _cast(self, body: Message) -> Expr:
        value = self.value(body.expr)
        target = plain(body.type_str) if body.HasField("type_str") else type_name(body.type)
        return _raised(value, target) or calls.cast(value, target, may_fail_as_null=_is_try(body))


def _parsed(text: str) -> Item:
    try:
        from pyspark_paralagg.connect.text import parsed  # noqa: PLC0415 - needs sqlglot
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.split(".")[0] != "sqlglot":
            raise
        hint = "install sqlglot in this process: pip install 'pyspark-paralagg[connect]'"
        return refuse(f"the SQL text {text!r}, which needs sqlglot to be read,", text, hint)
    return parsed(text)


def _raised(value: Expr, target: str) -> Expr | None:
    """Return an error with the type of the value in whose place it stands; None if ``value`` is none."""
    if isinstance(value, Call) and value.fn == "RaiseError":
        return Call("RaiseError", value.args, target)
    return None


def _is_star(arguments: Sequence[Message]) -> bool:
    return [a.WhichOneof("expr_type") for a in arguments] == ["unresolved_star"]


def _is_try(cast: Message) -> bool:
    return "eval_mode" in cast.DESCRIPTOR.fields_by_name and cast.eval_mode == cast.EVAL_MODE_TRY


def _literal(body: Message) -> Lit:
    kind = body.WhichOneof("literal_type")
    if kind == "null":
        return Lit(None, type_name(body.null))
    if kind == "decimal":
        return Lit(body.decimal.value, decimal_type((body.decimal.precision, body.decimal.scale)))
    name = _NUMBERS.get(kind) or _OTHER_VALUES.get(kind) or refuse(f"a literal of type {kind}")
    value = getattr(body, kind)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124 - NaN
        value = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]  # as Java prints them
    return Lit(value, name)
