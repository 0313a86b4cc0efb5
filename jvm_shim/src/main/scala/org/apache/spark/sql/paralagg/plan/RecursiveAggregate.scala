package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias, And, Attribute, AttributeMap, AttributeReference, AttributeSet, Expression, ExpressionSet, NamedExpression
}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils

/**
 * The fixpoint as a logical operator. Its inputs are real children: optimised, pruned and shown like any other plan.
 *
 * It reads every column of its children (each is a projection of what the Plan needs); without `references` Catalyst's
 * ColumnPruning would strip them.
 */
case class RecursiveAggregate(inputs: Seq[LogicalPlan], output: Seq[Attribute], spec: FixpointSpec)
    extends LogicalPlan
    with MultiInstanceRelation {

  private def keys: Seq[Attribute] = output.take(spec.program.relation(spec.relation).keys.length)

  override def children: Seq[LogicalPlan] = inputs
  override lazy val references: AttributeSet = AttributeSet.fromAttributeSets(inputs.map(_.outputSet))
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def maxRows: Option[Long] = if (keys.isEmpty) Some(1L) else None

  /** One row a key: what Spark's own rules know of an aggregate. */
  override lazy val distinctKeys: Set[ExpressionSet] = if (keys.isEmpty) Set.empty else Set(ExpressionSet(keys))

  /**
   * A bound, of rows that the inputs are estimated to have: a carried key is one of a base row, any other comes from
   * some row of an input. Joins afterwards so take a shortest-path tree for what it is, and a closure for the large
   * thing it may be.
   */
  override lazy val stats: Statistics = {
    val rows =
      inputs.map(i => i.stats.rowCount.getOrElse(i.stats.sizeInBytes / EstimationUtils.getSizePerRow(i.output)))
    val all = rows.sum.max(1)
    val carried = if (keys.isEmpty) 0 else carriedKeys.size.min(1)
    val most =
      (0 until keys.length - carried).foldLeft(if (carried > 0) startRows(rows).max(1) else BigInt(1))((n, _) =>
        n * all)
    Statistics(sizeInBytes = (most * EstimationUtils.getSizePerRow(output)).max(1))
  }

  /** Keys that every rule copies from every recursive atom, each with its position in the relations of the stratum. */
  lazy val carriedKeys: AttributeMap[Array[Int]] = {
    val own = spec.program.relations.indexWhere(_.name == spec.relation)
    AttributeMap(spec.program.carried.toSeq.map(at => keys(at(own)) -> at))
  }

  /**
   * The rows that satisfy `conditions` on carried keys: a fixpoint of the base and initial rows that do. None where an
   * input serves as something else, too.
   */
  def started(conditions: Seq[Expression]): Option[RecursiveAggregate] = {
    val carried = carriedKeys
    val filtered = starts.map { case (input, relation) =>
      val child = inputs(input)
      // As the loop has it: words of fractions know one zero and one NaN.
      val here = conditions.map(_.transformUp { case a: Attribute =>
        NormalizeFloatingNumbers.normalize(child.output(carried(a)(relation)))
      })
      input -> Filter(here.reduce(And), child)
    }.toMap
    val indexed = spec.program.staticIndexes.map(i => position(i.input)).toSet
    if (filtered.keySet.exists(indexed)) None
    else Some(copy(inputs = inputs.zipWithIndex.map { case (child, i) => filtered.getOrElse(i, child) }))
  }

  /**
   * What is known of the carried keys of every row that the recursion starts from is known of the result's: Spark
   * infers filters for joins from it, as it would have from a filter that `started` has taken away.
   */
  override protected lazy val validConstraints: ExpressionSet = {
    val exact = carriedKeys.toSeq.filter { case (key, _) => NormalizeFloatingNumbers.normalize(key) eq key }
    val known = starts.map { case (input, relation) =>
      val child = inputs(input)
      val keys = AttributeMap(exact.map { case (key, at) => child.output(at(relation)) -> key })
      ExpressionSet(
        child.constraints.filter(_.references.forall(keys.contains)).map(_.transform { case a: Attribute => keys(a) }))
    }
    known.reduceOption(_ intersect _).getOrElse(ExpressionSet())
  }

  /** With only the dependent columns that `wanted` needs, if that saves anything. */
  def narrowed(wanted: AttributeSet): Option[RecursiveAggregate] = {
    val needed = output.drop(keys.length).filter(wanted.contains).map(_.name).toSet
    val smaller = spec.narrower.filter(n => needed.subsetOf(n.columns))
    smaller.sortBy(_.columns.size).headOption.map { n =>
      val slices = n.slices.map { case (input, columns) =>
        val child = inputs(position(input))
        Project(columns.map(child.output), child)
      }
      copy(slices, output.zipWithIndex.collect { case (a, i) if i < keys.length || n.columns(a.name) => a },
        spec.narrowed(n))
    }
  }

  private def position(input: Int): Int = spec.program.inputs.indexWhere(_.id == input)

  /** Inputs of base and initial rows, each with the position of its relation. */
  private def starts: Seq[(Int, Int)] = for {
    (relation, at) <- spec.program.relations.toSeq.zipWithIndex
    input <- relation.base +: relation.initial.toSeq
  } yield position(input) -> at

  private def startRows(rows: Seq[BigInt]): BigInt = starts.map(s => rows(s._1)).sum

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): LogicalPlan =
    copy(inputs = newChildren)
  override def simpleString(maxFields: Int): String =
    s"RecursiveAggregate $spec ${output.mkString("[", ", ", "]")}"
}

object RecursiveAggregate {

  /** The result of `spec`'s relation over the rows of `sources`, which its program counts through. */
  def of(spec: FixpointSpec, sources: Seq[LogicalPlan]): RecursiveAggregate = {
    val inputs = spec.program.inputs.map(i => inputPlan(i, sources(i.source)))
    val output = spec.program.relation(spec.relation).columns.map { c =>
      AttributeReference(c.name, c.dataType, c.nullable)()
    }
    RecursiveAggregate(inputs.toSeq, output.toSeq, spec)
  }

  private def inputPlan(input: InputSpec, source: LogicalPlan): LogicalPlan = {
    val byName = input.columns.zip(source.output).toMap
    def bound(e: Expression): Expression = e.transform { case v: RuleVariable => byName(v.name) }
    val filtered = input.filters.map(bound).reduceOption(And).fold(source)(Filter(_, source))
    // A plain column stays itself, so that Catalyst sees through the projection; a second use of it needs a new name.
    val list = input.exprs.map(bound).zipWithIndex.foldLeft(Vector.empty[NamedExpression]) {
      case (done, (a: Attribute, _)) if !done.exists(_.exprId == a.exprId) => done :+ a
      case (done, (e, i)) => done :+ Alias(e, s"x$i")()
    }
    Project(list, filtered)
  }
}
