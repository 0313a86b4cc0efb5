"""Estimate what a run needs before it runs: the rows of its inputs, the bytes of a task, what goes to files."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.report.engine_report import SPARK, describe
from pyspark_paralagg.session.attach import bridge, frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class InputEstimate:
    """An input: its ``columns``, its ``rows``, and the ``bytes`` that they take when loaded.

    ``rows`` is None for the result of another recursion, which only a run can count; ``bytes`` is then 0.
    """

    columns: tuple[str, ...]
    rows: int | None
    bytes: int

    def __repr__(self) -> str:
        """Return one line of text."""
        columns = f"({', '.join(self.columns)})"
        if self.rows is None:
            return f"{columns}: the result of another recursion"
        return f"{columns}: {self.rows:,} {'row' if self.rows == 1 else 'rows'}, {_mib(self.bytes)}"


@dataclass(frozen=True)
class Estimate:
    """The needs of a run, from the rows of its inputs and the Plan. All sizes are bytes.

    ``bytes_per_task`` is the most that the loaded rows and the indexes of one of the ``tasks`` take at the same time,
    if keys are spread evenly; Spark's memory manager has ``memory_per_task``. ``index_bytes_per_task`` is the part of
    the indexes. What does not fit goes to files: loaded rows (``spilled``, of all tasks), and indexes, which the loop
    reads from mapped files (``mapped``, of all tasks). If Spark encrypts its files, indexes stay in memory. Values of
    64 bits count 8 bytes a row. Loaded rows need half of that if the values of a block of rows are near each other.

    ``strings`` are the texts of all inputs, each once: every executor has them, in mapped files if memory has no room.
    ``row_bytes`` is the size of a row of each recursive relation while the loop runs, unless it runs by bitmaps. Only a
    run can count the rows.

    For ranks (``backend`` ``local`` or ``mpi``) there are only the ``inputs``; the other numbers are None.
    """

    backend: str
    inputs: tuple[InputEstimate, ...]
    tasks: int | None = None
    bytes_per_task: int | None = None
    index_bytes_per_task: int | None = None
    memory_per_task: int | None = None
    spilled: int | None = None
    mapped: int | None = None
    strings: int | None = None
    row_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def fits(self) -> bool | None:
        """Whether memory holds the indexes that are not mapped; None for ranks. Rows of relations come on top."""
        if self.tasks is None or self.index_bytes_per_task is None or self.memory_per_task is None:
            return None
        return self.index_bytes_per_task - (self.mapped or 0) / self.tasks <= self.memory_per_task

    def __repr__(self) -> str:
        """Return the numbers as some lines of text."""
        lines = [f"{self.backend}: {len(self.inputs)} inputs", *(f"  {i!r}" for i in self.inputs)]
        if self.fits is not None:
            needed = f"{_mib(self.bytes_per_task)}, of which {_mib(self.index_bytes_per_task)} for indexes"
            lines += [
                f"  memory of each of {self.tasks} tasks: {_mib(self.memory_per_task)}; needed: {needed}",
                f"  to files: {_mib(self.spilled)} of rows, {_mib(self.mapped)} of indexes (mapped)",
                *([f"  strings: {_mib(self.strings)} in every executor"] if self.strings else []),
                *(f"  each row of {name}: {size} bytes" for name, size in self.row_bytes.items()),
            ]
        if self.fits is False:
            lines.append("  The indexes do not fit. Give executors more memory, or use more of them.")
        return "\n".join(lines)


def estimate(df: DataFrame) -> Estimate:
    """Estimate what the outermost recursion in ``df`` needs. It counts the rows of the inputs, and applies no step.

    Raises ``UsageError`` ``PARALAGG_NO_ESTIMATE`` if no engine of this package runs a recursion in ``df``: there is
    none, it runs on plain DataFrames, or the session is one of Spark Connect.

    >>> ra.estimate(dist)                                                                 # doctest: +SKIP
    spark: 2 inputs
      (node, dist): 1 row, 1 MiB
      (src, dst, weight): 64,155,735 rows, 1,469 MiB
      memory of each of 2 tasks: 1,138 MiB; needed: 1,224 MiB, of which 490 MiB for indexes
      to files: 172 MiB of rows, 0 MiB of indexes (mapped)
      each row of r: 33 bytes
    """
    described = describe(df)
    if described is None:
        raise UsageError(
            "PARALAGG_NO_ESTIMATE",
            "no engine of pyspark-paralagg runs a recursion in this DataFrame",
            place="estimate",
            hint="ra.explain(df) says what runs it; plain DataFrames and Spark Connect have no estimate",
        )
    shim, jdf = bridge(df.sparkSession), df._jdf  # noqa: SLF001 - pyspark has no public way to the JVM DataFrame
    sizes = json.loads(shim.sizes(jdf))
    frames = [
        None if i["derived"] else frame_of(frame, df.sparkSession)
        for i, frame in zip(sizes["inputs"], shim.inputs(jdf), strict=True)
    ]
    counts = [None if f is None else f.count() for f in frames]
    inputs = tuple(
        InputEstimate(tuple(i["columns"]), n, sum(r["bytes"] * (n or 0) for r in sizes["loaded"] if r["input"] == at))
        for at, (i, n) in enumerate(zip(sizes["inputs"], counts, strict=True))
    )
    if described["backend"] != SPARK:
        return Estimate(described["backend"], inputs)
    memory = _memory(sizes, [n or 0 for n in counts])
    return Estimate(
        SPARK,
        inputs,
        strings=_strings(frames, [i["strings"] for i in sizes["inputs"]]),
        row_bytes=sizes["rows"],
        **memory,
    )


def _memory(sizes: dict[str, Any], counts: Sequence[int]) -> dict[str, int]:
    """Return the numbers of :class:`Estimate` that follow from the bytes of a row, for one task.

    The engine builds the indexes one after the other, each from loaded rows that it then frees.
    """
    rows = [counts[route["input"]] * route["share"] for route in sizes["loaded"]]
    waiting = peak = sum(n * route["bytes"] for n, route in zip(rows, sizes["loaded"], strict=True))
    kept = mapped = 0.0
    for index in sizes["indexes"]:
        route = sizes["loaded"][index["route"]]
        n = counts[route["input"]] * index["share"]
        peak = max(peak, waiting + kept + n * index["building"])
        if sizes["mayMap"] and kept + n * index["kept"] > sizes["memoryPerTask"]:
            mapped += n * index["kept"]
        else:
            kept += n * index["kept"]
        if index["frees"]:
            waiting -= rows[index["route"]] * route["bytes"]
    loaded = sum(n * route["bytes"] for n, route in zip(rows, sizes["loaded"], strict=True))
    return {
        "tasks": sizes["tasks"],
        "bytes_per_task": round(peak),
        "index_bytes_per_task": round(kept + mapped),
        "memory_per_task": sizes["memoryPerTask"],
        "spilled": round(sizes["tasks"] * min(loaded, max(0.0, peak - sizes["memoryPerTask"]))),
        "mapped": round(sizes["tasks"] * mapped),
    }


_STRING_BYTES = 12
"""What the dictionary needs for a string beside its text: its length and its place."""


def _strings(frames: Sequence[DataFrame | None], columns: Sequence[Sequence[int]]) -> int:
    """Return about how many bytes the dictionary of these columns has, by Spark's approximate count of the distinct."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; needs pyspark

    texts = [
        frame.select(frame[c].alias("text"))
        for frame, positions in zip(frames, columns, strict=True)
        if frame is not None
        for c in positions
    ]
    if not texts:
        return 0
    union = functools.reduce(lambda a, b: a.union(b), texts)
    distinct, length = union.agg(F.approx_count_distinct("text"), F.avg(F.octet_length("text"))).first() or (0, 0)
    return round(distinct * (_STRING_BYTES + (length or 0)))


def _mib(size: int | None) -> str:
    return f"{-(-(size or 0) >> 20):,} MiB"
