"""Encode records and branches of algebraic data types as text, and decode them to Soufflé's own text.

A structure is a symbol, as ``program.fields`` packs it. A record has the prefix ``r``, a branch its number in its type
plus 10,000,000; ``nil`` is the empty text. Joins and keys compare texts, so every executor runs structures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.syntax import Apply, Number, String
from pyspark_paralagg.program.fields import BASE, FIELD, PACK, WIDTH, field, float_text, pack

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.syntax import Term

_NUMBERS = ("number", "unsigned", "float")
_RECORD_MARK = "r"

Fields = tuple[str, ...]
"""The resolved types of fields: ``number``, ``unsigned``, ``float``, ``symbol``, ``boolean``, or a structure's name."""


@dataclass(frozen=True)
class Structure:
    """A record type, or an algebraic data type: the fields of its branches. A record has the one branch ``""``.

    ``names`` are those of a record's fields.
    """

    name: str
    branches: Mapping[str, Fields]
    names: Fields = ()

    @property
    def is_record(self) -> bool:
        """Whether it is a record type."""
        return "" in self.branches

    def prefix(self, branch: str) -> str:
        """Return the text that a structure of this branch begins with."""
        return _RECORD_MARK if self.is_record else str(BASE + list(self.branches).index(branch))


Structures = Mapping[str, Structure]


# --- terms -----------------------------------------------------------------------------------------------------------


def packed(structure: Structure, branch: str, fields: Sequence[Term], span: syntax.Span) -> Term:
    """Return the term of a structure whose ``fields`` are symbols."""
    prefix = structure.prefix(branch)
    if all(isinstance(f, String) for f in fields):
        return String(pack(prefix, *(f.value for f in fields if isinstance(f, String))), span)
    return Apply(PACK, (String(prefix, span), *fields), span)


def as_text(term: Term, type_: str, span: syntax.Span) -> Term:
    """Return the symbol of a field of this type."""
    if type_ not in _NUMBERS:
        return term
    if isinstance(term, Number) and not (type_ == "float" or isinstance(term.value, float)):
        return String(str(term.value), span)
    if isinstance(term, Number) and type_ == "float":
        return String(float_text(float(term.value)), span)
    return Apply("to_string", (term,), span)


def has_branch(term: Term, structure: Structure, branch: str, span: syntax.Span) -> syntax.Comparison:
    """Return the condition that ``term`` has this branch; of a record, that it is not ``nil``."""
    prefix = structure.prefix(branch)
    start = Apply("substr", (term, Number(0), Number(len(prefix))), span)
    return syntax.Comparison("=", start, String(prefix, span), span)


def field_of(term: Term, structure: Structure, branch: str, index: int, span: syntax.Span) -> Term:
    """Return the term of field ``index`` of ``term``; of another branch, a value that its condition rejects."""
    types = structure.branches[branch]
    is_number = types[index] in _NUMBERS
    default = String("0" if is_number else "", span)
    layout = (String(structure.prefix(branch), span), Number(len(types), span=span), Number(index, span=span))
    text = Apply(FIELD, (term, *layout, default), span)
    return Apply(f"to_{types[index]}", (text,), span) if is_number else text


# --- results ---------------------------------------------------------------------------------------------------------


def decoder(type_: str, structures: Structures) -> Callable[[str], str]:
    """Return the function from the encoded text of a ``type_`` to Soufflé's text.

    >>> pairs = {"Pair": Structure("Pair", {"": ("number", "symbol")})}
    >>> decoder("Pair", pairs)("r10000018100000207ab")
    '[7, ab]'
    """

    def decode(text: str) -> str:
        # Lists are long: their decoding must not recurse.
        output: list[str] = []
        stack: list[tuple[str, str | None]] = [(text, type_)]
        while stack:
            value, value_type = stack.pop()
            if value_type is None or value_type not in structures:
                output.append(repr(float(value)) if value_type == "float" else value)
                continue
            stack.extend(reversed(_parts(value, structures[value_type])))
        return "".join(output)

    return decode


def _parts(text: str, structure: Structure) -> list[tuple[str, str | None]]:
    """Return the pieces of Soufflé's text: each is text as it is, or a field and its type."""
    if not text:
        return [("nil", None)]
    branch = "" if structure.is_record else list(structure.branches)[int(text[:WIDTH]) - BASE]
    types = structure.branches[branch]
    prefix = structure.prefix(branch)
    pieces: list[tuple[str, str | None]] = []
    for n, type_ in enumerate(types):
        pieces += [(", ", None)] * (n > 0)
        pieces.append((field(text, prefix, len(types), n, ""), type_))
    if structure.is_record:
        return [("[", None), *pieces, ("]", None)]
    return [(f"${branch}", None), *([("(", None), *pieces, (")", None)] if types else [])]
