"""Free the indexes that queries have left in the executors: ``ra.free_indexes()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import active_session, check_running, is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def free_indexes(spark: SparkSession | None = None) -> None:
    """Free the indexes that queries of the application have left in its executors for later ones.

    Recursions leave them if ``spark.paralagg.keepIndexes`` is true. Those that a running query has yet to leave stay.
    The next query of each step loads its inputs again. States of recursive tables stay, too.

    ``spark`` is any session of the application, classic or of Spark Connect (default: the active one); without one
    ``UsageError`` ``PARALAGG_NO_SESSION`` is raised, and ``EnvironmentProblem`` if the application has no shim.

    >>> ra.free_indexes()                                                                  # doctest: +SKIP
    """
    session = spark or active_session("ra.free_indexes")
    check_running(session)
    if is_connect(session):
        from pyspark_paralagg.connect.plugin import free_indexes as free_in_server  # noqa: PLC0415 - needs grpc

        free_in_server(session)
    else:
        bridge(session).freeIndexes(session._jsparkSession)  # noqa: SLF001 - pyspark has no public way to it
