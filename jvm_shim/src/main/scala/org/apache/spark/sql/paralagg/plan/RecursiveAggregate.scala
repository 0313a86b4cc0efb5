package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias, And, Attribute, AttributeMap, AttributeReference, AttributeSet, Expression, ExpressionSet, NamedExpression
}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.types.BooleanType

/**
 * The fixpoint as a logical operator. Catalyst optimises, prunes and shows its children like any other plan. `reads`
 * says which of them each input of the Plan reads.
 *
 * It reads every column of its children by position. Without `references` Catalyst's ColumnPruning would remove
 * columns.
 */
case class RecursiveAggregate(
    children: Seq[LogicalPlan], reads: Seq[InputRead], output: Seq[Attribute], spec: FixpointSpec)
    extends LogicalPlan
    with MultiInstanceRelation {

  private def keys: Seq[Attribute] = output.take(spec.program.relation(spec.relation).keys.length)

  override lazy val references: AttributeSet = AttributeSet.fromAttributeSets(children.map(_.outputSet))
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def maxRows: Option[Long] = if (keys.isEmpty) Some(1L) else None

  /** The keys identify a row, as for an aggregate. */
  override lazy val distinctKeys: Set[ExpressionSet] = if (keys.isEmpty) Set.empty else Set(ExpressionSet(keys))

  /**
   * An upper bound from the estimated rows of the inputs. A carried key is one of a base row; any other may be from any
   * row of an input. So a join sees that a shortest-path tree is small, and that a closure may be large.
   */
  override lazy val stats: Statistics = {
    val rows = reads.map { r =>
      val child = children(r.child)
      child.stats.rowCount.getOrElse(child.stats.sizeInBytes / EstimationUtils.getSizePerRow(child.output))
    }
    val all = rows.sum.max(1)
    val carried = if (keys.isEmpty) 0 else carriedKeys.size.min(1)
    val bound =
      (0 until keys.length - carried).foldLeft(if (carried > 0) startRows(rows).max(1) else BigInt(1))((n, _) =>
        n * all)
    Statistics(sizeInBytes = (bound * EstimationUtils.getSizePerRow(output)).max(1))
  }

  /** Keys that every rule copies from every recursive atom, each with its position in the relations of the stratum. */
  lazy val carriedKeys: AttributeMap[Array[Int]] = {
    val position = spec.program.relations.indexWhere(_.name == spec.relation)
    AttributeMap(spec.program.carried.toSeq.map(at => keys(at(position)) -> at))
  }

  /**
   * Restricts the fixpoint to rows that satisfy `conditions` on carried keys, by filters on base and initial rows.
   * Returns None if another input reads one of these, if one also feeds an index, or if the run keeps all rows.
   */
  def started(conditions: Seq[Expression]): Option[RecursiveAggregate] = {
    val carried = carriedKeys
    val filtered = starts.map { case (input, relation) =>
      val child = children(reads(input).child)
      // As in the loop: words of fractions have one zero and one NaN.
      val normalized = conditions.map(_.transformUp { case a: Attribute =>
        NormalizeFloatingNumbers.normalize(column(input, carried(a)(relation)))
      })
      reads(input).child -> Filter(normalized.reduce(And), child)
    }.toMap
    val indexed = spec.program.staticIndexes.map(i => position(i.input)).toSet
    val isShared = starts.exists { case (input, _) => reads.count(_.child == reads(input).child) > 1 }
    if (spec.kept.isDefined || isShared || starts.exists(s => indexed(s._1))) None
    else Some(copy(children = children.zipWithIndex.map { case (child, i) => filtered.getOrElse(i, child) }))
  }

  /**
   * The constraints that all base and initial rows satisfy on carried keys, which hold for the result, too. Spark
   * infers filters for joins from them, as it would from a filter that `started` has pushed down.
   */
  override protected lazy val validConstraints: ExpressionSet = {
    val exact = carriedKeys.toSeq.filter { case (key, _) => NormalizeFloatingNumbers.normalize(key) eq key }
    val constraints = starts.map { case (input, relation) =>
      val keys = AttributeMap(exact.map { case (key, at) => column(input, at(relation)) -> key })
      ExpressionSet(
        children(reads(input).child).constraints.filter(_.references.forall(keys.contains)).map(_.transform {
          case a: Attribute => keys(a)
        }))
    }
    constraints.reduceOption(_ intersect _).getOrElse(ExpressionSet())
  }

  /** Returns the fixpoint with only the `required` dependent columns, if the Plan has a narrower stratum. */
  def narrowed(required: AttributeSet): Option[RecursiveAggregate] = {
    val needed = output.drop(keys.length).filter(required.contains).map(_.name).toSet
    val smaller = spec.narrower.filter(n => needed.subsetOf(n.columns))
    smaller.sortBy(_.columns.size).headOption.map { n =>
      val sliced = n.slices.map { case (input, columns) =>
        val read = reads(position(input))
        read.copy(columns = columns.map(read.columns))
      }
      val (kept, moved) = InputRead.pruned(children, sliced)
      copy(kept, moved, output.zipWithIndex.collect { case (a, i) if i < keys.length || n.columns(a.name) => a },
        spec.narrowed(n))
    }
  }

  /** Returns the fixpoint that may end once it has `rows` rows, if each of its rows is final when it is derived. */
  def ended(rows: Int): Option[RecursiveAggregate] =
    if (spec.program.isSet && spec.together.isEmpty && spec.kept.isEmpty && spec.program.endsAt.forall(_ > rows))
      Some(copy(spec = spec.endingAt(rows)))
    else None

  private def column(input: Int, at: Int): Attribute = {
    val read = reads(input)
    children(read.child).output(read.columns(at))
  }

  private def position(input: Int): Int = spec.program.inputs.indexWhere(_.id == input)

  /** Returns the inputs of base and initial rows, each with the position of its relation. */
  private def starts: Seq[(Int, Int)] = for {
    (relation, at) <- spec.program.relations.toSeq.zipWithIndex
    input <- relation.base +: relation.initial.toSeq
  } yield position(input) -> at

  private def startRows(rows: Seq[BigInt]): BigInt = starts.map(s => rows(s._1)).sum

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[LogicalPlan]): LogicalPlan =
    copy(children = newChildren)
  override def simpleString(maxFields: Int): String =
    s"RecursiveAggregate $spec ${output.mkString("[", ", ", "]")}"
}

object RecursiveAggregate {

  /**
   * Returns the operator for `spec` over the plans of its program's sources, by number, below a projection if columns
   * are to be unpacked.
   */
  def of(spec: FixpointSpec, sources: Seq[LogicalPlan]): LogicalPlan = {
    val (children, reads) = InputRead.of(spec.program.inputs.toSeq, sources)
    val output = spec.program.relation(spec.relation).columns.map { c =>
      AttributeReference(c.name, c.dataType, c.nullable)()
    }
    val flag = spec.kept.flatMap(_.falls).map(f => AttributeReference(f.flag, BooleanType, nullable = false)())
    val fixpoint = RecursiveAggregate(children, reads, output.toSeq ++ flag, spec)
    val columns = spec.program.relation(spec.relation).columns
    if (columns.forall(_.packed.isEmpty)) fixpoint
    else Project(
      columns.toSeq.zip(fixpoint.output).map { case (c, a) =>
        c.packed.fold[NamedExpression](a)(t => Alias(Unpacked(a, t), c.name)())
      },
      fixpoint)
  }
}
