package org.apache.spark.sql.paralagg

import java.io.File
import java.nio.ByteBuffer
import java.nio.channels.{ClosedChannelException, FileChannel}
import java.nio.file.{Files, Paths}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, BindReferences}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.paralagg.codegen.{SumOverflow, Sums}
import org.apache.spark.sql.paralagg.gang.{SingleTask, Votes}
import org.apache.spark.sql.paralagg.load.{
  BlocksCodec, Dictionary, LocalDictionary, MappedFile, OpenBlock, Route, SortedRun, SortedTexts, Strings, StringWords,
  Texts, TextsCodec, WordColumn, Words, WordsSection
}
import org.apache.spark.sql.paralagg.offload.PrivateFiles
import org.apache.spark.sql.paralagg.state.{KeyMap, LongKeyMap}
import org.apache.spark.sql.types._
import org.apache.spark.storage.StorageUtils
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.UninterruptibleThread

/** Tests of the shim's data structures, without a Spark session; the engine as a whole is tested from Python. */
object ShimTests {
  private val random = new Random(7)
  private var run = 0

  private def test(name: String)(body: => Unit): Unit = {
    try body
    catch { case e: Throwable => throw new AssertionError(s"$name: $e", e) }
    run += 1
  }

  private def same[T](actual: T, expected: T): Unit = assert(actual == expected, s"got $actual, expected $expected")

  def main(args: Array[String]): Unit = {
    Seq("narrow" -> 5000L, "wide" -> Long.MaxValue).foreach { case (name, range) =>
      test(s"$name one-word keys get the same id again, in the order of their coming") {
        val keys = Array.fill(20000)(math.floorMod(random.nextLong(), range))
        val map = new LongKeyMap
        map.expect(keys.min, keys.max, keys.length)
        val known = scala.collection.mutable.LinkedHashMap.empty[Long, Int]
        keys.foreach(k => same(map.addWord(k), known.getOrElseUpdate(k, known.size)))
        same(map.size, known.size)
        known.foreach { case (k, id) => same(map.findWord(k), id) }
        same(map.findWord(-1L), -1)
      }
    }

    test("a key outside the promised range turns positions into hashing and loses nothing") {
      val map = new LongKeyMap
      map.expect(0, 99, 100)
      (0L until 100L).foreach(map.addWord)
      same(map.addWord(1L << 40), 100)
      (0L until 100L).foreach(k => same(map.findWord(k), k.toInt))
    }

    test("keys of several words are told apart by every word") {
      val map = KeyMap(3)
      val keys = for (a <- 0L until 20L; b <- 0L until 20L; c <- 0L until 20L) yield Array(a, b, c)
      keys.zipWithIndex.foreach { case (k, id) => same(map.add(k), id) }
      keys.zipWithIndex.foreach { case (k, id) => same(map.find(k), id) }
      same(map.find(Array(20L, 0L, 0L)), -1)
    }

    test("the folder of a cancelled task, whose thread is interrupted, is deleted") {
      val folder = Files.createTempDirectory("paralagg-test-").toFile
      PrivateFiles.write(PrivateFiles.createFolders(new File(folder, "in/0")).resolve("rows").toFile, "rows")
      Thread.currentThread().interrupt()
      PrivateFiles.deleteFolder(folder)
      assert(Thread.interrupted())
      assert(!folder.exists())
    }

    test("a task that is interrupted while it maps a file leaves nothing mapped") {
      val path = Files.createTempFile("paralagg-test-", "-mapped")
      Files.write(path, new Array[Byte](1 << 16))
      (0 until 5000).foreach { _ =>
        val file = FileChannel.open(path, READ, WRITE)
        val task = new UninterruptibleThread("a task") {
          override def run(): Unit =
            try StorageUtils.dispose(MappedFile.map(file, 1 << 16))
            catch { case _: ClosedChannelException => () }
        }
        task.start()
        val until = System.nanoTime() + random.nextInt(200000)
        while (System.nanoTime() < until) Thread.onSpinWait()
        task.interrupt()
        task.join()
        file.close()
      }
      val maps = Paths.get("/proc/self/maps") // on Linux
      assert(!Files.exists(maps) || !new String(Files.readAllBytes(maps)).contains(path.getFileName.toString))
      Files.delete(path)
    }

    test("votes are added up, and of the last ones the greatest counts") {
      val all = Array(1.0, 2.0, 5.0, 0.0)
      Votes.add(all, Array(10.0, 20.0, 4.0, 7.0), maxima = 2)
      same(all.toSeq, Seq(11.0, 22.0, 5.0, 7.0))
      Votes.add(all, Array(1.0, 1.0, 1.0, 1.0), maxima = 0)
      same(all.toSeq, Seq(12.0, 23.0, 6.0, 8.0))
    }

    test("a greatest common divisor is never negative, and the least number of a type has none") {
      same(Sums.gcd(0, -6, 8), 6L)
      same(Sums.gcd(-4, 6, 8), 2L)
      same(Sums.gcd(0, 0, 1), 0L)
      same(Sums.gcd(Long.MinValue, 6, 8), 2L)
      Seq(1 -> Byte.MinValue.toLong, 4 -> Int.MinValue.toLong, 8 -> Long.MinValue).foreach { case (bytes, least) =>
        val refused =
          try {
            Sums.gcd(0, least, bytes)
            false
          } catch { case _: SumOverflow => true }
        assert(refused, s"$least has a divisor")
      }
    }

    ownersAreCatalysts()

    test("strings are ranked as Spark compares them, by bytes") {
      val few = Seq("zebra", "", "Ångström", "apple", "apple pie", "\u0000", "\u0000\u0000", "日本")
      val deep = "x" * 700 // more equal bytes than the radix sort looks at
      val many = (0 until 2000).map(i => s"user${i % 97}.name${i % 1009}@mail.example.org") ++
        (0 until 100).map(i => deep + (if (i % 2 == 0) "\u0000" * i else i.toString)) ++ (0 until 60).map("z" * _)
      for (strings <- Seq(few, few ++ many, Seq.empty[String])) {
        val words = strings.distinct.map(UTF8String.fromString)
        val local = new LocalDictionary
        (words ++ words).foreach(local.add)
        val (dictionary, ranks) = Strings.rank(local, new SingleTask(null), mayMap = true, _ => true)
        val sorted = words.sortWith(_.compareTo(_) < 0)
        same((0 until dictionary.size).map(dictionary.get), sorted)
        same(ranks.toSeq.map(sorted(_)), words)
      }
    }

    test("runs of strings merge to each string once, with the places of each run's strings") {
      val runs = Array(Seq("a", "c", "d"), Seq(), Seq("a", "b", "d", "e")).map { strings =>
        val texts = TextsCodec.decode(TextsCodec.encode(Texts(strings.map(UTF8String.fromString): _*)))
        new SortedRun(texts, Array.range(0, texts.size), 0, texts.size)
      }
      val (merged, places) = Strings.merge(runs)
      same((0 until merged.size).map(merged.get(_).toString), Seq("a", "b", "c", "d", "e"))
      same(places.map(_.toSeq).toSeq, Seq(Seq(0, 2, 3), Seq(), Seq(0, 1, 3, 4)))
      val sorted = new SortedTexts(Array(merged, new Texts, new Texts, Texts(UTF8String.fromString("f"))))
      same((0 until sorted.size).map(sorted.get(_).toString), Seq("a", "b", "c", "d", "e", "f"))
      same(Seq("f", "a", "bb").map(s => sorted.find(UTF8String.fromString(s))), Seq(5, 0, -1))
    }

    test("blocks cross the wire with their nulls and strings") {
      val route = Route(0, 0, Array(0, 1), Array(LongType, StringType), Array(0), everywhere = false, Array.empty)
      val codec = new BlocksCodec(Array(route))
      val strings = new LocalDictionary
      Seq("not used", "a", "b").foreach(s => strings.add(UTF8String.fromString(s)))
      val open = new OpenBlock(0, 2)
      open.reserve(3)
      open.columns = Array(Array(7L, 8L, 9L), Array(1L, 2L, 0L))
      open.rows = 3
      open.setNull(1, 2)
      val block = open.close()
      val arrived = new LocalDictionary
      val Array(copy) = codec.decode(codec.encode(Array(block), strings), arrived)
      same((0 until 3).map(copy.column(0)(_)), Seq(7L, 8L, 9L))
      same((0 until 2).map(i => arrived.get(copy.column(1)(i).toInt).toString), Seq("a", "b"))
      same((0 until 3).map(copy.isNull(1, _)), Seq(false, false, true))
      same(arrived.size, 2)
    }

    test("words near each other take 32 bits, and all keep their values") {
      val wide = 0x100000000L
      val columns = Seq(Seq(), Seq(5L), Seq(-3L, wide - 4), Seq(-3L, wide - 3), Seq(Long.MaxValue - 1, Long.MaxValue),
        Seq(Long.MinValue, Long.MinValue + wide - 1), Seq(Long.MinValue, 0L), Seq(Long.MinValue, Long.MaxValue))
      same(columns.map(c => WordColumn(c.toArray, c.size).bytes / math.max(1, c.size)), Seq(0, 4, 4, 8, 4, 4, 8, 8))
      columns.foreach { words =>
        val column = WordColumn(words.toArray :+ 1L, words.size)
        same(column.toArray.toSeq, words)
        val out = ByteBuffer.allocate(column.bytes.toInt)
        column.write(out)
        same(out.remaining, 0)
        same(WordColumn.read(out.flip(), words.size, column.least, column.most).toArray.toSeq, words)
      }
    }

    test("sums that leave their type are caught") {
      same(Sums.addLong(Long.MaxValue, -1), Long.MaxValue - 1)
      Seq(() => Sums.addLong(Long.MaxValue, 1), () => Sums.addSmall(Int.MaxValue, 1, 4, ansi = true),
        () => Sums.addDecimal(99, 1, 2))
        .foreach { overflow =>
          val caught =
            try { overflow(); null }
            catch { case e: SumOverflow => e.getCondition }
          same(caught, "PARALAGG_OVERFLOW")
        }
      same(Sums.addSmall(Int.MaxValue, 1, 4, ansi = false), Int.MinValue.toLong)
    }

    test("strings that rules make are ordered by bytes, beside those of the inputs and what an empty min holds") {
      val strings = dictionary("", "b", "d")
      val words = Seq("a", "c", "b", "e", "c").map(s => strings.word(UTF8String.fromString(s)))
      same(words, Seq(3L, 4L, 1L, 5L, 4L))
      val sorted = Seq(Long.MinValue, 0L, 3L, 1L, 4L, 2L, 5L, Long.MaxValue)
      for (i <- sorted.indices; j <- sorted.indices) same(strings.less(sorted(i), sorted(j)), i < j)
    }

    test("a message between executors brings the strings that the other one has not made, or numbered otherwise") {
      val (here, there) = (dictionary("", "b"), dictionary("", "b"))
      val (x, y) = (here.word(UTF8String.fromString("x")), here.word(UTF8String.fromString("y")))
      val y2 = there.word(UTF8String.fromString("y"))
      val sections = Array(WordsSection(2, Array(1)), WordsSection(1, Array(0)))
      val message = Array(2L, x, x, 7L, 1L, 3L, y, 0L, x)
      val received = new StringWords(sections, there).decode(new StringWords(sections, here).encode(message))
      same(received.toSeq, Seq(2L, x, y2 + 1, 7L, 1L, 3L, y2, 0L, y2 + 1))
      same(there.get(y2.toInt + 1).toString, "x")
      same(message(2), x)
    }

    println(s"ShimTests: $run passed, 0 failed")
  }

  /** What lets FixpointExec report its partitioning truthfully. */
  private def ownersAreCatalysts(): Unit = {
    val types = Seq(LongType, IntegerType, ShortType, ByteType, BooleanType, DoubleType, FloatType, DateType,
      DecimalType(9, 2), StringType)
    for (t <- types; tasks <- Seq(2, 7)) test(s"$t keys have the owner that HashPartitioning says, of $tasks") {
      val attribute = AttributeReference("k", t)()
      val partition =
        BindReferences.bindReference(HashPartitioning(Seq(attribute), tasks).partitionIdExpression, Seq(attribute))
      val strings = new LocalDictionary
      (0 until 200).foreach { i =>
        val row = InternalRow(sample(t, i))
        val word = Words.of(t).read(row, 0, strings)
        same(math.floorMod(Words.of(t).hash(word, Words.Seed, strings), tasks),
          partition.eval(row).asInstanceOf[Int])
      }
    }
  }

  private def dictionary(strings: String*) =
    new Dictionary(new SortedTexts(Array(Texts(strings.map(UTF8String.fromString): _*))), mappedBytes = 0)

  private def sample(t: DataType, i: Int): Any = t match {
    case LongType => random.nextLong()
    case IntegerType | DateType => random.nextInt()
    case ShortType => random.nextInt().toShort
    case ByteType => random.nextInt().toByte
    case BooleanType => random.nextBoolean()
    case DoubleType => if (i == 0) -0.0 else if (i == 1) Double.NaN else random.nextGaussian()
    case FloatType => if (i == 0) -0.0f else if (i == 1) Float.NaN else random.nextFloat()
    case d: DecimalType => Decimal(random.nextInt(1000000).toLong, d.precision, d.scale)
    case _ => UTF8String.fromString(random.nextString(random.nextInt(12)))
  }
}
