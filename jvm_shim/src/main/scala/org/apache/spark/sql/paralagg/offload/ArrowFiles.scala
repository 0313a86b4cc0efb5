package org.apache.spark.sql.paralagg.offload

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, File, FileInputStream, IOException}
import java.nio.channels.Channels
import java.nio.file.{Files, StandardCopyOption}

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.{BaseFixedWidthVector, VectorSchemaRoot}
import org.apache.arrow.vector.ipc.{ArrowStreamReader, ArrowStreamWriter}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnarArray, ColumnarBatch, ColumnVector}
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.Utils

/** A file of rows in Arrow's IPC stream format. It is written as `writing` and renamed to `file` at the end. */
final class ArrowFile(types: Seq[DataType], writing: File, file: File) {
  private val schema = StructType(types.zipWithIndex.map { case (t, i) => StructField(s"c$i", t) })
  private val root =
    VectorSchemaRoot.create(ArrowUtils.toArrowSchema(schema, "UTC", true, false), ArrowUtils.rootAllocator)
  private val fields = root.getFieldVectors.asScala.toArray

  def writeRows(rows: Iterator[InternalRow], check: () => Unit): Unit = write { out =>
    val writer = ArrowWriter.create(root)
    var n = 0
    while (rows.hasNext) {
      writer.write(rows.next())
      n += 1
      if (n == ArrowFiles.Rows || !rows.hasNext) {
        writer.finish()
        out.writeBatch()
        writer.reset()
        n = 0
        check()
      }
    }
  }

  def writeBatches(batches: Iterator[ColumnarBatch], ordinals: Array[Int], check: () => Unit): Unit = write { out =>
    batches.foreach { batch =>
      ordinals.indices.foreach(i => copy(batch, ordinals(i), i))
      root.setRowCount(batch.numRows())
      if (batch.numRows() > 0) out.writeBatch()
      check()
    }
  }

  /** Copies a column of a batch: numbers as a block of memory, other types value by value. */
  private def copy(batch: ColumnarBatch, from: Int, to: Int): Unit = {
    val column = batch.column(from)
    val n = batch.numRows()
    // Only Spark's own vectors have values at nulls.
    val isPlain = !column.hasNull || column.isInstanceOf[WritableColumnVector]
    val memory: (AnyRef, Long, Int) = if (!isPlain) null
    else types(to) match {
      case LongType | TimestampType | TimestampNTZType => (column.getLongs(0, n), Platform.LONG_ARRAY_OFFSET, 8)
      case DoubleType => (column.getDoubles(0, n), Platform.DOUBLE_ARRAY_OFFSET, 8)
      case IntegerType | DateType => (column.getInts(0, n), Platform.INT_ARRAY_OFFSET, 4)
      case FloatType => (column.getFloats(0, n), Platform.FLOAT_ARRAY_OFFSET, 4)
      case _ => null
    }
    if (memory == null) {
      fields(to).reset()
      val writer = ArrowWriter.createFieldWriter(fields(to))
      val cells = new ColumnarArray(column, 0, n)
      (0 until n).foreach(writer.write(cells, _))
      writer.finish()
    } else {
      val (source, offset, width) = memory
      val target = fields(to).asInstanceOf[BaseFixedWidthVector]
      target.reset()
      while (target.getValueCapacity < n) target.reAlloc()
      Platform.copyMemory(source, offset, null, target.getDataBufferAddress, n.toLong * width)
      target.getValidityBuffer.setOne(0, (n + 7) / 8)
      if (column.hasNull) (0 until n).foreach(i => if (column.isNullAt(i)) target.setNull(i))
      target.setValueCount(n)
    }
  }

  private def write(fill: ArrowStreamWriter => Unit): Unit = {
    try ArrowFiles.onDisk(file) {
        val out = new ArrowStreamWriter(root, null, PrivateFiles.channel(writing))
        try {
          out.start()
          fill(out)
          out.end()
        } finally out.close()
        Files.move(writing.toPath, file.toPath, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
      }
    finally {
      root.close()
      writing.delete()
    }
  }
}

object ArrowFiles {
  private[paralagg] val Rows = 1 << 16

  /** Writes `file`; a full disk or a read-only folder is an error that names it. */
  private[paralagg] def onDisk[T](file: File)(write: => T): T = {
    def failed(cause: Throwable) = new ParalaggException(
      ErrorCodes.MpiStaging,
      s"rows for ranks cannot be written to ${file.getParent} on ${Utils.localHostName()}: ${cause.getMessage}.",
      "free space there, or set spark.paralagg.mpi.stagingDir or spark.local.dir to a larger disk.",
      cause)
    try write
    catch {
      case e: IOException => throw failed(e)
      case e: RuntimeException if e.getCause.isInstanceOf[IOException] => throw failed(e.getCause) // Arrow's close
    }
  }

  /** Returns the batches of a file, each as a separate stream. */
  def split(file: File): Iterator[Array[Byte]] = {
    val reader = new ArrowStreamReader(new FileInputStream(file).getChannel, ArrowUtils.rootAllocator)
    closing(() => reader.close())
    Iterator.continually(reader.loadNextBatch()).takeWhile(identity).filter(_ => root(reader).getRowCount > 0).map {
      _ =>
        val bytes = new ByteArrayOutputStream
        val out = new ArrowStreamWriter(root(reader), null, Channels.newChannel(bytes))
        out.start()
        out.writeBatch()
        out.end()
        bytes.toByteArray
    }
  }

  /** Reads the streams of `split`. A batch is valid until the next one. */
  def batches(streams: Iterator[Array[Byte]]): Iterator[ColumnarBatch] = {
    var open: ArrowStreamReader = null
    def close(): Unit = if (open != null) {
      open.close()
      open = null
    }
    closing(() => close())
    streams.map { bytes =>
      close()
      open = new ArrowStreamReader(new ByteArrayInputStream(bytes), ArrowUtils.rootAllocator)
      open.loadNextBatch()
      val columns = root(open).getFieldVectors.asScala.map(v => new ArrowColumnVector(v): ColumnVector)
      new ColumnarBatch(columns.toArray, root(open).getRowCount)
    }
  }

  private def root(reader: ArrowStreamReader): VectorSchemaRoot = reader.getVectorSchemaRoot

  private def closing(close: () => Unit): Unit =
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => close()))
}
