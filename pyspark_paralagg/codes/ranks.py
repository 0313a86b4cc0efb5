"""Codes for runs outside of Spark: MPI ranks, the local process, and what their engine can compute."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

RANKS = (
    ErrorCode(
        "PARALAGG_MPI_NO_MPI4PY",
        "EnvironmentProblem",
        cause="The Python that starts the ranks has no mpi4py.",
        remedy="`pip install 'pyspark-paralagg[mpi]'`",
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_NO_NUMBA",
        "EnvironmentProblem",
        cause="The Python that starts the ranks or the local process has no numba.",
        remedy="`pip install 'pyspark-paralagg[mpi]'`",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_NO_LAUNCHER",
        "EnvironmentProblem",
        cause="The command that starts ranks cannot be found or cannot be run: there is no `mpiexec`, "
        "or `spark.paralagg.mpi.launcher` names a command that `PATH` does not have.",
        remedy="`pip install 'pyspark-paralagg[mpi]'` on all machines, or name the command by its full path.",
        tested_by="tests/mpi/test_preflight.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_BAD_LAUNCHER",
        "UsageError",
        cause="`spark.paralagg.mpi.launcher` is neither `local` nor `spark`, nor a command with `{ranks}` in it.",
        remedy="Write the command of the cluster with `{ranks}`, such as `srun -n {ranks} --kill-on-bad-exit`.",
        tested_by="tests/mpi/test_preflight.py, tests/test_offload.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_MISMATCH",
        "EnvironmentProblem",
        cause="mpi4py and the launcher belong to different MPI libraries, so each rank sees another number of ranks.",
        remedy="Use the `mpiexec` of the MPI that mpi4py was built for; "
        "`pip install mpi4py mpich` installs matching ones.",
        tested_by="tests/mpi/test_preflight.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_PYTHON",
        "EnvironmentProblem",
        cause="Ranks on another machine have another minor of Python, or another version of pyspark-paralagg, than the "
        "driver. The message names both.",
        remedy="Install the same environment at the same path on all machines, for instance by an image.",
        tested_by="tests/mpi/test_preflight.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_TOO_MANY_RANKS",
        "UsageError",
        cause="More ranks are requested than there are cores, or slots of the application. "
        "All ranks run at the same time, and a waiting rank spins.",
        remedy="Set `spark.paralagg.mpi.ranks` to fewer ranks, "
        "or `spark.paralagg.mpi.oversubscribe=true` on one machine.",
        tested_by="tests/mpi/test_preflight.py, tests/test_offload.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_ADDRESS",
        "EnvironmentProblem",
        cause="The supervisor of the ranks cannot listen on the address of the driver, or ranks in tasks of Spark "
        "cannot connect to each other.",
        remedy="Set `spark.driver.host` to an address of this machine that executors can reach, "
        "or `spark.driver.bindAddress` to an address of this machine. For tasks, let the machines of the executors "
        "connect to each other's free ports, or set `spark.paralagg.python.tasks` to 1.",
        tested_by="tests/mpi/test_signs.py, tests/mpi/test_tcp.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_STAGING",
        "EnvironmentProblem",
        cause="The staging directory cannot be written to, its disk is full, or executors, driver and ranks "
        "do not share it.",
        remedy="Set `spark.paralagg.mpi.stagingDir` to a directory with space that all machines share, "
        "or `spark.paralagg.mpi.launcher=spark`, which needs no shared directory.",
        tested_by="tests/mpi/test_preflight.py, tests/test_full_disk.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_RANK_FAILED",
        "FixpointError",
        cause="A rank, its launcher or the supervisor was killed, stopped, did not start, or ended without a result. "
        "An error in the engine itself also has this code, with a traceback.",
        remedy="Read the message for rank, host and signal. Signal 9 often means that the machine ran out of memory.",
        tested_by="tests/mpi/test_supervisor.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_OUT_OF_MEMORY",
        "FixpointError",
        cause="A rank cannot allocate memory.",
        remedy="Use more machines, or fewer ranks on each.",
        tested_by="tests/mpi/test_out_of_memory.py",
    ),
    ErrorCode(
        "PARALAGG_MPI_CANCELLED",
        "FixpointError",
        cause="The supervisor of the ranks got a signal to end: the query was cancelled, or its process ended.",
        remedy="If you did not cancel the query, look for the reason in the log of the driver.",
        tested_by="tests/mpi/test_supervisor.py",
    ),
    ErrorCode(
        "PARALAGG_NOT_PORTABLE",
        "UnsupportedError",
        cause="The engine outside of the JVM does not support an expression or a type of the program. "
        "Or several ranks are to number rows (`autoinc()`). The message names the reason.",
        remedy='Use `backend="spark"`, or compute the expression before the recursion.',
        example="""
            base = spark.sql("SELECT 1L AS node, 0L AS dist")
            step = lambda r: r.selectExpr("node", "try_add(dist, 1L) AS dist").where("dist < 9")
            base.recursive_agg("node", {"dist": "max"}, step=step, mode="trust", backend="local")
        """,
    ),
    ErrorCode(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        "UnsupportedError",
        cause="The code generator of the ranks does not support a function, a cast or a pattern. "
        "`PARALAGG_NOT_PORTABLE` usually reports it before the ranks start.",
        remedy='Use `backend="spark"`, or cast or compute the value before the recursion.',
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_RULE_TOO_LONG",
        "UnsupportedError",
        cause="A rule joins more atoms than the engine outside of Spark can join in one rule (512).",
        remedy='Compute a part of the joins in a separate relation, or use `backend="spark"`.',
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_OFFLOAD_SMALL",
        "UnsupportedError",
        cause='`backend="auto"` does not use ranks for this job: it has fewer rows and fewer cores than '
        "`spark.paralagg.offload.minRows` and `minCores`. Only `ra.explain` shows the message.",
        remedy='The job runs on Spark; to use ranks, set `backend="mpi"` or lower the limits.',
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_INPUT_COLUMNS",
        "UsageError",
        cause="The number of columns differs between a staged file and the plan.",
        remedy="Report a bug: Spark or the command writes these files.",
        tested_by="tests/test_error_codes.py",
    ),
)
