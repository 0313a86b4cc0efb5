"""Add ``recursive_agg`` to ``pyspark.sql.DataFrame``, the parent of the classic and the Connect class.

Importing pyspark takes half as long as importing this package, and an MPI rank or a command without Spark does not need
it. So the import of this package adds the method only if pyspark is imported already or spark-submit started the
process. Otherwise ``configure`` and ``attach`` add it; both need pyspark. No hook is added to Python's import system.
"""

from __future__ import annotations

import os
import sys

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.session.before_session import before_session

_MODULE = "pyspark.sql.dataframe"
_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The variable that spark-submit sets for the Python driver that it starts."""


def add_method() -> None:
    """Set ``DataFrame.recursive_agg``. A second call changes nothing."""
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark

    DataFrame.recursive_agg = recursive_agg  # type: ignore[attr-defined]


def add_method_where_pyspark_runs() -> None:
    """Call ``add_method`` if this process has imported pyspark's DataFrame, or spark-submit started it."""
    if _MODULE in sys.modules:
        add_method()
    elif _GATEWAY in os.environ:
        try:
            add_method()
        except ImportError:  # a child process of the driver, such as a rank, inherits the variable and may lack pyspark
            return


before_session(add_method)
