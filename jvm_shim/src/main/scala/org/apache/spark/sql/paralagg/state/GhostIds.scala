package org.apache.spark.sql.paralagg.state

import org.apache.spark.sql.paralagg.gang.{Gang, WordsCodec}
import org.apache.spark.sql.paralagg.load.LongBuffer

/** The exchange that gives ghosts their ids at the owners of their keys. */
private[state] object GhostIds {

  /** Sends the keys of ghosts, those `from` a number on, to their owners; receives their ids. Collective. */
  def exchange(parts: Array[RelationPart], from: Array[Int], gang: Gang): Unit = if (gang.tasks > 1) {
    val requests = Array.fill(gang.tasks)(new LongBuffer)
    val ghostsByOwner = Array.fill(gang.tasks)(Array.fill(parts.length)(new LongBuffer))
    parts.foreach { p =>
      (from(p.index) until p.ghosts.size).foreach(g => ghostsByOwner(p.ghostOwner(g))(p.index).add(g))
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
        val ids = new Array[Int](n)
        p.keys.addAll(words, at, p.shape.keyWords, n, ids)
        ids.foreach(out.add(_))
        at += n * p.shape.keyWords
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
