"""Every error of the package, read from its sources: code, class, messages and hints of each place that raises one.

Python is read as a syntax tree, Scala by ``scala_errors``; ``errors_page`` shows what is found. What a message is made
of stays as a name in braces: ``the base has no column {key}, which keys names``.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from docs_site.templates import Templates, called
from pyspark_paralagg import errors
from pyspark_paralagg.codes import IN_SPARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).parents[1]
PACKAGES = ("pyspark_paralagg", "mpi_backend")
CODE = re.compile(r"PARALAGG_[A-Z0-9_]*[A-Z0-9]")

CLASSES = tuple(n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, errors.ParalaggError))
# What becomes an error later: a claim that is refused, a text's parser, the loop of a rank, and why ranks cannot run.
_LATER = {
    "pyspark_paralagg": {"Judgement": "VerificationError", "Problem": "DatalogError"},
    "mpi_backend": {"fail": "FixpointError", "Problem": ""},
}
_KINDS = {"": "EnvironmentProblem", "environment": "EnvironmentProblem", "usage": "UsageError"}
_IN_MESSAGE = re.compile(rf"\[({CODE.pattern})\] ")


@dataclass(frozen=True, order=True)
class Raised:
    """One place that raises ``code``; messages and hints are templates, ``file`` is relative to the project."""

    code: str
    kind: str
    messages: tuple[str, ...]
    hints: tuple[str, ...]
    file: str


@dataclass(frozen=True)
class _Maker:
    """A function that makes an error: its class (empty: the argument ``kind`` says it), parameters and own code."""

    kind: str
    parameters: tuple[str, ...]
    code: str
    returns: str = ""


def in_python() -> list[Raised]:
    """What the Python packages raise, in no order."""
    found = []
    sources = {package: sorted((ROOT / package).rglob("*.py")) for package in PACKAGES}
    parsed = {p: ast.parse(p.read_text(encoding="utf-8")) for paths in sources.values() for p in paths}
    shared = _shared_codes(parsed)
    for package, paths in sources.items():
        trees = {p: _with_codes(parsed[p], shared) for p in paths}
        makers = dict.fromkeys(CLASSES, _Maker("", ("code", "message"), "")) | _makers(trees.values(), _LATER[package])
        for path, tree in trees.items():
            own = _makers([tree], _LATER[package])  # a module means its own `_error`
            found += list(_errors(tree, makers | own, path.relative_to(ROOT).as_posix()))
    return found


def _shared_codes(parsed: Mapping[Path, ast.Module]) -> dict[tuple[str, str], ast.Constant]:
    """Return the codes that modules have as constants, by module and name: ``patterns.CODE``."""
    return {
        (path.stem, target.id): node.value
        for path, tree in parsed.items()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and CODE.fullmatch(str(node.value.value))
    }


def _with_codes(tree: ast.Module, shared: Mapping[tuple[str, str], ast.Constant]) -> ast.Module:
    """Put the codes in the place of ``module.NAME``."""

    class Replacer(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            module = node.value.id if isinstance(node.value, ast.Name) else ""
            constant = shared.get((module, node.attr))
            return self.generic_visit(node) if constant is None else ast.copy_location(constant, node)

    result: ast.Module = Replacer().visit(tree)
    return result


def _makers(trees: Iterable[ast.Module], later: dict[str, str]) -> dict[str, _Maker]:
    """By name: functions that say that they give back an error, and what becomes one later."""
    found: list[tuple[str, _Maker]] = []
    for tree in trees:
        templates = Templates(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in later:
                of = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
                fields = tuple(ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign))
                kind = later[node.name]
                found.append((node.name, _maker(of, kind, templates) if of else _Maker(kind, fields, "")))
            elif isinstance(node, ast.FunctionDef):
                returned = ast.unparse(node.returns) if node.returns is not None else ""
                kind = returned if returned in CLASSES else later.get(returned, later.get(node.name))
                if kind is not None:
                    found.append((node.name, replace(_maker(node, kind, templates), returns=returned)))
    codes = {name: maker.code for name, maker in found if name in later}
    # One without a message has it inside, where it is found.
    return {
        name: replace(maker, code=maker.code or codes.get(maker.returns, ""))
        for name, maker in found
        if {"message", "problem"} & {*maker.parameters}
    }


def _maker(function: ast.FunctionDef, kind: str, templates: Templates) -> _Maker:
    of = function.args
    codes = [code for default in (*of.defaults, *of.kw_defaults) for code in _codes(default, templates)]
    parameters = tuple(a.arg for a in (*of.args, *of.kwonlyargs) if a.arg != "self")
    return _Maker(kind, parameters, codes[0] if codes else "")


def _errors(tree: ast.Module, makers: dict[str, _Maker], file: str) -> Iterator[Raised]:
    """What a module raises: by calls of ``makers``, by what a rank tells of itself, by a code within a message."""
    templates = Templates(tree)
    for node in ast.walk(tree):
        kind, parts, own = "", {}, ""
        if isinstance(node, ast.Call) and called(node) in makers:
            kind, parts, own = _made(node, makers[called(node)])
        elif isinstance(node, ast.Dict):
            kind = "FixpointError"
            parts = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
        elif isinstance(node, ast.JoinedStr) and (inside := _IN_MESSAGE.match(templates.text(node))):
            yield Raised(inside[1], IN_SPARK, (templates.text(node)[inside.end() :],), (), file)
        code = parts.get("code", parts.get("error"))
        if isinstance(code, ast.Name) and templates.is_parameter(code, makers):
            continue  # whoever calls this maker says which code
        messages = tuple(templates.alternatives(parts.get("message", parts.get("problem"))))
        hints = tuple(templates.alternatives(parts.get("hint")))
        for found in _codes(code, templates) if code is not None else filter(None, [own]):
            yield Raised(found, kind, messages, hints, file)


def _made(call: ast.Call, maker: _Maker) -> tuple[str, dict[str, ast.expr], str]:
    """The class, the arguments by name, and the code that ``maker`` has of its own."""
    parts = dict(zip(maker.parameters, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    if called(call) in CLASSES:
        return called(call), parts, maker.code
    told = parts.get("kind")
    word = told.value if isinstance(told, ast.Constant) else ""
    return maker.kind or _KINDS.get(word, "FixpointError"), parts, maker.code


def _codes(node: ast.expr | None, templates: Templates) -> list[str]:
    return [text for text in templates.alternatives(node) if CODE.fullmatch(text)]
