"""Define ``Absence``: why a row is missing, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark_paralagg.compile.rewrite.failures import Attempt, Failures


@dataclass(frozen=True)
class Failure:
    """A rule that does not derive the row. ``atom`` is the first relation or input that leaves no row.

    ``conditions`` are those that no row of ``atom`` meets, ``before`` the relations and inputs that were joined before
    it, and ``rows`` how many combinations of their rows there are. ``is_excluded``: the rule forbids rows of ``atom``,
    and there are some. ``atom`` is None if ``conditions`` hold for all rows that the rule derives, whatever it reads.
    """

    rule: str
    atom: str | None
    conditions: tuple[str, ...]
    before: tuple[str, ...] = ()
    rows: int = 0
    is_excluded: bool = False

    def __str__(self) -> str:
        """Return the failure as a sentence."""
        meets = " AND ".join(self.conditions) or "any value"
        if self.atom is None:
            return f"{self.rule}: derives only rows with {meets}"
        found = f"{self.rows:,} {'row' if self.rows == 1 else 'rows'} of {', '.join(self.before)}"
        if self.is_excluded:
            return f"{self.rule}: {found} would do, but {self.atom} has rows with {meets}"
        after = f" for the {found}" if self.before else ""
        return f"{self.rule}: {self.atom} has no row with {meets}{after}"


@dataclass(frozen=True)
class Absence:
    """Why a result has no row ``row``: what each rule of the relation lacks."""

    row: str
    failures: tuple[Failure, ...]

    def __str__(self) -> str:
        """Return a line for each rule."""
        return "\n  ".join([f"there is no row {self.row}", *map(str, self.failures)])

    __repr__ = __str__


def absence_of(question: Failures, answer: Iterable[Mapping[str, Any]], shown: str) -> Absence:
    """Return what the engine's answer says; raise ``UsageError`` ``PARALAGG_WHY`` if the row exists."""
    from pyspark_paralagg.compile.rewrite.failures import ATOMS, FOUND, RULE  # noqa: PLC0415 - the compiler comes with it

    found = {(a[RULE], a[ATOMS]): int(a[FOUND]) for a in answer}
    if (-1, 0) in found:
        hint = "ra.why says how it is derived"
        raise UsageError("PARALAGG_WHY", f"there is a row {shown}", value=shown, place="ra.why_not", hint=hint)
    failures = (_failure(a, n, found) for n, a in enumerate(question.attempts))
    return Absence(shown, tuple(dict.fromkeys(failures)))  # a rule of a text may have become several equal ones


def _failure(attempt: Attempt, number: int, found: Mapping[tuple[int, int], int]) -> Failure:
    if attempt.derives:
        return Failure(attempt.place, None, attempt.derives)
    failed = next(n for n in range(1, len(attempt.tries) + 1) if (number, n) not in found)
    atom, before = attempt.tries[failed - 1], tuple(t.name for t in attempt.tries[: failed - 1])
    rows = found.get((number, failed - 1), 0)
    return Failure(attempt.place, atom.name, atom.conditions, before, rows, is_excluded=atom.kind == "anti")
