"""What Spark raises in the middle of a run, as one line: the code and the message under all of its layers.

Beside ``run``. The shim's errors, Spark's own and a task's failure arrive as PySpark's or as py4j's exceptions, some
wrapped in another with pages of Java's stack.
"""

from __future__ import annotations

import errno
import logging
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import EnvironmentProblem, FixpointError
from pyspark_paralagg.program import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN = re.compile(r"\[(?P<code>PARALAGG_[A-Z_]+)\] (?P<message>[^\n]*)")
_SPARKS = re.compile(r"\[(?P<code>[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] (?P<message>[^\n]*)")
_PATTERN = re.compile(r"PatternSyntaxException: [^\n]* near index \d+\n(?P<pattern>[^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


_ADVICE = re.compile(r" (?:Use [`']try_|If necessary set \")[^\n]*")  # about SQL and confs, for those who write them
_FRAGMENT = re.compile(r"^== SQL [^\n]* ==\n(?P<fragment>[^\n]+)", re.MULTILINE)
_PLACE = re.compile(r"/\* (?P<place>.*?) \*/ ")  # where the rule stands, which `lowering` writes into expressions
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def as_fixpoint_errors(place: str | None = None) -> Iterator[None]:
    """Exceptions of Spark become ``FixpointError`` with the innermost cause's code; ``place`` is what was computed."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - slow to load
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if place and isinstance(problem, Py4JNetworkError):
            raise  # no matter of a relation: the JVM is gone
        raise summary(str(problem), place) from problem


def interruption(problem: BaseException | None) -> KeyboardInterrupt | SystemExit | None:
    """What asked the run to end, where that is behind ``problem``: what cleans up after it may fail without a JVM."""
    while problem is not None and not isinstance(problem, (KeyboardInterrupt, SystemExit)):
        problem = problem.__context__
    return problem


def system_problem(problem: OSError) -> EnvironmentProblem:
    r"""Return the error of a file or folder that the system refuses, as one with a code.

    >>> print(system_problem(OSError(28, "No space left on device", "/tmp/rows.arrow")))
    PARALAGG_DISK_FULL: No space left on device (in /tmp/rows.arrow)
    Hint: free space there, or where TMPDIR says that temporary files go
    """
    is_full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    code = "PARALAGG_DISK_FULL" if is_full else "PARALAGG_SYSTEM"
    hint = "free space there, or where TMPDIR says that temporary files go" if is_full else None
    place = None if problem.filename is None else str(problem.filename)
    return EnvironmentProblem(code, problem.strerror or str(problem), value=problem.errno, place=place, hint=hint)


@contextmanager
def without_sparks_records() -> Iterator[None]:
    """PySpark and py4j write exceptions with all of their stacks to standard error before they raise them; not here."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415 - slow to load

    loggers: list[logging.Logger] = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    root = logging.getLogger()  # py4j's are written there
    root.addFilter(_is_not_py4js)
    try:
        yield
    finally:
        root.removeFilter(_is_not_py4js)
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def summary(text: str, place: str | None = None) -> FixpointError:
    r"""The error that ``text`` is about.

    >>> print(summary("Job aborted: Task 0 failed: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat ...", "q"))
    PARALAGG_RUN_FAILED: DIVIDE_BY_ZERO: Division by zero. (in q)
    """
    own = _OWN.search(text)
    if own:
        message, _, hint = own["message"].partition(" Hint: ")
        return FixpointError(own["code"], _STATE.sub("", message), hint=_STATE.sub("", hint) or None)
    pattern = _PATTERN.search(text)
    if pattern:
        message = f"`{patterns.inner(pattern['pattern'])}` is no regular expression"
        return FixpointError(
            "PARALAGG_DATALOG_PATTERN", message, value=pattern["pattern"], place=place, hint=patterns.HINT
        )
    sparks = _SPARKS.search(text)
    lines = text.strip().splitlines() or [""]
    message = f"{sparks['code']}: {_ADVICE.sub('', sparks['message'])}" if sparks else lines[0]
    fragment = _FRAGMENT.search(text)
    shown = fragment["fragment"].replace("`", "") if fragment else ""
    hint = f"the expression is {_PLACE.sub('', shown)}" if fragment else None
    at = ", ".join([p["place"] for p in _PLACE.finditer(shown)][:1] + [place] * bool(place)) or None
    return FixpointError("PARALAGG_RUN_FAILED", _STATE.sub("", message), place=at, hint=hint)
