"""GraphX, which lies in pyspark's jars and has no Python API: a small Scala driver, compiled on first use.

The compiler lies in pyspark's jars too; the result is kept in the cache directory, by Spark version and source.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark

from benchmarks.datasets import DEFAULT_CACHE, Graph
from benchmarks.queries import DAMPING, PAGERANK_ROUNDS
from benchmarks.systems import Answer
from benchmarks.systems.spark_session import HeapPeak, builder

_SOURCE = Path(__file__).parent.parent / "graphx" / "GraphXQueries.scala"


def _compiled(cache: Path) -> Path:
    """Return the driver's jar for the installed Spark, compiling it where there is none."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    jar = cache / f"graphx-{pyspark.__version__}-{digest}.jar"
    if jar.exists():
        return jar
    spark_home = Path(os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)))
    jars = str(spark_home / "jars" / "*")
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java") or "java"
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=cache) as directory:
        subprocess.run(  # noqa: S603 (our own arguments)
            [java, "-cp", jars, "scala.tools.nsc.Main", "-classpath", jars, "-d", directory, str(_SOURCE)], check=True
        )
        unfinished = Path(directory) / "graphx.jar"
        classes = sorted(Path(directory).rglob("*.class"))
        with zipfile.ZipFile(unfinished, "w") as archive:
            for file in classes:
                archive.write(file, file.relative_to(directory))
        unfinished.replace(jar)
    return jar


class GraphX:
    """One Spark session with the compiled driver on its class path."""

    def __init__(self, memory: str) -> None:
        jar = _compiled(DEFAULT_CACHE)
        self._spark = builder(memory).config("spark.driver.extraClassPath", str(jar)).getOrCreate()
        self._heap = HeapPeak(self._spark)
        self.version = f"GraphX {self._spark.version}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Build the graph in memory, then ask; the loop is the latter alone, its jobs and all."""
        self._heap.reset()
        spark: Any = self._spark
        jvm, session = spark._jvm, spark._jsparkSession  # noqa: SLF001 (pyspark's only way to the JVM)
        queries = jvm.benchmarks.GraphXQueries
        found = queries.answer(session, query, graph.edges_file, graph.source, PAGERANK_ROUNDS, DAMPING)
        return Answer((*found.whole(), *found.real()), found.loop(), {"heap_peak_mb": self._heap.megabytes()})


def start(_name: str, memory: str) -> GraphX:
    """Compile the driver if need be and start Spark."""
    return GraphX(memory)
