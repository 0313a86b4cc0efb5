"""Every error that this package raises: a class, a stable code, the value, the place, a hint.

The codes are part of the public interface: they never change their meaning and tests pin them.
The JVM shim raises the same codes as the ``condition`` of a Spark exception.
"""

from __future__ import annotations

from typing import Any


class ParalaggError(Exception):
    """Base of all errors of this package.

    ``code`` is stable (``PARALAGG_…``), ``value`` the offending value, ``place`` where it stands
    (a relation, a rule, a column), ``hint`` what to do about it.

    >>> raise UsageError("PARALAGG_UNKNOWN_KEY", "no column 'nod' in base", value="nod", hint="did you mean 'node'?")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.UsageError: PARALAGG_UNKNOWN_KEY: no column 'nod' in base
    Hint: did you mean 'node'?
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        value: Any = None,  # noqa: ANN401 - the offending value may be anything
        place: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.value = value
        self.place = place
        self.hint = hint
        text = f"{code}: {message}"
        if place:
            text += f" (in {place})"
        if hint:
            text += f"\nHint: {hint}"
        super().__init__(text)


class UsageError(ParalaggError):
    """The call itself is wrong: names, arguments, schemas."""


class VerificationError(ParalaggError):
    """The step is well formed, but the aggregate may not recurse through it."""


class UnsupportedError(ParalaggError):
    """The chosen executor cannot run this program; the message says why."""


class FixpointError(ParalaggError):
    """The recursion itself went wrong while it ran: a limit, a cycle, an overflow."""


class EnvironmentProblem(ParalaggError):
    """Java, Spark, a jar or a conf is missing or does not fit."""
