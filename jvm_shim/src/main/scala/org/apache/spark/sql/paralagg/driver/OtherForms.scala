package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.sql.paralagg.loop.{BitRowsLoop, BitmapLoop, Decomposed}
import org.apache.spark.sql.paralagg.state.{BitRowsEdges, BitmapEdges}

/** Evaluations in other forms than by tuples. Each encodes its rows as soon as it has them. */
private[driver] final class OtherForms(scope: TaskScope, inputs: TaskInputs) {
  import inputs._
  import scope._
  import scope.job._

  /** Evaluates the relation for one value of its carried keys at a time; encodes its rows at once. */
  def decomposed: Iterator[(Int, Array[Byte])] = {
    val loop = new Decomposed(stratum, routes, blocks(_), contents, strings, ansi, gang, memory)
    endLoading()
    val loaded = System.nanoTime()
    val out = results.decomposed(stratum.decomposition.get.carried, strings, partitions)
    loop.run(out.add)
    if (gang.part == 0)
      report("one carried value at a time", loop.iterations, loop.tuples, Nil, loaded, System.nanoTime())
    out.blocks
  }

  /** Evaluates a set relation with a carried key by bitmaps; encodes each block at once. */
  def bitmaps: Iterator[(Int, Array[Byte])] = {
    val edges = gang.once(BitmapEdges.build(stratum.bitmap.get.edges.flatMap(i => blocks(routes.static(i)))))
    val loop =
      new BitmapLoop(stratum.bitmap.get.moving, edges, blocks(routes.base(output)), gang, memory, stratum.endsAt)
    endLoading()
    val loaded = System.nanoTime()
    val out = mutable.ArrayBuffer.empty[(Int, Array[Byte])]
    loop.run(b =>
      out ++= results.bitmaps(b, stratum.bitmap.get.moving, strings, partitions, gang.part, tasks == partitions))
    if (gang.part == 0) report("bitmaps", loop.iterations, loop.pairs, Nil, loaded, System.nanoTime())
    out.iterator
  }

  /** Evaluates sets in rows of bits; encodes each block at once. None if the rows are too many. */
  def bitRows: Option[Iterator[(Int, Array[Byte])]] = {
    val form = stratum.bitRows.get
    val bases = stratum.relations.indices.map(r => blocks(routes.base(r))).toArray
    val edges = BitRowsEdges.build(form, bases, index => blocks(routes.static(index)), gang)
    BitRowsLoop.load(form, edges, bases, gang, memory).map { loop =>
      endLoading()
      val loaded = System.nanoTime()
      val out = mutable.ArrayBuffer.empty[(Int, Array[Byte])]
      loop.run()
      outputs.indices.foreach { at =>
        loop.rows(outputs(at)) { b =>
          val moving = 1 - form.carried(outputs(at))
          out ++= placed(
            at, allResults(at).bitmaps(b, moving, strings, partitions, gang.part, tasks == partitions))
        }
      }
      if (gang.part == 0) report("rows of bits", loop.iterations, loop.pairs, Nil, loaded, System.nanoTime())
      out.iterator
    }
  }
}
