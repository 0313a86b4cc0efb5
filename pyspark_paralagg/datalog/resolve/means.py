"""Replace ``$MEAN`` in a head by a sum and a count, and add a rule that divides them; a mean cannot recurse.

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
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.places import Places


def without_means(rules: tuple[Flat, ...], places: Places) -> tuple[Flat, ...]:
    """Return the rules without ``$MEAN``.

    Raise ``VerificationError`` (``PARALAGG_NOT_LINEAR``) if a relation recurses through a mean.
    """
    mean_rules = {rule.head.relation: rule for rule in rules if any(_is_mean(a) for a in rule.head.args)}
    if not mean_rules:
        return rules
    needs: dict[str, set[str]] = {rule.head.relation: set() for rule in rules}
    for rule in rules:
        needs[rule.head.relation] |= {a.relation for a in nodes(rule.literals) if isinstance(a, Atom)} & needs.keys()
    for names in strongly_connected(needs):
        recursive = next((n for n in names if n in mean_rules and (len(names) > 1 or n in needs[n])), None)
        if recursive is not None:
            aggregate = next(a for a in mean_rules[recursive].head.args if _is_mean(a))
            problem = VerificationError(
                "PARALAGG_NOT_LINEAR",
                f"a mean of means is not a mean: {MEAN_OF_MEANS}",
                value=recursive,
                hint="compute $SUM and $COUNT in two recursive relations, and divide in a later rule",
            )
            raise places.located(problem, aggregate.span)
    result: list[Flat] = []
    divided: set[str] = set()
    for rule in rules:
        if rule.head.relation not in mean_rules:
            result.append(rule)
            continue
        sum_rule, division = _split(rule, mean_rules)
        result.append(sum_rule)  # each rule contributes rows of its own
        if rule.head.relation not in divided:
            divided.add(rule.head.relation)
            result.append(division)
    return tuple(result)


def _is_mean(arg: object) -> bool:
    return isinstance(arg, HeadAggregate) and arg.name.upper() == "MEAN"


def _split(rule: Flat, mean_rules: dict[str, Flat]) -> tuple[Flat, Flat]:
    """Return the rule that sums and counts, and the rule that divides, which is the same for all rules of a head."""
    shape = mean_rules[rule.head.relation].head
    name = added_name("mean", rule.head.relation)
    adding: list[Term | HeadAggregate] = []
    variables: list[Term] = []
    result: list[Term] = []
    for p, (shape_arg, arg) in enumerate(zip(shape.args, rule.head.args, strict=True)):
        if not _is_mean(shape_arg):
            adding.append(arg)
            variables.append(Variable(f"c{p}", shape_arg.span))
            result.append(variables[-1])
            continue
        value = arg.args[0] if isinstance(arg, HeadAggregate) else arg
        adding += [
            HeadAggregate("SUM", (Apply("to_float", (value,), arg.span),), arg.span),  # type: ignore[arg-type]
            HeadAggregate("COUNT", (), arg.span),
        ]
        variables += [Variable(f"s{p}", shape_arg.span), Variable(f"n{p}", shape_arg.span)]
        result.append(Apply("/", (variables[-2], variables[-1]), shape_arg.span))
    first = mean_rules[rule.head.relation]
    divide = Flat(replace(shape, args=tuple(result)), (Atom(name, tuple(variables), shape.span),), first.rule)
    return replace(rule, head=replace(rule.head, relation=name, args=tuple(adding))), divide
