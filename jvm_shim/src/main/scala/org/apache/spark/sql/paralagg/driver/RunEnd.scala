package org.apache.spark.sql.paralagg.driver

import java.io.IOException
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, TimeUnit}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * The listener that removes blocks and checkpoints of a run after its query, and logs it if a run waits for slots.
 *
 * A cancelled query returns to its caller before its tasks have stopped, and these may still store blocks and write
 * checkpoints. So the removal waits for the last task.
 */
final class RunEnd(sc: SparkContext) extends SparkListener with Logging {
  private val runs = new ConcurrentHashMap[Long, RunEnd.Watched]()

  /** The last executions that ended, by id. */
  private val endedExecutions = new java.util.LinkedHashMap[String, Unit] {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, Unit]): Boolean = size > RunEnd.MaxEnded
  }

  override def onJobStart(event: SparkListenerJobStart): Unit = for {
    w <- runs.values.asScala
    stage <- event.stageInfos if stage.rddInfos.exists(_.id == w.gang)
  } {
    w.jobs += event.jobId
    w.run.job = event.jobId
    w.stages += stage.stageId
  }

  /** Watches a submitted gang: its inputs are ready, so from now on it waits for slots only. */
  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    watched(event.stageInfo.stageId).foreach(w => RunEnd.logIfWaiting(w.run, event.stageInfo.attemptNumber(), 3))

  override def onTaskStart(event: SparkListenerTaskStart): Unit = watched(event.stageId).foreach(_.running += 1)

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = watched(event.stageId).foreach { w =>
    w.running -= 1
    clear(w)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd =>
      endedExecutions.synchronized(endedExecutions.put(e.executionId.toString, ()))
      end(_.run.executionId == e.executionId.toString)
    case _ =>
  }

  /** Tests whether the execution of a run has ended: a thread of a cancelled query may plan a stage after that. */
  private def hasEnded(executionId: String): Boolean = executionId != null && (
    SQLExecution.getQueryExecution(executionId.toLong) == null ||
      endedExecutions.synchronized(endedExecutions.containsKey(executionId)))

  /** Ends a run outside any SQL execution (`df.rdd`) with its job. */
  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    end(w => w.run.executionId == null && w.jobs.contains(event.jobId))

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit =
    runs.values.asScala.foreach(deleteCheckpoints)

  private def watched(stage: Int): Iterable[RunEnd.Watched] = runs.values.asScala.filter(_.stages.contains(stage))

  private def end(isEnded: RunEnd.Watched => Boolean): Unit = runs.values.asScala.filter(isEnded).foreach { w =>
    w.isOver = true
    RunRegistry.end(w.run.id)
    Coordinator.of(sc).send(("ended", w.run.id)) // so that no task waits for a peer
    clear(w)
  }

  private def clear(w: RunEnd.Watched): Unit = if (w.isOver && w.running <= 0) {
    runs.remove(w.run.id)
    Coordinator.of(sc).send(("ended", w.run.id)) // again, for a task that joined late
    w.marker.destroy() // removes every block of the run on all executors
    deleteCheckpoints(w)
  }

  private def deleteCheckpoints(w: RunEnd.Watched): Unit = w.checkpoint.foreach { root =>
    try {
      val path = new Path(root)
      val files = path.getFileSystem(sc.hadoopConfiguration)
      files.delete(path, true)
      val application = path.getParent
      // A failed delete does not show whether the folder was not empty, so list it first.
      if (files.exists(application) && files.listStatus(application).isEmpty) files.delete(application, false)
    } catch { case e: IOException => logWarning(s"cannot delete the checkpoints in $root", e) }
  }
}

object RunEnd {

  /** A run of this listener; only the listener's thread changes it. `gang` is the id of the gang's RDD. */
  private final class Watched(
      val run: Run, val marker: Broadcast[_], val checkpoint: Option[String], val gang: Int) {
    val jobs = mutable.Set.empty[Int]
    val stages = mutable.Set.empty[Int]
    var running = 0
    var isOver = false
  }

  private var current: (SparkContext, RunEnd) = _
  private val MaxEnded = 1000

  /** Watches a run, which has not been submitted; throws if its query has ended. */
  def watch(
      sc: SparkContext, run: Run, marker: Broadcast[_], checkpoint: Option[String], gang: Int): Unit = {
    val listener = synchronized {
      if (current == null || (current._1 ne sc)) {
        current = (sc, new RunEnd(sc))
        sc.addSparkListener(current._2)
      }
      current._2
    }
    JobDescriptions.listen(sc)
    listener.runs.put(run.id, new Watched(run, marker, checkpoint, gang))
    if (listener.hasEnded(run.executionId)) {
      listener.runs.remove(run.id)
      throw new SparkException(s"execution ${run.executionId} ended before its recursion began")
    }
  }

  /** Logs a run that waits for slots, after `seconds` and then every 30 s. */
  private def logIfWaiting(run: Run, attempt: Int, seconds: Long): Unit =
    CompletableFuture.delayedExecutor(seconds, TimeUnit.SECONDS).execute { () =>
      if (run.isWaiting(attempt)) {
        run.logWaiting(attempt)
        logIfWaiting(run, attempt, 30)
      }
    }
}
