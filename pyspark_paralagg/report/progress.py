"""How far recursions are while they run: ``with ra.progress():``.

One mechanism for all who watch. A thread asks the shim ten times a second what has happened to runs (``Bridge.runs``),
and takes what the DataFrame executor has told of its rounds (``publish``). Both are a :class:`RunProgress` that goes,
from that thread, to whoever listens: bars (``bars``), a function of the user's, the command line. Without a watch there
is no thread, and nobody is told.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, UsageError
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_LOG = logging.getLogger("pyspark_paralagg")
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 5.0
"""The longest that the end of a watch waits for Spark's listeners to hear that a query has ended."""
_BUS_MILLIS = 10
_OF_ALL_NEWS = 1 << 62


Listener = Callable[[RunProgress], object]


@contextmanager
def progress(listener: Listener | None = None, *, spark: SparkSession | None = None) -> Iterator[None]:
    """Shows, while the context lasts, how far the recursions are that run meanwhile: a bar for each.

    Bars are drawn on standard error where that is a terminal, or in the notebook, with iteration, rows changed, and
    rows a second; ``spark.paralagg.progress`` says ``on`` for everywhere and ``off`` for nowhere.

    With a ``listener`` nothing is drawn: it is called with a :class:`RunProgress` for each run that has moved, ten
    times a second at most, and of each end. It is called in another thread, one call at a time; the end of the context
    waits for its last call. One that raises is logged, and not called again; the query goes on.

    >>> with ra.progress():                                                               # doctest: +SKIP
    ...     dist.write.parquet("distances")
    >>> with ra.progress(lambda run: print(run.iteration, run.delta)):                    # doctest: +SKIP
    ...     dist.count()

    Every recursion of the JVM is heard of, also those that other threads run. ``spark`` is the session (default: the
    active one); without one ``UsageError`` ``PARALAGG_NO_SESSION`` is raised. Where the session has no shim (Spark
    Connect), only the DataFrame executor can be watched, which is what runs there. Runs by bitmaps, or value by value,
    do not tell of single iterations, only of their beginning and end.
    """
    session = spark or _active_session()
    if listener is not None:
        with _watched(_Watch(listener), session):
            yield
        return
    from pyspark_paralagg.report.bars import Bars, can_be_seen  # noqa: PLC0415 - tqdm is slow to load

    wanted = conf.read(session, conf.PROGRESS)
    if wanted == "off" or (wanted == "auto" and not can_be_seen()):
        yield
        return
    bars = Bars()
    try:
        with _watched(_Watch(bars), session):
            yield
    finally:
        bars.close()


def publish(told: RunProgress) -> None:
    """Lets all who watch know of a run that this process iterates itself; returns at once."""
    for watch in tuple(_WATCHES):
        watch.hear(told)


class _Watch:
    """One listener, and what it has not been told yet: of each run the last that was heard."""

    def __init__(self, listener: Listener) -> None:
        self._listener: Listener | None = listener
        self._lock = threading.Lock()
        self._untold: dict[str, RunProgress] = {}
        self._ended = threading.Event()

    def hear(self, told: RunProgress) -> None:
        """The listener is told at the next look: a listener that is slow, or runs a query, holds up no other run."""
        with self._lock:
            self._untold[told.run] = told

    def follow(self, shim: _Shim | None) -> None:
        """The work of the watch's thread: tells what has been heard until the watch is stopped, then what is left."""
        if shim is not None:
            for news in shim.follow(self._ended):
                for told in news:
                    self.hear(told)
                self._tell()
        while not self._ended.wait(_LOOK_SECONDS):  # without a shim, or when its session has ended
            self._tell()
        self._tell()

    def stop(self) -> None:
        """The thread ends after the last news."""
        self._ended.set()

    def _tell(self) -> None:
        with self._lock:
            news, self._untold = self._untold, {}
        for told in news.values():
            if self._listener is None:
                return
            try:
                self._listener(told)
            except Exception:  # noqa: BLE001 - a function of the user's may raise anything
                _LOG.exception("what listens to the progress of runs failed, and is not called again")
                self._listener = None


class _Shim:
    """What the shim of a session tells of the runs in its JVM, from now on."""

    def __init__(self, session: SparkSession) -> None:
        self._bridge = bridge(session)
        self._bus = session.sparkContext._jsc.sc().listenerBus()  # noqa: SLF001 - pyspark has no public way to it
        self._seen = json.loads(self._bridge.runs(_OF_ALL_NEWS))["now"]
        self._live: set[str] = set()

    def follow(self, ended: threading.Event) -> Iterator[list[RunProgress]]:
        """What has happened since the time before, until ``ended``; then what is left to tell."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

        try:
            while not ended.wait(_LOOK_SECONDS):
                yield self._news()
            yield self._last_news()
        except (Py4JError, OSError) as problem:  # the session has ended
            _LOG.debug("nothing more is heard of runs: %s", problem)

    def _news(self) -> list[RunProgress]:
        found = json.loads(self._bridge.runs(self._seen))
        self._seen = found["now"]
        news = [_progress_of(state) for state in found["runs"]]
        for told in news:
            (self._live.add if told.state == "running" else self._live.discard)(told.run)
        return news

    def _last_news(self) -> list[RunProgress]:
        """Waits for what is left to tell of runs that have ended, and not for those that go on elsewhere.

        When a query's caller is back, Spark has queued the event of its end, and the shim hears of it a little later;
        much later where the machine is busy. A run that is alive when all events have arrived goes on.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        news = self._news()
        have_arrived = False
        while self._live and not have_arrived and time.monotonic() < until:
            have_arrived = self._events_have_arrived()
            news += self._news()
        return news

    def _events_have_arrived(self) -> bool:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - slow to load

        try:
            self._bus.waitUntilEmpty(_BUS_MILLIS)
        except Py4JJavaError:  # a TimeoutException
            return False
        return True


_WATCHES: list[_Watch] = []


@contextmanager
def _watched(watch: _Watch, session: SparkSession) -> Iterator[None]:
    thread = threading.Thread(target=watch.follow, args=(_shim_of(session),), name="paralagg-progress", daemon=True)
    thread.start()
    _WATCHES.append(watch)
    try:
        yield
    finally:
        _WATCHES.remove(watch)
        watch.stop()
        thread.join()


def _shim_of(session: SparkSession) -> _Shim | None:
    if is_connect(session):
        return None
    try:
        return _Shim(session)
    except EnvironmentProblem as problem:
        _LOG.info("only the DataFrame executor's runs are heard of: %s", problem.message)
        return None


def _progress_of(state: dict[str, Any]) -> RunProgress:
    return RunProgress(**{**state, "run": f"{state['backend']}-{state['run']}"})


def _active_session() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is optional

    session = SparkSession.getActiveSession()
    if session is None:
        message = "there is no active Spark session whose recursions could be watched"
        raise UsageError("PARALAGG_NO_SESSION", message, place="spark", hint="start one first, or pass it as spark=")
    return session
