"""``examples/<name>.md``: the notebooks of ``examples/notebooks`` as pages, with the outputs that are stored in them.

nbconvert makes the Markdown; no notebook is run.
"""

from __future__ import annotations

import re

import nbformat
from nbconvert import MarkdownExporter
from traitlets.config import Config

from examples.notebooks import FOLDER, NAMES

# Code and printed text as fences with their languages, and pictures with a text instead of `png`.
_TEMPLATE = """\
{% extends 'markdown/index.md.j2' %}
{% block input %}
```` { .python }
{{ cell.source }}
````
{% endblock input %}
{% block stream %}
```` { .text .output }
{{ output.text.rstrip() }}
````
{% endblock stream %}
{% block data_png %}
![Output of the cell above]({{ output.metadata.filenames['image/png'] | path2url }})
{% endblock data_png %}
"""
_CONFIG = Config(
    ExtractOutputPreprocessor={"enabled": True},  # pictures as files
    CoalesceStreamsPreprocessor={"enabled": True},  # one block for what a cell prints
)
_SOURCE = "\n\nThis page is `examples/notebooks/{name}.ipynb` with its stored output, made from `examples/{name}.py`.\n"
_LINK = re.compile(r"\]\(\.\./examples/notebooks/(\w+)\.ipynb\)")


def files() -> dict[str, str | bytes]:
    """Return the pages and their pictures by their paths in the site."""
    exporter = MarkdownExporter(raw_template=_TEMPLATE, config=_CONFIG)
    found: dict[str, str | bytes] = {}
    for name in NAMES:
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        body, resources = exporter.from_notebook_node(notebook, {"unique_key": name, "output_files_dir": ""})
        title, _, text = body.strip().partition("\n")
        found[f"examples/{name}.md"] = title + _SOURCE.format(name=name) + text
        found |= {f"examples/{file}": picture for file, picture in resources["outputs"].items()}
    return found


def with_links_to_pages(markdown: str) -> str:
    """Replace links to notebooks, as they are read in the repository, by links to their pages.

    >>> with_links_to_pages("[it](../examples/notebooks/roads.ipynb)")
    '[it](examples/roads.md)'
    """
    return _LINK.sub(r"](examples/\1.md)", markdown)
