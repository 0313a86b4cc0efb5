"""Every error that this package raises: a class, a stable code, the value, the place, a hint.

The codes are part of the public interface: they never change their meaning and tests pin them.
The JVM shim raises the same codes as the ``condition`` of a Spark exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ParalaggError(Exception):
    """Base of all errors of this package.

    ``code`` is stable (``PARALAGG_…``), ``value`` the offending value, ``place`` where it stands
    (a relation, a rule, a column, a line of a text), ``excerpt`` that line, ``hint`` what to do about it.
    ``position`` is the line and the column of a text, ``problems`` all that is wrong with it, in their order, this one
    first.

    >>> raise UsageError("PARALAGG_UNKNOWN_KEY", "no column 'nod' in base", value="nod", hint="did you mean 'node'?")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.UsageError: PARALAGG_UNKNOWN_KEY: no column 'nod' in base
    Hint: did you mean 'node'?
    """

    def __init__(  # noqa: PLR0913 - what a message is made of
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
    """The recursion itself went wrong while it ran: a limit, a cycle, an overflow."""


class EnvironmentProblem(ParalaggError):
    """Java, Spark, a jar or a conf is missing or does not fit."""


class ConflictError(ParalaggError):
    """Somebody else wrote at the same time and was first. Nothing was written; the same call may succeed again."""


class DatalogError(UsageError):
    """A Datalog text is wrong; shows the line itself with a mark below the place.

    >>> raise DatalogError("PARALAGG_UNKNOWN_RELATION", "relation `egde` is not known", place="line 1, column 9",
    ...     excerpt=excerpt("p(x) :- egde(x).", 1, 9, 4), hint="did you mean `edge`?")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.DatalogError: PARALAGG_UNKNOWN_RELATION: relation `egde` is not known (in line 1, column 9)
      p(x) :- egde(x).
              ^^^^
    Hint: did you mean `edge`?
    """


def together(problems: Sequence[ParalaggError]) -> ParalaggError:
    """One error that says all of ``problems``, which are of one text; it is the first of them in the text's order."""
    ordered = sorted(problems, key=lambda p: p.position or (0, 0))
    first = ordered[0]
    if len(ordered) == 1:
        return first
    parts = {"value": first.value, "place": first.place, "hint": first.hint, "excerpt": first.excerpt}
    out = type(first)(first.code, first.message, **parts)
    out.position = first.position
    out.problems = tuple(ordered)
    out.args = ("\n\n".join(str(p) for p in ordered),)
    return out


def error_of_rank(told: Mapping[str, Any]) -> ParalaggError:
    """What an MPI rank, or what supervises ranks, has told as JSON: ``class`` or ``kind``, and the parts of a message.

    A bug comes with rank, host and traceback.
    """
    known: dict[str | None, type[ParalaggError]] = {c.__name__: c for c in ParalaggError.__subclasses__()}
    kinds: dict[str | None, type[ParalaggError]] = {"usage": UsageError, "environment": EnvironmentProblem}
    kind = known.get(told.get("class")) or kinds.get(told.get("kind"), FixpointError)
    rank, trace = told.get("rank"), told.get("traceback")
    at = None if rank is None or trace is None else f"rank {rank} on {told.get('host')}"
    place = ", ".join(p for p in (told.get("place"), at) if p) or None
    text = {key: told.get(key) for key in ("value", "hint")}
    return kind(told["code"], told["message"], place=place, excerpt=trace and trace.rstrip(), **text)


def excerpt(source: str, line: int, column: int, width: int = 1) -> str:
    """The line of ``source``, and below it a mark of ``width`` characters; ``line`` and ``column`` count from 1."""
    lines = source.split("\n")  # the parser counts these, and no other sign, as ends of lines
    text = lines[line - 1].rstrip("\r").replace("\t", " ") if 0 < line <= len(lines) else ""
    mark = "^" * max(1, min(width, len(text) - column + 1))
    return f"  {text}\n  {' ' * (column - 1)}{mark}"
