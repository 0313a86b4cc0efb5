"""Explain the recursion in a DataFrame as text, HTML page or diagram: ``explain(df)``.

Four parts: the Program (Datalog), the compiler's stages (the changes of each pass), the Plan (strata, indexes, rules,
distribution), and the executor with the first reason for it. Each choice is shown with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.report.run_report import find
from pyspark_paralagg.session.arguments import check_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.report.run_report import RunReport

_Stage = tuple[str, str, Sequence[str]]
"""Name, text and reasons of a stage, as in the Plan's JSON."""

NOTHING = "There is no recursive aggregate in this DataFrame."


def explain(df: DataFrame, format: str = "text") -> str:  # noqa: A002 - reads well in a call
    """Explain the outermost recursion in ``df``, or say that there is none. Calling it runs nothing.

    format
        ``"text"``: all parts as text. ``"html"``: all parts as a self-contained page, with a plot of the last run.
        ``"mermaid"``: the Plan as a flowchart of inputs, indexes, relations and rules in the mermaid language, which
        notebooks, GitHub and most editors draw. ``"program"``, ``"plan"``, or the name of a compiler stage such as
        ``"binarize"``: this part alone.

    >>> print(ra.explain(dist))                                                           # doctest: +SKIP
    Program
      relation r(node, min dist) from input 0
      ...
    Executor: spark
      why: the Spark engine runs every step that it supports
    """
    from pyspark_paralagg.compile.compile_step import texts_of  # noqa: PLC0415 - likewise
    from pyspark_paralagg.report.engine_report import computed_columns, describe, left_to_spark  # noqa: PLC0415 - they import pyspark's parts

    names = formats()
    if format not in names:
        hint = did_you_mean(format, names) if isinstance(format, str) else f"use one of {', '.join(names)}"
        message = f"explain has no format {format!r}"
        raise UsageError("PARALAGG_BAD_OPTION", message, value=format, place="format", hint=hint)
    check_dataframe("df", df, "ra.explain")
    record = find(df)
    if record is not None and record.report is not None:
        sections = {"Program": record.program, "Plan": _NAIVE}
        executor = (record.report.backend, record.report.reason)
        return _compose(format, sections, [], _NAIVE_PICTURE, executor, report(df))
    described = describe(df)
    if described is None:
        return _no_recursion(format, left_to_spark(df))
    plan = _without_later_strata(described["plan"], described["stratum"])
    plan = _with_pruned_columns(plan, described["relation"], computed_columns(df))
    executor = (described["backend"], described["reason"])
    program, stages = texts_of(described["plan"])
    return explain_plan(format, program, stages, plan, executor, report(df))


def formats() -> tuple[str, ...]:
    """Return the values that ``format`` and ``paralagg run --explain`` take."""
    from pyspark_paralagg.compile import STAGES  # noqa: PLC0415 - importing the package does not wait for the compiler

    return ("text", "html", "mermaid", "program", *STAGES)


def explain_plan(  # noqa: PLR0913, PLR0917 - all parts of an explanation
    format: str,  # noqa: A002 - as in ``explain``
    program: str,
    stages: Sequence[_Stage],
    plan: dict[str, Any],
    executor: tuple[str, str],
    last_run: RunReport | None = None,
) -> str:
    """Explain a Plan (JSON). ``executor`` is the executor and its reason, ``last_run`` the report of the last run."""
    sections = {"Program": program, "Stages": _stages(stages), "Plan": _plan(plan, stages)}
    picture = _picture(plan) if format in ("mermaid", "html") else ""
    return _compose(format, sections, stages, picture, executor, last_run)


def _compose(  # noqa: PLR0913, PLR0917 - likewise
    format: str,  # noqa: A002 - as in ``explain``
    sections: dict[str, str],
    stages: Sequence[_Stage],
    picture: str,
    executor: tuple[str, str],
    last_run: RunReport | None,
) -> str:
    if format == "html":
        from pyspark_paralagg.report.explain_page import explain_page  # noqa: PLC0415 - rarely needed

        return explain_page(sections, stages, picture, executor, last_run)
    if format != "text":
        return picture if format == "mermaid" else _part(format, sections, stages)
    parts = [f"{title}\n{_indented(text)}" for title, text in sections.items()]
    parts.append(f"Executor: {executor[0]}\n  why: {executor[1]}")
    parts.append("Not run yet" if last_run is None else f"Last run\n{_indented(repr(last_run))}")
    return "\n\n".join(parts)


_NAIVE = (
    "R(0) = agg(initial rows, or the base)\n"
    "R(i+1) = agg(base + step(R(i))), one DataFrame for each round, with a local checkpoint\n"
    "computed in Python, at the call"
)

_NAIVE_PICTURE = """\
flowchart LR
  base([base]) --> agg
  start([initial rows, or the base]) -- R0 --> state[(R)]
  state --> step[step] --> agg["agg, one DataFrame for each round"] --> state"""


def _no_recursion(format: str, reason: str | None) -> str:  # noqa: A002 - as in ``explain``
    message = NOTHING if reason is None else f"{NOTHING} Spark runs the recursive CTE under min or max: {reason}."
    if format == "html":
        from pyspark_paralagg.report.page import escaped, page, paragraph  # noqa: PLC0415 - rarely needed

        return page("Recursive aggregate", paragraph(escaped(message)))
    return f"%% {message}\nflowchart LR" if format == "mermaid" else message


def _without_later_strata(plan: dict[str, Any], stratum: int) -> dict[str, Any]:
    """Return ``plan`` without the strata after ``stratum``, which the relation does not need."""
    return {**plan, "strata": plan["strata"][: stratum + 1]}


def _with_pruned_columns(plan: dict[str, Any], name: str, computed: Sequence[str]) -> dict[str, Any]:
    """Return ``plan`` with a reason that names the columns which Catalyst's ``PruneDependents`` removed, if any."""
    relation = next(r for r in plan["strata"][-1]["relations"] if r["name"] == name)
    pruned = [d["column"]["name"] for d in relation["dependents"] if d["column"]["name"] not in computed]
    if not pruned or not computed:
        return plan
    them = "them" if len(pruned) > 1 else "it"
    reason = f"{relation['name']}: {', '.join(pruned)} not computed: this query does not read {them}"
    return {**plan, "reasons": [*plan["reasons"], reason]}


def _picture(plan: dict[str, Any]) -> str:
    from pyspark_paralagg.plan.mermaid import show_mermaid  # noqa: PLC0415 - rarely needed

    return show_mermaid(plan)


def _part(name: str, sections: dict[str, str], stages: Sequence[_Stage]) -> str:
    text = sections.get(name.title()) or _stages([s for s in stages if s[0] == name])
    return text or f"{name} does not change this program."


def _stages(stages: Sequence[_Stage]) -> str:
    lines = []
    for name, text, notes in stages:
        lines += [name, *(f"  {line}" for line in text.splitlines()), *(f"  because {note}" for note in notes)]
    return "\n".join(lines)


def _plan(plan: dict[str, Any], stages: Sequence[_Stage]) -> str:
    from pyspark_paralagg.plan.printer import show_plan  # noqa: PLC0415 - rarely needed

    stage_notes = {note for _, _, notes in stages for note in notes}
    return show_plan({**plan, "reasons": [r for r in plan["reasons"] if r not in stage_notes]})


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
