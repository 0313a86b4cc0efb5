"""Encode relation names for folders and command lines, so that no name is read as an option or a path."""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote

_RESERVED = frozenset({"", ".", "..", "beats", "report.json", "report.partial", "ranks.log"})
"""Names of other files in OUT, and names that are paths."""
_MAX_LENGTH = 200
"""File systems allow 255 bytes."""


def result_folder(relation: str) -> str:
    """Return the name of the folder of a result. Different relations have different names.

    >>> [result_folder(name) for name in ("dist", "a/b", "..", "beats", "--no-ansi", "two lines".replace(" ", chr(10)))]
    ['dist', 'a%2Fb', '%2E.', '%62eats', '--no-ansi', 'two%0Alines']
    """
    quoted = quote(relation, safe="")
    if len(quoted) > _MAX_LENGTH:
        return f"%long-{hashlib.sha256(relation.encode()).hexdigest()}"
    if quoted in _RESERVED or quoted.startswith((".", "error-")):
        return f"%{ord(quoted[0]):02X}{quoted[1:]}" if quoted else "%empty"
    return quoted


def names_option(option: str, relations: list[str]) -> str:
    """Return a command-line option that lists relations.

    >>> names_option("outputs", ["dist", "--no-ansi", "a,b c"])
    '--outputs=dist,--no-ansi,a%2Cb%20c'
    """
    return f"--{option}=" + ",".join(quote(name, safe="") for name in relations)


def listed_names(value: str) -> list[str]:
    """Return the relation names in an option's value.

    >>> listed_names("dist,--no-ansi,a%2Cb%20c")
    ['dist', '--no-ansi', 'a,b c']
    """
    return [unquote(name) for name in value.split(",")]
