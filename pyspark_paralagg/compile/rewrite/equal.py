"""Group the variables of a rule into equality classes, for static unification.

(docs/papers.md: Compiling Data-Parallel Datalog, section 3.2.) ``x = y`` between plain columns of one type puts both in
one class. Spark's equality is transitive on every type: NaN equals itself, -0.0 equals 0.0. A variable of a class is
never null in a row that passes all conditions.
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
    def from_conditions(cls, conditions: Iterable[Expr], accepts: Callable[[str], bool]) -> Classes:
        """Return the classes that the equalities in ``conditions`` make of the names that ``accepts`` selects."""
        classes = cls()
        for condition in conditions:
            pair = equality(condition)
            if pair is not None and all(accepts(name) for name in pair):
                classes.unite(*pair)
        return classes

    def unite(self, left: str, right: str) -> None:
        """Merge the classes of the two names."""
        merged = self.mates(left) | self.mates(right)
        for name in merged:
            self._class_of[name] = merged

    def mates(self, name: str) -> set[str]:
        """Return the names equal to ``name``, itself included."""
        return self._class_of.get(name, {name})

    def are_equal(self, left: str, right: str) -> bool:
        """Return whether the two names are in one class."""
        return right in self.mates(left)


def equality(condition: Expr) -> tuple[str, str] | None:
    """Return the two variables that ``condition`` equates; None for any other condition."""
    if isinstance(condition, Call) and condition.fn == "EqualTo":
        left, right = condition.args
        if isinstance(left, Col) and isinstance(right, Col) and left.type == right.type:
            return left.name, right.name
    return None
