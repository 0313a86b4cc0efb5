"""The registry of error codes: what each means, when it is raised, and what to do.

A bottom layer that imports nothing else of the package. The page of errors (``docs_site/errors_page.py``) and the
constants of the shim (``docs_site/scala_codes.py``) are made from it; ``tests/test_error_codes.py`` compares it with
the sources that raise the codes, and runs the examples.
"""

from __future__ import annotations

from pyspark_paralagg.codes.call import CALL
from pyspark_paralagg.codes.datalog import DATALOG
from pyspark_paralagg.codes.delta import DELTA
from pyspark_paralagg.codes.error_code import IN_SPARK, ErrorCode
from pyspark_paralagg.codes.files import FILES
from pyspark_paralagg.codes.proof import PROOF
from pyspark_paralagg.codes.ranks import RANKS
from pyspark_paralagg.codes.relation import RELATION
from pyspark_paralagg.codes.run import RUN
from pyspark_paralagg.codes.session import SESSION
from pyspark_paralagg.codes.sql import SQL

__all__ = ["AREAS", "CODES", "IN_SPARK", "OF_RANKS", "ErrorCode"]

AREAS: dict[str, tuple[ErrorCode, ...]] = {
    "relation": RELATION,
    "call": CALL,
    "proof": PROOF,
    "datalog": DATALOG,
    "sql": SQL,
    "session": SESSION,
    "run": RUN,
    "ranks": RANKS,
    "delta": DELTA,
    "files": FILES,
}
"""The entries by what a user was doing. The page about troubleshooting has a table for each area."""

CODES: dict[str, ErrorCode] = {entry.code: entry for area in AREAS.values() for entry in area}
"""The entry of each code."""

OF_RANKS = frozenset(entry.code for entry in RANKS)
"""Codes of the ranks and their engine, not of the query: another executor may still run it."""
