"""Progress bars of runs, by tqdm: in a terminal or a notebook, one for each run.

Listens to ``progress``. A bar stays when its run is over and then says what came of it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from pyspark_paralagg.report.run_progress import Rate

if TYPE_CHECKING:
    from pyspark_paralagg.report.run_progress import RunProgress

_OPEN = "{desc} [{elapsed}]"
_LIMITED = "{desc} {percentage:3.0f}%|{bar:20}| [{elapsed}]"


class _Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
    """Without tqdm's monitor, a thread that outlives all bars, and with a lock of its own, which needs no semaphore."""

    monitor_interval = 0


_Bar.set_lock(threading.RLock())


class Bars:
    """A listener of ``ra.progress`` that draws."""

    def __init__(self) -> None:
        self._bars: dict[str, tuple[_Bar, Rate]] = {}

    def __call__(self, told: RunProgress) -> None:
        """Moves the bar of a run; the first time it is made, at the end it is left as it is."""
        if told.run not in self._bars:
            if told.state != "running" and told.iteration == 0:
                return  # it failed before anything could be seen of it
            form = _OPEN if told.limit is None else _LIMITED
            bar = _Bar(total=told.limit, desc=f"{told.name}: loading", bar_format=form)
            self._bars[told.run] = bar, Rate()
        bar, rate = self._bars[told.run]
        bar.n = told.iteration
        bar.set_description_str(f"{told.name}: {_words(told, rate)}", refresh=False)
        bar.refresh()
        if told.state != "running":
            bar.close()
            del self._bars[told.run]

    def close(self) -> None:
        """Leaves what is drawn as it is."""
        for bar, _ in self._bars.values():
            bar.close()
        self._bars.clear()


def _words(told: RunProgress, rate: Rate) -> str:
    if told.state == "running":
        return "loading" if told.iteration == 0 else rate.told(told)
    ended = f"{told.iteration:,} iterations, {told.total:,} rows"
    return ended if told.state == "done" else f"failed after {ended}"


def can_be_seen() -> bool:
    """Whether somebody looks: standard error is a terminal, or this is a notebook."""
    if sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"
