"""Build jars of a user: an extension of Spark, and a function that executors run. Spark's jars contain the compiler."""

from __future__ import annotations

import os
import subprocess
import zipfile
from typing import TYPE_CHECKING

from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from pathlib import Path

EXTENSION = "mine.Extension"
PACKAGE = "mine:extension:1.0"
_SOURCES = {
    "extension": """
package mine
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
class Extension extends (SparkSessionExtensions => Unit) {
  private val info = new ExpressionInfo("mine.Extension", "mine")
  override def apply(e: SparkSessionExtensions): Unit =
    e.injectFunction((FunctionIdentifier("mine"), info, (_: Seq[Expression]) => Literal(42)))
}
""",
    "function": """
package mine
class Square extends org.apache.spark.sql.api.java.UDF1[java.lang.Long, java.lang.Long] {
  override def call(x: java.lang.Long): java.lang.Long = x * x
}
""",
}


def build(folder: Path) -> dict[str, Path]:
    """Return the jars ``extension`` and ``function``."""
    jars = find_spark_home().jars / "*"
    java = [str(find_java().launcher), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(jars)]
    built = {}
    for name, source in _SOURCES.items():
        classes = folder / name
        classes.mkdir(parents=True)
        (folder / f"{name}.scala").write_text(source)
        command = [*java, "scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), str(folder / f"{name}.scala")]
        subprocess.run(command, check=True, timeout=300)  # noqa: S603 - Spark's own compiler
        built[name] = folder / f"{name}.jar"
        with zipfile.ZipFile(built[name], "w") as jar:
            for path in sorted(classes.rglob("*.class")):
                jar.write(path, path.relative_to(classes))
    return built


def as_package(jar: Path, folder: Path) -> list[str]:
    """Put ``jar`` into a Maven repository in ``folder``; return the options that resolve ``PACKAGE`` there."""
    group, artifact, version = PACKAGE.split(":")
    place = folder / "repository" / group / artifact / version
    place.mkdir(parents=True)
    os.link(jar, place / f"{artifact}-{version}.jar")
    (place / f"{artifact}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>"
        f"<artifactId>{artifact}</artifactId><version>{version}</version></project>"
    )
    settings = folder / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='here'/><resolvers>"
        f"<ibiblio name='here' m2compatible='true' root='{(folder / 'repository').as_uri()}'/>"
        "</resolvers></ivysettings>"
    )
    confs = {"spark.jars.ivySettings": str(settings), "spark.jars.ivy": str(folder / "ivy")}
    return ["--packages", PACKAGE, *(word for k, v in confs.items() for word in ("--conf", f"{k}={v}"))]
