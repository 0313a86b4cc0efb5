"""Translate the terms of a text into typed expressions, with the function names of Spark's analyser.

``number`` and ``unsigned`` are ``bigint``, ``float`` is ``double``, ``symbol`` is ``string``. An operation on two
numbers gives a number (``/`` truncates), one with a float gives a float. Numbers and symbols convert only explicitly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower import unsigned
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.resolve.types import BASES
from pyspark_paralagg.program import fields, patterns
from pyspark_paralagg.program.expr import Call, Expr, Lit
from pyspark_paralagg.program.functor import SIGN, is_functor
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.sets import ELEMENT_SET, element_set, element_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Span
    from pyspark_paralagg.program.functor import Functor

NUMBER, FLOAT, SYMBOL, BOOLEAN = "bigint", "double", "string", "boolean"
DATALOG_TYPES = {NUMBER: "number", FLOAT: "float", SYMBOL: "symbol"}

_OTHER_BASES = re.compile(r"(-?)0(?:[xX]([0-9a-fA-F]{1,15})|[bB]([01]{1,62}))")
_ARITHMETIC = {"+": "Add", "-": "Subtract", "*": "Multiply", "%": "Remainder"}
_BITS = {"band": "BitwiseAnd", "bor": "BitwiseOr", "bxor": "BitwiseXor"}
_SHIFTS = {"bshl": "ShiftLeft", "bshr": "ShiftRight", "bshru": "ShiftRightUnsigned"}
_LOGIC = {"land": "And", "lor": "Or"}
_CONVERSIONS = {
    "to_number": NUMBER, "to_unsigned": NUMBER, "to_float": FLOAT, "to_string": SYMBOL,
    "itof": FLOAT, "utof": FLOAT, "ftoi": NUMBER, "ftou": NUMBER, "itou": NUMBER, "utoi": NUMBER,
}  # fmt: skip
_COMPARISONS = {
    "=": "EqualTo", "<": "LessThan", "<=": "LessThanOrEqual", ">": "GreaterThan", ">=": "GreaterThanOrEqual",
}  # fmt: skip
_ARITY = {
    **dict.fromkeys((*_ARITHMETIC, *_BITS, *_SHIFTS, *_LOGIC, "/", "^", "lxor"), 2),
    **dict.fromkeys((*_CONVERSIONS, "neg", "bnot", "lnot", "strlen"), 1),
    "substr": 3,
}
_MAX_UNROLLED_POWER = 64


class UnboundError(Exception):
    """A variable without a value; ``args[0]`` is the node."""


class Terms:
    """The translation of terms and constraints; ``places`` locates errors."""

    def __init__(self, places: Places, base: Callable[[str, Span], str], functors: Mapping[str, Functor]) -> None:
        self._places = places
        self._base = base
        self._functors = functors
        self.unsigned: Mapping[str, Collection[int]] = {}

    def base(self, term: syntax.Cast | syntax.Apply) -> str:
        """Return the base type of a cast or of a user's functor: ``number``, ``unsigned``, ``float``, ``symbol``, …."""
        if isinstance(term, syntax.Cast):
            return self._base(term.type, term.span)
        return self._functor(term).result

    def range_checked(self, term: syntax.Term | syntax.HeadAggregate, expr: Expr, names: Collection[str]) -> Expr:
        """Return ``expr``, the expression of ``term``, with a range check if it is unsigned and may leave the range.

        ``names`` are the unsigned variables.
        """
        may_leave_range = expr.type == NUMBER and not isinstance(expr, Lit) and unsigned.may_leave(term)
        if may_leave_range and unsigned.is_unsigned(term, names, self.base):
            return unsigned.asserted(expr, self._places.describe(term.span))
        return expr

    def expr(self, term: syntax.Term, scope: Mapping[str, Expr], names: Collection[str] = ()) -> Expr:
        """Translate ``term`` over the variables of ``scope``, of which ``names`` are unsigned.

        Raise ``UnboundError`` for a variable that is not in ``scope``.
        """
        match term:
            case syntax.Variable():
                if term.name not in scope:
                    raise UnboundError(term)
                return scope[term.name]
            case syntax.Number():
                self._check_range(term)
                return Lit(term.value, FLOAT if isinstance(term.value, float) else NUMBER)
            case syntax.String():
                return Lit(term.value, SYMBOL)
            case syntax.Cast():
                return self._cast(self.expr(term.term, scope, names), term)
            case syntax.Apply(name="neg", args=(syntax.Number(value=value),)):
                self._check_range(term.args[0], -value)  # type: ignore[arg-type]
                return Lit(-value, FLOAT if isinstance(value, float) else NUMBER)
            case syntax.Apply():
                self._check_signs(term, names)
                args = [self.expr(a, scope, names) for a in term.args]
                if term.name in unsigned.READING or is_functor(term.name):
                    args = [self.range_checked(a, e, names) for a, e in zip(term.args, args, strict=True)]
                return self._call(term, args, names) if is_functor(term.name) else self._apply(term, args)
            case _:
                raise UnboundError(term)

    def _check_signs(self, term: syntax.Apply, names: Collection[str]) -> None:
        if term.name == "neg" and unsigned.is_unsigned(term.args[0], names, self.base):
            message = "an unsigned number cannot be negative"
            raise self._places.error(unsigned.CODE, message, term.span, hint=unsigned.HINT)

    def _functor(self, term: syntax.Apply) -> Functor:
        """Return the functor of the user that ``term`` calls."""
        functor = self._functors.get(term.name.removeprefix(SIGN))
        if functor is None:
            hint = did_you_mean(term.name, [SIGN + name for name in self._functors]) if self._functors else None
            hint = hint or f"declare it: .functor {term.name.removeprefix(SIGN)}(x: number): number"
            message = f"functor `{term.name}` is not declared"
            raise self._places.error("PARALAGG_DATALOG_FUNCTOR", message, term.span, value=term.name, hint=hint)
        return functor

    def _call(self, term: syntax.Apply, args: list[Expr], names: Collection[str]) -> Expr:
        """Translate the call of a user's functor."""
        functor = self._functor(term)
        if len(args) != len(functor.parameters):
            raise self._wrong_count(term.name, len(functor.parameters), len(args), term.span)
        converted = []
        for n, (arg, expr, type_) in enumerate(zip(term.args, args, functor.parameters, strict=True), 1):
            value = self.as_type(expr, BASES[type_])
            if value is None:
                message = f"argument {n} of `{term.name}` is a {type_}, but here it is a {datalog_type(expr.type)}"
                hint = "convert it with to_number, to_string or to_float"
                raise self._places.error("PARALAGG_DATALOG_TYPE", message, arg.span, value=expr.type, hint=hint)
            if type_ == "unsigned" and not unsigned.is_unsigned(arg, names, self.base):
                value = unsigned.asserted(value, self._places.describe(arg.span))
            converted.append(value)
        return Call(term.name, tuple(converted), BASES[functor.result])

    def constraint(self, literal: syntax.Comparison | syntax.Constraint, scope: Mapping[str, Expr]) -> Expr:
        """Translate a comparison, ``match`` or ``contains`` into a condition."""
        if isinstance(literal, syntax.Comparison):
            return self.comparison(literal, self.expr(literal.left, scope), self.expr(literal.right, scope))
        args = [self.expr(a, scope) for a in literal.args]
        if len(args) != 2:  # noqa: PLR2004
            raise self._wrong_count(literal.name, 2, len(args), literal.span)
        for a in args:
            self._expect(a, (SYMBOL,), literal.name, literal.span)
        if literal.name == "contains":
            return Call("Contains", (args[1], args[0]), BOOLEAN)
        return self._match(args[0], args[1], literal.args[0].span)

    def _match(self, pattern: Expr, text: Expr, span: Span) -> Expr:
        """Translate Soufflé's ``match``, which matches the whole text."""
        if isinstance(pattern, Lit):
            pattern = Lit(patterns.without_named_classes(str(pattern.value)), SYMBOL)
            fault = patterns.fault(str(pattern.value))
            if fault is not None:
                raise self._places.error(patterns.CODE, fault, span, value=pattern.value, hint=patterns.HINT)
            return Call("RLike", (text, Lit(patterns.whole(str(pattern.value)), SYMBOL)), BOOLEAN)
        whole_pattern = Call("Concat", (Lit(patterns.BEFORE, SYMBOL), pattern, Lit(patterns.AFTER, SYMBOL)), SYMBOL)
        # The pattern must be valid by itself: an invalid one such as `a)|(b` becomes valid between BEFORE and AFTER.
        valid = Call("RLike", (text, pattern), BOOLEAN)
        return Call("And", (valid, Call("RLike", (text, whole_pattern), BOOLEAN)), BOOLEAN)

    def comparison(self, node: syntax.Comparison, left: Expr, right: Expr) -> Expr:
        """Return ``left op right`` with both sides converted to one type."""
        left, right = self._with_common_type(left, right, node.op, node.span)
        if node.op == "!=":
            return Call("Not", (Call("EqualTo", (left, right), BOOLEAN),), BOOLEAN)
        return Call(_COMPARISONS[node.op], (left, right), BOOLEAN)

    def truth(self, expr: Expr, span: Span) -> Expr:
        """Return ``expr`` as a boolean; a number is true if it is not 0."""
        if expr.type == BOOLEAN:
            return expr
        self._expect(expr, (NUMBER,), "a truth value", span)
        return Call("Not", (Call("EqualTo", (expr, Lit(0, NUMBER)), BOOLEAN),), BOOLEAN)

    def as_type(self, expr: Expr, type_: str) -> Expr | None:
        """Return ``expr`` as a ``type_``; None if that needs an explicit conversion in the text."""
        if expr.type == type_:
            return expr
        if expr.type == NUMBER and type_ == FLOAT:
            return Lit(float(expr.value), FLOAT) if isinstance(expr, Lit) else Call("Cast", (expr,), FLOAT)  # type: ignore[arg-type]
        if isinstance(expr, Call) and expr.fn == ELEMENT_SET:
            element = self.as_type(expr.args[0], element_type(type_) or "")
            return None if element is None else element_set(element, type_)
        if type_ == BOOLEAN and isinstance(expr, Lit) and expr.type == NUMBER and expr.value in (0, 1):
            return Lit(bool(expr.value), BOOLEAN)
        return None

    def _with_common_type(self, left: Expr, right: Expr, operation: str, span: Span) -> tuple[Expr, Expr]:
        as_right, as_left = self.as_type(left, right.type), self.as_type(right, left.type)
        if as_right is not None:
            return as_right, right
        if as_left is not None:
            return left, as_left
        message = f"`{operation}` cannot combine {datalog_type(left.type)} and {datalog_type(right.type)}"
        hint = "convert one of them with to_number, to_string or to_float"
        raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=operation, hint=hint)

    def _apply(self, term: syntax.Apply, args: list[Expr]) -> Expr:  # noqa: C901, PLR0911, PLR0912 - one functor a line
        name, span = term.name, term.span
        if name in _ARITY and len(args) != _ARITY[name]:
            raise self._wrong_count(name, _ARITY[name], len(args), span)
        if name == "+" and all(a.type == SYMBOL for a in args):
            return Call("Concat", tuple(args), SYMBOL)
        if name in _ARITHMETIC or name in ("/", "^"):
            for a in args:
                self._expect(a, (NUMBER, FLOAT), name, span)
            left, right = self._with_common_type(args[0], args[1], name, span)
            if name == "^":
                return _power(left, right)
            if name == "/":
                return Call("IntegralDivide" if left.type == NUMBER else "Divide", (left, right), left.type)
            return Call(_ARITHMETIC[name], (left, right), left.type)
        if name == "neg":
            self._expect(args[0], (NUMBER, FLOAT), "-", span)
            return Call("UnaryMinus", (args[0],), args[0].type)
        if name in _BITS or name in _SHIFTS or name in ("bnot", "lnot", "lxor") or name in _LOGIC:
            return self._bits(name, args, span)
        if name in ("max", "min"):
            return self._extreme(name, args, span)
        if name in _CONVERSIONS:
            return self._converted(args[0], _CONVERSIONS[name], name, span)
        if name == "cat":
            for a in args:
                self._expect(a, (SYMBOL,), name, span)
            return Call("Concat", tuple(args), SYMBOL)
        if name == "strlen":
            self._expect(args[0], (SYMBOL,), name, span)
            return Call("Cast", (Call("Length", (args[0],), "int"),), NUMBER)
        if name == "substr":
            return self._substring(args, span)
        if name in (fields.PACK, fields.FIELD):  # no text can call them: `desugar` writes them for records
            return Call(name, tuple(args), SYMBOL)
        raise self._unknown(name, span)

    def _bits(self, name: str, args: list[Expr], span: Span) -> Expr:
        for a in args:
            self._expect(a, (NUMBER,), name, span)
        if name in _BITS:
            return Call(_BITS[name], tuple(args), NUMBER)
        if name in _SHIFTS:
            return Call(_SHIFTS[name], (args[0], Call("Cast", (args[1],), "int")), NUMBER)
        if name == "bnot":
            return Call("BitwiseNot", (args[0],), NUMBER)
        truths = [self.truth(a, span) for a in args]
        if name == "lnot":
            holds = Call("Not", (truths[0],), BOOLEAN)
        elif name == "lxor":
            holds = Call("Not", (Call("EqualTo", tuple(truths), BOOLEAN),), BOOLEAN)
        else:
            holds = Call(_LOGIC[name], tuple(truths), BOOLEAN)
        return Call("If", (holds, Lit(1, NUMBER), Lit(0, NUMBER)), NUMBER)

    def _extreme(self, name: str, args: list[Expr], span: Span) -> Expr:
        if not args:
            raise self._wrong_count(name, 2, 0, span)
        common = args[0]
        for a in args[1:]:
            common, _ = self._with_common_type(common, a, name, span)
        converted = tuple(self.as_type(a, common.type) or a for a in args)
        if len(converted) == 1:
            return converted[0]
        return Call("Greatest" if name == "max" else "Least", converted, common.type)

    def _converted(self, expr: Expr, type_: str, name: str, span: Span) -> Expr:
        allowed = {"to_number": (SYMBOL, NUMBER, FLOAT), "to_unsigned": (SYMBOL, NUMBER, FLOAT)}.get(
            name, (NUMBER, FLOAT, SYMBOL) if name.startswith("to_") else (NUMBER, FLOAT)
        )
        self._expect(expr, allowed, name, span)
        if isinstance(expr, Lit) and type_ == NUMBER and (match := _OTHER_BASES.fullmatch(str(expr.value))):
            return Lit(int(f"{match[1]}{match[2] or match[3]}", 16 if match[2] else 2), NUMBER)
        if isinstance(expr, Lit) and isinstance(expr.value, float) and type_ == SYMBOL:
            return Lit(fields.float_text(expr.value), SYMBOL)
        return expr if expr.type == type_ else Call("Cast", (expr,), type_)

    def _substring(self, args: list[Expr], span: Span) -> Expr:
        self._expect(args[0], (SYMBOL,), "substr", span)
        for a in args[1:]:
            self._expect(a, (NUMBER,), "substr", span)
        start = Call("Cast", (Call("Add", (args[1], Lit(1, NUMBER)), NUMBER),), "int")  # Spark counts from 1
        return Call("Substring", (args[0], start, Call("Cast", (args[2],), "int")), SYMBOL)

    def _cast(self, expr: Expr, node: syntax.Cast) -> Expr:
        target = BASES[self.base(node)]
        if expr.type == target:
            return expr
        if {expr.type, target} <= {NUMBER, FLOAT}:
            return Call("Cast", (expr,), target)
        message = f"as() cannot convert a {datalog_type(expr.type)} to a {datalog_type(target)}"
        raise self._places.error(
            "PARALAGG_DATALOG_TYPE", message, node.span, hint="use to_number, to_string or to_float"
        )

    def _expect(self, expr: Expr, types: tuple[str, ...], operation: str, span: Span) -> None:
        if expr.type in types:
            return
        expected = " or ".join(datalog_type(t) for t in types)
        message = f"`{operation}` takes {expected}, but this is a {datalog_type(expr.type)}"
        hint = "convert it with to_number or to_float" if expr.type == SYMBOL else "convert it with to_string"
        if element_type(expr.type) is not None:
            hint = "rules can copy and compare a set; compute with its elements before they are collected"
        raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=operation, hint=hint)

    def _check_range(self, term: syntax.Number, value: float | None = None) -> None:
        if term.is_unsigned and term.value < 0:
            message = "an unsigned number cannot be negative"
            raise self._places.error(unsigned.CODE, message, term.span, value=term.value, hint=unsigned.HINT)
        value = term.value if value is None else value
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            hint = unsigned.HINT if term.is_unsigned else "use a number of 64 bits with a sign"
            raise self._places.error(
                "PARALAGG_DATALOG_NUMBER", f"{value} is too large", term.span, value=value, hint=hint
            )

    def _wrong_count(self, name: str, expected: int, actual: int, span: Span) -> Exception:
        message = f"`{name}` takes {expected} argument{'s' * (expected != 1)}, not {actual}"
        return self._places.error("PARALAGG_DATALOG_ARITY", message, span, value=name)

    def _unknown(self, name: str, span: Span) -> Exception:
        if name == "ord":
            message = "ord is not supported here: it numbers a variable of a declared column of symbols or structures"
            hint = "declare the relation that has the value, or compare symbols, which are ordered by their bytes"
            return self._places.error("PARALAGG_DATALOG_UNSUPPORTED", message, span, hint=hint)
        if name in self._functors:
            hint = f"a functor of your own has a sign: `{SIGN}{name}(...)`"
            message = f"functor `{name}` does not exist"
            return self._places.error("PARALAGG_DATALOG_FUNCTOR", message, span, value=name, hint=hint)
        functors = [n for n in (*_ARITY, "max", "min", "cat", "range", "match", "contains") if n.isidentifier()]
        message = f"functor `{name}` does not exist"
        hint = did_you_mean(name, functors)
        return self._places.error("PARALAGG_DATALOG_FUNCTOR", message, span, value=name, hint=hint)


def datalog_type(type_: str) -> str:
    """Return the Datalog name of a Spark type."""
    element = element_type(type_)
    return DATALOG_TYPES.get(type_, type_) if element is None else f"set of {datalog_type(element)}"


def _power(base: Expr, exponent: Expr) -> Expr:
    if base.type == FLOAT:
        return Call("Pow", (base, exponent), FLOAT)
    if isinstance(exponent, Lit) and isinstance(exponent.value, int) and 0 <= exponent.value <= _MAX_UNROLLED_POWER:
        product: Expr = Lit(1, NUMBER) if exponent.value == 0 else base
        for _ in range(exponent.value - 1):
            product = Call("Multiply", (product, base), NUMBER)
        return product
    doubles = tuple(Call("Cast", (e,), FLOAT) for e in (base, exponent))
    return Call("Cast", (Call("Pow", doubles, FLOAT),), NUMBER)
