"""Parse the user's assumptions (``assume="w >= 0"``) into expressions that the proof of monotonicity may use.

The grammar is one comparison of a column with a number. A list of conditions is their conjunction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.expr import Call, Col, Lit

_COMPARISONS = {">=": "GreaterThanOrEqual", ">": "GreaterThan", "<=": "LessThanOrEqual", "<": "LessThan"}
_ASSUMPTION = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>[^\W\d]\w*))\s*(?P<op>>=|<=|>|<)\s*"
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)


def parse_assumptions(assume: str | Sequence[str] | None) -> tuple[Call, ...]:
    """Parse each condition into a call; raise ``PARALAGG_ASSUME_SYNTAX`` unless it compares a column with a number.

    The column's type is ``any``, because it is unknown at this point.

    >>> [call] = parse_assumptions("w >= 0")
    >>> call.fn, call.args
    ('GreaterThanOrEqual', (Col(name='w', type='any', nullable=True), Lit(value=0, type='int', handle=None)))
    """
    if assume is None:
        return ()
    if isinstance(assume, str) or not isinstance(assume, Sequence):  # such as a Column, which has no truth value
        return (_parse(assume),)
    return tuple(_parse(text) for text in assume)


def _parse(text: str) -> Call:
    match = _ASSUMPTION.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise UsageError(
            "PARALAGG_ASSUME_SYNTAX",
            f"{text!r} is not a comparison of a column with a number",
            value=text,
            place="assume",
            hint='write assume="w >= 0", with >=, >, <= or <, or a list of conditions',
        )
    number = match["number"]
    literal = Lit(int(number), "int") if re.fullmatch(r"[+-]?\d+", number) else Lit(float(number), "double")
    return Call(_COMPARISONS[match["op"]], (Col(match["quoted"] or match["plain"], "any"), literal), "boolean")


def to_guard(assumption: Call) -> tuple[str, str]:
    """Return the column of an assumption, and the assumption as SQL for the guard over the loaded rows.

    >>> to_guard(parse_assumptions("w > -1.5")[0])
    ('w', '`w` > -1.5')
    """
    column, literal = assumption.args
    if not (isinstance(column, Col) and isinstance(literal, Lit)):
        raise TypeError(assumption)
    operator = next(s for s, fn in _COMPARISONS.items() if fn == assumption.fn)
    return column.name, f"`{column.name}` {operator} {literal.value}"
