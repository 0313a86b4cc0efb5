"""What is ``unsigned`` in a text, and where its values must be looked at.

A column holds 64 bits with a sign, so an unsigned number is below 2^63. Soufflé's goes up to 2^64-1, where sums and
differences begin again at 0. Of ``+ - *`` and the operations on bits both have the same bits; what they mean matters
where a value is compared, divided, converted or kept. There a value that only Soufflé can hold is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, Cast, HeadAggregate, Number, Variable
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, Call, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.datalog.parse.syntax import Span, Term
    from pyspark_paralagg.datalog.resolve.expand import Flat

CODE = "PARALAGG_DATALOG_UNSIGNED"
HINT = "an unsigned number is held up to 2^63-1, where Soufflé goes on to 2^64-1: use number, or float"

_TO_UNSIGNED = ("to_unsigned", "itou", "ftou")
_OF_ARGUMENTS = frozenset(
    ("+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru", "max", "min", "range")
)
_LEAVING = frozenset(("-", "neg", "bnot", "bshl", *_TO_UNSIGNED))
READING = frozenset(
    ("/", "%", "^", "bshr", "bshru", "max", "min", "to_string", "to_float", "utof", "utoi", "to_number")
)
"""Functors for which the bits of a number are not enough."""
ORDERED = ("<", "<=", ">", ">=")


def is_unsigned(term: object, names: Collection[str], base: Callable[[Cast], str]) -> bool:
    """Whether ``term`` is unsigned, of variables of which ``names`` are."""
    match term:
        case Variable(name=name):
            return name in names
        case Number():
            return term.is_unsigned
        case Cast():
            return base(term) == "unsigned"
        case Apply(name=name):
            return name in _TO_UNSIGNED or (
                name in _OF_ARGUMENTS and any(is_unsigned(a, names, base) for a in term.args)
            )
        case HeadAggregate():
            return bool(term.args) and is_unsigned(term.args[0], names, base)
        case _:
            return False


def may_leave(term: object) -> bool:
    """Whether the value of ``term`` may be negative, or too large without an overflow, where its variables are not."""
    return any(isinstance(n, Cast) or (isinstance(n, Apply) and n.name in _LEAVING) for n in nodes(term))


def asserted(expr: Expr, place: str) -> Expr:
    """``expr``, or an error at ``place`` where it is no unsigned number that can be held."""
    message = f"an unsigned number in {place} is below 0 or above 9223372036854775807"
    return Call(ASSERT_UNSIGNED, (expr, Lit(message, "string")), expr.type)


def positions(
    rules: Sequence[Flat], declared: Mapping[str, tuple[bool, ...]], base: Callable[[Cast], str]
) -> dict[str, frozenset[int]]:
    """The unsigned columns of each relation: as declared, else where some rule has an unsigned term."""
    out = {n: frozenset(p for p, is_ in enumerate(flags) if is_) for n, flags in declared.items()}
    while True:
        before = dict(out)
        for rule in rules:
            if rule.head.relation in declared:
                continue
            names = names_of(rule, out, base)
            found = {p for p, a in enumerate(rule.head.args) if is_unsigned(a, names, base)}
            out[rule.head.relation] = out.get(rule.head.relation, frozenset()) | found
        if out == before:
            return out


def names_of(rule: Flat, known: Mapping[str, Collection[int]], base: Callable[[Cast], str]) -> frozenset[str]:
    """The variables of ``rule`` that are unsigned: of such columns, and what equations make of them."""
    names = {
        a.name
        for x in rule.literals
        if isinstance(x, Atom)
        for p, a in enumerate(x.args)
        if isinstance(a, Variable) and p in known.get(x.relation, ())
    }
    equations = [x for x in rule.literals if getattr(x, "op", None) == "="]
    while True:
        more = {
            one.name
            for x in equations
            for one, other in ((x.left, x.right), (x.right, x.left))  # type: ignore[union-attr]
            if isinstance(one, Variable) and is_unsigned(other, names, base)
        }
        if more <= names:
            return frozenset(names)
        names |= more


def overflowing(
    rules: Sequence[Flat], known: Mapping[str, Collection[int]], base: Callable[[Cast], str]
) -> Span | None:
    """The first term whose overflow is an error with ANSI rules only; without them it would be another number."""
    for rule in rules:
        names = names_of(rule, known, base)
        for n in nodes((rule.head.args, rule.literals)):
            is_sum = isinstance(n, HeadAggregate) and n.name.upper() in ("SUM", "MSUM")
            if (is_sum or (isinstance(n, Apply) and n.name in ("+", "*", "^"))) and is_unsigned(n, names, base):
                span: Span = n.span
                return span
    return None


def check_ansi(resolved: Resolved, *, ansi: bool) -> None:
    """Raises ``DatalogError`` where the session's rules let unsigned numbers wrap around."""
    if ansi or resolved.overflowing is None:
        return
    message = "without ANSI rules a sum or product of unsigned numbers that is too large would be another number"
    hint = "set spark.sql.ansi.enabled=true, or use number, or float"
    raise resolved.places.error(CODE, message, resolved.overflowing, hint=hint)


def mixes(term: Term | HeadAggregate, names: Collection[str]) -> bool:
    """Whether ``term`` has numbers that may be negative."""
    return any(
        (isinstance(n, Variable) and n.name not in names) or (isinstance(n, Number) and n.value < 0)
        for n in nodes(term)
    )
