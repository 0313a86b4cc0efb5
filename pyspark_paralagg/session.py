"""The way into a Spark session: the right jar on its class path, the planner extension, the bridge, and the doctor.

Last link of ``java`` -> ``spark_home`` -> ``shim`` -> ``session``. ``configure`` serves a session to be, ``attach`` one
that already runs; ``bridge`` is what the Spark adapter calls through, and checks that both sides are of one version.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.conf import PYTHON, PYTHON_PATH, checked
from pyspark_paralagg.dataframe_method import add_method
from pyspark_paralagg.diagnosis import Diagnosis, Finding, examine
from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.java import find_java
from pyspark_paralagg.running import check_running
from pyspark_paralagg.shim import find_jar, read_properties
from pyspark_paralagg.spark_home import check_supported, find_spark_home, minor_of
from pyspark_paralagg.standing_conf import add_to_submit_arguments, running_jvm, standing
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"
EXTENSION = "org.apache.spark.sql.paralagg.ParalaggExtensions"
BRIDGE = "org.apache.spark.sql.paralagg.Bridge$"

_LOG = logging.getLogger("pyspark_paralagg")
_ADVICE = (
    "build the session from ra.configure(SparkSession.builder...), or call ra.attach(spark) on the one that runs; "
    "print(ra.doctor()) tells more"
)

# The bridge of the one JVM that pyspark talks to, with the gateway it was found through.
_found: list[tuple[Any, Any]] = []


def configure(builder: SparkSession.Builder, confs: Mapping[str, object] | None = None) -> SparkSession.Builder:
    """Append the shim's jar to ``spark.jars`` and its extension to ``spark.sql.extensions``; return the builder.

    ``confs`` are keys of this package, checked here and set on the builder.

    Nothing that stands there is lost, be it from the builder, from ``spark-submit`` (whose JVM is asked), from
    ``PYSPARK_SUBMIT_ARGS`` or from ``spark-defaults.conf``; calling it twice changes nothing. ``spark.paralagg.python``
    and ``spark.paralagg.pythonPath``, where nobody set them, become this Python and this package's folder: SQL's
    recursive queries are compiled there. No other conf is touched. Delta's ``configure_spark_with_delta_pip`` may come
    before or after. A builder for Spark Connect is returned as it is: no jar can go there, and the plain-DataFrame
    executor needs none.

    Where a session already runs, ``getOrCreate`` would return that one and ignore these confs: a warning says so.

    Raises ``EnvironmentProblem`` where Java, Spark or the jar is missing or does not fit, ``UsageError``
    ``PARALAGG_BAD_CONF`` for a key of ``confs`` that is unknown or has a wrong value.

    >>> from pyspark.sql import SparkSession                                                  # doctest: +SKIP
    >>> spark = configure(SparkSession.builder.master("local[2]")).getOrCreate()              # doctest: +SKIP
    """
    add_method()
    _set(builder, confs or {})
    if _is_remote(builder):
        _LOG.info("a Spark Connect session takes no jar; recursions will run as plain DataFrames")
        return builder
    spark = find_spark_home()
    jvm = running_jvm()
    if jvm is None:
        find_java()  # Spark's own message does not say what to install
    jars = standing(builder, JARS, spark)
    if not _has_shim(jvm, jars):
        jar = find_jar(spark)
        builder.config(JARS, _appended(jars, str(jar)))
        if jvm is None:
            add_to_submit_arguments("--jars", str(jar))
        else:
            # The JVM has read spark.jars when it started; a new context looks for extensions in this class loader.
            _add_to_class_path(jvm, jar)
    builder.config(EXTENSIONS, _appended(standing(builder, EXTENSIONS, spark), EXTENSION))
    for name, value in _compiler().items():
        if not standing(builder, name, spark):
            builder.config(name, value)
    _warn_of_running_session()
    return builder


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
    add_method()
    settings = checked(confs or {}, "ra.attach")
    jvm = _jvm_of(spark)
    check_supported(spark.version)
    module = _load(jvm)
    jar = find_jar()
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - pyspark has no public way to add a jar
    # Also where the class is there already: a second context in the same JVM has executors of its own.
    if not any(str(listed).endswith("/" + jar.name) for listed in _scala_list(context.listJars())):
        context.addJar(str(jar))
    if module is None:
        _add_to_class_path(jvm, jar)
    module = _handshake(spark, _load(jvm))
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
    jvm = _jvm_of(spark)
    module = _load(jvm)
    is_configured = EXTENSION in (spark.conf.get(EXTENSIONS, None) or "")
    if is_configured != (module is not None):
        # Configured without the class: PYSPARK_SUBMIT_ARGS has --jars, which keeps spark.jars from the driver.
        # The class without the conf: the user attached, maybe to another session of this JVM, or set the conf later on.
        attach(spark)
        module = _load(jvm)
    return _handshake(spark, module)


def reference(spark: SparkSession, name: str, schema: StructType) -> DataFrame:
    """A DataFrame of these columns without rows or plan: what a step gets for a relation."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame  # noqa: PLC0415 - pyspark is optional

    jsession = spark._jsparkSession  # noqa: SLF001 - pyspark has no public way to the JVM session
    return ClassicDataFrame(bridge(spark).reference(jsession, name, schema.json()), spark)


def drop_checkpoint(df: DataFrame) -> None:
    """Frees the blocks of a local checkpoint before the end of the session."""
    blocks = df._jdf.queryExecution().analyzed().rdd()  # noqa: SLF001 - no public way to it
    blocks.unpersist(False)  # noqa: FBT003 - py4j knows no names of parameters


def doctor() -> Diagnosis:
    """Say what is installed, what is wrong, and what to do.

    Starts no Spark and compiles nothing. It starts two MPI ranks for a moment where mpi4py is installed.

    >>> print(doctor())                                                                       # doctest: +SKIP
    """
    return examine(_examine_session())


def _compiler() -> dict[str, str]:
    """The confs by which the JVM finds a Python that has this package."""
    return {PYTHON.name: sys.executable, PYTHON_PATH.name: str(Path(__file__).resolve().parents[1])}


def _set(builder: SparkSession.Builder, confs: Mapping[str, object]) -> None:
    for key, text in checked(confs, "ra.configure").items():
        if text is not None:
            builder.config(key.name, text)


def _appended(standing_value: str, item: str) -> str:
    items = [part.strip() for part in standing_value.split(",") if part.strip()]
    return ",".join(items if item in items else [*items, item])


def _has_shim(jvm: Any | None, jars: str) -> bool:  # noqa: ANN401 - a py4j object has no type
    """Return whether the driver has loaded a shim of this version that the executors get from ``jars``, too.

    This is the case under ``spark-submit --jars <the shim's jar>``.
    """
    module = None if jvm is None else _load(jvm)
    if module is None or not str(module.version()).endswith(f"|{VERSION}"):
        return False
    paths = (Path(jar.strip().removeprefix("file:")) for jar in jars.split(","))
    return any("shim" in read_properties(path) for path in paths)


def _warn_of_running_session() -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - this module loads without pyspark

    running = SparkContext._active_spark_context  # noqa: SLF001 - no public way to know whether one runs
    if running is not None and EXTENSION not in (running.getConf().get(EXTENSIONS) or ""):
        _LOG.warning(
            "a Spark session already runs, and getOrCreate() will return that one without the shim: "
            "call ra.attach(spark) on it, or spark.stop() before getOrCreate()"
        )


def _is_remote(builder: SparkSession.Builder) -> bool:
    options: dict[str, Any] = builder._options  # noqa: SLF001 - pyspark has no public way to read a builder
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "classic"))).lower()
    return "spark.remote" in options or bool(os.environ.get("SPARK_REMOTE")) or mode == "connect"


def _jvm_of(spark: SparkSession) -> Any:  # noqa: ANN401 - a py4j object has no type
    if not hasattr(type(spark), "_jvm") and "_jvm" not in vars(spark):
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISSING",
            "a Spark Connect session has no JVM that this process could reach",
            value=type(spark).__module__,
            hint="recursions run as plain DataFrames there: leave spark.paralagg.backend at auto",
        )
    check_running(spark)
    return spark._jvm  # noqa: SLF001 - pyspark has no public way to its JVM


def _load(jvm: Any) -> Any | None:  # noqa: ANN401 - py4j objects have no type
    """Return the bridge if the JVM can load it. Through the context class loader, which sees late jars as well."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - this module loads without pyspark

    gateway = jvm._gateway_client  # noqa: SLF001 - what tells one JVM from the next
    if _found and _found[0][0] is gateway:
        return _found[0][1]
    try:
        loaded = _class_loader(jvm).loadClass(BRIDGE)
    except Py4JJavaError as problem:
        if "ClassNotFoundException" in str(problem.java_exception):
            return None
        raise
    _found[:] = [(gateway, loaded.getField("MODULE$").get(None))]
    return _found[0][1]


def _handshake(spark: SparkSession, module: Any | None) -> Any:  # noqa: ANN401 - py4j objects have no type
    if module is None:
        message = "this Spark session runs without the shim of pyspark-paralagg"
        raise EnvironmentProblem("PARALAGG_SHIM_MISSING", message, hint=_ADVICE)
    compiled_against, _, shim_version = str(module.version()).partition("|")
    if minor_of(compiled_against) != minor_of(spark.version) or shim_version != VERSION:
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISMATCH",
            f"the session's shim is {shim_version} for Spark {compiled_against}; "
            f"this is pyspark-paralagg {VERSION} and Spark {spark.version}",
            value=f"{compiled_against}|{shim_version}",
            hint="take the other jar out of spark.jars and off the class path; ra.configure() brings the right one",
        )
    return module


def _add_to_class_path(jvm: Any, jar: Path) -> None:  # noqa: ANN401 - a py4j object has no type
    from py4j.protocol import Py4JError  # noqa: PLC0415 - this module loads without pyspark

    try:
        _class_loader(jvm).addURL(jvm.java.net.URI(jar.as_uri()).toURL())
    except Py4JError as problem:
        raise EnvironmentProblem(
            "PARALAGG_SHIM_MISSING",
            "this JVM takes no further jars: its class loader has no addURL",
            value=str(jar),
            hint=f"start the session with the jar: spark.jars={jar} and {EXTENSIONS}={EXTENSION}",
        ) from problem


def _class_loader(jvm: Any) -> Any:  # noqa: ANN401 - py4j objects have no type
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _scala_list(sequence: Any) -> list[Any]:  # noqa: ANN401 - py4j objects have no type
    return [sequence.apply(position) for position in range(sequence.size())]


def _examine_session() -> Finding:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - this module loads without pyspark
    except ImportError:
        return Finding("session", "none")
    spark = SparkSession.getActiveSession()
    if spark is None:
        return Finding("session", "none runs in this process")
    try:
        module = _handshake(spark, _load(_jvm_of(spark)))
    except EnvironmentProblem as problem:
        return Finding("session", f"Spark {spark.version}", problem)
    return Finding("session", f"Spark {spark.version}, shim {module.version()}")
