"""Define columns that neither base nor step has: ``ra.hops``, ``ra.path``. They trace how the best row was derived.

``program.traced`` names the relation that computes hops and parents, and ``compile.rewrite.trace_paths`` adds it to a
Program. ``api.routes`` makes the routes of parents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


TRACE_WORDS = ("path", "hops")
"""The words of texts and messages: ``$PATH(d)``, ``$HOPS(d)``. No aggregator of a user has such a name."""


@dataclass(frozen=True)
class Hops:
    """Count the steps that derive the best row from a base row, which has 0.

    ``order`` is the column that decides which row is best, aggregated with ``"min"`` or ``"max"``. Among rows that are
    equally good, the fewest steps count. Without ``order`` (for a relation of keys alone) it is the least number of
    steps to the key. The column is a ``bigint`` that neither base nor step has.

    >>> {"dist": "min", "legs": Hops("dist")}["legs"]
    hops('dist')
    """

    order: str | None = None

    def __repr__(self) -> str:
        return f"hops({'' if self.order is None else repr(self.order)})"


@dataclass(frozen=True, init=False)
class Path:
    """Return the keys of the rows along the derivation of the best row, from a base row to this one, both included.

    ``order`` is as for :class:`Hops`. The column is an ``array`` of the key's type, or of structs if there are several
    keys; neither base nor step has it. With ``columns`` it is an array of these columns, or of structs if there are
    several: ``ra.path("dist", columns=["node", "line"])``. They are columns of the relation, or others that the step
    returns only for the path, such as the line of each leg; for a base row these are null.

    Of equally good derivations the one with the fewest steps is taken, then the smallest parent (first key, then
    second), then the smallest values of the step's columns. Null is larger than any value. ``limit`` is the most rows
    of a path; a longer one is an error.

    The loop itself finds parents, or a search over its rows; the arrays are made in one task, which holds keys and
    parents of all rows. Without the package's jar it is a Python worker, with numpy and pyarrow. Each branch of the
    step may read the relation once, and no other relation of the recursion. A row whose ``order`` is null has no path,
    nor has one that only a replaced value derives: ``PARALAGG_PATH_LOST``. Plain DataFrames search in a classic session
    with the package's jar.
    """

    order: str | None
    columns: tuple[str, ...]
    limit: int | None

    def __init__(self, order: str | None = None, *, columns: Sequence[str] = (), limit: int | None = None) -> None:
        object.__setattr__(self, "order", order)
        is_list = isinstance(columns, Iterable) and not isinstance(columns, str)
        object.__setattr__(self, "columns", tuple(columns) if is_list else (columns,))
        object.__setattr__(self, "limit", limit)

    def __repr__(self) -> str:
        return f"path({'' if self.order is None else repr(self.order)})"


@dataclass(frozen=True)
class Trace:
    """A traced column of a relation."""

    name: str
    kind: Hops | Path
