package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.{NarrowDependency, Partition, SparkContext, SparkEnv, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.paralagg.gang.{Codec, Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.InputSource
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.CompletionIterator

/**
 * The exchange between the two halves of an aggregate that is an input of a fixpoint, done by the gang itself: Spark's
 * own operators aggregate, but no job with a shuffle has to run before the gang starts. It needs a gang that reads its
 * inputs itself, under `local[N]`.
 */
case class GangExchangeExec(keys: Seq[Expression], child: SparkPlan, tasks: Int) extends UnaryExecNode {
  override def nodeName: String = "GangExchange"
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = partitioning
  override protected def withNewChildInternal(newChild: SparkPlan): GangExchangeExec = copy(child = newChild)
  override protected def doExecute(): RDD[InternalRow] = {
    val rows = child.execute()
    val shares = InputSource.shares(child, rows, tasks)
    new ExchangedRDD(sparkContext, rows, shares, partitioning.partitionIdExpression, child.output)
  }
  private def partitioning = HashPartitioning(keys, tasks)
}

object GangExchange {

  /** The part of Spark's memory that the estimated rows of an aggregate may have: unlike a shuffle, they are not spilled. */
  private val MemoryPart = 8

  /** Plans an aggregate by keys, below projections and filters, for a gang of so many tasks; None for other inputs. */
  def plan(input: LogicalPlan, session: SparkSession, tasks: Int): Option[SparkPlan] = input match {
    case Project(list, child) => plan(child, session, tasks).map(ProjectExec(list, _))
    case Filter(condition, child) => plan(child, session, tasks).map(FilterExec(condition, _))
    case a: Aggregate if session.sparkContext.isLocal && !a.isStreaming && a.stats.sizeInBytes <= mostBytes =>
      session.sessionState.planner.Aggregation(a).headOption.flatMap { planned =>
        planned.collect { case half: BaseAggregateExec =>
          half.requiredChildDistributionExpressions
        }.flatten match {
          case Seq(keys) if keys.nonEmpty =>
            Some(planned.transform {
              case half: BaseAggregateExec if half.requiredChildDistributionExpressions.isDefined =>
                half.withNewChildren(Seq(GangExchangeExec(keys, half.children.head, tasks)))
            })
          case _ => None // no keys, or several exchanges, as for DISTINCT
        }
      }
    case _ => None
  }

  private def mostBytes: Long = SparkEnv.get.memoryManager.maxOnHeapStorageMemory / MemoryPart
}

private case class ExchangedPartition(index: Int, share: Array[Partition]) extends Partition

/** The rows of `rows` whose key belongs to the task. Each task of the gang reads its partition, once, while it loads. */
private final class ExchangedRDD(
    sc: SparkContext, rows: RDD[InternalRow], shares: Array[Array[Partition]], target: Expression,
    columns: Seq[Attribute])
    extends RDD[InternalRow](
      sc,
      Seq(new NarrowDependency[InternalRow](rows) {
        override def getParents(task: Int): Seq[Int] = shares(task).toSeq.map(_.index)
      })) {

  override protected def getPartitions: Array[Partition] =
    shares.zipWithIndex.map { case (share, t) => ExchangedPartition(t, share) }

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val gang = Gang.own
    val memory = new MemoryAccount(context)
    context.addTaskCompletionListener[Unit](_ => memory.release())
    val out = Array.fill(gang.tasks)(new RowPages)
    val toTarget = UnsafeProjection.create(Seq(target), columns)
    lazy val toRow = UnsafeProjection.create(columns, columns)
    for (share <- split.asInstanceOf[ExchangedPartition].share) {
      rows.iterator(share, context).foreach { row =>
        val isFull = out(toTarget(row).getInt(0)).add(row match {
          case unsafe: UnsafeRow => unsafe
          case other => toRow(other)
        })
        if (isFull) {
          gang.check()
          memory.hold(out.map(_.bytes).sum, "an aggregated input")
        }
      }
    }
    val received = gang.exchange(out, RowPages, Array.emptyDoubleArray)._1
    CompletionIterator[InternalRow, Iterator[InternalRow]](
      received.iterator.flatMap(_.rows(columns.length)),
      memory.release())
  }
}

/** Rows as bytes, each behind its length, in pages. */
private final class RowPages {
  import RowPages._

  private val pages = ArrayBuffer.empty[Page]

  def bytes: Long = pages.iterator.map(_.bytes.length.toLong).sum

  /** Adds a copy of a row; returns whether that took a new page. */
  def add(row: UnsafeRow): Boolean = {
    val needed = Header + row.getSizeInBytes
    val isFull = pages.isEmpty || pages.last.used + needed > pages.last.bytes.length
    if (isFull) pages += new Page(math.max(needed, PageBytes))
    val page = pages.last
    val at = Platform.BYTE_ARRAY_OFFSET + page.used
    Platform.putInt(page.bytes, at, row.getSizeInBytes)
    Platform.copyMemory(row.getBaseObject, row.getBaseOffset, page.bytes, at + Header, row.getSizeInBytes)
    page.used += needed
    isFull
  }

  def rows(fields: Int): Iterator[UnsafeRow] = {
    val row = new UnsafeRow(fields)
    pages.iterator.flatMap { page =>
      new Iterator[UnsafeRow] {
        private var at = 0
        override def hasNext: Boolean = at < page.used
        override def next(): UnsafeRow = {
          val size = Platform.getInt(page.bytes, Platform.BYTE_ARRAY_OFFSET + at)
          row.pointTo(page.bytes, Platform.BYTE_ARRAY_OFFSET + at + Header, size)
          at += Header + size
          row
        }
      }
    }
  }
}

private object RowPages extends Codec[RowPages] {
  private final class Page(capacity: Int) {
    val bytes = new Array[Byte](capacity)
    var used = 0
  }

  private val Header = 8 // rows begin at multiples of 8
  private val PageBytes = 1 << 18

  // Only tasks of one JVM exchange rows, by reference.
  override def encode(pages: RowPages): Array[Byte] = throw new UnsupportedOperationException("rows stay in one JVM")
  override def decode(bytes: Array[Byte]): RowPages = throw new UnsupportedOperationException("rows stay in one JVM")
}
