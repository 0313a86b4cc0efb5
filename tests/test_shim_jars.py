"""Jars of the shim that do not fit: for another minor of Spark, or of two versions. Both sides are named.

Applications run by spark-submit. A jar for another Spark is ours with another note in it: only the note is read.
Where `make jars` has run, as in CI, jars that are really compiled for the other Sparks are tried, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import python_path

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session import configure as configuring
from pyspark_paralagg.session.doctor import doctor
from pyspark_paralagg.session.jvm import EXTENSION, EXTENSIONS
from pyspark_paralagg.session.shim import PROPERTIES, find_jar, read_properties
from pyspark_paralagg.session.shim_jars import ShimJar, check
from pyspark_paralagg.session.spark_home import find_spark_home, minor_of
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.rotates(runs=3)

ROOT = Path(__file__).parents[1]
FITS = ShimJar("/a.jar", "4.2.0", "11d")
CODE = "PARALAGG_SHIM_MISMATCH"

# What is there

APP = """
import json, os, sys
import pyspark_paralagg as ra
from pyspark.sql import SparkSession
def say(what, make):
    try: print(json.dumps([what, make()]), flush=True)
    except Exception as problem: print(json.dumps([what, str(problem)]), flush=True)
def rows():
    spark = ra.configure(SparkSession.builder).getOrCreate()
    e = spark.createDataFrame([(1, 2), (2, 3)], "src bigint, dst bigint")
    base = spark.createDataFrame([(1,)], "node bigint")
    step = lambda r: r.join(e, r.node == e.src).select(e.dst.alias("node"))
    return [base.recursive_agg("node", step=step, backend="spark").count(), spark.conf.get("spark.jars")]
os.environ.pop("SPARK_HOME")  # as in the driver of YARN's cluster mode
say("configure", lambda: str(ra.configure(SparkSession.builder)._options["spark.sql.extensions"]))
say("session", lambda: SparkSession.builder.getOrCreate().version)
if "rows" in sys.argv: say("rows", rows)
"""


def with_note(jar: Path, spark: str, digest: str) -> Path:
    """Write a copy of our jar with another note."""
    with zipfile.ZipFile(find_jar()) as ours, zipfile.ZipFile(jar, "w") as other:
        for name in ours.namelist():
            note = f"spark={spark}\nshim={digest}\n"
            other.writestr(name, note if name == PROPERTIES else ours.read(name))
    return jar


@pytest.fixture(scope="module")
def submit(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Return a function that submits ``APP`` with jars and the extension, and returns what it said."""
    app = tmp_path_factory.mktemp("app") / "app.py"
    app.write_text(APP)

    def run(*jars: Path, words: tuple[str, ...] = ()) -> dict[str, Any]:
        home = find_spark_home().home
        confs = {"spark.ui.enabled": "false", EXTENSIONS: EXTENSION, "spark.driver.bindAddress": "127.0.0.1"}
        options = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *options]
        command += ["--jars", ",".join(map(str, jars)), str(app), *words]
        variables = {"PYTHONPATH": python_path(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        done = subprocess.run(  # noqa: S603 - a program of Spark's
            command, env={**kept, **variables}, capture_output=True, text=True, timeout=240, check=False
        )
        said = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        assert said, done.stderr[-3000:]
        return said

    return run


@pytest.mark.slow("an application by spark-submit")
def test_a_jar_for_another_minor_is_an_error_that_names_both(
    submit: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    jar = with_note(tmp_path / "other.jar", "4.9.1", "0" * 12)
    said = submit(jar)
    both = f"{jar} is the shim for Spark 4.9.1, but this is Spark {find_spark_home().version}"
    for what in ("configure", "session"):  # by Python, and by the extension
        assert CODE in said[what]
        assert both in said[what]


@pytest.mark.slow("an application by spark-submit")
def test_jars_of_two_versions_are_an_error_that_names_both(
    submit: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    old = with_note(tmp_path / "old.jar", find_spark_home().version, "0" * 12)
    said = submit(find_jar(), old)
    for what in ("configure", "session"):
        assert CODE in said[what]
        assert str(find_jar()) in said[what]
        assert str(old) in said[what]


@pytest.mark.slow("an application by spark-submit")
def test_a_listed_jar_needs_no_folder_of_spark_and_is_not_added_again(
    submit: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """As on YARN in cluster mode: the driver has Spark's jars, but no ``SPARK_HOME``."""
    spark = find_spark_home()
    jar = with_note(tmp_path / f"paralagg-spark{spark.minor}.jar", spark.version, read_properties(find_jar())["shim"])
    said = submit(jar, words=("rows",))
    assert said["configure"] == EXTENSION
    assert said["session"] == spark.version
    count, listed = said["rows"]
    assert count == 3
    assert Path(listed.removeprefix("file:")).resolve() == jar.resolve()


def compiled_for_others() -> list[Any]:
    """Return the jars of ``make jars`` for other minors of Spark, whose sources are the present ones."""
    jars = sorted((ROOT / "build" / "jars").glob("*.jar"))
    return [jar for jar in jars if minor_of(read_properties(jar).get("spark", "")) != find_spark_home().minor]


@pytest.mark.slow("spark-sql starts for each supported Spark")
def test_really_compiled_jars_for_other_sparks_are_refused_without_python(tmp_path: Path) -> None:
    """Also those of another Scala: the check links with both."""
    jars = compiled_for_others()
    if not jars:
        pytest.skip("make jars has not run: there is no jar for another Spark")
    for jar in jars:
        command = [str(find_spark_home().home / "bin" / "spark-sql"), "--master", "local[1]", "--jars", str(jar)]
        command += ["--conf", f"{EXTENSIONS}={EXTENSION}", "--conf", "spark.ui.enabled=false", "-e", "SELECT 1"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)  # noqa: S603 - a program of Spark's
        assert done.returncode != 0
        spark = read_properties(jar)["spark"]
        assert f"[{CODE}] file:{jar} is the shim for Spark {spark}, but this is Spark" in done.stderr, done.stderr[
            -3000:
        ]


# The rule


@pytest.mark.parametrize("jars", [[], [FITS], [FITS, ShimJar("/b.jar", "4.2.1", "11d")]])
def test_one_version_for_this_minor_fits(jars: list[ShimJar]) -> None:
    check(jars, "4.2.3")


@pytest.mark.parametrize("other", [ShimJar("/b.jar", "4.1.4", "11d"), ShimJar("/b.jar", "4.2.0", "0e8")])
def test_a_second_jar_has_to_be_the_same(other: ShimJar) -> None:
    for jars in ([FITS, other], [other, FITS]):
        with pytest.raises(EnvironmentProblem) as refused:
            check(jars, "4.2.0")
        assert refused.value.code == CODE
        assert "/b.jar" in refused.value.message
        assert refused.value.hint


@pytest.mark.parametrize("digest", ["ours", "0" * 12])
def test_doctor_and_configure_know_a_jar_among_sparks_own(
    digest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an image has it, and as one of an older image."""
    spark = find_spark_home()
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{spark.version}.jar").touch()
    ours = read_properties(find_jar())["shim"]
    jar = tmp_path / "jars" / f"paralagg-spark{spark.minor}.jar"
    with_note(jar, spark.version, ours if digest == "ours" else digest)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = next(finding for finding in doctor().findings if finding.part == "shim")
    if digest == "ours":
        assert (find_jar(), found.problem) == (jar, None)
        assert str(jar) in found.found
    else:
        assert found.problem is not None
        assert found.problem.code == CODE
        assert str(jar) in found.problem.message


@pytest.mark.parametrize(
    ("jar", "listed", "is_there"),
    [
        ("/apps/paralagg-spark4.2.jar", "hdfs:///apps/paralagg-spark4.2.jar", True),
        ("/apps/paralagg-spark4.2.jar", "local:///mine.jar, local:///apps/paralagg-spark4.2.jar", True),
        ("/apps/paralagg-spark4.2.jar", "/mine.jar", False),
        ("/spark/jars/paralagg.jar", "", True),
    ],
)
def test_executors_have_the_jar_if_it_is_listed_or_sparks_own(
    jar: str,
    listed: str,
    is_there: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = SimpleNamespace(version=lambda: f"4.2.0|{VERSION}")
    monkeypatch.setattr(configuring, "load_bridge", lambda _: module)
    monkeypatch.setattr(configuring, "jar_of", lambda _: Path(jar))
    monkeypatch.setattr(configuring, "spark_version", lambda _: "4.2.1")
    monkeypatch.setattr(configuring, "is_with_spark", lambda _, path: path.parent == Path("/spark/jars"))
    assert configuring._has_shim(object(), listed) is is_there
