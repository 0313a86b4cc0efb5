"""Does a jar link with another patch level of Spark? Answered from the class files, without starting a JVM.

Beside ``shim``, which asks before it takes a bundled jar for a Spark that differs in the patch level from the one the
jar was compiled against. A class file names every foreign class, field and method that it uses in its constant pool
(JVM specification, section 4.4); the jar links if each of those that lie in Spark or Scala is still there.
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

# Tags of constants, and the bytes that follow the tag; text carries its own length.
_TEXT, _CLASS, _NAME_AND_TYPE, _MEMBERS, _TWO_SLOTS = 1, 7, 12, (9, 10, 11), (5, 6)
_SIZE = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}


@dataclass(frozen=True)
class ClassFile:
    """What linking needs to know of a class: its parents, what it declares, and what it uses of other classes."""

    parents: tuple[str, ...]
    members: frozenset[Member]
    used_classes: frozenset[str]
    used_members: frozenset[tuple[str, Member]]


def links(jar: Path, spark_jars: Path) -> bool:
    """Say whether all that the classes of ``jar`` use of Spark and of Scala is in the jars of ``spark_jars``."""
    return not missing(jar, spark_jars)


def missing(jar: Path, spark_jars: Path) -> list[str]:
    """Return what ``jar`` uses and is not there: ``owner`` or ``owner.name:descriptor``, sorted."""
    archives = [zipfile.ZipFile(path) for path in (jar, *sorted(spark_jars.glob("*.jar")))]
    try:
        library = _Library(archives)
        absent: set[str] = set()
        for entry in archives[0].namelist():
            if not entry.endswith(".class"):
                continue
            using = read_class(archives[0].read(entry))
            absent |= {name for name in using.used_classes if name.startswith(_WATCHED) and library.read(name) is None}
            absent |= {
                f"{owner}.{member[0]}:{member[1]}"
                for owner, member in using.used_members
                if owner.startswith(_WATCHED) and not library.has(owner, member)
            }
        return sorted(absent)
    finally:
        for archive in archives:
            archive.close()


class _Library:
    """The classes of some jars, read when first asked for; the first jar that has a class wins, as on a class path."""

    def __init__(self, archives: list[zipfile.ZipFile]) -> None:
        self._archive_of = {name: archive for archive in reversed(archives) for name in archive.namelist()}
        self._seen: dict[str, ClassFile | None] = {}

    def read(self, name: str) -> ClassFile | None:
        if name not in self._seen:
            archive = self._archive_of.get(name + ".class")
            self._seen[name] = read_class(archive.read(name + ".class")) if archive else None
        return self._seen[name]

    def has(self, owner: str, member: Member) -> bool:
        """Is the member in that class or in one above it? A class of the JDK or of a third party has what is asked."""
        found = self.read(owner)
        if found is None:
            return not owner.startswith(_WATCHED)
        if member in found.members:
            return True
        # Every class and interface ends in Object, which is not to count as a third party that has everything.
        above = [parent for parent in found.parents if parent != "java/lang/Object"]
        return member in _OF_OBJECT or any(self.has(parent, member) for parent in above)


_OF_OBJECT = {
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
    """The constants of a class file: ``end`` is where they end."""

    def __init__(self, data: bytes) -> None:
        self._texts: dict[int, str] = {}
        self._pairs: dict[int, tuple[int, int, int]] = {}  # index -> tag, first and second operand
        (count,) = struct.unpack_from(">H", data, 8)
        at, index = 10, 1
        while index < count:
            tag = data[at]
            at += 1
            if tag == _TEXT:
                (length,) = struct.unpack_from(">H", data, at)
                # Java's UTF-8 is not quite UTF-8; names are only compared here, so any one-to-one reading does.
                self._texts[index] = data[at + 2 : at + 2 + length].decode("latin-1")
                at += 2 + length
            else:
                if tag == _CLASS:
                    self._pairs[index] = (tag, *struct.unpack_from(">H", data, at), 0)
                elif tag == _NAME_AND_TYPE or tag in _MEMBERS:
                    self._pairs[index] = (tag, *struct.unpack_from(">HH", data, at))
                at += _SIZE[tag]
            index += 2 if tag in _TWO_SLOTS else 1
        self.end = at

    def text(self, index: int) -> str:
        return self._texts[index]

    def class_name(self, index: int) -> str:
        return self.text(self._pairs[index][1])

    def classes(self) -> Iterator[str]:
        """Yield the classes that are used; of an array the class of its elements."""
        for tag, name, _ in self._pairs.values():
            if tag == _CLASS:
                spelled = self.text(name)
                yield spelled.lstrip("[")[1:-1] if spelled.startswith("[") else spelled

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield the fields and methods that are used, each with the class that it is looked up in."""
        for tag, owner, name_and_type in self._pairs.values():
            if tag in _MEMBERS:
                _, name, descriptor = self._pairs[name_and_type]
                yield self.class_name(owner), (self.text(name), self.text(descriptor))


def read_class(data: bytes) -> ClassFile:
    """Read a class file: constant pool, parents, declared fields and methods."""
    pool = _ConstantPool(data)
    _, _, parent, interface_count = struct.unpack_from(">HHHH", data, pool.end)
    at = pool.end + 8
    interfaces = struct.unpack_from(f">{interface_count}H", data, at)
    at += 2 * interface_count
    members = set()
    for _ in range(2):  # fields, then methods
        (member_count,) = struct.unpack_from(">H", data, at)
        at += 2
        for _ in range(member_count):
            _, name, descriptor, attribute_count = struct.unpack_from(">HHHH", data, at)
            members.add((pool.text(name), pool.text(descriptor)))
            at += 8
            for _ in range(attribute_count):
                (length,) = struct.unpack_from(">I", data, at + 2)
                at += 6 + length
    return ClassFile(
        parents=tuple(pool.class_name(index) for index in (parent, *interfaces) if index),
        members=frozenset(members),
        used_classes=frozenset(pool.classes()),
        used_members=frozenset(pool.members()),
    )
