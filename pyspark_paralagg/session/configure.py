"""Configure a session before it starts: add the jar, the extension, and confs of this package to its builder."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.session.arguments import wrong_type
from pyspark_paralagg.session.before_session import run_actions
from pyspark_paralagg.session.conf import PYTHON, PYTHON_PATH, check
from pyspark_paralagg.session.existing_conf import add_to_submit_arguments, existing_value, running_jvm
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.jvm import EXTENSION, EXTENSIONS, add_to_class_path, check_version, load_bridge
from pyspark_paralagg.session.shim import find_jar
from pyspark_paralagg.session.shim_jars import is_with_spark, jar_of, spark_version
from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

JARS = "spark.jars"
_LOG = logging.getLogger("pyspark_paralagg")


def configure(builder: SparkSession.Builder, confs: Mapping[str, object] | None = None) -> SparkSession.Builder:
    """Append the shim's jar to ``spark.jars`` and its extension to ``spark.sql.extensions``; return the builder.

    ``confs`` are keys of this package. They are checked and set on the builder.

    Existing values of these two confs are kept, whether they come from the builder, from ``spark-submit``, from
    ``PYSPARK_SUBMIT_ARGS`` or from ``spark-defaults.conf``. A second call changes nothing. If unset,
    ``spark.paralagg.python`` becomes the running Python and ``spark.paralagg.pythonPath`` this package's folder:
    recursive queries in SQL are compiled there. No other conf is touched. Delta's ``configure_spark_with_delta_pip``
    may be called before or after. A builder for Spark Connect is returned unchanged: it takes no jar, and the
    plain-DataFrame executor needs none.

    If a session already runs, ``getOrCreate`` returns that session and ignores these confs; a warning is logged.

    Raises ``EnvironmentProblem`` if Java, Spark or the jar is missing or does not fit, such as a jar for another minor
    of Spark in ``--jars``. Raises ``UsageError``
    ``PARALAGG_BAD_CONF`` if a key of ``confs`` is unknown or has a wrong value.

    >>> from pyspark.sql import SparkSession                                                  # doctest: +SKIP
    >>> spark = configure(SparkSession.builder.master("local[2]")).getOrCreate()              # doctest: +SKIP
    """
    if not hasattr(builder, "getOrCreate"):
        hint = "pass SparkSession.builder, before getOrCreate() makes the session"
        raise wrong_type("builder", builder, "ra.configure", hint)
    run_actions()
    _set(builder, confs or {})
    if _is_remote(builder):
        _LOG.info(
            "a Spark Connect session cannot load the engine's jar; recursions run in the server, or as plain DataFrames"
        )
        return builder
    jvm = running_jvm()
    if jvm is None:
        find_spark_home()
        find_java()  # Spark's own message does not say what to install
    jars = existing_value(builder, JARS)
    if not _has_shim(jvm, jars):
        jar = find_jar()
        builder.config(JARS, _appended(jars, str(jar)))
        if jvm is None:
            add_to_submit_arguments("--jars", str(jar))
        else:
            # The JVM read spark.jars at its start; a new context loads extensions through this class loader.
            add_to_class_path(jvm, jar)
    builder.config(EXTENSIONS, _appended(existing_value(builder, EXTENSIONS), EXTENSION))
    for name, value in _compiler().items():
        if not existing_value(builder, name):
            builder.config(name, value)
    _warn_of_running_session()
    return builder


def _compiler() -> dict[str, str]:
    """Return the confs by which the JVM finds a Python that has this package."""
    return {PYTHON.name: sys.executable, PYTHON_PATH.name: str(Path(__file__).resolve().parents[2])}


def _set(builder: SparkSession.Builder, confs: Mapping[str, object]) -> None:
    for key, text in check(confs, "ra.configure").items():
        if text is not None:
            builder.config(key.name, text)


def _appended(value: str, item: str) -> str:
    items = [part.strip() for part in value.split(",") if part.strip()]
    return ",".join(items if item in items else [*items, item])


def _has_shim(jvm: Any | None, jars: str) -> bool:  # noqa: ANN401 - a py4j object has no type
    """Return whether the driver has loaded a shim that executors get, too: from ``jars``, or as one of Spark's own.

    This is the case under ``spark-submit --jars <the shim's jar>``, also where Spark's folder is not to be found: the
    driver of YARN's cluster mode. Raises ``PARALAGG_SHIM_MISMATCH`` if the shim does not fit.
    """
    module = None if jvm is None else load_bridge(jvm)
    if module is None:
        return False
    check_version(module, spark_version(jvm))
    jar = jar_of(module)
    return any(listed.strip().rpartition("/")[2] == jar.name for listed in jars.split(",")) or is_with_spark(jvm, jar)


def _warn_of_running_session() -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - this module loads without pyspark

    running = SparkContext._active_spark_context  # noqa: SLF001 - pyspark has no public attribute for it
    if running is not None and EXTENSION not in (running.getConf().get(EXTENSIONS) or ""):
        _LOG.warning(
            "a Spark session without the shim already runs, and getOrCreate() returns it: call ra.attach(spark), or "
            "spark.stop() before getOrCreate()"
        )


def _is_remote(builder: SparkSession.Builder) -> bool:
    options: dict[str, Any] = builder._options  # noqa: SLF001 - pyspark has no public way to read a builder
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "classic"))).lower()
    return "spark.remote" in options or bool(os.environ.get("SPARK_REMOTE")) or mode == "connect"
