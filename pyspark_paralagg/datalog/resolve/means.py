"""``$MEAN`` in a head becomes a sum and a count, divided in a rule of its own, where nothing recurses through it.

average(x, $MEAN(v)) :- mark(x, v).

mean@average(x, $SUM(to_float(v)), $COUNT) :- mark(x, v).
average(x, s / c) :- mean@average(x, s, c).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, HeadAggregate, Term, Variable
from pyspark_paralagg.datalog.resolve.expand import Flat, nodes
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.aggregators import MEAN_OF_MEANS

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.places import Places


def without_means(rules: tuple[Flat, ...], places: Places) -> tuple[Flat, ...]:
    """The rules without ``$MEAN``; ``VerificationError`` (``PARALAGG_NOT_LINEAR``) where one recurses through it."""
    meant = {r.head.relation: r for r in rules if any(_is_mean(a) for a in r.head.args)}
    if not meant:
        return rules
    needs: dict[str, set[str]] = {r.head.relation: set() for r in rules}
    for r in rules:
        needs[r.head.relation] |= {a.relation for a in nodes(r.literals) if isinstance(a, Atom)} & needs.keys()
    for names in strongly_connected(needs):
        found = next((n for n in names if n in meant and (len(names) > 1 or n in needs[n])), None)
        if found is not None:
            aggregate = next(a for a in meant[found].head.args if _is_mean(a))
            problem = VerificationError(
                "PARALAGG_NOT_LINEAR",
                f"a mean of means is no mean: {MEAN_OF_MEANS}",
                value=found,
                hint="let $SUM and $COUNT recurse in two relations, and divide in a rule after them",
            )
            raise places.located(problem, aggregate.span)
    out: list[Flat] = []
    divided: set[str] = set()
    for r in rules:
        if r.head.relation not in meant:
            out.append(r)
            continue
        adding, dividing = _split(r, meant)
        out.append(adding)  # a rule that is written twice adds twice
        if r.head.relation not in divided:
            divided.add(r.head.relation)
            out.append(dividing)
    return tuple(out)


def _is_mean(arg: object) -> bool:
    return isinstance(arg, HeadAggregate) and arg.name.upper() == "MEAN"


def _split(rule: Flat, meant: dict[str, Flat]) -> tuple[Flat, Flat]:
    """The rule that adds and counts, and the one that divides (the same for all rules of a head)."""
    shape = meant[rule.head.relation].head
    name = f"mean@{rule.head.relation}"
    adding: list[Term | HeadAggregate] = []
    read: list[Term] = []
    result: list[Term] = []
    for p, (like, arg) in enumerate(zip(shape.args, rule.head.args, strict=True)):
        if not _is_mean(like):
            adding.append(arg)
            read.append(Variable(f"c{p}", like.span))
            result.append(read[-1])
            continue
        value = arg.args[0] if isinstance(arg, HeadAggregate) else arg
        adding += [
            HeadAggregate("SUM", (Apply("to_float", (value,), arg.span),), arg.span),  # type: ignore[arg-type]
            HeadAggregate("COUNT", (), arg.span),
        ]
        read += [Variable(f"s{p}", like.span), Variable(f"n{p}", like.span)]
        result.append(Apply("/", (read[-2], read[-1]), like.span))
    first = meant[rule.head.relation]
    divide = Flat(replace(shape, args=tuple(result)), (Atom(name, tuple(read), shape.span),), first.rule)
    return replace(rule, head=replace(rule.head, relation=name, args=tuple(adding))), divide
