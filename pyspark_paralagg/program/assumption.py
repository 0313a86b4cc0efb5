"""Parse the user's assumptions (``assume="w >= 0"``) into expressions that the proof of monotonicity may use.

The grammar is one comparison of a column with a number. The column may have the name of its source in front, as in
``roads.w >= 0``. A list of conditions is their conjunction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.expr import Call, Col, Lit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark_paralagg.program.expr import Expr

_COMPARISONS = {">=": "GreaterThanOrEqual", ">": "GreaterThan", "<=": "LessThanOrEqual", "<": "LessThan"}
_NAME = r"`[^`]+`|[^\W\d]\w*"
_ASSUMPTION = re.compile(
    rf"\s*(?:(?P<source>{_NAME})\.)?(?P<column>{_NAME})\s*(?P<op>>=|<=|>|<)\s*"
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
)


def parse_assumptions(assume: str | Sequence[str] | None) -> tuple[Call, ...]:
    """Parse each condition into a call; raise ``PARALAGG_ASSUME_SYNTAX`` unless it compares a column with a number.

    The column's type is ``any``, because it is unknown at this point. Its name is that of the condition: ``roads.w``.

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
            hint='write assume="w >= 0" or "roads.w >= 0", with >=, >, <= or <, or a list of conditions',
        )
    number = match["number"]
    literal = Lit(int(number), "int") if re.fullmatch(r"[+-]?\d+", number) else Lit(float(number), "double")
    name = ".".join(part.strip("`") for part in (match["source"], match["column"]) if part is not None)
    return Call(_COMPARISONS[match["op"]], (Col(name, "any"), literal), "boolean")


def assumptions_about(source: str | None, names: Collection[str], assume: Iterable[Expr]) -> tuple[Call, ...]:
    """Return the assumptions about the columns ``names`` of a source, over the columns' own names.

    >>> found = assumptions_about("roads", ["w"], parse_assumptions(["roads.w >= 0", "tolls.w > 1", "w < 9"]))
    >>> [to_guard(a) for a in found]
    [('w', '`w` >= 0'), ('w', '`w` < 9')]
    """
    found = []
    for assumption in assume:
        fn, column, literal = _parts(assumption)
        own = column.name if column.name in names else column.name.removeprefix(f"{source}.")
        if own in names:
            found.append(Call(fn, (Col(own, column.type), literal), "boolean"))
    return tuple(found)


def to_guard(assumption: Call) -> tuple[str, str]:
    """Return the column of an assumption, and the assumption as SQL for the guard over the loaded rows.

    >>> to_guard(parse_assumptions("w > -1.5")[0])
    ('w', '`w` > -1.5')
    """
    called, column, literal = _parts(assumption)
    operator = next(s for s, fn in _COMPARISONS.items() if fn == called)
    return column.name, f"`{column.name}` {operator} {literal.value}"


def _parts(assumption: Expr) -> tuple[str, Col, Lit]:
    if isinstance(assumption, Call):
        column, literal = assumption.args
        if isinstance(column, Col) and isinstance(literal, Lit):
            return assumption.fn, column, literal
    raise TypeError(assumption)
