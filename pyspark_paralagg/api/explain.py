"""``explain(df)``: the recursion in ``df`` as text, page or picture, from what was meant to who runs it and why.

Four parts: the Program (Datalog), the compiler's stages (what each pass changed), the Plan (strata, indexes, rules,
where they run), the executor with the first reason. Each choice stands with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.report.run_report import find

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.report.run_report import RunReport

_Stage = tuple[str, str, Sequence[str]]
"""Name, text and reasons, as they travel in the Plan's JSON."""

NOTHING = "There is no recursive aggregate in this DataFrame."


def explain(df: DataFrame, format: str = "text") -> str:  # noqa: A002 - reads well in a call
    """The outermost recursion in ``df``; says so where there is none. Runs nothing.

    ``format`` is ``"text"``; ``"html"`` for the same as a page of its own, with the last run's picture;
    ``"mermaid"`` for the Plan as a flowchart of inputs, indexes, relations and rules in the mermaid language, which
    notebooks, GitHub and most editors draw; or one part alone: ``"program"``, ``"plan"``, or the name of a stage of
    the compiler, such as ``"binarize"``.

    >>> print(ra.explain(dist))                                                           # doctest: +SKIP
    Program
      relation r(node, min dist) from input 0
      ...
    Executor: spark
      why: the Spark engine takes every step that it can compile
    """
    from pyspark_paralagg.report.engine_report import describe, left_to_spark  # noqa: PLC0415 - they import pyspark's parts

    known = formats()
    if format not in known:
        hint = did_you_mean(format, known) if isinstance(format, str) else f"there are {', '.join(known)}"
        message = f"explain has no format {format!r}"
        raise UsageError("PARALAGG_BAD_OPTION", message, value=format, place="format", hint=hint)
    record = find(df)
    if record is not None and record.report is not None:
        sections = {"Program": record.program, "Plan": _NAIVE}
        executor = (record.report.backend, record.report.reason)
        return _composed(format, sections, [], _NAIVE_PICTURE, executor, report(df))
    described = describe(df)
    if described is None:
        return _nothing(format, left_to_spark(df))
    plan = _left(_up_to(described["plan"], described["stratum"]), described)
    executor = (described["backend"], described["reason"])
    return explain_plan(format, described["program"], described["stages"], plan, executor, report(df))


def formats() -> tuple[str, ...]:
    """What ``format`` may be, and ``paralagg run --explain``."""
    from pyspark_paralagg.compile import STAGES  # noqa: PLC0415 - importing the package does not wait for the compiler

    return ("text", "html", "mermaid", "program", *STAGES)


def explain_plan(  # noqa: PLR0913, PLR0917 - all that an explanation is made of
    format: str,  # noqa: A002 - as in ``explain``
    program: str,
    stages: Sequence[_Stage],
    plan: dict[str, Any],
    executor: tuple[str, str],
    ran: RunReport | None = None,
) -> str:
    """The explanation of a Plan (JSON): ``executor`` is who runs it, and why; ``ran`` how the last run was."""
    sections = {"Program": program, "Stages": _stages(stages), "Plan": _plan(plan, stages)}
    picture = _picture(plan) if format in ("mermaid", "html") else ""
    return _composed(format, sections, stages, picture, executor, ran)


def _composed(  # noqa: PLR0913, PLR0917 - likewise
    format: str,  # noqa: A002 - as in ``explain``
    sections: dict[str, str],
    stages: Sequence[_Stage],
    picture: str,
    executor: tuple[str, str],
    ran: RunReport | None,
) -> str:
    if format == "html":
        from pyspark_paralagg.report.explain_page import explain_page  # noqa: PLC0415 - few ask

        return explain_page(sections, stages, picture, executor, ran)
    if format != "text":
        return picture if format == "mermaid" else _part(format, sections, stages)
    parts = [f"{title}\n{_indented(text)}" for title, text in sections.items()]
    parts.append(f"Executor: {executor[0]}\n  why: {executor[1]}")
    parts.append("Not run yet" if ran is None else f"Last run\n{_indented(repr(ran))}")
    return "\n\n".join(parts)


_NAIVE = (
    "R(0) = agg(initial rows, or the base)\n"
    "R(i+1) = agg(base + step(R(i))), a DataFrame a round, cut off by a local checkpoint\n"
    "ran at the call, from Python"
)

_NAIVE_PICTURE = """\
flowchart LR
  base([base]) --> agg
  start([initial rows, or the base]) -- R0 --> state[(R)]
  state --> step[step] --> agg["agg, a DataFrame a round"] --> state"""


def _nothing(format: str, reason: str | None) -> str:  # noqa: A002 - as in ``explain``
    told = NOTHING if reason is None else f"{NOTHING} A recursive CTE under min or max stays Spark's own: {reason}."
    if format == "html":
        from pyspark_paralagg.report.page import escaped, page, paragraph  # noqa: PLC0415 - few ask

        return page("Recursive aggregate", paragraph(escaped(told)))
    return f"%% {told}\nflowchart LR" if format == "mermaid" else told


def _up_to(plan: dict[str, Any], stratum: int) -> dict[str, Any]:
    """Without the strata above: the relation does not need them, and their inputs are not made."""
    return {**plan, "strata": plan["strata"][: stratum + 1]}


def _left(plan: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    """With the columns that Catalyst's ``PruneDependents`` leaves out in this query among the reasons."""
    own = next(r for r in plan["strata"][-1]["relations"] if r["name"] == described["relation"])
    gone = [d["column"]["name"] for d in own["dependents"] if d["column"]["name"] not in described["computed"]]
    if not gone or not described["computed"]:
        return plan
    them = "them" if len(gone) > 1 else "it"
    reason = f"{own['name']}: {', '.join(gone)} left out in this query, where nobody reads {them}"
    return {**plan, "reasons": [*plan["reasons"], reason]}


def _picture(plan: dict[str, Any]) -> str:
    from pyspark_paralagg.plan.mermaid import show_mermaid  # noqa: PLC0415 - few ask

    return show_mermaid(plan)


def _part(name: str, sections: dict[str, str], stages: Sequence[_Stage]) -> str:
    found = sections.get(name.title()) or _stages([s for s in stages if s[0] == name])
    return found or f"{name} changes nothing here."


def _stages(stages: Sequence[_Stage]) -> str:
    lines = []
    for name, text, notes in stages:
        lines += [name, *(f"  {line}" for line in text.splitlines()), *(f"  because {note}" for note in notes)]
    return "\n".join(lines)


def _plan(plan: dict[str, Any], stages: Sequence[_Stage]) -> str:
    from pyspark_paralagg.plan.printer import show_plan  # noqa: PLC0415 - few ask

    told = {note for _, _, notes in stages for note in notes}
    return show_plan({**plan, "reasons": [r for r in plan["reasons"] if r not in told]})


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
