"""Provide DataFrames as results: Spark sorts them and streams them as Arrow; Delta writes its tables.

Partitions arrive one after the other, so neither Spark's driver nor Python holds a whole relation.
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
    """The relation ``name`` as a DataFrame; Spark's exceptions become ``FixpointError``.

    ``encoded`` is the DataFrame with records as the engine has them.
    """

    def __init__(self, name: str, df: DataFrame, encoded: DataFrame | None = None) -> None:
        self._name = name
        self._df = df
        self.encoded = self if encoded is None else FrameResult(name, encoded)

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The names and Spark types of the columns."""
        return self._df.dtypes

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""
        return _arrow_schema(self._df)

    @property
    def report(self) -> RunReport | None:
        """The report of its recursion; None if it has none."""
        return report(self._df)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""
        with as_fixpoint_errors(self._name):
            yield from batches(self._ordered)

    def printable(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with values of types that Soufflé lacks as text."""
        with as_fixpoint_errors(self._name):
            yield from batches(_printable(self._ordered))

    def count(self) -> int:
        """Return the number of rows."""
        with as_fixpoint_errors(self._name):
            return self._df.count()

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Write a Delta table to ``staged`` and return its number of rows."""
        spark = self._df.sparkSession
        staging.move_by(staged, lambda staged, target: _commit_delta(spark, staged, target))
        with as_fixpoint_errors(self._name):
            self._ordered.write.format("delta").save(staged.as_uri())
            return spark.read.format("delta").load(staged.as_uri()).count()

    @property
    def _ordered(self) -> DataFrame:
        return self._df.sort(*(quoted(name) for name in self._df.columns))


def batches(df: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``df`` in its order, partition by partition.

    This is ten times as fast as ``toLocalIterator``, which pickles rows, and does not hold all rows like ``toArrow``.
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

    utc = pa.timestamp("us", tz="UTC")  # Spark's function takes different arguments for it in each minor version
    types = {f.name: utc if isinstance(f.dataType, TimestampType) else to_arrow_type(f.dataType) for f in df.schema}
    return pa.schema([pa.field(f.name, types[f.name], f.nullable) for f in df.schema])


def _commit_delta(spark: SparkSession, staged: Path, target: Path) -> Undo:
    """Move a new table to ``target``, or write a new version of the existing one; return how to undo it."""
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
    """Cast columns of types that Soufflé lacks, such as decimals and dates, to strings."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name; pyspark is slow to load

    columns = []
    for name, spark_type in df.dtypes:
        column = F.col(quoted(name))
        if spark_type == "float":
            column = column.cast("double")
        elif spark_type not in _PLAIN:
            column = column.cast("string")
        columns.append(column)
    return df.select(*columns)
