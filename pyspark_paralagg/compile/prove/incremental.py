"""Show a linear program with initial rows in its incremental form (Wang et al., PowerLog, theorem 1).

    rank(i+1, y, sum v) = C and F'(rank(i))         the rounds by definition: values appear and disappear
    Δrank(1) = C + F'(X0) - X0                      G⁻(G∘F(X⁰), X⁰), negative if a round reduces a value
    Δrank(i+1) = F'(Δrank(i))                       on the difference alone
    rank(n) = X0 + Δrank(1) + ... + Δrank(n)

Only shown, not run: see ``WHY_ROUNDS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Call, Col, Expr
from pyspark_paralagg.program.text import input_name, show, show_atom

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Relation, Rule

WHY_ROUNDS = (
    "each round still recomputes all rows, on every engine: as long as most rows change, adding differences takes "
    "longer (docs/balance.md), and a key of the initial rows that no rule derives again would keep a row with 0"
)


def show_incremental(program: Program, names: tuple[str, ...]) -> list[str]:
    """Return a note with the stratum ``names`` in incremental form, one rule a line, and a note why it is not run."""
    rules = [r for r in program.rules if r.head in names]
    # A relation without rules holds rows that enter with the first round (``drive_static``).
    fixed = {n for n in names if not any(r.head == n for r in rules)}
    lines = [
        f"{', '.join(n for n in names if n not in fixed)}: incremental form, ΔX¹ = G⁻(G∘F(X⁰), X⁰), then F' on Δ alone"
    ]
    for name in names:
        relation = program.relation(name)
        if name in fixed:
            continue
        if relation.initial is not None:
            lines.append(f"  {_from_input(relation, relation.base, program)}")
            lines.append(f"  {_from_input(relation, relation.initial, program, minus=True)}")
        deriving = [r for r in rules if r.head == name]
        lines += [f"  {_rule(r, program, '1')}" for r in deriving]
        lines += [f"  {_rule(r, program, 'i+1')}" for r in deriving if not any(a.relation in fixed for a in r.body)]
        lines.append(f"  {name}(n) = {_start(relation, program)} + Δ{name}(1) + ... + Δ{name}(n)")
    return ["\n".join(lines), f"{', '.join(n for n in names if n not in fixed)}: {WHY_ROUNDS}"]


def _start(relation: Relation, program: Program) -> str:
    return input_name(program.input(relation.base if relation.initial is None else relation.initial))


def _from_input(relation: Relation, source: int, program: Program, *, minus: bool = False) -> str:
    values: list[Expr] = [Col(d.column.name, d.column.type) for d in relation.dependents]
    if minus:
        values = [Call("UnaryMinus", (v,), v.type) for v in values]
    columns = tuple(c.name for c in relation.columns)
    return f"{_head(relation, [c.name for c in relation.keys], values, '1')} :- " + show_atom(
        input_name(program.input(source)), columns
    )


def _rule(rule: Rule, program: Program, round_: str) -> str:
    head = program.relation(rule.head)
    body = []
    for a in rule.body:
        if a.relation is None:
            sign = {"join": "", "semi": "exists ", "anti": "!"}[a.kind]
            body.append(sign + show_atom(input_name(program.input(a.input or 0)), a.variables))
        elif round_ == "1":
            body.append(show_atom(_start(program.relation(a.relation), program), a.variables))
        else:
            body.append(show_atom(f"Δ{a.relation}", ("i", *a.variables)))
    keys = [show(e) for e in rule.exprs[: len(head.keys)]]
    parts = [*body, *map(show, rule.conditions)]
    return f"{_head(head, keys, list(rule.exprs[len(head.keys) :]), round_)} :- {', '.join(parts)}"


def _head(relation: Relation, keys: list[str], values: list[Expr], round_: str) -> str:
    columns = [f"{d.aggregator} {show(v)}" for d, v in zip(relation.dependents, values, strict=True)]
    return f"Δ{relation.name}({', '.join([round_, *keys, *columns])})"
