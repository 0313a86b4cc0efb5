"""``reference/errors.md``: every code that the package raises, by class, from ``error_index`` and ``scala_errors``."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import TYPE_CHECKING

from docs_site.error_index import CLASSES, IN_SPARK, in_python
from docs_site.scala_errors import in_scala
from pyspark_paralagg import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docs_site.error_index import Raised

_HEAD = """\
# Errors

An error has a class, a stable code, a message with the offending value, a place and, where there is something to do, a
hint. `problem.code`, `.message`, `.value`, `.place` and `.hint` give the parts. Codes never change their meaning.

What goes wrong inside of a Spark job comes as one of Spark's own exceptions: `problem.getCondition()` gives the code,
or its message begins with the code in brackets. `paralagg run` makes one of the classes below of it.

This page is read from the sources. A name in braces stands for what is filled in, `…` for what the sources do not tell.
"""
_SPARK_ONLY = "Raised inside of Spark only, by the Spark engine or by functions that it runs."


def markdown() -> str:
    """One section a class, one heading a code, which is its anchor."""
    by_code: dict[str, list[Raised]] = defaultdict(list)
    for raised in sorted({*in_python(), *in_scala()}):
        by_code[raised.code].append(raised)
    by_class: dict[str, list[str]] = {name: [] for name in (*CLASSES, IN_SPARK)}
    for code, places in by_code.items():
        by_class[_class(places)].append(code)
    sections = [_HEAD]
    for name, codes in by_class.items():
        if codes:
            about = _SPARK_ONLY if name == IN_SPARK else _about(name)
            sections.append(f"## {name}\n\n{about}\n")
            sections += [_section(code, name, by_code[code]) for code in codes]
    return "\n".join(sections)


def _class(places: Sequence[Raised]) -> str:
    """That of most places; one of Spark's only where there is no other."""
    kinds = [place.kind for place in places if place.kind != IN_SPARK] or [IN_SPARK]
    return max(CLASSES, key=kinds.count) if kinds != [IN_SPARK] else IN_SPARK


def _about(name: str) -> str:
    return (inspect.getdoc(getattr(errors, name)) or "").partition("\n\n")[0].replace("\n", " ")


def _section(code: str, shown_under: str, places: Sequence[Raised]) -> str:
    """What each place says; places that say the same stand together."""
    said: dict[str, list[Raised]] = defaultdict(list)
    for place in [place for place in places if place.messages] or places:
        said[_text(place)].append(place)
    lines = [f"### {code} {{ #{code} }}\n"]
    for text, of in said.items():
        others = sorted({place.kind for place in of} - {shown_under})
        also = f", as {' and '.join(others)}" if others else ""
        lines.append(", ".join(f"`{file}`" for file in sorted({_file(place) for place in of})) + also + ":\n")
        lines.append(f"``` {{ .text .wrapped }}\n{text}\n```\n")
    return "\n".join(lines)


def _file(place: Raised) -> str:
    """Scala's folders say no more than its file."""
    return place.file.rpartition("/")[2] if place.file.endswith(".scala") else place.file


def _text(place: Raised) -> str:
    messages = place.messages or ("…",)
    return "\n".join([*messages, *(f"Hint: {hint}" for hint in place.hints)])
