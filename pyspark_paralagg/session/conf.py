"""Define every configuration key of this package: name, type, default, meaning.

The configuration page of the documentation is generated from ``REGISTRY``. Most keys belong to the Spark session
(``spark.conf.set``); the planner reads them when it plans a query. A key that names a program or a folder is *static*:
it belongs to the Spark application. It is set at the start or by ``ra.attach(spark, {...})``; SQL cannot change it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

BACKENDS = ("auto", "spark", "python", "dataframe", "mpi", "local")

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _size(text: str) -> int:
    """Parse a size such as ``"1g"``, ``"512 MB"`` or ``"1000"`` into bytes."""
    match = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if not match:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _count_or_auto(text: str) -> int | str:
    return text if text == "auto" else _count(text)


def _fraction(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parse


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_ACCEPTED: dict[Any, str] = {
    _size: "a size such as 512 MB",
    _count: "a whole number from 1 on",
    _natural: "a whole number from 0 on",
    _count_or_auto: "a whole number from 1 on, or auto",
    _fraction: "a number from 0 on",
    _truth: "true or false",
}


@dataclass(frozen=True)
class Key:
    """A configuration key. ``parse`` raises ``ValueError`` for a text that is not of ``type``.

    Keys with ``is_static`` name programs and folders. `StaticConfs.scala` registers them with Spark, which then refuses
    to set them in a session.
    """

    name: str
    type: str
    default: Any
    parse: Callable[[str], Any]
    doc: str
    is_static: bool = False

    @property
    def accepted(self) -> str:
        """Return the values that ``parse`` takes, for an error."""
        return _ACCEPTED.get(self.parse, self.type)


BACKEND = Key(
    "spark.paralagg.backend",
    " | ".join(BACKENDS),
    "auto",
    _one_of(*BACKENDS),
    "The executor of recursions. `auto` uses the Spark engine (over Spark Connect the engine in Python workers), or "
    "plain DataFrames if that engine does not support the recursion; `explain` gives the reason. If an MPI launcher is "
    "set, `auto` sends large recursions to MPI ranks. `spark`, `python` (the MPI engine in a Python worker of Spark, "
    "which needs no jar), `dataframe`, `mpi` and `local` (the MPI engine in one process) force one executor. "
    "The argument `backend=` of a call overrides this key.",
)
PYTHON_TASKS = Key(
    "spark.paralagg.python.tasks",
    "number of tasks",
    1,
    _count,
    "The number of tasks that run a recursion with `backend=python`. With more than one, each task is a rank of a "
    "barrier stage, which needs as many free slots at the same time; the ranks exchange rows over TCP.",
)
CHECKPOINT_DIR = Key(
    "spark.paralagg.checkpoint.dir",
    "path",
    None,
    str,
    "The directory to which the Spark engine writes checkpoints of its state. "
    "If unset, losing an executor restarts the fixpoint from its inputs.",
    is_static=True,
)
CHECKPOINT_INTERVAL = Key(
    "spark.paralagg.checkpoint.interval",
    "number of iterations",
    10,
    _count,
    "The number of iterations between two checkpoints.",
)
BROADCAST_MAX_BYTES = Key(
    "spark.paralagg.broadcast.maxBytes",
    "bytes",
    1 << 30,
    _size,
    "The largest static join side that may be broadcast to every task, if that saves the exchange of each iteration.",
)
CLIMB_MAX_ITERATIONS = Key(
    "spark.paralagg.climb.maxIterations",
    "number of iterations",
    100_000,
    _count,
    "The number of iterations after which a recursion without `max_iterations` fails, if its values still change and "
    "its convergence is unknown. A step that only adds or subtracts needs no such limit: more iterations than keys "
    "prove an endless cycle there, and the error names the cycle.",
)
ONE_TASK_ROWS = Key(
    "spark.paralagg.oneTask.maxRows",
    "number of rows",
    1 << 20,
    _natural,
    "The number of static rows (edges) up to which one of two tasks of the Spark engine runs the loop alone, after all "
    "have loaded. Of n tasks it is (2 / n)² of this number. 0: all tasks always run it.",
)

MPI_LAUNCHER = Key(
    "spark.paralagg.mpi.launcher",
    "local | spark | command",
    "local",
    str,
    "The launcher of MPI ranks. `local` runs mpiexec on the driver's machine; `spark` starts the ranks in tasks on the "
    "executors. Any other value is a command, such as `srun -n {ranks} --kill-on-bad-exit`. `{ranks}` stands for the "
    "number of ranks and `{command}` for the command of one rank, which is appended if `{command}` is absent. "
    "The backend `auto` considers MPI ranks only if this key is set.",
    is_static=True,
)
MPI_RANKS = Key(
    "spark.paralagg.mpi.ranks",
    "number",
    None,
    _count,
    "The number of MPI ranks of a recursion. If unset: the number of cores of the driver's machine, or with the "
    "launcher `spark` the number of task slots.",
)
MPI_STAGING_DIR = Key(
    "spark.paralagg.mpi.stagingDir",
    "path",
    None,
    str,
    "The directory through which rows pass to the ranks and back; it is emptied afterwards. The driver, the executors "
    "and the ranks must share it. If unset: a directory in the driver's `spark.local.dir`; with the launcher `spark`, "
    "rows go through Spark instead.",
    is_static=True,
)
MPI_OVERSUBSCRIBE = Key(
    "spark.paralagg.mpi.oversubscribe",
    "true | false",
    False,  # noqa: FBT003 - a default
    _truth,
    "Whether the launcher `local` may start more ranks than there are cores. This is slow, because waiting ranks spin.",
)
MPI_FALLBACK = Key(
    "spark.paralagg.mpi.fallback",
    "true | false",
    False,  # noqa: FBT003 - a default
    _truth,
    "Whether Spark computes the recursion if the MPI ranks cannot start or one of them fails. "
    "Errors in the data are raised either way.",
)
OFFLOAD_MIN_ROWS = Key(
    "spark.paralagg.offload.minRows",
    "number of rows",
    50_000_000,
    _count,
    "The number of input rows, by Spark's estimate, from which `auto` uses MPI ranks if a launcher is set.",
)
OFFLOAD_MIN_CORES = Key(
    "spark.paralagg.offload.minCores",
    "number of cores",
    64,
    _count,
    "The number of cores of the cluster from which `auto` uses MPI ranks for any number of rows, if a launcher is set.",
)

SUB_BUCKETS = Key(
    "spark.paralagg.subBuckets",
    "number | auto",
    1,
    _count_or_auto,
    "The number of MPI ranks over which the rows of one join key are spread. It helps where few keys have most of the "
    "rows. Derived rows are then copied to all ranks of their key before each join. With `auto`, keys are hashed into "
    "buckets of one sub-bucket, which are split and merged while the loop runs.",
)
SUB_BUCKET_ROUNDS = Key(
    "spark.paralagg.subBuckets.rounds",
    "number of iterations",
    10,
    _count,
    "With `spark.paralagg.subBuckets=auto`: after how many iterations buckets are split or merged again.",
)
SUB_BUCKET_SPLIT = Key(
    "spark.paralagg.subBuckets.splitRatio",
    "number",
    3.0,
    _fraction,
    "With `spark.paralagg.subBuckets=auto`: a bucket is split into four times as many sub-buckets if one of them has "
    "more rows than this, as a multiple of the average sub-bucket.",
)
SUB_BUCKET_MERGE = Key(
    "spark.paralagg.subBuckets.mergeShare",
    "number",
    0.6,
    _fraction,
    "With `spark.paralagg.subBuckets=auto`: if a larger part of all buckets is split, those with a sub-bucket below "
    "the average are merged into a fourth as many. With 1 or more nothing is merged.",
)

HEAVY_PARTS = Key(
    "spark.paralagg.heavyParts",
    "number",
    8,
    _natural,
    "What is a hub: a row with more than 1/heavyParts of a task's fair part of all edges. The edges of hubs are spread "
    "over all tasks or MPI ranks, if some hub has twice as much. With 0 no row is a hub.",
)

ROLL_OVER_ROWS = Key(
    "spark.paralagg.rollOverRows",
    "number of rows",
    4_000_000,
    _natural,
    "The number of derived rows for other tasks or MPI ranks that one holds, where their keys are computed. With more, "
    "all exchange rows before the iteration ends. It bounds memory where few keys derive many rows at once. With 0, "
    "rows are exchanged at the end of an iteration only. `explain` says where none are sent earlier.",
)

KEEP_INDEXES = Key(
    "spark.paralagg.keepIndexes",
    "true | false",
    False,  # noqa: FBT003 - a default
    _truth,
    "Whether a recursion on the Spark engine leaves its loaded indexes in the executors, so that the next one of the "
    "same step over the same files or cached tables reads its base rows alone. They are storage memory, which Spark "
    "evicts if it needs it for something else; the last eight stay, until `ra.free_indexes()`.",
)

KEEP_STATE = Key(
    "spark.paralagg.delta.keepState",
    "true | false",
    True,  # noqa: FBT003 - a default
    _truth,
    "Whether a refresh of a recursive table leaves its loaded indexes in the executors, so that the next one reads "
    "only the changed rows. They are storage memory, which Spark evicts if it needs it for something else.",
)

PYTHON = Key(
    "spark.paralagg.python",
    "command",
    None,
    str,
    "The Python that compiles recursive queries in SQL. The first such query starts its process, which is then reused. "
    "`ra.configure` sets this key to the running Python; if unset, it is `PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`, or "
    "`python3`.",
    is_static=True,
)
PYTHON_PATH = Key(
    "spark.paralagg.pythonPath",
    "path",
    None,
    str,
    "The entries that are put before the JVM's own `PYTHONPATH` for that process. `ra.configure` sets this key to the "
    "folder that contains this package.",
    is_static=True,
)
SQL_REWRITE = Key(
    "spark.paralagg.sql.rewrite",
    "true | false",
    True,  # noqa: FBT003 - a default
    _truth,
    "Whether Spark's own recursive CTEs (`UNION ALL`) are computed as recursive aggregates. This applies where a query "
    "uses only `min` or `max` for each key and both results are proven equal.",
)
PROGRESS = Key(
    "spark.paralagg.progress",
    "auto | on | off",
    "auto",
    _one_of("auto", "on", "off"),
    "Whether `with ra.progress():` draws bars. `auto` draws them if standard error is a terminal, and in notebooks. "
    "`on` always draws them, `off` never.",
)

REGISTRY: tuple[Key, ...] = (
    BACKEND,
    PYTHON_TASKS,
    CHECKPOINT_DIR,
    CHECKPOINT_INTERVAL,
    BROADCAST_MAX_BYTES,
    CLIMB_MAX_ITERATIONS,
    ONE_TASK_ROWS,
    MPI_LAUNCHER,
    MPI_RANKS,
    MPI_STAGING_DIR,
    MPI_OVERSUBSCRIBE,
    MPI_FALLBACK,
    OFFLOAD_MIN_ROWS,
    OFFLOAD_MIN_CORES,
    SUB_BUCKETS,
    SUB_BUCKET_ROUNDS,
    SUB_BUCKET_SPLIT,
    SUB_BUCKET_MERGE,
    HEAVY_PARTS,
    ROLL_OVER_ROWS,
    KEEP_INDEXES,
    KEEP_STATE,
    PYTHON,
    PYTHON_PATH,
    SQL_REWRITE,
    PROGRESS,
)


def read(session: SparkSession, key: Key) -> Any:  # noqa: ANN401 - the type is the key's
    """Return the value of ``key`` in ``session``.

    Raises ``UsageError`` ``PARALAGG_BAD_CONF`` if the value is not of the key's type.
    """
    place = "the application's configuration" if key.is_static else "the session's configuration"
    return parse(key, _text(session, key), place)


def parse(key: Key, text: str | None, place: str) -> Any:  # noqa: ANN401 - the type is the key's
    """Parse the value of ``key`` that was set in ``place``; None stands for the default. Raises as ``read`` does."""
    if text is None:
        return key.default
    try:
        return key.parse(text)
    except ValueError:
        raise UsageError(
            "PARALAGG_BAD_CONF",
            f"{key.name} is {text!r}, which is not {key.accepted}",
            value=text,
            place=place,
            hint=f"use {key.accepted}; the default is {key.default}",
        ) from None


def is_set(session: SparkSession, key: Key) -> bool:
    """Return whether ``key`` is set, even if to its default."""
    return _text(session, key) is not None


def check(confs: Mapping[str, object], place: str) -> dict[Key, str | None]:
    """Return the keys of ``confs`` with their values as text; None stands for a key to unset.

    Raises ``UsageError`` ``PARALAGG_BAD_CONF`` for an unknown key or a value that is not of the key's type.
    """
    keys = {key.name: key for key in REGISTRY}
    checked: dict[Key, str | None] = {}
    for name, value in confs.items():
        if name not in keys:
            raise UsageError(
                "PARALAGG_BAD_CONF",
                f"the key {name!r} does not exist",
                value=name,
                place=place,
                hint=did_you_mean(str(name), list(keys)),
            )
        text = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
        parse(keys[name], text, place)
        checked[keys[name]] = text
    return checked


def _text(session: SparkSession, key: Key) -> str | None:
    """Return the text of ``key``, or None."""
    if not key.is_static:  # static keys are read from the SparkContext's conf, to which no SQL statement writes
        return session.conf.get(key.name, None)
    return None if is_connect(session) else session.sparkContext._conf.get(key.name, None)  # noqa: SLF001 - live, not a copy
