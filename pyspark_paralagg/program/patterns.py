"""Check the regular expressions of Datalog texts, and anchor them to whole strings.

Soufflé's ``match`` has ECMAScript's syntax and matches a whole string. Spark searches with Java's regular expressions,
the MPI engine with Python's. The syntax that they share has one meaning; ``fault`` reports invalid patterns.
"""

from __future__ import annotations

import re

CODE = "PARALAGG_DATALOG_PATTERN"
HINT = "write a backslash before a special character: \\( \\[ \\{ \\* \\+ \\? \\. \\| \\\\"

BEFORE, AFTER = "^(?:", r")(?![\s\S])"
"""Prefix and suffix that anchor a pattern to a whole string. ``$`` would also match before a final line break."""

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_EMPTY_CLASS = re.compile(r"\[\^?\]")  # in ECMAScript; elsewhere the bracket is a character of the class
_NAMED_CLASS = re.compile(r"(?<=[\[^\]])\[:(\w+):\]")
_NAMED = {
    "digit": "0-9", "alpha": "a-zA-Z", "alnum": "0-9a-zA-Z", "upper": "A-Z", "lower": "a-z", "xdigit": "0-9a-fA-F",
    "space": r"\s", "blank": r" \t",
}  # fmt: skip
_REPETITION = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_JAVA_ONLY = re.compile(r"\\[^dwsDWSbB.\\+*?()\[\]{}|^$/-]|\(\?[^:]|[*+?}]\+|&&|\[\[|\[:")


def without_named_classes(pattern: str) -> str:
    """Return ``pattern`` with the characters of ECMAScript's named classes in place of their names.

    >>> without_named_classes("[[:digit:]_]+")
    '[0-9_]+'
    """
    return _NAMED_CLASS.sub(lambda match: _NAMED.get(match[1], match[0]), pattern)


def is_portable(pattern: str) -> bool:
    r"""Return whether Java and Python give ``pattern`` the same meaning.

    >>> is_portable("[a-z]+"), is_portable(r"\p{L}")
    (True, False)
    """
    return _JAVA_ONLY.search(pattern) is None


def fault(pattern: str) -> str | None:
    """Return the message for an invalid ``pattern``; None if it is valid, or if only Java can decide.

    >>> fault("a(")
    '`a(` is not a regular expression'
    >>> fault("a{2}")
    """
    if not is_portable(pattern):
        return None
    message = f"`{pattern}` is not a regular expression"
    plain = _ESCAPED_OR_CLASS.sub("", pattern)  # Python reads other braces as literals
    if "{" in _REPETITION.sub("", plain) or _EMPTY_CLASS.search(_ESCAPED.sub("", pattern)):
        return message
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return message
    return None


def whole(pattern: str) -> str:
    """Return the pattern that matches a string if ``pattern`` matches all of it."""
    return f"{BEFORE}{pattern}{AFTER}"


def inner(pattern: str) -> str:
    """Return the argument of ``whole`` for its result; return any other pattern unchanged."""
    if pattern.startswith(BEFORE) and pattern.endswith(AFTER):
        return pattern[len(BEFORE) : -len(AFTER)]
    return pattern
