package org.apache.spark.sql.paralagg

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.paralagg.driver.InputCoalescing
import org.apache.spark.sql.paralagg.rules.{RewriteUnionLoop, Rules}
import org.apache.spark.sql.paralagg.sql.{RecursionParser, ResolveRecursion}

/**
 * The entry point for `spark.sql.extensions`, which registers everything in Spark.
 *
 * {{{
 *   text of SQL
 *     └─ RecursionParser                     WITH RECURSIVE that Spark does not support → RecursiveCte
 *     └─ ResolveRecursion                    RecursiveCte → RecursiveAggregate, in step with Spark's resolution
 *   analysed plan with RecursiveAggregate   (from SQL, or built by Bridge.fixpoint; its inputs are ordinary children)
 *     └─ optimizer                           sees the inputs as children: pruned, pushed down as always
 *        └─ PushKeyFilter                    a filter on carried keys → into the rows that the recursion starts from
 *        └─ DropAggregate                    an aggregate by the keys → a projection
 *        └─ PruneDependents                  dependent columns that the query does not read → not computed
 *        └─ RewriteUnionLoop                 Spark's own recursive CTE under min or max → RecursiveAggregate
 *     └─ FixpointStrategy                    RecursiveAggregate → FixpointExec, with and without AQE
 *     └─ InputCoalescing                     AQE: few shuffle partitions below each input
 * }}}
 */
class ParalaggExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    ShimJars.check()
    StaticConfs.register()
    Rules.all.foreach(rule => extensions.injectOptimizerRule(_ => rule))
    extensions.injectParser((_, delegate) => new RecursionParser(delegate))
    extensions.injectResolutionRule(_ => ResolveRecursion)
    extensions.injectPreCBORule(_ => RewriteUnionLoop)
    extensions.injectPlannerStrategy(_ => FixpointStrategy)
    extensions.injectQueryStageOptimizerRule(InputCoalescing(_))
  }
}
