"""Define the rules of ``monotone`` for functions that choose: least, greatest, coalesce, if and case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.behaviour import NOTHING, Behaviour, System, all_of, as_number, presence_of
from pyspark_paralagg.program.expr import Call, Expr, branches
from pyspark_paralagg.program.functions.value_range import Range, type_range, union

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.aggregators import Move


def _extreme(system: System, expr: Call) -> Behaviour:
    """Return the behaviour of least and greatest, which skip nulls: least(null, 5) = 5 drops to least(3, 5) = 3."""
    args = [system.behaviour(a) for a in expr.args]
    move = as_number(all_of([a.move for a in args]))
    has_appearing = any(a.presence != "const" for a in args)
    if has_appearing and move != ("down" if expr.fn == "Least" else "up"):
        move = "unknown"
    nullable = all(a.is_nullable for a in args)
    presence = presence_of([a.presence for a in args]) if nullable else "const"
    if any(a.presence == "unknown" for a in args):
        move = "unknown"
    return Behaviour(move, presence, _range_of_extreme(expr.fn, args), nullable)


def _coalesce(system: System, expr: Call) -> Behaviour:
    args = [system.behaviour(a) for a in expr.args]
    first = args[0]
    if len(args) == 1 or not first.is_nullable:
        return first
    rest = args[1] if len(args) == 2 else _coalesce(system, Call("Coalesce", expr.args[1:], expr.type, expr.nullable))  # noqa: PLR2004
    nullable = first.is_nullable and rest.is_nullable
    range_ = union(first.range, rest.range)
    if first.presence == "const":
        return Behaviour(all_of([first.move, rest.move]), rest.presence, range_, nullable)
    move = all_of([first.move, rest.move])
    # A value replaces the fallback: no step back if it is at least as good.
    is_fine = first.presence == "up" and rest.presence != "unknown" and _is_ordered(move, rest.range, first.range)
    return Behaviour(move if is_fine else "unknown", "up" if is_fine else "unknown", range_, nullable)


def _choice(system: System, expr: Call) -> Behaviour:
    conditions, values = branches(expr)
    decides = system.behaviour(conditions[0])
    yes = system.under(system.facts.assuming(conditions[0]))
    no = system.under(system.facts.assuming_not(conditions[0]))
    then = yes.behaviour(values[0])
    if len(conditions) > 1:
        rest: list[Expr] = [x for pair in zip(conditions[1:], values[1:], strict=False) for x in pair]
        other = no.behaviour(Call("CaseWhen", (*rest, *values[len(conditions) :]), expr.type, expr.nullable))
    elif len(values) > 1:
        other = no.behaviour(values[1])
    else:
        other = Behaviour("const", "const", NOTHING if type_range(expr.type) else None, is_nullable=True)
    system.overflows |= yes.overflows or no.overflows
    range_ = union(then.range, other.range)
    nullable = then.is_nullable or other.is_nullable
    move, presence = all_of([then.move, other.move]), presence_of([then.presence, other.presence])
    if decides.is_const:
        return Behaviour(move, presence, range_, nullable)
    # Where the condition changes sides, so does the value.
    not_true_stays = decides.keeps_false and (not decides.is_nullable or decides.presence == "const")
    before, after = (other, then) if decides.keeps_true else (then, other)
    is_one_way = decides.keeps_true or not_true_stays
    if not is_one_way or (after.is_nullable and not _is_nothing(before)):
        return Behaviour("unknown", "unknown", range_, nullable)
    ways: tuple[Move, ...] = ("up", "down") if move == "const" else (move,)
    for way in ways:
        if _is_ordered(way, before.range, after.range):
            return Behaviour(way, "up" if nullable and presence != "unknown" else presence, range_, nullable)
    return Behaviour("unknown", "unknown" if nullable else presence, range_, nullable)


def _is_nothing(behaviour: Behaviour) -> bool:
    return behaviour.range is not None and behaviour.range.is_empty


def _is_ordered(move: Move, before: Range | None, after: Range | None) -> bool:
    """Return whether each step from a value of ``before`` to one of ``after`` goes in direction ``move``."""
    if before is None or after is None or move not in ("up", "down"):
        return False
    if before.is_empty or after.is_empty:
        return True
    if move == "up":
        return before.high <= after.low and not before.has_nan
    return before.low >= after.high and not after.has_nan


def _range_of_extreme(fn: str, args: list[Behaviour]) -> Range | None:
    ranges = [a.range for a in args]
    if any(r is None for r in ranges):
        return None
    valued = [(a, r) for a, r in zip(args, ranges, strict=True) if r is not None and not r.is_empty]
    if not valued:
        return NOTHING
    lows, highs = [r.low for _, r in valued], [r.high for _, r in valued]
    if fn == "Least":
        certain = [r.high for a, r in valued if not a.is_nullable and not r.has_nan]
        return Range(min(lows), min([*certain, max(highs)]), not certain and any(r.has_nan for _, r in valued))
    certain = [r.low for a, r in valued if not a.is_nullable]
    return Range(max([*certain, min(lows)]), max(highs), any(r.has_nan for _, r in valued))


RULES: dict[str, Callable[[System, Call], Behaviour]] = {
    **dict.fromkeys(("Least", "Greatest"), _extreme),
    **dict.fromkeys(("If", "CaseWhen"), _choice),
    "Coalesce": _coalesce,
}
