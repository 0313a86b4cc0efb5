"""Regular expressions of texts: what is none, and the one of a whole text.

Soufflé's ``match`` is ECMAScript's and matches the whole text; Spark searches with Java's, the MPI engine with
Python's. What all of them know is the same; ``fault`` finds what none of them reads.
"""

from __future__ import annotations

import re

CODE = "PARALAGG_DATALOG_PATTERN"
HINT = "a backslash takes a sign as it is: \\( \\[ \\{ \\* \\+ \\? \\. \\| \\\\"

BEFORE, AFTER = "^(?:", r")(?![\s\S])"
"""Around a pattern of a whole text. ``$`` would match before a line break at the end, too."""

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_EMPTY_CLASS = re.compile(r"\[\^?\]")  # of ECMAScript; others take the bracket for a sign of the class
_REPETITION = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_ONLY_JAVAS = re.compile(r"\\[^dwsDWSbB.\\+*?()\[\]{}|^$/-]|\(\?[^:]|[*+?}]\+|&&|\[\[|\[:")


def is_portable(pattern: str) -> bool:
    r"""Whether Java and Python read ``pattern`` alike.

    >>> is_portable("[a-z]+"), is_portable(r"\p{L}")
    (True, False)
    """
    return _ONLY_JAVAS.search(pattern) is None


def fault(pattern: str) -> str | None:
    """What to say of a portable ``pattern`` that is none; None where it is one, or where only Java may know.

    >>> fault("a(")
    '`a(` is no regular expression'
    >>> fault("a{2}")
    """
    if not is_portable(pattern):
        return None
    message = f"`{pattern}` is no regular expression"
    plain = _ESCAPED_OR_CLASS.sub("", pattern)  # Python takes other braces as they are
    if "{" in _REPETITION.sub("", plain) or _EMPTY_CLASS.search(_ESCAPED.sub("", pattern)):
        return message
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return message
    return None


def whole(pattern: str) -> str:
    """The pattern that matches where ``pattern`` matches the whole text."""
    return f"{BEFORE}{pattern}{AFTER}"


def inner(pattern: str) -> str:
    """What ``whole`` was made of; another pattern as it is."""
    if pattern.startswith(BEFORE) and pattern.endswith(AFTER):
        return pattern[len(BEFORE) : -len(AFTER)]
    return pattern
