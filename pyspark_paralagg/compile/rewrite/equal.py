"""Which variables of a rule are equal: the classes behind static unification (paper 004, section 3).

``x = y`` between plain columns of one type puts both in one class; Spark's equality is transitive on every type (NaN
equals itself, -0.0 equals 0.0), and a variable of a class is never null where all the conditions hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Call, Col, Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Classes:
    """Disjoint sets of names.

    >>> classes = Classes()
    >>> classes.unite("x", "y")
    >>> classes.unite("z", "y")
    >>> sorted(classes.mates("x")), classes.are_equal("x", "w")
    (['x', 'y', 'z'], False)
    """

    def __init__(self) -> None:
        self._class_of: dict[str, set[str]] = {}

    @classmethod
    def of(cls, conditions: Iterable[Expr], wanted: Callable[[str], bool]) -> Classes:
        """The classes that ``conditions`` make of the names that ``wanted`` accepts."""
        found = cls()
        for c in conditions:
            pair = equality(c)
            if pair is not None and all(wanted(name) for name in pair):
                found.unite(*pair)
        return found

    def unite(self, one: str, other: str) -> None:
        """From now on the two are equal."""
        both = self.mates(one) | self.mates(other)
        for name in both:
            self._class_of[name] = both

    def mates(self, name: str) -> set[str]:
        """All that equals ``name``, itself included."""
        return self._class_of.get(name, {name})

    def are_equal(self, one: str, other: str) -> bool:
        """Whether the two are in one class."""
        return other in self.mates(one)


def equality(condition: Expr) -> tuple[str, str] | None:
    """The two variables that ``condition`` says are equal; None for any other condition."""
    if isinstance(condition, Call) and condition.fn == "EqualTo":
        left, right = condition.args
        if isinstance(left, Col) and isinstance(right, Col) and left.type == right.type:
            return left.name, right.name
    return None
