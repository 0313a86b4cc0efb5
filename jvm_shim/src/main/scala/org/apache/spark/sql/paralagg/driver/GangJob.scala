package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.paralagg.load.Routes
import org.apache.spark.sql.paralagg.loop.CheckpointConf
import org.apache.spark.sql.paralagg.plan.{KeptSpec, StratumSpec}
import org.apache.spark.sql.types.DataType

/** The description of a gang's job in each task's closure: run, Plan, placement of the result. */
case class GangJob(
    run: Long,
    stratum: StratumSpec,
    outputs: Array[Int],
    tasks: Int,
    partitions: Int,
    ansi: Boolean,
    blockSpace: Long,
    direct: Boolean,
    checkpoint: Option[CheckpointConf],
    oneTaskRows: Long,
    heavyParts: Int,
    rollOverRows: Long,
    kept: Option[KeptSpec]) {
  lazy val routes: Routes = Routes.of(stratum)
  def inputTypes: Map[Int, Array[DataType]] = stratum.inputs.map(i => i.id -> i.exprs.map(_.dataType)).toMap
}
