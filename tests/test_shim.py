"""From the machine's Java to a jar: what is found, what is refused with which code, what is compiled and how often.

A shim of one small file stands in for the real one, so that compiling takes a few seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session import linkage, shim
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.spark_home import SparkHome, find_spark_home, minor_of
from pyspark_paralagg.version import PYSPARK, SUPPORTED_MINORS

PROJECT = Path(__file__).parents[1]

DOOR = """
package org.apache.spark.sql.paralagg
import org.apache.spark.sql.SparkSessionExtensions
class Door extends (SparkSessionExtensions => Unit) {
  override def apply(e: SparkSessionExtensions): Unit = e.injectPlannerStrategy(_ => null)
}
"""


def _write_sources(root: Path, text: str = DOOR) -> Path:
    for folder in ("scala", *(f"spark-{minor}" for minor in SUPPORTED_MINORS)):
        (root / folder).mkdir(parents=True)
    (root / "scala" / "Door.scala").write_text(text)
    return root


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a small shim, no bundled jars, and an empty cache."""
    monkeypatch.setattr(shim, "_SOURCE_ROOTS", (_write_sources(tmp_path / "src"),))
    monkeypatch.setattr(shim, "_BUNDLED_JARS", tmp_path / "bundled")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "src"


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
@pytest.mark.usefixtures("sources")
def test_a_cache_that_cannot_be_written_is_named(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    with pytest.raises(EnvironmentProblem, match="cannot be written") as refused:
        shim.find_jar()
    assert refused.value.code == "PARALAGG_SHIM_BUILD"
    assert str(tmp_path / "file") in str(refused.value.value)
    assert "XDG_CACHE_HOME" in str(refused.value.hint)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, shim.ShimSources]:
    """Give the small shim's jar, compiled against the installed Spark."""
    root = _write_sources(tmp_path_factory.mktemp("shim") / "src")
    spark = find_spark_home()
    made = shim.ShimSources(root, spark.minor)
    jar = root.parent / "paralagg.jar"
    shim.build_jar(spark, made, jar)
    return jar, made


def _fake_java(folder: Path, says: str, status: int = 0) -> Path:
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {status}\n")
    launcher.chmod(0o755)
    return launcher


# Java


def test_java_missing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        EnvironmentProblem, match=r"apt-get install openjdk-17[\s\S]*brew install openjdk@17"
    ) as refused:
        find_java()
    assert refused.value.code == "PARALAGG_JAVA_MISSING"


def test_java_home_without_java_is_named_even_if_path_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path / "good", 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", str(tmp_path / "good" / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EnvironmentProblem, match=r"JAVA_HOME is .*gone") as refused:
        find_java()
    assert refused.value.code == "PARALAGG_JAVA_MISSING"


def test_a_java_that_only_complains_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, "The operation couldn't be completed. Unable to locate a Java Runtime.", status=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="Unable to locate") as refused:
        find_java()
    assert refused.value.code == "PARALAGG_JAVA_MISSING"


@pytest.mark.parametrize(
    ("says", "release"), [('openjdk version "11.0.2" 2019-01-15', 11), ('java version "1.8.0_292"', 8)]
)
def test_old_java_is_refused_with_its_release(
    says: str, release: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="needs Java 17") as refused:
        find_java()
    assert (refused.value.code, refused.value.value) == ("PARALAGG_JAVA_TOO_OLD", release)


def test_java_is_read_past_other_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_java(tmp_path, 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.4" 2024-07-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = find_java()
    assert (found.release, found.description) == (21, 'openjdk version "21.0.4" 2024-07-16')


def test_the_question_for_java_needs_a_bare_python_only(tmp_path: Path) -> None:
    """What `make` asks before it installs anything: -S hides all installed packages."""
    asked = subprocess.run(
        [sys.executable, "-S", "-m", "pyspark_paralagg", "java"],
        cwd=PROJECT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 1
    assert asked.stderr.startswith("PARALAGG_JAVA_MISSING: ")


# Spark


@pytest.mark.parametrize(("version", "minor"), [("4.2.0", "4.2"), ("4.1.4-amzn-0", "4.1"), ("4.10.1", "4.10")])
def test_minor_is_the_first_two_numbers(version: str, minor: str) -> None:
    assert minor_of(version) == minor


def test_pip_installs_the_supported_minors() -> None:
    assert f"pyspark>={SUPPORTED_MINORS[0]},<4.{int(SUPPORTED_MINORS[-1].split('.')[1]) + 1}" == PYSPARK
    project = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'    "{PYSPARK}",\n' in project


@pytest.mark.parametrize("version", ["3.4.4", "4.20.0", "9.1.0"])
def test_unknown_spark_is_named_with_the_supported_ones(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"spark-core_2.13-{version}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    supported = re.escape(f"supports Spark {', '.join(SUPPORTED_MINORS)}")
    with pytest.raises(EnvironmentProblem, match=supported) as refused:
        find_spark_home()
    assert (refused.value.code, refused.value.value) == ("PARALAGG_SPARK_UNSUPPORTED", version)


def test_spark_home_decides_which_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.1.3.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert find_spark_home() == SparkHome(tmp_path, "4.1.3")


def test_spark_home_without_spark_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="which it is not now") as refused:
        find_spark_home()
    assert refused.value.code == "PARALAGG_SPARK_MISSING"


# The jar


def test_digest_follows_names_and_contents(sources: Path) -> None:
    def digest() -> str:
        return shim.find_sources("4.2").digest

    first = digest()
    file = sources / "scala" / "Door.scala"
    file.write_text(DOOR + "// more\n")
    assert digest() != first
    file.write_text(DOOR)
    assert digest() == first
    file.rename(file.with_name("Gate.scala"))
    assert digest() != first


def test_relation_plugin_is_compiled_where_spark_has_connect(tmp_path: Path) -> None:
    sources = shim.find_sources("4.2")
    without = SparkHome(tmp_path, "4.2.0")
    (tmp_path / "jars").mkdir()
    names = {path.name for path in sources.scala} - {path.name for path in sources.compiled_with(without)}
    assert names == {"ParalaggRelations.scala"}
    (tmp_path / "jars" / "spark-connect_2.13-4.2.0.jar").touch()
    assert sources.compiled_with(without) == sources.scala


def test_a_file_is_for_its_minor_and_later_ones_until_one_replaces_it(sources: Path) -> None:
    for minor in ("4.0", "4.2"):
        (sources / f"spark-{minor}" / "Odd.scala").write_text("class Odd\n")
    found = {m: [p.parent.name for p in shim.find_sources(m).scala if p.name == "Odd.scala"] for m in SUPPORTED_MINORS}
    assert found == {
        "3.5": [],
        "4.0": ["spark-4.0"],
        "4.1": ["spark-4.0"],
        "4.2": ["spark-4.2"],
        "4.3": ["spark-4.2"],
    }


@pytest.mark.usefixtures("sources")
def test_jar_is_compiled_once_and_said_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    spark = find_spark_home()
    assert shim.locate_jar(spark) is None
    # All at once, as the workers of a test run would: each must see a whole jar.
    with ThreadPoolExecutor(2) as pool:
        jars = set(pool.map(lambda _: shim.find_jar(), range(2)))
    said = capfd.readouterr().err.splitlines()
    assert all(line.startswith("pyspark-paralagg: compiling the shim for Spark ") for line in said)
    assert 1 <= len(said) <= 2
    (jar,) = jars
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
        assert "org/apache/spark/sql/paralagg/Door.class" in archive.namelist()
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]

    before = jar.stat().st_mtime_ns
    assert shim.find_jar() == jar == shim.locate_jar(spark)
    assert jar.stat().st_mtime_ns == before
    assert capfd.readouterr().err == ""


def test_resources_go_into_the_jar_and_the_digest(sources: Path, tmp_path: Path) -> None:
    first = shim.find_sources("4.2").digest
    service = sources / "resources" / "META-INF" / "services" / "a.Service"
    service.parent.mkdir(parents=True)
    service.write_text("org.apache.spark.sql.paralagg.Door\n")
    made = shim.find_sources("4.2")
    assert made.digest != first
    (tmp_path / "classes").mkdir()
    shim._pack(find_spark_home(), made, tmp_path / "classes", tmp_path / "some.jar")
    with zipfile.ZipFile(tmp_path / "some.jar") as archive:
        assert archive.read("META-INF/services/a.Service") == service.read_bytes()


def test_compile_error_shows_the_compilers_words(sources: Path) -> None:
    (sources / "scala" / "Door.scala").write_text("class Door { def open: Int = unheardOf }\n")
    with pytest.raises(EnvironmentProblem, match="not found: value unheardOf") as refused:
        shim.find_jar()
    assert refused.value.code == "PARALAGG_SHIM_BUILD"
    assert not list(shim.cache_folder().rglob("*.jar"))


@pytest.mark.usefixtures("sources")
def test_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(EnvironmentProblem, match="XDG_CACHE_HOME") as refused:
        shim.find_jar()
    assert refused.value.code == "PARALAGG_SHIM_BUILD"


def test_spark_without_a_compiler_is_named(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    made = shim.ShimSources(_write_sources(tmp_path / "src"), "4.2")
    with pytest.raises(EnvironmentProblem, match="scala-compiler") as refused:
        shim.build_jar(SparkHome(tmp_path, "4.2.0"), made, tmp_path / "out" / "some.jar")
    assert refused.value.code == "PARALAGG_SHIM_BUILD"


def _bundle(jar: Path, sources: Path, *, spark: str, digest: str | None = None) -> Path:
    """Put the jar among the bundled ones, as if it had been made against that Spark."""
    bundled = sources.parent / "bundled" / f"paralagg-{spark}.jar"
    bundled.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar) as read, zipfile.ZipFile(bundled, "w") as write:
        for name in read.namelist():
            if name != shim.PROPERTIES:
                write.writestr(name, read.read(name))
        write.writestr(shim.PROPERTIES, f"spark={spark}\nshim={digest or shim.find_sources('4.2').digest}\n")
    return bundled


def test_bundled_jar_of_this_spark_is_taken(compiled: tuple[Path, shim.ShimSources], sources: Path) -> None:
    spark = find_spark_home()
    _bundle(compiled[0], sources, spark=f"{spark.minor}.99")
    exact = _bundle(compiled[0], sources, spark=spark.version)
    assert shim.locate_jar(spark) == exact


def test_bundled_jar_of_another_patch_level_is_taken_if_it_links(
    compiled: tuple[Path, shim.ShimSources], sources: Path
) -> None:
    spark = find_spark_home()
    near = _bundle(compiled[0], sources, spark=f"{spark.minor}.99")
    assert shim.locate_jar(spark) == near


def test_bundled_jar_of_other_sources_or_of_another_minor_is_left(
    compiled: tuple[Path, shim.ShimSources], sources: Path
) -> None:
    spark = find_spark_home()
    _bundle(compiled[0], sources, spark="4.9.0")
    _bundle(compiled[0], sources, spark=spark.version, digest="0" * 12)
    assert shim.locate_jar(spark) is None


def test_links_names_a_method_that_is_gone(compiled: tuple[Path, shim.ShimSources], tmp_path: Path) -> None:
    jars = find_spark_home().jars
    assert linkage.missing(compiled[0], jars) == []

    shutil.copytree(jars, tmp_path / "jars", copy_function=os.symlink)
    holder = next(jars.glob("spark-sql_2.1[23]-*.jar"))
    entry = "org/apache/spark/sql/SparkSessionExtensions.class"
    with zipfile.ZipFile(holder) as read, zipfile.ZipFile(tmp_path / "jars" / "0-first.jar", "w") as write:
        write.writestr(entry, read.read(entry).replace(b"injectPlannerStrategy", b"injectPlannerStrategem"[:21]))
    assert linkage.missing(compiled[0], tmp_path / "jars") == [
        "org/apache/spark/sql/SparkSessionExtensions.injectPlannerStrategy:(Lscala/Function1;)V"
    ]


def test_links_names_a_class_that_is_gone(compiled: tuple[Path, shim.ShimSources], tmp_path: Path) -> None:
    assert "org/apache/spark/sql/SparkSessionExtensions" in linkage.missing(compiled[0], tmp_path)
    assert not linkage.links(compiled[0], tmp_path)
