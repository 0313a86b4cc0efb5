"""Python source that is made piece by piece: lines at a depth, names that no one else uses.

Python has no more than twenty loops inside of one another, and a hundred levels of indentation: what is deeper stands
in a function of its own, which is called where it would stand.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Source:
    r"""Lines of a function's body.

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
        """How far the next line is indented."""
        return self._depth

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(f"{line}\n" for line in self._lines)

    @property
    def everything(self) -> str:
        """All lines, with those of functions."""
        return self.text + "".join(f"{line}\n" for _, lines in self._calls.values() for line in lines)

    def line(self, text: str) -> None:
        """One statement."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is written inside stands below ``head``."""
        self.line(head)
        before = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def leave(self) -> None:
        """Ends the kernel, out of all functions."""
        self.line(self._exit)

    @contextmanager
    def function(self, name: str, carried: str) -> Iterator[None]:
        """What is written inside is the body of the function ``name``, which may change the variable ``carried``."""
        before, depth, exit_ = self._lines, self._depth, self._exit
        self._lines, self._depth, self._exit = [], 0, f"return True, {carried}"
        yield
        self.line(f"return False, {carried}")
        self._calls[name] = (before.copy(), self._lines)
        self._lines, self._depth, self._exit = before, depth, exit_
        left = self.name("left")
        self.line(f"{left}, {carried} = {name}({_arguments_of(name)})")
        with self.block(f"if {left}:"):
            self.leave()

    def functions(self, known: Iterable[str]) -> tuple[dict[str, tuple[list[str], str]], str]:
        """The arguments and the body of each function, inner ones first, and the text that calls the outermost.

        ``known`` are the variables that the text itself does not define.
        """
        text, out = self.text, dict[str, tuple[list[str], str]]()
        befores = [before for before, _ in self._calls.values()]
        for n, (name, (_, lines)) in enumerate(self._calls.items()):
            defined = set(known).union(*(_names(before, ast.Store) for before in befores[n:]))
            body = "".join(f"{line}\n" for line in lines)
            for called, (arguments, _) in out.items():
                body = body.replace(_arguments_of(called), ", ".join(arguments))
            out[name] = (sorted(_names(body.splitlines(), ast.Load) & defined), body)
        for called, (arguments, _) in out.items():
            text = text.replace(_arguments_of(called), ", ".join(arguments))
        return out, text

    def name(self, prefix: str) -> str:
        """A name that was not used before."""
        self._names += 1
        return f"{prefix}{self._names}"

    def keep(self, prefix: str, code: str) -> str:
        """A variable with the value of ``code``."""
        name = self.name(prefix)
        self.line(f"{name} = {code}")
        return name


def _arguments_of(name: str) -> str:
    """What stands for the arguments of a function until they are known."""
    return f"arguments_of_{name}"


def written_names(text: str) -> set[str]:
    """The variables that ``text`` defines."""
    return _names(text.splitlines(), ast.Store)


def _names(lines: Sequence[str], context: type[ast.expr_context]) -> set[str]:
    """The variables that ``lines`` read, or write; a block at their end may be open."""
    last = lines[-1] if lines else ""
    going = f"\n{' ' * (len(last) - len(last.lstrip()) + 4)}pass" if last.endswith(":") else ""
    tree = ast.parse("\n".join(lines) + going)
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}
