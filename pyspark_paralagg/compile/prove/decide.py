"""Decide one claim: by the rule system, then by small values that may refute it, then by z3.

    rules     a proof, or no result
    sampled   a counterexample among small values, or no result
    z3        a proof, a counterexample (confirmed by ``evaluate``), or no result

If an assumption about a column would prove the claim, it is unknown instead of refuted: the user may add it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.compile.prove.solve import solve
from pyspark_paralagg.compile.prove.verdict import Proved, Refuted, Unknown, Verdict
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_paralagg.compile.prove.claim import Claim
    from pyspark_paralagg.compile.prove.facts import Facts

Provers = Literal["rules", "z3", "all"]
"""The effort: the rule system only, then z3 for a proof, then all, with counterexamples and assumptions."""
ROUNDING = "if rounding makes two different orders equal, the smaller carried value wins"

# The weaker ones first.
_ASSUMED: tuple[tuple[str, str, int], ...] = (
    (">=", "GreaterThanOrEqual", 0),
    ("<=", "LessThanOrEqual", 1),
    (">", "GreaterThan", 0),
    (">=", "GreaterThanOrEqual", 1),
    ("<=", "LessThanOrEqual", 0),
)


_EXACT = "fractions are treated as exact"


@dataclass(frozen=True)
class Decision:
    """The provers of one claim: rules, samples, then z3.

    ``render`` turns a z3 model into a counterexample; it returns None if the model is none.
    """

    rules: Callable[[Facts], Verdict | None]
    sampled: Callable[[], str | None] | None = None
    claim: Claim | None = None
    render: Callable[[dict[str, Any], dict[str, Any]], str | None] | None = None

    def verdict(self, facts: Facts, assumable: Mapping[str, Col], provers: Provers = "all") -> Verdict:
        """Return the verdict of the first prover with a result; ``assumable`` are the user's columns, by variable.

        Counterexamples and assumptions are searched only if ``provers`` is ``all``.
        """
        proof = self.rules(facts)
        if proof is not None:
            return proof
        if provers != "all":
            answer = self._solve() if provers == "z3" else Unknown()
            return answer if isinstance(answer, Proved) else Unknown()
        tried = ["the rules do not apply"]
        example = self.sampled() if self.sampled else None
        if self.sampled and example is None:
            tried.append("no small value refutes it")
        if example is None:
            answer = self._solve()
            if not isinstance(answer, Unknown):
                example = answer.counterexample if isinstance(answer, Refuted) else None
            if isinstance(answer, Proved):
                return answer
            tried += answer.tried if isinstance(answer, Unknown) else ()
        assume = self._assumption(facts, assumable)
        if example is None:
            return Unknown(tuple(tried), assume)
        return Unknown((*tried, f"without an assumption, {example}"), assume) if assume else Refuted(example)

    def _solve(self) -> Verdict:
        if self.claim is None:
            return Unknown(())
        answer, model = solve(self.claim)
        if answer.proved:
            return Proved("z3", (_EXACT,) if answer.is_rounded else (), is_rounded=answer.is_rounded)
        example = self.render(model[0], model[1]) if answer.model and self.render else None
        return Refuted(example) if example else Unknown((answer.why or "evaluation does not confirm the model of z3",))

    def _assumption(self, facts: Facts, assumable: Mapping[str, Col]) -> str | None:
        """Return an assumption about a column of the user that would prove the claim; None if there is none."""
        known = facts
        for premise in self.claim.premises if self.claim else ():
            known = known.assuming(premise)
        for sign, fn, bound in _ASSUMED:
            for name, col in assumable.items():
                variable = replace(col, name=name)
                condition = Call(fn, (variable, Lit(bound, col.type)), "boolean")
                before, after = known.range_of(variable), known.assuming(condition).range_of(variable)
                if after is None or after.is_empty or after == before:
                    continue
                if self.rules(facts.assuming(condition)):
                    return f"{col.name} {sign} {bound}"
                if self.claim is not None and name in self.claim.variables:
                    answer = solve(replace(self.claim, premises=(*self.claim.premises, condition)))[0]
                    if answer.proved:
                        return f"{col.name} {sign} {bound}"
        return None


def read_by(exprs: tuple[Expr, ...], assumable: Mapping[str, Col]) -> dict[str, Col]:
    """Return the entries of ``assumable`` that ``exprs`` read."""
    read = {c for e in exprs for c in columns(e)}
    return {n: assumable[n] for n in sorted(read & set(assumable))}
