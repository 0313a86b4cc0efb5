"""Ask a Python worker of a session what it has: Python, the packages of the engine, and this package's version."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark_paralagg.session.running import is_connect
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    Question = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_PACKAGE = "pyspark-paralagg"
_NEEDED = (_PACKAGE, "numba", "numpy", "pyarrow")
_WAIT_SECONDS = (0.5, 4.0)
"""A task waits so long for others, and longer the second time: on a busy machine a worker of Python may start late."""
_SLOTS: WeakKeyDictionary[SparkSession, dict[int, int]] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[SparkSession, dict[str, Any]] = WeakKeyDictionary()


def obstacle(session: SparkSession) -> str | None:
    """Return why the workers of ``session`` cannot run the engine; None if they can."""
    older = older_server(session)
    if older is not None:
        return older
    missing = lacks(session, _NEEDED)
    if missing is not None:
        return missing
    versions = state_of(session)["versions"]
    if versions[_PACKAGE] != VERSION:
        return f"the Python workers have {_PACKAGE} {versions[_PACKAGE]}, but this process has {VERSION}"
    return None


def lacks(session: SparkSession, packages: tuple[str, ...]) -> str | None:
    """Return which of ``packages`` the workers of ``session`` do not have, or why none runs; None if they have all."""
    state = state_of(session)
    if "error" in state:
        return f"no Python worker of this session runs: {state['error']}"
    missing = [name for name in packages if state["versions"][name] is None]
    if not missing:
        return None
    lacking = " and no ".join(missing)
    return f"the Python workers (Python {state['python']}) have no {lacking}: install {_PACKAGE} {VERSION} there"


def older_server(session: SparkSession) -> str | None:
    """Return the versions if a Connect server is of an older minor than this client, which Spark does not support."""
    import pyspark  # noqa: PLC0415 - this module loads without pyspark

    if not is_connect(session):
        return None
    server, client = (tuple(map(int, v.split(".")[:2])) for v in (session.version, pyspark.__version__))
    if server >= client:
        return None
    return (
        f"the Spark Connect server has Spark {session.version}, but this client has pyspark {pyspark.__version__}: a "
        "client may be older than its server, not newer"
    )


def state_of(session: SparkSession) -> dict[str, Any]:
    """Return ``python`` and ``versions`` of a worker, or ``error``. A session is asked once, by a job of one row."""
    if session not in _KNOWN:
        _KNOWN[session] = _ask(session)
    return _KNOWN[session]


def tasks_at_once(session: SparkSession, wanted: int) -> int:
    """Return how many of ``wanted`` tasks run at the same time. A session is asked once for each number, by a job.

    If the answer is too small, a second job asks again and waits longer.
    """
    known = _SLOTS.setdefault(session, {})
    if wanted not in known:
        for seconds in _WAIT_SECONDS:
            rows = session.range(wanted, numPartitions=wanted).mapInArrow(_waiting(seconds), "start double, end double")
            times = [(row["start"], row["end"]) for row in rows.collect()]
            known[wanted] = max(sum(a <= start < b for a, b in times) for start, _ in times)
            if known[wanted] == wanted:
                break
    return known[wanted]


def _waiting(seconds: float) -> Question:
    """Return a function that notes when its task runs."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time  # noqa: PLC0415 - in the worker

        import pyarrow as pa  # noqa: PLC0415 - likewise

        start = time.time()
        for _ in batches:
            time.sleep(seconds)
            yield pa.RecordBatch.from_arrays([pa.array([start]), pa.array([time.time()])], names=["start", "end"])

    return wait


def _ask(session: SparkSession) -> dict[str, Any]:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - pyspark is optional

    try:
        row = session.range(1, numPartitions=1).mapInArrow(_question(_NEEDED), "state string").collect()[0]
    except PySparkException as problem:
        return {"error": _cause(str(problem))}
    state: dict[str, Any] = json.loads(row["state"])
    return state


def _cause(text: str) -> str:
    """Return the line of an exception that says the cause: the last one of a worker's traceback."""
    if "PYTHON_VERSION_MISMATCH" in text:
        line = next(line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        return f"{line.strip()} (this process has Python {platform.python_version()})"
    lines = [line.strip() for line in text.partition("JVM stacktrace")[0].splitlines() if line.strip()]
    return lines[-1] if lines else text


def _question(names: tuple[str, ...]) -> Question:
    """Return a function that is sent by value, so that a worker without this package can run it."""

    def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json  # noqa: PLC0415 - in the worker
        import platform  # noqa: PLC0415 - likewise
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - likewise

        import pyarrow as pa  # noqa: PLC0415 - likewise

        def of(name: str) -> str | None:
            try:
                return version(name)
            except PackageNotFoundError:
                return None

        for _ in batches:
            state = {"python": platform.python_version(), "versions": {name: of(name) for name in names}}
            yield pa.RecordBatch.from_arrays([pa.array([json.dumps(state)])], names=["state"])

    return answer
