package org.apache.spark.sql.paralagg.offload

import java.io.{File, OutputStream}
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardOpenOption}
import java.nio.file.attribute.PosixFilePermissions.{asFileAttribute, fromString}
import java.util.EnumSet

import org.apache.commons.io.FileUtils

/** Folders and files of rows for ranks, readable by the owner only, whatever the umask (0700 and 0600). */
private[paralagg] object PrivateFiles {
  private val FolderMode = asFileAttribute(fromString("rwx------"))
  private val FileMode = asFileAttribute(fromString("rw-------"))
  private val Options =
    EnumSet.of(StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)

  /** Creates a folder with its missing parents; an existing folder, or a link to one, stays as it is. */
  def createFolders(folder: File): Path =
    if (folder.isDirectory) folder.toPath else Files.createDirectories(folder.toPath, FolderMode)

  /** Creates a folder that must not exist yet. */
  def createFolder(folder: File): Path = Files.createDirectory(folder.toPath, FolderMode)

  /** Deletes a folder. Spark's function starts `rm`, and fails in a cancelled task, whose thread is interrupted. */
  def deleteFolder(folder: File): Unit = if (folder.exists()) FileUtils.deleteDirectory(folder)

  def channel(file: File): FileChannel = FileChannel.open(file.toPath, Options, FileMode)

  def write(file: File, content: Array[Byte]): Path = {
    val out: OutputStream = java.nio.channels.Channels.newOutputStream(channel(file))
    try out.write(content)
    finally out.close()
    file.toPath
  }

  def write(file: File, text: String): Path = write(file, text.getBytes(UTF_8))
}
