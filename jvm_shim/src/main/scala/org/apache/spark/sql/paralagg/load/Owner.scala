package org.apache.spark.sql.paralagg.load

import org.apache.spark.sql.paralagg.plan.RelationSpec

/** The task that owns a key, by Catalyst's hash of the relation's distribution columns, in which nulls do not count. */
final class Owner(spec: RelationSpec, columns: Array[Int], hasMask: Boolean, tasks: Int, strings: Dictionary) {
  private val types = columns.map(c => Words.of(spec.keys(c).dataType))

  /** Returns the owner of the key in `words` from `at` on, followed by the null mask if keys have one (`hasMask`). */
  def taskOf(words: Array[Long], at: Int = 0): Int =
    if (columns.isEmpty) 0
    else {
      val mask = if (hasMask) words(at + spec.keys.length) else 0L
      var hash = Words.Seed
      var i = 0
      while (i < columns.length) {
        if ((mask >> columns(i) & 1) == 0) hash = types(i).hash(words(at + columns(i)), hash, strings)
        i += 1
      }
      Math.floorMod(hash, tasks)
    }
}
