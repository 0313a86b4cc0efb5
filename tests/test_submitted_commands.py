"""Commands of the pages about deployment, read by Spark's own ``SparkSubmitArguments`` and ``SparkSubmit``.

The commands are those of the pages. No cluster is there: the test ends where Spark would hand over to YARN or
Kubernetes, with the confs and environment that they would get.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from pages import ROOT, blocks

from pyspark_paralagg.session.jvm import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FOLDER = ROOT / "docs" / "deployment"
SQL_CLIENT = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver"
SHIM = "/opt/paralagg.jar"
"""What ``$(paralagg shim)`` stands for."""
KUBERNETES = ["--master", "k8s://https://cluster.example.com:6443", "--deploy-mode", "cluster"]


def commands(page: Path) -> list[list[str]]:
    """Return the arguments of each ``spark-submit`` and ``spark-sql`` of a page, as a shell passes them."""
    texts = [b.text.replace("\\\n", " ").replace("$(paralagg shim)", SHIM) for b in blocks(page) if b.language == "sh"]
    # To a shell, as opposed to shlex, a # within a word begins no comment.
    lines = [shlex.split(re.sub(r"(^|\s)#.*", "", line)) for text in texts for line in text.splitlines()]
    submitted = [words[1:] for words in lines if words[:1] == ["spark-submit"]]
    clients = [words[1:] for words in lines if words[:1] == ["spark-sql"]]  # whose script adds a class
    return [*submitted, *(["--class", SQL_CLIENT, *words, "spark-internal"] for words in clients)]


class Prepared:
    """What Spark makes of a command: the conf of the application, the class that it starts, and its ``arguments``."""

    def __init__(self, spark: SparkSession, words: list[str]) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        deploy = self._jvm.org.apache.spark.deploy
        env = self._jvm.PythonUtils.toScalaMap({"HADOOP_CONF_DIR": str(ROOT)})
        # Spark asks the storage of `s3a` for files that match, but that of `https` for none.
        words = [re.sub(r"\bs3a?://", "https://", word) for word in words]
        parsed = deploy.SparkSubmitArguments(self._jvm.PythonUtils.toSeq(words), env)
        prepared = deploy.SparkSubmit().prepareSubmitEnvironment(parsed, self._jvm.scala.Option.empty())
        self.jconf = prepared._3()
        self.conf = {pair._1(): _relative(pair._2()) for pair in self.jconf.getAll()}
        self.starts = prepared._4()
        self.arguments = [_relative(word) for word in prepared._1().mkString("\n").splitlines()]

    def driver_pod_environment(self, app: str) -> dict[str, str]:
        """Return the environment that Kubernetes gives the driver for the application's command."""
        k8s = self._jvm.org.apache.spark.deploy.k8s
        resource = k8s.submit.PythonMainAppResource(app)
        none = self._jvm.scala.Option.empty()
        words = spark_array(self._jvm)
        conf = k8s.KubernetesConf.createDriverConf(self.jconf, "app", resource, "PythonRunner", words, none)
        pod = k8s.features.DriverCommandFeatureStep(conf).configurePod(k8s.SparkPod.initialPod())
        return {variable.getName(): variable.getValue() for variable in pod.container().getEnv()}


def spark_array(jvm: Any) -> Any:  # noqa: ANN401 - py4j objects have no type
    """Return an empty array of Java's strings."""
    return jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.lang.String"), 0)


def _relative(text: str) -> str:
    """Return ``text`` without the URI of the working directory, which Spark puts before local files."""
    return re.sub(f"file:(//)?{re.escape(str(ROOT))}/", "", text)


@pytest.fixture(autouse=True)
def _without_properties(spark: SparkSession) -> Iterator[None]:
    """Hide the confs of the session, which are properties of the JVM, from what Spark makes of a command."""
    system = spark.sparkContext._jvm.java.lang.System
    assert system.getProperty("user.dir") == str(ROOT)
    confs = {key: system.getProperty(key) for key in system.getProperties() if key.startswith("spark.")}
    for key in confs:
        system.clearProperty(key)
    yield
    for key, value in confs.items():
        system.setProperty(key, value)


def command(page: str, *marks: str) -> list[str]:
    """Return the only command of a page that has all ``marks`` among its words."""
    (found,) = [words for words in commands(FOLDER / page) if set(marks) <= set(words)]
    return found


@pytest.mark.parametrize("page", sorted(p.name for p in FOLDER.glob("*.md") if commands(p)))
def test_spark_reads_each_command(spark: SparkSession, page: str) -> None:
    for words in commands(FOLDER / page):
        prepared = Prepared(spark, words)
        extensions = prepared.conf.get("spark.sql.extensions", EXTENSION).split(",")
        assert extensions[-1] in (EXTENSION, "mine.Extension")  # the latter with ra.configure
        unknown = [key for key in prepared.conf if key.startswith("spark.paralagg.") and key not in known_keys()]
        assert unknown == []


def known_keys() -> set[str]:
    from pyspark_paralagg.session.conf import REGISTRY  # noqa: PLC0415 - as the page of the configuration does

    return {key.name for key in REGISTRY}


def test_yarn_in_client_mode_needs_no_more_than_fixed_executors(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("yarn.md", "client"))
    assert prepared.starts == "org.apache.spark.deploy.PythonRunner"  # the driver is this process
    assert prepared.conf["spark.executor.instances"] == "4"
    assert prepared.conf["spark.dynamicAllocation.enabled"] == "false"
    assert "spark.yarn.dist.archives" not in prepared.conf


def test_yarn_in_cluster_mode_gets_jar_archive_and_python(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("yarn.md", "cluster"))
    expected = {
        "spark.master": "yarn",
        "spark.submit.deployMode": "cluster",
        "spark.executor.instances": "4",
        "spark.executor.cores": "4",
        "spark.dynamicAllocation.enabled": "false",
        "spark.yarn.dist.jars": "paralagg-spark4.2.jar",
        "spark.yarn.dist.archives": "environment.tar.gz#environment",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "./environment/bin/python",
        "spark.executorEnv.PYSPARK_PYTHON": "./environment/bin/python",
        "spark.paralagg.python": "./environment/bin/python",
        "spark.sql.extensions": EXTENSION,
        "spark.yarn.isPython": "true",
    }
    assert {key: prepared.conf.get(key) for key in expected} == expected
    assert prepared.starts == "org.apache.spark.deploy.yarn.YarnClusterApplication"
    assert prepared.arguments[:2] == ["--primary-py-file", "app.py"]


def test_kubernetes_with_our_image_has_the_jar_there(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("kubernetes.md", "local:///opt/app/app.py"))
    expected = {
        "spark.master": "k8s://https://cluster.example.com:6443",
        "spark.app.name": "paths",
        "spark.kubernetes.container.image": "registry.example.com/paralagg",
        "spark.executor.instances": "4",
        "spark.executor.cores": "4",
        "spark.dynamicAllocation.enabled": "false",
        "spark.sql.extensions": EXTENSION,
        "spark.paralagg.python": "python3",
        "spark.jars": None,
        "spark.archives": None,
    }
    assert {key: prepared.conf.get(key) for key in expected} == expected
    assert prepared.starts == "org.apache.spark.deploy.k8s.submit.KubernetesClientApplication"
    assert prepared.arguments[:2] == ["--primary-py-file", "local:///opt/app/app.py"]


def test_kubernetes_with_another_image_gets_jar_archive_and_python(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("kubernetes.md", "s3a://bucket/app.py"))
    expected = {
        "spark.jars": "https://bucket/paralagg-spark4.2.jar",
        "spark.archives": "https://bucket/environment.tar.gz#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.paralagg.python": "./environment/bin/python",
        "spark.sql.extensions": EXTENSION,
        "spark.dynamicAllocation.enabled": "false",
    }
    assert {key: prepared.conf.get(key) for key in expected} == expected
    environment = prepared.driver_pod_environment("s3a://bucket/app.py")
    assert environment["PYSPARK_PYTHON"] == "./environment/bin/python"


def test_a_standalone_cluster_gets_our_jar_beside_the_users(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("spark-submit.md", f"mine.jar,{SHIM}"))
    assert prepared.conf["spark.jars"] == f"mine.jar,file:{SHIM}"
    assert prepared.conf["spark.sql.extensions"] == f"mine.Extension,{EXTENSION}"


def test_sql_alone_gets_jar_extension_and_python(spark: SparkSession) -> None:
    prepared = Prepared(spark, command("sql.md"))
    assert prepared.starts == SQL_CLIENT
    assert prepared.conf["spark.jars"] == f"file:{SHIM}"
    assert prepared.conf["spark.paralagg.python"] == "/opt/python/bin/python3"


def test_parameters_of_emr_serverless_are_confs(spark: SparkSession) -> None:
    """Amazon's service passes the text to spark-submit."""
    (text,) = [b.text for b in blocks(FOLDER / "emr.md") if b.language == "" and "--jars" in b.text]
    prepared = Prepared(spark, [*KUBERNETES, *shlex.split(text), "local:///app.py"])
    assert prepared.conf["spark.sql.extensions"] == EXTENSION
    assert prepared.conf["spark.archives"] == "https://bucket/environment.tar.gz#environment"
    assert prepared.conf["spark.emr-serverless.driverEnv.PYSPARK_PYTHON"] == "./environment/bin/python"
    assert prepared.conf["spark.jars"] == "https://bucket/paralagg-spark4.0.jar"
