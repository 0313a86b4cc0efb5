package org.apache.spark.sql.paralagg

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * The confs that name a program or a folder (`is_static` in `pyspark_paralagg/session/conf.py`). Spark refuses to set
 * them in a session, by `SET`, by `spark.conf.set` or over Connect. The shim reads them only from the application's
 * conf, so any other value in a session's conf has no effect.
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

  /** Registers them as static with Spark, unless another class loader of this JVM has done it. */
  def register(): Unit = All.synchronized {
    All.filterNot(SQLConf.isStaticConfigKey)
      .foreach(SQLConf.buildStaticConf(_).doc(Doc).version("4.1.0").stringConf.createOptional)
  }

  /** Returns the value of `key` in the running application. */
  def get(key: String): Option[String] = SparkContext.getActive.flatMap(_.conf.getOption(key))

  /** Sets a conf, null removes it. Python has checked `value`. It also sets the session's copy, which users see. */
  def set(session: SparkSession, key: String, value: String): Unit = {
    require(All.contains(key), key)
    val application = session.sparkContext.conf
    val sessionConf = session.asInstanceOf[org.apache.spark.sql.classic.SparkSession].sessionState.conf
    if (value == null) {
      application.remove(key)
      sessionConf.unsetConf(key)
    } else {
      application.set(key, value)
      sessionConf.setConfString(key, value)
    }
  }
}
