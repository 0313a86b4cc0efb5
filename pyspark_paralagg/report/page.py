"""Build self-contained HTML: fragments for notebooks, and whole pages.

Pages load no script, font or picture. They set no colour for text or background: the notebook or the browser does, so
dark themes stay dark. All text goes through :func:`escaped`; the type ``Markup`` marks finished HTML.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Markup = NewType("Markup", str)
"""HTML that is put into a page without escaping."""

_STYLE = """\
.paralagg { font: 14px/1.5 system-ui, sans-serif; max-width: 62em }
.paralagg h1 { font-size: 1.4em } .paralagg h2 { font-size: 1.1em; margin: 1.2em 0 .3em }
.paralagg p { margin: .3em 0 }
.paralagg table { border-collapse: collapse; margin: .6em 0; font-variant-numeric: tabular-nums; font-size: 13px }
.paralagg th, .paralagg td { padding: .15em .8em; text-align: right; background: none; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, .3) }
.paralagg th.text, .paralagg td.text { text-align: left }
.paralagg pre { padding: .6em .8em; border: 1px solid rgba(128, 128, 128, .3); border-radius: 4px;
  font: 12px/1.45 ui-monospace, monospace; background: none; color: inherit; white-space: pre-wrap }
.paralagg details { margin: .3em 0 } .paralagg summary { cursor: pointer; font-weight: 600 }
.paralagg .quiet { opacity: .65 }
.paralagg .legend { display: flex; flex-wrap: wrap; gap: 0 1.2em; font-size: 12px }
.paralagg .legend span { min-width: 0; overflow-wrap: anywhere }
.paralagg .legend i { display: inline-block; border: .35em solid; margin-right: .4em }
.paralagg svg { display: block; max-width: 100%; height: auto }"""


def escaped(text: object) -> Markup:
    """Escape ``text`` for HTML."""
    return Markup(escape(str(text)))


def joined(parts: Iterable[Markup]) -> Markup:
    """Concatenate ``parts``."""
    return Markup("".join(parts))


def paragraph(text: Markup, *, is_quiet: bool = False) -> Markup:
    """Return a paragraph; ``is_quiet`` renders it paler."""
    return Markup(f'<p class="quiet">{text}</p>' if is_quiet else f"<p>{text}</p>")


def heading(text: str) -> Markup:
    """Return the heading of a section."""
    return Markup(f"<h2>{escaped(text)}</h2>")


def preformatted(text: str, kind: str = "") -> Markup:
    """Return preformatted text; ``kind`` is the class of the element (``mermaid``)."""
    return Markup(f'<pre class="{escaped(kind)}">{escaped(text)}</pre>' if kind else f"<pre>{escaped(text)}</pre>")


def folded(title: str, body: Markup, *, is_open: bool = False) -> Markup:
    """Return a section that opens when its title is clicked."""
    return Markup(f"<details{' open' if is_open else ''}><summary>{escaped(title)}</summary>{body}</details>")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: frozenset[int]) -> Markup:
    """Return a table. Columns at the positions ``texts`` are aligned to the left, all others to the right."""

    def row(cells: Sequence[str], tag: str) -> str:
        classes = (' class="text"' if n in texts else "" for n in range(len(cells)))
        inner = "".join(f"<{tag}{name}>{escaped(c)}</{tag}>" for c, name in zip(cells, classes, strict=True))
        return f"<tr>{inner}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return Markup(f"<table><thead>{row(header, 'th')}</thead><tbody>{body}</tbody></table>")


def fragment(body: Markup) -> Markup:
    """Return ``body`` with its style, for a notebook's cell."""
    return Markup(f'<div class="paralagg"><style>{_STYLE}</style>{body}</div>')


def page(title: str, body: Markup) -> str:
    """Return a complete HTML file, which follows the browser's light or dark theme."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escaped(title)}</title></head>\n'
        f"<body>{fragment(Markup(f'<h1>{escaped(title)}</h1>{body}'))}</body></html>\n"
    )
