"""Ctrl-C ends the job, not only the wait for it.

PySpark's own handler of SIGINT asks the JVM to cancel all jobs over the very connection that the interrupted call
holds, which py4j refuses ("reentrant call"): the prompt comes back and the job runs on. Where that handler is
installed, it is replaced by one that asks from another thread, which has a connection of its own.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ATTEMPTS = 20
_PAUSE_SECONDS = 0.05
_WAIT_SECONDS = 2.0


def cancel_on_interrupt(spark: SparkSession) -> None:
    """Replaces PySpark's handler of SIGINT; a handler of anyone else, and other threads, are left alone."""
    if threading.current_thread() is not threading.main_thread():
        return
    installed = signal.getsignal(signal.SIGINT)
    if getattr(installed, "__module__", "") != "pyspark.core.context":
        return
    context = spark.sparkContext

    def cancel(signum: int, frame: FrameType | None) -> NoReturn:
        del signum, frame
        asking = threading.Thread(target=_cancel_all, args=(context,), name="paralagg-cancel", daemon=True)
        asking.start()
        # The gateway may refuse a new connection while the interrupted one falls: first cancel, then let it fall.
        asking.join(_WAIT_SECONDS)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, cancel)


def _cancel_all(context: SparkContext) -> None:
    """Asks again where the gateway refuses the connection."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - this module loads without pyspark

    for attempt in range(_ATTEMPTS):
        try:
            context.cancelAllJobs()
        except (Py4JError, OSError) as problem:  # noqa: PERF203 - each attempt is its own
            logging.getLogger("pyspark_paralagg").debug("cancelling after Ctrl-C, attempt %s: %s", attempt, problem)
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    logging.getLogger("pyspark_paralagg").warning("Ctrl-C could not cancel the running jobs")
