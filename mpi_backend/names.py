"""Names of relations on command lines and in folders: any text is data there, neither an option nor a path."""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote

_OWN = frozenset({"", ".", "..", "beats", "report.json", "report.partial", "ranks.log"})
"""What OUT has beside results, and what is a path."""
_MOST = 200
"""File systems take 255 bytes."""


def result_folder(relation: str) -> str:
    """Return the name of the folder of a result, another one for each relation.

    >>> [result_folder(name) for name in ("dist", "a/b", "..", "beats", "--no-ansi", "two lines".replace(" ", chr(10)))]
    ['dist', 'a%2Fb', '%2E.', '%62eats', '--no-ansi', 'two%0Alines']
    """
    quoted = quote(relation, safe="")
    if len(quoted) > _MOST:
        return f"%long-{hashlib.sha256(relation.encode()).hexdigest()}"
    if quoted in _OWN or quoted.startswith((".", "error-")):
        return f"%{ord(quoted[0]):02X}{quoted[1:]}" if quoted else "%empty"
    return quoted


def outputs_option(relations: list[str]) -> str:
    """Return the one word that tells a rank which relations to write.

    >>> outputs_option(["dist", "--no-ansi", "a,b c"])
    '--outputs=dist,--no-ansi,a%2Cb%20c'
    """
    return "--outputs=" + ",".join(quote(name, safe="") for name in relations)


def output_names(value: str) -> list[str]:
    """Return the relations of an option's value.

    >>> output_names("dist,--no-ansi,a%2Cb%20c")
    ['dist', '--no-ansi', 'a,b c']
    """
    return [unquote(name) for name in value.split(",")]
