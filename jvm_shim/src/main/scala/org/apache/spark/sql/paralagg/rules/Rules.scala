package org.apache.spark.sql.paralagg.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** The optimizer rules for fixpoints. They change no result; `spark.sql.optimizer.excludedRules` disables them. */
object Rules {
  val all: Seq[Rule[LogicalPlan]] = Seq(PushKeyFilter, DropAggregate, PruneDependents, StopAtLimit)
}
