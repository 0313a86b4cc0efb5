"""What Spark raises in the middle of a run, as one line: the code and the message under all of its layers.

Beside ``run``. The shim's errors, Spark's own and a task's failure arrive as PySpark's or as py4j's exceptions, some
wrapped in another with pages of Java's stack.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN = re.compile(r"\[(?P<code>PARALAGG_[A-Z_]+)\] (?P<message>[^\n]*)")
_SPARKS = re.compile(r"\[(?P<code>[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] (?P<message>[^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


@contextmanager
def as_fixpoint_errors() -> Iterator[None]:
    """Exceptions of Spark become ``FixpointError`` with the innermost cause's code."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise summary(str(problem)) from problem


def summary(text: str) -> FixpointError:
    r"""The error that ``text`` is about.

    >>> print(summary("Job aborted: Task 0 failed: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat ..."))
    PARALAGG_RUN_FAILED: DIVIDE_BY_ZERO: Division by zero.
    """
    own = _OWN.search(text)
    if own:
        message, _, hint = own["message"].partition(" Hint: ")
        return FixpointError(own["code"], _STATE.sub("", message), hint=_STATE.sub("", hint) or None)
    sparks = _SPARKS.search(text)
    lines = text.strip().splitlines() or [""]
    message = f"{sparks['code']}: {sparks['message']}" if sparks else lines[0]
    return FixpointError("PARALAGG_RUN_FAILED", _STATE.sub("", message))
