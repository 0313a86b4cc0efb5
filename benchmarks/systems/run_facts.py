"""What the reports of this project's engines tell beside seconds, as facts of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Entries = Sequence[Mapping[str, Any]]


def run_facts(iterations: int, rounds: Entries, ranks: Entries) -> dict[str, Any]:
    """`iterations`; `sent_bytes_round`: the mean payload of a round; `held_bytes`: in all ranks, at the end.

    `rounds` are those of one relation. Only what was counted is told: ways to evaluate that exchange nothing in their
    loop (bitmaps, one fixpoint for each value) do not count rounds, and only ranks say what they hold.

    >>> run_facts(2, [{"bytes": 48}, {"bytes": 0}], [{"bytes": 100}, {"bytes": 80}])
    {'iterations': 2, 'sent_bytes_round': 24.0, 'held_bytes': 180}
    >>> run_facts(7, [], [])
    {'iterations': 7}
    """
    facts: dict[str, Any] = {"iterations": iterations}
    sent = [entry["bytes"] for entry in rounds if entry["bytes"] is not None]
    if sent:
        facts["sent_bytes_round"] = sum(sent) / iterations
    if ranks:
        facts["held_bytes"] = sum(entry["bytes"] for entry in ranks)
    return facts
