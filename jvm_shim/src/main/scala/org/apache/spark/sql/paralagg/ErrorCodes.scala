package org.apache.spark.sql.paralagg

/**
 * The error codes that the shim raises. `python -m docs_site.scala_codes` writes this file from pyspark_paralagg/codes,
 * with the constants that the other sources use.
 */
object ErrorCodes {
  val AggregatorNull = "PARALAGG_AGGREGATOR_NULL"
  val AssumptionViolated = "PARALAGG_ASSUMPTION_VIOLATED"
  val BadConf = "PARALAGG_BAD_CONF"
  val DiskFull = "PARALAGG_DISK_FULL"
  val KeptState = "PARALAGG_KEPT_STATE"
  val LimitReached = "PARALAGG_LIMIT_REACHED"
  val ManyFall = "PARALAGG_MANY_FALL"
  val MpiNoLauncher = "PARALAGG_MPI_NO_LAUNCHER"
  val MpiRankFailed = "PARALAGG_MPI_RANK_FAILED"
  val MpiStaging = "PARALAGG_MPI_STAGING"
  val MpiTooManyRanks = "PARALAGG_MPI_TOO_MANY_RANKS"
  val NoFixpoint = "PARALAGG_NO_FIXPOINT"
  val NoSlots = "PARALAGG_NO_SLOTS"
  val OutOfMemory = "PARALAGG_OUT_OF_MEMORY"
  val Overflow = "PARALAGG_OVERFLOW"
  val PathLost = "PARALAGG_PATH_LOST"
  val PathTooLong = "PARALAGG_PATH_TOO_LONG"
  val ReferenceOutsideStep = "PARALAGG_REFERENCE_OUTSIDE_STEP"
  val ShimMismatch = "PARALAGG_SHIM_MISMATCH"
  val SqlArity = "PARALAGG_SQL_ARITY"
  val SqlClause = "PARALAGG_SQL_CLAUSE"
  val SqlCompiler = "PARALAGG_SQL_COMPILER"
  val SqlHead = "PARALAGG_SQL_HEAD"
  val SqlHeadArgument = "PARALAGG_SQL_HEAD_ARGUMENT"
  val SqlNoBase = "PARALAGG_SQL_NO_BASE"
  val SqlNoRecursion = "PARALAGG_SQL_NO_RECURSION"
  val SqlNotConfigured = "PARALAGG_SQL_NOT_CONFIGURED"
  val SqlPlace = "PARALAGG_SQL_PLACE"
  val SqlTypes = "PARALAGG_SQL_TYPES"
  val SqlUnionAll = "PARALAGG_SQL_UNION_ALL"
  val SqlUsingKey = "PARALAGG_SQL_USING_KEY"
  val TypeUnsupported = "PARALAGG_TYPE_UNSUPPORTED"

  /** Errors of the ranks and their engine, not of the query. Lazy, so that `ShimJars` links with another Scala. */
  lazy val OfRanks: Set[String] = Set(
    "PARALAGG_EXPRESSION_UNPORTABLE", "PARALAGG_INPUT_COLUMNS", "PARALAGG_MPI_ADDRESS", "PARALAGG_MPI_BAD_LAUNCHER",
    "PARALAGG_MPI_CANCELLED", "PARALAGG_MPI_MISMATCH", "PARALAGG_MPI_NO_LAUNCHER", "PARALAGG_MPI_NO_MPI4PY",
    "PARALAGG_MPI_NO_NUMBA", "PARALAGG_MPI_OUT_OF_MEMORY", "PARALAGG_MPI_PYTHON", "PARALAGG_MPI_RANK_FAILED",
    "PARALAGG_MPI_STAGING", "PARALAGG_MPI_TOO_MANY_RANKS", "PARALAGG_NOT_PORTABLE", "PARALAGG_OFFLOAD_SMALL",
    "PARALAGG_RULE_TOO_LONG")
}
