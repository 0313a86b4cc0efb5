package org.apache.spark.sql.paralagg.exec

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** Takes away what a run leaves on the driver when its query ends, however it ends; and says it when a run waits for slots. */
final class RunEnd(sc: SparkContext) extends SparkListener {
  private val runs = new ConcurrentHashMap[Long, RunEnd.Leftovers]()

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: SparkListenerSQLExecutionEnd => end(_.executionId == e.executionId.toString)
    case _ =>
  }

  /** A run outside any SQL execution (`df.rdd`) ends with its job. */
  override def onJobEnd(event: SparkListenerJobEnd): Unit = end(_.executionId == null)

  private def end(ended: RunRegistry.Run => Boolean): Unit =
    runs.values.asScala.filter(r => ended(r.run)).foreach { case RunEnd.Leftovers(run, marker, checkpoint) =>
      runs.remove(run.id)
      RunRegistry.end(run.id)
      Coordinator.of(sc).send(("ended", run.id))
      marker.destroy() // and with it every block of the run, on all executors
      checkpoint.map(new Path(_)).foreach(p => p.getFileSystem(sc.hadoopConfiguration).delete(p, true))
    }
}

object RunEnd {
  private case class Leftovers(run: RunRegistry.Run, marker: Broadcast[_], checkpoint: Option[String])

  private var current: (SparkContext, RunEnd) = _

  def watch(sc: SparkContext, run: RunRegistry.Run, marker: Broadcast[_], checkpoint: Option[String]): Unit = {
    val listener = synchronized {
      if (current == null || (current._1 ne sc)) {
        current = (sc, new RunEnd(sc))
        sc.addSparkListener(current._2)
      }
      current._2
    }
    listener.runs.put(run.id, Leftovers(run, marker, checkpoint))
    Waiting.watch(run)
  }
}

/** One daemon thread while there are runs that wait. */
private object Waiting {
  private val FirstMillis = 3000L
  private val AgainMillis = 30000L

  def watch(run: RunRegistry.Run): Unit = {
    val thread = new Thread(() => {
      var pause = FirstMillis
      while (run.isWaiting) {
        run.awaitStart(pause)
        if (run.isWaiting) run.sayWaiting()
        pause = AgainMillis
      }
    }, s"paralagg-waiting-${run.id}")
    thread.setDaemon(true)
    thread.start()
  }
}
