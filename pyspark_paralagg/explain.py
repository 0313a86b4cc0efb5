"""``explain(df)``: the recursion in ``df`` as text, from what was meant to who runs it and why.

Three parts: the Program (Datalog), the Plan (strata, indexes, rules, where they run), the executor with the first
reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.report import find, report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(df: DataFrame) -> str:
    """The outermost recursion in ``df``; says so where there is none. Runs nothing.

    >>> print(ra.explain(dist))                                                           # doctest: +SKIP
    Program
      relation r(node, min dist) from input 0
      ...
    Executor: spark
      why: the Spark engine takes every step that it can compile
    """
    from pyspark_paralagg.backends.spark import describe  # noqa: PLC0415 - it imports pyspark's parts when called

    record = find(df)
    if record is not None and record.report is not None:
        sections = [("Program", record.program), ("Plan", _NAIVE)]
        backend, reason = record.report.backend, record.report.reason
    else:
        described = describe(df)
        if described is None:
            return "There is no recursive aggregate in this DataFrame."
        sections = [("Program", described["program"]), ("Plan", _plan(described["plan"]))]
        backend, reason = "spark", described["reason"]
    parts = [f"{title}\n{_indented(text)}" for title, text in sections]
    parts.append(f"Executor: {backend}\n  why: {reason}")
    ran = report(df)
    parts.append("Not run yet" if ran is None else f"Last run\n{_indented(repr(ran))}")
    return "\n\n".join(parts)


_NAIVE = (
    "R(0) = agg(initial rows, or the base)\n"
    "R(i+1) = agg(base + step(R(i))), a DataFrame a round, cut off by a local checkpoint\n"
    "ran at the call, from Python"
)


def _plan(data: dict[str, Any]) -> str:
    try:
        from pyspark_paralagg.plan.printer import show_plan  # noqa: PLC0415
    except ImportError:
        return json.dumps(data, indent=1)
    return show_plan(data)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
