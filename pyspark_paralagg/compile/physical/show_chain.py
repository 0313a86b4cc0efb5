"""Show a chain as Datalog: one rule with its Δ, or one binary rule a join.

The intermediate relations ``int1``, ``int2`` … hold the variables that are bound between two joins and read later. No
engine stores them (its loops nest), but they show the cost of a chain. Gilray et al. (Compiling Data-Parallel Datalog)
store them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import columns
from pyspark_paralagg.program.text import input_name, show, show_atom, show_head

if TYPE_CHECKING:
    from pyspark_paralagg.compile.physical.chain import Chain, Lookup
    from pyspark_paralagg.program.program import Program

_KINDS = {"join": "", "semi": "exists ", "anti": "!"}


def show_variant(chain: Chain, program: Program) -> str:
    """Return the rule as written, with the version that each recursive atom reads: Δ, all but Δ (``old``), or all."""
    old = {x.atom for x in chain.lookups if x.version == "old"}
    parts = []
    for n, atom in enumerate(chain.rule.body):
        version = "Δ" if n == chain.driver and chain.version == "delta" else "old " if n in old else ""
        parts.append(f"{version}{_KINDS[atom.kind]}{show_atom(_name(chain, n, program), atom.variables)}")
    parts += [show(c) for c in chain.rule.conditions]
    return f"{show_head(program.relation(chain.rule.head), chain.rule.exprs)} :- {', '.join(parts)}."


def show_binary_rules(chain: Chain, program: Program, first: int = 1) -> list[str]:
    """Return the chain as rules of at most two atoms; the last derives the head. Numbers start at ``first``."""
    delta = "Δ" if chain.version == "delta" else ""
    body = [f"{delta}{show_atom(chain.driver_relation, chain.driver_binds)}"]
    bound = [v for v in chain.driver_binds if v is not None]
    rules: list[str] = []
    joined = False
    for n, step in enumerate(chain.steps):
        if isinstance(step, Filter):
            body.append(show(step.condition))
            continue
        if joined:
            read = _read_after(chain, n)
            bound = [v for v in bound if v in read]
            name = show_atom(f"int{first + len(rules)}", tuple(bound))
            rules.append(f"{name} :- {', '.join(body)}.")
            body = [name]
        joined = True
        body.append(_atom(chain, step, program))
        bound += [v for v in chain.binds[step.atom] if v is not None]
    head = show_head(program.relation(chain.rule.head), chain.emit)
    return [*rules, f"{head} :- {', '.join(body)}."]


def _atom(chain: Chain, step: Lookup, program: Program) -> str:
    atom = chain.rule.body[step.atom]
    keys = {p: show(e) for p, e in step.keys}
    shown = tuple(keys.get(p, v) for p, v in enumerate(chain.binds[step.atom]))
    old = "old " if step.version == "old" else ""
    return f"{old}{_KINDS[atom.kind]}{show_atom(_name(chain, step.atom, program), shown)}"


def _read_after(chain: Chain, step: int) -> set[str]:
    """Return the variables that this step, a later one, or the head reads."""
    exprs = list(chain.emit)
    for s in chain.steps[step:]:
        exprs += [s.condition] if isinstance(s, Filter) else [e for _, e in s.keys]
    return {v for e in exprs for v in columns(e)}


def _name(chain: Chain, atom: int, program: Program) -> str:
    read = chain.rule.body[atom]
    return read.relation if read.relation is not None else input_name(program.input(read.input or 0))
