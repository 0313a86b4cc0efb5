"""Convert exceptions of a run to errors of one line: the innermost cause's code and message.

Errors of the shim, of Spark and of a task arrive as exceptions of PySpark or py4j. Some are wrapped in another one with
pages of Java's stack.
"""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import EnvironmentProblem, FixpointError
from pyspark_paralagg.program import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARALAGG_ERROR = re.compile(r"\[(?P<code>PARALAGG_[A-Z0-9_]+)\] (?P<message>[^\n]*)")
_SPARK_ERROR = re.compile(r"\[(?P<code>[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] (?P<message>[^\n]*)")
_JAVA_PATTERN_ERROR = re.compile(r"PatternSyntaxException: [^\n]* near index \d+\n(?P<pattern>[^\n]*)")
_PATTERN_ERROR = re.compile(
    r"\[INVALID_PARAMETER_VALUE\.PATTERN\] [^\n]* is invalid: '(?P<pattern>.*?)'\. SQLSTATE", re.DOTALL
)
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")
# Spark's advice about SQL and confs does not apply to a text.
_ADVICE = re.compile(r" (?:Use [`']try_|If necessary set \")[^\n]*")
_FRAGMENT = re.compile(r"^== SQL [^\n]* ==\n(?P<fragment>[^\n]+)", re.MULTILINE)
_PLACE = re.compile(r"/\* (?P<place>.*?) \*/ ")  # the rule's place, which `lowering` writes into expressions


@contextmanager
def as_fixpoint_errors(place: str | None = None) -> Iterator[None]:
    """Convert Spark's exceptions to ``FixpointError`` with the innermost cause's code; ``place`` is the relation."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - slow to load
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if place and isinstance(problem, Py4JNetworkError):
            raise  # the JVM has ended, whatever the relation
        raise summary(str(problem), place) from problem


def interruption(problem: BaseException | None) -> KeyboardInterrupt | SystemExit | None:
    """Return the interrupt behind ``problem``, if any: cleaning up after an interrupt may raise without a JVM."""
    while problem is not None and not isinstance(problem, (KeyboardInterrupt, SystemExit)):
        problem = problem.__context__
    return problem


def system_problem(problem: OSError) -> EnvironmentProblem:
    r"""Convert an ``OSError`` of a file or folder to an error with a code.

    >>> print(system_problem(OSError(28, "No space left on device", "/tmp/rows.arrow")))
    PARALAGG_DISK_FULL: No space left on device (in /tmp/rows.arrow)
    Hint: free space on that disk, or set TMPDIR to a folder on another disk
    """
    is_full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    code = "PARALAGG_DISK_FULL" if is_full else "PARALAGG_SYSTEM"
    hint = "free space on that disk, or set TMPDIR to a folder on another disk" if is_full else None
    place = None if problem.filename is None else str(problem.filename)
    return EnvironmentProblem(code, problem.strerror or str(problem), value=problem.errno, place=place, hint=hint)


def _invalid_pattern(text: str) -> str | None:
    """Return the invalid pattern that Spark reports with escapes (of rows), or Java (of the text)."""
    if escaped := _PATTERN_ERROR.search(text):
        return patterns.inner(re.sub(r"\\(.)", r"\1", escaped["pattern"], flags=re.DOTALL))
    verbatim = _JAVA_PATTERN_ERROR.search(text)
    return patterns.inner(verbatim["pattern"]) if verbatim else None


def summary(text: str, place: str | None = None) -> FixpointError:
    r"""Return the error that the exception text ``text`` contains.

    >>> print(summary("Job aborted: Task 0 failed: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat ...", "q"))
    PARALAGG_RUN_FAILED: DIVIDE_BY_ZERO: Division by zero. (in q)
    """
    paralagg_error = _PARALAGG_ERROR.search(text)
    if paralagg_error:
        message, _, hint = paralagg_error["message"].partition(" Hint: ")
        return FixpointError(paralagg_error["code"], _SQL_STATE.sub("", message), hint=_SQL_STATE.sub("", hint) or None)
    pattern = _invalid_pattern(text)
    if pattern is not None:
        message = f"`{pattern}` is not a regular expression"
        return FixpointError("PARALAGG_DATALOG_PATTERN", message, value=pattern, place=place, hint=patterns.HINT)
    spark_error = _SPARK_ERROR.search(text)
    lines = text.strip().splitlines() or [""]
    message = f"{spark_error['code']}: {_ADVICE.sub('', spark_error['message'])}" if spark_error else lines[0]
    fragment = _FRAGMENT.search(text)
    shown = fragment["fragment"].replace("`", "") if fragment else ""
    hint = f"correct the data or the expression {_PLACE.sub('', shown)}" if fragment else None
    error_place = ", ".join([p["place"] for p in _PLACE.finditer(shown)][:1] + [place] * bool(place)) or None
    return FixpointError("PARALAGG_RUN_FAILED", _SQL_STATE.sub("", message), place=error_place, hint=hint)
