"""DataFrames as results: sorted by Spark, streamed as Arrow, Delta tables by Delta.

Partitions come one after the other, so neither side holds a relation as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_paralagg.command.failure import as_fixpoint_errors
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.command.staging import Staging, Undo
    from pyspark_paralagg.report.run_report import RunReport

_PLAIN = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean")


class FrameResult:
    """The relation ``name`` as Spark has it; what Spark raises is told as a ``FixpointError``."""

    def __init__(self, name: str, df: DataFrame) -> None:
        self._name = name
        self._df = df

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Names and Spark types."""
        return self._df.dtypes

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's."""
        return _arrow_schema(self._df)

    @property
    def report(self) -> RunReport | None:
        """How its recursion ran; None where it has none."""
        return report(self._df)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        with as_fixpoint_errors(self._name):
            yield from batches(self._ordered)

    def printable(self) -> Iterator[pa.RecordBatch]:
        """The rows, with texts for values of types that Soufflé does not know."""
        with as_fixpoint_errors(self._name):
            yield from batches(_printable(self._ordered))

    def count(self) -> int:
        """How many rows there are."""
        with as_fixpoint_errors(self._name):
            return self._df.count()

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Writes a Delta table to ``staged``; how many rows it has."""
        spark = self._df.sparkSession
        staging.move_by(staged, lambda staged, target: _into_delta(spark, staged, target))
        with as_fixpoint_errors(self._name):
            self._ordered.write.format("delta").save(staged.as_uri())
            return spark.read.format("delta").load(staged.as_uri()).count()

    @property
    def _ordered(self) -> DataFrame:
        return self._df.sort(*(quoted(name) for name in self._df.columns))


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
