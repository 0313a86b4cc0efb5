"""Name the relations that the compiler adds to a program: ``count@1``, ``mean@average``, ``dist@base``.

No language of the front ends allows ``@`` in a name, so an added relation never meets a user's.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

_MARK = "@"
NUMBERED = "autoinc@numbered"
"""The start of the name of a relation whose last column is the number of the row."""


def added_name(stem: str, suffix: object) -> str:
    """Return the name of an added relation.

    >>> added_name("count", 1)
    'count@1'
    """
    return f"{stem}{_MARK}{suffix}"


def numbered(stem: str) -> Iterator[str]:
    """Yield ``stem``, then ``stem_2``, ``stem_3`` and so on: what a name may be if others are taken."""
    yield stem
    yield from (f"{stem}_{n}" for n in itertools.count(2))


def fresh_name(stem: str, taken: Container[str]) -> str:
    """Return the first name of ``numbered`` that is not taken.

    >>> fresh_name("node", {"node", "node_2"})
    'node_3'
    """
    return next(name for name in numbered(stem) if name not in taken)


def fresh_column(stem: str, taken: Collection[str]) -> str:
    """Return the first name of ``numbered`` that no name in ``taken`` is in any case: Spark does not tell x from X."""
    return next(name for name in numbered(stem) if name.lower() not in map(str.lower, taken))


def is_added(name: str) -> bool:
    """Return whether the compiler has added the relation, so that users never see it.

    >>> is_added("count@1"), is_added("count")
    (True, False)
    """
    return _MARK in name


def stem_of(name: str) -> str:
    """Return the first part of an added name, or the whole name of a user's relation.

    >>> stem_of("count@1")
    'count'
    """
    return name.partition(_MARK)[0]


def visible_names(names: list[str] | tuple[str, ...]) -> list[str]:
    """Return the users' relations among ``names``; all of them if there is none."""
    return [n for n in names if not is_added(n)] or list(names)
