package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.{JobExecutionStatus, SparkContext}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerJobEnd}
import org.apache.spark.sql.paralagg.FixpointProgress
import org.apache.spark.status.JobDataWrapper
import org.apache.spark.status.api.v1.JobData

/**
 * The listener that shows the iteration in the description of a gang's job.
 *
 * Spark sets a description when it submits a job, and one job runs the whole loop, so this changes the record that the
 * UI reads. It is in the queue and on the thread of Spark's own status listener, which restores the record at the job's
 * end.
 */
private[paralagg] final class JobDescriptions(sc: SparkContext) extends SparkListener {
  private val submitted = mutable.Map.empty[Int, Option[String]]

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: FixpointProgress if e.job >= 0 =>
      sc.statusStore.asOption(sc.statusStore.store.read(classOf[JobDataWrapper], e.job))
        .filter(_.info.status == JobExecutionStatus.RUNNING)
        .foreach { record =>
          val text = f"paralagg ${e.name}: iteration ${e.iteration}%,d, last delta ${e.delta}%,d rows"
          val before = submitted.getOrElseUpdate(e.job, record.info.description)
          val info = withDescription(record.info, before.fold(text)(d => s"$d ($text)"))
          sc.statusStore.store.write(new JobDataWrapper(info, record.skippedStages, record.sqlExecutionId))
        }
    case _ =>
  }

  override def onJobEnd(event: SparkListenerJobEnd): Unit = submitted.remove(event.jobId)

  private def withDescription(j: JobData, description: String): JobData = new JobData(
    j.jobId, j.name, Some(description), j.submissionTime, j.completionTime, j.stageIds, j.jobGroup, j.jobTags, j.status,
    j.numTasks, j.numActiveTasks, j.numCompletedTasks, j.numSkippedTasks, j.numFailedTasks, j.numKilledTasks,
    j.numCompletedIndices, j.numActiveStages, j.numCompletedStages, j.numSkippedStages, j.numFailedStages,
    j.killedTasksSummary)
}

private[paralagg] object JobDescriptions {
  private var current: SparkContext = _

  /** Registers the listener, once for each SparkContext. */
  def listen(sc: SparkContext): Unit = synchronized {
    if (current ne sc) {
      current = sc
      sc.listenerBus.addToStatusQueue(new JobDescriptions(sc))
    }
  }
}
