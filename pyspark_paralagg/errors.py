"""Define the errors of this package: a class, a stable code, the value, the place, a hint.

The codes are part of the public interface: they never change their meaning, and tests pin them.
The JVM shim raises the same codes as the ``condition`` of a Spark exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ParalaggError(Exception):
    """The base class of all errors of this package.

    ``code`` is stable (``PARALAGG_…``), and ``value`` is the offending value. ``place`` is its place: a relation, a
    rule, a column, a line of a text. ``excerpt`` is that line, and ``hint`` says how to correct the error. ``position``
    is line and column in a text. ``problems`` lists all errors of the text in their order, beginning with this one.

    >>> raise UsageError("PARALAGG_UNKNOWN_KEY", "no column 'nod' in base", value="nod", hint="did you mean 'node'?")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.UsageError: PARALAGG_UNKNOWN_KEY: no column 'nod' in base
    Hint: did you mean 'node'?
    """

    def __init__(  # noqa: PLR0913 - the parts of a message
        self,
        code: str,
        message: str,
        *,
        value: Any = None,  # noqa: ANN401 - the offending value may be anything
        place: str | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        self.code = code
        self.message = message
        self.value = value
        self.place = place
        self.hint = hint
        self.excerpt = excerpt
        self.position: tuple[int, int] | None = None
        self.may_follow_from_others = False  # another clause, which has a problem of its own, may be what it lacks
        self.problems: tuple[ParalaggError, ...] = (self,)
        text = f"{code}: {message}"
        if place:
            text += f" (in {place})"
        if excerpt:
            text += f"\n{excerpt}"
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
    """The recursion failed while it ran: a limit, a cycle, an overflow."""


class EnvironmentProblem(ParalaggError):
    """Java, Spark, a jar or a conf is missing or does not fit."""


class ConflictError(ParalaggError):
    """Another writer committed first. Nothing was written; the same call may succeed when repeated."""


class DatalogError(UsageError):
    """A Datalog text is wrong; the message shows the line with a mark below the place.

    >>> raise DatalogError("PARALAGG_UNKNOWN_RELATION", "relation `egde` is not known", place="line 1, column 9",
    ...     excerpt=excerpt("p(x) :- egde(x).", 1, 9, 4), hint="did you mean `edge`?")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.DatalogError: PARALAGG_UNKNOWN_RELATION: relation `egde` is not known (in line 1, column 9)
      p(x) :- egde(x).
              ^^^^
    Hint: did you mean `edge`?
    """


def combine_errors(problems: Sequence[ParalaggError]) -> ParalaggError:
    """Return one error with the messages of all ``problems`` of a text; class and code are those of the first."""
    ordered = sorted(problems, key=lambda p: p.position or (0, 0))
    first = ordered[0]
    if len(ordered) == 1:
        return first
    parts = {"value": first.value, "place": first.place, "hint": first.hint, "excerpt": first.excerpt}
    combined = type(first)(first.code, first.message, **parts)
    combined.position = first.position
    combined.problems = tuple(ordered)
    combined.args = ("\n\n".join(str(p) for p in ordered),)
    return combined


def error_from_rank(fields: Mapping[str, Any]) -> ParalaggError:
    """Return the error that an MPI rank or its supervisor has sent as JSON ``fields``.

    They have ``class`` or ``kind``, and the parts of the message; for a bug also rank, host and traceback.
    """
    classes: dict[str | None, type[ParalaggError]] = {c.__name__: c for c in ParalaggError.__subclasses__()}
    kinds: dict[str | None, type[ParalaggError]] = {"usage": UsageError, "environment": EnvironmentProblem}
    error = classes.get(fields.get("class")) or kinds.get(fields.get("kind"), FixpointError)
    rank, trace = fields.get("rank"), fields.get("traceback")
    sender = None if rank is None or trace is None else f"rank {rank} on {fields.get('host')}"
    place = ", ".join(p for p in (fields.get("place"), sender) if p) or None
    text = {key: fields.get(key) for key in ("value", "hint")}
    return error(fields["code"], fields["message"], place=place, excerpt=trace and trace.rstrip(), **text)


def excerpt(source: str, line: int, column: int, width: int = 1) -> str:
    """Return the line of ``source`` and a mark of ``width`` characters below; ``line`` and ``column`` count from 1."""
    lines = source.split("\n")  # the parser counts no other character as the end of a line
    text = lines[line - 1].rstrip("\r").replace("\t", " ") if 0 < line <= len(lines) else ""
    mark = "^" * max(1, min(width, len(text) - column + 1))
    return f"  {text}\n  {' ' * (column - 1)}{mark}"
