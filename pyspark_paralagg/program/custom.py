"""Define a user-defined aggregator in the Program: the arguments of ``ra.aggregator``, for columns of known types.

``source`` is the Python object, whose lambdas the DataFrame executor calls. ``combine`` and ``improves`` are the same
functions as expressions over the variables ``old.c`` and ``new.c``, which the Spark engine compiles. An engine's
adapter sets them by ``custom_from_json``, because only Spark can analyse a Column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.aggregators import Aggregator
from pyspark_paralagg.program.expr import Call, Col, Expr, from_json, substitute, walk


@dataclass(frozen=True)
class Custom:
    """One use of a user's aggregator.

    ``columns`` are the column names in its lambdas. ``doubts`` is a counterexample to idempotence, or None. With a
    counterexample values accumulate, and the aggregator may recurse only if it ``has_inverse``.
    """

    name: str
    columns: tuple[str, ...]
    source: Any = None
    doubts: str | None = None
    has_inverse: bool = False
    combine: tuple[Expr, ...] = ()
    improves: Expr | None = None

    @property
    def definition(self) -> Aggregator:
        """Return the definition that the passes read."""
        return Aggregator(
            self.name, lambda _, new: new, "what it is for", lambda _: True, is_idempotent=not self.doubts
        )


def custom_from_json(custom: Custom, node: dict[str, Any]) -> Custom:
    """Return ``custom`` with its expressions; ``node`` is the Step JSON of a projection of the columns old, then new.

    Its outputs are one ``combine`` for each column and then ``improves``, if there is one. Raises
    ``UnsupportedError`` if the engine cannot compile one of them.
    """
    place = f"aggregator {custom.name}"
    sides = [c["col"] for c in node["child"]["columns"]]
    names = dict(zip(sides, [f"{side}.{c}" for side in ("old", "new") for c in custom.columns], strict=True))

    def variable(c: Col) -> Expr:
        return Col(names[c.name], c.type, nullable=False)

    exprs = []
    for output in node["exprs"]:
        expr = from_json(output["expr"])
        for e in walk(expr):
            if isinstance(e, Call) and not (e.deterministic and e.codegen):
                problem = "gives a different value each time" if not e.deterministic else "cannot be compiled by Spark"
                raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", f"{e.fn} {problem}", value=e.fn, place=place)
        exprs.append(substitute(expr, variable))
    n = len(custom.columns)
    improves = exprs[n] if len(exprs) > n else None
    return replace(custom, source=None, combine=tuple(exprs[:n]), improves=improves)
