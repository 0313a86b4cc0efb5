package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.{Block, Dictionary, LongBuffer, Routes}
import org.apache.spark.sql.paralagg.plan.{StaticIndexSpec, StratumSpec}

/**
 * The step from loaded blocks to the loop's state: relation parts with dense ids, static indexes, resolved targets.
 *
 * It assigns ids first: to base rows, to keys that static sides join on, to keys that rules derive. Then it requests
 * the ids of ghosts from their owners. So a message of the loop is (id, value), and the loop hashes nothing.
 */
final class LoopBuilder(
    stratum: StratumSpec,
    routes: Routes,
    shape: Shape,
    gang: Gang,
    strings: Dictionary,
    blocks: Int => Array[Block]) {

  private val parts = stratum.relations.indices.map { r =>
    new RelationPart(r, stratum.relations(r), shape.relations(r), stratum)
  }.toArray

  /** Builds the state; calls `ends` with the name of each part that is done. */
  def build(ends: String => Unit = _ => ()): LoopState = {
    val resolving = stratum.rules.indices.filter(stratum.rules(_).target.kind == "resolved")
    expectRanges(resolving)
    val baseIds = parts.map(p => blocks(routes.base(p.index)).map(p.ids))
    val ids = (for (i <- stratum.staticIndexes; relation <- i.alignedTo)
      yield i.id -> BlockKeys.intern(blocks(routes.static(i.id)), i.keys.length, parts(relation).keys,
        hasMask = false)).toMap
    ends("ids")
    // Targets by row of the blocks; exchangeGhosts then gets the owners' ids of the ghosts among them.
    val resolver = new Targets(stratum, routes, parts, gang, strings, blocks)
    val targets = resolving.map(rule => rule -> resolver.resolve(stratum.rules(rule))).toMap
    ends("targets")
    exchangeGhosts()
    ends("ghosts")
    parts.foreach { p =>
      p.grow()
      p.growGhosts()
    }
    val placed = stratum.staticIndexes.map(i => i.id -> place(i, ids, targets)).toMap
    val statics = placed.map { case (id, (index, _)) => id -> index }
    val resolved = stratum.rules.indices.map { rule =>
      targets.get(rule).map(placed(stratum.rules(rule).resolvingProbe.index)._2.order(_)).orNull
    }.toArray
    val indexes = stratum.relationIndexes.map { i =>
      val original = parts(i.relation)
      val part = if (i.copy) new RelationPart(i.relation, original.spec, original.shape, stratum) else original
      part.grow()
      i.id -> new RelationIndex(i, part)
    }.toMap
    ends("indexes")
    // The indexes hold all that rules read, so the loaded rows can be freed. Base rows are still needed.
    stratum.staticIndexes.filterNot(_.everywhere).foreach(i => blocks(routes.static(i.id)).foreach(_.free()))
    new LoopState(gang.part, gang.tasks, strings, parts, statics, indexes, resolved, baseIds)
  }

  /** Passes the expected range to maps of one-word keys: base rows, keys that static sides join on, derived keys. */
  private def expectRanges(resolving: Seq[Int]): Unit = parts.foreach { p =>
    if (p.shape.keyWords == 1) {
      val base = Seq(routes.base(p.index), routes.initial(p.index)).filter(_ >= 0).flatMap(blocks(_))
      val aligned = stratum.staticIndexes.filter(_.alignedTo.contains(p.index))
      val joined = aligned.toSeq.flatMap(i => blocks(routes.static(i.id)).toSeq)
      val derived = resolving.map(stratum.rules(_)).filter(r => stratum.relations(r.head) eq p.spec).flatMap { r =>
        val column = stratum.targetColumn(r, 0)
        blocks(routes.static(r.resolvingProbe.index)).toSeq.map(b => (b.words(column).array, b.rows))
      }
      StaticIndex.expect(p.keys, (base ++ joined).map(b => (b.words(0).array, b.rows)) ++ derived)
      StaticIndex.expect(p.ghosts, derived)
    }
  }

  /** Returns the index, and the placement of its rows. */
  private def place(
      i: StaticIndexSpec, ids: Map[Int, Array[Int]], targets: Map[Int, Array[Int]]): (StaticIndex, Placement) = {
    val rows = blocks(routes.static(i.id))
    val n = i.keys.length
    def build(keys: KeyMap, groups: Array[Int]): (StaticIndex, Placement) = {
      val split = i.sortedBy.filter(_ => gang.tasks > 1).flatMap(targets.get).orNull
      val placement = StaticIndex.place(groups, keys.size, split)
      (StaticIndex.build(rows, n, keys, placement, i.payload.indices.map(i.read.contains(_)).toArray), placement)
    }
    def buildWithKeys(): (StaticIndex, Placement) = {
      val keys = KeyMap(n)
      if (n == 1) StaticIndex.expect(keys, rows.toSeq.map(b => (b.words(0).array, b.rows)))
      build(keys, BlockKeys.intern(rows, n, keys, hasMask = false))
    }
    i.alignedTo match {
      case Some(r) => build(parts(r).keys, ids(i.id))
      case None if i.everywhere => gang.once(buildWithKeys())
      case None => buildWithKeys()
    }
  }

  /** Sends the key of each ghost to its owner and receives its id there, in two exchanges for all relations. */
  private def exchangeGhosts(): Unit = if (gang.tasks > 1) {
    val requests = Array.fill(gang.tasks)(new LongBuffer)
    val ghostsByOwner = Array.fill(gang.tasks)(Array.fill(parts.length)(new LongBuffer))
    parts.foreach { p =>
      (0 until p.ghosts.size).foreach(g => ghostsByOwner(p.ghostOwner(g))(p.index).add(g))
      (0 until gang.tasks).foreach { t =>
        val ghosts = ghostsByOwner(t)(p.index)
        requests(t).add(ghosts.size)
        (0 until ghosts.size).foreach { i =>
          (0 until p.shape.keyWords).foreach(c => requests(t).add(p.ghosts.word(ghosts.array(i).toInt, c)))
        }
      }
    }
    val (received, _) = gang.exchange(requests.map(_.trimmed), WordsCodec, Array.emptyDoubleArray)
    val answers = received.map { words =>
      val out = new LongBuffer
      var at = 0
      parts.foreach { p =>
        val n = words(at).toInt
        at += 1
        (0 until n).foreach { _ =>
          out.add(p.keys.add(words, at))
          at += p.shape.keyWords
        }
      }
      out.trimmed
    }
    val (ids, _) = gang.exchange(answers, WordsCodec, Array.emptyDoubleArray)
    (0 until gang.tasks).foreach { t =>
      var at = 0
      parts.foreach { p =>
        val ghosts = ghostsByOwner(t)(p.index)
        (0 until ghosts.size).foreach { i =>
          p.ghostRemote(ghosts.array(i).toInt) = ids(t)(at).toInt
          at += 1
        }
      }
    }
  }
}
