"""Which keys a recursion carries unchanged, so that a filter on them may be applied to the rows that it starts from.

    dist(s, y, min d + w) :- dist(s, x, d), edges(x, y, w)      s: ``s = 7`` afterwards is ``s = 7`` in the base
    path(x, z)            :- path(x, y), path(y, z)             none: the second atom needs all of them
    even(s, y)            :- odd(s, x), next(x, y)              s, in even and odd alike
    odd(s, y)             :- even(s, x), next(x, y)

Every rule must copy the key from *every* recursive atom that it reads: a row then comes only from rows with its own
value there. Nothing is carried where the run ends by a tolerance, which adds up the changes of all rows.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.equal import Classes
from pyspark_paralagg.compile.types import is_float
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.program.program import Program, Relation, Rule


def find_carried(program: Program, relations: tuple[Relation, ...]) -> tuple[tuple[int, ...], ...]:
    """Each carried key as its position among the keys of each relation of the stratum, in their order."""
    if program.tolerance is not None:
        return ()
    names = {r.name for r in relations}
    rules = [r for r in program.rules if r.head in names]
    choices = product(*(range(len(r.keys)) for r in relations))
    at = (dict(zip((r.name for r in relations), choice, strict=True)) for choice in choices)
    return tuple(tuple(a.values()) for a in at if _is_carried(a, relations, rules))


def _is_carried(at: Mapping[str, int], relations: tuple[Relation, ...], rules: list[Rule]) -> bool:
    # A relation that shows another's rows has its keys first.
    views = ((r.name, d.view.relation) for r in relations for d in r.dependents if d.view is not None)
    if any(at[name] != at[other] for name, other in views):
        return False
    return all(_copies(rule, at) for rule in rules)


def _copies(rule: Rule, at: Mapping[str, int]) -> bool:
    key = rule.exprs[at[rule.head]]
    read = [a.variables[at[a.relation]] for a in rule.body if a.relation is not None]
    if not isinstance(key, Col) or not read:
        return False
    # Equal fractions may differ in the sign of zero, which a filter can see.
    same = {key.name} if is_float(key.type) else Classes.of(rule.conditions, lambda _: True).mates(key.name)
    return all(v in same for v in read)
