package org.apache.spark.sql.paralagg.load

import java.util.PriorityQueue

import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}
import org.apache.spark.sql.paralagg.gang.{Codec, Gang, WordsCodec}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * All strings of a run, in order: a string's word is its rank, so words compare as Spark compares the strings (by
 * bytes). Held once an executor, in memory or in mapped files. `parts` follow one another.
 */
final class SortedTexts(parts: Array[StringTable]) extends StringTable {
  private val starts = parts.map(_.size).scanLeft(0)(_ + _)

  override val size: Int = starts.last

  override def get(word: Int): UTF8String = {
    val found = java.util.Arrays.binarySearch(starts, word)
    var p = if (found >= 0) found else -found - 2
    while (starts(p + 1) == word) p += 1 // skips empty parts
    parts(p).get(word - starts(p))
  }

  /** The bytes in memory. */
  def bytes: Long = parts.map { case t: Texts => t.bytes; case _ => 0L }.sum

  /** Returns the rank of a string; -1 if there is no such string. */
  def find(s: UTF8String): Int = {
    val first = Strings.firstFrom(this, s)
    if (first < size && get(first) == s) first else -1
  }
}

/** Some strings of a task in order, each once: those of `ids` from `from` until `until`. */
final class SortedRun(val texts: Texts, val ids: Array[Int], val from: Int, val until: Int) extends StringTable {
  override def size: Int = until - from
  override def get(i: Int): UTF8String = texts.get(ids(from + i))
}

/**
 * Ranks the strings of a run by a sample sort: each task sorts its own, and then merges one range of those of all tasks.
 */
object Strings {

  /** The strings of a task from which the limits of the ranges are drawn. */
  private val Samples = 64

  /**
   * Returns the dictionary of the run, and the rank of each of the task's strings. If it may, it maps the dictionary
   * from files where memory has no room for its bytes (`fits`). Collective.
   */
  def rank(local: LocalDictionary, gang: Gang, mayMap: Boolean, fits: Long => Boolean): (Dictionary, Array[Int]) = {
    val sorted = StringOrder.of(local)
    val runs = cut(local, sorted, limits(local, sorted, gang))
    val (received, _) = gang.exchange(runs, RunCodec, Array.emptyDoubleArray)
    val (merged, places) = merge(received)
    val Array(bytes) = gang.allreduce(Array(merged.bytes.toDouble))
    val isMapped = gang.allreduce(Array(if (fits(bytes.toLong)) 0.0 else 1.0))(0) > 0 && mayMap
    val parts =
      if (isMapped) gang.allgather(MappedTexts(merged, gang), new MappedTextsCodec(gang))
      else gang.allgather[StringTable](merged, TextsCodec)
    val dictionary = gang.once(new Dictionary(new SortedTexts(parts), if (isMapped) bytes.toLong else 0L))
    val start = parts.take(gang.part).map(_.size).sum
    val (ranks, _) = gang.exchange(places.map(_.map(start + _.toLong)), WordsCodec, Array.emptyDoubleArray)
    val out = new Array[Int](local.size)
    ranks.indices.foreach { t =>
      val run = runs(t)
      var i = 0
      while (i < run.size) {
        out(run.ids(run.from + i)) = ranks(t)(i).toInt
        i += 1
      }
    }
    (dictionary, out)
  }

  /**
   * Returns the word of each of the task's strings in the dictionary of an earlier run. Strings that it lacks get words
   * in the same order on all executors, so that words mean the same there. Collective.
   */
  def append(local: LocalDictionary, dictionary: Dictionary, gang: Gang): Array[Int] = {
    val found = Array.tabulate(local.size)(i => dictionary.find(local.get(i)))
    val missing = found.indices.filter(found(_) < 0)
    val lacking = Texts(missing.map(i => local.get(i)): _*)
    val all = gang.allgather[StringTable](lacking, TextsCodec)
    gang.once {
      all.foreach(texts => (0 until texts.size).foreach(i => dictionary.word(texts.get(i))))
      dictionary
    }
    missing.foreach(i => found(i) = dictionary.find(local.get(i)))
    found
  }

  /** Returns the first string of each range but the first, the same in all tasks. */
  private def limits(local: Texts, sorted: Array[Int], gang: Gang): Array[UTF8String] = {
    val n = math.min(Samples, sorted.length)
    val own = Texts((0 until n).map(i => local.get(sorted((sorted.length.toLong * i / n).toInt))): _*)
    val samples = gang.allgather(own, TextsCodec).flatMap(t => (0 until t.size).map(t.get)).sorted
    Array.tabulate(gang.tasks - 1) { t =>
      if (samples.isEmpty) UTF8String.EMPTY_UTF8 else samples((samples.length.toLong * (t + 1) / gang.tasks).toInt)
    }
  }

  /** Returns the run of each range. */
  private def cut(local: Texts, sorted: Array[Int], limits: Array[UTF8String]): Array[SortedRun] = {
    val all = new SortedRun(local, sorted, 0, sorted.length)
    val ends = limits.map(firstFrom(all, _))
    (0 +: ends).zip(ends :+ sorted.length).map { case (from, until) => new SortedRun(local, sorted, from, until) }
  }

  /** Returns the place of the first string that is not less than `s`; the size if there is none. */
  private[load] def firstFrom(sorted: StringTable, s: UTF8String): Int = {
    var low = 0
    var high = sorted.size
    while (low < high) {
      val middle = (low + high) >>> 1
      if (sorted.get(middle).compareTo(s) < 0) low = middle + 1 else high = middle
    }
    low
  }

  /** Returns the strings of all runs, each once, and for each run the places of its strings among them. */
  private[paralagg] def merge(runs: Array[SortedRun]): (Texts, Array[Array[Int]]) = {
    val merged = new Texts
    val places = runs.map(r => new Array[Int](r.size))
    val heads = new PriorityQueue[Head](math.max(1, runs.length))
    runs.indices.filter(runs(_).size > 0).foreach(r => heads.add(new Head(runs(r), r)))
    var last: UTF8String = null
    while (!heads.isEmpty) {
      val head = heads.poll()
      if (last == null || head.text != last) {
        merged.append(head.text)
        last = head.text
      }
      places(head.number)(head.at) = merged.size - 1
      if (head.advance()) heads.add(head)
    }
    (merged, places)
  }

  /** The first string of a run that is not merged yet. */
  private final class Head(run: SortedRun, val number: Int) extends Comparable[Head] {
    var at = 0
    var text: UTF8String = run.get(0)
    private var prefix = text.getPrefix

    def advance(): Boolean = {
      at += 1
      if (at < run.size) {
        text = run.get(at)
        prefix = text.getPrefix
      }
      at < run.size
    }

    override def compareTo(other: Head): Int =
      if (prefix != other.prefix) java.lang.Long.compareUnsigned(prefix, other.prefix) else text.compareTo(other.text)
  }
}

/** Lists of strings on the wire: their number, then each one behind its length, as [[Texts]] holds them. */
object TextsCodec extends Codec[StringTable] {
  override def decode(bytes: Array[Byte]): Texts = read(bytes, 0)

  override def encode(strings: StringTable): Array[Byte] = {
    val out = new Array[Byte](bytes(strings))
    write(strings, out, 0)
    out
  }

  /** Returns the bytes of strings on the wire. */
  def bytes(strings: StringTable): Int = {
    var sum = Texts.LengthBytes.toLong * (strings.size + 1)
    var i = 0
    while (i < strings.size) {
      sum += strings.get(i).numBytes
      i += 1
    }
    if (sum > Int.MaxValue - 64) {
      throw new ParalaggException(
        ErrorCodes.OutOfMemory,
        s"one message has ${sum >> 20} MiB of strings, and 2047 MiB is the limit.",
        "use more partitions (spark.sql.shuffle.partitions), or numbers as keys.")
    }
    sum.toInt
  }

  /** Writes strings to `out` from `from` on. */
  def write(strings: StringTable, out: Array[Byte], from: Int): Unit = {
    val base = Platform.BYTE_ARRAY_OFFSET
    Platform.putInt(out, base + from, strings.size)
    var at = from + Texts.LengthBytes
    var i = 0
    while (i < strings.size) {
      val s = strings.get(i)
      Platform.putInt(out, base + at, s.numBytes)
      s.writeToMemory(out, base + at + Texts.LengthBytes)
      at += Texts.LengthBytes + s.numBytes
      i += 1
    }
  }

  /** Returns the strings in `bytes` from `from` on, which stay where they are. */
  def read(bytes: Array[Byte], from: Int): Texts = {
    val texts = new Texts
    texts.adopt(bytes, from + Texts.LengthBytes, Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + from))
    texts
  }
}

private object RunCodec extends Codec[SortedRun] {
  override def encode(run: SortedRun): Array[Byte] = TextsCodec.encode(run)

  override def decode(bytes: Array[Byte]): SortedRun = {
    val texts = TextsCodec.decode(bytes)
    new SortedRun(texts, Array.range(0, texts.size), 0, texts.size)
  }
}
