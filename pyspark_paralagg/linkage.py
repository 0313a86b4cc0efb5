"""Does a jar link with another patch level of Spark? Answered from the class files, without starting a JVM.

Beside ``shim``, which asks before it takes a bundled jar for a Spark that differs in the patch level from the one the
jar was compiled against. A class file names every foreign class, field and method that it uses in its constant pool
(JVM specification, section 4.4); the jar links if each of those that lie in Spark or Scala is still there.
"""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

_WATCHED = ("org/apache/spark/", "scala/")
_CLASS, _FIELD, _METHOD, _INTERFACE_METHOD, _STRING_UTF8, _NAME_AND_TYPE = 7, 9, 10, 11, 1, 12
_MEMBERS = (_FIELD, _METHOD, _INTERFACE_METHOD)
_TWO_SLOTS = (5, 6)  # long and double
# Bytes of a constant after its tag; a UTF-8 constant carries its own length.
_SIZE = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}

Member = tuple[str, str]
"""A field's or method's name and descriptor."""


@dataclass
class ClassFile:
    """What linking needs to know of a class: its parents, what it declares, and what it uses of other classes."""

    parents: list[str]
    members: set[Member] = field(default_factory=set)
    used_classes: set[str] = field(default_factory=set)
    used_members: set[tuple[str, Member]] = field(default_factory=set)


def links(jar: Path, spark_jars: Path) -> bool:
    """Say whether all that the classes of ``jar`` use of Spark and of Scala is found in the jars of ``spark_jars``."""
    return not missing(jar, spark_jars)


def missing(jar: Path, spark_jars: Path) -> list[str]:
    """Return the classes and members that ``jar`` uses and that are not there, ``owner.name:descriptor``, sorted."""
    with zipfile.ZipFile(jar) as own:
        entries = {name: own.read(name) for name in own.namelist() if name.endswith(".class")}
    library = _Library(spark_jars, entries)
    try:
        absent: set[str] = set()
        for entry in entries:
            used = library.read(entry.removesuffix(".class"))
            if used is None:
                continue
            absent |= {name for name in used.used_classes if name.startswith(_WATCHED) and library.read(name) is None}
            for owner, member in used.used_members:
                if owner.startswith(_WATCHED) and not library.declares(owner, member):
                    absent.add(f"{owner}.{member[0]}:{member[1]}")
        return sorted(absent)
    finally:
        library.close()


class _Library:
    """The classes of the jar itself and of Spark's jars, read when first asked for."""

    def __init__(self, folder: Path, own: dict[str, bytes]) -> None:
        self._own = own
        self._seen: dict[str, ClassFile | None] = {}
        self._archives = [zipfile.ZipFile(path) for path in sorted(folder.glob("*.jar"))]
        self._archive_of: dict[str, zipfile.ZipFile] = {}
        for archive in self._archives:
            for name in archive.NameToInfo:
                if name.endswith(".class"):
                    self._archive_of.setdefault(name, archive)

    def close(self) -> None:
        for archive in self._archives:
            archive.close()

    def read(self, name: str) -> ClassFile | None:
        if name not in self._seen:
            entry = name + ".class"
            data = self._own.get(entry)
            if data is None and entry in self._archive_of:
                data = self._archive_of[entry].read(entry)
            self._seen[name] = None if data is None else read_class(data)
        return self._seen[name]

    def declares(self, owner: str, member: Member) -> bool:
        """Is the member in that class or above it? Above may lie the JDK, whose members are taken for granted."""
        found = self.read(owner)
        if found is None:
            return not owner.startswith(_WATCHED)
        return (
            member in found.members
            or any(self.declares(parent, member) for parent in found.parents if self.read(parent) is not None)
            or self._inherits_from_jdk(found, member)
        )

    def _inherits_from_jdk(self, found: ClassFile, member: Member) -> bool:
        if member in _OBJECT_METHODS:
            return True
        return any(
            not parent.startswith(_WATCHED) and parent != "java/lang/Object" and self.read(parent) is None
            for parent in found.parents
        )


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


def read_class(data: bytes) -> ClassFile:
    """Read a class file: constant pool, parents, declared fields and methods."""
    texts: dict[int, str] = {}
    refs: dict[int, tuple[int, int, int]] = {}  # index -> tag, first and second operand
    (count,) = struct.unpack_from(">H", data, 8)
    at, index = 10, 1
    while index < count:
        tag = data[at]
        at += 1
        if tag == _STRING_UTF8:
            (length,) = struct.unpack_from(">H", data, at)
            # Java's UTF-8 is not quite UTF-8; names are only compared here, so any one-to-one reading does.
            texts[index] = data[at + 2 : at + 2 + length].decode("latin-1")
            at += 2 + length
        else:
            size = _SIZE[tag]
            if tag in _MEMBERS or tag == _NAME_AND_TYPE:
                refs[index] = (tag, *struct.unpack_from(">HH", data, at))
            elif tag == _CLASS:
                refs[index] = (tag, *struct.unpack_from(">H", data, at), 0)
            at += size
        index += 2 if tag in _TWO_SLOTS else 1

    def class_name(ref: int) -> str:
        return texts[refs[ref][1]]

    _, _, parent, interface_count = struct.unpack_from(">HHHH", data, at)
    at += 8
    interfaces = struct.unpack_from(f">{interface_count}H", data, at)
    at += 2 * interface_count
    result = ClassFile([class_name(ref) for ref in (parent, *interfaces) if ref])
    for _ in range(2):  # fields, then methods
        (member_count,) = struct.unpack_from(">H", data, at)
        at += 2
        for _ in range(member_count):
            _, name, descriptor, attribute_count = struct.unpack_from(">HHHH", data, at)
            result.members.add((texts[name], texts[descriptor]))
            at += 8
            for _ in range(attribute_count):
                (length,) = struct.unpack_from(">I", data, at + 2)
                at += 6 + length
    for tag, first, second in refs.values():
        if tag == _CLASS:
            result.used_classes.add(texts[first].lstrip("[").removeprefix("L").removesuffix(";"))
        elif tag in _MEMBERS:
            _, name, descriptor = refs[second]
            result.used_members.add((class_name(first), (texts[name], texts[descriptor])))
    return result
