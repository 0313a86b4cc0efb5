"""Describe the progress of one run of a recursion, as a record and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["running", "done", "failed"]


@dataclass(frozen=True)
class RunProgress:
    """The progress of one run of a recursion.

    ``run`` identifies the run, ``name`` is the recursion's name, and ``backend`` the executor. ``iteration`` is the
    last finished iteration; 0 means that the inputs are being loaded. That iteration changed ``delta`` rows, and the
    relations now have ``total`` rows. ``limit`` is ``max_iterations``, or None. ``changed`` counts the rows that all
    iterations so far changed, ``bytes`` the bytes that they exchanged (None if not counted), and ``seconds`` the time
    since the run began. ``state`` is ``"running"``, ``"done"`` or ``"failed"``; a cancelled run has failed.
    """

    run: str
    name: str
    backend: str
    state: State = "running"
    iteration: int = 0
    delta: int = 0
    total: int = 0
    changed: int = 0
    bytes: int | None = None
    seconds: float = 0.0
    limit: int | None = None


class Rate:
    """The text for successive updates of a run, with the changed rows a second since the previous update.

    >>> rate = Rate()
    >>> rate.describe(RunProgress("1", "path", "spark", iteration=4, delta=1000, changed=5000, seconds=1.0))
    'iteration 4, 1,000 rows changed'
    >>> rate.describe(RunProgress("1", "path", "spark", iteration=10, delta=500, changed=8000, seconds=3.0))
    'iteration 10, 500 rows changed, 1,500 rows/s'
    """

    def __init__(self) -> None:
        self._last: RunProgress | None = None
        self._pace = ""

    def describe(self, update: RunProgress) -> str:
        """Return the text for the update ``now``."""
        last = self._last
        if last is None or last.run != update.run or last.iteration > update.iteration:
            self._last, self._pace = update, ""
        elif update.iteration > last.iteration and update.seconds > last.seconds:
            self._pace = f", {round((update.changed - last.changed) / (update.seconds - last.seconds)):,} rows/s"
            self._last = update
        return f"iteration {update.iteration:,}, {update.delta:,} rows changed{self._pace}"
