"""``DataFrame.recursive_agg`` is there whatever is imported first, and however pyspark and this package are installed.

Each case is a process of its own: where modules come from is settled by the first import.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[1]
PACKAGES = ("pyspark_paralagg", "mpi_backend")
OURS_FIRST = "import pyspark_paralagg as ra\nfrom pyspark.sql import SparkSession\n"
CHECK = """
import sys
import pyspark.sql.functions, pyspark.sql.types, pyspark.ml  # more modules of the same archive
from pyspark.sql import DataFrame
try:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
except ModuleNotFoundError:  # Spark 3.5 has one class
    ClassicDataFrame = DataFrame
before = hasattr(DataFrame, "recursive_agg")
ra.configure(SparkSession.builder.remote("sc://localhost"))  # starts nothing
assert DataFrame.recursive_agg is ra.recursive_agg
assert ClassicDataFrame.recursive_agg is ra.recursive_agg
assert not any(type(finder).__module__.startswith("pyspark_paralagg") for finder in sys.meta_path)
print(before, pyspark.__file__, ra.__file__)
"""


def as_zip(folder: Path, name: str) -> Path:
    """Pack the package as ``spark-submit --py-files`` takes it."""
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for package in PACKAGES:
            for file in (PROJECT / package).rglob("*.py"):
                archive.write(file, file.relative_to(PROJECT))
    return path


def as_wheel(folder: Path) -> Path:
    """Build the wheel; it has a jar of the shim where one was made before."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, timeout=120)  # noqa: S603 - our own build
    return next(folder.glob("*.whl"))


def as_installed_wheel(folder: Path) -> Path:
    """Unpack the wheel, as pip does."""
    with zipfile.ZipFile(as_wheel(folder)) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def as_editable(folder: Path) -> Path:
    """Link to the checkout by a .pth file, as pip does for an editable install; no other checkout is found."""
    (folder / "editable.pth").write_text(f"{PROJECT}\n")
    (folder / "sitecustomize.py").write_text(
        "import os, site, sys\n"
        "sys.path[:] = [p for p in sys.path if not os.path.isdir(os.path.join(p, 'pyspark_paralagg'))]\n"
        f"site.addsitedir({str(folder)!r})\n"
    )
    return folder


def as_portions(folder: Path) -> Path:
    """Link the packages into a folder, beside one of pyspark's name that has no ``__init__``."""
    for package in PACKAGES:
        (folder / package).symlink_to(PROJECT / package)
    (folder / "pyspark" / "plugins").mkdir(parents=True)
    return folder


WAYS: dict[str, Callable[[Path], Path]] = {
    "zip": lambda folder: as_zip(folder, "ours.zip"),
    "wheel": as_wheel,
    "installed wheel": as_installed_wheel,
    "editable": as_editable,
    "namespace": as_portions,
}


def run(script: str, *paths: Path, **environment: str) -> str:
    """Return what a process prints that finds modules in ``paths`` first."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - this Python, and scripts of this file
        [sys.executable, "-c", script],
        env={**env, "PYTHONPATH": os.pathsep.join(map(str, paths)), **environment},
        cwd=Path("/"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_zipped", [True, False], ids=["pyspark in a zip", "pyspark in a folder"])
def test_import_before_pyspark(way: str, is_zipped: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    library = find_spark_home().home / "python" / "lib"
    archives = [*library.glob("pyspark.zip"), *library.glob("py4j-*.zip")] if is_zipped else []
    before, pyspark, ours = run(OURS_FIRST + CHECK, WAYS[way](tmp_path), *archives).split()
    assert before == "False"
    assert ("pyspark.zip" in pyspark) is is_zipped
    assert ours.startswith(str(PROJECT if way == "editable" else tmp_path))


def test_import_after_pyspark() -> None:
    lines = "from pyspark.sql import SparkSession\nimport pyspark_paralagg as ra\n"
    assert run(lines + CHECK, PROJECT).startswith("True ")


def test_under_spark_submit_the_import_is_enough() -> None:
    assert run(OURS_FIRST + CHECK, PROJECT, PYSPARK_GATEWAY_PORT="1").startswith("True ")


def test_the_package_and_its_command_import_no_pyspark() -> None:
    lines = "import sys, pyspark_paralagg.command.cli, mpi_backend.worker\n"
    lines += "print([m for m in sys.modules if 'pyspark.' in m])"
    assert run(lines, PROJECT) == "[]"


def test_a_process_without_pyspark_imports_the_package(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('no pyspark here')\n")
    assert run("import pyspark_paralagg; print('fine')", tmp_path, PROJECT, PYSPARK_GATEWAY_PORT="1") == "fine"
