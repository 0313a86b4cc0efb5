package org.apache.spark.sql.paralagg.driver

import java.io.IOException
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Takes away what a run leaves when its query ends, however it ends; and says it when a run waits for slots.
 *
 * A cancelled query's caller is back before its tasks have stopped, and those may still store blocks and write checkpoints:
 * these go when the last task has ended.
 */
final class RunEnd(sc: SparkContext) extends SparkListener with Logging {
  private val runs = new ConcurrentHashMap[Long, RunEnd.Watched]()

  override def onJobStart(event: SparkListenerJobStart): Unit = for {
    w <- runs.values.asScala
    stage <- event.stageInfos if stage.rddInfos.exists(_.id == w.gang)
  } {
    w.jobs += event.jobId
    w.run.job = event.jobId
    w.stages += stage.stageId
  }

  /** Only now it waits for slots: what it reads is there. */
  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    of(event.stageInfo.stageId).foreach(w => Waiting.watch(w.run, event.stageInfo.attemptNumber()))

  override def onTaskStart(event: SparkListenerTaskStart): Unit = of(event.stageId).foreach(_.running += 1)

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = of(event.stageId).foreach { w =>
    w.running -= 1
    clear(w)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd => end(_.run.executionId == e.executionId.toString)
    case _ =>
  }

  /** A run outside any SQL execution (`df.rdd`) ends with its job. */
  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    end(w => w.run.executionId == null && w.jobs.contains(event.jobId))

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit =
    runs.values.asScala.foreach(deleteCheckpoints)

  private def of(stage: Int): Iterable[RunEnd.Watched] = runs.values.asScala.filter(_.stages.contains(stage))

  private def end(ended: RunEnd.Watched => Boolean): Unit = runs.values.asScala.filter(ended).foreach { w =>
    w.isOver = true
    RunRegistry.end(w.run.id)
    RunRegistry.coordinator(sc).send(("ended", w.run.id)) // who waits for a peer need not
    clear(w)
  }

  private def clear(w: RunEnd.Watched): Unit = if (w.isOver && w.running <= 0) {
    runs.remove(w.run.id)
    RunRegistry.coordinator(sc).send(("ended", w.run.id)) // again, for a task that joined late
    w.marker.destroy() // and with it every block of the run, on all executors
    deleteCheckpoints(w)
  }

  private def deleteCheckpoints(w: RunEnd.Watched): Unit = w.checkpoint.foreach { root =>
    try {
      val path = new Path(root)
      val files = path.getFileSystem(sc.hadoopConfiguration)
      files.delete(path, true)
      val application = path.getParent
      // No file system tells "not empty" from an error, so it is asked before.
      if (files.exists(application) && files.listStatus(application).isEmpty) files.delete(application, false)
    } catch { case e: IOException => logWarning(s"cannot delete the checkpoints in $root", e) }
  }
}

object RunEnd {

  /** Touched by the listener's thread only, once it is in the map. `gang` is the id of the gang's RDD. */
  private final class Watched(
      val run: Run, val marker: Broadcast[_], val checkpoint: Option[String], val gang: Int) {
    val jobs = mutable.Set.empty[Int]
    val stages = mutable.Set.empty[Int]
    var running = 0
    var isOver = false
  }

  private var current: (SparkContext, RunEnd) = _

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
  }
}

/** One daemon thread for each run that waits. */
private object Waiting {
  private val FirstMillis = 3000L
  private val AgainMillis = 30000L

  def watch(run: Run, attempt: Int): Unit = if (run.isWaiting(attempt)) {
    val thread = new Thread(
      () => {
        var pause = FirstMillis
        while (run.isWaiting(attempt)) {
          run.awaitStart(attempt, pause)
          if (run.isWaiting(attempt)) run.sayWaiting(attempt)
          pause = AgainMillis
        }
      }, s"paralagg-waiting-${run.id}")
    thread.setDaemon(true)
    thread.start()
  }
}
