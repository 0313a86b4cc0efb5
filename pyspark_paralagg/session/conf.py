"""Every configuration key of this package, once: name, type, default, meaning.

The documentation's page of them is made from ``REGISTRY``. Most keys belong to the Spark session (``spark.conf.set``),
so a query reads what stands there when it is planned. A key that names a program or a folder is *static*: it belongs to
the Spark application, from its start or by ``ra.attach(spark, {...})``, and no line of SQL changes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

BACKENDS = ("auto", "spark", "dataframe", "mpi", "local")

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _size(text: str) -> int:
    """Bytes of ``"1g"``, ``"512 MB"``, ``"1000"``."""
    match = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if not match:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
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


@dataclass(frozen=True)
class Key:
    """A configuration key. ``parse`` raises ``ValueError`` for a text that is not of ``type``.

    ``is_static`` keys name programs and folders; `StaticConfs.scala` registers them with Spark, which refuses to set
    them in a session.
    """

    name: str
    type: str
    default: Any
    parse: Callable[[str], Any]
    doc: str
    is_static: bool = False


BACKEND = Key(
    "spark.paralagg.backend",
    " | ".join(BACKENDS),
    "auto",
    _one_of(*BACKENDS),
    "Who runs a recursion. `auto` takes the Spark engine and, where that cannot, plain DataFrames, saying why; with "
    "an MPI launcher set, large ones go to MPI ranks. `spark`, `dataframe`, `mpi` and `local` (the MPI engine in one "
    "process) insist. The argument `backend=` of a call stands above it.",
)
CHECKPOINT_DIR = Key(
    "spark.paralagg.checkpoint.dir",
    "path",
    None,
    str,
    "Where the Spark engine writes checkpoints of its state. Unset: "
    "a lost executor starts the fixpoint again from its inputs.",
    is_static=True,
)
CHECKPOINT_INTERVAL = Key(
    "spark.paralagg.checkpoint.interval",
    "number of iterations",
    10,
    _count,
    "How many iterations lie between two checkpoints.",
)
BROADCAST_MAX_BYTES = Key(
    "spark.paralagg.broadcast.maxBytes",
    "bytes",
    1 << 30,
    _size,
    "A static side up to this size may stand in every task, where that saves the exchange of each iteration.",
)
CLIMB_MAX_ITERATIONS = Key(
    "spark.paralagg.climb.maxIterations",
    "number of iterations",
    100_000,
    _count,
    "After how many iterations a recursion without `max_iterations` is ended where its values still change and nothing "
    "says whether they converge. A step that only adds or subtracts needs no such limit: there, more iterations than "
    "keys are a cycle without end, and the error names it.",
)

MPI_LAUNCHER = Key(
    "spark.paralagg.mpi.launcher",
    "local | spark | command",
    "local",
    str,
    "What starts MPI ranks: `local` is mpiexec on the driver's machine, `spark` starts them in tasks on the executors, "
    "anything else is a command in which `{ranks}` is their number and `{command}` (or its end) one rank, such as "
    "`srun -n {ranks} --kill-on-bad-exit`. Only if it is set does `auto` consider ranks.",
    is_static=True,
)
MPI_RANKS = Key(
    "spark.paralagg.mpi.ranks",
    "number",
    None,
    _count,
    "How many MPI ranks run a recursion. Unset: as many as the driver's machine has cores, with the launcher `spark` "
    "as many as there are slots for tasks.",
)
MPI_STAGING_DIR = Key(
    "spark.paralagg.mpi.stagingDir",
    "path",
    None,
    str,
    "Where rows lie on their way to the ranks and back; emptied afterwards: a directory that the driver, executors and "
    "ranks share. Unset: in the driver's `spark.local.dir`; with the launcher `spark` rows go through Spark instead.",
    is_static=True,
)
MPI_OVERSUBSCRIBE = Key(
    "spark.paralagg.mpi.oversubscribe",
    "true | false",
    False,  # noqa: FBT003 - a default
    _truth,
    "Whether the launcher `local` may start more ranks than there are cores: ranks that wait spin, so it is slow.",
)
MPI_FALLBACK = Key(
    "spark.paralagg.mpi.fallback",
    "true | false",
    False,  # noqa: FBT003 - a default
    _truth,
    "Whether Spark computes what MPI ranks could not, because they could not start or one has failed. "
    "Errors in the data stay errors.",
)
OFFLOAD_MIN_ROWS = Key(
    "spark.paralagg.offload.minRows",
    "number of rows",
    50_000_000,
    _count,
    "`auto` goes to MPI ranks from so many rows of input on, by Spark's estimate, if a launcher is set.",
)
OFFLOAD_MIN_CORES = Key(
    "spark.paralagg.offload.minCores",
    "number of cores",
    64,
    _count,
    "`auto` goes to MPI ranks from so many cores of the cluster on, whatever the rows, if a launcher is set.",
)

SUB_BUCKETS = Key(
    "spark.paralagg.subBuckets",
    "number",
    1,
    _count,
    "On MPI ranks: over how many of them the rows of one join key may lie, for data where few keys have most rows. "
    "What is derived is then copied to all ranks of its key before each join.",
)

PYTHON = Key(
    "spark.paralagg.python",
    "command",
    None,
    str,
    "The Python that compiles recursive queries in SQL: a process that is started at the first of them and kept. "
    "`ra.configure` sets it to the Python that runs; unset, it is `PYSPARK_DRIVER_PYTHON`, `PYSPARK_PYTHON`, or "
    "`python3`.",
    is_static=True,
)
PYTHON_PATH = Key(
    "spark.paralagg.pythonPath",
    "path",
    None,
    str,
    "What that process has on its `PYTHONPATH`, before the JVM's own. `ra.configure` sets it to the folder that this "
    "package lies in.",
    is_static=True,
)
SQL_REWRITE = Key(
    "spark.paralagg.sql.rewrite",
    "true | false",
    True,  # noqa: FBT003 - a default
    _truth,
    "Whether Spark's own recursive CTEs (`UNION ALL`) of which only `min` or `max` of each key is wanted are computed "
    "as recursive aggregates, where that is proven to be the same.",
)
PROGRESS = Key(
    "spark.paralagg.progress",
    "auto | on | off",
    "auto",
    _one_of("auto", "on", "off"),
    "Whether `with ra.progress():` draws bars: `auto` where standard error is a terminal, and in notebooks; `on` "
    "always; `off` never.",
)

REGISTRY: tuple[Key, ...] = (
    BACKEND,
    CHECKPOINT_DIR,
    CHECKPOINT_INTERVAL,
    BROADCAST_MAX_BYTES,
    CLIMB_MAX_ITERATIONS,
    MPI_LAUNCHER,
    MPI_RANKS,
    MPI_STAGING_DIR,
    MPI_OVERSUBSCRIBE,
    MPI_FALLBACK,
    OFFLOAD_MIN_ROWS,
    OFFLOAD_MIN_CORES,
    SUB_BUCKETS,
    PYTHON,
    PYTHON_PATH,
    SQL_REWRITE,
    PROGRESS,
)


def read(session: SparkSession, key: Key) -> Any:  # noqa: ANN401 - the type is the key's
    """The value of ``key`` in ``session``; ``UsageError`` ``PARALAGG_BAD_CONF`` where it is not of the key's type."""
    where = "the application's configuration" if key.is_static else "the session's configuration"
    return parsed(key, _text(session, key), where)


def parsed(key: Key, text: str | None, place: str) -> Any:  # noqa: ANN401 - the type is the key's
    """The value of ``key`` that ``place`` says (None: nothing); raises as ``read`` does."""
    if text is None:
        return key.default
    try:
        return key.parse(text)
    except ValueError:
        raise UsageError(
            "PARALAGG_BAD_CONF",
            f"{key.name} is {text!r}, which is not {key.type}",
            value=text,
            place=place,
            hint=f"the default is {key.default}",
        ) from None


def is_set(session: SparkSession, key: Key) -> bool:
    """Whether someone has set ``key``, be it to its default."""
    return _text(session, key) is not None


def checked(confs: Mapping[str, object], place: str) -> dict[Key, str | None]:
    """Return the keys of ``confs`` with their values as text; None stands for a key to unset.

    Raises ``UsageError`` ``PARALAGG_BAD_CONF`` for an unknown key or a value that is not of the key's type.
    """
    known = {key.name: key for key in REGISTRY}
    found: dict[Key, str | None] = {}
    for name, value in confs.items():
        if name not in known:
            raise UsageError(
                "PARALAGG_BAD_CONF",
                f"there is no key {name!r}",
                value=name,
                place=place,
                hint=did_you_mean(str(name), list(known)),
            )
        text = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
        parsed(known[name], text, place)
        found[known[name]] = text
    return found


def _text(session: SparkSession, key: Key) -> str | None:
    """A static key is looked up in the SparkContext's conf, which no SQL statement writes to."""
    if not key.is_static:
        return session.conf.get(key.name, None)
    return None if is_connect(session) else session.sparkContext._conf.get(key.name, None)  # noqa: SLF001 - live, not a copy
