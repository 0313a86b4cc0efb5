// GraphX has no Python API, so its queries are written here. `systems/graphx.py` compiles this file with the Scala compiler
// among pyspark's own jars and calls `GraphXQueries` through py4j.
package benchmarks

import org.apache.spark.graphx.{Edge, EdgeDirection, Graph, Pregel}
import org.apache.spark.graphx.lib.{ConnectedComponents, PageRank}
import org.apache.spark.sql.SparkSession

/** What one run found: the checksum's numbers, and the seconds from the graph in memory to the last round. */
final class GraphXAnswer(val whole: Array[Long], val real: Array[Double], val loop: Double)

object GraphXQueries {

  def answer(spark: SparkSession, query: String, edges: String, source: Long, rounds: Int, damping: Double): GraphXAnswer = {
    val rows = spark.read.parquet(edges).select("src", "dst", "w").rdd
    val graph = Graph.fromEdges(rows.map(r => Edge(r.getLong(0), r.getLong(1), r.getLong(2))), 0L).cache()
    graph.edges.count()
    graph.vertices.count()
    val start = System.nanoTime()
    def seconds: Double = (System.nanoTime() - start) / 1e9
    try query match {
      case "sssp" =>
        val dist = shortestPaths(graph, source).vertices.values.filter(_ < Long.MaxValue)
        val (count, sum) = countAndSum(dist)
        new GraphXAnswer(Array(count, sum), Array(), seconds)
      case "components" =>
        val (count, sum) = countAndSum(ConnectedComponents.run(graph).vertices.values)
        new GraphXAnswer(Array(count, sum), Array(), seconds)
      case "pagerank" =>
        // Its first ranks are 1; `normalized = false` leaves out the scaling at the end, which nobody else does.
        val ranked = PageRank.runWithOptions(graph, rounds, 1 - damping, None, normalized = false).vertices.values.cache()
        val (sum, squares) = ranked.map(r => (r, r * r)).fold((0.0, 0.0))((a, b) => (a._1 + b._1, a._2 + b._2))
        val count = ranked.count()
        ranked.unpersist()
        new GraphXAnswer(Array(count), Array(sum, squares), seconds)
    } finally {
      graph.unpersist()
      spark.sparkContext.getPersistentRDDs.values.foreach(_.unpersist()) // GraphX leaves the last rounds behind
    }
  }

  /** Bellman-Ford as in GraphX's guide: a vertex that improved tells its neighbours. */
  private def shortestPaths(graph: Graph[Long, Long], source: Long): Graph[Long, Long] = {
    val start = graph.mapVertices((id, _) => if (id == source) 0L else Long.MaxValue)
    Pregel(start, Long.MaxValue, activeDirection = EdgeDirection.Out)(
      (_, dist, message) => math.min(dist, message),
      edge =>
        if (edge.srcAttr < Long.MaxValue && edge.srcAttr + edge.attr < edge.dstAttr) Iterator((edge.dstId, edge.srcAttr + edge.attr))
        else Iterator.empty,
      (a, b) => math.min(a, b)
    )
  }

  private def countAndSum(values: org.apache.spark.rdd.RDD[Long]): (Long, Long) =
    values.map(v => (1L, v)).fold((0L, 0L))((a, b) => (a._1 + b._1, a._2 + b._2))
}
