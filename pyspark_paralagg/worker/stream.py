"""Send several inputs through one ``mapInArrow``: a tag says from which input a row is.

Inputs share columns where types allow, so that the stream has few:

    tag  bigint_0  bigint_1  double_0
    0    src       dst       weight       rows of source 0, the edges
    1    node      null      dist         rows of source 1, the base
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

_TAG = "tag"


@dataclass(frozen=True)
class Layout:
    """The stream's columns behind the tag: the type of each, and which of them each source has, in its own order."""

    types: tuple[str, ...]
    places: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, sources: Mapping[int, Sequence[str]]) -> Layout:
        """Return the layout for sources with columns of these types.

        >>> Layout.of({0: ["bigint", "bigint", "double"], 1: ["bigint", "double"]}).places
        {0: (0, 1, 2), 1: (0, 2)}
        """
        width: Counter[str] = Counter()
        for types in sources.values():
            width |= Counter(types)
        slots = tuple(name for name in sorted(width) for _ in range(width[name]))
        places = {}
        for source, types in sources.items():
            free = {name: slots.index(name) for name in width}
            own = []
            for name in types:
                own.append(free[name])
                free[name] += 1
            places[source] = tuple(own)
        return cls(slots, places)


def stream_of(layout: Layout, frames: Mapping[int, tuple[DataFrame, int, Sequence[int]]], tasks: int) -> DataFrame:
    """Return the rows of all sources as one DataFrame with a partition for each task.

    ``frames`` has for each source its rows, the number of their columns, and the positions of those that are read.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional
    from pyspark.sql.types import NullType, StructType  # noqa: PLC0415 - likewise

    parts = []
    for source, (frame, width, positions) in frames.items():
        plain = frame.toDF(*(f"c{n}" for n in range(width)))  # a source may have two columns of one name
        names = dict(zip(layout.places[source], positions, strict=True))
        columns = [
            F.col(f"c{names[n]}").alias(f"s{n}") if n in names else F.lit(None).cast(kind).alias(f"s{n}")
            for n, kind in enumerate(layout.types)
        ]
        parts.append(plain.select(F.lit(source).cast("smallint").alias(_TAG), *columns))
    rows = reduce(lambda a, b: a.unionAll(b), parts)
    stream = rows.coalesce(1) if tasks == 1 else rows.repartition(tasks)
    if is_connect(stream):  # `mapInArrow` asks the server for the names of the columns
        names_only = [_TAG, *(f"s{n}" for n in range(len(layout.types)))]
        stream._cached_schema = reduce(lambda s, n: s.add(n, NullType()), names_only, StructType())  # type: ignore[attr-defined]  # noqa: SLF001
    return stream


def by_source(layout: Layout, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.Array]]]:
    """Yield runs of rows of one source, with its columns in its own order; values are not copied."""
    import numpy as np  # noqa: PLC0415 - workers only

    for batch in batches:
        tags = batch.column(0).to_numpy(zero_copy_only=False)
        starts = [0, *(np.flatnonzero(np.diff(tags)) + 1).tolist()] if len(tags) else []
        for start, end in zip(starts, [*starts[1:], len(tags)], strict=True):
            source = int(tags[start])
            rows = batch.slice(start, end - start)
            yield source, [rows.column(1 + place) for place in layout.places[source]]
