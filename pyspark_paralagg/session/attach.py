"""Attach the shim to a running session, and return its ``Bridge``.

The Spark adapter calls the JVM only through ``bridge``, which checks that both sides have the same version.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session.before_session import run_actions
from pyspark_paralagg.session.conf import check
from pyspark_paralagg.session.jvm import (
    EXTENSION,
    EXTENSIONS,
    add_to_class_path,
    handshake,
    jvm_of,
    load_bridge,
    scala_list,
)
from pyspark_paralagg.session.running import is_connect
from pyspark_paralagg.session.shim import find_jar
from pyspark_paralagg.session.shim_jars import jar_of
from pyspark_paralagg.session.spark_home import check_supported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def attach(spark: SparkSession, confs: Mapping[str, object] | None = None) -> SparkSession:
    """Load the shim into a running session, and return that session. A second call changes nothing.

    ``confs`` sets keys of this package; None unsets a key. Static keys name programs and folders. They apply to the
    whole application, and once it runs only this call can set them. All other keys apply to this session.

    The jar is added to the driver's class loader and to the executors; the strategy is added to this session's planner.
    Spark does not accept new resolution rules in a running session. Recursive queries in SQL therefore need
    ``configure`` or ``spark.newSession()``; without them they fail with ``PARALAGG_SQL_NOT_CONFIGURED``.

    Raises ``EnvironmentProblem`` and ``UsageError`` ``PARALAGG_BAD_CONF`` as ``configure`` does, and
    ``EnvironmentProblem`` ``PARALAGG_SHIM_MISSING`` for a Spark Connect session.

    >>> attach(spark, {"spark.paralagg.mpi.launcher": "srun -n {ranks}"})                      # doctest: +SKIP
    """
    run_actions()
    settings = check(confs or {}, "ra.attach")
    jvm = jvm_of(spark)
    check_supported(spark.version)
    module = load_bridge(jvm)
    jar = find_jar() if module is None else jar_of(module)
    if not jar.is_file():  # deleted after the JVM has loaded it
        jar = find_jar()
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - pyspark has no public way to add a jar
    # Needed even if the driver has the class: a second context in the same JVM has executors of its own.
    if not any(str(listed).endswith("/" + jar.name) for listed in scala_list(context.listJars())):
        context.addJar(str(jar))
    if module is None:
        add_to_class_path(jvm, jar)
    module = handshake(spark, load_bridge(jvm))
    module.attach(spark._jsparkSession)  # noqa: SLF001 - pyspark has no public way to the JVM session
    for key, text in settings.items():
        if key.is_static:
            module.setStatic(spark._jsparkSession, key.name, text)  # noqa: SLF001 - likewise
        elif text is None:
            spark.conf.unset(key.name)
        else:
            spark.conf.set(key.name, text)
    return spark


def bridge(spark: SparkSession) -> Any:  # noqa: ANN401 - a py4j object has no type
    """Return the shim's ``Bridge``, the only JVM class that Python calls.

    Raises ``EnvironmentProblem``: ``PARALAGG_SHIM_MISSING`` if the session has no shim, ``PARALAGG_SHIM_MISMATCH``
    if the shim has another version.
    """
    jvm = jvm_of(spark)
    module = load_bridge(jvm)
    is_configured = EXTENSION in (spark.conf.get(EXTENSIONS, None) or "")
    if is_configured != (module is not None):
        # The conf without the class: --jars in PYSPARK_SUBMIT_ARGS outranks spark.jars, so the driver misses the jar.
        # The class without the conf: ra.attach ran, maybe on another session of this JVM, or the conf was set later.
        attach(spark)
        module = load_bridge(jvm)
    return handshake(spark, module)


class Shim:
    """The shim in the JVM of a classic session; ``connect.plugin`` has the same for a Connect server."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.bridge = bridge(session)
        self.jsession: Any = session._jsparkSession  # noqa: SLF001 - pyspark has no public way to the JVM session

    def reference(self, name: str, schema: StructType) -> DataFrame:
        """Return a DataFrame with the columns of ``schema`` and no rows: a step receives it in place of a relation."""
        return frame_of(self.bridge.reference(self.jsession, name, schema.json()), self.session)

    def analyse(self, steps: Mapping[str, DataFrame]) -> Analysis:
        """Return the analysis of ``steps``."""
        names, frames = self.list_of(list(steps)), self.list_of([_jdf(df) for df in steps.values()])
        return Analysis(self, self.bridge.analyse(names, frames))

    def reads(self, df: DataFrame, relations: Sequence[str]) -> dict[str, Any]:
        """Return how the plan of ``df`` reads references, of which ``relations`` are recursive (`Reads.scala`)."""
        result: dict[str, Any] = json.loads(self.bridge.reads(_jdf(df), self.list_of(relations)))
        return result

    def substitute(self, df: DataFrame, frames: Sequence[DataFrame]) -> DataFrame:
        """Return ``df`` with ``frames`` for its reads, in the order of ``reads``."""
        return frame_of(self.bridge.substitute(_jdf(df), self.list_of([_jdf(f) for f in frames])), self.session)

    def turn(
        self, df: DataFrame, frames: Sequence[DataFrame], at: int, changed: Sequence[DataFrame], *, lets: bool
    ) -> DataFrame:
        """Return ``substitute``, for what ``changed`` of the side of the negated read ``at`` rejects (`Reads.turn`)."""
        plans, some = (self.list_of([_jdf(f) for f in part]) for part in (frames, changed))
        return frame_of(self.bridge.turn(_jdf(df), plans, at, some, lets), self.session)

    def shared(self, df: DataFrame, name: str, readers: int, most: int) -> DataFrame:
        """Return a relation for its readers in one query: a leaf if more than ``most`` operators would be repeated."""
        return frame_of(self.bridge.shared(_jdf(df), name, readers, most), self.session)

    def routes(self, df: DataFrame, walk: dict[str, Any]) -> DataFrame:
        """Return the rows of ``df`` with the routes that ``api.routes.routes_json`` describes."""
        return frame_of(self.bridge.routes(_jdf(df), json.dumps(walk)), self.session)

    def carried(
        self, step: DataFrame, relation: str, rows: DataFrame, further: int, order: str | None
    ) -> DataFrame | str:
        """Return ``step``, over references, for ``rows``, whose last columns it carries; or why it cannot."""
        result = self.bridge.carried(_jdf(step), relation, _jdf(rows), further, order)
        return result if isinstance(result, str) else frame_of(result, self.session)

    def list_of(self, items: Sequence[Any]) -> Any:  # noqa: ANN401 - a py4j object
        """Return a list of the JVM."""
        result = self.session._jvm.java.util.ArrayList()  # type: ignore[union-attr]  # noqa: SLF001 - likewise
        for item in items:
            result.add(item)
        return result


def shim_if_there(session: SparkSession) -> Shim | None:
    """Return the shim of a classic session that has it."""
    if is_connect(session):
        return None
    try:
        return Shim(session)
    except EnvironmentProblem:
        return None


class Analysis:
    """Analysed steps, with the Catalyst expressions that the engine needs."""

    def __init__(self, shim: Shim, java: Any) -> None:  # noqa: ANN401 - a py4j object
        self._shim = shim
        self._java = java

    def json(self) -> dict[str, Any]:
        """Return the Step JSON."""
        step_json: dict[str, Any] = json.loads(self._java.json())
        return step_json

    def source(self, number: int) -> DataFrame:
        """Return a source of the steps."""
        shim = self._shim
        return frame_of(shim.bridge.source(shim.jsession, self._java, number), shim.session)

    def fixpoint(
        self, plan: dict[str, Any], stratum: int, relation: str, sources: Sequence[DataFrame], reason: str
    ) -> DataFrame:
        """Return the lazy result of one relation of one stratum."""
        shim = self._shim
        frames = shim.list_of([_jdf(df) for df in sources])
        node = shim.bridge.fixpoint(shim.jsession, self._java, json.dumps(plan), stratum, relation, frames, reason)
        return frame_of(node, shim.session)


def reference(spark: SparkSession, name: str, schema: StructType) -> DataFrame:
    """Return a reference of a classic session: see ``Shim.reference``."""
    return Shim(spark).reference(name, schema)


def _jdf(df: DataFrame) -> Any:  # noqa: ANN401 - a py4j object
    return df._jdf  # noqa: SLF001 - pyspark has no public way to the JVM DataFrame


def frame_of(jdf: Any, spark: SparkSession) -> DataFrame:  # noqa: ANN401 - a py4j object
    """Return the DataFrame of one in the JVM."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - pyspark is optional

    return DataFrame(jdf, spark)  # from Spark 4.0 on, an instance of its subclass for sessions with a JVM


def shared(df: DataFrame, name: str, readers: int, most: int) -> DataFrame:
    """Return ``Shim.shared``, or ``df`` itself in a session without the shim."""
    shim = shim_if_there(df.sparkSession) if readers > 1 else None
    return df if shim is None else shim.shared(df, name, readers, most)


def keep_run(df: DataFrame) -> Callable[[], None] | None:
    """Return what frees the results that runs for ``df`` keep for other queries; None if they keep none."""
    shim = shim_if_there(df.sparkSession)
    if shim is None:
        return None
    jdf = _jdf(df)
    return partial(shim.bridge.forget, jdf) if shim.bridge.isTogether(jdf) else None


def drop_checkpoint(df: DataFrame) -> None:
    """Free the blocks of a local checkpoint before the session ends."""
    blocks = df._jdf.queryExecution().analyzed().rdd()  # noqa: SLF001 - pyspark has no public way to the RDD
    blocks.unpersist(False)  # noqa: FBT003 - py4j takes no keyword arguments
