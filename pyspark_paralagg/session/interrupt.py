"""Cancel running jobs on Ctrl-C.

PySpark's own handler of SIGINT cancels all jobs over the connection that the interrupted call holds. py4j refuses that
("reentrant call"), so the prompt returns and the job continues. Where that handler is installed, this module replaces
it with one that cancels from another thread, which has its own connection.
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
    """Replace PySpark's handler of SIGINT; leave any other handler alone, and return at once in other threads."""
    if threading.current_thread() is not threading.main_thread():
        return
    installed = signal.getsignal(signal.SIGINT)
    if getattr(installed, "__module__", "") != "pyspark.core.context":
        return
    context = spark.sparkContext

    def cancel(signum: int, frame: FrameType | None) -> NoReturn:
        del signum, frame
        canceller = threading.Thread(target=_cancel_all, args=(context,), name="paralagg-cancel", daemon=True)
        canceller.start()
        # The gateway may refuse a new connection while it closes the interrupted one, so cancel before raising.
        canceller.join(_WAIT_SECONDS)
        raise KeyboardInterrupt

    rewrap = getattr(installed, "rewrap", None)  # of a command, which records the signals of its run
    signal.signal(signal.SIGINT, cancel if rewrap is None else rewrap(cancel))


def _cancel_all(context: SparkContext) -> None:
    """Cancel all jobs; retry if the gateway refuses the connection."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - this module loads without pyspark

    for attempt in range(_ATTEMPTS):
        try:
            context.cancelAllJobs()
        except (Py4JError, OSError) as problem:  # noqa: PERF203 - each attempt is its own
            logging.getLogger("pyspark_paralagg").debug("cancelling after Ctrl-C, attempt %s: %s", attempt, problem)
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    logging.getLogger("pyspark_paralagg").warning("the running jobs were not cancelled after Ctrl-C")
