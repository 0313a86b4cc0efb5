"""Order relations into strata: mutually recursive relations form one fixpoint, after the relations that they read.

    reach(y) :- reach(x), edges(x, y).              strata: (reach), (far)
    far(y)   :- reach(x), !seen(x), hop(x, y).      far reads in5 := result of reach

A relation of a lower stratum is an input, so negation and aggregated values of it need no proof above it. A semi join
with a relation of the same stratum becomes a join if the head ignores repetition. An anti join through the recursion
may have no fixpoint and is refused. So is ``R(n)``, the state after n iterations, of several strata: an iteration
applies the step to all relations at once, but strata run one after the other. Only the fixpoint is the same.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Atom, Input, Program, Relation, Rule


def stratify(program: Program) -> Program:
    """Return the program with ``strata`` set, and lower relations read as inputs.

    Raises ``UnsupportedError`` (``PARALAGG_STEP_UNSUPPORTED``) for an anti join with a relation of the same stratum,
    for a semi join with one under an aggregate that counts repetitions, and for several strata if the rows after
    a number of iterations are requested.
    """
    strata = strongly_connected(needs_of(program))
    if len(strata) > 1 and program.max_iterations is not None and program.on_limit == "return":
        raise UnsupportedError(
            "PARALAGG_STEP_UNSUPPORTED",
            f"{', '.join(r.name for r in program.relations)} are not all mutually recursive, so they run one after "
            f"the other and have no common state after {program.max_iterations} iterations",
            value=program.max_iterations,
            place="max_iterations",
            hint='run each in a separate recursion, remove max_iterations, or set on_limit="error"',
        )
    stratum_of = {name: n for n, names in enumerate(strata) for name in names}
    # A relation that no rule of its own stratum reads is not recursive; other strata read it as an input.
    inputs = list(program.inputs)
    results: dict[str, int] = {}
    rules = []
    for rule in program.rules:
        body = []
        for atom in rule.body:
            if atom.relation is None or stratum_of[atom.relation] == stratum_of[rule.head]:
                body.append(_within_stratum(atom, rule, program))
                continue
            if atom.relation not in results:
                results[atom.relation] = max(i.id for i in inputs) + 1
                inputs.append(_result(results[atom.relation], program.relation(atom.relation)))
            body.append(replace(atom, relation=None, input=results[atom.relation]))
        rules.append(replace(rule, body=tuple(body)))
    return replace(program, strata=strata, inputs=tuple(inputs), rules=tuple(rules))


def needs_of(program: Program) -> dict[str, set[str]]:
    """Return the relations that each relation reads. A relation and its view depend on each other: one fixpoint."""
    needs = {relation.name: set[str]() for relation in program.relations}
    for rule in program.rules:
        needs[rule.head] |= {a.relation for a in rule.body if a.relation is not None}
    for relation in program.relations:  # base and initial rows may be the result of another relation
        starts = (relation.base, relation.initial)
        needs[relation.name] |= {i.relation for i in program.inputs if i.id in starts and i.relation is not None}
    for relation in program.relations:
        for d in relation.dependents:
            if d.view is not None:
                needs[relation.name].add(d.view.relation)
                needs[d.view.relation].add(relation.name)
    return needs


def _within_stratum(atom: Atom, rule: Rule, program: Program) -> Atom:
    if atom.relation is None or atom.kind == "join":
        return atom
    if atom.kind == "anti" or not program.relation(rule.head).is_idempotent:
        join_name = "an anti join" if atom.kind == "anti" else "a semi join under an aggregate that counts repetitions,"
        raise UnsupportedError(
            "PARALAGG_STEP_UNSUPPORTED",
            f"{join_name} with {atom.relation}, which still grows, cannot run inside the loop",
            value=atom.relation,
            place=rule.place,
            hint=f"compute {atom.relation} in a separate recursion first, or join with other data",
        )
    return replace(atom, kind="join")


def _result(input_id: int, relation: Relation) -> Input:
    exprs = tuple(Col(c.name, c.type, c.nullable) for c in relation.columns)
    return Input(input_id, -1, relation.columns, exprs, relation=relation.name)


def recursion_with(program: Program, relation: str) -> tuple[str, ...]:
    """Return the relations that are mutually recursive with ``relation``, itself included."""
    return next(names for names in strongly_connected(needs_of(program)) if relation in names)


def strongly_connected(needs: dict[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """Return Tarjan's strongly connected components, dependencies first; inside one, in the order of ``needs``.

    >>> strongly_connected({"far": {"reach"}, "reach": {"reach"}, "a": {"b"}, "b": {"a"}})
    (('reach',), ('far',), ('a', 'b'))
    """
    order = list(needs)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[tuple[str, ...]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(needs[node], key=order.index):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            start = stack.index(node)
            components.append(tuple(sorted(stack[start:], key=order.index)))
            del stack[start:]

    for node in order:
        if node not in index:
            visit(node)
    return tuple(components)
