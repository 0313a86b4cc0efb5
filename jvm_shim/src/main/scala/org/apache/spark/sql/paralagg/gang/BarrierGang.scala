package org.apache.spark.sql.paralagg.gang

import java.nio.ByteBuffer

import scala.concurrent.{Await, Future}
import scala.concurrent.duration._
import scala.reflect.ClassTag

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.rpc.{RpcEndpointRef, RpcTimeout}
import org.apache.spark.storage.{BlockId, BroadcastBlockId, StorageLevel}
import org.apache.spark.util.RpcUtils
import org.apache.spark.util.io.ChunkedByteBuffer

/**
 * The gang of a barrier stage.
 *
 * Within an executor payloads are passed by reference. Between executors there is one message for each pair of
 * executors and round. A small one travels with the vote. A large one is a block that the receiver fetches over Spark's
 * block transfer service, with its authentication and encryption. RPC messages hold JDK and Scala types only: the
 * threads that deserialise replies do not see this jar.
 */
final class BarrierGang(
    val key: GangKey, override val part: Int, override val tasks: Int, blockSpace: Long, context: TaskContext)
    extends Gang {
  import BarrierGang._

  private val env = SparkEnv.get
  private val coordinator: RpcEndpointRef = RpcUtils.makeDriverRef(CoordinatorName, env.conf, env.rpcEnv)
  private val (executorOf, hosts, ports) = join()
  private val executors = executorOf.distinct
  private val executorIndex = executors.indexOf(env.executorId)
  private val local = executorOf.indices.filter(executorOf(_) == env.executorId).toArray
  override def localTasks: Int = local.length
  private val session = GangSession.of(key, localTasks, tasks)
  override val isOneExecutor: Boolean = executors.length == 1
  override def closeAtEnd(resource: AutoCloseable): Unit = session.closeAtEnd(resource)
  private var lastProgress = System.nanoTime()

  // Exchanges within an executor are cheap.
  override def rowsPerExchange: Int = if (isOneExecutor) 128 else 1024

  override def check(): Unit = {
    context.killTaskIfInterrupted()
    session.fail()
  }

  /** Tests whether a peer has ended the run with an error that it returns as its result. */
  def isStopped: Boolean = session.isStopped

  override def allreduce(votes: Array[Double], maxima: Int): Array[Double] = allreduce(votes, maxima, 0, null)

  override def exchange[T <: AnyRef: ClassTag](
      out: Array[T], codec: Codec[T], votes: Array[Double], maxima: Int): (Array[T], Array[Double]) = {
    val p = session.parity
    val boxes = session.box(p)
    var t = 0
    while (t < tasks) {
      boxes(part)(t) = out(t)
      t += 1
    }
    val sums = allreduce(votes, maxima, p, codec.asInstanceOf[Codec[AnyRef]])
    val in = new Array[T](tasks)
    t = 0
    while (t < tasks) {
      in(t) = boxes(t)(part).asInstanceOf[T]
      boxes(t)(part) = null
      t += 1
    }
    (in, sums)
  }

  override def allgather[T <: AnyRef: ClassTag](value: T, codec: Codec[T]): Array[T] = {
    val p = session.parity
    val all = session.gathered(p)
    all(part) = value
    allreduce(NoVotes, 0, p, codec.asInstanceOf[Codec[AnyRef]])
    val copy = Array.tabulate(tasks)(all(_).asInstanceOf[T])
    meet() // no task writes to this parity before all have read it
    all(part) = null
    copy
  }

  override def once[T <: AnyRef](make: => T): T = {
    val value = session.once(() => make)
    val meeting = session.meetings
    meet()
    session.forget(meeting)
    value
  }

  override def gather[T <: AnyRef: ClassTag](value: T): Array[T] = {
    val all = once(new Array[T](tasks))
    all(part) = value
    meet()
    all
  }

  /** Sends nothing before `ProgressNanos`, unless `isLast`: rounds of microseconds would overload the driver. */
  override def progress(isLast: Boolean)(counts: => RunCounts): Unit = {
    val now = System.nanoTime()
    if (isLast || now - lastProgress > ProgressNanos) {
      lastProgress = now
      val c = counts
      coordinator.send(("progress", key.run, c.iteration, c.delta, c.total, c.changed, c.bytes, c.heaviest))
    }
  }

  def report(json: String): Unit = coordinator.send(("report", key.run, json))

  /** Ends the gang because this task cannot go on, so that no task waits for it. */
  def abort(reason: String): Unit = {
    session.abort(reason)
    coordinator.send(("failed", key.run, key.attempt, reason))
  }

  /** Leaves the session; every task calls it once, however it ends. */
  def leave(): Unit = {
    if (session.leave()) session.published.foreach(env.blockManager.removeBlock(_, tellMaster = false))
  }

  private def join(): (Array[String], Array[String], Array[Int]) = {
    val me = env.blockManager.blockManagerId
    ask[(Array[String], Array[String], Array[Int])](
      ("join", key.run, key.attempt, part, tasks, env.executorId, me.host, me.port),
      () => context.killTaskIfInterrupted())
  }

  private def allreduce(votes: Array[Double], maxima: Int, parity: Int, codec: Codec[AnyRef]): Array[Double] =
    session.allreduce(
      votes,
      maxima,
      if (isOneExecutor) identity else acrossExecutors(_, maxima, parity, codec),
      () => context.killTaskIfInterrupted())

  /** Votes on the driver and exchanges messages with other executors; the last local task to arrive calls it. */
  private def acrossExecutors(
      sums: Array[Double], maxima: Int, parity: Int, codec: Codec[AnyRef]): Array[Double] = {
    val round = session.meetings
    val before = session.published
    def message(e: Int) = if (e == executorIndex || codec == null) null else pack(e, parity, codec)
    val messages = executors.indices.map(message).toArray
    val sizes = messages.map(m => if (m == null) 0 else m.length)
    messages.indices.foreach { e =>
      if (sizes(e) > InlineBytes) {
        val id = blockId(round, executorIndex, e)
        val data = new ChunkedByteBuffer(ByteBuffer.wrap(messages(e)))
        val stored = env.blockManager
          .putBytes(id, data, StorageLevel.MEMORY_AND_DISK_SER, tellMaster = false)(
            ClassTag.Byte.asInstanceOf[ClassTag[AnyRef]])
        if (!stored) throw new IllegalStateException(s"cannot store block $id of ${messages(e).length} bytes")
        session.published :+= id // at once: the block must be removed even if this round fails
      }
    }
    val inline = messages.map(m => if (m != null && m.length <= InlineBytes) m else null)
    val (totals, from, inlined) = ask[(Array[Double], Array[Int], Array[Array[Byte]])](
      ("vote", key.run, key.attempt, executorIndex, executors.length, sums, maxima, sizes, inline), () => check())
    // All executors have read the blocks of the previous round: they have passed its vote.
    before.foreach(env.blockManager.removeBlock(_, tellMaster = false))
    session.published = session.published.drop(before.length)
    executors.indices.foreach { e =>
      if (from(e) > 0) unpack(if (inlined(e) != null) inlined(e) else fetch(round, e), parity, codec)
    }
    totals
  }

  /** Encodes the payloads of local tasks for tasks of executor `e`: (from, to or -1 for all, length, bytes)*. */
  private def pack(e: Int, parity: Int, codec: Codec[AnyRef]): Array[Byte] = {
    val boxes = session.box(parity)
    val all = session.gathered(parity)
    val items = local.flatMap { f =>
      val each = executorOf.indices.filter(t => executorOf(t) == executors(e) && boxes(f)(t) != null).map { t =>
        val bytes = codec.encode(boxes(f)(t))
        boxes(f)(t) = null
        (f, t, bytes)
      }
      if (all(f) == null) each else each :+ ((f, -1, codec.encode(all(f))))
    }
    if (items.isEmpty) null
    else {
      val out = ByteBuffer.allocate(items.map(12 + _._3.length).sum)
      items.foreach { case (f, t, bytes) => out.putInt(f).putInt(t).putInt(bytes.length).put(bytes) }
      out.array
    }
  }

  private def unpack(bytes: Array[Byte], parity: Int, codec: Codec[AnyRef]): Unit = {
    val in = ByteBuffer.wrap(bytes)
    while (in.hasRemaining) {
      val from = in.getInt()
      val to = in.getInt()
      val item = new Array[Byte](in.getInt())
      in.get(item)
      if (to < 0) session.gathered(parity)(from) = codec.decode(item)
      else session.box(parity)(from)(to) = codec.decode(item)
    }
  }

  private def fetch(round: Long, e: Int): Array[Byte] = {
    val task = executorOf.indexOf(executors(e))
    val buffer = env.blockManager.blockTransferService
      .fetchBlockSync(hosts(task), ports(task), executors(e), blockId(round, e, executorIndex).name, null)
    try JavaUtils.bufferToArray(buffer.nioByteBuffer())
    finally buffer.release()
  }

  /** Returns an id that Spark can parse; removing the broadcast `blockSpace` also removes the blocks of dead tasks. */
  private def blockId(round: Long, from: Int, to: Int): BlockId =
    BroadcastBlockId(blockSpace, s"g_${key.attempt}_${round}_${from}_$to")

  /** Sends `message` and waits for the reply in slices, so that the task can be cancelled without an interrupt. */
  private def ask[T: ClassTag](message: Any, check: () => Unit): T = {
    val reply: Future[T] = coordinator.ask[T](message, AskTimeout)
    while (!reply.isCompleted) {
      try Await.ready(reply, 20.millis)
      catch { case _: java.util.concurrent.TimeoutException => check() }
    }
    try Await.result(reply, Duration.Zero)
    catch { case e: Exception => throw GangEnd.exception(String.valueOf(e.getMessage)) }
  }
}

object BarrierGang {
  private[paralagg] val CoordinatorName = "paralagg-coordinator"
  private val NoVotes = Array.emptyDoubleArray
  private val InlineBytes = 16 * 1024
  private val ProgressNanos = 20L * 1000 * 1000
  private val AskTimeout = new RpcTimeout(7.days, "spark.paralagg (a gang waits as long as its slowest task)")
}
