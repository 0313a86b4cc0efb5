"""Add ``recursive_agg`` to ``pyspark.sql.DataFrame``, the parent of the classic and the Connect class.

Importing pyspark costs an MPI rank, or a run of the command without Spark, half as much again as this package. So the
package adds the method when it is imported only in a process that has pyspark already, or that spark-submit started.
Everywhere else ``configure`` and ``attach`` add it: both need pyspark. Nothing is put into Python's import system.
"""

from __future__ import annotations

import os
import sys

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.session.before_session import before_session

_MODULE = "pyspark.sql.dataframe"
_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the Python driver that it starts."""


def add_method() -> None:
    """Set ``DataFrame.recursive_agg``. Setting it twice changes nothing."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark

    DataFrame.recursive_agg = recursive_agg  # type: ignore[attr-defined]


def add_method_where_pyspark_runs() -> None:
    """Call ``add_method`` if this process has imported pyspark's DataFrame, or is a driver of spark-submit's."""
    if _MODULE in sys.modules:
        add_method()
    elif _GATEWAY in os.environ:
        try:
            add_method()
        except ImportError:  # a child of the driver, such as a rank, inherits the variable and may have no pyspark
            return


before_session(add_method)
