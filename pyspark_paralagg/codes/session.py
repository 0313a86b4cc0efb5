"""Codes for the environment: Java, Spark, the shim's jar, confs, caches and backends."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode
from pyspark_paralagg.version import PYSPARK

SESSION = (
    ErrorCode(
        "PARALAGG_BAD_CONF",
        "UsageError",
        cause="A key `spark.paralagg.…` does not exist, or has a value of another type. "
        "In `paralagg run`, Spark rejects a `--conf`, or the backend does not use it.",
        remedy="Correct the key or the value; the reference of the configuration lists all keys with their types.",
        example="""
            ra.attach(spark, {"spark.paralagg.backend": "sparc"})
        """,
    ),
    ErrorCode(
        "PARALAGG_BACKEND_UNAVAILABLE",
        "UnsupportedError",
        cause="The session cannot run the requested backend: it is a Spark Connect session, lacks the shim, "
        "uses dynamic allocation, or gets no executor core within 30 s.",
        remedy='Fix the cause that the message names, or use `backend="auto"` or `"dataframe"`.',
        tested_by="tests/test_dataframe_executor.py, tests/cluster/test_surroundings.py",
    ),
    ErrorCode(
        "PARALAGG_SESSION_STOPPED",
        "EnvironmentProblem",
        cause="A call uses a DataFrame or a session after `spark.stop()`.",
        remedy="Start another session with `ra.configure(...).getOrCreate()`, and read the data again.",
        tested_by="tests/test_session.py",
    ),
    ErrorCode(
        "PARALAGG_SPARK_MISSING",
        "EnvironmentProblem",
        cause="pyspark is not installed, or it contains no Spark. For example, pyspark-client contains none, "
        "or `SPARK_HOME` names another folder.",
        remedy=f"`pip install '{PYSPARK}'`, or set `SPARK_HOME` to the folder of a Spark.",
        tested_by="tests/test_shim.py",
    ),
    ErrorCode(
        "PARALAGG_SPARK_UNSUPPORTED",
        "EnvironmentProblem",
        cause="This version of pyspark-paralagg does not support the installed Spark.",
        remedy="Install a Spark that the message lists, or a newer pyspark-paralagg.",
        tested_by="tests/test_shim.py, tests/test_session.py",
    ),
    ErrorCode(
        "PARALAGG_SPARK_START",
        "EnvironmentProblem",
        cause="`paralagg run` cannot start Spark: the master is wrong or unreachable, or the JVM ends at once.",
        remedy="Correct `--master` and `--conf`. `--debug` shows the output of the JVM.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_JAVA_MISSING",
        "EnvironmentProblem",
        cause="No working Java is found: `JAVA_HOME` is not set or names a folder without Java, and `PATH` has none.",
        remedy="Install Java 17 or later, and add it to `PATH` or set `JAVA_HOME` to its folder.",
        tested_by="tests/test_shim.py::test_java_missing_says_what_to_install",
    ),
    ErrorCode(
        "PARALAGG_JAVA_TOO_OLD",
        "EnvironmentProblem",
        cause="Java is older than 17, which Spark 4 needs.",
        remedy="Install Java 17 or later, and set `JAVA_HOME` to its folder.",
        tested_by="tests/test_shim.py",
    ),
    ErrorCode(
        "PARALAGG_SHIM_MISSING",
        "EnvironmentProblem",
        cause="The session does not have the engine's jar. It was built without `ra.configure`, is a Spark Connect "
        "session, or its JVM cannot load jars.",
        remedy="Build the session with `ra.configure(builder)`, or call `ra.attach(spark)`. `ra.doctor()` shows the "
        "details.",
        tested_by="tests/test_session.py",
    ),
    ErrorCode(
        "PARALAGG_SHIM_MISMATCH",
        "EnvironmentProblem",
        cause="A jar on the class path belongs to another minor of Spark or to another version of pyspark-paralagg, or "
        "there are jars of two versions. The message names both sides.",
        remedy="Remove the other jar from `spark.jars`, `--jars` and the class path. For recursive SQL, set "
        "`spark.paralagg.python` to the Python that started the session.",
        tested_by="tests/test_session.py, tests/test_shim_jars.py, tests/sql/test_compiler.py",
    ),
    ErrorCode(
        "PARALAGG_SHIM_BUILD",
        "EnvironmentProblem",
        cause="The jar cannot be compiled for the installed Spark, or cannot be written.",
        remedy="Set `XDG_CACHE_HOME` to a folder that you can write to, or install a wheel, which contains the jar. "
        '`mode="iterate"` with `backend="dataframe"` needs no jar.',
        tested_by="tests/test_shim.py",
    ),
    ErrorCode(
        "PARALAGG_CACHE_UNSAFE",
        "EnvironmentProblem",
        cause="A cache holds compiled code that others may have written: the folder or file belongs to another user, "
        "others can write to it, or the content has changed.",
        remedy="Delete the folder that the message names; the next run creates it again with mode 0700.",
        tested_by="tests/test_private.py",
    ),
    ErrorCode(
        "PARALAGG_CACHE_UNWRITABLE",
        "EnvironmentProblem",
        cause="A cache folder cannot be created.",
        remedy="Set the variable that the hint names to a folder that you can write to.",
        tested_by="tests/test_private.py",
    ),
    ErrorCode(
        "PARALAGG_PLAN_VERSION",
        "UsageError",
        cause="An engine outside of Spark gets a plan of another version of pyspark-paralagg.",
        remedy="Install the same version of pyspark-paralagg on all machines.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_PACKAGE_MISSING",
        "EnvironmentProblem",
        cause="`paralagg run` needs a Python package that is not installed.",
        remedy="`pip install pyspark-paralagg` installs all packages that it needs.",
        tested_by="tests/test_error_codes.py",
    ),
)
