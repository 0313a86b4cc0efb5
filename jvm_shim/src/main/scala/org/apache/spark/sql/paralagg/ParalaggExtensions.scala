package org.apache.spark.sql.paralagg

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.paralagg.exec.{FixpointStrategy, InputCoalescing}

/**
 * The one door into Spark, for `spark.sql.extensions`.
 *
 * {{{
 *   analysed plan with RecursiveAggregate   (built by Bridge.fixpoint; its inputs are ordinary children)
 *     └─ optimizer                           sees the inputs as children: pruned, pushed down as always
 *     └─ FixpointStrategy                    RecursiveAggregate → FixpointExec, with and without AQE
 *     └─ InputCoalescing                     AQE: few shuffle partitions below each input
 * }}}
 */
class ParalaggExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectPlannerStrategy(_ => FixpointStrategy)
    extensions.injectQueryStageOptimizerRule(InputCoalescing(_))
  }
}
