"""What a page would have its reader's browser fetch from other servers; ``hooks`` lets no such page pass.

It looks at tags and styles. What a script asks for when it runs, nobody sees here.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

_ADDRESSES = frozenset({"background", "data", "href", "imagesrcset", "poster", "src", "srcset", "xlink:href"})
_FOLLOWED = frozenset({"a", "area"})
"""Tags whose addresses the reader asks for."""
_TOLD = frozenset({"alternate", "author", "canonical", "help", "license", "next", "prev"})
"""What a ``link`` says of a page, and no browser fetches. Any other kind, such as an icon, is taken for one that is."""

# The second part is for srcset, which has several addresses.
_ELSEWHERE = re.compile(r"(?:^|[\s,])(?:https?:)?//", re.IGNORECASE)
_STYLED_ELSEWHERE = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)


def fetched(page: str) -> str | None:
    """The first tag or style of ``page`` that takes something from another server; None where all is its own."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    return parser.found


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: str | None = None
        self._is_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Looks at its addresses and at its style."""
        self._is_style = tag == "style"
        values = {name: value or "" for name, value in attrs}
        is_asked_for = tag in _FOLLOWED or (tag == "link" and _TOLD.issuperset(values.get("rel", "").lower().split()))
        addresses = () if is_asked_for else _ADDRESSES & values.keys()
        if any(_ELSEWHERE.search(values[a]) for a in addresses) or _STYLED_ELSEWHERE.search(values.get("style", "")):
            self._find(self.get_starttag_text())

    def handle_endtag(self, tag: str) -> None:
        """A style ends."""
        self._is_style = self._is_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """The text of a style; text between other tags fetches nothing."""
        if self._is_style and (found := _STYLED_ELSEWHERE.search(data)):
            self._find(data[found.start() :].partition("\n")[0])

    def _find(self, what: str | None) -> None:
        self.found = self.found or what
