"""Write a Plan's expressions as statements with Spark's semantics: three-valued logic, ANSI errors, NaN.

Arguments that Spark does not evaluate are not evaluated: they are inside an ``if``. An error ends the kernel with a
status that numbers the error; the loop around the kernel raises it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpi_backend.codegen import arithmetic, calendar, casts, rounding
from mpi_backend.codegen.values import Value, equal, less, value_type
from mpi_backend.codegen.writer import GUARD, Writer
from mpi_backend.kernels.status import MAX_ARGUMENTS
from mpi_backend.state.texts import TEXT_FUNCTIONS, TextCall, check_cast, check_pattern
from mpi_backend.state.types import type_of
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, Call, Col, Expr, Lit
from pyspark_paralagg.program.functor import is_functor
from pyspark_paralagg.program.sets import ELEMENT_SET, MERGED_SETS, element_type, is_word_or_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.source import Source
    from mpi_backend.codegen.writer import Sites
    from mpi_backend.state.texts import Scalar
    from mpi_backend.state.types import Type

TRUTH = type_of("boolean")
_CODED = re.compile(r"\[(PARALAGG_\w+)\] (.*)", re.DOTALL)
"""The text of an error that this project's SQL raises: its code and its message."""
_TRANSPARENT = ("KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "UnaryPositive")


class Expressions(Writer):
    """A writer of expressions into ``code``; ``variables`` has the value of each column.

    ``leave`` writes the code that suspends the kernel, to compute a missing result of a text function.
    """

    def __init__(
        self, code: Source, variables: dict[str, Value], sites: Sites, *, ansi: bool, makes_strings: bool,
        leave: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(code, sites, ansi=ansi)
        self.variables = variables
        self.makes_strings = makes_strings
        self.leave = leave

    def over(self, variables: dict[str, Value]) -> Expressions:
        """Return a writer into the same code over other variables."""
        return Expressions(
            self.code, variables, self.sites, ansi=self.ansi, makes_strings=self.makes_strings, leave=self.leave
        )

    def holds(self, condition: Expr) -> str:
        """Return the Python condition that ``condition`` is true, and not null."""
        value = self.value(condition)
        return value.code if value.null is None else f"({value.code} and not {value.null})"

    def value(self, expr: Expr) -> Value:
        """Write the statements that compute ``expr``. Return its value."""
        if isinstance(expr, Col):
            return self.variables[expr.name]
        if isinstance(expr, Lit):
            return self._literal(expr)
        return self._call(expr)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, expr: Call) -> Value:  # noqa: PLR0911 - a return for each group of functions
        if expr.fn in _TRANSPARENT:
            return self.value(expr.args[0])
        deciding = {
            "And": self._logic, "Or": self._logic, "If": self._if_or_case, "CaseWhen": self._if_or_case,
            "Coalesce": self._coalesce, "NaNvl": self._nanvl,
            ASSERT_UNSIGNED: self._unsigned, "RaiseError": self._raise,
            ELEMENT_SET: self._set, MERGED_SETS: self._set,
        }  # fmt: skip
        if expr.fn in deciding:
            return deciding[expr.fn](expr)
        if expr.fn in ("Between", "Present"):
            return self._guard(expr)
        args = [self.value(a) for a in expr.args]
        result_type = value_type(expr.type)
        if expr.fn in ("IsNull", "IsNotNull"):
            null = args[0].null or "False"
            return Value(TRUTH, null if expr.fn == "IsNull" else f"(not {null})")
        if expr.fn == "IsNaN":  # of a null it is false
            return Value(TRUTH, f"({args[0].present} and {args[0].code} != {args[0].code})")
        if expr.fn in ("Least", "Greatest"):
            return self._extreme(expr.fn, args, result_type)
        if expr.fn == "EqualNullSafe":
            return self._null_safe(*args)
        if expr.fn == "In":
            return self._in(args)
        if (
            expr.fn in TEXT_FUNCTIONS
            or is_functor(expr.fn)
            or (any(v.type.kind == "text" for v in (*args, Value(result_type, ""))) and expr.fn == "Cast")
        ):
            return self._text(expr, args, result_type)
        return self._strict(expr, args, result_type)

    def _unsigned(self, expr: Call) -> Value:
        value, message = self.value(expr.args[0]), expr.args[1]
        assert isinstance(message, Lit)  # noqa: S101 - for the type checker
        out = Value(value.type, self.code.keep("x", value.code), value.null)
        self.fail(f"{out.present} and {out.code} < 0", "PARALAGG_DATALOG_UNSIGNED", str(message.value))
        return out

    def _raise(self, expr: Call) -> Value:
        """Write the end of the kernel by an error of the step, of which Spark's own would show code and text."""
        message = expr.args[0]
        if not isinstance(message, Lit):
            problem = "the MPI engine raises errors with constant messages only"
            raise UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", problem, value=expr.fn)
        coded = _CODED.fullmatch(str(message.value))
        code, text = coded.groups() if coded else ("USER_RAISED_EXCEPTION", str(message.value))
        self.fail("True", code, text)
        result_type = value_type(expr.type)
        return Value(result_type, _null_value(result_type))

    def _strict(self, expr: Call, args: list[Value], result_type: Type) -> Value:
        """Write a function that is null if any argument is null."""
        nulls = [a.null for a in args if a.null is not None]
        out, null = self.code.name("x"), None
        if nulls:
            null = self.code.keep("n", " or ".join(nulls))
            self.code.line(f"{out} = {_null_value(result_type)}")
            with self.code.block(f"if not {null}:"):
                result = self._apply(expr, args, result_type)
                self.code.line(f"{out} = {result.code}")
                if result.null is not None:
                    self.code.line(f"{null} = {result.null}")
            return Value(result_type, out, null)
        result = self._apply(expr, args, result_type)
        self.code.line(f"{out} = {result.code}")
        return Value(result_type, out, result.null)

    def _apply(self, expr: Call, args: list[Value], result_type: Type) -> Value:
        if expr.fn in _COMPARISONS:
            return Value(TRUTH, self._compare(expr.fn, args[0].type, args[0].code, args[1].code))
        write = arithmetic.FUNCTIONS.get(expr.fn)
        write_call = calendar.FUNCTIONS.get(expr.fn) or rounding.FUNCTIONS.get(expr.fn)
        if write_call is not None:
            return write_call(self, expr, args, result_type)
        if write is None and expr.fn != "Cast":
            raise _unportable(expr.fn)
        ansi = self.ansi
        self.rests_on_range = expr.checked and not ansi
        self.ansi |= expr.checked
        try:
            return casts.cast(self, args[0], result_type) if write is None else write(self, args, result_type)
        finally:
            self.ansi, self.rests_on_range = ansi, False

    def _guard(self, expr: Call) -> Value:
        """Write a check of an assumption of the proof. A value that violates it ends the kernel."""
        value = self.value(expr.args[0])
        message = expr.args[-1].value if isinstance(expr.args[-1], Lit) else ""
        message_text = str(message).removeprefix(f"[{GUARD}] ").removesuffix(", and a row has ") + ", and a row is not"
        if expr.fn == "Present":
            if value.null is not None:
                self.fail(value.null, GUARD, message_text)
            return Value(value.type, value.code)
        low, high = (self.value(a) for a in expr.args[1:3])
        is_open = high.null is not None
        outside = f"{value.code} < {low.code}" if is_open else f"not ({low.code} <= {value.code} <= {high.code})"
        self.fail(f"{value.present} and {outside}", GUARD, message_text)
        return value

    def _compare(self, fn: str, value_type: Type, a: str, b: str) -> str:
        if fn == "EqualTo":
            return equal(value_type, a, b)
        first, second, negated = _COMPARISONS[fn](a, b)
        condition = less(value_type, first, second, makes_strings=self.makes_strings)
        return f"(not {condition})" if negated else condition

    def _null_safe(self, a: Value, b: Value) -> Value:
        same = equal(a.type, a.code, b.code)
        if a.null is None and b.null is None:
            return Value(TRUTH, same)
        return Value(TRUTH, f"(({a.null or 'False'}) == ({b.null or 'False'}) and ({a.null or 'False'} or {same}))")

    def _in(self, args: list[Value]) -> Value:
        value, choices = args[0], args[1:]
        hit = " or ".join(f"({c.present} and {equal(value.type, value.code, c.code)})" for c in choices) or "False"
        out = self.code.keep("x", f"{value.present} and ({hit})")
        nulls = [v.null for v in args if v.null is not None]
        if not nulls:
            return Value(TRUTH, out)
        unknown = value.null or "False"
        null_choice = " or ".join(c.null for c in choices if c.null is not None) or "False"
        return Value(TRUTH, out, self.code.keep("n", f"{unknown} or (not {out} and ({null_choice}))"))

    def _extreme(self, fn: str, args: list[Value], result_type: Type) -> Value:
        out = self.code.keep("x", args[0].code)
        null = None if args[0].null is None else self.code.keep("n", args[0].null)
        for a in args[1:]:
            pair = (a.code, out) if fn == "Least" else (out, a.code)
            wins = less(result_type, *pair, makes_strings=self.makes_strings)
            condition = wins if null is None else f"({null} or {wins})"
            with self.code.block(f"if {a.present} and {condition}:"):
                self.code.line(f"{out} = {a.code}")
                if null is not None:
                    self.code.line(f"{null} = False")
        return Value(result_type, out, null if all(a.null is not None for a in args) else None)

    # --- conditional evaluation -------------------------------------------------------------------------------------

    def _logic(self, expr: Call) -> Value:
        """Write three-valued ``And`` and ``Or``. The second argument is evaluated only if the first does not decide."""
        ends = "not " if expr.fn == "Or" else ""
        out = self.value(expr.args[0])
        for arg in expr.args[1:]:
            left, result, null = out, self.code.name("x"), self.code.name("n")
            self.code.line(f"{result} = {left.code}")
            self.code.line(f"{null} = {left.null or 'False'}")
            with self.code.block(f"if {null} or {ends}{result}:"):
                right = self.value(arg)
                deciding = right.code if expr.fn == "Or" else f"(not {right.code})"
                with self.code.block(f"if {right.present} and ({deciding} or not {null}):"):
                    self.code.line(f"{result} = {right.code}")
                    self.code.line(f"{null} = False")
                if right.null is not None:
                    with self.code.block(f"elif {right.null}:"):
                        self.code.line(f"{null} = True")
            out = Value(TRUTH, result, null if left.null is not None or right.null is not None else None)
        return out

    def _if_or_case(self, expr: Call) -> Value:
        """Write ``If(c, a, b)`` and ``CaseWhen(c, a, ..., else)``. Without an else the last value is null."""
        result_type = value_type(expr.type)
        out, null = self.code.name("x"), self.code.name("n")
        self.code.line(f"{out} = {_null_value(result_type)}")
        self.code.line(f"{null} = True")
        can_be_null = len(expr.args) % 2 == 0
        self._branches(expr.args, out, null, nulls := [can_be_null])
        return Value(result_type, out, null if nulls[0] else None)

    def _branches(self, args: tuple[Expr, ...], out: str, null: str, nulls: list[bool]) -> None:
        if len(args) == 1:
            self._assign(args[0], out, null, nulls)
        elif args:
            with self.code.block(f"if {self.holds(args[0])}:"):
                self._assign(args[1], out, null, nulls)
            if len(args) > 2:
                with self.code.block("else:"):
                    self._branches(args[2:], out, null, nulls)

    def _assign(self, expr: Expr, out: str, null: str, nulls: list[bool]) -> None:
        value = self.value(expr)
        self.code.line(f"{out} = {value.code}")
        self.code.line(f"{null} = {value.null or 'False'}")
        nulls[0] = nulls[0] or value.null is not None

    def _coalesce(self, expr: Call) -> Value:
        result_type = value_type(expr.type)
        first = self.value(expr.args[0])
        if first.null is None or len(expr.args) == 1:
            return first
        out, null = self.code.keep("x", first.code), self.code.keep("n", first.null)
        with self.code.block(f"if {null}:"):
            rest = self.value(Call("Coalesce", expr.args[1:], expr.type))
            self.code.line(f"{out} = {rest.code}")
            self.code.line(f"{null} = {rest.null or 'False'}")
        return Value(result_type, out, null if rest.null is not None else None)

    def _nanvl(self, expr: Call) -> Value:
        """Write ``nanvl``: the first argument, or the second if the first is NaN."""
        first = self.value(expr.args[0])
        out, null = self.code.keep("x", first.code), self.code.keep("n", first.null or "False")
        with self.code.block(f"if not {null} and {out} != {out}:"):
            second = self.value(expr.args[1])
            self.code.line(f"{out} = {second.code}")
            self.code.line(f"{null} = {second.null or 'False'}")
        return Value(first.type, out, null if first.null is not None or second.null is not None else None)

    # --- constants and texts ----------------------------------------------------------------------------------------

    def _literal(self, lit: Lit) -> Value:
        literal_type = value_type(lit.type) if lit.type != "void" else TRUTH
        if lit.value is None:
            return Value(literal_type, _null_value(literal_type), "True")
        if literal_type.kind == "text":
            if lit.value not in self.sites.literals:
                self.sites.literals.append(str(lit.value))
            return Value(literal_type, f"literals[{self.sites.literals.index(str(lit.value))}]")
        return Value(literal_type, casts.literal(literal_type, lit.value))

    def _set(self, expr: Call) -> Value:
        """Write the lookup of a set: of one value, or of the least elements of two sets."""
        values = expr.args[: 2 if expr.fn == MERGED_SETS else 1]
        *limits, element = (a.value for a in expr.args[len(values) :] if isinstance(a, Lit))
        element = element_type(str(element)) or ""
        if not is_word_or_text(element):
            problem = f"the MPI engine has no sets of {element}"
            raise UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", problem, value=element)
        args = [self.value(v) for v in values]
        return self._text(expr, args, type_of(expr.type), (*limits, element))

    def _text(self, expr: Call, args: list[Value], result_type: Type, constants: tuple[Scalar, ...] = ()) -> Value:
        """Write the lookup of a result of a text function, or of a functor of the user.

        Python computes it once for each combination of arguments.
        """
        if expr.fn == "Cast":
            check_cast(args[0].type, result_type)
        if (
            expr.fn in ("RLike", "RegExpInStr")
            and isinstance(pattern := expr.args[1], Lit)
            and pattern.value is not None
        ):
            check_pattern(str(pattern.value))
        if len(args) > MAX_ARGUMENTS:
            raise UnsupportedError(
                "PARALAGG_EXPRESSION_UNPORTABLE",
                f"the MPI engine has functions of {MAX_ARGUMENTS} arguments, and here are {len(args)}",
                value=expr.fn,
                hint="compute parts of it in relations of their own",
            )
        name = f"Cast {result_type.name}" if expr.fn == "Cast" else expr.fn
        call = TextCall(name, tuple(a.type for a in args), result_type, constants)
        if call not in self.sites.calls:
            self.sites.calls.append(call)
        site = self.sites.calls.index(call)
        out, null, entry = self.code.name("x"), self.code.name("n"), self.code.name("f")
        nulls = [a.null for a in args if a.null is not None]
        self.code.line(f"{out} = {_null_value(result_type)}")
        self.code.line(f"{null} = {' or '.join(nulls) or 'False'}")
        with self.code.block(f"if not {null}:"):
            for n, a in enumerate(args):
                slot = f"CALL + {n}"
                statement = f"cur_f[{slot}] = {a.code}" if a.type.kind == "fraction" else f"cur[{slot}] = {a.code}"
                self.code.line(statement)
            self.code.line(f"{entry} = find(T{site}_slots, T{site}_keys, T{site}_meta, cur, CALL)")
            with self.code.block(f"if {entry} < 0:"):
                self.code.line(f"cur[STATUS] = WANTED + {site}")
                self.leave()
            self.code.line(f"{null} = T{site}_nulls[{entry}] != 0")
            results = {"truth": f"T{site}_words[{entry}] != 0", "fraction": f"T{site}_words.view(np.float64)[{entry}]"}
            self.code.line(f"{out} = {results.get(result_type.kind, f'T{site}_words[{entry}]')}")
        return Value(result_type, out, null)


def no_texts() -> None:
    """Raise ``UnsupportedError``: this kernel cannot be suspended, so it has no functions of texts."""
    raise UnsupportedError(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        "the MPI engine has no functions of texts in an aggregator's combine",
        hint="let Spark run it: backend='spark'",
    )


def _null_value(value_type: Type) -> str:
    """Return the value that is stored for a null."""
    return {"fraction": "0.0", "truth": "False"}.get(value_type.kind, "np.int64(0)")


def _unportable(fn: str) -> UnsupportedError:
    return UnsupportedError(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        f"the MPI engine has no {fn}",
        value=fn,
        hint="let Spark run it: backend='spark'",
    )


# The operands of "first < second", and whether the result is negated.
_COMPARISONS: dict[str, Callable[[str, str], tuple[str, str, bool]]] = {
    "EqualTo": lambda a, b: (a, b, False),
    "LessThan": lambda a, b: (a, b, False),
    "GreaterThan": lambda a, b: (b, a, False),
    "LessThanOrEqual": lambda a, b: (b, a, True),
    "GreaterThanOrEqual": lambda a, b: (a, b, True),
}
