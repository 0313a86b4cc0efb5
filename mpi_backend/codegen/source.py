"""Build Python source piece by piece: indented lines, unique names.

Python allows twenty nested loops and a hundred levels of indentation. Deeper code goes into a function, which is
called in its place.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Source:
    r"""The lines of a function's body.

    >>> code = Source()
    >>> with code.block("if a:"):
    ...     code.line("b = 1")
    >>> code.text
    'if a:\\n    b = 1\\n'
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0
        self._exit = "return"
        self._calls: dict[str, tuple[list[str], list[str]]] = {}

    @property
    def depth(self) -> int:
        """Return the indentation level of the next line."""
        return self._depth

    @property
    def text(self) -> str:
        """Return all lines."""
        return "".join(f"{line}\n" for line in self._lines)

    @property
    def everything(self) -> str:
        """Return all lines, including those of functions."""
        return self.text + "".join(f"{line}\n" for _, lines in self._calls.values() for line in lines)

    def line(self, text: str) -> None:
        """Append a statement."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines that the context writes below ``head``."""
        self.line(head)
        before = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def leave(self) -> None:
        """Write the statement that ends the kernel, from inside any function."""
        self.line(self._exit)

    @contextmanager
    def function(self, name: str, carried: str) -> Iterator[None]:
        """Write the lines of the context as the body of a function, and call it. It may change ``carried``."""
        before, depth, exit_ = self._lines, self._depth, self._exit
        self._lines, self._depth, self._exit = [], 0, f"return True, {carried}"
        yield
        self.line(f"return False, {carried}")
        self._calls[name] = (before.copy(), self._lines)
        self._lines, self._depth, self._exit = before, depth, exit_
        left = self.name("left")
        self.line(f"{left}, {carried} = {name}({_placeholder(name)})")
        with self.block(f"if {left}:"):
            self.leave()

    def functions(self, outer_names: Iterable[str]) -> tuple[dict[str, tuple[list[str], str]], str]:
        """Return the arguments and the body of each function, inner ones first, and the text that calls the outermost.

        ``outer_names`` are the variables that are defined before the text.
        """
        text, out = self.text, dict[str, tuple[list[str], str]]()
        befores = [before for before, _ in self._calls.values()]
        for n, (name, (_, lines)) in enumerate(self._calls.items()):
            defined = set(outer_names).union(*(_names(before, ast.Store) for before in befores[n:]))
            body = "".join(f"{line}\n" for line in lines)
            for called, (arguments, _) in out.items():
                body = body.replace(_placeholder(called), ", ".join(arguments))
            out[name] = (sorted(_names(body.splitlines(), ast.Load) & defined), body)
        for called, (arguments, _) in out.items():
            text = text.replace(_placeholder(called), ", ".join(arguments))
        return out, text

    def name(self, prefix: str) -> str:
        """Return an unused name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def keep(self, prefix: str, code: str) -> str:
        """Assign ``code`` to a new variable. Return its name."""
        name = self.name(prefix)
        self.line(f"{name} = {code}")
        return name


def _placeholder(name: str) -> str:
    """Return the placeholder for the arguments of a function."""
    return f"arguments_of_{name}"


def written_names(text: str) -> set[str]:
    """Return the variables that ``text`` defines."""
    return _names(text.splitlines(), ast.Store)


def _names(lines: Sequence[str], context: type[ast.expr_context]) -> set[str]:
    """Return the variables that ``lines`` read, or write. The last line may open a block."""
    last_line = lines[-1] if lines else ""
    block_body = f"\n{' ' * (len(last_line) - len(last_line.lstrip()) + 4)}pass" if last_line.endswith(":") else ""
    tree = ast.parse("\n".join(lines) + block_body)
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}
