"""Load the shim's classes into the JVM of a Spark session, and check their version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session.running import check_running
from pyspark_paralagg.session.shim_jars import check_class_path, class_loader
from pyspark_paralagg.session.spark_home import minor_of
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"
EXTENSION = "org.apache.spark.sql.paralagg.ParalaggExtensions"
BRIDGE = "org.apache.spark.sql.paralagg.Bridge$"
_ADVICE = (
    "build the session with ra.configure(SparkSession.builder...), or call ra.attach(spark) on the running one; "
    "print(ra.doctor()) shows the details"
)
# The gateway of the last JVM and the bridge that it loaded; at most one pair.
_loaded_bridge: list[tuple[Any, Any]] = []


def jvm_of(spark: SparkSession) -> Any:  # noqa: ANN401 - a py4j object has no type
    """Return the JVM of a classic session; raise ``PARALAGG_SHIM_MISSING`` for Spark Connect."""
    if not hasattr(type(spark), "_jvm") and "_jvm" not in vars(spark):
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISSING",
            "this process cannot reach the JVM of a Spark Connect session",
            value=type(spark).__module__,
            hint="keep spark.paralagg.backend=auto, which runs recursions in Python workers there",
        )
    check_running(spark)
    return spark._jvm  # noqa: SLF001 - pyspark has no public way to its JVM


def load_bridge(jvm: Any) -> Any | None:  # noqa: ANN401 - py4j objects have no type
    """Return the bridge, or None if the JVM has no jar of the shim.

    Raises ``PARALAGG_SHIM_MISMATCH`` for a jar for another minor of Spark, or for jars of two versions.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - this module loads without pyspark

    gateway = jvm._gateway_client  # noqa: SLF001 - identifies the JVM
    if _loaded_bridge and _loaded_bridge[0][0] is gateway:
        return _loaded_bridge[0][1]
    check_class_path(jvm)
    try:
        loaded = class_loader(jvm).loadClass(BRIDGE)
    except Py4JJavaError as problem:
        if "ClassNotFoundException" in str(problem.java_exception):
            return None
        raise
    _loaded_bridge[:] = [(gateway, loaded.getField("MODULE$").get(None))]
    return _loaded_bridge[0][1]


def handshake(spark: SparkSession, module: Any | None) -> Any:  # noqa: ANN401 - py4j objects have no type
    """Return ``module`` if its version fits; raise ``PARALAGG_SHIM_MISSING`` or ``PARALAGG_SHIM_MISMATCH``."""
    if module is None:
        message = "this Spark session does not have the shim of pyspark-paralagg"
        raise EnvironmentProblem("PARALAGG_SHIM_MISSING", message, hint=_ADVICE)
    check_version(module, spark.version)
    return module


def check_version(module: Any, spark: str) -> None:  # noqa: ANN401 - py4j objects have no type
    """Raise ``PARALAGG_SHIM_MISMATCH`` unless the bridge is of this version, for the minor of ``spark``."""
    compiled_against, _, shim_version = str(module.version()).partition("|")
    if minor_of(compiled_against) != minor_of(spark) or shim_version != VERSION:
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISMATCH",
            f"the session's shim is {shim_version} for Spark {compiled_against}, but this is pyspark-paralagg "
            f"{VERSION} with Spark {spark}",
            value=f"{compiled_against}|{shim_version}",
            hint="remove the other jar from spark.jars and the class path; ra.configure() adds the right one",
        )


def add_to_class_path(jvm: Any, jar: Path) -> None:  # noqa: ANN401 - a py4j object has no type
    """Add ``jar`` to the class loader of the driver."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - this module loads without pyspark

    try:
        class_loader(jvm).addURL(jvm.java.net.URI(jar.as_uri()).toURL())
    except Py4JError as problem:
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISSING",
            "this JVM cannot load further jars: its class loader has no addURL",
            value=str(jar),
            hint=f"start the session with the jar: spark.jars={jar} and {EXTENSIONS}={EXTENSION}",
        ) from problem


def scala_list(sequence: Any) -> list[Any]:  # noqa: ANN401 - py4j objects have no type
    """Return the items of a Scala sequence."""
    return [sequence.apply(position) for position in range(sequence.size())]
