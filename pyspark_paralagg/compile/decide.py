"""One claim, asked of each means in turn: the rule system, small values that may refute it, z3.

    rules     a proof, or silence
    sampled   a counterexample among small values, or silence
    z3        a proof, a counterexample (``evaluate`` must come to the same), or silence

Where an assumption about a column would prove the claim, it is not refuted but open: the user may know better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.solve import solve
from pyspark_paralagg.compile.verdict import Proved, Refuted, Unknown, Verdict
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_paralagg.compile.claim import Claim
    from pyspark_paralagg.compile.signs import Signs

Facts = dict[str, "Signs"]

# The weaker ones first; rules know signs alone.
_ASSUMED: tuple[tuple[str, Call, Signs, bool], ...] = tuple(
    (f"{sign} {limit}", Call(fn, (Col("", ""), Lit(limit, "int")), "boolean"), frozenset(allowed), limit == 0)
    for sign, fn, limit, allowed in (
        (">=", "GreaterThanOrEqual", 0, (0, 1)),
        ("<=", "LessThanOrEqual", 1, (-1, 0, 1)),
        (">", "GreaterThan", 0, (1,)),
        (">=", "GreaterThanOrEqual", 1, (1,)),
        ("<=", "LessThanOrEqual", 0, (-1, 0)),
    )
)


@dataclass(frozen=True)
class Decision:
    """The means for one claim. ``told`` says how a model of z3 refutes it, or None if it does not."""

    rules: Callable[[Facts], Verdict | None]
    sampled: Callable[[], str | None] | None = None
    claim: Claim | None = None
    told: Callable[[dict[str, Any], dict[str, Any]], str | None] | None = None

    def verdict(self, facts: Facts, assumable: Mapping[str, Col]) -> Verdict:
        """What the first means that knows says; ``assumable`` are the user's columns, by variable."""
        found = self.rules(facts)
        if found is not None:
            return found
        tried = ["its rules say nothing"]
        example = self.sampled() if self.sampled else None
        if self.sampled and example is None:
            tried.append("no small value refutes it")
        if example is None:
            answer = self._ask()
            if not isinstance(answer, Unknown):
                example = answer.counterexample if isinstance(answer, Refuted) else None
            if isinstance(answer, Proved):
                return answer
            tried += answer.tried if isinstance(answer, Unknown) else ()
        assume = self._assumption(facts, assumable)
        if example is None:
            return Unknown(tuple(tried), assume)
        return Unknown((*tried, f"otherwise {example}"), assume) if assume else Refuted(example)

    def _ask(self) -> Verdict:
        if self.claim is None:
            return Unknown(())
        answer, model = solve(self.claim)
        if answer.proved:
            types = [c.type for c in self.claim.variables.values()]
            is_real = any(is_numeric(t) and not is_integral(t) for t in types)
            return Proved("z3", ("fractions are taken for exact, infinities and NaN left out",) if is_real else ())
        example = self.told(model[0], model[1]) if answer.model and self.told else None
        return Refuted(example) if example else Unknown((answer.why or "z3 has a model that is no row",))

    def _assumption(self, facts: Facts, assumable: Mapping[str, Col]) -> str | None:
        """An assumption about one of the user's columns that would prove the claim."""
        for told, condition, allowed, is_sign in _ASSUMED:
            for name, col in assumable.items():
                left = facts[name] & allowed
                if not left or (is_sign and left == facts[name]):
                    continue
                if is_sign and self.rules(facts | {name: left}):
                    return f"{col.name} {told}"
                if self.claim is not None and name in self.claim.variables:
                    one = replace(condition, args=(replace(col, name=name), condition.args[1]))
                    if solve(replace(self.claim, premises=(*self.claim.premises, one)))[0].proved:
                        return f"{col.name} {told}"
        return None


def read_by(exprs: tuple[Expr, ...], assumable: Mapping[str, Col]) -> dict[str, Col]:
    """Those of ``assumable`` that ``exprs`` read."""
    read = {c for e in exprs for c in columns(e)}
    return {n: assumable[n] for n in sorted(read & set(assumable))}
