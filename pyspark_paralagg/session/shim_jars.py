"""Find the shim's jars on the class path of a JVM, and refuse those that do not fit, before a class of one is loaded.

A jar for another Spark or Scala may link in part only, so its properties are read, not its classes. ``ShimJars.scala``
makes the same checks for sessions without Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session.shim import PROPERTIES, find_sources, read_properties
from pyspark_paralagg.session.spark_home import minor_of

if TYPE_CHECKING:
    from pyspark_paralagg.session.spark_home import SparkHome

_CODE = "PARALAGG_SHIM_MISMATCH"


@dataclass(frozen=True)
class ShimJar:
    """A jar of the shim: its path, the Spark that it was compiled against, and the digest of its sources."""

    path: str
    spark: str
    digest: str


def check_class_path(jvm: Any) -> None:  # noqa: ANN401 - py4j objects have no type
    """Raise ``PARALAGG_SHIM_MISMATCH`` if ``jvm`` has a jar for another minor of Spark, or jars of two versions."""
    check(jars_on_class_path(jvm), spark_version(jvm))


def check(jars: list[ShimJar], spark: str) -> None:
    """Raise ``PARALAGG_SHIM_MISMATCH`` unless all ``jars`` are one version of the shim, for the minor of ``spark``."""
    for jar in jars:
        if minor_of(jar.spark) != minor_of(spark):
            raise EnvironmentProblem(
                _CODE,
                f"{jar.path} is the shim for Spark {jar.spark}, but this is Spark {spark}",
                value=jar.path,
                hint="remove it from --jars, spark.jars and the class path; ra.configure() adds the right one, and "
                "`paralagg shim` prints its path",
            )
    others = [jar for jar in jars if jar.digest != jars[0].digest]
    if others:
        raise EnvironmentProblem(
            _CODE,
            f"the class path has jars of two versions of the shim: {jars[0].path} and {others[0].path}",
            value=[jars[0].path, others[0].path],
            hint="keep the one whose path `paralagg shim` prints, and remove the other from --jars, spark.jars and the "
            "class path",
        )


def check_own_jars(spark: SparkHome) -> None:
    """Raise ``PARALAGG_SHIM_MISMATCH`` for a jar among Spark's own that is not of these sources; needs no JVM."""
    notes = {jar: read_properties(jar) for jar in sorted(spark.jars.glob("*.jar")) if "paralagg" in jar.name}
    jars = [ShimJar(str(jar), note["spark"], note["shim"]) for jar, note in notes.items() if note]
    if jars:
        check([*jars, ShimJar("this installation", spark.version, find_sources(spark.minor).digest)], spark.version)


def jars_on_class_path(jvm: Any) -> list[ShimJar]:  # noqa: ANN401 - py4j objects have no type
    """Return the jars in the order in which the driver's class loader looks into them."""
    found = []
    urls = class_loader(jvm).getResources(PROPERTIES)
    while urls.hasMoreElements():
        url = urls.nextElement()
        connection = url.openConnection()
        connection.setUseCaches(False)  # a cached jar stays open, also when the file has been replaced
        stream = connection.getInputStream()
        properties = jvm.java.util.Properties()
        properties.load(stream)
        stream.close()
        path = unquote(urlparse(str(url.getPath()).partition("!/")[0]).path)
        found.append(ShimJar(path, properties.getProperty("spark", ""), properties.getProperty("shim", "")))
    return found


def jar_of(java_object: Any) -> Path:  # noqa: ANN401 - py4j objects have no type
    """Return the path of the jar from which the class of ``java_object`` was loaded."""
    source = java_object.getClass().getProtectionDomain().getCodeSource()
    return Path("unknown") if source is None else Path(unquote(urlparse(str(source.getLocation())).path))


def is_with_spark(jvm: Any, jar: Path) -> bool:  # noqa: ANN401 - py4j objects have no type
    """Return whether ``jar`` lies among Spark's own jars, so that executors of the same installation have it."""
    return jar.parent == jar_of(_spark(jvm)).parent


def spark_version(jvm: Any) -> str:  # noqa: ANN401 - py4j objects have no type
    """Return the version of Spark in ``jvm``, also before a session starts."""
    return str(_spark(jvm).SPARK_VERSION())


def class_loader(jvm: Any) -> Any:  # noqa: ANN401 - py4j objects have no type
    """Return the driver's class loader, which also finds jars that were added late."""
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _spark(jvm: Any) -> Any:  # noqa: ANN401 - py4j objects have no type
    return class_loader(jvm).loadClass("org.apache.spark.package$").getField("MODULE$").get(None)
