package org.apache.spark.sql.paralagg.driver

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.{MEMORY_OFFHEAP_ENABLED, MEMORY_OFFHEAP_SIZE}
import org.apache.spark.sql.paralagg.gang.{MemoryAccount, Slots}
import org.apache.spark.sql.paralagg.load.Routes
import org.apache.spark.sql.paralagg.plan.{RecursiveAggregate, SharedRows}
import org.apache.spark.sql.paralagg.state.{LoopBuilder, RelationPart}
import org.json4s.JsonAST.JValue
import org.json4s.JsonDSL._

/**
 * The bytes that a stratum needs for each row of its inputs and relations, and the memory that Spark has for a task:
 * what `ra.estimate` multiplies by the numbers of rows.
 */
object Sizes {

  def of(fixpoint: RecursiveAggregate, sc: SparkContext, partitions: Int): JValue = {
    val stratum = fixpoint.spec.program
    val tasks = Slots.likely(sc, partitions)
    val executors = executorMemory(sc)
    val tasksOnOne = (tasks + executors.size - 1) / executors.size
    val position = stratum.inputs.map(_.id).zipWithIndex.toMap
    val routes = Routes.of(stratum)
    def share(isShared: Boolean) = "share" -> (if (isShared) 1.0 / tasksOnOne else 1.0 / tasks)
    val loaded = routes.all.toSeq.map { r =>
      ("input" -> position(r.input)) ~ share(r.everywhere) ~ ("bytes" -> r.bytes)
    }
    val indexes = stratum.staticIndexes.toSeq.map { i =>
      val memory = LoopBuilder.memory(stratum, i, 8 * i.read.length)
      ("route" -> routes.static(i.id)) ~ share(i.isShared) ~ ("building" -> memory.building) ~ ("kept" -> memory.kept) ~
        ("frees" -> !i.everywhere)
    }
    val inputs = fixpoint.reads.zip(stratum.inputs).map { case (read, i) =>
      val plan = fixpoint.children(read.child)
      val strings = routes.ofInput(i.id).flatMap(r => r.stringColumns.map(r.columns(_))).distinct.toSeq
      val isDerived = SharedRows.find(plan) { case n: RecursiveAggregate => n }.nonEmpty
      ("columns" -> plan.output.map(_.name)) ~ ("strings" -> strings) ~ ("derived" -> isDerived)
    }
    val asRows = if (stratum.bitmap.isEmpty && stratum.bitRows.isEmpty) stratum.relations.toSeq else Nil
    val rows = asRows.map(r => r.name -> RelationPart.bytesPerRow(r, stratum))
    ("tasks" -> tasks) ~ ("memoryPerTask" -> executors.min / tasksOnOne) ~ ("mayMap" -> MemoryAccount.mayMap) ~ ("inputs" -> inputs) ~ ("loaded" -> loaded) ~ ("indexes" -> indexes) ~ ("rows" -> rows.toMap)
  }

  /** Returns for each executor the bytes that its tasks share; of the driver, if it runs the tasks. */
  private def executorMemory(sc: SparkContext): Iterable[Long] = {
    val offHeap = if (sc.conf.get(MEMORY_OFFHEAP_ENABLED)) sc.conf.get(MEMORY_OFFHEAP_SIZE) else 0L
    val memory = sc.env.blockManager.master.getMemoryStatus.map { case (id, (most, _)) => id -> (most - offHeap) }
    val executors = memory.filterNot(_._1.isDriver)
    (if (executors.nonEmpty) executors else memory).values
  }
}
