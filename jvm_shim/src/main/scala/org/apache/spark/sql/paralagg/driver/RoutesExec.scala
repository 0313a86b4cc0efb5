package org.apache.spark.sql.paralagg.driver

import java.util.{HashMap => JHashMap}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, Distribution, Partitioning, SinglePartition}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.plan.{KeptColumn, PathColumn, RouteSpec}
import org.apache.spark.sql.types.{LongType, StringType}
import org.apache.spark.util.collection.OpenHashMap

/** The arrays of `ra.path`, in one task, since a row's way may lead through any rows. */
case class RoutesExec(spec: RouteSpec, output: Seq[Attribute], child: SparkPlan) extends UnaryExecNode {

  override lazy val metrics: Map[String, SQLMetric] =
    Map("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))
  override def requiredChildDistribution: Seq[Distribution] = Seq(AllTuples)
  override def outputPartitioning: Partitioning = SinglePartition
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def simpleString(maxFields: Int): String = s"Routes ${output.mkString("[", ", ", "]")}"
  override def nodeName: String = "Routes"
  override protected def withNewChildInternal(newChild: SparkPlan): RoutesExec = copy(child = newChild)

  override protected def doExecute(): RDD[InternalRow] = {
    val (columns, zone, count) = (child.output, conf.sessionLocalTimeZone, longMetric("numOutputRows"))
    val (routes, wanted) = (spec, output) // the closure holds them without the operator
    child.execute().mapPartitionsInternal { rows =>
      new RouteWalk(routes, columns, zone).rows(rows, wanted).map { row =>
        count += 1
        row
      }
    }
  }
}

/** Rows with their parents, in memory. Each way is followed when its row is returned, so arrays take no memory together. */
private class RouteWalk(spec: RouteSpec, columns: Seq[Attribute], timeZone: String) {

  def rows(received: Iterator[InternalRow], output: Seq[Attribute]): Iterator[InternalRow] = {
    val unsafe = UnsafeProjection.create(columns, columns)
    val kept = received.map(unsafe(_).copy()).toArray
    val before = parents(kept)
    val (routes, made) = spec.columns.zip(output).collect { case (route: PathColumn, a) => (route, a) }.unzip
    routes.foreach(checkLength(_, kept))
    val shown = routes.map(elements(_, kept)).toArray
    val result = UnsafeProjection.create(spec.columns.zip(output).map {
        case (KeptColumn(position), _) => columns(position)
        case (_, a) => a
      }, columns ++ made)
    val joined = new JoinedRow
    val arrays = new GenericInternalRow(made.length)
    kept.indices.iterator.map { row =>
      val way = wayTo(row, hops(kept(row)), before)
      shown.indices.foreach(n => arrays.update(n, shown(n)(way)))
      result(joined(kept(row), arrays))
    }
  }

  /** Returns the position of each row's parent, which has one hop less; -1 for a row without hops. */
  private def parents(kept: Array[UnsafeRow]): Array[Int] = {
    val find = positions(kept)
    val before = kept.map { row =>
      if (row.isNullAt(spec.hops)) Lost
      else if (row.getLong(spec.hops) == 0) -1
      else {
        val at = find(row)
        if (at < 0 || kept(at).isNullAt(spec.hops) || hops(kept(at)) != hops(row) - 1) Lost else at
      }
    }
    val lost = before.count(_ == Lost)
    if (lost > 0) {
      throw new ParalaggException(
        ErrorCodes.PathLost,
        s"$lost rows have no parent, such as ${shown(kept(before.indexOf(Lost)))}: " +
          "its value is null, or only a value that a better one replaced derives it.",
        "filter out rows without a value, or carry the parent with ra.min_by.")
    }
    before
  }

  /** Returns the function that finds the position of a row's parent by its keys; -1 if there is none. */
  private def positions(kept: Array[UnsafeRow]): UnsafeRow => Int = (spec.keys, spec.parents) match {
    case (Seq(key), Seq(parent)) if isLong(key, kept) =>
      val ids = new OpenHashMap[Long, Int](kept.length * 2)
      kept.indices.foreach(n => ids.update(kept(n).getLong(key), n + 1)) // a key that is missing has 0
      row => if (row.isNullAt(parent)) -1 else ids(row.getLong(parent)) - 1
    case _ =>
      val ids = new JHashMap[UnsafeRow, Integer](kept.length * 2)
      val (key, parent) = (projection(spec.keys), projection(spec.parents))
      kept.indices.foreach(n => ids.put(key(kept(n)).copy(), n))
      row => ids.getOrDefault(parent(row), -1).intValue
  }

  /** Whether a column has numbers of 64 bits, and no null: boxes would take most of the time. */
  private def isLong(column: Int, kept: Array[UnsafeRow]): Boolean =
    columns(column).dataType == LongType && !kept.exists(_.isNullAt(column))

  private def hops(row: UnsafeRow): Long = row.getLong(spec.hops)

  /** Returns the function that shows the rows at the given positions. */
  private def elements(route: PathColumn, kept: Array[UnsafeRow]): Array[Int] => ArrayData = route.shown match {
    case Seq(one) if isLong(one, kept) =>
      val values = kept.map(_.getLong(one))
      way => {
        val shown = new Array[Long](way.length)
        var n = 0
        while (n < way.length) {
          shown(n) = values(way(n))
          n += 1
        }
        UnsafeArrayData.fromPrimitiveArray(shown)
      }
    case Seq(one) =>
      val values = kept.map(row => row.get(one, columns(one).dataType))
      way => new GenericArrayData(way.map(values(_)))
    case several =>
      val struct = projection(several)
      val values = kept.map(struct(_).copy())
      way => new GenericArrayData(way.map(values(_)))
  }

  private def checkLength(route: PathColumn, kept: Array[UnsafeRow]): Unit =
    for (limit <- route.limit; row <- kept.find(hops(_) >= limit)) throw new ParalaggException(
      ErrorCodes.PathTooLong,
      s"the path ${route.name} of ${shown(row)} has ${hops(row) + 1} rows, more than limit=$limit.",
      "raise the limit, or bound the length in the step.")

  /** Returns the positions of the rows on the way to `row`. */
  private def wayTo(row: Int, hops: Long, before: Array[Int]): Array[Int] = {
    val way = new Array[Int](hops.toInt + 1)
    var at = row
    var n = way.length
    while (at >= 0) {
      n -= 1
      way(n) = at
      at = before(at)
    }
    way
  }

  private def projection(positions: Seq[Int]): UnsafeProjection =
    UnsafeProjection.create(positions.map(columns), columns)

  private def shown(row: UnsafeRow): String = spec.keys.map { k =>
    val value = Cast(BoundReference(k, columns(k).dataType, nullable = true), StringType, Some(timeZone)).eval(row)
    s"${columns(k).name}=$value"
  }.mkString(", ")

  private final val Lost = -2
}
