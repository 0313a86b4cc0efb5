"""How far one run of a recursion is, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["running", "done", "failed"]


@dataclass(frozen=True)
class RunProgress:
    """How far one run of a recursion is.

    ``run`` tells runs apart; ``name`` is the recursion's, ``backend`` who runs it. ``iteration`` is the last one that
    is through (0: the inputs are being loaded), ``limit`` the ``max_iterations`` if there are such. It changed
    ``delta`` rows, and there are ``total`` rows now. ``changed`` rows were changed by all iterations so far, ``bytes``
    exchanged (None where nobody counts them), in ``seconds`` since the run began. ``state`` says whether it is
    ``"running"``, ``"done"`` or has ``"failed"``, be it that it was cancelled.
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
    """Words for what is heard of runs now and then, with the rows a second since the time before.

    >>> rate = Rate()
    >>> rate.told(RunProgress("1", "path", "spark", iteration=4, delta=1000, changed=5000, seconds=1.0))
    'iteration 4, 1,000 rows changed'
    >>> rate.told(RunProgress("1", "path", "spark", iteration=10, delta=500, changed=8000, seconds=3.0))
    'iteration 10, 500 rows changed, 1,500 rows/s'
    """

    def __init__(self) -> None:
        self._last: RunProgress | None = None
        self._pace = ""

    def told(self, now: RunProgress) -> str:
        """How far ``now`` is."""
        last = self._last
        if last is None or last.run != now.run or last.iteration > now.iteration:
            self._last, self._pace = now, ""
        elif now.iteration > last.iteration and now.seconds > last.seconds:
            self._pace = f", {round((now.changed - last.changed) / (now.seconds - last.seconds)):,} rows/s"
            self._last = now
        return f"iteration {now.iteration:,}, {now.delta:,} rows changed{self._pace}"
