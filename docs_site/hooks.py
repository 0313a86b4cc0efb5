"""Functions that mkdocs calls while it builds the site: first link of ``hooks`` -> ``*_page`` -> Markdown.

They add the generated pages and the notebooks, and insert parts of the README where a page names them. They also add
two scripts: mermaid, which the theme would load from another server, and the search index, for a site in a folder.
"""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

from docs_site import (
    aggregators_page,
    api_page,
    command_page,
    configuration_page,
    errors_page,
    notebook_pages,
    troubleshooting_page,
)
from docs_site.fetched import fetched

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

PAGES = {
    "reference/api.md": api_page.markdown,
    "reference/aggregators.md": aggregators_page.markdown,
    "reference/configuration.md": configuration_page.markdown,
    "reference/errors.md": errors_page.markdown,
    "reference/command-line.md": command_page.markdown,
}

MERMAID = "assets/javascripts/mermaid.min.js"
# mermaid 11.16.0, as its authors publish it: mermaidx carries that very file to draw without a browser.
MERMAID_SHA256 = "74d7c46dabca328c2294733910a8aa1ed0c37451776e8d5295da38a2b758fb9b"

_README_PART = re.compile(r"<!-- README: (?P<heading>[^>]+?) -->")
_SCRIPT = re.compile(r'(?=<script src="[^"]*assets/javascripts/bundle)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made from the code, the notebooks, and mermaid."""
    generated = {path: markdown() for path, markdown in PAGES.items()} | notebook_pages.files()
    for path, content in generated.items():
        files.append(File.generated(config, path, content=content))
    files.append(File.generated(config, MERMAID, content=_mermaid()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts the section ``Try it`` of the README where the start page says ``<!-- README: Try it -->``.

    Links of ``examples.md`` to notebooks become links to their pages; ``troubleshooting.md`` gets its tables of errors.
    """
    del config, files
    if page.file.src_uri == "examples.md":
        return notebook_pages.with_links_to_pages(markdown)
    if page.file.src_uri == "troubleshooting.md":
        return troubleshooting_page.with_tables(markdown)
    if page.file.src_uri != "index.md":
        return markdown
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return _README_PART.sub(lambda found: _section(readme, found["heading"]), markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Loads mermaid before the theme's own script where there is something to draw; the theme then takes this one.

    A page that would have its reader fetch something from another server ends the build.
    """
    del config
    found = fetched(output)
    if found:
        raise PluginError(f"{page.file.src_uri} would fetch something from elsewhere: {found}")
    if 'class="mermaid"' not in output:
        return output
    return _SCRIPT.sub(f'<script src="{get_relative_url(MERMAID, page.url)}"></script>', output, count=1)


@event_priority(-100)  # after the search plugin
def on_post_build(config: MkDocsConfig) -> None:
    """Write the search index as a script, too.

    A page that is opened from a folder loads this script instead of the JSON. Without it the theme's own script stops,
    and the switch between light and dark does nothing. The search stays hidden there: its worker needs a server.
    """
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


def _section(readme: str, heading: str) -> str:
    """The text below ``heading``, up to the next one, with links as they are from ``docs/``."""
    parts = re.split(r"^#+ (.+)\n", readme, flags=re.MULTILINE)
    sections = {title.strip(): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    if heading not in sections:
        raise PluginError(f"index.md asks for the section {heading!r} of the README, which has no such heading")
    named = re.sub(r"\[docs/(?:\w+/)*(\w+)\.md\]", r"[\1]", sections[heading])  # the README names files, the site pages
    return named.replace("](docs/", "](").strip()


def _mermaid() -> bytes:
    script = resources.files("mermaidx").joinpath("assets/mermaid.js").read_bytes()
    found = hashlib.sha256(script).hexdigest()
    if found != MERMAID_SHA256:
        raise PluginError(f"mermaidx has another mermaid than the pinned one: SHA-256 {found}")
    return script
