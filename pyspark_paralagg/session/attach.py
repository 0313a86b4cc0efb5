"""Attaches the shim to a session that already runs, and finds the ``Bridge`` in it.

``bridge`` is what the Spark adapter calls through; it checks that both sides are of one version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.session.before_session import run_actions
from pyspark_paralagg.session.conf import checked
from pyspark_paralagg.session.jvm import (
    EXTENSION,
    EXTENSIONS,
    add_to_class_path,
    handshake,
    jvm_of,
    load_bridge,
    scala_list,
)
from pyspark_paralagg.session.shim import find_jar
from pyspark_paralagg.session.spark_home import check_supported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def attach(spark: SparkSession, confs: Mapping[str, object] | None = None) -> SparkSession:
    """Bring the shim into a session that already runs, and return that session. Calling it twice changes nothing.

    ``confs`` sets keys of this package (None unsets one). Static ones, which name programs and folders, apply to the
    whole application, and are refused anywhere else once it runs; others apply to this session.

    The jar goes to the driver's class loader and to the executors, the strategy into this session's planner. Resolution
    rules cannot be added to a session that runs: recursive queries in SQL need ``configure`` or ``spark.newSession()``,
    and are refused with ``PARALAGG_SQL_NOT_CONFIGURED``.
    Raises ``EnvironmentProblem`` as ``configure`` does, and ``PARALAGG_SHIM_MISSING`` for a Spark Connect session;
    ``UsageError`` ``PARALAGG_BAD_CONF`` as ``configure`` does.

    >>> attach(spark, {"spark.paralagg.mpi.launcher": "srun -n {ranks}"})                      # doctest: +SKIP
    """
    run_actions()
    settings = checked(confs or {}, "ra.attach")
    jvm = jvm_of(spark)
    check_supported(spark.version)
    module = load_bridge(jvm)
    jar = find_jar()
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - pyspark has no public way to add a jar
    # Also where the class is there already: a second context in the same JVM has executors of its own.
    if not any(str(listed).endswith("/" + jar.name) for listed in scala_list(context.listJars())):
        context.addJar(str(jar))
    if module is None:
        add_to_class_path(jvm, jar)
    module = handshake(spark, load_bridge(jvm))
    module.attach(spark._jsparkSession)  # noqa: SLF001 - the session that the shim knows
    for key, text in settings.items():
        if key.is_static:
            module.setStatic(spark._jsparkSession, key.name, text)  # noqa: SLF001 - likewise
        elif text is None:
            spark.conf.unset(key.name)
        else:
            spark.conf.set(key.name, text)
    return spark


def bridge(spark: SparkSession) -> Any:  # noqa: ANN401 - a py4j object has no type
    """Return the shim's ``Bridge``, the only class of the JVM side that Python calls.

    Raises ``EnvironmentProblem``: ``PARALAGG_SHIM_MISSING`` where the session has no shim, ``PARALAGG_SHIM_MISMATCH``
    where it has one of another version.
    """
    jvm = jvm_of(spark)
    module = load_bridge(jvm)
    is_configured = EXTENSION in (spark.conf.get(EXTENSIONS, None) or "")
    if is_configured != (module is not None):
        # Configured without the class: PYSPARK_SUBMIT_ARGS has --jars, which keeps spark.jars from the driver.
        # The class without the conf: the user attached, maybe to another session of this JVM, or set the conf later on.
        attach(spark)
        module = load_bridge(jvm)
    return handshake(spark, module)


def reference(spark: SparkSession, name: str, schema: StructType) -> DataFrame:
    """A DataFrame of these columns without rows or plan: what a step gets for a relation."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame  # noqa: PLC0415 - pyspark is optional

    jsession = spark._jsparkSession  # noqa: SLF001 - pyspark has no public way to the JVM session
    return ClassicDataFrame(bridge(spark).reference(jsession, name, schema.json()), spark)


def drop_checkpoint(df: DataFrame) -> None:
    """Frees the blocks of a local checkpoint before the end of the session."""
    blocks = df._jdf.queryExecution().analyzed().rdd()  # noqa: SLF001 - no public way to it
    blocks.unpersist(False)  # noqa: FBT003 - py4j knows no names of parameters
