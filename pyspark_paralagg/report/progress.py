"""Report the progress of running recursions to listeners: ``with ra.progress():``.

Each ``with`` has a thread. Ten times a second it polls the shim for updates of runs (``Bridge.runs``) and takes the
updates that the DataFrame executor has published (``publish``). It passes each one to the listener as a
:class:`RunProgress`. Listeners are bars (``bars``), a function of the user, or the command line. Outside of such a
context there is no thread, and updates are dropped.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import active_session, is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_LOG = logging.getLogger("pyspark_paralagg")
_POLL_SECONDS = 0.1
_DRAIN_TIMEOUT_SECONDS = 5.0
"""The longest time that the end of a context waits for Spark's listener bus to deliver the end of a query."""
_BUS_MILLIS = 10
_NO_UPDATES = 1 << 62
"""An update number greater than all: ``Bridge.runs`` then returns only the number of the last update."""


Listener = Callable[[RunProgress], object]


@contextmanager
def progress(listener: Listener | None = None, *, spark: SparkSession | None = None) -> Iterator[None]:
    """Show the progress of all recursions that run while the context is open: one bar for each run.

    Bars show the iteration, the changed rows, and the rows a second. They are drawn on standard error if it is a
    terminal, and in notebooks. ``spark.paralagg.progress`` set to ``on`` draws them anywhere, ``off`` nowhere.

    With a ``listener`` no bars are drawn. It is called with a :class:`RunProgress` for each run that has advanced, at
    most ten times a second, and for the end of each run. Calls come from another thread, one at a time; the end of the
    context waits for the last call. If the listener raises, the error is logged and the listener is not called again;
    the query continues.

    >>> with ra.progress():                                                               # doctest: +SKIP
    ...     dist.write.parquet("distances")
    >>> with ra.progress(lambda run: print(run.iteration, run.delta)):                    # doctest: +SKIP
    ...     dist.count()

    The context covers every recursion of the JVM, including those that other threads run. ``spark`` is the session
    (default: the active one); without one ``UsageError`` ``PARALAGG_NO_SESSION`` is raised. Over Spark Connect the
    context covers plain DataFrames only: other runs are one Spark job, whose tasks Spark's own progress handlers show,
    and their report comes back with the rows. Runs by bitmaps, or value by value, report their start and end, but no
    single iterations.
    """
    session = spark or active_session("ra.progress")
    if listener is not None:
        with _open_watch(_Watch(listener), session):
            yield
        return
    from pyspark_paralagg.report.bars import Bars, is_visible  # noqa: PLC0415 - tqdm is slow to load

    setting = conf.read(session, conf.PROGRESS)
    if setting == "off" or (setting == "auto" and not is_visible()):
        yield
        return
    bars = Bars()
    try:
        with _open_watch(_Watch(bars), session):
            yield
    finally:
        bars.close()


def publish(update: RunProgress) -> None:
    """Pass an update of a run of the DataFrame executor to all watches; return at once."""
    for watch in tuple(_WATCHES):
        watch.receive(update)


class _Watch:
    """One listener and its pending updates: the newest of each run that it has not received yet."""

    def __init__(self, listener: Listener) -> None:
        self._listener: Listener | None = listener
        self._lock = threading.Lock()
        self._pending: dict[str, RunProgress] = {}
        self._ended = threading.Event()

    def receive(self, update: RunProgress) -> None:
        """Store the update for the next poll, so that a slow listener, or one that runs a query, delays no run."""
        with self._lock:
            self._pending[update.run] = update

    def follow(self, shim: _Shim | None) -> None:
        """Run in the watch's thread: pass updates to the listener until ``stop``, then the remaining ones."""
        if shim is not None:
            for updates in shim.follow(self._ended):
                for update in updates:
                    self.receive(update)
                self._notify()
        while not self._ended.wait(_POLL_SECONDS):  # without a shim, or when its session has ended
            self._notify()
        self._notify()

    def stop(self) -> None:
        """End the thread after the last update."""
        self._ended.set()

    def _notify(self) -> None:
        with self._lock:
            updates, self._pending = self._pending, {}
        for update in updates.values():
            if self._listener is None:
                return
            try:
                self._listener(update)
            except Exception:  # noqa: BLE001 - a user's function may raise anything
                _LOG.exception("the listener of ra.progress failed and is not called again")
                self._listener = None


class _Shim:
    """The updates of the runs in a session's JVM, from the creation of this object on."""

    def __init__(self, session: SparkSession) -> None:
        self._bridge = bridge(session)
        self._bus = session.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001 - pyspark has no public way to it
        self._last_number = json.loads(self._bridge.runs(_NO_UPDATES))["now"]
        self._running: set[str] = set()

    def follow(self, ended: threading.Event) -> Iterator[list[RunProgress]]:
        """Yield the updates since the previous poll, until ``ended`` is set; then yield the remaining ones."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

        try:
            while not ended.wait(_POLL_SECONDS):
                yield self._new_updates()
            yield self._last_updates()
        except (Py4JError, OSError) as problem:  # the session has ended
            _LOG.debug("progress of runs is no longer available: %s", problem)

    def _new_updates(self) -> list[RunProgress]:
        answer = json.loads(self._bridge.runs(self._last_number))
        self._last_number = answer["now"]
        updates = [_progress_from_json(state) for state in answer["runs"]]
        for update in updates:
            (self._running.add if update.state == "running" else self._running.discard)(update.run)
        return updates

    def _last_updates(self) -> list[RunProgress]:
        """Wait for the last updates of runs that have ended, but not for runs that other threads continue.

        When a query returns, Spark has queued the event of its end. The shim receives the event a little later, on a
        busy machine much later. A run that is still running after all queued events have arrived is not waited for.
        """
        deadline = time.monotonic() + _DRAIN_TIMEOUT_SECONDS
        updates = self._new_updates()
        have_arrived = False
        while self._running and not have_arrived and time.monotonic() < deadline:
            have_arrived = self._events_have_arrived()
            updates += self._new_updates()
        return updates

    def _events_have_arrived(self) -> bool:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - slow to load

        try:
            self._bus.waitUntilEmpty(_BUS_MILLIS)
        except Py4JJavaError:  # a TimeoutException
            return False
        return True


_WATCHES: list[_Watch] = []


@contextmanager
def _open_watch(watch: _Watch, session: SparkSession) -> Iterator[None]:
    thread = threading.Thread(target=watch.follow, args=(_open_shim(session),), name="paralagg-progress", daemon=True)
    thread.start()
    _WATCHES.append(watch)
    try:
        yield
    finally:
        _WATCHES.remove(watch)
        watch.stop()
        thread.join()


def _open_shim(session: SparkSession) -> _Shim | None:
    if is_connect(session):
        return None
    try:
        return _Shim(session)
    except EnvironmentProblem as problem:
        _LOG.info("progress shows only runs of the DataFrame executor: %s", problem.message)
        return None


def _progress_from_json(state: dict[str, Any]) -> RunProgress:
    return RunProgress(**{**state, "run": f"{state['backend']}-{state['run']}"})
