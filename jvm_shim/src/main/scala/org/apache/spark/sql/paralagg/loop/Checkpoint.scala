package org.apache.spark.sql.paralagg.loop

import java.io.{DataInputStream, DataOutputStream}

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.fs.permission.FsPermission

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.paralagg.gang.Gang
import org.apache.spark.sql.paralagg.state.{Accumulator, RelationPart}

/** The directory and the interval of a run's checkpoints (`spark.paralagg.checkpoint.dir`, `.interval`). */
case class CheckpointConf(root: String, interval: Long) {
  def run(id: Long): String = s"$root/run-$id"
}

/**
 * The state of one task every few iterations, so that a retried stage continues from the newest complete checkpoint.
 *
 * {{{ root/run-ID/iteration-N/part-P, and root/run-ID/iteration-N/complete once every task has written its part }}}
 *
 * Rows are written by key, since a new attempt may assign other ids. Words of strings are ranks among all strings of
 * the inputs, which are the same in each attempt.
 */
final class Checkpoint(conf: CheckpointConf, run: Long, gang: Gang, parts: Array[RelationPart]) {
  private val root = new Path(conf.run(run))
  private val files: FileSystem = root.getFileSystem(SparkHadoopUtil.get.conf)

  /**
   * Restricts the folder to its owner. Every task does it before it writes: a peer may have only created it. Created
   * without the mode, a local folder would get its default one after the creation, thus perhaps after a peer's mode.
   */
  private lazy val closeToOthers: Unit = {
    val owner = new FsPermission("700")
    files.mkdirs(root, owner)
    files.setPermission(root, owner)
  }

  def isDue(iteration: Int): Boolean = iteration % conf.interval == 0

  /** Writes a checkpoint; collective. The next delta is the dirty rows of `queued`, or `current` if that is null. */
  def write(iteration: Int, queued: RelationPart => Accumulator): Unit = {
    closeToOthers
    val folder = new Path(root, s"iteration-$iteration")
    val file = files.create(new Path(folder, s"part-${gang.part}"), true)
    val out = new DataOutputStream(new java.io.BufferedOutputStream(file, 1 << 16))
    try parts.foreach(p => writeRows(out, p, queued(p)))
    finally out.close()
    gang.meet()
    if (gang.part == 0) {
      files.create(new Path(folder, "complete"), true).close()
      val older = new Path(root, s"iteration-${iteration - conf.interval}")
      if (files.exists(older)) files.delete(older, true)
    }
  }

  /** Returns the newest iteration that all tasks have written, or 0. Only one task looks, so all get the same. */
  def newest(): Int = {
    val iteration =
      if (gang.part != 0 || !files.exists(root)) 0
      else {
        files.listStatus(root).map(_.getPath).filter(p => files.exists(new Path(p, "complete")))
          .map(_.getName.stripPrefix("iteration-").toInt).fold(0)(_ max _)
      }
    gang.allreduce(Array(iteration.toDouble))(0).toInt
  }

  /** Reads all rows into the accumulators of their parts and calls `row(part, id, isDelta)` for each. */
  def read(iteration: Int, row: (RelationPart, Int, Boolean) => Unit): Unit = {
    val path = new Path(root, s"iteration-$iteration/part-${gang.part}")
    val in = new DataInputStream(new java.io.BufferedInputStream(files.open(path), 1 << 16))
    try parts.foreach(p => readRows(in, p, row))
    finally in.close()
  }

  private def writeRows(out: DataOutputStream, p: RelationPart, queued: Accumulator): Unit = {
    val isDelta = new Array[Boolean](p.keys.size)
    if (queued != null) (0 until queued.dirtySize).foreach(i => isDelta(queued.dirty(i)) = true)
    else (0 until p.currentSize).foreach(i => isDelta(p.current(i)) = true)
    val ids = (0 until p.keys.size).filter(id => (p.state.flags(id) & Accumulator.Present) != 0)
    out.writeInt(ids.length)
    ids.foreach { id =>
      (0 until p.shape.keyWords).foreach(c => out.writeLong(p.keys.word(id, c)))
      writeValues(out, p.state, id)
      out.writeBoolean(isDelta(id))
      if (p.delta != null && isDelta(id)) writeValues(out, p.delta, id)
    }
  }

  private def readRows(in: DataInputStream, p: RelationPart, row: (RelationPart, Int, Boolean) => Unit): Unit = {
    val key = new Array[Long](p.shape.keyWords)
    (0 until in.readInt()).foreach { _ =>
      key.indices.foreach(c => key(c) = in.readLong())
      val id = p.keys.add(key)
      if (id >= p.state.capacity) p.grow()
      readValues(in, p.state, id)
      p.state.flags(id) = (Accumulator.Present | Accumulator.Counted).toByte
      p.rows += 1
      val isDelta = in.readBoolean()
      if (p.delta != null && isDelta) readValues(in, p.delta, id)
      row(p, id, isDelta)
    }
  }

  private def writeValues(out: DataOutputStream, a: Accumulator, id: Int): Unit = a.columns.indices.foreach { j =>
    out.writeLong(a.columns(j)(id))
    if (a.valid(j) != null) out.writeByte(a.valid(j)(id))
  }

  private def readValues(in: DataInputStream, a: Accumulator, id: Int): Unit = a.columns.indices.foreach { j =>
    a.columns(j)(id) = in.readLong()
    if (a.valid(j) != null) a.valid(j)(id) = in.readByte()
  }
}
