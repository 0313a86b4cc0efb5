"""Keep the newest entries of a registry: what this process remembers of results must not grow without end."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_MAX_ENTRIES = 256


class Recent(OrderedDict[K, V]):
    """A dict with the 256 keys that were set last.

    >>> recent = Recent((n, "row") for n in range(300))
    >>> len(recent), min(recent)
    (256, 44)
    """

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, and forget the oldest one beyond the limit."""
        super().__setitem__(key, value)
        if len(self) > _MAX_ENTRIES:
            self.popitem(last=False)
