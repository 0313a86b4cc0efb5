"""Refuse a step that Python cannot analyse; plain DataFrames run it, with the message as the reason."""

from __future__ import annotations

from typing import NoReturn

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.instead import instead_of


def refuse(what: str, value: object = None, hint: str | None = None) -> NoReturn:
    """Raise ``UnsupportedError`` ``PARALAGG_STEP_UNSUPPORTED`` for a part of a step."""
    raise UnsupportedError(
        "PARALAGG_STEP_UNSUPPORTED",
        f"{what} cannot run inside the loop",
        value=value or what,
        hint=hint or instead_of(what),
    )
