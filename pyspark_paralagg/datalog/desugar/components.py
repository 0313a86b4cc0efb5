"""Expand components: each ``.init`` becomes the clauses of its component, with the instance's name as a prefix.

    .comp Graph<N> { .decl edge(x: N, y: N)  .decl path(x: N, y: N)  path(x, y) :- edge(x, y). }
    .init g = Graph<City>
    .decl g.edge(x: City, y: City)   .decl g.path(x: City, y: City)   g.path(x, y) :- g.edge(x, y).

A component has its own clauses and those of its bases, with parameters replaced by arguments. Names that it defines get
the prefix; all others are those of the text around the ``.init``. An overridden relation loses the rules of the bases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import rewritten
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.datalog.parse.syntax import Clause, Component, ComponentType, Span
    from pyspark_paralagg.errors import DatalogError

_MAX_DEPTH = 50
_NAMED_TYPES = (syntax.TypeAlias, syntax.RecordType, syntax.AlgebraicType)

Scope = dict[str, tuple["Component", "Scope"]]


def without_components(text: syntax.Text) -> syntax.Text:
    """Return ``text`` with its components expanded; raise ``DatalogError`` ``PARALAGG_DATALOG_COMPONENT``."""
    if not any(isinstance(c, syntax.Component | syntax.Init | syntax.Override) for c in text.clauses):
        return text
    places = Places(text.source, text.name)
    expander = _Expander(places)
    for clause in text.clauses:
        if isinstance(clause, syntax.Override):
            message = f"`.override {clause.relation}` is outside of a component"
            hint = "remove the line"
            value = clause.relation
            raise places.error("PARALAGG_DATALOG_COMPONENT", message, clause.span, value=value, hint=hint)
    scope = expander.scope(text.clauses, {})
    return replace(text, clauses=tuple(expander.expanded(text.clauses, scope, 0)))


class _Expander:
    def __init__(self, places: Places) -> None:
        self._places = places

    def _error(self, message: str, span: Span, value: str, hint: str) -> DatalogError:
        return self._places.error("PARALAGG_DATALOG_COMPONENT", message, span, value=value, hint=hint)

    def scope(self, clauses: Sequence[Clause], outer: Scope) -> Scope:
        """Return the components that ``clauses`` see: their own and those of ``outer``."""
        result: Scope = dict(outer)
        own: set[str] = set()
        for c in clauses:
            if isinstance(c, syntax.Component):
                if c.type.name in own:
                    raise self._error(f"component `{c.type.name}` is defined twice", c.span, c.type.name, "rename it")
                own.add(c.type.name)
                result[c.type.name] = (c, result)
        return result

    def expanded(self, clauses: Sequence[Clause], scope: Scope, depth: int) -> list[Clause]:
        """Return ``clauses`` with instances in place of ``.init``, and without components."""
        result: list[Clause] = []
        for c in clauses:
            if isinstance(c, syntax.Init):
                result.extend(self._instance(c, scope, depth))
            elif not isinstance(c, syntax.Component):
                result.append(c)
        return result

    def _instance(self, init: syntax.Init, scope: Scope, depth: int) -> list[Clause]:
        if depth > _MAX_DEPTH:
            message = f"component `{init.type.name}` has an instance of itself"
            raise self._error(message, init.span, init.type.name, "remove one of the `.init` lines of the cycle")
        clauses, inner = self._content(init.type, scope, ())
        local = self.expanded(clauses, inner, depth + 1)
        prefix = f"{init.name}."
        names = {c.relation: prefix + c.relation for c in local if isinstance(c, syntax.Declaration)}
        types = {c.name: prefix + c.name for c in local if isinstance(c, _NAMED_TYPES)}
        branches = {b.name: prefix + b.name for c in local if isinstance(c, syntax.AlgebraicType) for b in c.branches}
        return [_renamed(c, names, types, branches) for c in local]

    def _content(self, type_: ComponentType, scope: Scope, path: tuple[str, ...]) -> tuple[list[Clause], Scope]:
        """Return the clauses of a component and its bases, with arguments for parameters, and the components in it."""
        if type_.name not in scope:
            hint = did_you_mean(type_.name, list(scope)).replace("'", "`")
            raise self._error(f"component `{type_.name}` does not exist", type_.span, type_.name, hint)
        component, defined_in = scope[type_.name]
        if type_.name in path:
            message = f"component `{type_.name}` inherits from itself"
            raise self._error(message, type_.span, type_.name, "remove one of the bases")
        parameters, arguments = component.type.parameters, type_.parameters
        if len(parameters) != len(arguments):
            message = f"component `{type_.name}` has {len(parameters)} parameters, but here {len(arguments)}"
            raise self._error(message, type_.span, type_.name, f"see {self._places.describe(component.span)}")
        defined = {c.name for c in component.clauses if isinstance(c, _NAMED_TYPES)}  # they hide parameters
        bound = {p: a for p, a in zip(parameters, arguments, strict=True) if p not in defined}
        own = [_bound(c, bound) for c in component.clauses]
        overridden = {c.relation: c.span for c in own if isinstance(c, syntax.Override)}
        clauses: list[Clause] = []
        # A parameter may name a component of the place that has the `.init`.
        inner: Scope = {**{a: scope[a] for a in arguments if a in scope}, **defined_in}
        for base in (_bound(b, bound) for b in component.bases):
            base_scope = inner if base.name in inner else scope
            base_clauses, base_inner = self._content(base, base_scope, (*path, type_.name))
            self._check_overridable(base_clauses, overridden)
            clauses += [c for c in base_clauses if not _defines(c, overridden)]
            inner |= {n: s for n, s in base_inner.items() if n not in inner}
        inherited = {c.relation for c in clauses if isinstance(c, syntax.Declaration)}
        for relation, span in overridden.items():
            if relation not in inherited:
                message = f"no base of component `{type_.name}` declares `{relation}`"
                raise self._error(message, span, relation, "remove the `.override`")
        clauses += [c for c in own if not isinstance(c, syntax.Override)]
        return clauses, self.scope([c for c in own if isinstance(c, syntax.Component)], inner)

    def _check_overridable(self, clauses: Sequence[Clause], overridden: Mapping[str, Span]) -> None:
        for c in clauses:
            if isinstance(c, syntax.Declaration) and c.relation in overridden and "overridable" not in c.qualifiers:
                message = f"`{c.relation}` is not overridable"
                hint = f"declare it so: .decl {c.relation}(...) overridable"
                raise self._error(message, overridden[c.relation], c.relation, hint)


def _defines(clause: Clause, relations: Mapping[str, Span]) -> bool:
    """Return whether ``clause`` is a rule or a subsumption of one of ``relations``."""
    if isinstance(clause, syntax.Subsumption):
        return clause.lesser.relation in relations
    return isinstance(clause, syntax.Rule) and any(h.relation in relations for h in clause.heads)


def _bound(node: Any, bound: Mapping[str, str]) -> Any:  # noqa: ANN401 - any node of the tree
    """Return ``node`` with arguments in place of parameters."""
    if not bound:
        return node

    def change(n: Any) -> Any:  # noqa: ANN401 - likewise
        if isinstance(n, syntax.ComponentType):
            return replace(n, name=bound.get(n.name, n.name), parameters=tuple(bound.get(p, p) for p in n.parameters))
        if isinstance(n, syntax.Component):  # its own parameters hide these
            hidden = {k: v for k, v in bound.items() if k not in n.type.parameters}
            return n if hidden == bound else _bound(n, hidden)
        return _with_types(n, bound)

    if isinstance(node, syntax.Component):
        visible = {k: v for k, v in bound.items() if k not in node.type.parameters}
        clauses = tuple(_bound(c, visible) for c in node.clauses)
        return replace(node, bases=tuple(_bound(b, visible) for b in node.bases), clauses=clauses)
    return rewritten(node, change)


def _renamed(
    clause: Clause, relations: Mapping[str, str], types: Mapping[str, str], branches: Mapping[str, str]
) -> Clause:
    """Return ``clause`` with new names for ``relations``, ``types`` and ``branches``."""

    def change(n: Any) -> Any:  # noqa: ANN401 - any node of the tree
        if isinstance(n, syntax.Atom | syntax.Declaration | syntax.Directive | syntax.Limit | syntax.Assume):
            return replace(n, relation=relations.get(n.relation or "", n.relation))  # type: ignore[arg-type] # only Assume has None, and keeps it
        if isinstance(n, _NAMED_TYPES):
            n = replace(n, name=types.get(n.name, n.name))
        if isinstance(n, syntax.Branch | syntax.BranchType):
            n = replace(n, name=branches.get(n.name, n.name))
        if isinstance(n, syntax.HeadAggregate):
            n = replace(n, written=branches.get(n.written, n.written))
        return _with_types(n, types)

    result: Clause = rewritten(clause, change)
    return result


def _with_types(node: Any, types: Mapping[str, str]) -> Any:  # noqa: ANN401 - any node of the tree
    """Return ``node``, without its parts, with other names for ``types``."""
    if isinstance(node, syntax.Attribute | syntax.Cast):
        return replace(node, type=types.get(node.type, node.type))
    if isinstance(node, syntax.TypeAlias):
        return replace(node, types=tuple(types.get(t, t) for t in node.types))
    return node
