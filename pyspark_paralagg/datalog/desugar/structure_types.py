"""Find the record and algebraic types of a text: of its columns, branches, and each rule's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.desugar.structures import Structure
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.datalog.resolve.types import BASES
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


class StructureTypes:
    """The structures of a text.

    ``structures`` has each by name, ``branches`` the type of each branch. ``columns`` has the structure of each column
    of the relations that have one, None for other columns.
    """

    def __init__(self, text: syntax.Text) -> None:
        self._places = Places(text.source, text.name)
        self._aliases = {c.name: c for c in text.clauses if isinstance(c, syntax.TypeAlias)}
        self._structured = {c.name: c for c in text.clauses if isinstance(c, syntax.RecordType | syntax.AlgebraicType)}
        self.structures: dict[str, Structure] = {}
        self.branches: dict[str, str] = {}
        for c in self._structured.values():
            if isinstance(c, syntax.RecordType):
                names = tuple(f.name for f in c.fields)
                self.structures[c.name] = Structure(c.name, {"": self._fields(c.fields)}, names)
                continue
            for b in c.branches:
                if b.name in self.branches:
                    message = f"branch `{b.name}` is defined twice"
                    hint = "give each branch a name of its own"
                    raise self._places.error("PARALAGG_DATALOG_STRUCTURE", message, b.span, value=b.name, hint=hint)
                self.branches[b.name] = c.name
            self.structures[c.name] = Structure(c.name, {b.name: self._fields(b.fields) for b in c.branches})
        for functor in (c for c in text.clauses if isinstance(c, syntax.Functor)):
            for a in (*functor.parameters, functor.result):
                if self._structure_of(a.type) is not None:
                    message = f"the functor `{functor.name}` takes and returns no structures"
                    hint = "pass their fields to it"
                    raise self._places.error("PARALAGG_DATALOG_STRUCTURE", message, a.span, value=a.type, hint=hint)
        declared = {
            c.relation: tuple(self._structure_of(a.type) for a in c.attributes)
            for c in text.clauses
            if isinstance(c, syntax.Declaration)
        }
        self.columns = {name: types for name, types in declared.items() if any(types)}

    def _fields(self, fields: tuple[syntax.Attribute, ...]) -> tuple[str, ...]:
        return tuple(self._resolved(f) for f in fields)

    def _resolved(self, field: syntax.Attribute) -> str:
        structure = self._structure_of(field.type)
        if structure is not None:
            return structure
        name = field.type
        for _ in self._aliases:
            if name in self._aliases:
                name = self._aliases[name].types[0]
        if name not in BASES:
            hint = did_you_mean(field.type, [*BASES, *self._aliases, *self._structured])
            message = f"type `{field.type}` does not exist"
            raise self._places.error("PARALAGG_DATALOG_TYPE", message, field.span, value=field.type, hint=hint)
        return name

    def _structure_of(self, name: str) -> str | None:
        """Return the structure that ``name`` denotes, directly or as an alias; None if it denotes none."""
        for _ in range(len(self._aliases) + 1):
            if name in self._structured:
                return name
            if name not in self._aliases:
                return None
            name = self._aliases[name].types[0]
        return None

    def of_columns(self, atom: syntax.Atom) -> tuple[str | None, ...]:
        """Return the structure of each argument of ``atom``, None for others."""
        types = self.columns.get(atom.relation, ())
        return types if len(types) == len(atom.args) else (None,) * len(atom.args)

    def of_term(self, term: object, variables: Mapping[str, str]) -> str | None:
        """Return the structure that ``term`` has; None if it has none, or for a record, which has many."""
        if isinstance(term, syntax.Variable):
            return variables.get(term.name)
        if isinstance(term, syntax.Branch):
            return self.branches.get(term.name)
        return self._structure_of(term.type) if isinstance(term, syntax.Cast) else None

    def variables(self, rule: syntax.Rule) -> dict[str, str]:
        """Return the structures of the variables of ``rule``."""
        result: dict[str, str] = {}
        all_nodes = list(nodes(rule))
        while True:
            before = len(result)
            for n in all_nodes:
                if isinstance(n, syntax.Atom):
                    for a, type_ in zip(n.args, self.of_columns(n), strict=True):
                        self._note(a, type_, result)
                elif isinstance(n, syntax.Comparison):
                    type_ = self.of_term(n.left, result) or self.of_term(n.right, result)
                    self._note(n.left, type_, result)
                    self._note(n.right, type_, result)
                elif isinstance(n, syntax.Branch):
                    self._note(n, self.branches.get(n.name), result)
                elif isinstance(n, syntax.Cast):
                    self._note(n.term, self._structure_of(n.type), result)
            if len(result) == before:
                return result

    def _note(self, term: object, type_: str | None, variables: dict[str, str]) -> None:
        """Note the structures of the variables of ``term``, which has the structure ``type_``."""
        if type_ is None:
            return
        if isinstance(term, syntax.Variable):
            variables.setdefault(term.name, type_)
        elif isinstance(term, syntax.Record | syntax.Branch):
            fields = self.structures[type_].branches.get(getattr(term, "name", ""), ())
            for a, field in zip(term.args, fields, strict=False):
                self._note(a, field if field in self.structures else None, variables)
