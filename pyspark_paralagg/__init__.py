"""Compute recursive aggregates inside Spark: shortest paths, components, PageRank as one lazy DataFrame.

>>> import pyspark_paralagg as ra
>>> spark = ra.configure(SparkSession.builder.master("local[2]")).getOrCreate()           # doctest: +SKIP
>>> dist = sources.recursive_agg(                                                         # doctest: +SKIP
...     keys="node", aggs={"dist": "min"},
...     step=lambda d: d.join(edges, d.node == edges.src)
...         .select(edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")))

``configure`` and ``attach`` add the method ``recursive_agg`` to ``pyspark.sql.DataFrame``. So does this import if
pyspark is imported already, and under spark-submit. ``ra.recursive_agg(df, ...)`` is the same function. The package can
be imported without pyspark: for Programs, Plans, and the engine of ``mpi_backend``.
"""

from __future__ import annotations

# Import these packages before the functions of the same names are bound: a later import would replace the functions.
import pyspark_paralagg.datalog
import pyspark_paralagg.report  # noqa: F401 - see the comment above
from pyspark_paralagg import delta, graph
from pyspark_paralagg.api.aggregator import aggregator
from pyspark_paralagg.api.collected import collect_set
from pyspark_paralagg.api.dataframe import recursive, recursive_agg, relation
from pyspark_paralagg.api.dataframe_method import add_method_where_pyspark_runs
from pyspark_paralagg.api.datalog import Relations, datalog
from pyspark_paralagg.api.explain import explain
from pyspark_paralagg.backends.free_indexes import free_indexes
from pyspark_paralagg.errors import (
    ConflictError,
    DatalogError,
    EnvironmentProblem,
    FixpointError,
    ParalaggError,
    UnsupportedError,
    UsageError,
    VerificationError,
)
from pyspark_paralagg.maintenance.maintain import Maintained, maintain
from pyspark_paralagg.program.aggregators import HIndex as h_index  # noqa: N813 - a function in aggs={...}
from pyspark_paralagg.program.aggregators import MaxBy as max_by  # noqa: N813 - likewise
from pyspark_paralagg.program.aggregators import MCount as mcount  # noqa: N813 - likewise
from pyspark_paralagg.program.aggregators import MinBy as min_by  # noqa: N813 - likewise
from pyspark_paralagg.program.aggregators import MSum as msum  # noqa: N813 - likewise
from pyspark_paralagg.program.trace import Hops as hops  # noqa: N813 - likewise
from pyspark_paralagg.program.trace import Path as path  # noqa: N813 - likewise
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.report.estimate import Estimate, estimate
from pyspark_paralagg.report.progress import progress
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.report.run_report import RunReport
from pyspark_paralagg.session.attach import attach
from pyspark_paralagg.session.configure import configure
from pyspark_paralagg.session.doctor import doctor
from pyspark_paralagg.why.absence import Absence
from pyspark_paralagg.why.ask import why, why_not
from pyspark_paralagg.why.proof import Proof

__all__ = [
    "Absence",
    "ConflictError",
    "DatalogError",
    "EnvironmentProblem",
    "Estimate",
    "FixpointError",
    "Maintained",
    "ParalaggError",
    "Proof",
    "Relations",
    "RunProgress",
    "RunReport",
    "UnsupportedError",
    "UsageError",
    "VerificationError",
    "aggregator",
    "attach",
    "collect_set",
    "configure",
    "datalog",
    "delta",
    "doctor",
    "estimate",
    "explain",
    "free_indexes",
    "graph",
    "h_index",
    "hops",
    "maintain",
    "max_by",
    "mcount",
    "min_by",
    "msum",
    "path",
    "progress",
    "recursive",
    "recursive_agg",
    "relation",
    "report",
    "why",
    "why_not",
]

add_method_where_pyspark_runs()
