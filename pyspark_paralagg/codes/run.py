"""Codes for what goes wrong while a fixpoint runs."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import IN_SPARK, ErrorCode

RUN = (
    ErrorCode(
        "PARALAGG_LIMIT_REACHED",
        "FixpointError",
        cause='The last iteration that `max_iterations` allows still changes rows, and `on_limit` is `"error"`.',
        remedy='Raise `max_iterations`, or get the rows of the last iteration with `on_limit="return"`.',
        example="""
            base = spark.sql("SELECT 0L AS n")
            step = lambda r: r.selectExpr("n + 1 AS n").where("n < 9")
            base.recursive_agg("n", step=step, max_iterations=2).collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_NO_FIXPOINT",
        "FixpointError",
        cause="Values still change after more iterations than there are keys, or a sum overflows in a cycle. "
        "A cycle improves its own values in every iteration, such as a negative cycle under `min`.",
        remedy='Remove the cycle, bound the values by a filter, or set `max_iterations` with `on_limit="return"`. '
        "For values that converge late, raise `spark.paralagg.climb.maxIterations`.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0L AS dist")
            step = lambda r: r.selectExpr("node", "dist - 1 AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=step).collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_ASSUMPTION_VIOLATED",
        "FixpointError",
        cause="A row breaks a condition that the proof needs: one of `assume`, or a guard that the engine adds, "
        "such as no null, no NaN or no overflow.",
        remedy="Filter such rows out, correct the assumption, use a wider type, "
        'or use `mode="iterate"`, which needs no proof.',
        example="""
            edges = spark.sql("SELECT 1L AS src, 2L AS dst, -7D AS w")
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            step = lambda r: r.join(edges, r.node == edges.src).selectExpr("dst AS node", "dist + w AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=step, assume="w >= 0", backend="spark").collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_OVERFLOW",
        "FixpointError",
        cause="A sum, a count or a greatest common divisor leaves the range of its type, or a total of `ra.h_index` "
        "needs too much memory.",
        remedy="Use a wider type: bigint, decimal or double. If the data has a cycle that adds to itself, remove it.",
        example="""
            base = spark.sql("SELECT 1L AS node, tinyint(-128) AS g")
            base.recursive_agg("node", {"g": "gcd"}, step=lambda r: r, backend="spark").collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_KEPT_STATE",
        IN_SPARK,
        cause="Executors no longer have the state that a refresh has kept for the next one, or changed rows do not fit "
        "it. `refresh()` catches it and goes on from the stored rows.",
        remedy="Nothing. If it happens at each refresh, give executors more memory.",
        tested_by="tests/test_kept_state.py",
    ),
    ErrorCode(
        "PARALAGG_MANY_FALL",
        IN_SPARK,
        cause="So many rows may have lost their support that a full run is faster. `refresh()` catches it and runs in "
        "full.",
        remedy="Nothing.",
        tested_by="tests/test_kept_state.py",
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR_NULL",
        "FixpointError",
        cause="`combine` of a user-defined aggregator returns null for two values of the data.",
        remedy="Return a value for any two values, for instance by `coalesce`.",
        example="""
            from pyspark.sql import functions as F
            combine = lambda old, new: F.when(old + new != 1000, F.greatest(old, new))
            odd = ra.aggregator("odd", combine, samples=[1, 2, 3])
            base = spark.sql("SELECT 1L AS node, v FROM VALUES (400L), (600L) AS t(v)")
            base.recursive_agg("node", {"v": odd}, step=lambda r: r, backend="dataframe").collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_TYPE_UNSUPPORTED",
        "UnsupportedError",
        cause="An engine gets a column of a type that does not fit into 64 bits, such as `decimal(38,2)` or an array. "
        "The compiler usually rejects such a step earlier (`PARALAGG_STEP_UNSUPPORTED`, `PARALAGG_NOT_PORTABLE`).",
        remedy='Cast the column, or use `backend="dataframe"`.',
        tested_by="tests/mpi/test_types.py",
    ),
    ErrorCode(
        "PARALAGG_NO_SLOTS",
        IN_SPARK,
        cause="The Spark engine needs the same executor cores for the whole run. "
        "Dynamic allocation is on, or no executor has a core.",
        remedy='Set `spark.dynamicAllocation.enabled=false`, or use `backend="dataframe"`.',
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_OUT_OF_MEMORY",
        IN_SPARK,
        cause="The state of one task does not fit into the memory that Spark gives it, or the heap is full.",
        remedy="Raise `spark.executor.memory` (`spark.driver.memory` under `local[N]`), or use more tasks. "
        "Indexes go to mapped files first, unless `spark.io.encryption.enabled` is set.",
        tested_by="tests/cluster/test_surroundings.py",
    ),
    ErrorCode(
        "PARALAGG_RUN_FAILED",
        "FixpointError",
        cause="An expression of the program fails on a row in `paralagg run`, such as a division by zero. The message "
        "has Spark's error condition.",
        remedy="Correct the data or the expression that the hint shows.",
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_SPARK_LOST",
        "FixpointError",
        cause="The JVM of Spark ends during `paralagg run`, for instance because the system kills it.",
        remedy="Run with `--debug` to see the output of the JVM. Give it more memory if the system ran out of it.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_DISK_FULL",
        "EnvironmentProblem",
        cause="A disk or a quota is full. `paralagg run` writes files. In Spark, loaded rows that memory does not hold "
        "go to Spark's local directory.",
        remedy="Free space on it, or set `TMPDIR` (`spark.local.dir` in Spark) to a folder on another disk.",
        tested_by="tests/test_killed_command.py",
    ),
    ErrorCode(
        "PARALAGG_SYSTEM",
        "EnvironmentProblem",
        cause="The operating system refuses an operation on a file or folder of `paralagg run`, for instance because "
        "of missing permissions.",
        remedy="Correct the problem that the message reports for the file.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_WHY_LARGE",
        "FixpointError",
        cause="More derivations lie below the row of `ra.why` than its `limit` allows.",
        remedy="Raise the limit. All derivations are read into the driver's memory.",
        tested_by="tests/test_why.py",
    ),
    ErrorCode(
        "PARALAGG_PATH_WORKERS",
        "EnvironmentProblem",
        cause="Without the jar a Python worker of Spark makes the arrays of `ra.path`. The workers lack numpy or "
        "pyarrow, or are of another Python version.",
        remedy="Install both where the workers run, and set `PYSPARK_PYTHON` or `spark.pyspark.python` to that Python.",
        tested_by="tests/test_paths.py",
    ),
    ErrorCode(
        "PARALAGG_PATH_LOST",
        IN_SPARK,
        cause="A row has no path (`ra.path`): the value that decides is null. Or only a value that a better one has "
        "replaced derives it, as in `least(d, 5)`: the 5 came from a 7 that is gone.",
        remedy="Filter out rows without a value. In the other case the value has no derivation from final rows, "
        "and only `ra.min_by` can carry its parent.",
        tested_by="tests/test_paths.py",
    ),
    ErrorCode(
        "PARALAGG_PATH_TOO_LONG",
        IN_SPARK,
        cause="A path has more rows than the `limit` of `ra.path`.",
        remedy="Raise the limit, or bound the length in the step.",
        tested_by="tests/test_paths.py",
    ),
)
