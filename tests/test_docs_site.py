"""The generated pages: nothing that the code has is missing there, and what they say is what the code says."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
pytest.importorskip("griffe", reason="the extra `docs` is not installed")
pytest.importorskip("nbconvert", reason="the extra `docs` is not installed")

from mkdocs.exceptions import PluginError

import pyspark_paralagg as ra
from docs_site import (
    aggregators_page,
    api_page,
    command_page,
    configuration_page,
    errors_page,
    hooks,
    notebook_pages,
    troubleshooting_page,
)
from docs_site.docstrings import as_markdown
from docs_site.public_names import NAMES, identifier
from docs_site.templates import Templates
from examples.notebooks import FOLDER
from examples.notebooks import NAMES as NOTEBOOKS
from pyspark_paralagg.codes import CODES
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.session.conf import REGISTRY

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "pyspark_paralagg").rglob("*.py"), *(ROOT / "mpi_backend").rglob("*.py")]
SHIM = list((ROOT / "jvm_shim" / "src" / "main").rglob("*.scala"))

# In the sources, in quotes, and no errors: variables of the environment, the beginning of codes, an example.
NO_CODES = {
    "PARALAGG_KERNEL_CACHE",
    "PARALAGG_MPI_DRIVER",
    "PARALAGG_MPI_FOLDER",
    "PARALAGG_MPI_RANKS",
    "PARALAGG_MPI_RUN",
    "PARALAGG_MPI_TOKEN",
    "PARALAGG_SHIM",
    "PARALAGG_UNKNOWN_KEY",
}


@pytest.fixture(scope="module")
def errors() -> str:
    return errors_page.markdown()


def section(page: str, code: str) -> str:
    return page.partition(f"### {code} {{ #{code} }}\n")[2].partition("\n##")[0]


def test_every_code_of_the_sources_has_its_anchor(errors: str) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (*SOURCES, *SHIM))
    found = set(re.findall(r'["\[](PARALAGG_[A-Z0-9_]*[A-Z0-9])["\]]', text)) - NO_CODES
    anchors = re.findall(r"^### \S+ \{ #(\S+) \}$", errors, flags=re.MULTILINE)
    assert len(found) > 80
    assert set(anchors) == found
    assert len(anchors) == len(found)


def test_an_error_has_its_class_cause_remedy_example_message_hint_and_file(errors: str) -> None:
    of_class = errors.partition("## UsageError\n")[2].partition("\n## ")[0]
    assert section(of_class, "PARALAGG_KEY_TWICE").strip().split("\n\n") == [
        "`keys` names a column twice.",
        "**What to do.** Name each key once.",
        "Example:",
        f"``` {{ .python }}\n{CODES['PARALAGG_KEY_TWICE'].example}\n```",
        "`pyspark_paralagg/api/relations.py`:",
        "``` { .text .wrapped }\nthe key {key} is named twice\nHint: name it once\n```",
    ]


def test_errors_that_are_made_later_are_told_too(errors: str) -> None:
    assert "{text} is not monotone under {name}" in section(errors, "PARALAGG_NOT_MONOTONE")  # a Judgement
    assert "comparisons do not chain" in section(errors, "PARALAGG_DATALOG_SYNTAX")  # a Problem
    assert "a sum of {name} overflows" in section(errors, "PARALAGG_OVERFLOW")  # in a rank's compiled loop
    assert "{what} overflows: {a} + {b}" in section(errors, "PARALAGG_OVERFLOW")  # in the shim
    assert "there is no executor with a free core\nHint: set" in section(errors, "PARALAGG_NO_SLOTS")  # in Scala alone


SOURCE = """
def check(key, kind):
    message = f"no {key!r}"
    raise UsageError("A", message)
    message = f"{kind.name} or {len(key)} or {key + 1}" if kind else "none"
    raise UsageError("B", message)
def refuse(what):
    raise UsageError("C", what)
refuse("first"); refuse(what=LAST)
LAST = "last" + " of all"
"""


def test_templates_follow_names_to_what_they_are_assigned_and_handed() -> None:
    tree = ast.parse(SOURCE)
    templates = Templates(tree)
    raised = {
        c.args[0].value: templates.alternatives(c.args[1])
        for c in ast.walk(tree)
        if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id == "UsageError"
    }
    assert raised == {"A": ["no {key}"], "B": ["{name} or {key} or …", "none"], "C": ["first", "last of all"]}


def test_docstrings_become_markdown() -> None:
    definitions = "mode, name\n    As in :class:`MinBy`,\n    or not.\nlast\n    One more."
    assert as_markdown(f"Counts.\n\n>>> f(1)  # doctest: +SKIP\n2\n\n{definitions}") == (
        "Counts.\n\n```pycon\n>>> f(1)\n2\n```\n\n"
        "`mode`, `name`\n:   As in [`min_by`][pyspark_paralagg.min_by],\n    or not.\n\n`last`\n:   One more."
    )


def test_the_api_has_every_public_name_once() -> None:
    page = api_page.markdown()
    assert tuple(ra.__all__) == NAMES
    for name in NAMES:
        assert page.count(f"\n::: {identifier(name)}\n") == 1
    # The module of the same name is not what is documented.
    assert identifier("datalog") == "pyspark_paralagg.api.datalog.datalog"


def test_every_key_has_its_anchor_type_and_default() -> None:
    page = configuration_page.markdown()
    assert re.findall(r"\{ #(\S+) \}", page) == [key.name for key in REGISTRY]
    assert "Type: number of iterations. Default: `10`." in page
    assert "Type: true | false. Default: `false`." in page


def test_every_aggregator_is_shown_as_it_is_written() -> None:
    rows = [row for row in aggregators_page.markdown().splitlines() if row.startswith("| `")]
    assert len(rows) == len(AGGREGATORS)
    assert '| `"sum"` | `$SUM(x)` | a number | `bigint` for `int`, `double` for `float` | accumulating | `0` |' in rows
    for row in rows:
        call, head = re.findall(r"`([^`]+)`", row)[:2]
        assert eval(call, {"ra": ra})  # noqa: S307 - it is what one writes in aggs
        assert parse(f"r(k, {head}) :- e(k, v, x, w).").clauses


def test_the_command_line_is_what_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # the page does not depend on the terminal
    page = command_page.markdown()
    assert "  --explain [STAGE]     print the plan without running it (html: a page; program, plan,\n" in page
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == ["run", "doctor", "java", "spark-home", "shim"]


def test_parts_of_the_readme_come_with_their_links_turned() -> None:
    readme = "# it\n\n[docs/guide/a.md](docs/guide/a.md) ![two](docs/images/b.png)\n\n"
    readme += "## How\n\n```sh\nmake it\n```\n\n## More\n\nx"
    assert hooks._section(readme, "it") == "[a](guide/a.md) ![two](images/b.png)"
    assert hooks._section(readme, "How") == "```sh\nmake it\n```"
    with pytest.raises(PluginError, match="'Who' of the README"):
        hooks._section(readme, "Who")


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://elsewhere.org/a.js">',
        '<script async src="//elsewhere.org/a.js">',
        '<link rel="stylesheet" href="https://elsewhere.org/a.css">',
        '<link href="https://elsewhere.org/a.css" rel="stylesheet">',
        '<link rel="stylesheet" href="//elsewhere.org/a.css">',
        "<link rel='stylesheet' href='https://elsewhere.org/a.css'>",
        "<link rel=stylesheet href=https://elsewhere.org/a.css>",
        '<link rel="alternate stylesheet" href="https://elsewhere.org/a.css">',
        '<link rel="icon" href="https://elsewhere.org/a.png">',
        '<link rel="preconnect" href="https://elsewhere.org">',
        '<LINK HREF="HTTPS://elsewhere.org/a.css" REL="stylesheet"/>',
        '<base href="https://elsewhere.org/">',
        '<img alt="it" src="http://elsewhere.org/a.png">',
        "<img src='http://elsewhere.org/a.png'>",
        '<img src="a.png" srcset="b.png 1x, //elsewhere.org/a.png 2x">',
        '<video poster="https://elsewhere.org/a.png">',
        '<source src="https://elsewhere.org/a.mp4">',
        '<object data="https://elsewhere.org/a.svg">',
        '<svg><image href="https://elsewhere.org/a.png"></svg>',
        '<p style="background: url( https://elsewhere.org/a.png)">',
        "<style>p { color: red }\n@import '//elsewhere.org/a.css';</style>",
    ],
)
def test_a_page_that_fetches_from_elsewhere_ends_the_build(tag: str) -> None:
    page = SimpleNamespace(url="guide/a.html", file=SimpleNamespace(src_uri="guide/a.md"))
    with pytest.raises(PluginError, match=r"guide/a\.md would fetch something from elsewhere"):
        hooks.on_post_page(tag, page, None)


@pytest.mark.parametrize(
    "tag",
    [
        '<a href="https://elsewhere.org">',
        '<link rel="canonical" href="https://elsewhere.org/guide/a.html">',
        '<link rel="icon" href="../assets/a.png">',
        '<script src="../assets/a.js">',
        "<img src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>\">",
        '<code>&lt;script src="https://elsewhere.org/a.js"&gt;</code>',
        "<style></style><p>@import '//elsewhere.org'</p>",
        f"<style>{(ROOT / 'docs' / 'site.css').read_text(encoding='utf-8')}</style>",
    ],
)
def test_a_page_may_link_to_elsewhere(tag: str) -> None:
    page = SimpleNamespace(url="guide/a.html", file=SimpleNamespace(src_uri="guide/a.md"))
    assert hooks.on_post_page(tag, page, None) == tag


def test_mermaid_is_loaded_where_there_is_something_to_draw() -> None:
    page = SimpleNamespace(url="guide/a.html", file=SimpleNamespace(src_uri="guide/a.md"))
    theme = '<script src="../assets/javascripts/bundle.1.min.js"></script>'
    assert hooks.on_post_page(theme, page, None) == theme
    drawn = hooks.on_post_page(f'<pre class="mermaid">{theme}', page, None)
    assert drawn == f'<pre class="mermaid"><script src="../assets/javascripts/mermaid.min.js"></script>{theme}'


def test_mermaid_is_the_pinned_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hooks._mermaid().startswith(b'"use strict"')
    monkeypatch.setattr(hooks, "MERMAID_SHA256", "0" * 64)
    with pytest.raises(PluginError, match="another mermaid than the pinned one"):
        hooks._mermaid()


@pytest.fixture(scope="module")
def notebooks() -> dict[str, str | bytes]:
    return notebook_pages.files()


def page_of(files: dict[str, str | bytes], name: str) -> str:
    page = files[f"examples/{name}.md"]
    assert isinstance(page, str)
    return page


def fences(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```` \{{ {re.escape(kind)} \}}\n(.*?)\n````$", page, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_a_page_with_its_code_output_and_picture(name: str, notebooks: dict[str, str | bytes]) -> None:
    page = page_of(notebooks, name)
    assert page.startswith("# ")
    assert f"`examples/notebooks/{name}.ipynb`" in page
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert fences(page, ".python") == [cell["source"] for cell in code]
    printed = ["".join(o["text"] for o in c["outputs"] if o["output_type"] == "stream").rstrip() for c in code]
    assert fences(page, ".text .output") == [text for text in printed if text]
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page)
    assert notebooks[f"examples/{picture}"] == (ROOT / "docs" / "images" / f"{name}.png").read_bytes()


def test_each_notebook_is_linked_from_the_examples_and_the_navigation(notebooks: dict[str, str | bytes]) -> None:
    page = notebook_pages.with_links_to_pages((ROOT / "docs" / "examples.md").read_text(encoding="utf-8"))
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in NOTEBOOKS:
        assert f"examples/{name}.md" in notebooks
        assert f"](examples/{name}.md)" in page
        assert f": examples/{name}.md\n" in navigation


def test_the_search_index_is_a_script_too(tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text('{"docs": []}', encoding="utf-8")
    hooks.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
    assert (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8") == 'var __index = {"docs": []}'


def test_troubleshooting_has_each_code_once_with_its_cause_and_remedy() -> None:
    page = troubleshooting_page.with_tables((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| \[`(PARALAGG_\w+)`\]\(reference/errors\.md#(\w+)\) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert sorted(row[0] for row in rows) == sorted(CODES)
    for code, anchor, cause, remedy in rows:
        assert (anchor, cause.replace("\\|", "|"), remedy.replace("\\|", "|")) == (
            code,
            CODES[code].cause,
            CODES[code].remedy,
        )


def test_an_area_of_errors_that_the_page_leaves_out_ends_the_build() -> None:
    with pytest.raises(PluginError, match="has the areas"):
        troubleshooting_page.with_tables("<!-- errors: session -->")
