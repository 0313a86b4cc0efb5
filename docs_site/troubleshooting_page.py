"""The tables of errors in ``docs/troubleshooting.md``, from the registry ``pyspark_paralagg.codes``.

``<!-- errors: session -->`` stands for the table of an area: each code with a link to the reference, cause and remedy.
"""

from __future__ import annotations

import re

from mkdocs.exceptions import PluginError

from pyspark_paralagg.codes import AREAS

_TABLE = re.compile(r"<!-- errors: (?P<area>\w+) -->")


def with_tables(markdown: str) -> str:
    """Put each area's table where the page names the area; raise ``PluginError`` unless each is named once."""
    named = [found["area"] for found in _TABLE.finditer(markdown)]
    if sorted(named) != sorted(AREAS):
        raise PluginError(f"troubleshooting.md has the areas {named}, the registry of errors {list(AREAS)}")
    return _TABLE.sub(lambda found: table(found["area"]), markdown)


def table(area: str) -> str:
    """Return the codes of an area as rows: code, cause, remedy."""
    rows = [
        f"| [`{entry.code}`](reference/errors.md#{entry.code}) | {_cell(entry.cause)} | {_cell(entry.remedy)} |"
        for entry in AREAS[area]
    ]
    return "\n".join(["| code | cause | what to do |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
