"""Define ``Proof``, the derivation of one row as a tree, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.report.page import Markup, escaped, fragment

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_LEVELS = 20
_SHOWN_ROWS = 20
_MERMAID_ROWS = 200


@dataclass(frozen=True)
class Proof:
    """A row and how it was derived.

    ``name`` is the relation or input, ``row`` the values by column. ``rule`` is the place of the rule in the step or
    text, such as ``step of dist, branch 2`` or ``base of dist``; None for a row of an input, and for one that is not
    explained further. ``premises`` are the rows that the rule read, each with its own proof. ``absent`` names the
    relations and inputs in which the rule found no row (anti joins). ``times`` counts equal derivations.

    A row of a sum has a premise for each contribution instead: ``contributions`` is true, and each of ``premises`` has
    the value that it adds, and as its premises the rows that the rule read. The largest come first.
    """

    name: str
    row: dict[str, Any]
    rule: str | None = None
    premises: tuple[Proof, ...] = ()
    absent: tuple[str, ...] = ()
    contributions: bool = False
    times: int = 1

    @property
    def depth(self) -> int:
        """Return the number of rules on the longest way from this row to an input; 0 if it has no rule.

        >>> edge = Proof("edges", {"src": 1, "dst": 2})
        >>> Proof("reach", {"node": 2}, "step of reach", (Proof("reach", {"node": 1}, "base of reach"), edge)).depth
        2
        """
        depths: dict[int, int] = {}
        for proof in reversed(list(self.rows())):
            below = max((depths[id(p)] for p in proof.premises), default=0)
            depths[id(proof)] = below + (0 if proof.rule is None else 1)
        return depths[id(self)]

    def rows(self) -> Iterator[Proof]:
        """Yield this proof and all below it, each before those it rests on; a shared one once, at its last place."""
        order: list[Proof] = []
        done: set[int] = set()
        stack: list[tuple[Proof, bool]] = [(self, False)]
        while stack:
            proof, is_left = stack.pop()
            if is_left:
                order.append(proof)
            elif id(proof) not in done:
                done.add(id(proof))
                stack.append((proof, True))
                stack += [(p, False) for p in proof.premises if id(p) not in done]
        yield from reversed(order)

    def show(self, levels: int | None = None) -> str:
        """Return the tree as text, down to ``levels`` (None: all). What is shown already is not shown again."""
        lines: list[str] = []
        shown: set[int] = set()
        stack: list[tuple[Proof, int]] = [(self, 0)]
        while stack:
            proof, level = stack.pop()
            again = bool(proof.premises) and id(proof) in shown
            shown.add(id(proof))
            lines.append("  " * level + proof.line() + ("   as above" if again else ""))
            if again or not (proof.premises or proof.absent):
                continue
            if levels is not None and level + 1 >= levels:
                lines.append("  " * (level + 1) + f"... {proof.depth:,} more levels: show(levels=None)")
                continue
            lines += ["  " * (level + 1) + f"no row of {name}" for name in proof.absent]
            stack += [(p, level + 1) for p in reversed(proof.premises)]
        return "\n".join(lines)

    def line(self) -> str:
        """Return the row and its rule.

        >>> Proof("dist", {"node": 7, "d": 9.5}, "step of dist").line()
        'dist(node=7, d=9.5)   by step of dist'
        """
        text = f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.row.items())})"
        if self.contributions:
            count = sum(p.times for p in self.premises)
            return f"{text}   of {count:,} contribution{'s' * (count != 1)}"
        times = f", {self.times:,} times" if self.times > 1 else ""
        return text if self.rule is None else f"{text}   by {self.rule}{times}"

    def mermaid(self) -> str:
        """Return the tree as a flowchart in the mermaid language, from premises to conclusions; 200 rows at most."""
        rows = list(self.rows())[:_MERMAID_ROWS]
        numbers = {id(p): n for n, p in enumerate(rows)}
        lines = ["flowchart BT"]
        for n, proof in enumerate(rows):
            text = proof.line().replace('"', "'")
            lines.append(f'  r{n}["{text}"]' if proof.rule else f'  r{n}(["{text}"])')
        lines += [
            f"  r{numbers[id(p)]} --> r{n}" for n, proof in enumerate(rows) for p in proof.premises if id(p) in numbers
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as a list, each once, with the numbers of its premises: plain values for JSON."""
        rows = list(self.rows())
        numbers = {id(p): n for n, p in enumerate(rows)}
        return {
            "rows": [
                {
                    "name": p.name,
                    "row": p.row,
                    "rule": p.rule,
                    "times": p.times,
                    "absent": list(p.absent),
                    "premises": [numbers[id(q)] for q in p.premises],
                }
                for p in rows
            ]
        }

    def __str__(self) -> str:
        """Return the tree as text, down to 20 levels."""
        return self.show(_SHOWN_LEVELS)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the tree for notebooks: rows that open when they are clicked."""
        return fragment(self._html(0))

    def _html(self, level: int) -> Markup:
        line = escaped(self.line())
        if not self.premises or level == _SHOWN_LEVELS:
            return Markup(f"<p>{line}</p>")
        below = [f'<p class="quiet">no row of {escaped(name)}</p>' for name in self.absent]
        below += [p._html(level + 1) for p in self.premises[:_SHOWN_ROWS]]  # noqa: SLF001 - of the same class
        inner = f'<div style="margin-left: 1.5em">{"".join(below)}</div>'
        return Markup(f"<details{' open' if level < 3 else ''}><summary>{line}</summary>{inner}</details>")  # noqa: PLR2004 - the first levels
