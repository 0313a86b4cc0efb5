package org.apache.spark.sql.paralagg.gang

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.DYN_ALLOCATION_ENABLED
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * How many tasks may run at the same moment. Always asked before a gang is submitted: where Spark itself finds out that
 * slots are missing or allocation is dynamic, under AQE it shuts the user's SparkContext down.
 */
object Slots {

  def isDynamic(sc: SparkContext): Boolean = sc.conf.get(DYN_ALLOCATION_ENABLED)

  def available(sc: SparkContext): Int =
    if (isDynamic(sc)) 0
    else sc.maxNumConcurrentTasks(
      sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))

  /** Executors of a fresh application, or lost ones, may still be on their way: waits for the first one. */
  def availableSoon(sc: SparkContext): Int = {
    val until = System.nanoTime() + WaitNanos
    while (available(sc) == 0 && !isDynamic(sc) && System.nanoTime() < until) Thread.sleep(100)
    available(sc)
  }

  private val WaitNanos = 30L * 1000 * 1000 * 1000

  /** As many tasks of the wish as fit now, at least one; an error where Spark would refuse any gang. */
  def gang(sc: SparkContext, wish: Int): Int = {
    val slots = availableSoon(sc)
    if (slots <= 0) {
      throw new ParalaggException(
        ErrorCodes.NoSlots,
        if (isDynamic(sc)) "dynamic allocation is on, and a gang needs a fixed number of executors."
        else "there is no executor with a free core.",
        "set spark.dynamicAllocation.enabled=false, or use backend='dataframe'.")
    }
    math.max(1, math.min(wish, slots))
  }

  /** Of the wish, as many partitions as tasks can work on at the same moment as things stand; no gang needs to fit. */
  def likely(sc: SparkContext, wish: Int): Int = {
    val slots = available(sc)
    math.max(1, math.min(wish, if (slots > 0) slots else sc.defaultParallelism))
  }
}
