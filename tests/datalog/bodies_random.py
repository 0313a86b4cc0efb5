"""A rule's body while it is drawn: literals, and the variables that they bind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

NUMBER, SYMBOL, BOOLEAN, FLOAT = "n", "s", "b", "f"
POOLS = {NUMBER: "xyzw", SYMBOL: "st", BOOLEAN: "pq", FLOAT: "fg"}
BOUND = 12  # of keys that a recursion makes


@dataclass(frozen=True)
class Rel:
    """A relation that can be read: its name and its columns' types."""

    name: str
    types: str


class Draws(Protocol):
    """What a body draws from."""

    def choice(self, *options: Any) -> Any: ...  # noqa: ANN401 - one of them
    def chance(self) -> bool: ...
    def several(self, options: tuple[str, ...], least: int, most: int) -> list[str]: ...
    def number(self, least: int, most: int) -> int: ...
    def constant(self, type_: str) -> str: ...
    def readable(self, *types: str) -> Rel: ...


@dataclass
class Body:
    """A body while it is drawn: its literals, and the variables that they bind, by name."""

    program: Draws
    literals: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)

    def of(self, type_: str) -> list[str]:
        return [v for v, t in self.bound.items() if t == type_]

    # --- atoms ---

    def atom(self, rel: Rel, fixed: dict[int, str] | None = None) -> None:
        """An atom of ``rel`` with the arguments ``fixed`` and others drawn, which may bind variables."""
        args = [(fixed or {}).get(p) or self._argument(t) for p, t in enumerate(rel.types)]
        self.literals.append(f"{rel.name}({', '.join(args)})")
        for arg, t in zip(args, rel.types, strict=True):
            if arg.isidentifier() and arg != "_":
                self.bound[arg] = t

    def _argument(self, type_: str) -> str:
        kind = self.program.choice(*("variable",) * 7, "_", "_", "constant")
        if kind == "constant" and type_ in (NUMBER, SYMBOL):
            return self.program.constant(type_)
        return "_" if kind == "_" else self.program.choice(*POOLS[type_])

    def known(self, rel: Rel) -> str:
        """An atom of ``rel`` that binds nothing."""
        args = []
        for t in rel.types:
            options = [*self.of(t), "_"]
            if t in (NUMBER, SYMBOL):
                options.append(self.program.constant(t))
            args.append(self.program.choice(*options))
        return f"{rel.name}({', '.join(args)})"

    def negated(self, rel: Rel, *, is_recursive: bool) -> list[str]:
        """``!e(x, _)``; in a recursion mostly such that it has a variable of the body."""
        atom = self.known(rel)
        arguments = set(atom[len(rel.name) + 1 : -1].split(", "))
        if is_recursive and not arguments & self.bound.keys() and self.program.number(0, 9) < 9:
            return []
        return [f"!{atom}"]

    # --- terms and tests ---

    def term(self, type_: str, *, is_recursive: bool = False) -> str:  # noqa: PLR0911 - one kind of term a line
        """A term over bound variables; in a recursion one of which there are finitely many values."""
        found = self.of(type_)
        kind = self.program.choice("variable", "variable", "variable", "variable", "made", "constant")
        if is_recursive and type_ == SYMBOL and self.program.number(0, 15) < 15:
            return self._symbol()  # a recursion makes new strings now and then
        if type_ in (NUMBER, SYMBOL) and (kind == "constant" or not found):
            return self.program.constant(type_)
        assert found, type_
        one, other = self.program.choice(*found), self.program.choice(*found)
        if kind == "variable" or type_ not in (NUMBER, SYMBOL):
            return one
        if is_recursive and type_ == NUMBER:
            self.literals.append(f"{one} < {BOUND}")
            return f"{one} + 1"
        if is_recursive:
            self.literals.append(f"strlen({one}) < 3")
            return f'cat({one}, "a")'
        if type_ == SYMBOL:
            return self.program.choice(f"cat({one}, {other})", f'cat("x", {one})', f"substr({one}, 0, 1)")
        return self.program.choice(
            f"{one} + {other}", f"{one} + 1", f"min({one} * {other}, 50)", f"max({one}, {other})", f"{one} % 3",
            f"({one} + {other}) / 2", f"max({one} - {other}, 0)", f"{one} band {other}", f"{one} bxor 5",
            f"min({one}, 9) ^ 2",
        )  # fmt: skip

    def _symbol(self) -> str:
        """A variable that stands for a symbol, bound by one more atom if need be."""
        if not self.of(SYMBOL):
            rel = self.program.readable(SYMBOL)
            if SYMBOL not in rel.types:
                return self.program.constant(SYMBOL)
            self.atom(rel, {rel.types.index(SYMBOL): "s"})
        return str(self.program.choice(*self.of(SYMBOL)))

    def comparison(self) -> str | None:
        """A test of bound variables, if there are any."""
        numbers, symbols = self.of(NUMBER), self.of(SYMBOL)
        op = self.program.choice("<", "<=", "!=", "=", ">", ">=")
        options = []
        if numbers:
            one, other = self.program.choice(*numbers), self.program.choice(*numbers)
            number = self.program.constant(NUMBER)
            options += [
                f"{one} {op} {other}",
                f"{one} {op} {number}",
                f"{one} + {other} {op} {number}",
                f"{one} % 2 = 0",
            ]
        if symbols:
            one, other = self.program.choice(*symbols), self.program.choice(*symbols)
            text = self.program.constant(SYMBOL)
            options += [f"{one} {op} {other}", f"{one} {op} {text}", f"strlen({one}) {op} 1", f'contains("a", {one})']
        return self.program.choice(*options) if options else None

    def test(self) -> str:
        """A comparison, or an atom that binds nothing."""
        compared = self.comparison() if self.program.chance() else None
        return compared or self.known(self.program.readable())

    def aggregate(self) -> None:
        """``n = count : { e(x, v), v < 3 }`` over a lower relation; v is the aggregate's own."""
        rel = self.program.readable()
        inner = Body(self.program, [], dict(self.bound))
        own = [p for p, t in enumerate(rel.types) if t == NUMBER]
        p = self.program.choice(*own) if own else None
        inner.literals.append(inner.known(rel))
        if p is not None:
            name, args = inner.literals[0].split("(", 1)
            changed = args[:-1].split(", ")
            changed[p] = "v"
            inner.literals[0] = f"{name}({', '.join(changed)})"
            if self.program.chance():
                inner.literals.append(f"v {self.program.choice('<', '!=', '>=')} {self.program.constant(NUMBER)}")
            elif self.program.chance() and self.of(NUMBER):
                inner.literals.append(f"v <= {self.program.choice(*self.of(NUMBER))}")
        function = self.program.choice("count", "sum", "min", "max", "mean") if p is not None else "count"
        value = "" if function == "count" else self.program.choice(" v", " v", " v + 1")
        body = ", ".join(inner.literals)
        if function == "mean":
            self.literals.append(f"mean{value} : {{ {body} }} {self.program.choice('<', '>=')} 2.5")
            return
        name = self.program.choice("n", "x")
        if name in self.bound:
            self.literals.append(f"{name} <= {function}{value} : {{ {body} }}")
            return
        self.literals.append(f"{name} = {function}{value} : {{ {body} }}")
        self.bound[name] = NUMBER

    def extras(self, *, aggregates: bool = True, is_recursive: bool = False) -> None:
        """Tests, negations, alternatives, definitions and aggregates behind the atoms."""
        kinds = ("test", "not", "or", "define", "aggregate") if aggregates else ("test", "not", "or", "define")
        for kind in self.program.several(kinds, 0, 2):
            if kind == "test":
                found = self.comparison()
                self.literals += [found] if found else []
            elif kind == "not":
                self.literals += self.negated(self.program.readable(), is_recursive=is_recursive)
            elif kind == "or":
                parts = [self.test(), self.test()]
                if self.program.chance():
                    parts[1] = ", ".join([parts[1], *self.negated(self.program.readable(), is_recursive=is_recursive)])
                self.literals.append(f"({'; '.join(parts)})")
            elif kind == "define" and self.of(NUMBER) and "m" not in self.bound:
                self.literals.append(f"m = {self.term(NUMBER, is_recursive=is_recursive)}")
                self.bound["m"] = NUMBER
            elif kind == "aggregate":
                self.aggregate()
