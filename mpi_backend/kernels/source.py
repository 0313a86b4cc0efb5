"""Python source that is made piece by piece: lines at a depth, names that no one else uses."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Source:
    r"""Lines of a function's body.

    >>> code = Source()
    >>> with code.block("if a:"):
    ...     code.line("b = 1")
    >>> code.text
    'if a:\\n    b = 1\\n'
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(f"{line}\n" for line in self._lines)

    def line(self, text: str) -> None:
        """One statement."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written inside stands below ``head``."""
        self.line(head)
        before = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def name(self, prefix: str) -> str:
        """A name that was not used before."""
        self._names += 1
        return f"{prefix}{self._names}"

    def keep(self, prefix: str, code: str) -> str:
        """A variable with the value of ``code``."""
        name = self.name(prefix)
        self.line(f"{name} = {code}")
        return name
