package org.apache.spark.sql.paralagg.plan

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, Expression, If, Literal, NamedExpression, Or}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.types.{BooleanType, StringType}

/**
 * How a fixpoint reads an input: the `columns` of a child, of the rows whose column `where` is true and not null.
 *
 * Most inputs have a child of their own, with a filter and a projection that Catalyst pushes down. Inputs that read the
 * result of one fixpoint share a child. Otherwise that fixpoint, and those below it, would stand in the plan once for
 * each input, and a plan of several strata would grow exponentially.
 */
case class InputRead(child: Int, columns: Seq[Int], where: Option[Int] = None)

object InputRead {

  /** Returns the children of a fixpoint over the plans of the sources, by number, and how each input reads them. */
  def of(inputs: Seq[InputSpec], sources: Seq[LogicalPlan]): (Seq[LogicalPlan], Seq[InputRead]) = {
    val derived = inputs.groupBy(_.source).collect { case (source, several) if several.length > 1 => source }
      .filter(sources(_).exists(p => p.isInstanceOf[RecursiveAggregate] || p.isInstanceOf[SharedRows])).toSet
    val groups = inputs.map(i => if (derived(i.source)) inputs.filter(_.source == i.source) else Seq(i)).distinct
    val (children, reads) = groups.zipWithIndex.map { case (group, at) =>
      val source = sources(group.head.source)
      if (group.length > 1) shared(group, source, at) else own(group.head, source, at)
    }.unzip
    val byInput = groups.flatten.map(_.id).zip(reads.flatten).toMap
    (children, inputs.map(i => byInput(i.id)))
  }

  /** Returns the children without columns that no input reads, and the inputs' positions in them. */
  def pruned(children: Seq[LogicalPlan], reads: Seq[InputRead]): (Seq[LogicalPlan], Seq[InputRead]) = {
    val used = reads.groupBy(_.child).toSeq.sortBy(_._1).map { case (child, of) =>
      child -> of.flatMap(r => r.columns ++ r.where).distinct
    }
    val moved = reads.map { r =>
      val at = used.indexWhere(_._1 == r.child)
      InputRead(at, r.columns.map(used(at)._2.indexOf(_)), r.where.map(used(at)._2.indexOf(_)))
    }
    (used.map { case (child, columns) => Project(columns.map(children(child).output), children(child)) }, moved)
  }

  /** Returns the child `at` of one input, with its rows and columns only. */
  private def own(input: InputSpec, source: LogicalPlan, at: Int): (LogicalPlan, Seq[InputRead]) = {
    val (filter, exprs) = bound(input, source)
    // A plain column keeps its id, so that Catalyst sees through the projection; a second use of it needs an alias.
    val list = exprs.zipWithIndex.foldLeft(Vector.empty[NamedExpression]) {
      case (columns, (a: Attribute, _)) if !columns.exists(_.exprId == a.exprId) => columns :+ a
      case (columns, (e, i)) => columns :+ Alias(e, s"x$i")()
    }
    (Project(list, filter.fold(source)(Filter(_, source))), Seq(InputRead(at, list.indices)))
  }

  /** Returns the child `at` with the columns of all `inputs`; each evaluates its own only where its filter is true. */
  private def shared(inputs: Seq[InputSpec], source: LogicalPlan, at: Int): (LogicalPlan, Seq[InputRead]) = {
    val found = ArrayBuffer.empty[Expression]
    def position(e: Expression): Int = found.indexWhere(_.semanticEquals(e)) match {
      case -1 =>
        found += e
        found.length - 1
      case known => known
    }
    def only(filter: Option[Expression], e: Expression): Expression =
      filter.fold(e)(If(_, e, Literal.create(null, e.dataType)))
    val parts = inputs.map(bound(_, source))
    val reads = parts.map { case (filter, exprs) =>
      val columns = exprs.map {
        case a: Attribute => position(a)
        case e => position(only(filter, e))
      }
      InputRead(at, columns, filter.map(f => position(only(Some(f), Literal.create(true, BooleanType)))))
    }
    val filters = parts.map(_._1)
    val below = if (filters.contains(None)) source else Filter(filters.flatten.reduce(Or), source)
    val list = found.toSeq.zipWithIndex.map {
      case (a: Attribute, _) => a
      case (e, i) => Alias(e, s"x$i")()
    }
    (Project(list, below), reads)
  }

  /** Returns the filter of an input and its expressions, over the columns of the source. */
  private def bound(input: InputSpec, source: LogicalPlan): (Option[Expression], Seq[Expression]) = {
    val byName = input.columns.zip(source.output).toMap
    def isPacked(v: RuleVariable): Boolean =
      v.dataType == StringType && !byName(v.name).dataType.isInstanceOf[StringType]
    def bound(e: Expression): Expression = e.transform {
      case Unpacked(v: RuleVariable, _) if isPacked(v) => byName(v.name) // a source has the value itself
      case v: RuleVariable if isPacked(v) => Packed(byName(v.name))
      case v: RuleVariable => byName(v.name)
    }
    (input.filters.toSeq.map(bound).reduceOption(And), input.exprs.toSeq.map(bound))
  }
}
