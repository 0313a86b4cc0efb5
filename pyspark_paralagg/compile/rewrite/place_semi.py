"""Turn semi and anti joins into lookups of equal columns, the only form that a probe supports.

reach(y) :- reach(x), edges(a, y), exists ok(z), x = a, z < y
reach(y) :- reach(x), edges(a, y), ok(z), x = a, z < y             reach is a set: a join gives the same rows

reach(y) :- reach(x), edges(a, y), !stop(z), x = a
reach(y) :- reach(x), edges(a, y), !stop(z, one), x = a, one = 1   tests for any row: all have the same key
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import variables
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule

_ONE = Lit(1, "int")


def place_semi(program: Program) -> Program:
    """Return the program whose semi and anti atoms have equality conditions only, each column in at most one.

    A semi join with other conditions becomes a join if the head ignores repetition. Otherwise, and for an anti join,
    raise ``UnsupportedError`` (``PARALAGG_STEP_UNSUPPORTED``).
    """
    program = _with_constant_keys(program)
    return replace(program, rules=tuple(_rule(program, r) for r in program.rules))


def _with_constant_keys(program: Program) -> Program:
    """Add a constant column as lookup key to anti joins without conditions."""
    for position, rule in enumerate(program.rules):
        atoms = {v: s.atom for v, s in variables(rule, program).items()}
        read = {atoms[v] for c in rule.conditions for v in columns(c)}
        for n, atom in enumerate(rule.body):
            if atom.kind != "anti" or n in read or atom.input is None:
                continue
            source = program.input(atom.input)
            keyed = replace(source, id=max(i.id for i in program.inputs) + 1, exprs=(*source.exprs, _ONE))
            name = f"one@{n}"
            body = list(rule.body)
            body[n] = replace(atom, variables=(*atom.variables, name), input=keyed.id)
            equality = Call("EqualTo", (Col(name, _ONE.type, nullable=False), _ONE), "boolean", nullable=False)
            rule = replace(rule, body=tuple(body), conditions=(*rule.conditions, equality))  # noqa: PLW2901 - atom by atom
            rules = (*program.rules[:position], rule, *program.rules[position + 1 :])
            program = replace(program, inputs=(*program.inputs, keyed), rules=rules)
    return program


def _rule(program: Program, rule: Rule) -> Rule:
    atoms = {v: s.atom for v, s in variables(rule, program).items()}
    body = list(rule.body)
    for n, atom in enumerate(rule.body):
        if atom.kind == "join":
            continue
        keys = [_key(c, n, atoms) for c in rule.conditions if any(atoms[v] == n for v in columns(c))]
        # Without any key a semi join tests for any row.
        if None not in keys and len(set(keys)) == len(keys) and (keys or atom.kind == "semi"):
            continue
        if atom.kind == "anti" or not program.relation(rule.head).is_idempotent:
            kind = {"semi": "a semi", "anti": "an anti"}[atom.kind]
            raise UnsupportedError(
                "PARALAGG_STEP_UNSUPPORTED",
                f"{kind} join on more than equal columns cannot run inside the loop",
                value=atom.kind,
                place=rule.place,
                hint="join on equality, and use each of its columns once",
            )
        body[n] = replace(atom, kind="join")
    return replace(rule, body=tuple(body))


def _key(condition: Expr, atom: int, atoms: dict[str, int]) -> str | None:
    """Return the column of ``atom`` that ``condition`` equates with an expression over other atoms; None if none."""
    if isinstance(condition, Call) and condition.fn == "EqualTo":
        for side, other in (condition.args, condition.args[::-1]):
            if isinstance(side, Col) and atoms[side.name] == atom and all(atoms[v] != atom for v in columns(other)):
                return side.name
    return None
