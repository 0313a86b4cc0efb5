package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.state.LoopState

/** The parent of generated kernels: all rules of one driver. */
abstract class Kernel {

  /** Applies the rules to entries from `from` on of the delta; returns the next: `to`, or less after `MaxWork` rows. */
  def run(loop: LoopState, from: Int, to: Int): Int
}

object Kernel {

  /** A kernel returns when it has read so many rows of probed sides, so that the loop may send what they derived. */
  final val MaxWork = 1 << 16
}
