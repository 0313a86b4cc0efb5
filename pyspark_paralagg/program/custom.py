"""A user's own aggregator as the Program has it: what ``ra.aggregator`` was given, for columns of known types.

``source`` is the Python side's value, whose lambdas the DataFrame executor calls; ``combine`` and ``improves`` are the
same as expressions over the variables ``old.c`` and ``new.c``, which the Spark engine compiles. An engine's adapter
fills the second in (``custom_from_json``), since only Spark can say what a Column means.
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

    ``columns`` are the names that its lambdas know. ``doubts`` is the counterexample to idempotence, None where there
    is none: with it values accumulate, and ``has_inverse`` says whether that may recurse.
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
        """What the passes want to know of an aggregator."""
        return Aggregator(
            self.name, lambda _, new: new, "what it is for", lambda _: True, is_idempotent=not self.doubts
        )


def custom_from_json(custom: Custom, node: dict[str, Any]) -> Custom:
    """``custom`` with its expressions: ``node`` is the Step JSON of a projection of the columns old, then new.

    Its outputs are one ``combine`` a column and, where there is a further one, ``improves``. Raises
    ``UnsupportedError`` where the engine cannot compile one.
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
                what = "gives another value each time" if not e.deterministic else "cannot be compiled by Spark"
                raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", f"{e.fn} {what}", value=e.fn, place=place)
        exprs.append(substitute(expr, variable))
    n = len(custom.columns)
    improves = exprs[n] if len(exprs) > n else None
    return replace(custom, source=None, combine=tuple(exprs[:n]), improves=improves)
