"""Determine which terms of a text are ``unsigned``, and where their range must be checked.

A column has 64 bits with a sign, so an unsigned number is below 2^63. Soufflé's limit is 2^64-1, and its arithmetic
wraps around there. The results of ``+ - *`` and of bit operations have the same bits here and in Soufflé. Their meaning
matters when a value is compared, divided, converted or stored; there a value of 2^63 or more is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, Cast, HeadAggregate, Number, Variable
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, Call, Expr, Lit
from pyspark_paralagg.program.functor import is_functor

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.datalog.parse.syntax import Span, Term
    from pyspark_paralagg.datalog.resolve.expand import Flat

CODE = "PARALAGG_DATALOG_UNSIGNED"
HINT = "use number or float: unsigned numbers end at 2^63-1 here, at 2^64-1 in Soufflé"

_TO_UNSIGNED = ("to_unsigned", "itou", "ftou")
_UNSIGNED_IF_ARGUMENTS = frozenset(
    ("+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "max", "min", "range")
)
_MAY_LEAVE_RANGE = frozenset(("-", "neg", "bnot", "bshl", *_TO_UNSIGNED))
READING = frozenset(
    ("/", "%", "^", "bshr", "bshru", "max", "min", "to_string", "to_float", "utof", "utoi", "to_number")
)
"""Functors whose result depends on the number's range, not on its bits alone."""
ORDERED = ("<", "<=", ">", ">=")


Base = Callable[["Cast | Apply"], str]
"""Returns the base type of a cast, or of the result of a user's functor."""


def is_unsigned(term: object, names: Collection[str], base: Base) -> bool:
    """Return whether ``term`` is unsigned; ``names`` are the unsigned variables."""
    match term:
        case Variable(name=name):
            return name in names
        case Number():
            return term.is_unsigned
        case Apply(name=name) if not is_functor(name):
            return name in _TO_UNSIGNED or (
                name in _UNSIGNED_IF_ARGUMENTS and any(is_unsigned(a, names, base) for a in term.args)
            )
        case Cast() | Apply():
            return base(term) == "unsigned"
        case HeadAggregate():
            return bool(term.args) and is_unsigned(term.args[0], names, base)
        case _:
            return False


def may_leave(term: object) -> bool:
    """Return whether the value of ``term`` may leave the range without an overflow error, for variables in range."""
    return any(isinstance(n, Cast) or (isinstance(n, Apply) and n.name in _MAY_LEAVE_RANGE) for n in nodes(term))


def asserted(expr: Expr, place: str) -> Expr:
    """Return ``expr`` with a check that raises an error naming ``place`` if the value is out of range."""
    message = f"an unsigned number in {place} is below 0 or above 9223372036854775807"
    return Call(ASSERT_UNSIGNED, (expr, Lit(message, "string")), expr.type)


def positions(rules: Sequence[Flat], declared: Mapping[str, tuple[bool, ...]], base: Base) -> dict[str, frozenset[int]]:
    """Return the unsigned columns of each relation: as declared, else where some rule has an unsigned term."""
    result = {n: frozenset(p for p, is_ in enumerate(flags) if is_) for n, flags in declared.items()}
    while True:
        before = dict(result)
        for rule in rules:
            if rule.head.relation in declared:
                continue
            names = unsigned_names(rule, result, base)
            unsigned = {p for p, a in enumerate(rule.head.args) if is_unsigned(a, names, base)}
            result[rule.head.relation] = result.get(rule.head.relation, frozenset()) | unsigned
        if result == before:
            return result


def unsigned_names(rule: Flat, columns: Mapping[str, Collection[int]], base: Base) -> frozenset[str]:
    """Return the unsigned variables of ``rule``: those of unsigned columns, and those that equations define by them."""
    names = {
        a.name
        for x in rule.literals
        if isinstance(x, Atom)
        for p, a in enumerate(x.args)
        if isinstance(a, Variable) and p in columns.get(x.relation, ())
    }
    equations = [x for x in rule.literals if getattr(x, "op", None) == "="]
    while True:
        more = {
            side.name
            for x in equations
            for side, other in ((x.left, x.right), (x.right, x.left))  # type: ignore[union-attr]
            if isinstance(side, Variable) and is_unsigned(other, names, base)
        }
        if more <= names:
            return frozenset(names)
        names |= more


def overflowing(rules: Sequence[Flat], columns: Mapping[str, Collection[int]], base: Base) -> Span | None:
    """Return the span of the first unsigned sum or product; its overflow is an error only under ANSI rules."""
    for rule in rules:
        names = unsigned_names(rule, columns, base)
        for n in nodes((rule.head.args, rule.literals)):
            is_sum = isinstance(n, HeadAggregate) and n.name.upper() in ("SUM", "MSUM")
            if (is_sum or (isinstance(n, Apply) and n.name in ("+", "*", "^"))) and is_unsigned(n, names, base):
                span: Span = n.span
                return span
    return None


def check_ansi(resolved: Resolved, *, ansi: bool) -> None:
    """Raise ``DatalogError`` if unsigned numbers could wrap around because the session has no ANSI rules."""
    if ansi or resolved.overflowing is None:
        return
    message = "without ANSI mode, a sum or product of unsigned numbers may overflow silently"
    hint = "set spark.sql.ansi.enabled=true, or use number or float"
    raise resolved.places.error(CODE, message, resolved.overflowing, hint=hint)


def mixes(term: Term | HeadAggregate, names: Collection[str]) -> bool:
    """Return whether ``term`` has numbers that may be negative."""
    return any(
        (isinstance(n, Variable) and n.name not in names) or (isinstance(n, Number) and n.value < 0)
        for n in nodes(term)
    )
