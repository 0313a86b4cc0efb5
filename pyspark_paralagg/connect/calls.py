"""Type a function of a step as Spark's analyser does: its name and its arguments -> the Call that the shim would send.

Only functions are here that the engine on ranks computes, and only for the types for which Spark inserts the casts
below. ``None`` stands for everything else: plain DataFrames run such a step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark_paralagg.connect.types import (
    cast_may_be_null,
    common,
    decimal_for,
    decimal_of,
    decimal_type,
    is_number,
    is_whole,
    product_type,
)
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.expr import Call, Lit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.functions import Setting

    Build = Callable[[Sequence[Expr], Setting], Expr | None]

_INTEGER_MAX = (1 << 31) - 1
_TRUTH_AGGREGATES = {"bool_or": "max", "any": "max", "some": "max", "bool_and": "min", "every": "min"}
_BITS = tuple(name for a in AGGREGATORS.values() if a.moves in ("bits_up", "bits_down") for name in a.absorbs)
_PLAIN_AGGREGATES = ("min", "max", "sum", "count", *_BITS)
_ORDERED_AGGREGATES = tuple(a.name for a in AGGREGATORS.values() if a.parameters == "order")


def function(name: str, args: Sequence[Expr], setting: Setting) -> Expr | None:
    """Return the typed call of a function, by its name in Spark's registry; None if Python cannot type it.

    >>> from pyspark_paralagg.program.expr import Col
    >>> from pyspark_paralagg.program.functions import Setting
    >>> function("+", [Col("d", "bigint"), Lit(1, "int")], Setting()).args[1].fn
    'Cast'
    """
    build = _FUNCTIONS.get(name.lower())
    return build(args, setting) if build is not None else None


def aggregate(name: str, args: Sequence[Expr], *, is_distinct: bool) -> Expr | None:
    """Return the call of an aggregate function (``agg:`` and Spark's name); None if no relation has that aggregate."""
    fn = _TRUTH_AGGREGATES.get(name.lower(), name.lower())
    if fn not in (*_PLAIN_AGGREGATES, *_ORDERED_AGGREGATES):
        return None
    result_type = "bigint" if fn == "count" or not args else args[0].type
    if fn == "sum":
        result_type = AGGREGATORS["sum"].result(result_type)
    label = f"agg:{fn}" + (":distinct" if is_distinct else "")
    return Call(label, tuple(args), result_type, fn != "count", codegen=False)


def is_aggregate(name: str) -> bool:
    """Return whether a function of Spark's registry aggregates rows, as far as this module knows it."""
    fn = _TRUTH_AGGREGATES.get(name.lower(), name.lower())
    return fn in (*_PLAIN_AGGREGATES, *_ORDERED_AGGREGATES)


def is_known(name: str) -> bool:
    """Return whether a function of Spark's registry is one of this module's."""
    return name.lower() in _FUNCTIONS or is_aggregate(name)


def cast(expr: Expr, target: str, *, may_fail_as_null: bool = False) -> Expr:
    """Return the cast of ``expr`` that a user has written, even to its own type."""
    null = may_be_null(expr) or cast_may_be_null(expr.type, target)
    return Call("TryCast" if may_fail_as_null else "Cast", (expr,), target, null or may_fail_as_null)


def may_be_null(expr: Expr) -> bool:
    """Return whether Spark declares ``expr`` nullable."""
    return expr.value is None if isinstance(expr, Lit) else expr.nullable


def converted(expr: Expr, target: str) -> Expr:
    """Return ``expr`` with the cast that Spark's analyser inserts, if its type is another one."""
    if expr.type == target:
        return expr
    if expr.type == "void":
        return Lit(None, target)
    return cast(expr, target)


def alike(args: Sequence[Expr], setting: Setting) -> tuple[list[Expr], str] | None:
    """Return ``args`` cast to their common type, and the type; None if they have none."""
    target: str | None = "void"
    for arg in args:
        target = common(target, arg.type, ansi=setting.ansi) if target is not None else None
    if target is None:
        return None
    return [converted(a, target) for a in args], target


def _nullable(args: Sequence[Expr]) -> bool:
    return any(map(may_be_null, args))


def _arithmetic(fn: str, args: Sequence[Expr], setting: Setting) -> Expr | None:
    if len(args) != 2:  # noqa: PLR2004 - a binary operator
        return None
    always_null = fn in ("Divide", "IntegralDivide", "Remainder", "Pmod")
    sides = _decimals(args)
    if sides is not None:
        types = [decimal_of(s.type) for s in sides]
        result = product_type(fn, *types) if None not in types else None  # type: ignore[arg-type]  # just checked
        return None if result is None else Call(fn, tuple(sides), result, nullable=_nullable(sides) or not setting.ansi)
    both = alike(args, setting)
    if both is None or not is_number(both[1]) or both[1] == "void":
        return None
    operands, result = both
    if fn == "Divide":
        operands, result = [converted(o, "double") for o in args], "double"
    elif fn == "IntegralDivide":
        if not is_whole(result):
            return None
        operands, result = [converted(o, "bigint") for o in args], "bigint"
    return Call(fn, tuple(operands), result, always_null or _nullable(operands))


def _decimals(args: Sequence[Expr]) -> list[Expr] | None:
    """Return both sides as decimals, if one is a decimal and none is a fraction."""
    if not any(decimal_of(a.type) for a in args):
        return None
    sides = []
    for arg in args:
        value = arg.value if isinstance(arg, Lit) and isinstance(arg.value, int) else None
        digits = decimal_for(arg.type, value)
        if digits is None:
            return None
        sides.append(converted(arg, decimal_type(digits)))
    return sides


def _comparison(fn: str, args: Sequence[Expr], setting: Setting) -> Expr | None:
    both = alike(args, setting)
    if both is None or len(args) != 2:  # noqa: PLR2004 - a binary operator
        return None
    return Call(fn, tuple(both[0]), "boolean", fn != "EqualNullSafe" and _nullable(both[0]))


def _unequal(args: Sequence[Expr], setting: Setting) -> Expr | None:
    equal = _comparison("EqualTo", args, setting)
    return None if equal is None else _not((equal,), setting)


def _logic(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    return _call(fn, [converted(a, "boolean") if a.type == "void" else a for a in args], "boolean", ("boolean",))


def _not(args: Sequence[Expr], setting: Setting) -> Expr | None:
    return _logic("Not", args, setting)


def _test(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    return Call(fn, tuple(args), "boolean", nullable=False)


def _first_value(fn: str, args: Sequence[Expr], setting: Setting) -> Expr | None:
    """Type a function that is null only if all of its arguments are."""
    both = alike(args, setting)
    return None if both is None else Call(fn, tuple(both[0]), both[1], all(map(may_be_null, both[0])))


def _if(args: Sequence[Expr], setting: Setting) -> Expr | None:
    both = alike(args[1:], setting)
    if both is None or args[0].type != "boolean":
        return None
    return Call("If", (args[0], *both[0]), both[1], _nullable(both[0]))


def _case(args: Sequence[Expr], setting: Setting) -> Expr | None:
    pairs = len(args) // 2
    both = alike([*args[1 : 2 * pairs : 2], *args[2 * pairs :]], setting)
    if both is None or any(c.type != "boolean" for c in args[0 : 2 * pairs : 2]):
        return None
    values, result = both
    children = [x for pair in zip(args[0 : 2 * pairs : 2], values, strict=False) for x in pair] + values[pairs:]
    return Call("CaseWhen", tuple(children), result, len(values) == pairs or _nullable(values))


def _in(args: Sequence[Expr], setting: Setting) -> Expr | None:
    both = alike(args, setting)
    return None if both is None else Call("In", tuple(both[0]), "boolean", _nullable(both[0]))


def _same(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    if len(args) != 1 or not is_number(args[0].type):
        return None
    return Call(fn, tuple(args), args[0].type, _nullable(args))


def _bits(fn: str, args: Sequence[Expr], setting: Setting) -> Expr | None:
    both = alike(args, setting)
    return Call(fn, tuple(both[0]), both[1], _nullable(both[0])) if both and is_whole(both[1]) else None


def _shift(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    value = converted(args[0], "int") if args[0].type in ("tinyint", "smallint") else args[0]
    return _call(fn, (value, args[1]), value.type, ("int", "bigint"), ("int",))


def _real(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    if not all(is_number(a.type) for a in args):
        return None
    operands = tuple(converted(a, "double") for a in args)
    return Call(fn, operands, "double", fn.startswith("Log") or _nullable(operands))


def _rounded(fn: str, args: Sequence[Expr], _: Setting) -> Expr | None:
    return _call(fn, args, "bigint", ("double", "bigint")) if len(args) == 1 else None


def _substring(args: Sequence[Expr], _: Setting) -> Expr | None:
    whole = (*args, Lit(_INTEGER_MAX, "int")) if len(args) == 2 else tuple(args)  # noqa: PLR2004 - text and position
    return _call("Substring", whole, "string", ("string",), ("int",), ("int",))


def _concat(args: Sequence[Expr], _: Setting) -> Expr | None:
    return _call("Concat", args, "string", *[("string",)] * len(args))


def _typed(fn: str, result: str, *types: str) -> Build:
    """Return the builder of a function that accepts only these types, one for each argument."""
    return lambda args, _: _call(fn, args, result, *((t,) for t in types)) if len(args) == len(types) else None


def _call(fn: str, args: Sequence[Expr], result: str, *accepted: tuple[str, ...]) -> Expr | None:
    """Return the call if each argument has one of its accepted types; the last ones are for all further arguments."""
    for n, arg in enumerate(args):
        if arg.type not in accepted[min(n, len(accepted) - 1)]:
            return None
    return Call(fn, tuple(args), result, _nullable(args))


_FUNCTIONS: dict[str, Build] = {
    **{n: partial(_arithmetic, fn) for n, fn in {
        "+": "Add", "-": "Subtract", "*": "Multiply", "/": "Divide", "div": "IntegralDivide", "%": "Remainder",
        "mod": "Remainder", "pmod": "Pmod",
    }.items()},
    **{n: partial(_comparison, fn) for n, fn in {
        "==": "EqualTo", "=": "EqualTo", "<=>": "EqualNullSafe", "equal_null": "EqualNullSafe", "<": "LessThan",
        "<=": "LessThanOrEqual", ">": "GreaterThan", ">=": "GreaterThanOrEqual",
    }.items()},
    **{n: partial(_same, fn) for n, fn in {
        "negative": "UnaryMinus", "positive": "UnaryPositive", "abs": "Abs",
    }.items()},
    **{n: partial(_bits, fn) for n, fn in {"&": "BitwiseAnd", "|": "BitwiseOr", "^": "BitwiseXor"}.items()},
    **{n: partial(_shift, fn) for n, fn in {
        "shiftleft": "ShiftLeft", "<<": "ShiftLeft", "shiftright": "ShiftRight", ">>": "ShiftRight",
        "shiftrightunsigned": "ShiftRightUnsigned", ">>>": "ShiftRightUnsigned",
    }.items()},
    **{n: partial(_real, fn) for n, fn in {
        "power": "Pow", "pow": "Pow", "sqrt": "Sqrt", "exp": "Exp", "ln": "Log", "log10": "Log10", "log2": "Log2",
    }.items()},
    **{n: partial(_first_value, fn) for n, fn in {
        "coalesce": "Coalesce", "nvl": "Coalesce", "ifnull": "Coalesce", "least": "Least", "greatest": "Greatest",
    }.items()},
    **{n: partial(_test, fn) for n, fn in {"isnull": "IsNull", "isnotnull": "IsNotNull"}.items()},
    "isnan": lambda args, _: Call("IsNaN", tuple(args), "boolean", nullable=False)
    if args[0].type in ("double", "float") else None,
    "nanvl": lambda args, _: _call("NaNvl", args, "double", ("double",)),
    "floor": partial(_rounded, "Floor"), "ceil": partial(_rounded, "Ceil"), "ceiling": partial(_rounded, "Ceil"),
    "~": lambda args, _: Call("BitwiseNot", tuple(args), args[0].type, _nullable(args))
    if is_whole(args[0].type) else None,
    "!=": _unequal, "and": partial(_logic, "And"), "or": partial(_logic, "Or"), "not": _not, "!": _not,
    "when": _case, "if": _if, "in": _in, "concat": _concat, "substring": _substring, "substr": _substring,
    "length": _typed("Length", "int", "string"), "char_length": _typed("Length", "int", "string"),
    "contains": _typed("Contains", "boolean", "string", "string"),
    "startswith": _typed("StartsWith", "boolean", "string", "string"),
    "endswith": _typed("EndsWith", "boolean", "string", "string"),
    "rlike": _typed("RLike", "boolean", "string", "string"),
    "regexp_instr": lambda args, _: _call("RegExpInStr", (*args, Lit(0, "int")), "int", ("string",), ("string",),
        ("int",)),
    "date_add": _typed("DateAdd", "date", "date", "int"), "date_sub": _typed("DateSub", "date", "date", "int"),
    "datediff": _typed("DateDiff", "int", "date", "date"), "date_diff": _typed("DateDiff", "int", "date", "date"),
}  # fmt: skip
