"""Check from the class files, without a JVM, whether a jar links with another patch level of Spark.

``shim`` calls it before it uses a bundled jar that was compiled against another patch level. The constant pool of a
class file names every foreign class, field and method that the class uses (JVM specification, section 4.4). The jar
links if Spark and Scala still have each of theirs.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Member = tuple[str, str]
"""A field's or method's name and descriptor."""

_WATCHED = ("org/apache/spark/", "scala/")

# Tags of constants, and the number of bytes after each tag; a text constant is preceded by its length.
_TEXT, _CLASS, _NAME_AND_TYPE, _MEMBERS, _TWO_SLOTS = 1, 7, 12, (9, 10, 11), (5, 6)
_SIZE = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


@dataclass(frozen=True)
class ClassFile:
    """The parts of a class that linking depends on: parents, declared members, used classes and their members."""

    parents: tuple[str, ...]
    members: frozenset[Member]
    used_classes: frozenset[str]
    used_members: frozenset[tuple[str, Member]]


def links(jar: Path, spark_jars: Path) -> bool:
    """Return whether the jars in ``spark_jars`` have everything of Spark and Scala that the classes of ``jar`` use."""
    return not missing(jar, spark_jars)


def missing(jar: Path, spark_jars: Path) -> list[str]:
    """Return what ``jar`` uses and ``spark_jars`` lack: ``owner`` or ``owner.name:descriptor``, sorted."""
    archives = [zipfile.ZipFile(path) for path in (jar, *sorted(spark_jars.glob("*.jar")))]
    try:
        library = _Library(archives)
        absent: set[str] = set()
        for entry in archives[0].namelist():
            if not entry.endswith(".class"):
                continue
            class_file = read_class(archives[0].read(entry))
            absent |= {
                name for name in class_file.used_classes if name.startswith(_WATCHED) and library.read(name) is None
            }
            absent |= {
                f"{owner}.{member[0]}:{member[1]}"
                for owner, member in class_file.used_members
                if owner.startswith(_WATCHED) and not library.has(owner, member)
            }
        return sorted(absent)
    finally:
        for archive in archives:
            archive.close()


class _Library:
    """The classes of some jars, read on first use; the first jar that has a class wins, as on a class path."""

    def __init__(self, archives: list[zipfile.ZipFile]) -> None:
        self._archive_of = {name: archive for archive in reversed(archives) for name in archive.namelist()}
        self._classes: dict[str, ClassFile | None] = {}

    def read(self, name: str) -> ClassFile | None:
        if name not in self._classes:
            archive = self._archive_of.get(name + ".class")
            self._classes[name] = read_class(archive.read(name + ".class")) if archive else None
        return self._classes[name]

    def has(self, owner: str, member: Member) -> bool:
        """Return whether ``owner`` or an ancestor has ``member``; classes of the JDK and of third parties have all."""
        class_file = self.read(owner)
        if class_file is None:
            return not owner.startswith(_WATCHED)
        if member in class_file.members:
            return True
        # Object is an ancestor of every class, so it must not count as a third-party class, which has every member.
        ancestors = [parent for parent in class_file.parents if parent != "java/lang/Object"]
        return member in _OBJECT_METHODS or any(self.has(parent, member) for parent in ancestors)


_OBJECT_METHODS = {
    ("getClass", "()Ljava/lang/Class;"),
    ("hashCode", "()I"),
    ("equals", "(Ljava/lang/Object;)Z"),
    ("clone", "()Ljava/lang/Object;"),
    ("toString", "()Ljava/lang/String;"),
    ("notify", "()V"),
    ("notifyAll", "()V"),
    ("wait", "()V"),
    ("wait", "(J)V"),
}


class _ConstantPool:
    """The constants of a class file. ``end`` is the offset of the first byte after them."""

    def __init__(self, data: bytes) -> None:
        self._texts: dict[int, str] = {}
        self._pairs: dict[int, tuple[int, int, int]] = {}  # index -> tag, first and second operand
        (count,) = struct.unpack_from(">H", data, 8)
        offset, index = 10, 1
        while index < count:
            tag = data[offset]
            offset += 1
            if tag == _TEXT:
                (length,) = struct.unpack_from(">H", data, offset)
                # Java's modified UTF-8 differs from UTF-8; names are only compared, so latin-1 is enough.
                self._texts[index] = data[offset + 2 : offset + 2 + length].decode("latin-1")
                offset += 2 + length
            else:
                if tag == _CLASS:
                    self._pairs[index] = (tag, *struct.unpack_from(">H", data, offset), 0)
                elif tag == _NAME_AND_TYPE or tag in _MEMBERS:
                    self._pairs[index] = (tag, *struct.unpack_from(">HH", data, offset))
                offset += _SIZE[tag]
            index += 2 if tag in _TWO_SLOTS else 1
        self.end = offset

    def text(self, index: int) -> str:
        return self._texts[index]

    def class_name(self, index: int) -> str:
        return self.text(self._pairs[index][1])

    def classes(self) -> Iterator[str]:
        """Yield the classes that are used; for an array, the class of its elements."""
        for tag, index, _ in self._pairs.values():
            if tag == _CLASS:
                name = self.text(index)
                yield name.lstrip("[")[1:-1] if name.startswith("[") else name

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield the fields and methods that are used, each with the class in which it is looked up."""
        for tag, owner, name_and_type in self._pairs.values():
            if tag in _MEMBERS:
                _, name, descriptor = self._pairs[name_and_type]
                yield self.class_name(owner), (self.text(name), self.text(descriptor))


def read_class(data: bytes) -> ClassFile:
    """Read a class file: constant pool, parents, declared fields and methods."""
    pool = _ConstantPool(data)
    _, _, parent, interface_count = struct.unpack_from(">HHHH", data, pool.end)
    offset = pool.end + 8
    interfaces = struct.unpack_from(f">{interface_count}H", data, offset)
    offset += 2 * interface_count
    members = set()
    for _ in range(2):  # fields, then methods
        (member_count,) = struct.unpack_from(">H", data, offset)
        offset += 2
        for _ in range(member_count):
            _, name, descriptor, attribute_count = struct.unpack_from(">HHHH", data, offset)
            members.add((pool.text(name), pool.text(descriptor)))
            offset += 8
            for _ in range(attribute_count):
                (length,) = struct.unpack_from(">I", data, offset + 2)
                offset += 6 + length
    return ClassFile(
        parents=tuple(pool.class_name(index) for index in (parent, *interfaces) if index),
        members=frozenset(members),
        used_classes=frozenset(pool.classes()),
        used_members=frozenset(pool.members()),
    )
