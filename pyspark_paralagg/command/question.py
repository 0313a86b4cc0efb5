"""Answer ``--why`` and ``--why-not``: compute the text with a question, in this process, and print the answer."""

from __future__ import annotations

import csv
import re
import sys
from typing import TYPE_CHECKING

from pyspark_paralagg.command import engine, tables
from pyspark_paralagg.command.standalone import Settings, sources_of
from pyspark_paralagg.compile.rewrite.derivations import Derivations
from pyspark_paralagg.compile.rewrite.failures import Failures
from pyspark_paralagg.datalog.lower.unsigned import check_ansi
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.why.absence import absence_of
from pyspark_paralagg.why.constants import shown
from pyspark_paralagg.why.prover import first_proof
from pyspark_paralagg.why.text import compiled_question, decoders_of, keys_of

if TYPE_CHECKING:
    from pyspark_paralagg.command.task import Task
    from pyspark_paralagg.datalog.lower.resolved import Resolved

_ROW = re.compile(r"\s*([\w.?]+)\s*\((.*)\)\s*\.?\s*", re.DOTALL)


def run(task: Task) -> None:
    """Print the proof of the row of ``--why``, or why the row of ``--why-not`` is missing; write no outputs."""
    settings = Settings.from_options(task.options)
    for rows in task.deltas:
        raise tables.needs_spark(str(rows.path))
    inputs = tables.open_inputs(task.inputs)
    columns = {name: files[0].columns for name, files in inputs.items()}
    resolved = resolve_text(task.text, columns, functions=task.functions)
    check_ansi(resolved, ansi=settings.ansi)
    option = "--why" if task.options.why else "--why-not"
    name, given = _read(task.options.why or task.options.why_not or "", option, resolved)
    keys = keys_of(resolved, task.text, name, given)
    question = Derivations(name, [keys]) if option == "--why" else Failures(name, keys)
    plan = compiled_question(resolved, question, name, Setting(settings.ansi), settings.broadcast_max_bytes)
    sources = dict(sources_of(resolved, plan, inputs))
    result = engine.run_in_process(plan, sources, [question.name], lambda _: None, ansi=settings.ansi)
    rows_found = result.tables[question.name].to_pylist()
    if isinstance(question, Derivations):
        proof = first_proof(question, rows_found, shown(name, given), decoders_of(task.text))
        sys.stdout.write(f"{proof}\n")
    else:
        sys.stdout.write(f"{absence_of(question, rows_found, shown(name, given))}\n")


def _read(text: str, option: str, resolved: Resolved) -> tuple[str, dict[str, str]]:
    """Return relation and keys of a row such as ``dist(7, _)``; raise ``UsageError`` ``PARALAGG_WHY``."""
    found = _ROW.fullmatch(text)
    if found is None:
        raise _wrong(f"{option} {text!r} is no row", text, option, "write a relation and its values: 'dist(7, _)'")
    name = found[1]
    if name not in resolved.shapes:
        raise _wrong(f"the text has no relation {name!r}", name, option, did_you_mean(name, list(resolved.shapes)))
    values = next(csv.reader([found[2]], skipinitialspace=True), [])
    columns = resolved.names(name)
    if len(values) != len(columns):
        message = f"{name} has {len(columns)} columns, and {text!r} has {len(values)} values"
        raise _wrong(message, text, option, f"write {name}({', '.join(columns)}), with _ for what is no key")
    return name, {c: v.strip() for c, v in zip(columns, values, strict=True) if v.strip() != "_"}


def _wrong(message: str, value: object, option: str, hint: str) -> UsageError:
    return UsageError("PARALAGG_WHY", message, value=value, place=option, hint=hint)
