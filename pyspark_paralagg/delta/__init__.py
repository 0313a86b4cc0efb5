"""Recursive tables on Delta: kept in a table, refreshed at the cost of what changed in their sources.

>>> view = ra.delta.RecursiveTable(spark, "lake/dist", keys="node", aggs={"dist": "min"},   # doctest: +SKIP
...     sources={"edges": "lake/edges", "starts": "lake/starts"}, base=lambda t: t["starts"], step=...)
>>> view.refresh()                                                                          # doctest: +SKIP

The way of a refresh through the modules:

    view      RecursiveTable: the API
    refresh   one refresh: the order of what follows
    tables    the Delta tables themselves: versions, snapshots, change feeds, history
    program   base and step, analysed once over names of sources; text makes one of a Datalog text
    record    what a refresh writes beside its rows: what it consumed, of which program
    decide    full, incremental or nothing, and the first reason
    commit    rows and record in one commit; a conflict with another writer
    report    what came of it

Neither pyspark nor delta is imported before a table is made.
"""

from __future__ import annotations

from pyspark_paralagg.delta.report import RefreshReport, Status
from pyspark_paralagg.delta.view import RecursiveTable

__all__ = ["RecursiveTable", "RefreshReport", "Status"]
