"""Codes for recursive tables that are kept in Delta tables."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

_SCENARIO = "tests/cluster/test_refresh_full.py"

DELTA = (
    ErrorCode(
        "PARALAGG_MAINTAIN_ROWS",
        "UsageError",
        cause="The rows of `ra.maintain` do not match: `inserted` or `deleted` name no source or have other columns "
        "than it, or `old` has other columns than the result.",
        remedy="Pass DataFrames by the names that `base` and `step` use, with the columns of the source.",
        example="""
            old = starts = spark.sql("SELECT 1L AS node")
            base, step = lambda t: t["starts"], lambda r, t: r
            ra.maintain(old, keys="node", sources={"starts": starts}, base=base, step=step, deleted={"start": starts})
        """,
    ),
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
        cause="`paralagg run --backend local` or `mpi` gets a Delta table, but only Spark reads and writes Delta "
        "tables.",
        remedy="Leave `--backend` out, or use Parquet files.",
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_DELTA_SOURCE",
        "UsageError",
        cause="A source is not a Delta table, or is neither a path nor a name. Reading a source that `sources` does "
        "not name raises the same error. So does `follow` if a source has no change feed.",
        remedy="Name paths with a slash, or tables of the catalog, in `sources`. Set `delta.enableChangeDataFeed` on "
        "a source to follow.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_PROGRAM",
        "UsageError",
        cause="`base` or `step` of a recursive table or of `ra.maintain` does not match the columns of the "
        "sources, or does not return a DataFrame.",
        remedy="Correct the columns; the hint lists the columns of each source.",
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
        cause="The target is not a Delta table, or has rows that no refresh wrote. A refresh would overwrite them.",
        remedy="Use another target, or drop or empty this one if its rows are not needed.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_SCHEMA",
        "UsageError",
        cause="The columns of the target differ from those of the result.",
        remedy="Use another target, or drop this one.",
        tested_by=_SCENARIO,
    ),
    ErrorCode(
        "PARALAGG_DELTA_CONFLICT",
        "ConflictError",
        cause="Another writer committed to the target during the refresh. The refresh wrote nothing.",
        remedy="Call `refresh()` again; it starts from the current rows.",
        tested_by=_SCENARIO,
    ),
)
