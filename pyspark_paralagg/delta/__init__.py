"""Maintain recursive aggregates in Delta tables; a refresh processes only the changes of the sources where it can.

>>> view = ra.delta.RecursiveTable(spark, "lake/dist", keys="node", aggs={"dist": "min"},   # doctest: +SKIP
...     sources={"edges": "lake/edges", "starts": "lake/starts"}, base=lambda t: t["starts"], step=...)
>>> view.refresh()                                                                          # doctest: +SKIP

A refresh passes through the modules in this order:

    view        RecursiveTable: the API
    refresh     the steps of one refresh
    tables      Delta tables: versions, snapshots, change feeds, history
    kept_table  the target or a companion, which only refreshes write
    text        the programs of a Datalog text; ``maintenance`` has that of base and step
    layers      the programs of one target in their order, and its companions
    record      the metadata of a refresh: consumed versions and the program's fingerprint
    decide      full, incremental or nothing, and the first reason; ``maintenance`` continues the fixpoint
    changes     the contents of the change feeds
    write       append or merge what differs
    commit      rows and record in one commit; conflicts with other writers
    follow      refreshes that a stream over the change feeds drives
    report      the result of a refresh, and the status of a table

Neither pyspark nor delta is imported before a RecursiveTable is created.
"""

from __future__ import annotations

from pyspark_paralagg.delta.report import RefreshReport, Status
from pyspark_paralagg.delta.view import RecursiveTable

__all__ = ["RecursiveTable", "RefreshReport", "Status"]
