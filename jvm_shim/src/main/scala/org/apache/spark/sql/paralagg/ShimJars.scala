package org.apache.spark.sql.paralagg

import java.net.URL
import java.util.{Collections, LinkedHashMap, Properties}

import org.apache.spark.SPARK_VERSION

/**
 * The jars of this shim on the class path, read without their classes: a jar for another Spark may link in part only.
 * This object itself has to link with a Spark of another Scala, so it uses only Java's library. Before Python loads a
 * class of the shim, `pyspark_paralagg/session/shim_jars.py` makes the same checks.
 */
object ShimJars {
  private val Note = "META-INF/paralagg.properties"

  /** Throws PARALAGG_SHIM_MISMATCH if there is a jar for another minor of Spark, or jars of two versions. */
  def check(): Unit = {
    val byVersion = new LinkedHashMap[String, String] // the digest of the sources -> a jar
    val urls = Collections.list(Thread.currentThread().getContextClassLoader.getResources(Note)).iterator()
    while (urls.hasNext) {
      val url = urls.next()
      val note = read(url)
      val jar = url.toString.replaceFirst("^jar:", "").replaceFirst("![^!]*$", "")
      val spark = note.getProperty("spark", "")
      if (minor(spark) != minor(SPARK_VERSION)) {
        throw new ParalaggException(
          ErrorCodes.ShimMismatch,
          s"$jar is the shim for Spark $spark, but this is Spark $SPARK_VERSION.",
          "remove it from --jars, spark.jars and the class path; `paralagg shim` prints the path of the jar that fits.",
          null)
      }
      byVersion.put(note.getProperty("shim", ""), jar)
    }
    if (byVersion.size > 1) {
      val jars = byVersion.values.toString
      throw new ParalaggException(
        ErrorCodes.ShimMismatch,
        s"the class path has jars of two versions of the shim: $jars.",
        "keep the one whose path `paralagg shim` prints, and remove the other from --jars, spark.jars and the class path.",
        null)
    }
  }

  private def read(url: URL): Properties = {
    val connection = url.openConnection()
    connection.setUseCaches(false) // a cached jar stays open, also when the file has been replaced
    val in = connection.getInputStream
    val properties = new Properties
    try properties.load(in)
    finally in.close()
    properties
  }

  /** Returns the first two numbers of a version. */
  private def minor(version: String): String = version.replaceFirst("^(\\d+\\.\\d+).*$", "$1")
}
