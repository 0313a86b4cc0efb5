"""What the shim raises inside of Spark, read from its Scala sources: codes with the message and hint that follow them.

A code is raised where a constant of ``ErrorCodes`` has further arguments behind it, in a ``ParalaggException`` or in a
tuple that becomes one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docs_site.error_index import ROOT, Raised
from docs_site.scala_codes import NAMES
from docs_site.templates import OPEN
from pyspark_paralagg.codes import IN_SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCES = "jvm_shim/src/main"
_CODE_ARGUMENT = re.compile(r"[(,]\s*ErrorCodes\.(\w+)\s*,")
# Texts, brackets and commas: all that tells where an argument ends.
_TOKEN = re.compile(r's?"(?:\\.|[^"\\])*"|[()\[\]{},]|else\b')
_TEXT = re.compile(r'(s?)"((?:\\.|[^"\\])*)"')
_INSERTED = re.compile(r"\$(?:\{(?P<expression>[^}]*)\}|(?P<name>\w+))")


def in_scala() -> list[Raised]:
    """What the Scala sources raise, in no order."""
    found = []
    for path in sorted((ROOT / _SOURCES).rglob("*.scala")):
        source = path.read_text(encoding="utf-8")
        for match in _CODE_ARGUMENT.finditer(source):
            message, hint = [*_arguments(source, match.end()), "", ""][:2]
            told = [_templates(argument, source) for argument in (message, hint)]
            found.append(Raised(NAMES[match[1]], IN_SPARK, told[0], told[1], path.relative_to(ROOT).as_posix()))
    return found


def _arguments(source: str, start: int) -> Iterator[str]:
    """The arguments from ``start`` to the bracket that ends the call."""
    depth, begin = 0, start
    for token in _TOKEN.finditer(source, start):
        depth += token[0] in ("(", "[", "{")
        if token[0] in (")", "]", "}"):
            if depth == 0:
                yield source[begin : token.start()]
                return
            depth -= 1
        elif token[0] == "," and depth == 0:
            yield source[begin : token.start()]
            begin = token.end()


def _templates(argument: str, source: str) -> tuple[str, ...]:
    """Its texts put together; one for each branch of an ``if``."""
    constant = re.search(rf"\bval {re.escape(argument.strip())} =(.*)", source)
    branches = re.split(r"\belse\b", constant[1] if constant else argument)
    texts = ["".join(_INSERTED.sub(_named, t[2]) if t[1] else t[2] for t in _TEXT.finditer(b)) for b in branches]
    return tuple(text.rstrip(".") for text in texts if text.strip(OPEN + " "))


def _named(inserted: re.Match[str]) -> str:
    """The last word of a path is its name; anything else is left open."""
    expression = inserted["name"] or inserted["expression"]
    return f"{{{expression.rpartition('.')[2]}}}" if re.fullmatch(r"[\w.]+", expression) else OPEN
