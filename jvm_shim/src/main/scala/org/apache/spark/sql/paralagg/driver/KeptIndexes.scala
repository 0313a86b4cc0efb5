package org.apache.spark.sql.paralagg.driver

import java.util.{LinkedHashMap => JLinkedHashMap}
import java.util.Map.Entry

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext

/**
 * The indexes that a query leaves for later ones with other base rows ([[KeptStates]]), by what they are made of: the
 * Plan, and the rows of its static inputs ([[KnownRows]]). The last ones stay; for each key the state of one run.
 */
private[paralagg] object KeptIndexes {
  private final class Left(val name: Int, val run: Long)

  private val MaxKept = 8
  private var current: SparkContext = _
  private val states = new JLinkedHashMap[AnyRef, Left](MaxKept, 0.75f, true) {
    override def removeEldestEntry(eldest: Entry[AnyRef, Left]): Boolean = {
      if (size > MaxKept) KeptStates.free(current, eldest.getValue.name)
      size > MaxKept
    }
  }

  /** Returns the name of a state for `key`, if an ended run has left one of all tasks. */
  def find(sc: SparkContext, key: AnyRef, tasks: Int): Option[Int] = synchronized {
    check(sc)
    Option(states.get(key)).filterNot(isLive).map(_.name).filter(KeptStates.hasAll(sc, _, tasks))
  }

  /** Returns a name for what `run` leaves; None while another run is to. Frees what is there, but not `found`. */
  def leave(sc: SparkContext, key: AnyRef, run: Long, found: Option[Int]): Option[Int] = synchronized {
    check(sc)
    if (Option(states.get(key)).exists(isLive)) None
    else {
      val left = new Left(KeptStates.name(sc), run)
      Option(states.put(key, left)).map(_.name).filterNot(found.contains).foreach(KeptStates.free(sc, _))
      Some(left.name)
    }
  }

  /** Frees all states but those that runs have yet to leave. */
  def free(sc: SparkContext): Unit = synchronized {
    check(sc)
    val ended = states.asScala.filterNot(s => isLive(s._2)).toSeq
    ended.foreach { case (key, left) =>
      states.remove(key)
      KeptStates.free(sc, left.name)
    }
  }

  /** Returns the number of keys (a test checks it). */
  def size: Int = synchronized(states.size)

  private def isLive(left: Left): Boolean = RunRegistry.isLive(left.run)

  private def check(sc: SparkContext): Unit = if (current ne sc) {
    states.clear()
    current = sc
  }
}
