"""``reference/errors.md``: every code by class, with cause, remedy, example and the messages of the sources.

The first three come from the registry ``pyspark_paralagg.codes``, messages from ``error_index`` and ``scala_errors``.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import TYPE_CHECKING

from docs_site.error_index import CLASSES, in_python
from docs_site.scala_errors import in_scala
from pyspark_paralagg import errors
from pyspark_paralagg.codes import CODES, IN_SPARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docs_site.error_index import Raised
    from pyspark_paralagg.codes import ErrorCode

_HEAD = """\
# Errors

An error has a class, a stable code, a message with the offending value, a place and, if there is a remedy, a hint:
`problem.code`, `.message`, `.value`, `.place` and `.hint`. A code never changes its meaning.

An error inside a Spark job is one of Spark's own exceptions: `problem.getCondition()` gives the code, or the message
begins with the code in brackets. `paralagg run` converts it to one of the classes below.

For each code the page shows the cause, the remedy, an example that raises it, and the messages of each source file. An
example is a Datalog text, or Python that uses a session `spark` and `import pyspark_paralagg as ra`. In a message, a
name in braces stands for a value, and `…` for a part that only the run determines.
"""
_LEXERS = {"python": "python", "datalog": "prolog"}
_SPARK_ONLY = "Raised inside of Spark only, by the Spark engine or by functions that it runs."


def markdown() -> str:
    """One section a class, one heading a code, which is its anchor."""
    by_code: dict[str, list[Raised]] = defaultdict(list)
    for raised in sorted({*in_python(), *in_scala()}):
        by_code[raised.code].append(raised)
    by_class: dict[str, list[str]] = {name: [] for name in (*CLASSES, IN_SPARK)}
    for code in by_code:
        by_class[CODES[code].kind].append(code)
    sections = [_HEAD]
    for name, codes in by_class.items():
        if codes:
            about = _SPARK_ONLY if name == IN_SPARK else _about(name)
            sections.append(f"## {name}\n\n{about}\n")
            sections += [_section(CODES[code], by_code[code]) for code in codes]
    return "\n".join(sections)


def _about(name: str) -> str:
    return (inspect.getdoc(getattr(errors, name)) or "").partition("\n\n")[0].replace("\n", " ")


def _section(entry: ErrorCode, places: Sequence[Raised]) -> str:
    """Return the entry of the registry and the messages of ``places``; places with the same message share a block."""
    by_message: dict[str, list[Raised]] = defaultdict(list)
    for place in [place for place in places if place.messages] or places:
        by_message[_text(place)].append(place)
    lines = [f"### {entry.code} {{ #{entry.code} }}\n", f"{entry.cause}\n", f"**What to do.** {entry.remedy}\n"]
    if entry.example:
        lines.append(f"Example:\n\n``` {{ .{_LEXERS[entry.language]} }}\n{entry.example}\n```\n")
    for text, same in by_message.items():
        others = sorted({place.kind for place in same} - {entry.kind})
        also = f", as {' and '.join(others)}" if others else ""
        lines.append(", ".join(f"`{file}`" for file in sorted({_file(place) for place in same})) + also + ":\n")
        lines.append(f"``` {{ .text .wrapped }}\n{text}\n```\n")
    return "\n".join(lines)


def _file(place: Raised) -> str:
    """Scala's folders say no more than its file."""
    return place.file.rpartition("/")[2] if place.file.endswith(".scala") else place.file


def _text(place: Raised) -> str:
    messages = place.messages or ("…",)
    return "\n".join([*messages, *(f"Hint: {hint}" for hint in place.hints)])
