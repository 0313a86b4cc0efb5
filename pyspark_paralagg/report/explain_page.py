"""``explain(df, "html")``: what ``explain`` tells, as one page of HTML that needs nothing from elsewhere.

The picture of the Plan stands there in the mermaid language, in the element that mermaid's script looks for: a site or
a notebook that has the script draws it, everybody else reads it. The script itself is two megabytes, and stays out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.report.page import Markup, escaped, folded, heading, joined, page, paragraph, preformatted
from pyspark_paralagg.report.report_page import report_body

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.report.run_report import RunReport


_OPEN = ("Program", "Plan")


def explain_page(
    sections: Mapping[str, str],
    stages: Sequence[tuple[str, str, Sequence[str]]],
    picture: str,
    executor: tuple[str, str],
    ran: RunReport | None,
) -> str:
    """The page: who runs it and why, the last run, then the parts of ``explain``, each to be opened."""
    if ran is None:
        name, why = executor
        told = Markup(f"Executor: <b>{escaped(name)}</b>"), escaped(f"why: {why}"), escaped("Not run yet.")
        parts = [paragraph(told[0]), paragraph(told[1], is_quiet=True), paragraph(told[2])]
    else:
        parts = [heading("Last run"), report_body(ran)]
    parts.append(heading("From what was meant to what runs"))
    for title, text in sections.items():
        if title == "Stages":
            parts.append(folded(title, joined(_stage(*stage) for stage in stages)))
        else:
            parts.append(folded(title, preformatted(text), is_open=title in _OPEN))
    parts.append(folded("Picture, in the mermaid language", preformatted(picture, "mermaid")))
    return page("Recursive aggregate", joined(parts))


def _stage(name: str, text: str, notes: Sequence[str]) -> Markup:
    body = [preformatted(text)] if text else []
    body += [paragraph(escaped(f"because {note}"), is_quiet=True) for note in notes]
    return folded(name, joined(body))
