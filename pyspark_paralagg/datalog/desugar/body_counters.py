"""Move ``autoinc()`` from bodies to heads, which ``counters`` reduces further.

    p(x, n) :- road(x, y), n = autoinc(), y > 1, n < 5.

    autoinc@body1(x, autoinc()) :- road(x, y), y > 1.
    p(x, n) :- autoinc@body1(x, m), n = m, n < 5.

A row of the other literals has a number, and what reads the number is tested afterwards. Soufflé counts in the order in
which its nested loops find rows, so other numbers may pass such a test there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pyspark_paralagg.datalog.desugar.counters import WORD, check_counter, counters, parts, refused
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.aggregates import reached
from pyspark_paralagg.datalog.resolve.expand import names_in, nodes, rewritten
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark_paralagg.datalog.parse.syntax import Term


def with_counters_in_heads(text: syntax.Text) -> syntax.Text:
    """Return ``text`` with counters in heads alone.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_UNSUPPORTED`` for two counters in a body, one inside of a negation or an
    aggregate, and one whose rule recurses.
    """
    rules = [c for c in text.clauses if isinstance(c, syntax.Rule)]
    counting = [rule for rule in rules if counters(rule.body)]
    if not counting:
        return text
    places, needs = Places(text.source, text.name), reached(rules)
    replaced: dict[int, tuple[syntax.Rule, ...]] = {}
    for number, rule in enumerate(counting, 1):
        read = set[str]().union(*(needs.get(n.relation, ()) for n in nodes(rule.body) if isinstance(n, syntax.Atom)))
        own = next((h.relation for h in rule.heads if h.relation in read), None)
        if own is not None:
            raise refused(f"`{own}` reads itself", counters(rule.body)[0], places)
        replaced[id(rule)] = _split(rule, number, places)
    return replace(text, clauses=tuple(n for c in text.clauses for n in replaced.get(id(c), (c,))))


def _split(rule: syntax.Rule, number: int, places: Places) -> tuple[syntax.Rule, ...]:
    """Return the rule that numbers rows, and the one that reads the number."""
    counter = check_counter(rule.body, places)
    value = syntax.Variable(added_name(WORD, f"value{number}"), rule.span)
    early, late = [], []
    for part in parts(rule.body):
        if not counters(part):
            early.append(part)
        elif isinstance(part, syntax.Negation) or any(isinstance(n, syntax.BodyAggregate) for n in nodes(part)):
            raise refused("it is inside of a negation or an aggregate", counter, places)
        elif isinstance(part, syntax.Atom):
            names = [syntax.Variable(added_name(WORD, f"argument{number}_{n}")) for n, _ in enumerate(part.args)]
            found = [n if counters(a) else a for n, a in zip(names, part.args, strict=True)]
            early.append(replace(part, args=tuple(found)))
            pairs = [(n, cast("Term", a)) for n, a in zip(names, part.args, strict=True) if counters(a)]
            late += [_with_value(syntax.Comparison("=", n, a, rule.span), value) for n, a in pairs]
        else:
            late.append(_with_value(part, value))
    early, late = _moved(early, late, value.name)
    if not any(isinstance(p, syntax.Atom) for p in early):
        raise refused("the body has no atom whose rows it could number", counter, places)
    needed = names_in((tuple(late), rule.heads))
    known = [syntax.Variable(n, rule.span) for n in _in_order(early) if n in needed]
    rows = syntax.Atom(added_name(WORD, f"body{number}"), (*known, counter), rule.span)
    read = replace(rows, args=(*known, value))
    return (
        replace(rule, heads=(rows,), body=syntax.Conjunction(tuple(early), rule.span), plan=None),
        replace(rule, body=syntax.Conjunction((read, *late), rule.span), plan=None),
    )


def _moved(
    early: list[syntax.Literal_], late: list[syntax.Literal_], value: str
) -> tuple[list[syntax.Literal_], list[syntax.Literal_]]:
    """Move to ``late`` what reads variables that only the number gives a value."""
    bound = names_in(tuple(p for p in early if isinstance(p, syntax.Atom)))
    while True:
        unknown = {value} | {n for p in late if isinstance(p, syntax.Comparison) for n in names_in(p) - bound}
        moved = [p for p in early if not isinstance(p, syntax.Atom) and names_in(p) & unknown]
        if not moved:
            return early, late
        early, late = [p for p in early if p not in moved], [*late, *moved]


def _in_order(literals: Iterable[syntax.Literal_]) -> Iterator[str]:
    """Yield the variables that rows of ``literals`` give a value, each once."""
    binding = tuple(p for p in literals if isinstance(p, syntax.Atom | syntax.Comparison))
    yield from dict.fromkeys(n.name for n in nodes(binding) if isinstance(n, syntax.Variable))


def _with_value(part: syntax.Literal_, value: syntax.Variable) -> syntax.Literal_:
    def change(node: object) -> object:
        return value if isinstance(node, syntax.Apply) and node.name == WORD else node

    result: syntax.Literal_ = rewritten(part, change)
    return result
