"""From a relation to a file: sorted by Spark, streamed as Arrow batches, written as one plain file.

Last part of a run. Partitions come one after the other, so neither side holds a relation as a whole. Text is Soufflé's:
tab separated, no header, strings as they stand; floats are written so that they read back the same.
"""

from __future__ import annotations

import functools
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.command.directives import Rows
    from pyspark_paralagg.command.staging import Staging, Undo

_PLAIN = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean")


def write(df: DataFrame, rows: Rows, staged: Path, staging: Staging) -> int:
    """Write ``df``, in order, to ``staged``, and return the number of rows."""
    ordered = _ordered(df)
    if rows.format == "delta":
        staging.move_by(staged, lambda staged, target: _into_delta(df.sparkSession, staged, target))
        ordered.write.format("delta").save(staged.as_uri())
        return df.sparkSession.read.format("delta").load(staged.as_uri()).count()
    if rows.format == "parquet":
        return _write_parquet(ordered, staged)
    with staged.open("wb") as file:
        if rows.has_header:
            file.write((rows.delimiter.join(ordered.columns) + "\n").encode())
        return _write_text(ordered, rows, file)


def write_framed(df: DataFrame, rows: Rows, file: IO[bytes]) -> int:
    """Write ``df``, in order, as Soufflé shows a relation on standard output, and return the number of rows."""
    ordered = _ordered(df)
    header = rows.delimiter.join(ordered.columns) + "\n" if rows.has_header else ""
    file.write(f"---------------\n{rows.relation}\n{header}===============\n".encode())
    written = _write_text(ordered, rows, file)
    file.write(b"===============\n")
    return written


def _ordered(df: DataFrame) -> DataFrame:
    return df.sort(*(quoted(name) for name in df.columns)) if df.columns else df


def _write_text(ordered: DataFrame, rows: Rows, file: IO[bytes]) -> int:
    if not ordered.columns:  # a relation that holds or does not
        count = ordered.count()
        file.write(b"()\n" * count)
        return count
    written = 0
    for batch in batches(_printable(ordered)):
        file.write(_lines(batch, rows))
        written += batch.num_rows
    return written


def batches(df: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of ``df``, in its order, partition by partition.

    Ten times as fast as ``toLocalIterator``, which pickles rows, and unlike ``toArrow`` it does not hold them all.
    """
    from pyspark import RDD  # noqa: PLC0415 - slow to load, and a wrong program needs none
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - likewise

    schema = _arrow_schema(df)
    jrdd = df._jdf.toArrowBatchRdd().toJavaRDD()  # noqa: SLF001 - pyspark has no public way to stream Arrow from the JVM
    encoded: RDD[bytes] = RDD(jrdd, df.sparkSession.sparkContext, NoOpSerializer())
    for batch in encoded.toLocalIterator(prefetchPartitions=True):
        yield pa.ipc.read_record_batch(pa.py_buffer(batch), schema)


def _arrow_schema(df: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - slow to load
    from pyspark.sql.types import TimestampType  # noqa: PLC0415 - likewise

    utc = pa.timestamp("us", tz="UTC")  # for which Spark's function has another argument in each minor
    types = {f.name: utc if isinstance(f.dataType, TimestampType) else to_arrow_type(f.dataType) for f in df.schema}
    return pa.schema([pa.field(f.name, types[f.name], f.nullable) for f in df.schema])


def _write_parquet(ordered: DataFrame, staged: Path) -> int:
    written = 0
    with pq.ParquetWriter(staged, _arrow_schema(ordered)) as writer:
        for batch in batches(ordered):
            writer.write_batch(batch)
            written += batch.num_rows
    return written


def _into_delta(spark: SparkSession, staged: Path, target: Path) -> Undo:
    """A new table is moved; one that is there gets a new version."""
    if not target.exists():
        staged.replace(target)
        return lambda: target.replace(staged)
    from delta.tables import DeltaTable  # noqa: PLC0415 - an extra

    table = DeltaTable.forPath(spark, target.as_uri())
    version = table.history(1).collect()[0]["version"]
    new = spark.read.format("delta").load(staged.as_uri())
    new.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(target.as_uri())
    return lambda: table.restoreToVersion(version)


def _printable(df: DataFrame) -> DataFrame:
    """Decimals, dates and whatever else Soufflé does not know, as Spark prints them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is slow

    columns = []
    for name, spark_type in df.dtypes:
        column = F.col(quoted(name))
        if spark_type == "float":
            column = column.cast("double")
        elif spark_type not in _PLAIN:
            column = column.cast("string")
        columns.append(column)
    return df.select(*columns)


def _lines(batch: pa.RecordBatch, rows: Rows) -> bytes:
    """One line a row. A null, which Datalog does not have, is written as nothing."""
    fields = [_field(column, rows) for column in batch.columns]
    joined = pc.binary_join_element_wise(*fields, rows.delimiter, null_handling="replace", null_replacement="")
    ended = pc.binary_join_element_wise(joined, "", "\n")
    # The bytes of an array that was just made lie one after the other from the start: they are the file's.
    size = pc.sum(pc.binary_length(ended)).as_py() or 0
    return bytes(memoryview(ended.buffers()[2])[:size])


def _field(column: pa.Array, rows: Rows) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pa.array([None if x is None else repr(x) for x in column.to_pylist()], pa.string())
    text = column.cast(pa.string())
    if rows.is_quoted and pa.types.is_string(column.type):
        special = functools.reduce(pc.or_, (pc.match_substring(text, c) for c in ('"', "\r", "\n", rows.delimiter)))
        doubled = pc.replace_substring(text, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)
    return text
