"""The rooms of the code: folders, the arrows between them, and their lines, read from the sources.

``python tests/rooms.py`` writes the picture in docs/architecture.md anew; ``test_layers`` compares both with the code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- rooms: made by tests/rooms.py -->", "<!-- rooms: end -->"
PYTHON = ("pyspark_paralagg", "mpi_backend")
SCALA = ROOT / "jvm_shim/src/main/scala/org/apache/spark/sql/paralagg"
SCALA_PACKAGE = "org.apache.spark.sql.paralagg"
MERGED = {"program.functions": "program"}
"""Folders that are one room with the one above them."""

Arrows = dict[str, set[str]]


def imports_of(file: Path, *, whole: bool = True) -> set[str]:
    """Return the modules that ``file`` imports; ``from a import b`` gives ``a.b``.

    The ``whole`` file: also inside of functions and for types only. Else what is imported with it.
    """
    found = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if whole else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def python_modules() -> dict[str, Path]:
    """Return the modules of both packages by their dotted names."""
    files = (f for package in PYTHON for f in sorted((ROOT / package).rglob("*.py")))
    return {".".join(f.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): f for f in files}


@cache
def module_graph() -> Arrows:
    """Return the imports between modules."""
    modules = python_modules()
    graph: Arrows = {name: set() for name in modules}
    for name, file in modules.items():
        known = (_known(i, modules) for i in imports_of(file))
        graph[name] = {i for i in known if i and i != name}
    return graph


def _known(imported: str, modules: Mapping[str, Path]) -> str:
    """Return the module that ``imported`` is or belongs to; empty for modules of others."""
    while imported and imported not in modules:
        imported = imported.rpartition(".")[0]
    return imported


def room_of(module: str, file: Path) -> str:
    """Return the package and folder of a module; a file of the package's root is a room of its own name."""
    package, *folders = file.relative_to(ROOT).parent.parts
    room = ".".join(folders)
    return f"{package}/{MERGED.get(room, room)}" if room else module.replace(".", "/")


def python_rooms() -> Arrows:
    """Return the arrows between the folders of the Python packages; a file of a package's root is a room by itself."""
    modules, rooms = python_modules(), defaultdict(set)
    for name, imported in module_graph().items():
        here = room_of(name, modules[name])
        rooms[here] |= {room_of(i, modules[i]) for i in imported} - {here}
    return dict(rooms)


def scala_rooms() -> Arrows:
    """Return the arrows between the folders of the shim; a file of its root is a room by itself."""
    rooms: Arrows = defaultdict(set)
    pattern = re.compile(rf"^import {re.escape(SCALA_PACKAGE)}\.(?:(\w+)|\{{([^}}]*)\}})", re.MULTILINE)
    for file in sorted(SCALA.rglob("*.scala")):
        folder = file.relative_to(SCALA).parent.as_posix()
        here = file.stem if folder == "." else folder
        for one, several in pattern.findall(file.read_text(encoding="utf-8")):
            rooms[here] |= {n.strip() for n in (one or several).split(",")} - {here}
        rooms[here] |= set()
    return dict(rooms)


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names on a circle of ``graph``, the first one again at the end; none if it has no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        return list(problem.args[1])
    return []


def lines_of(folder: Path, suffix: str) -> int:
    """Return the lines of all files of a folder and of those below it."""
    return sum(len(f.read_text(encoding="utf-8").splitlines()) for f in folder.rglob(f"*{suffix}"))


def mermaid(graph: Arrows) -> str:
    """Draw ``graph`` without the arrows that others imply."""
    reach: dict[str, set[str]] = {}

    def below(name: str) -> set[str]:
        if name not in reach:
            reach[name] = set()
            for other in graph.get(name, ()):
                reach[name] |= {other} | below(other)
        return reach[name]

    lines = ["```mermaid", "flowchart TD"]
    for name in sorted(graph):
        direct = graph[name]
        implied = {far for other in direct for far in below(other)}
        lines += [f"  {name} --> {other}" for other in sorted(direct - implied)]
    return "\n".join([*lines, "```"])


def folders_only(graph: Arrows) -> Arrows:
    """Leave out the files of a package's root."""
    kept = {n for n in graph if (SCALA / n).is_dir() or ("/" in n and not (ROOT / f"{n}.py").is_file())}
    return {n: graph[n] & kept for n in kept}


def picture() -> str:
    """Return the section of docs/architecture.md between its marks."""
    parts = [BEGIN, ""]
    python = folders_only(python_rooms())
    for title, graph in (
        ("`pyspark_paralagg`", _inside(python, "pyspark_paralagg")),
        ("`mpi_backend`", _inside(python, "mpi_backend")),
        ("`jvm_shim`", folders_only(scala_rooms())),
    ):
        parts += [f"{title}:", "", mermaid(graph), ""]
    return "\n".join([*parts, END])


def _inside(graph: Arrows, package: str) -> Arrows:
    names = {n for n in graph if n.startswith(f"{package}/")}
    return {n.partition("/")[2]: {o.partition("/")[2] for o in graph[n] & names} for n in names}


def main() -> None:
    """Write the picture anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + picture() + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
