package org.apache.spark.sql.paralagg.offload

import java.io.{File, IOException}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, StandardOpenOption}
import java.util.UUID

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.util.ShutdownHookManager

/**
 * A folder for the files of an offloaded run. The JVM that created it holds a lock on its marker. So the next run
 * recognises the folder of a killed driver or executor, and removes it.
 */
private[paralagg] final class StagingFolder private (val folder: File, lock: FileChannel) {
  def delete(): Unit = {
    ShutdownHookManager.removeShutdownDeleteDir(folder)
    try PrivateFiles.deleteFolder(folder)
    finally { // not before, so that nobody else deletes it at the same time
      StagingFolder.unregister(folder)
      lock.close()
    }
  }
}

private[paralagg] object StagingFolder extends Logging {
  val Marker = "here"
  private val Prefix = "paralagg-"
  private val ownFolders = mutable.Set.empty[File]

  def create(parent: File, name: String): StagingFolder = {
    removeDead(parent)
    val folder = new File(parent, s"$Prefix$name-${UUID.randomUUID()}")
    PrivateFiles.createFolder(folder)
    ShutdownHookManager.registerShutdownDeleteDir(folder)
    // The marker is renamed after it is locked, so that no other JVM removes the folder before.
    val unlocked = folder.toPath.resolve(s".$Marker")
    val channel = PrivateFiles.channel(unlocked.toFile)
    try channel.lock()
    catch {
      case e: IOException => logDebug(s"no locks in $parent: nobody removes what a killed JVM leaves there", e)
    }
    Files.move(unlocked, folder.toPath.resolve(Marker))
    synchronized(ownFolders += folder.getCanonicalFile)
    new StagingFolder(folder, channel)
  }

  private def unregister(folder: File): Unit = synchronized(ownFolders -= folder.getCanonicalFile)

  /** Removes folders of killed JVMs, but none of other users, and none without locks (network file systems). */
  private def removeDead(parent: File): Unit = {
    val others = Option(parent.listFiles()).toSeq.flatten.filter(_.getName.startsWith(Prefix)).filterNot(isOwn)
    others.map(f => f -> f.toPath.resolve(Marker)).filter(f => Files.exists(f._2)).foreach { case (folder, marker) =>
      try if (isUnlocked(marker)) PrivateFiles.deleteFolder(folder)
      catch { case NonFatal(e) => logDebug(s"$folder of another run stays", e) }
    }
  }

  /** Tests for a folder of this JVM: closing any channel to its marker would release the lock. */
  private def isOwn(folder: File): Boolean = synchronized(ownFolders(folder.getCanonicalFile))

  private def isUnlocked(marker: Path): Boolean = {
    val channel = FileChannel.open(marker, StandardOpenOption.WRITE)
    try Option(channel.tryLock()).isDefined
    finally channel.close()
  }
}
