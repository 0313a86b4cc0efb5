"""Define verdicts: the check of a rule returns one for each claim, and ``verify`` acts on them.

    claim    dist = dist + weight never gets worse under min
    verdict  proved (by a prover) | refuted (with a counterexample) | unknown (with the attempts)

``proved`` and ``refuted`` are final. ``unknown`` is refused as well, but ``mode="trust"`` accepts it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proved:
    """A proof ``by`` a prover (rules or z3); ``rests_on`` lists its assumptions.

    ``is_rounded``: proved up to rounding, which may make different values equal. ``of_whole_values``: each round has to
    compute the claim's value from whole sums, because parts of a sum are rounded in another way.
    ``checks_overflow``: overflow must be an error in this rule although ANSI mode is off.
    """

    by: str
    rests_on: tuple[str, ...] = ()
    is_rounded: bool = False
    of_whole_values: bool = False
    checks_overflow: bool = False

    def __str__(self) -> str:
        return f"proved {'up to rounding ' if self.is_rounded else ''}by {self.by}" + "".join(
            f"; {r}" for r in self.rests_on
        )


@dataclass(frozen=True)
class Refuted:
    """A refutation with a ``counterexample`` in the user's column names."""

    counterexample: str

    def __str__(self) -> str:
        return f"refuted: {self.counterexample}"


@dataclass(frozen=True)
class Unknown:
    """No result. ``tried`` has a line for each attempt; ``assume`` is a condition that would prove the claim."""

    tried: tuple[str, ...] = ()
    assume: str | None = None

    def __str__(self) -> str:
        return "neither proved nor refuted" + (f" (tried: {'; '.join(self.tried)})" if self.tried else "")


Verdict = Proved | Refuted | Unknown


@dataclass(frozen=True)
class Judgement:
    """A verdict on a claim.

    ``claim`` is a statement; ``problem`` is the error message if it is refuted, and ``code`` the error code. ``column``
    is the recursive column that the claim is about, ``place`` the rule's place. ``instead`` is what users mostly want
    whose claim of this kind is not proved.
    """

    claim: str
    verdict: Verdict
    code: str
    problem: str
    column: str
    place: str
    instead: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.claim}: {self.verdict}"
