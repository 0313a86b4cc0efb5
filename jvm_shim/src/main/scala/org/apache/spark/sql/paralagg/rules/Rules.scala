package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** What Catalyst learns about fixpoints. No rule changes a result; `spark.sql.optimizer.excludedRules` turns one off. */
object Rules {
  val all: Seq[Rule[LogicalPlan]] = Seq(PushKeyFilter, DropAggregate, PruneDependents)
}
