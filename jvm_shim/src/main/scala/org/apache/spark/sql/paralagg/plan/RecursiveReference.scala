package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}

/** What a step reads as "the relation so far". It is only ever analysed, never run. */
case class RecursiveReference(name: String, output: Seq[Attribute]) extends LeafNode with MultiInstanceRelation {
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)
  override def simpleString(maxFields: Int): String = s"RecursiveReference $name ${output.mkString("[", ", ", "]")}"
}
