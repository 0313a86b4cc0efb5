package org.apache.spark.sql.paralagg

/** The version of pyspark_paralagg that this shim belongs to. */
object ShimVersion {
  val value = "0.1.0"
}
