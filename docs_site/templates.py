"""Messages as templates: what an expression that makes a text may say, as far as the source tells.

``f"no column {key!r}"`` is ``no column {key}``; a name stands for what it was assigned before, a parameter for what the
module's calls hand in; what cannot be told is ``…``.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

OPEN = "…"


class Templates:
    """Of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._open_names: list[str] = []
        self._scopes: dict[ast.AST, ast.AST] = {}
        for scope in ast.walk(tree):
            if isinstance(scope, ast.FunctionDef):
                self._scopes |= dict.fromkeys(ast.walk(scope), scope)  # inner functions come later and win

    def alternatives(self, node: ast.expr | None) -> list[str]:
        """What ``node`` may say; those that say nothing are left out. None says nothing."""
        found: list[str] = []
        match node:
            case ast.IfExp(body=one, orelse=other):
                found = self.alternatives(one) + self.alternatives(other)
            case ast.BoolOp(values=values):
                found = [text for value in values for text in self.alternatives(value)]
            case ast.Name(id=name):
                if name not in self._open_names:  # as it is in `message = message.strip()`
                    self._open_names.append(name)
                    found = [text for value in self._values(node) for text in self.alternatives(value)]
                    self._open_names.pop()
            case ast.expr():
                found = [self.text(node)]
        return list(dict.fromkeys(text for text in found if text.strip(OPEN + " ")))

    def text(self, node: ast.expr) -> str:  # noqa: PLR0911 - one return each kind of expression
        """The template of ``node``, alternatives beside each other."""
        match node:
            case ast.Constant(value=value):
                return value if isinstance(value, str) else ""
            case ast.JoinedStr(values=parts):
                return "".join(self.text(part) for part in parts)
            case ast.FormattedValue(value=value):
                return _named(value)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self.text(left) + self.text(right)
            case ast.Name() | ast.IfExp() | ast.BoolOp():
                return " / ".join(self.alternatives(node)) or OPEN
            case ast.Call(func=ast.Name(id="did_you_mean")):
                return "did you mean {name}?"
            case ast.Call(func=ast.Attribute(value=inner, attr="replace" | "rstrip" | "capitalize")):
                return self.text(inner)
        return OPEN

    def is_parameter(self, name: ast.Name, functions: Container[str]) -> bool:
        """Whether ``name`` is handed in, to one of ``functions``."""
        scope = self._scopes.get(name)
        return isinstance(scope, ast.FunctionDef) and scope.name in functions and name.id in _parameters(scope)

    def _values(self, name: ast.Name) -> list[ast.expr]:
        """What ``name`` may stand for: by assignments before, by the calls of its function, by the module."""
        function = self._scopes.get(name)
        if isinstance(function, ast.FunctionDef):
            assigned = self._assigned(name, function)
            if assigned or name.id in _parameters(function):
                return assigned or self._handed_in(function, name.id)
        return [n.value for n in self._tree.body if isinstance(n, ast.Assign) and _assigns(n, name.id)]

    @staticmethod
    def _assigned(name: ast.Name, function: ast.FunctionDef) -> list[ast.expr]:
        """Assignments above ``name``; of several that were each raised with, the last ones."""
        nodes = list(ast.walk(function))
        raised = [
            n.lineno
            for n in nodes
            if isinstance(n, ast.Raise)
            and (n.end_lineno or 0) < name.lineno
            and any(isinstance(inside, ast.Name) and inside.id == name.id for inside in ast.walk(n))
        ]
        above = [n for n in nodes if isinstance(n, ast.Assign) and _assigns(n, name.id) and n.lineno < name.lineno]
        return [n.value for n in above if n.lineno > max(raised, default=0)] or [n.value for n in above]

    def _handed_in(self, function: ast.FunctionDef, parameter: str) -> list[ast.expr]:
        parameters = [p for p in _parameters(function) if p not in ("self", "cls")]
        found = []
        for call in ast.walk(self._tree):
            if isinstance(call, ast.Call) and called(call) == function.name:
                found += [v for p, v in zip(parameters, call.args, strict=False) if p == parameter]
                found += [k.value for k in call.keywords if k.arg == parameter]
        return found


def called(call: ast.Call) -> str:
    """The name of the function, without what it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in node.targets)


def _named(value: ast.expr) -> str:
    """A name in braces where the expression is one."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"{{{name.strip('_')}}}"
        case ast.Call(args=[ast.Name(id=name)]) | ast.Call(args=[ast.Attribute(attr=name)]):
            return f"{{{name.strip('_')}}}"
    return OPEN
