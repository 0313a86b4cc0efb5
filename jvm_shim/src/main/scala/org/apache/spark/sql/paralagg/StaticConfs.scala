package org.apache.spark.sql.paralagg

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * Confs that name a program or a folder (`is_static` in `pyspark_paralagg/session/conf.py`). Spark refuses to set them
 * in a session, be it by `SET`, by `spark.conf.set` or over Connect. They are read from the application's conf only, so
 * a value that got into a session's conf on another way has no effect.
 */
object StaticConfs {
  val CheckpointDir = "spark.paralagg.checkpoint.dir"
  val MpiLauncher = "spark.paralagg.mpi.launcher"
  val MpiStagingDir = "spark.paralagg.mpi.stagingDir"
  val Python = "spark.paralagg.python"
  val PythonPath = "spark.paralagg.pythonPath"

  val All: Seq[String] = Seq(CheckpointDir, MpiLauncher, MpiStagingDir, Python, PythonPath)

  private val Doc =
    "It names a program or a folder, so it is set when the application starts or by ra.attach(spark, {...}) in Python."

  /** Tells Spark that they are static. Another class loader of this JVM may have done it already. */
  def register(): Unit = All.synchronized {
    All.filterNot(SQLConf.isStaticConfigKey)
      .foreach(SQLConf.buildStaticConf(_).doc(Doc).version("4.1.0").stringConf.createOptional)
  }

  /** The value of `key` in the application that runs. */
  def get(key: String): Option[String] = SparkContext.getActive.flatMap(_.conf.getOption(key))

  /** For Python, which has checked `value` (null: none). The session's own copy follows, for those who look at it. */
  def set(session: SparkSession, key: String, value: String): Unit = {
    require(All.contains(key), key)
    val application = session.sparkContext.conf
    val own = session.asInstanceOf[org.apache.spark.sql.classic.SparkSession].sessionState.conf
    if (value == null) {
      application.remove(key)
      own.unsetConf(key)
    } else {
      application.set(key, value)
      own.setConfString(key, value)
    }
  }
}
