"""Notebooks of the examples, made from their modules: the module is what is edited, the notebook what is looked at.

`cut` takes a module as text and cuts it: the docstring becomes the heading, then imports and constants, then a cell
for each function, then the lines of `tell`, cut where a comment starts with ``# %%``; its text stands above the cell.
`python -m examples.notebooks` also runs them and keeps what they print and draw, so that they can be read on the web.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

NAMES = (
    *("roads", "isochrones", "bill_of_materials", "entities", "lineage"),
    *("control", "packages", "taxonomy", "points_to", "offload", "flights"),
)
FOLDER = Path(__file__).parent
# The tests run notebooks with a session of their own, so what makes one is a cell for itself.
SESSION = """\
from pathlib import Path

from IPython.display import Image

from examples import stage

spark, out = stage.session({arguments}), Path("demo-output")"""


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: ``kind`` is ``markdown`` or ``code``; ``is_session`` marks the one that starts Spark."""

    kind: str
    source: str
    is_session: bool = False


def module_of(name: str) -> Path:
    """The file of an example."""
    return FOLDER.parent / f"{name}.py"


def cells(name: str) -> list[Cell]:
    """The notebook of an example, not run yet."""
    return cut(name, module_of(name).read_text(encoding="utf-8"))


def cut(name: str, text: str) -> list[Cell]:
    """The cells of a module."""
    tree = ast.parse(text)
    question, _, about = (ast.get_docstring(tree) or "").partition("\n")
    about = about.strip("\n").replace("``", "`")
    found = [Cell("markdown", f"# {question}\n\n{about}")]
    found.append(Cell("code", SESSION.format(arguments=_arguments(tree, name)), is_session=True))
    story: list[Cell] = []
    for group in _groups(tree):
        if isinstance(group[0], ast.FunctionDef) and group[0].name == "tell":
            story = _story(text, group[0])
        else:
            found.append(Cell("code", _source(text, group)))
    return [*found, *story]


def _groups(tree: ast.Module) -> list[list[ast.stmt]]:
    """Imports and constants together; functions and classes alone; without what a notebook has no use for."""
    groups: list[list[ast.stmt]] = []
    for statement in tree.body[1:]:
        if isinstance(statement, ast.If):  # TYPE_CHECKING, __main__
            continue
        is_alone = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        if is_alone or not groups or isinstance(groups[-1][0], ast.FunctionDef | ast.ClassDef):
            groups.append([statement])
        else:
            groups[-1].append(statement)
    return groups


def _source(text: str, group: list[ast.stmt]) -> str:
    """The lines from the first to the last statement, with the comments that stand between."""
    first = min(statement.lineno for statement in [group[0], *getattr(group[0], "decorator_list", [])])
    code = _without_noqa("\n".join(text.splitlines()[first - 1 : group[-1].end_lineno]))
    code = re.sub(r"^from typing import TYPE_CHECKING\n", "", code, flags=re.MULTILINE)
    return re.sub(r"\n*^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)*", "\n\n", code, flags=re.MULTILINE)


def _story(text: str, tell: ast.FunctionDef) -> list[Cell]:
    """The lines of `tell`: markdown from the comments that start with ``# %%``, code from what follows them."""
    body = _without_noqa(textwrap.dedent("\n".join(text.splitlines()[tell.lineno : tell.end_lineno])))
    body = re.sub(r"^return (.+)\Z", r"Image(\1)", body, flags=re.MULTILINE)
    found = []
    for part in re.split(r"^# %% ", body, flags=re.MULTILINE)[1:]:
        comment, _, code = part.partition("\n")
        found += [Cell("markdown", comment), Cell("code", code.strip("\n"))]
    return found


def _arguments(tree: ast.Module, name: str) -> str:
    """The arguments of `stage.session`: the name, and those that the module gives to `stage.run`."""
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "stage.run")
    return ", ".join([f'"{name}"', *(ast.unparse(keyword) for call in given for keyword in call.keywords)])


def _without_noqa(code: str) -> str:
    return re.sub(r"  # noqa\b.*$", "", code, flags=re.MULTILINE)
