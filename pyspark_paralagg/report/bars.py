"""Draw the progress of runs with tqdm, one bar for each run, in a terminal or a notebook.

``Bars`` is a listener of ``progress``. When a run ends, its bar stays and shows the result.
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
    """A bar without tqdm's monitor thread, which outlives all bars, and with a lock that needs no semaphore."""

    monitor_interval = 0


_Bar.set_lock(threading.RLock())


class Bars:
    """A listener of ``ra.progress`` that draws one bar for each run."""

    def __init__(self) -> None:
        self._bars: dict[str, tuple[_Bar, Rate]] = {}

    def __call__(self, update: RunProgress) -> None:
        """Update the bar of a run: create it for the first update, close it for the last."""
        if update.run not in self._bars:
            if update.state != "running" and update.iteration == 0:
                return  # it failed before it had anything to show
            bar_format = _OPEN if update.limit is None else _LIMITED
            bar = _Bar(total=update.limit, desc=f"{update.name}: loading", bar_format=bar_format)
            self._bars[update.run] = bar, Rate()
        bar, rate = self._bars[update.run]
        bar.n = update.iteration
        bar.set_description_str(f"{update.name}: {_description(update, rate)}", refresh=False)
        bar.refresh()
        if update.state != "running":
            bar.close()
            del self._bars[update.run]

    def close(self) -> None:
        """Close all bars; they stay as they are."""
        for bar, _ in self._bars.values():
            bar.close()
        self._bars.clear()


def _description(update: RunProgress, rate: Rate) -> str:
    if update.state == "running":
        return "loading" if update.iteration == 0 else rate.describe(update)
    result = f"{update.iteration:,} iterations, {update.total:,} rows"
    return result if update.state == "done" else f"failed after {result}"


def is_visible() -> bool:
    """Return whether bars are visible: standard error is a terminal, or this is a notebook."""
    if sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"
