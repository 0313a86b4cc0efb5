"""Draw random Datalog programs with data: safe, stratified, terminating. A Hypothesis strategy, so failures shrink.

A program is a sequence of units. Each unit is one stratum over the relations before it:

    plain         without recursion: 1-4 atoms, ``;``, negation, comparisons, functors, body aggregates, several heads
    closure       a recursive set, or two that need each other; keys stay in the data or below a bound
    lattice       $MIN, $MAX, also with $MIN_BY or $MAX_BY, $BITOR, $BITAND, $GCD, $ANY, $ALL in the recursion
    total         $SUM, $COUNT, $MCOUNT, $MSUM, $H_INDEX, $MEAN, and min and max without recursion
    accumulating  $SUM, $COUNT in the recursion, along pairs that ascend or up to a limit
    threshold     a set that reads $MCOUNT or $MSUM through an upward threshold
    levels        $H_INDEX in the recursion, also through a downward threshold
    rounds        PowerLog's iteration-indexed rules

Values are natural numbers, so additions never decrease a value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datalog.bodies_random import BOOLEAN, FLOAT, NUMBER, SYMBOL, Body, Rel
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, ...]

DATALOG_TYPES = {NUMBER: "number", SYMBOL: "symbol"}
SPARK_TYPES = {NUMBER: "bigint", SYMBOL: "string"}
SYMBOLS = ["a", "b", "c", "ab", ""]
LARGEST = 6  # number in the data
CAP = 40  # limit of values that a recursion computes


@dataclass(frozen=True)
class Case:
    """A program and its data; ``inputs`` has the columns of each input relation."""

    text: str
    inputs: dict[str, tuple[tuple[str, str], ...]]
    facts: dict[str, list[Row]]

    def __repr__(self) -> str:
        rows = "\n".join(f"{name}: {rows}" for name, rows in self.facts.items())
        return f"Case:\n{self.text}\n{rows}\n"


class Drawing:
    """A program under construction."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.clauses: list[str] = []
        self.relations: list[Rel] = []
        self.inputs: dict[str, tuple[tuple[str, str], ...]] = {}
        self.facts: dict[str, list[Row]] = {}
        self.count: Counter[str] = Counter()
        self.largest = self.choice(LARGEST, 3, 2)  # in a small domain joins have results
        self.least = self.choice(0, 3, 5)

    # --- draws ---

    def choice(self, *options: Any) -> Any:  # noqa: ANN401 - one of them
        return self.draw(st.sampled_from(options))

    def chance(self) -> bool:
        return bool(self.draw(st.booleans()))

    def several(self, options: tuple[str, ...], least: int, most: int) -> list[str]:
        return list(self.draw(st.lists(st.sampled_from(options), min_size=least, max_size=most)))

    def number(self, least: int, most: int) -> int:
        return int(self.draw(st.integers(least, most)))

    def constant(self, type_: str) -> str:
        return str(self.number(0, self.largest)) if type_ == NUMBER else f'"{self.choice(*SYMBOLS)}"'

    def readable(self, *types: str) -> Rel:
        """Return an earlier relation with columns of these types, or any relation if there is none."""
        fitting = [r for r in self.relations if not Counter(types) - Counter(r.types)]
        return self.choice(*(fitting or self.relations))

    def pairs(self) -> Rel:
        """Return a relation with two columns of numbers."""
        return next((r for r in [self.readable(NUMBER, NUMBER)] if r.types.count(NUMBER) > 1), self.relations[0])

    def fresh(self) -> str:
        self.count["r"] += 1
        return f"r{self.count['r']}"

    def types(self, least: int, most: int) -> str:
        return "".join(self.draw(st.lists(st.sampled_from(NUMBER + NUMBER + SYMBOL), min_size=least, max_size=most)))

    def rows(self, types: str) -> list[Row]:
        values = {NUMBER: st.integers(0, self.largest), SYMBOL: st.sampled_from(SYMBOLS[: self.largest])}
        return list(self.draw(st.lists(st.tuples(*(values[t] for t in types)), min_size=self.least, max_size=9)))

    # --- data ---

    def add_inputs(self) -> None:
        for n in range(self.number(1, 4)):
            # The first input has pairs, which every recursion can follow.
            types = NUMBER * 2 + self.choice("", NUMBER) if n == 0 else self.types(1, 3)
            rel = Rel(f"e{n}", types)
            columns = [f"c{p}" for p in range(len(types))]
            rows = self.rows(types)
            self.relations.append(rel)
            is_inline = self.number(0, 3) == 1
            if is_inline or self.chance():
                self.declare(rel, columns)
            if is_inline:
                for row in rows:
                    constants = ", ".join(str(v) if isinstance(v, int) else f'"{v}"' for v in row)
                    self.clauses.append(f"{rel.name}({constants}).")
            else:
                self.inputs[rel.name] = tuple((c, SPARK_TYPES[t]) for c, t in zip(columns, types, strict=True))
                self.facts[rel.name] = rows

    def declare(self, rel: Rel, columns: list[str]) -> None:
        declared = ", ".join(f"{c}: {DATALOG_TYPES[t]}" for c, t in zip(columns, rel.types, strict=True))
        self.clauses.append(f".decl {rel.name}({declared})")

    # --- rules ---

    def rule(self, heads: str, body: Body) -> None:
        self.clauses.append(f"{heads} :- {', '.join(body.literals)}.")

    def body(self, *, atoms: tuple[int, int] = (1, 4), aggregates: bool = True) -> Body:
        body = Body(self)
        for _ in range(self.number(*atoms)):
            body.atom(self.readable())
        body.extras(aggregates=aggregates)
        return body

    def plain(self) -> None:
        types = [self.types(1, 3) for _ in range(self.choice(1, 1, 1, 2))]
        rels = [Rel(self.fresh(), t) for t in types]
        for _ in range(self.number(1, 2)):
            body = self.body()
            heads = ", ".join(f"{r.name}({', '.join(body.term(t) for t in r.types)})" for r in rels)
            self.rule(heads, body)
        self.relations += rels

    def closure(self) -> None:
        types = self.types(1, 2)
        rels = [Rel(self.fresh(), types) for _ in range(self.choice(1, 1, 2))]
        for rel in rels:
            if rel is not rels[0] or self.chance():
                self.declare(rel, [f"k{p}" for p in range(len(types))])
            for _ in range(self.number(0 if rel is not rels[0] else 1, 2)):
                body = self.body(atoms=(1, 2))
                self.rule(f"{rel.name}({', '.join(body.term(t) for t in types)})", body)
            for _ in range(self.number(1, 2)):
                body = Body(self)
                for _ in range(self.choice(1, 1, 2)):
                    body.atom(self.choice(*rels))
                for _ in range(self.number(0, 2)):
                    body.atom(self.readable())
                body.extras(is_recursive=True)
                self.rule(f"{rel.name}({', '.join(body.term(t, is_recursive=True) for t in types)})", body)
        self.relations += rels

    def _recursive_body(self, rel: Rel, keys: int) -> tuple[Body, list[str]]:
        """Return a body with atoms of ``rel`` and others, and the variables ``v0``, ``v1`` of the values of ``rel``."""
        body = Body(self)
        atoms = self.choice(1, 1, 1, 2)
        for n in range(atoms):
            fixed = {p: f"v{n}" if p == keys else "_" for p in range(keys, len(rel.types))}
            body.atom(rel, fixed)
        for _ in range(self.number(0, 2)):
            body.atom(self.readable())
        values = [f"v{n}" for n in range(atoms)]
        for v in values:
            del body.bound[v]
        body.extras(aggregates=False, is_recursive=True)
        return body, values

    def lattice(self) -> None:
        aggregate = self.choice("MIN", "MAX", "MIN", "MAX", "BITOR", "BITAND", "GCD", "ANY", "ALL")
        keys = self.types(1, 2)
        is_boolean = aggregate in ("ANY", "ALL")
        carried = self.choice("", "", f"{aggregate}_BY") if aggregate in ("MIN", "MAX") else ""
        rel = Rel(self.fresh(), keys + (BOOLEAN if is_boolean else NUMBER) + (NUMBER if carried else ""))

        def head(body: Body, value: str, *, is_recursive: bool) -> str:
            terms = [body.term(t, is_recursive=is_recursive) for t in keys] + [f"${aggregate}({value})"]
            terms += [f"${carried}({body.term(NUMBER, is_recursive=True)}, {value})"] if carried else []
            return f"{rel.name}({', '.join(terms)})"

        for _ in range(self.number(1, 2)):
            body = self.body(atoms=(1, 2))
            value = f"{body.term(NUMBER)} < {self.constant(NUMBER)}" if is_boolean else body.term(NUMBER)
            self.rule(head(body, value, is_recursive=False), body)
        for _ in range(self.number(1, 2)):
            body, values = self._recursive_body(rel, len(keys))
            value = values[0] if is_boolean else self._value(aggregate, body, values)
            self.rule(head(body, value, is_recursive=True), body)
        self.relations.append(rel)

    def _value(self, aggregate: str, body: Body, values: list[str]) -> str:
        """Return a value that is monotone in the values of the recursion, and bounded."""
        v, u = values[0], values[-1]
        other = body.term(NUMBER) if body.variables_of(NUMBER) and self.chance() else self.constant(NUMBER)
        if aggregate == "MIN":
            if self.chance():
                body.literals.append(f"{v} <= {self.number(0, CAP)}")
            options = [v, f"{v} + {other}", f"max({v}, {other})", f"min({v}, {other})", f"{v} + {u}", f"max({v}, {u})"]
            options += [f"{v} * 2", f"2 * {v} + 1"]
        elif aggregate == "MAX":
            if self.chance():
                body.literals.append(f"{v} >= {self.number(0, LARGEST)}")
            options = [v, f"min({v}, {other})", f"max({v}, {other})", f"min({v} + {other}, {CAP})", f"min({v}, {u})"]
            options += [f"min({v} + {u}, {CAP})"]
        elif aggregate == "BITOR":
            options = [v, f"{v} bor {other}", f"{v} band {other}", f"{v} bor {u}", f"{v} band {u}"]
        elif aggregate == "BITAND":
            options = [v, f"{v} band {other}", f"{v} bor {other}", f"{v} band {u}"]
        else:
            options = [v, other]
        return self.choice(*options)

    def total(self) -> None:
        aggregate = self.choice(
            "SUM", "COUNT", "SUM", "COUNT", "MCOUNT", "MSUM", "H_INDEX", "MIN", "MAX", "MIN_BY", "MAX_BY", "MEAN"
        )
        keys = self.types(0, 2)
        rel = Rel(self.fresh(), keys + (FLOAT if aggregate == "MEAN" else NUMBER))
        at = self.number(0, len(keys))
        for _ in range(self.number(1, 2)):
            body = self.body()
            value = body.term(NUMBER)
            if aggregate == "COUNT":
                value = self.choice("", f"({value})")
            elif aggregate in ("MSUM", "MIN_BY", "MAX_BY"):
                value = f"({value}, {body.term(NUMBER)})"
            elif aggregate == "H_INDEX":
                value = f"({value}, {body.term(NUMBER)}, {body.term(NUMBER)})"
            else:
                value = f"({value})"
            terms = [body.term(t) for t in keys]
            terms.insert(at, f"${aggregate}{value}")
            self.rule(f"{rel.name}({', '.join(terms)})", body)
        types = list(keys)
        types.insert(at, rel.types[-1])
        self.relations.append(Rel(rel.name, "".join(types)))

    def _edge(self, start: str, end: str) -> str:
        """Return an atom that follows a pair of numbers; another column of numbers is ``w``."""
        rel = self.pairs()
        first, second, *_ = [p for p, t in enumerate(rel.types) if t == NUMBER]
        args = ["_"] * len(rel.types)
        args[first], args[second] = start, end
        for p in range(second + 1, len(rel.types)):
            if rel.types[p] == NUMBER:
                args[p] = "w"
                break
        return f"{rel.name}({', '.join(args)})"

    def accumulating(self) -> None:
        aggregate = self.choice("SUM", "COUNT")
        name = self.fresh()
        has_origin = self.chance()
        limit = self.choice(None, None, self.number(1, 3))
        key = "o, " if has_origin else ""
        for _ in range(self.number(1, 2)):
            body = self.body(atoms=(1, 2))
            value = body.term(NUMBER)
            value = self.choice("$COUNT", f"$COUNT({value})") if aggregate == "COUNT" else f"$SUM({value})"
            terms = [body.term(NUMBER) for _ in range(1 + has_origin)]
            self.rule(f"{name}({', '.join(terms)}, {value})", body)
        for _ in range(self.number(1, 2)):
            edge = self._edge("x", "y")
            ascends = "" if limit else ", x < y"
            options = ["v", "v", "2 * v", "3 * v + v"] + (["v * w"] if "w" in edge else [])
            value = self.choice(*options)
            body = Body(self, [f"{name}({key}x, v)", f"{edge}{ascends}"], {"x": NUMBER, "y": NUMBER})
            body.extras(aggregates=False, is_recursive=True)
            self.rule(f"{name}({key}y, ${aggregate}({value}))", body)
        if limit:
            self.clauses.append(f".limit {name}(iterations={limit})")
        self.relations.append(Rel(name, NUMBER * (2 + has_origin)))

    def levels(self) -> None:
        name = self.fresh()
        for _ in range(self.number(1, 2)):
            body = self.body(atoms=(1, 2))
            key, *supplied = (body.term(NUMBER) for _ in range(4))
            self.rule(f"{name}({key}, $H_INDEX({', '.join(supplied)}))", body)
        edge = self._edge("x", "y")
        total = self.choice("w", "y", str(self.largest)) if "w" in edge else self.choice("y", str(self.largest))
        value = self.choice("n", "n", f"min(n, {self.constant(NUMBER)})")
        bound = self.choice("", "", f", n < {self.number(0, 3)}")
        self.clauses.append(f"{name}(y, $H_INDEX({total}, {value}, x)) :- {name}(x, n), {edge}{bound}.")
        self.relations.append(Rel(name, NUMBER * 2))

    def threshold(self) -> None:
        aggregate = self.choice("MCOUNT", "MSUM")
        member, counted = self.fresh(), self.fresh()
        for _ in range(self.number(1, 2)):
            body = self.body(atoms=(1, 2))
            self.rule(f"{member}({body.term(NUMBER)})", body)
        edge = self._edge("x", "y")
        other = self._edge("y", "x")
        share = self.choice("w", "w + 1") if "w" in edge else self.choice("1", "x", "y")
        value = "$MCOUNT(x)" if aggregate == "MCOUNT" else f"$MSUM({share}, x)"
        self.clauses.append(f"{counted}(y, {value}) :- {member}(x), {edge}.")
        if self.chance():
            value = "$MCOUNT(x)" if aggregate == "MCOUNT" else "$MSUM(2, x)"
            self.clauses.append(f"{counted}(y, {value}) :- {member}(x), {other}.")
        op = self.choice(">=", ">")
        self.clauses.append(f"{member}(y) :- {counted}(y, n), n {op} {self.number(0, 3)}.")
        self.relations += [Rel(member, NUMBER), Rel(counted, NUMBER * 2)]

    def rounds(self) -> None:
        name = self.fresh()
        aggregate = self.choice("SUM", "COUNT", "SUM")
        is_started = self.number(0, 2) < 2
        if is_started:
            body = self.body(atoms=(1, 2))
            # Facts and initial rows with the same key are aggregated, as all rows are.
            self.rule(f"{name}(0, {body.term(NUMBER)}, ${aggregate}({body.term(NUMBER)}))", body)
        if self.chance() or not is_started:
            body = self.body(atoms=(1, 2))
            self.rule(f"{name}(i + 1, {body.term(NUMBER)}, ${aggregate}({body.term(NUMBER)}))", body)
        edge = self._edge("x", "y")
        value = self.choice("v", "v * w") if "w" in edge else self.choice("v", "2 * v")
        self.clauses.append(f"{name}(i + 1, y, ${aggregate}({value})) :- {name}(i, x, v), {edge}.")
        self.clauses.append(f".limit {name}(iterations={self.number(1, 4)})")
        if self.chance():
            reader = self.fresh()
            self.clauses.append(f"{reader}(x, v) :- {name}(_, x, v).")
            self.relations.append(Rel(reader, NUMBER * 2))


UNITS = (
    *("plain",) * 3, *("closure",) * 2, *("lattice",) * 2, *("total",) * 2, "accumulating", "threshold",
    "levels", "rounds",
)  # fmt: skip


@st.composite
def cases(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Case:
    """Draw a program and its data."""
    return drawn_case(Drawing(draw), UNITS)


def drawn_case(program: Drawing, units: tuple[str, ...]) -> Case:
    """Draw a program of some of ``units``, and its data."""
    program.add_inputs()
    for unit in program.several(units, 1, 4):
        getattr(program, unit)()
    if program.chance():
        program.clauses.reverse()
    text = "\n".join(program.clauses)
    read = [name for name in program.inputs if f"{name}(" in text]
    return Case(text, {n: program.inputs[n] for n in read}, {n: program.facts[n] for n in read})
