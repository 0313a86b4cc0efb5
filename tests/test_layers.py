"""The layer law (design section 2): who may import whom. Read from the sources, so nothing has to be installed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
PURE = ("program", "compile", "plan", "datalog")
OF_THE_PACKAGE = {
    "program": {"errors", "program"},
    "plan": {"errors", "program", "plan"},
    "compile": {"errors", "program", "plan", "compile"},
    "datalog": {"errors", "program", "compile", "datalog"},
}


def _imports(file: Path) -> set[str]:
    return _imports_among(ast.walk(ast.parse(file.read_text())))


def _imports_among(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _files(layer: str) -> list[Path]:
    # `datalog/api.py` is the door to Spark.
    files = sorted(f for f in (ROOT / "pyspark_paralagg" / layer).rglob("*.py") if f.name != "api.py")
    assert files
    return files


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_import_no_engine(layer: str) -> None:
    banned = {"pyspark", "py4j", "mpi4py", "numpy", "pandas"}
    assert {f.name: sorted({i.split(".")[0] for i in _imports(f)} & banned) for f in _files(layer)} == {
        f.name: [] for f in _files(layer)
    }


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_look_down_only(layer: str) -> None:
    for file in _files(layer):
        inner = {i.split(".")[1] for i in _imports(file) if i.startswith("pyspark_paralagg.")}
        assert inner <= OF_THE_PACKAGE[layer], file.name


def test_only_choose_imports_a_backend() -> None:
    for file in sorted((ROOT / "pyspark_paralagg").rglob("*.py")):
        backends = {i for i in _imports(file) if i.startswith("pyspark_paralagg.backends.")}
        allowed = {f"pyspark_paralagg.backends.{m}" for m in ("choose", "protocol")}
        if file.parent.name != "backends":
            assert not backends - allowed or file.name in ("explain.py", "report.py"), (file.name, backends)


def test_what_python_3_10_does_not_get_is_not_imported_by_whole_test_files() -> None:
    """Such an import in a conftest or a test file would end the whole run there: ``pytest.importorskip`` does not."""
    missing = set(re.findall(r'"(\w+)[^"]*; python_version >= ', (ROOT / "pyproject.toml").read_text()))
    assert missing == {"duckdb"}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        names = {i.split(".")[0] for i in _imports_among(ast.parse(file.read_text(encoding="utf-8")).body)}
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
