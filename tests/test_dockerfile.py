"""The Dockerfile: its versions are those that CI tests, and it builds where there is a Docker daemon."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pyspark_paralagg.session.jvm import EXTENSION

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
TAG = "paralagg-test"
PROGRAM = """
import pyspark_paralagg as ra
from pyspark.sql import SparkSession
spark = ra.configure(SparkSession.builder).getOrCreate()
edges = spark.range(9).selectExpr("id AS src", "id + 1 AS dst")
step = lambda r: r.join(edges, r.id == edges.src).select(edges.dst.alias("id"))
print("rows", *[spark.range(1).recursive_agg("id", step=step, backend=b).count() for b in ("spark", "local")])
print("jars", spark.conf.get("spark.jars", ""))
"""


def pinned() -> dict[str, str]:
    """Return the versions of ``constraints.txt``, those for Python 3.10 where there are two."""
    lines = re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    return dict(reversed(lines))


def required(table: str) -> set[str]:
    """Return the names in a list of ``pyproject.toml``."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (items,) = re.findall(rf"^{table} = \[\n(.*?)^\]", project, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r'^    "([\w-]+)', items, flags=re.MULTILINE))


def installs() -> list[list[str]]:
    """Return the words of each ``pip install``."""
    commands = re.sub(r"^#.*", "", TEXT, flags=re.MULTILINE)
    return [shlex.split(found) for found in re.findall(r"pip install ([^&;]*)", commands)]


def names(words: list[str]) -> set[str]:
    return {word for word in words if not word.startswith("-") and word not in ("constraints.txt", ".")}


def test_spark_and_py4j_are_the_pinned_ones() -> None:
    (spark,) = re.findall(r"^FROM spark:([\d.]+)-scala2\.13-java17-python3-ubuntu$", TEXT, flags=re.MULTILINE)
    assert spark == pinned()["pyspark"]
    assert re.findall(r"py4j-([\d.]+)-src\.zip", TEXT) == [pinned()["py4j"]]


def test_pip_installs_what_the_project_requires_in_the_pinned_versions() -> None:
    dependencies, mpi, package = installs()
    for words in (dependencies, mpi):
        assert words[words.index("--constraint") + 1] == "constraints.txt"
        assert names(words) <= pinned().keys()
    assert names(dependencies) == required("dependencies") - {"pyspark"} | {"numba", "hatchling"}
    assert names(mpi) == required("mpi") - {"numba"}
    assert "--no-deps" in package
    assert package[-1] == "."


def test_what_it_copies_is_there_and_not_ignored() -> None:
    copied = [word for line in re.findall(r"^COPY (.*)$", TEXT, flags=re.MULTILINE) for word in line.split()[:-1]]
    assert len(copied) > 5
    kept = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(kept) == sorted(copied)
    for path in copied:
        assert (ROOT / path).exists()


def docker(*words: str, seconds: int = 60) -> subprocess.CompletedProcess[str]:
    command = [shutil.which("docker") or "docker", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)  # noqa: S603 - ours


@pytest.mark.slow("builds an image: downloads Spark and packages")
@pytest.mark.parametrize("extras", ["", "mpi"])
def test_the_image_builds_and_runs(extras: str, tmp_path: Path) -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no Docker")
    if docker("info").returncode != 0:
        pytest.skip("no Docker daemon answers")
    built = docker("build", "--tag", TAG, "--build-arg", f"EXTRAS={extras}", ".", seconds=1800)
    assert built.returncode == 0, built.stderr[-4000:]
    (tmp_path / "app.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)
    submit = ["/opt/spark/bin/spark-submit", "--master", "local[2]", "--conf", f"spark.sql.extensions={EXTENSION}"]
    ran = docker("run", "--rm", "--volume", f"{tmp_path}:/opt/app:ro", TAG, *submit, "/opt/app/app.py", seconds=300)
    assert "rows 10 10" in ran.stdout, ran.stderr[-4000:]
    assert "jars \n" in ran.stdout  # the jar among Spark's own is enough
    if extras:
        assert "two ranks started" in docker("run", "--rm", TAG, "python3", "-m", "pyspark_paralagg", "doctor").stdout
