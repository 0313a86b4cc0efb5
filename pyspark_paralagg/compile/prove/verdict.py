"""What the check finds of one claim: a value, made by the checks of one rule each and acted upon by ``verify``.

    claim    dist = dist + weight never gets worse under min
    verdict  proved (by what) | refuted (with a counterexample) | unknown (with what was tried)

``proved`` and ``refuted`` are final. ``unknown`` is refused as well, but ``mode="trust"`` takes it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proved:
    """``by`` names the means (``rules`` or ``z3``); ``rests_on`` says what the proof takes for granted.

    ``is_rounded``: proved up to rounding, which may make two values equal that differ. ``checks_overflow``: overflow
    has to be an error in this rule although ANSI mode is off.
    """

    by: str
    rests_on: tuple[str, ...] = ()
    is_rounded: bool = False
    checks_overflow: bool = False

    def __str__(self) -> str:
        return f"proved {'up to rounding ' if self.is_rounded else ''}by {self.by}" + "".join(
            f"; {r}" for r in self.rests_on
        )


@dataclass(frozen=True)
class Refuted:
    """``counterexample`` in the user's own names and numbers."""

    counterexample: str

    def __str__(self) -> str:
        return f"refuted: {self.counterexample}"


@dataclass(frozen=True)
class Unknown:
    """``tried`` has a line for each means; ``assume`` is a condition that would settle the claim."""

    tried: tuple[str, ...] = ()
    assume: str | None = None

    def __str__(self) -> str:
        return "neither proved nor refuted" + (f" (tried: {'; '.join(self.tried)})" if self.tried else "")


Verdict = Proved | Refuted | Unknown


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it is about.

    ``claim`` is a statement; ``problem`` is what to say where it is refuted, ``code`` the error's. ``column`` is the
    column of the recursion that the claim is about, ``place`` the rule's.
    """

    claim: str
    verdict: Verdict
    code: str
    problem: str
    column: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.claim}: {self.verdict}"
