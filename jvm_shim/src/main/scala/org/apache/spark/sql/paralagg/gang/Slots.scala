package org.apache.spark.sql.paralagg.gang

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.DYN_ALLOCATION_ENABLED
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.sql.paralagg.{ErrorCodes, ParalaggException}

/**
 * The number of tasks that may run at the same time, checked before a gang is submitted. If Spark itself finds missing
 * slots or dynamic allocation, under AQE it shuts the user's SparkContext down.
 */
object Slots {

  def isDynamic(sc: SparkContext): Boolean = sc.conf.get(DYN_ALLOCATION_ENABLED)

  def available(sc: SparkContext): Int =
    if (isDynamic(sc)) 0
    else sc.maxNumConcurrentTasks(
      sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))

  /** Waits until the first executor has registered (a new application, lost executors), then returns the slots. */
  def availableSoon(sc: SparkContext): Int = {
    val until = System.nanoTime() + WaitNanos
    while (available(sc) == 0 && !isDynamic(sc) && System.nanoTime() < until) Thread.sleep(100)
    available(sc)
  }

  private val WaitNanos = 30L * 1000 * 1000 * 1000

  /** Returns the smaller of `requested` tasks and the slots, at least 1; throws if Spark would refuse any gang. */
  def gang(sc: SparkContext, requested: Int): Int = {
    val slots = availableSoon(sc)
    if (slots <= 0) {
      throw new ParalaggException(
        ErrorCodes.NoSlots,
        if (isDynamic(sc)) "dynamic allocation is on, and a gang needs a fixed number of executors."
        else "there is no executor with a free core.",
        "set spark.dynamicAllocation.enabled=false, or use backend='dataframe'.")
    }
    math.max(1, math.min(requested, slots))
  }

  /** Returns the smaller of `requested` partitions and the current slots; no gang needs to fit. */
  def likely(sc: SparkContext, requested: Int): Int = {
    val slots = available(sc)
    math.max(1, math.min(requested, if (slots > 0) slots else sc.defaultParallelism))
  }
}
