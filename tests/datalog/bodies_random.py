"""Draw the body of a rule: literals, and the variables that they bind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

NUMBER, SYMBOL, BOOLEAN, FLOAT = "n", "s", "b", "f"
POOLS = {NUMBER: "xyzw", SYMBOL: "st", BOOLEAN: "pq", FLOAT: "fg"}
BOUND = 12  # limit of keys that a recursion computes


@dataclass(frozen=True)
class Rel:
    """The name and the column types of a relation."""

    name: str
    types: str


class Draws(Protocol):
    """The source of random choices."""

    def choice(self, *options: Any) -> Any: ...  # noqa: ANN401 - one of them
    def chance(self) -> bool: ...
    def several(self, options: tuple[str, ...], least: int, most: int) -> list[str]: ...
    def number(self, least: int, most: int) -> int: ...
    def constant(self, type_: str) -> str: ...
    def readable(self, *types: str) -> Rel: ...


@dataclass
class Body:
    """A body under construction: its literals, and the types of the variables that they bind, by name."""

    program: Draws
    literals: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)

    def variables_of(self, type_: str) -> list[str]:
        return [v for v, t in self.bound.items() if t == type_]

    # --- atoms ---

    def atom(self, rel: Rel, fixed: dict[int, str] | None = None) -> None:
        """Add an atom of ``rel`` with the arguments ``fixed`` and random ones, which may bind variables."""
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

    def bound_atom(self, rel: Rel) -> str:
        """Return an atom of ``rel`` that binds no variables."""
        args = []
        for t in rel.types:
            options = [*self.variables_of(t), "_"]
            if t in (NUMBER, SYMBOL):
                options.append(self.program.constant(t))
            args.append(self.program.choice(*options))
        return f"{rel.name}({', '.join(args)})"

    def negated(self, rel: Rel, *, is_recursive: bool) -> list[str]:
        """Return ``!e(x, _)``, or nothing. In a recursion it mostly has a variable of the body."""
        atom = self.bound_atom(rel)
        arguments = set(atom[len(rel.name) + 1 : -1].split(", "))
        if is_recursive and not arguments & self.bound.keys() and self.program.number(0, 9) < 9:
            return []
        return [f"!{atom}"]

    # --- terms and tests ---

    def term(self, type_: str, *, is_recursive: bool = False) -> str:  # noqa: PLR0911 - one line for each kind of term
        """Return a term over bound variables. In a recursion, it has finitely many values."""
        names = self.variables_of(type_)
        kind = self.program.choice("variable", "variable", "variable", "variable", "made", "constant")
        if is_recursive and type_ == SYMBOL and self.program.number(0, 15) < 15:
            return self._symbol()  # a recursion rarely computes new strings
        if type_ in (NUMBER, SYMBOL) and (kind == "constant" or not names):
            return self.program.constant(type_)
        assert names, type_
        a, b = self.program.choice(*names), self.program.choice(*names)
        if kind == "variable" or type_ not in (NUMBER, SYMBOL):
            return a
        if is_recursive and type_ == NUMBER:
            self.literals.append(f"{a} < {BOUND}")
            return f"{a} + 1"
        if is_recursive:
            self.literals.append(f"strlen({a}) < 3")
            return f'cat({a}, "a")'
        if type_ == SYMBOL:
            return self.program.choice(f"cat({a}, {b})", f'cat("x", {a})', f"substr({a}, 0, 1)")
        return self.program.choice(
            f"{a} + {b}", f"{a} + 1", f"min({a} * {b}, 50)", f"max({a}, {b})", f"{a} % 3",
            f"({a} + {b}) / 2", f"max({a} - {b}, 0)", f"{a} band {b}", f"{a} bxor 5",
            f"min({a}, 9) ^ 2",
        )  # fmt: skip

    def _symbol(self) -> str:
        """Return a variable of type symbol. If there is none, add an atom that binds one."""
        if not self.variables_of(SYMBOL):
            rel = self.program.readable(SYMBOL)
            if SYMBOL not in rel.types:
                return self.program.constant(SYMBOL)
            self.atom(rel, {rel.types.index(SYMBOL): "s"})
        return str(self.program.choice(*self.variables_of(SYMBOL)))

    def comparison(self) -> str | None:
        """Return a comparison of bound variables, if there are any."""
        numbers, symbols = self.variables_of(NUMBER), self.variables_of(SYMBOL)
        op = self.program.choice("<", "<=", "!=", "=", ">", ">=")
        options = []
        if numbers:
            a, b = self.program.choice(*numbers), self.program.choice(*numbers)
            number = self.program.constant(NUMBER)
            options += [
                f"{a} {op} {b}",
                f"{a} {op} {number}",
                f"{a} + {b} {op} {number}",
                f"{a} % 2 = 0",
            ]
        if symbols:
            a, b = self.program.choice(*symbols), self.program.choice(*symbols)
            text = self.program.constant(SYMBOL)
            options += [
                f"{a} {op} {b}",
                f"{a} {op} {text}",
                f"strlen({a}) {op} 1",
                f'contains("a", {a})',
            ]
        return self.program.choice(*options) if options else None

    def test(self) -> str:
        """Return a comparison, or an atom that binds no variables."""
        comparison = self.comparison() if self.program.chance() else None
        return comparison or self.bound_atom(self.program.readable())

    def aggregate(self) -> None:
        """Add ``n = count : { e(x, v), v < 3 }`` over an earlier relation; v is local to the aggregate."""
        rel = self.program.readable()
        inner = Body(self.program, [], dict(self.bound))
        columns = [p for p, t in enumerate(rel.types) if t == NUMBER]
        p = self.program.choice(*columns) if columns else None
        inner.literals.append(inner.bound_atom(rel))
        if p is not None:
            name, args = inner.literals[0].split("(", 1)
            arguments = args[:-1].split(", ")
            arguments[p] = "v"
            inner.literals[0] = f"{name}({', '.join(arguments)})"
            if self.program.chance():
                inner.literals.append(f"v {self.program.choice('<', '!=', '>=')} {self.program.constant(NUMBER)}")
            elif self.program.chance() and self.variables_of(NUMBER):
                inner.literals.append(f"v <= {self.program.choice(*self.variables_of(NUMBER))}")
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
        """Add tests, negations, alternatives, definitions and aggregates after the atoms."""
        kinds = ("test", "not", "or", "define", "aggregate") if aggregates else ("test", "not", "or", "define")
        for kind in self.program.several(kinds, 0, 2):
            if kind == "test":
                comparison = self.comparison()
                self.literals += [comparison] if comparison else []
            elif kind == "not":
                self.literals += self.negated(self.program.readable(), is_recursive=is_recursive)
            elif kind == "or":
                parts = [self.test(), self.test()]
                if self.program.chance():
                    parts[1] = ", ".join([parts[1], *self.negated(self.program.readable(), is_recursive=is_recursive)])
                self.literals.append(f"({'; '.join(parts)})")
            elif kind == "define" and self.variables_of(NUMBER) and "m" not in self.bound:
                self.literals.append(f"m = {self.term(NUMBER, is_recursive=is_recursive)}")
                self.bound["m"] = NUMBER
            elif kind == "aggregate":
                self.aggregate()
