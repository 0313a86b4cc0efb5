"""Read structures in Soufflé's text, as files of facts have them, and encode them as ``structures`` does.

    [1, [2, nil]]     $Add($Number(1), $Leaf)     $Couple("a, b", c)

A symbol inside of a structure ends at `,`, `)` or `]`, without the blanks around it. Between double quotes it may have
these signs, too; a backslash there stands before a quote or a backslash.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from pyspark_paralagg.program.fields import float_text, pack

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.desugar.structures import Structure, Structures

_BLANKS = re.compile(r"\s*")
_BRANCH = re.compile(r"\$(?P<name>[\w?]+(?:\.[\w?]+)*)")
_NIL = re.compile(r"nil(?![\w?])")
_QUOTED = re.compile(r'"(?P<text>(?:\\.|[^"\\])*)"', re.DOTALL)
_SYMBOL, _NUMBER = re.compile(r"[^,)\]]*"), re.compile(r"[^,)\]\s]*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_SHOWN = 40


class _Open(NamedTuple):
    """A structure whose fields are being read."""

    structure: Structure
    branch: str
    fields: list[str]

    @property
    def types(self) -> tuple[str, ...]:
        return self.structure.branches[self.branch]


class StructureReader:
    """Reads structures of ``type_``.

    >>> from pyspark_paralagg.datalog.desugar.structures import Structure
    >>> pairs = {"Pair": Structure("Pair", {"": ("number", "symbol")})}
    >>> StructureReader("Pair", pairs).encode("[7, ab]")
    'r10000018100000207ab'
    """

    def __init__(self, type_: str, structures: Structures) -> None:
        self.type = type_
        self._structures = structures

    def encode(self, text: str) -> str:
        """Return the encoding of ``text``; raise ``ValueError`` with the reason if it is no such structure."""
        value, position = self.read(text, 0)
        if text[position:].strip():
            _refuse(text, position, "nothing")
        return value

    def read(self, text: str, position: int) -> tuple[str, int]:
        """Return the encoding of the structure at ``position``, and the position after it; raise like ``encode``."""
        open_: list[_Open] = []  # lists are long: reading them must not recurse
        type_ = self.type
        while True:
            position = _after_blanks(text, position)
            started = self._start(text, position, type_)
            if isinstance(started[0], _Open):
                open_.append(started[0])
                position = started[1]
                type_ = started[0].types[0]
                continue
            value, position = started
            while open_:
                current = open_[-1]
                current.fields.append(str(value))
                position = _after_blanks(text, position)
                if len(current.fields) < len(current.types):
                    position = _expect(text, position, ",")
                    type_ = current.types[len(current.fields)]
                    break
                position = _expect(text, position, "]" if current.structure.is_record else ")")
                value = pack(current.structure.prefix(current.branch), *current.fields)
                open_.pop()
            else:
                return str(value), position

    def _start(self, text: str, position: int, type_: str) -> tuple[_Open | str, int]:
        """Begin a structure and return it, or return the whole value; and the position after what was read."""
        structure = self._structures.get(type_)
        if structure is None:
            return _plain(text, position, type_)
        if structure.is_record:
            nil = _NIL.match(text, position)
            if nil:
                return "", nil.end()
            position, branch = _expect(text, position, "["), ""
        else:
            match = _BRANCH.match(text, position)
            if match is None or match["name"] not in structure.branches:
                _refuse(text, position, _branches(structure))
            branch, position = match["name"], match.end()
            if structure.branches[branch]:
                position = _expect(text, _after_blanks(text, position), "(")
            elif text.startswith("()", position):
                position += 2
        if structure.branches[branch]:
            return _Open(structure, branch, []), position
        if structure.is_record:
            position = _expect(text, _after_blanks(text, position), "]")
        return pack(structure.prefix(branch)), position


def _plain(text: str, position: int, type_: str) -> tuple[str, int]:
    """Return the text of a field that is no structure, and the position after it."""
    quoted = _QUOTED.match(text, position) if type_ == "symbol" else None
    if quoted:
        return re.sub(r"\\(.)", r"\1", quoted["text"], flags=re.DOTALL), quoted.end()
    match = (_SYMBOL if type_ == "symbol" else _NUMBER).match(text, position)
    value, end = ("", position) if match is None else (match.group().rstrip(), match.end())
    if type_ == "float":
        try:
            return float_text(float(value)), end
        except ValueError:
            _refuse(text, position, "a number")
    if type_ in ("number", "unsigned"):
        if not _INTEGER.fullmatch(value) or (type_ == "unsigned" and value.startswith("-")):
            _refuse(text, position, "a number")
        return str(int(value)), end
    return value, end


def _branches(structure: Structure) -> str:
    return f"a branch of {structure.name}: " + ", ".join(f"${b}" for b in structure.branches)


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return position if match is None else match.end()


def _expect(text: str, position: int, sign: str) -> int:
    if not text.startswith(sign, position):
        _refuse(text, position, f"`{sign}`")
    return position + 1


def _refuse(text: str, position: int, expected: str) -> NoReturn:
    rest = text[position : position + _MAX_SHOWN]
    message = f"has {rest!r} at character {position + 1}, but {expected} is expected"
    raise ValueError(message)
