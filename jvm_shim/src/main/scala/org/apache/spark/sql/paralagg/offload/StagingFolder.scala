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
 * A folder for the files of an offloaded run. Its marker is locked for as long as this driver needs it, so that another
 * one knows a folder whose driver was killed, and removes it.
 */
private[paralagg] final class StagingFolder private (val folder: File, locked: FileChannel) {
  def delete(): Unit = {
    StagingFolder.forget(folder)
    locked.close()
    PrivateFiles.deleteFolder(folder)
    ShutdownHookManager.removeShutdownDeleteDir(folder)
  }
}

private[paralagg] object StagingFolder extends Logging {
  val Marker = "here"
  private val Prefix = "paralagg-"
  private val own = mutable.Set.empty[File]

  def create(parent: String, application: String): StagingFolder = {
    removeDead(new File(parent))
    val folder = new File(parent, s"$Prefix$application-${UUID.randomUUID()}")
    PrivateFiles.createFolder(folder)
    ShutdownHookManager.registerShutdownDeleteDir(folder)
    Seq("in", "writing").foreach(name => PrivateFiles.createFolder(new File(folder, name)))
    // Under another name until it is locked: nobody takes the folder for a dead driver's before.
    val made = folder.toPath.resolve(s".$Marker")
    val channel = PrivateFiles.channel(made.toFile)
    try channel.lock()
    catch {
      case e: IOException => logDebug(s"no locks in $parent: nobody removes what a killed driver leaves there", e)
    }
    Files.move(made, folder.toPath.resolve(Marker))
    synchronized(own += folder.getCanonicalFile)
    new StagingFolder(folder, channel)
  }

  private def forget(folder: File): Unit = synchronized(own -= folder.getCanonicalFile)

  /** Where locks do not work, as on some network file systems, or folders are another user's, nothing is removed. */
  private def removeDead(parent: File): Unit = {
    val others = Option(parent.listFiles()).toSeq.flatten.filter(_.getName.startsWith(Prefix)).filterNot(isOwn)
    others.map(f => f -> f.toPath.resolve(Marker)).filter(f => Files.exists(f._2)).foreach { case (folder, marker) =>
      try if (isUnlocked(marker)) PrivateFiles.deleteFolder(folder)
      catch { case NonFatal(e) => logDebug(s"$folder of another run stays", e) }
    }
  }

  /** The system drops a lock of this JVM when the JVM closes any channel to the same file. */
  private def isOwn(folder: File): Boolean = synchronized(own(folder.getCanonicalFile))

  private def isUnlocked(marker: Path): Boolean = {
    val channel = FileChannel.open(marker, StandardOpenOption.WRITE)
    try Option(channel.tryLock()).isDefined
    finally channel.close()
  }
}
