"""configure, attach, bridge, doctor: what they add to a session, what they leave alone, what they say.

Most look at a builder's options with a jar that is only a name; two start a Spark of their own in another process.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyspark.sql
import pytest
from packaging.specifiers import SpecifierSet
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from spark_versions import since

from mpi_backend.launch import trial
from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session import configure as configuring
from pyspark_paralagg.session import doctor as diagnosis
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.configure import configure
from pyspark_paralagg.session.doctor import doctor
from pyspark_paralagg.session.jvm import EXTENSION, handshake
from pyspark_paralagg.session.shim import find_jar
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[1]
JAR = "/where/paralagg.jar"
COMPILER = {"spark.paralagg.python": sys.executable, "spark.paralagg.pythonPath": str(PROJECT)}
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


@pytest.fixture
def _no_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a fresh process: no JVM, no arguments, no defaults file; the jar is found at JAR."""
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(configuring, "find_jar", lambda _spark=None: Path(JAR))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_API_MODE"):
        monkeypatch.delenv(name, raising=False)


def _options(builder: SparkSession.Builder) -> dict[str, Any]:
    return dict(builder._options)


@pytest.mark.usefixtures("_no_jvm")
class TestConfigure:
    """What stands on the builder afterwards."""

    def test_sets_jar_and_extension_and_nothing_else(self) -> None:
        builder = SparkSession.builder.master("local[2]")
        assert configure(builder) is builder
        assert _options(builder) == {
            "spark.master": "local[2]",
            "spark.jars": JAR,
            "spark.sql.extensions": EXTENSION,
            **COMPILER,
        }

    def test_appends_to_what_the_builder_carries(self) -> None:
        builder = SparkSession.builder.config("spark.jars", "/a.jar, /b.jar").config("spark.sql.extensions", "x.Y")
        assert _options(configure(builder)) == {
            "spark.jars": f"/a.jar,/b.jar,{JAR}",
            "spark.sql.extensions": f"x.Y,{EXTENSION}",
            **COMPILER,
        }

    def test_leaves_a_python_that_somebody_chose(self) -> None:
        options = _options(configure(SparkSession.builder.config("spark.paralagg.python", "/my/python")))
        assert options["spark.paralagg.python"] == "/my/python"

    def test_twice_is_as_good_as_once(self) -> None:
        once = _options(configure(SparkSession.builder.config("spark.jars", "/a.jar")))
        assert _options(configure(configure(SparkSession.builder.config("spark.jars", "/a.jar")))) == once

    def test_appends_to_a_spark_conf(self) -> None:
        conf = SparkConf(loadDefaults=False).set("spark.jars", "/a.jar")
        assert _options(configure(SparkSession.builder.config(conf=conf)))["spark.jars"] == f"/a.jar,{JAR}"

    def test_appends_to_the_defaults_file(self, tmp_path: Path) -> None:
        (tmp_path / "spark-defaults.conf").write_text(
            "# spark.jars /no.jar\nspark.jars   /d.jar\nspark.sql.extensions=x.Y\n"
        )
        options = _options(configure(SparkSession.builder))
        assert options == {"spark.jars": f"/d.jar,{JAR}", "spark.sql.extensions": f"x.Y,{EXTENSION}", **COMPILER}

    @pytest.mark.parametrize(
        ("arguments", "jars"),
        [
            ("--jars /s.jar pyspark-shell", "/s.jar"),
            ("--conf spark.jars=/c.jar pyspark-shell", "/c.jar"),
            ("--conf 'spark.jars=/c.jar' --jars=/s.jar pyspark-shell", "/s.jar"),
            ("--name x pyspark-shell", "/d.jar"),
        ],
    )
    def test_appends_to_submit_arguments(
        self, arguments: str, jars: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "spark-defaults.conf").write_text("spark.jars /d.jar\n")
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        assert _options(configure(SparkSession.builder))["spark.jars"] == f"{jars},{JAR}"

    def test_properties_file_of_submit_arguments_replaces_the_defaults(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "spark-defaults.conf").write_text("spark.jars /d.jar\n")
        (tmp_path / "mine.conf").write_text("spark.jars: /m.jar\n")
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {tmp_path / 'mine.conf'} pyspark-shell")
        assert _options(configure(SparkSession.builder))["spark.jars"] == f"/m.jar,{JAR}"

    @pytest.mark.parametrize("order", ["ours first", "delta's first"])
    def test_goes_with_deltas_helper_in_either_order(self, order: str) -> None:
        delta: Callable[[SparkSession.Builder], SparkSession.Builder] = pytest.importorskip(
            "delta"
        ).configure_spark_with_delta_pip
        builder = SparkSession.builder.config("spark.sql.extensions", DELTA_EXTENSION)
        both = delta(configure(builder)) if order == "ours first" else configure(delta(builder))
        options = _options(both)
        assert options["spark.jars.packages"].startswith("io.delta:delta-spark_")
        assert options["spark.jars"] == JAR
        assert options["spark.sql.extensions"] == f"{DELTA_EXTENSION},{EXTENSION}"

    def test_leaves_a_connect_builder_alone(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "pyspark_paralagg")
        assert _options(configure(SparkSession.builder.remote("sc://localhost"))) == {"spark.remote": "sc://localhost"}
        assert "plain DataFrames" in caplog.text

    @pytest.mark.parametrize(("extensions", "warns"), [(None, True), (DELTA_EXTENSION, True), (EXTENSION, False)])
    def test_warns_where_a_session_without_the_shim_runs(
        self,
        extensions: str | None,
        warns: bool,  # noqa: FBT001 - a parameter of the test
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        running = SimpleNamespace(getConf=lambda: {"spark.sql.extensions": extensions})
        monkeypatch.setattr(SparkContext, "_active_spark_context", running)
        configure(SparkSession.builder)
        assert ("ra.attach(spark)" in caplog.text) is warns

    def test_says_what_to_install_where_java_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(EnvironmentProblem) as refused:
            configure(SparkSession.builder)
        assert refused.value.code == "PARALAGG_JAVA_MISSING"


class TestBridge:
    """The handshake."""

    @pytest.mark.parametrize("says", [f"4.1.3|{VERSION}", "4.2.0|0.0.9", "nonsense"])
    def test_shim_of_another_version_is_a_mismatch(self, says: str) -> None:
        module = SimpleNamespace(version=lambda: says)
        with pytest.raises(EnvironmentProblem, match=re.escape(VERSION)) as refused:
            handshake(SimpleNamespace(version="4.2.1"), module)
        assert refused.value.code == "PARALAGG_SHIM_MISMATCH"

    def test_another_patch_level_of_spark_is_none(self) -> None:
        module = SimpleNamespace(version=lambda: f"4.2.0|{VERSION}")
        assert handshake(SimpleNamespace(version="4.2.1"), module) is module

    def test_connect_session_has_no_bridge(self) -> None:
        with pytest.raises(EnvironmentProblem, match="Spark Connect") as refused:
            bridge(SimpleNamespace(version="4.2.0"))
        assert refused.value.code == "PARALAGG_SHIM_MISSING"

    def test_both_sides_carry_the_same_version(self) -> None:
        scala = PROJECT / "jvm_shim/src/main/scala/org/apache/spark/sql/paralagg/ShimVersion.scala"
        assert f'"{VERSION}"' in scala.read_text()


class TestDoctor:
    """What a person reads."""

    def test_lists_every_part(self) -> None:
        told = doctor()
        assert [finding.part for finding in told.findings] == [
            "python", "java", "spark", "shim", "delta", "mpi", "session",
        ]  # fmt: skip
        assert str(told).startswith(f"pyspark-paralagg {VERSION}\n")

    def test_says_one_cause_and_what_to_do(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "spark-core_2.13-3.4.1.jar").touch()
        monkeypatch.setenv("SPARK_HOME", str(tmp_path))
        told = doctor()
        assert [problem.code for problem in told.problems] == ["PARALAGG_SPARK_UNSUPPORTED"]
        assert not told.is_healthy
        assert re.search(r"^! spark +3\.4\.1$", str(told), re.MULTILINE)
        assert "pip install" in str(told)

    def test_has_started_ranks_where_it_says_so(self) -> None:
        pytest.importorskip("mpi4py")
        found = next(finding for finding in doctor().findings if finding.part == "mpi")
        assert "two ranks started and connected" in found.found
        assert found.problem is None

    @pytest.mark.parametrize(
        ("script", "code", "why"),
        [
            ("echo no such host >&2; exit 3", "PARALAGG_MPI_NO_LAUNCHER", "no such host"),
            ("exit 3", "PARALAGG_MPI_NO_LAUNCHER", "exit code 3"),
            ("echo ranks 1; echo ranks 1", "PARALAGG_MPI_MISMATCH", "started 2 ranks, but MPI reports"),
        ],
    )
    def test_says_that_ranks_do_not_start(
        self, script: str, code: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("mpi4py")
        launcher = tmp_path / "mpiexec"
        launcher.write_text(f"#!/bin/sh\n{script}\n")
        launcher.chmod(0o755)
        monkeypatch.setattr(trial, "mpiexec", lambda _: str(launcher))
        told = doctor()
        assert [problem.code for problem in told.problems] == [code]
        assert why in str(told)
        assert "No problems found" not in str(told)
        assert told.is_healthy  # ranks are optional

    def test_says_what_ranks_miss(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(diagnosis, "_version_of", lambda _: None)
        assert "no mpi4py: ranks cannot run" in str(doctor())


@since("4.0", "3.5 says nothing of pandas 3")
@since("4.2", "PySpark warns of pandas 3")
def test_pandas_3_is_excluded_while_pyspark_warns_of_it() -> None:
    (line,) = re.findall(r'"pandas(>=.+?)"', (PROJECT / "pyproject.toml").read_text())
    assert "2.3.3" in SpecifierSet(line)
    assert "3.0.0" not in SpecifierSet(line)
    source = (Path(pyspark.sql.__file__).parent / "pandas" / "utils.py").read_text()
    assert "PySpark does not yet fully support pandas >= 3.0.0" in source


def _run(script: str, **environment: str) -> list[str]:
    """Run a script in a process with a Spark of its own; return the lines that it printed."""
    done = subprocess.run(  # noqa: S603 - this Python, and scripts of this file
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


START = """
import logging
import pyspark_paralagg as ra
from pyspark.sql import SparkSession
from pyspark_paralagg.session.jvm import EXTENSION, handshake
from pyspark_paralagg.session.attach import bridge
logging.basicConfig()
RECURSION = "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x % 2 + 1 FROM r) SELECT * FROM r ORDER BY x"
SPARKS_OWN = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT * FROM r"
def builder(): return SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
"""


@pytest.mark.slow
@since("4.1", "its own recursion runs")
def test_attach_then_configure_in_the_same_jvm() -> None:
    lines = _run(
        START
        + """
spark = builder().getOrCreate()
try: bridge(spark)
except ra.EnvironmentProblem as problem: print(problem.code)
confs = dict(spark.sparkContext.getConf().getAll()), spark.sparkContext._jsc.sc().listJars().size()
ra.attach(ra.attach(spark))
assert dict(spark.sparkContext.getConf().getAll()) == confs[0]
print(spark._jsparkSession.experimental().extraStrategies().size(), spark.sparkContext._jsc.sc().listJars().size())
print(bridge(spark).slots(spark._jsparkSession))
print(bridge(spark.newSession()).version().split("|")[0] == spark.version)
try: spark.sql(RECURSION)
except Exception as problem: print(problem.getCondition(), "ra.configure" in str(problem), "line 1" in str(problem))
print(spark.sql(SPARKS_OWN).count())
print(spark.newSession().sql(RECURSION).count())
spark.stop()

spark = ra.configure(builder()).getOrCreate()
print(EXTENSION in spark.conf.get("spark.sql.extensions"), spark._jsparkSession.experimental().extraStrategies().size())
print(bridge(spark).slots(spark._jsparkSession))
print(ra.doctor().is_healthy)
spark.stop()
"""
    )
    sql = ["PARALAGG_SQL_NOT_CONFIGURED True True", "3", "2"]
    assert lines == ["PARALAGG_SHIM_MISSING", "1 1", "2", "True", *sql, "True 0", "2", "True"]


@pytest.mark.slow
@since("4.0", "WITH RECURSIVE")
def test_configured_session_has_the_shim_even_with_jars_among_the_submit_arguments(tmp_path: Path) -> None:
    other = tmp_path / "other.jar"
    other.write_bytes(b"PK\x05\x06" + bytes(18))  # an empty archive
    lines = _run(
        START
        + """
spark = ra.configure(builder()).getOrCreate()
print(bridge(spark).slots(spark._jsparkSession))
print(sorted(jar.rpartition("/")[2] for jar in spark.conf.get("spark.jars").split(",")))
print(spark.sql(RECURSION).collect())
spark.stop()
""",
        PYSPARK_SUBMIT_ARGS=f"--jars {other} pyspark-shell",
    )
    assert lines == ["2", str(["other.jar", find_jar().name]), "[Row(x=1), Row(x=2)]"]


@pytest.mark.slow
def test_defining_after_stop_is_an_error_with_its_code() -> None:
    lines = _run(
        START
        + """
spark = builder().getOrCreate()
base = spark.range(1).selectExpr("id AS k")
spark.stop()
calls = [
    *(lambda b=b: ra.recursive_agg(base, "k", step=lambda r: r, backend=b) for b in ("auto", "spark", "dataframe")),
    lambda: ra.recursive({"r": ra.relation(base, keys="k")}, step=lambda r: {"r": r}),
    lambda: ra.datalog(spark, ".decl r(x: number) .output r r(1).")["r"],
    lambda: ra.attach(spark),
    lambda: ra.explain(base),
    lambda: ra.report(base),
]
for call in calls:
    try: call()
    except ra.EnvironmentProblem as problem: print(problem.code, "getOrCreate()" in problem.hint)
spark = ra.configure(builder()).getOrCreate()
print(spark.range(3).selectExpr("id AS k").recursive_agg("k", step=lambda r: r).count())
spark.stop()
"""
    )
    assert lines == ["PARALAGG_SESSION_STOPPED True"] * 8 + ["3"]
