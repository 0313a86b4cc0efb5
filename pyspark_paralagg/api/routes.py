"""Make the arrays of ``ra.path`` from the parents that the engines return.

Where the session has the shim, an operator of it makes them (``plan/Routes.scala``), elsewhere a Python task of Spark.
That task numbers the rows and follows all paths at once, from each row to its base row, with as many array operations
as the longest path has steps. A batch of paths has at most ``_BATCH`` elements: rows bound its memory, not paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, FixpointError
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.program.trace import Path
from pyspark_paralagg.program.traced import trace_type, traced
from pyspark_paralagg.session.attach import shim_if_there
from pyspark_paralagg.session.workers import lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.program import Relation

_BATCH = 1 << 22


def with_traces(df: DataFrame, relation: Relation, order: list[str]) -> DataFrame:
    """Return ``df``, the engine's rows of ``traced(relation).result``, with the columns ``order``."""
    paths = _shown(relation)
    if not paths:
        return df.select(*map(quoted, order))
    shim = shim_if_there(df.sparkSession)
    if shim is not None:
        return shim.routes(df, routes_json(relation, order))
    _check_workers(df, next(iter(paths)))
    types = {f.name: f.dataType.simpleString() for f in df.schema.fields}
    types |= {t.name: trace_type(t.kind, [k.name for k in relation.keys], types) for t in relation.traces}
    schema = ", ".join(f"{quoted(c)} {types[c]}" for c in order)
    return df.repartition(1).mapInArrow(_walker(relation, order), schema)


def routes_json(relation: Relation, order: list[str]) -> dict[str, Any]:
    """Return what the shim needs to make the columns ``order`` of the rows of ``traced(relation).result``."""
    names, shown, limits = traced(relation), _shown(relation), _limits(relation)
    columns = [{"name": c, "shown": shown[c], "limit": limits[c]} if c in shown else {"name": c} for c in order]
    keys = [k.name for k in relation.keys]
    return {"keys": keys, "parents": list(names.parents), "hops": names.hops, "columns": columns}


def table_with_traces(table: pa.Table, relation: Relation, order: list[str]) -> pa.Table:
    """Return ``with_traces`` of rows in this process; raise ``FixpointError`` for a row that has no path."""
    import pyarrow as pa  # noqa: PLC0415 - this module loads without it

    types, paths = {f.name: f.type for f in table.schema}, _shown(relation)
    for name, shown in paths.items():
        element = types[shown[0]] if len(shown) == 1 else pa.struct([(c, types[c]) for c in shown])
        types[name] = pa.list_(element)
    rows = table.to_batches()
    batches = _walker(relation, order)(iter(rows)) if paths else table.select(order).to_batches()
    try:
        return pa.Table.from_batches(batches, pa.schema([(c, types[c]) for c in order]))
    except ValueError as problem:
        code, _, message = str(problem).removeprefix("[").partition("] ")
        if not code.startswith("PARALAGG_"):
            raise
        raise FixpointError(code, message, place=f"relation {relation.name}") from problem


def _shown(relation: Relation) -> dict[str, list[str]]:
    """Return the columns that each path of ``relation`` shows, by the path's name."""
    keys = [k.name for k in relation.keys]
    return {t.name: list(t.kind.columns) or keys for t in relation.traces if isinstance(t.kind, Path)}


def _limits(relation: Relation) -> dict[str, int | None]:
    return {t.name: t.kind.limit for t in relation.traces if isinstance(t.kind, Path)}


def _walker(relation: Relation, order: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    names, keys = traced(relation), [k.name for k in relation.keys]
    return _walk(order, keys, list(names.parents), names.hops, _shown(relation), _limits(relation))


def _check_workers(df: DataFrame, path: str) -> None:
    missing = lacks(df.sparkSession, ("numpy", "pyarrow"))
    if missing is not None:
        raise EnvironmentProblem(
            "PARALAGG_PATH_WORKERS",
            f"a Python worker of Spark makes the arrays of {path!r}, but {missing}",
            value=path,
            place="ra.path",
            hint="install numpy and pyarrow where Spark's workers run, and name that Python in PYSPARK_PYTHON or "
            "spark.pyspark.python",
        )


def _walk(  # noqa: C901, PLR0913, PLR0915, PLR0917 - all that the worker gets; it may lack this package
    order: list[str],
    keys: list[str],
    parents: list[str],
    hops: str,
    made: dict[str, list[str]],
    limits: dict[str, int | None],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``. It is sent by value and imports nothing of this package."""
    batch_elements = _BATCH

    def walk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: C901 - as above
        import numpy as np  # noqa: PLC0415 - in the worker
        import pyarrow as pa  # noqa: PLC0415 - likewise

        received = list(batches)
        if not received:
            return
        table = pa.Table.from_batches(received).combine_chunks()
        rows = table.num_rows
        if rows == 0:
            return

        def column(name: str) -> Any:  # noqa: ANN401 - an array of any type
            chunks = table.column(name).chunks
            return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)

        depth = column(hops).fill_null(1 << 62).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.zeros(2 * rows, dtype=np.int64)
        for key, parent in zip(keys, parents, strict=True):
            both = pa.concat_arrays([column(key), column(parent)]).dictionary_encode(null_encoding="encode")
            codes = codes * (len(both.dictionary) + 1) + both.indices.to_numpy(zero_copy_only=False)
            codes = np.unique(codes, return_inverse=True)[1]
        own, of_parent = codes[:rows], codes[rows:]
        position = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        position[own] = np.arange(rows)
        before = np.where(depth > 0, position[of_parent], -1)
        lost = np.flatnonzero((depth > 0) & ((before < 0) | (depth[before] != depth - 1)))
        if len(lost):
            row = {key: column(key)[int(lost[0])].as_py() for key in keys}
            text = f"[PARALAGG_PATH_LOST] {len(lost)} rows have no parent, such as {row}"
            cause = "its value is null, or only a value that a better one replaced derives it"
            raise ValueError(f"{text}: {cause}")
        for name, limit in limits.items():
            if limit is not None and int(depth.max()) >= limit:
                row = {key: column(key)[int(depth.argmax())].as_py() for key in keys}
                text = f"[PARALAGG_PATH_TOO_LONG] the path {name} of {row} has {int(depth.max()) + 1} rows"
                raise ValueError(f"{text}, more than limit={limit}")
        ends = np.cumsum(depth + 1)
        first = 0
        while first < rows:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] - depth[first] - 1 + batch_elements)))
            offsets = np.concatenate([[0], np.cumsum(depth[first:last] + 1)])
            elements = np.empty(offsets[-1], dtype=np.int64)
            current, at = np.arange(first, last), offsets[1:] - 1
            while len(current):
                elements[at] = current
                current = before[current]
                going = current >= 0
                current, at = current[going], at[going] - 1
            arrays = []
            for name in order:
                if name not in made:
                    arrays.append(column(name).slice(first, last - first))
                    continue
                taken = [column(c).take(pa.array(elements)) for c in made[name]]
                values = taken[0] if len(taken) == 1 else pa.StructArray.from_arrays(taken, names=made[name])
                arrays.append(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values))
            yield pa.RecordBatch.from_arrays(arrays, names=order)
            first = last

    return walk
