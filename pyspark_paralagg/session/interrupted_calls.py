"""Free what a call to the JVM makes although Ctrl-C has interrupted it here.

PySpark raises ``KeyboardInterrupt`` in the middle of a call, and cancels all jobs. The JVM goes on with the call: if it
was planning a job, it runs that job, and py4j keeps the result for ever, since nobody here has received it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_SECONDS = 10
"""The time for an interrupted call to end, after its jobs are cancelled."""
_PAUSE_SECONDS = 0.2


def drop_checkpoints(spark: SparkSession, call_site: str, problem: BaseException) -> None:
    """Free the blocks of all local checkpoints made at ``call_site`` (Spark's local property ``callSite.short``).

    If ``problem`` is no answer of the JVM nor an error of ours, it may have interrupted a call. Then a thread frees
    blocks again for some seconds, for a checkpoint that the JVM is still making.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - this module loads without pyspark

    after_interrupt(partial(_drop, spark, call_site))
    if isinstance(problem, (ParalaggError, PySparkException)):
        return
    threading.Thread(target=_drop_for_some_time, args=(spark, call_site), name="paralagg-free", daemon=True).start()


def after_interrupt(call: Callable[[], None]) -> None:
    """Make a call to the JVM where Ctrl-C may have interrupted the one before.

    That one leaves a connection that py4j may find dead only at the next call, which then fails.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - this module loads without pyspark

    try:
        call()
    except Py4JError:
        call()


def _drop_for_some_time(spark: SparkSession, call_site: str) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and spark.sparkContext._jsc is not None:  # noqa: SLF001 - None: stopped, with all blocks
        time.sleep(_PAUSE_SECONDS)
        with suppress(Exception):  # the session may end meanwhile, or blocks that are listed here
            _drop(spark, call_site)


def _drop(spark: SparkSession, call_site: str) -> None:
    context = spark.sparkContext._jsc  # noqa: SLF001 - pyspark has no public way to RDDs
    for blocks in list(context.getPersistentRDDs().values()):
        if str(blocks.toString()).endswith(f" at {call_site}"):
            blocks.unpersist(False)  # noqa: FBT003 - py4j takes no keyword arguments
