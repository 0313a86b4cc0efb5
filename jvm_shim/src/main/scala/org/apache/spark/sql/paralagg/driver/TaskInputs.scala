package org.apache.spark.sql.paralagg.driver

import org.apache.spark.sql.paralagg.gang.{Codec, Gang, MemoryAccount}
import org.apache.spark.sql.paralagg.load.{
  Block, BlocksCodec, Dictionary, LocalDictionary, Route, Routes, SortedTexts, Strings, Texts
}
import org.apache.spark.sql.paralagg.state.{KeptState, RouteContents}
import org.apache.spark.unsafe.types.UTF8String

/** The rows that a task has loaded: its blocks by route, what they contain in all tasks, and the strings of all. */
private[driver] final case class TaskInputs(
    strings: Dictionary, contents: Array[RouteContents], blocks: Array[Array[Block]])

/** Loads the inputs of a task, or, if there is a state, those that are no index of it. */
private[driver] final class InputLoading(scope: TaskScope, load: GangTask.Load) {
  import scope._
  import scope.job._

  def inputs(state: Option[KeptState]): TaskInputs = {
    val (packed, dictionary) = Gang.within(gang)(load(store, check, state.isEmpty))
    ends("reading")
    val strings = intern(packed, dictionary, state.map(_.loop.strings))
    ends("strings")
    val blocks = distribute(packed)
    ends("exchange")
    TaskInputs(strings, contentsOf(blocks), blocks)
  }

  private def check(strings: LocalDictionary): Unit = {
    gang.check()
    memory.holdStrings(strings.bytes)
  }

  /** Replaces words of strings by those of the dictionary: that of an earlier run, or one of the ranks of all strings. */
  private def intern(
      packed: Array[Array[Block]], dictionary: LocalDictionary, before: Option[Dictionary]): Dictionary = {
    val hasStrings = routes.all.exists(_.stringColumns.nonEmpty)
    // If strings may come later, the word 0, which is stored with a null, must not be one of them.
    if (stratum.makesStrings || hasStrings && kept.isDefined) dictionary.add(UTF8String.EMPTY_UTF8)
    if (!stratum.makesStrings && !hasStrings)
      before.getOrElse(new Dictionary(new SortedTexts(Array.empty), mappedBytes = 0))
    else {
      val (strings, words) = before match {
        case Some(strings) =>
          val words = Strings.append(dictionary, strings, gang)
          memory.holdStrings(strings.bytes / gang.localTasks)
          (strings, words)
        case None =>
          Strings.rank(dictionary, gang, MemoryAccount.mayMap, bytes => memory.holdStrings(bytes / gang.localTasks))
      }
      if (strings.mappedBytes > 0) {
        memory.holdStrings(0)
        memory.mappedBytes += strings.mappedBytes / gang.localTasks
      }
      packed.foreach(_.foreach(b => routes.all(b.route).stringColumns.foreach(b.rank(_, words))))
      strings
    }
  }

  /** Returns this task's blocks by route, after an exchange if tasks read the inputs themselves. */
  private def distribute(packed: Array[Array[Block]]): Array[Array[Block]] = {
    val codec = new RankedBlocks(routes)
    val received: Array[Block] =
      if (!direct) packed.flatten
      else gang.exchange(packed, codec, Array.emptyDoubleArray)._1.flatten
    routes.all.map { route =>
      val rows = received.filter(b => b.route == route.id && b.rows > 0)
      if (route.everywhere) gang.allgather(rows, codec).flatten else rows
    }
  }

  /** Returns the contents of each route's columns over all tasks; the width only of columns that a loop reads. */
  private def contentsOf(blocks: Array[Array[Block]]): Array[RouteContents] = {
    val read = stratum.staticIndexes.flatMap { i =>
      (routes.static(i.id) +: routes.removed.get(i.id).toSeq).map(_ -> i.read.map(_ + i.keys.length))
    }.toMap
    def flag(route: Route)(holds: Int => Boolean) = route.columns.indices.map(c => if (holds(c)) 1.0 else 0.0)
    val flags = routes.all.flatMap { r =>
      val reads = read.getOrElse(r.id, Array.emptyIntArray)
      flag(r)(c => blocks(r.id).exists(_.nulls(c) != null)) ++
        flag(r)(c => !reads.contains(c) || !blocks(r.id).forall(_.isNarrow(c)))
    }
    val sums = gang.allreduce(flags).iterator
    routes.all.map { r =>
      val nulls = r.columns.map(_ => sums.next() > 0)
      RouteContents(nulls, r.columns.map(_ => sums.next() == 0))
    }
  }
}

/** The codec of blocks whose string words are ranks: it sends no strings. */
private[driver] final class RankedBlocks(routes: Routes) extends Codec[Array[Block]] {
  private val plain = new BlocksCodec(routes.all.map(_.copy(types = Array.empty)))
  override def encode(blocks: Array[Block]): Array[Byte] = plain.encode(blocks, new Texts)
  override def decode(bytes: Array[Byte]): Array[Block] = plain.decode(bytes)._1
}
