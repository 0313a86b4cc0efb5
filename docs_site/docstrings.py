"""Docstrings as Markdown, for mkdocstrings: an extension of griffe, which reads the package for it.

Ours are plain text: ``>>>`` examples, a word with an indented explanation below, ``:func:`` for other public names.
Markdown would take the first for quotations and run the second together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from griffe import Extension, Object

from docs_site.public_names import identifier, public_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROLE = re.compile(r":(?:func|class|meth|mod):`~?([^`]+)`")
_FLAG = re.compile(r"\s*# doctest:.*$")


class MarkdownDocstrings(Extension):
    """Rewrites each docstring as it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401 - griffe's signature
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    r"""A docstring in Markdown: examples are code, what is explained by an indented text is a list of definitions.

    >>> print(as_markdown("mode\n    As in :func:`recursive`."))
    `mode`
    :   As in [`recursive`][pyspark_paralagg.recursive].
    """
    return "\n\n".join(_block(block) for block in re.split(r"\n[ \t]*\n", text.strip("\n")))


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].startswith(">>>"):
        shown = "\n".join(_FLAG.sub("", line) for line in lines)
        return f"```pycon\n{shown}\n```"
    return "\n".join(_explained(_ROLE.sub(_link, block).split("\n")))


def _explained(lines: list[str]) -> Iterator[str]:
    """A line with indented ones below it is what they explain."""
    for position, line in enumerate(lines):
        below = lines[position + 1] if position + 1 < len(lines) else ""
        above = lines[position - 1] if position else ""
        if line and not line.startswith(" ") and below.startswith("    "):
            yield ("\n" if position else "") + ", ".join(f"`{term}`" for term in line.split(", "))
        elif line.startswith("    ") and not above.startswith(" "):
            yield f":   {line[4:]}"
        else:
            yield line


def _link(role: re.Match[str]) -> str:
    name = public_name(role[1].rpartition(".")[2])
    return f"[`{name}`][{identifier(name)}]" if name else f"`{role[1]}`"
