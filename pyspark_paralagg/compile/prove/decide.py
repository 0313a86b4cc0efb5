"""One claim, asked of each means in turn: the rule system, small values that may refute it, z3.

    rules     a proof, or silence
    sampled   a counterexample among small values, or silence
    z3        a proof, a counterexample (``evaluate`` must come to the same), or silence

Where an assumption about a column would prove the claim, it is not refuted but open: the user may know better.
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

Means = Literal["rules", "z3", "all"]
"""What a claim is put to: the rule system, then z3 for a proof, then all that may refute it or help."""
ROUNDING = "where rounding makes two orders equal that differ, the smaller carried value wins"

# The weaker ones first.
_ASSUMED: tuple[tuple[str, str, int], ...] = (
    (">=", "GreaterThanOrEqual", 0),
    ("<=", "LessThanOrEqual", 1),
    (">", "GreaterThan", 0),
    (">=", "GreaterThanOrEqual", 1),
    ("<=", "LessThanOrEqual", 0),
)


_EXACT = "fractions are taken for exact"


@dataclass(frozen=True)
class Decision:
    """How one claim is decided: rules, samples, then z3.

    ``told`` turns a model of z3 into a counterexample; None where it is none.
    """

    rules: Callable[[Facts], Verdict | None]
    sampled: Callable[[], str | None] | None = None
    claim: Claim | None = None
    told: Callable[[dict[str, Any], dict[str, Any]], str | None] | None = None

    def verdict(self, facts: Facts, assumable: Mapping[str, Col], means: Means = "all") -> Verdict:
        """Return what the first means that knows says; ``assumable`` are the user's columns, by variable.

        Counterexamples and assumptions are looked for with all ``means`` only.
        """
        found = self.rules(facts)
        if found is not None:
            return found
        if means != "all":
            answer = self._ask() if means == "z3" else Unknown()
            return answer if isinstance(answer, Proved) else Unknown()
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
            return Proved("z3", (_EXACT,) if answer.is_rounded else (), is_rounded=answer.is_rounded)
        example = self.told(model[0], model[1]) if answer.model and self.told else None
        return Refuted(example) if example else Unknown((answer.why or "z3 has a model that is no row",))

    def _assumption(self, facts: Facts, assumable: Mapping[str, Col]) -> str | None:
        """An assumption about one of the user's columns that would prove the claim."""
        for sign, fn, limit in _ASSUMED:
            for name, col in assumable.items():
                condition = Call(fn, (replace(col, name=name), Lit(limit, col.type)), "boolean")
                assumed, before = facts.given(condition), facts.range_of(replace(col, name=name))
                after = assumed.range_of(replace(col, name=name))
                if after is None or after.is_empty or after == before:
                    continue
                if self.rules(assumed):
                    return f"{col.name} {sign} {limit}"
                if self.claim is not None and name in self.claim.variables:
                    found = solve(replace(self.claim, premises=(*self.claim.premises, condition)))[0]
                    if found.proved:
                        return f"{col.name} {sign} {limit}"
        return None


def read_by(exprs: tuple[Expr, ...], assumable: Mapping[str, Col]) -> dict[str, Col]:
    """Those of ``assumable`` that ``exprs`` read."""
    read = {c for e in exprs for c in columns(e)}
    return {n: assumable[n] for n in sorted(read & set(assumable))}
