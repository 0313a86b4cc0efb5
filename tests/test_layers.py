"""The rooms of the code and the arrows between them (docs/architecture.md), read from the sources."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import rooms

from pyspark_paralagg.program.aggregators import AGGREGATORS

ROOT = Path(__file__).parent.parent
PURE = ("program", "compile", "plan", "datalog")
ENGINES = {"pyspark", "py4j", "mpi4py", "numpy", "pandas"}
SHIM = "jvm_shim/src/main/scala/org/apache/spark/sql/paralagg"
LINES = {
    "pyspark_paralagg": {
        "api": 2_700,
        "backends": 1_975,
        "codes": 1_595,
        "command": 3_920,
        "compile": 9_350,
        "connect": 1_765,
        "datalog": 7_850,
        "delta": 2_260,
        "graph": 1_370,
        "lowering": 555,
        "maintenance": 1_750,
        "plan": 760,
        "program": 4_600,
        "report": 1_455,
        "session": 2_505,
        "sql": 450,
        "why": 875,
        "worker": 360,
    },
    "mpi_backend": {
        "codegen": 2_980,
        "exchange": 560,
        "kernels": 1_755,
        "launch": 1_710,
        "load": 755,
        "loop": 2_515,
        "state": 2_150,
    },
    SHIM: {
        "codegen": 980,
        "driver": 2_460,
        "gang": 610,
        "load": 1_700,
        "loop": 3_010,
        "offload": 1_285,
        "plan": 2_015,
        "rules": 315,
        "sql": 1_315,
        "state": 2_850,
    },
}
"""The most lines of each room. Raising one needs a reason in the commit."""


def test_no_module_and_no_room_lies_on_a_circle() -> None:
    assert rooms.circle(rooms.module_graph()) == []
    assert rooms.circle(rooms.python_rooms()) == []
    assert rooms.circle(rooms.scala_rooms()) == []


def test_the_picture_of_the_rooms_is_the_code() -> None:
    """An arrow that the picture's own do not imply changes it; an arrow upwards makes a circle."""
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.picture() in page, "python tests/rooms.py draws it anew"


@pytest.mark.parametrize("part", LINES)
def test_lines_of_each_room_stay_in_their_budget(part: str) -> None:
    suffix = ".scala" if part == SHIM else ".py"
    lines = {f.name: rooms.lines_of(f, suffix) for f in (ROOT / part).iterdir() if f.is_dir()}
    lines = {room: n for room, n in lines.items() if n > 0}
    assert lines.keys() == LINES[part].keys()
    assert {room: n for room, n in lines.items() if n > LINES[part][room]} == {}


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_import_no_engine(room: str) -> None:
    files = sorted((ROOT / "pyspark_paralagg" / room).rglob("*.py"))
    assert files
    for file in files:
        assert not {i.split(".")[0] for i in rooms.imports_of(file)} & ENGINES, file


def test_pure_rooms_import_errors_only_from_the_root() -> None:
    graph = rooms.python_rooms()
    roots = {room for room in graph if (ROOT / f"{room}.py").is_file()} | {"pyspark_paralagg"}
    pure = [room for room in graph if room.partition("/")[2].partition(".")[0] in PURE]
    assert len(pure) > len(PURE)
    for room in pure:
        assert graph[room] & roots <= {"pyspark_paralagg/errors"}, room


def test_the_engine_on_ranks_imports_no_spark() -> None:
    for file in sorted((ROOT / "mpi_backend").rglob("*.py")):
        assert not {i.split(".")[0] for i in rooms.imports_of(file)} & {"pyspark", "py4j"}, file


@pytest.mark.parametrize("part", LINES)
def test_aggregators_are_named_in_their_registries_only(part: str) -> None:
    """Left out: words of Soufflé's grammar (count, sum, min, max), and words with other meanings (any, all)."""
    names = set(AGGREGATORS) - {"count", "sum", "min", "max", "any", "all"}
    name = re.compile(f'"({"|".join(sorted(names))})"')
    allowed = {"aggregators.py", "Aggregator.scala", "__init__.py"}  # the package exports four by name
    found = {
        f"{file.name}:{n} {line.strip()}"
        for suffix in (".py", ".scala")
        for file in (ROOT / part).rglob(f"*{suffix}")
        if file.name not in allowed and "codes" not in file.parts
        for n, line in enumerate(_code_lines(file), 1)
        if name.search(line)
    }
    assert found == set()


def _code_lines(file: Path) -> list[str]:
    """Lines without docstrings and examples."""
    text = re.sub(r'"""(?:.|\n)*?"""', lambda m: "\n" * m.group().count("\n"), file.read_text(encoding="utf-8"))
    return text.splitlines()


def test_no_module_outside_of_backends_imports_an_executor() -> None:
    files = (ROOT / "pyspark_paralagg" / "backends").glob("*.py")
    executors = {f.stem for f in files if "def obstacle" in f.read_text(encoding="utf-8")} - {"protocol"}
    assert len(executors) > 2
    backends = {f"pyspark_paralagg.backends.{name}" for name in executors}
    for name, imported in rooms.module_graph().items():
        if not name.startswith("pyspark_paralagg.backends"):
            assert not imported & backends, name


def test_what_python_3_10_does_not_get_is_not_imported_by_whole_test_files() -> None:
    """Such an import in a conftest or a test file would end the whole run there: ``pytest.importorskip`` does not."""
    missing = set(re.findall(r'"(\w+)[^"]*; python_version >= ', (ROOT / "pyproject.toml").read_text()))
    assert missing == {"duckdb"}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        names = {i.split(".")[0] for i in rooms.imports_of(file, whole=False)}
        assert not names & missing, file


def test_importing_the_package_does_not_wait_for_the_compiler() -> None:
    code = "import sys, pyspark_paralagg; print([m for m in sys.modules if m.split('.')[0] in ('lark', 'z3')"
    code += " or m.startswith(('pyspark_paralagg.compile', 'pyspark_paralagg.backends.spark'))])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert run.stdout == "[]\n"


def test_importing_the_package_imports_no_pyspark_and_adds_no_finder() -> None:
    ours = "import sys, pyspark_paralagg; print('pyspark' in sys.modules, len(sys.meta_path))"
    plain = "import sys; print(False, len(sys.meta_path))"
    runs = [
        subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True)  # noqa: S603 - ours
        for c in (ours, plain)
    ]
    assert runs[0].stdout == runs[1].stdout


def test_no_module_replaces_a_function_of_its_name() -> None:
    """``import package.name`` sets the attribute ``name`` of the package, whatever stood there."""
    code = "import pkgutil, importlib, pyspark_paralagg as ra\n"
    code += "modules = pkgutil.walk_packages(ra.__path__, 'pyspark_paralagg.')\n"
    code += "names = [m.name for m in modules if '__main__' not in m.name]\n"
    code += "before = {n: getattr(ra, n) for n in ra.__all__}\n"
    code += "for name in names: importlib.import_module(name)\n"
    code += "print([n for n in ra.__all__ if getattr(ra, n) is not before[n]])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert run.stdout == "[]\n"
