"""Render the output of ``explain`` as one self-contained HTML page: ``explain(df, "html")``.

The page contains the Plan's diagram as mermaid text, in an element of class ``mermaid``. A site or notebook that has
mermaid's script draws it; elsewhere the text is shown. The script has two megabytes and is left out.
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
    report: RunReport | None,
) -> str:
    """Return the page: the executor and its reason, or the last run; then the parts of ``explain``, each folded."""
    if report is None:
        name, reason = executor
        parts = [
            paragraph(Markup(f"Executor: <b>{escaped(name)}</b>")),
            paragraph(escaped(f"why: {reason}"), is_quiet=True),
            paragraph(escaped("Not run yet.")),
        ]
    else:
        parts = [heading("Last run"), report_body(report)]
    parts.append(heading("From the program to the plan"))
    for title, text in sections.items():
        if title == "Stages":
            parts.append(folded(title, joined(_stage(*stage) for stage in stages)))
        else:
            parts.append(folded(title, preformatted(text), is_open=title in _OPEN))
    parts.append(folded("Picture (mermaid)", preformatted(picture, "mermaid")))
    return page("Recursive aggregate", joined(parts))


def _stage(name: str, text: str, notes: Sequence[str]) -> Markup:
    body = [preformatted(text)] if text else []
    body += [paragraph(escaped(f"because {note}"), is_quiet=True) for note in notes]
    return folded(name, joined(body))
