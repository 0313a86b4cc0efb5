"""Codes for recursive tables that are kept in Delta tables."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

_SCENARIO = "tests/cluster/test_refresh.py"

DELTA = (
    ErrorCode(
        "PARALAGG_DELTA_MISSING",
        "EnvironmentProblem",
        cause="delta-spark is not installed, the session runs without its extension, or it is a Spark Connect session.",
        remedy="`pip install 'pyspark-paralagg[delta]'`, and start the session with the confs that the hint names.",
        example="""
            sources = {"starts": "lake/starts"}
            base, step = lambda t: t["starts"], lambda r, t: r
            ra.delta.RecursiveTable(spark, "lake/dist", keys="node", sources=sources, base=base, step=step)
        """,
    ),
    ErrorCode(
        "PARALAGG_DELTA_NEEDS_SPARK",
        "UnsupportedError",
        cause="`paralagg run --backend local` or `mpi` is given a Delta table, which only Spark reads and writes.",
        remedy="Leave `--backend` out, or use Parquet files.",
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_DELTA_SOURCE",
        "UsageError",
        cause="A source is no Delta table, has no path and no name, or `base` or `step` read a source that `sources` "
        "does not name.",
        remedy="Name paths with a slash, or tables of the catalog, in `sources`.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_PROGRAM",
        "UsageError",
        cause="`base` or `step` of a recursive table does not fit the columns of the sources, or returns no DataFrame.",
        remedy="Correct the columns; the hint lists the sources with theirs.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_UNTRACKED",
        "UsageError",
        cause="`base` or `step` reads a table that is not one of `sources`. A refresh would not see its changes.",
        remedy='Make it a Delta table, name it in `sources`, and read it as `t["name"]`.',
        tested_by=f"tests/test_delta_program.py, {_SCENARIO}",
    ),
    ErrorCode(
        "PARALAGG_DELTA_TARGET",
        "UsageError",
        cause="The target is no Delta table, or has rows that no refresh wrote. A refresh would overwrite it.",
        remedy="Use another target, or drop or empty this one if nobody needs its rows.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_SCHEMA",
        "UsageError",
        cause="The target has other columns than the result.",
        remedy="Use another target, or drop this one.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_CONFLICT",
        "ConflictError",
        cause="Another writer committed to the target during the refresh. The refresh wrote nothing.",
        remedy="Call `refresh()` again; it starts from the rows that are there now.",
        tested_by=_SCENARIO,
    ),
)
