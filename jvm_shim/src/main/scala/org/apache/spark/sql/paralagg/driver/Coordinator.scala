package org.apache.spark.sql.paralagg.driver

import scala.collection.mutable

import org.apache.spark.{SparkContext, SparkEnv, SparkException}
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.{RpcAddress, RpcCallContext, RpcEndpointRef, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.paralagg.gang.{BarrierGang, RunCounts, Votes}

/**
 * The driver's endpoint for all gangs of a SparkContext: the executor of each task, votes between executors, lost
 * peers, progress. Messages are tuples of JDK types (see [[Gang]]). It passes what gangs report to the [[RunRegistry]].
 *
 * The first join creates a session. Its key is run and stage attempt; a newer attempt ends the older one.
 */
final class Coordinator(override val rpcEnv: RpcEnv) extends ThreadSafeRpcEndpoint with Logging {

  private final class Session(val tasks: Int) {
    val executor = new Array[String](tasks)
    val host = new Array[String](tasks)
    val port = new Array[Int](tasks)
    val joined = mutable.Map.empty[Int, RpcCallContext]
    val addresses = mutable.Set.empty[RpcAddress]
    val votes = mutable.Map.empty[Int, (RpcCallContext, Array[Double], Array[Int], Array[Array[Byte]])]

    /** The reason why the session ended, or null. */
    var endReason: String = _

    def end(reason: String): Unit = if (endReason == null) {
      endReason = reason
      val waitingTasks = joined.values.filter(_ => joined.size < tasks) ++ votes.values.map(_._1)
      waitingTasks.foreach(_.sendFailure(new SparkException(reason)))
      votes.clear()
    }
  }

  private val sessions = mutable.Map.empty[(Long, Int), Session]

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
    case ("join", run: Long, attempt: Int, part: Int, tasks: Int, executor: String, host: String, port: Int) =>
      val newest = sessions.keys.filter(_._1 == run).map(_._2).fold(attempt)(_ max _)
      if (newest > attempt) context.sendFailure(new SparkException(s"attempt $attempt of run $run is over"))
      else {
        sessions.keys.filter(k => k._1 == run && k._2 < attempt).toSeq.foreach(end(_, "a newer attempt has begun"))
        val session = sessions.getOrElseUpdate((run, attempt), new Session(tasks))
        if (session.endReason != null) context.sendFailure(new SparkException(session.endReason))
        else if (session.joined.contains(part)) {
          context.sendFailure(new SparkException(s"task $part of run $run is in already"))
        } else {
          session.executor(part) = executor
          session.host(part) = host
          session.port(part) = port
          session.joined(part) = context
          session.addresses += context.senderAddress
          RunRegistry.joined(run, attempt, session.joined.size)
          if (session.joined.size == tasks) {
            session.joined.values.foreach(_.reply((session.executor, session.host, session.port)))
          }
        }
      }

    case ("vote", run: Long, attempt: Int, from: Int, executors: Int, votes: Array[Double], maxima: Int,
          sizes: Array[Int], inline: Array[Array[Byte]]) =>
      sessions.get((run, attempt)) match {
        case None => context.sendFailure(new SparkException(s"run $run was ended"))
        case Some(session) if session.endReason != null => context.sendFailure(new SparkException(session.endReason))
        case Some(session) =>
          session.votes(from) = (context, votes, sizes, inline)
          if (session.votes.size == executors) {
            val all = (0 until executors).map(session.votes)
            val totals = all.head._2.clone()
            all.tail.foreach(v => Votes.add(totals, v._2, maxima))
            session.votes.clear()
            all.indices.foreach { e =>
              all(e)._1.reply((totals, all.map(_._3(e)).toArray, all.map(_._4(e)).toArray))
            }
          }
      }
  }

  override def receive: PartialFunction[Any, Unit] = {
    case ("progress", run: Long, iteration: Int, delta: Long, total: Long, changed: Long, bytes: Long,
          heaviest: Long) =>
      RunRegistry.progress(run, RunCounts(iteration, delta, total, changed, bytes, heaviest))
    case ("report", run: Long, json: String) => RunRegistry.reported(run, json)
    case ("failed", run: Long, attempt: Int, reason: String) => end((run, attempt), reason)
    case ("ended", run: Long) =>
      sessions.keys.filter(_._1 == run).toSeq.foreach { key =>
        end(key, "the job has ended")
        sessions.remove(key)
      }
  }

  /** Ends the sessions of a peer whose connection is lost, so that no task waits for it. */
  override def onDisconnected(address: RpcAddress): Unit =
    sessions.collect { case (key, s) if s.addresses.contains(address) => key }.toSeq
      .foreach(end(_, s"the executor at $address was lost"))

  private def end(key: (Long, Int), reason: String): Unit = sessions.get(key).foreach(_.end(reason))
}

object Coordinator {
  private var current: (SparkContext, RpcEndpointRef) = _

  /** Returns the context's endpoint. The first run registers it in Spark's RpcEnv; it ends with the context. */
  def of(sc: SparkContext): RpcEndpointRef = synchronized {
    if (current == null || (current._1 ne sc)) {
      val rpcEnv = SparkEnv.get.rpcEnv
      current = (sc, rpcEnv.setupEndpoint(BarrierGang.CoordinatorName, new Coordinator(rpcEnv)))
    }
    current._2
  }
}
