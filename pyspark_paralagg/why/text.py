"""Explain a row of a relation of a text: the whole text is computed once more, by the engine of ``mpi_backend``.

A text may have many recursions, one above the other. On Spark each is a job of its own, so a proof that crosses them is
computed where all of them are one Program: in this process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile import BROADCAST_MAX_BYTES, compile_program
from pyspark_paralagg.compile.rewrite.derivations import Derivations
from pyspark_paralagg.compile.rewrite.failures import Failures
from pyspark_paralagg.datalog.desugar.structure_reader import StructureReader
from pyspark_paralagg.datalog.desugar.structures import decoder
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, UsageError
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.sets import element_type
from pyspark_paralagg.why.absence import absence_of
from pyspark_paralagg.why.constants import constants, shown
from pyspark_paralagg.why.prover import check_size, first_proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pyspark_paralagg.api.datalog import TextRelation
    from pyspark_paralagg.datalog.lower.resolved import Resolved, Source
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.expr import Lit
    from pyspark_paralagg.program.question import Question
    from pyspark_paralagg.why.absence import Absence
    from pyspark_paralagg.why.proof import Proof

_PLACE = "ra.why"


def why_in_text(df: DataFrame, relation: TextRelation, given: Mapping[str, Any], of: str | None, limit: int) -> Proof:
    """Return the proof of a row of a text's relation; the inputs are read into this process."""
    question = Derivations(relation.name, [keys_of(relation.resolved, relation.tree, relation.name, given)], of)
    found = _answer(df, relation, question)
    check_size(len(found), limit, relation.name)
    return first_proof(question, found, shown(relation.name, given), decoders_of(relation.tree))


def why_not_in_text(df: DataFrame, relation: TextRelation, given: Mapping[str, Any]) -> Absence:
    """Return why a text's relation has no such row; the inputs are read into this process."""
    question = Failures(relation.name, keys_of(relation.resolved, relation.tree, relation.name, given))
    return absence_of(question, _answer(df, relation, question), shown(relation.name, given))


def decoders_of(tree: Text) -> dict[str, list[Callable[[str], str] | None]]:
    """Return what writes the columns of each relation with structures as Soufflé's text."""
    return {
        name: [None if t is None else decoder(t, tree.structures) for t in types]
        for name, types in tree.columns.items()
    }


def keys_of(resolved: Resolved, tree: Text, name: str, given: Mapping[str, Any]) -> tuple[Lit, ...]:
    """Return the given keys of the relation ``name`` of a text; raise ``UsageError`` ``PARALAGG_WHY``.

    A key that is a structure is given as Soufflé's text: ``[1, nil]``.
    """
    structured = dict(zip(resolved.names(name), tree.columns.get(name, ()), strict=False))
    given = {k: v if structured.get(k) is None else _encoded(k, v, str(structured[k]), tree) for k, v in given.items()}
    relations = {r.name: r for r in resolved.program.relations}
    if name in relations:
        keys = {k.name: k.type for k in relations[name].keys}
    else:
        keys = {c.name: c.type for s in resolved.sources if s.relation == name for c in s.columns}
    return constants(given, keys, name)


def _encoded(column: str, value: object, type_: str, tree: Text) -> str:
    try:
        return StructureReader(type_, tree.structures).encode(str(value))
    except ValueError as problem:
        message = f"the key {column!r} {problem}"
        hint = f"write the {type_} as the result shows it"
        raise UsageError("PARALAGG_WHY", message, value=value, place=_PLACE, hint=hint) from None


def compiled_question(
    resolved: Resolved, question: Question, name: str, setting: Setting, broadcast_max_bytes: int = BROADCAST_MAX_BYTES
) -> Plan:
    """Return the Plan of the answer; raise ``UnsupportedError`` if only Spark can compute the text."""
    program = replace(requested_program(resolved, [name], question), setting=setting)
    collected = next((r.name for r in program.relations for c in r.columns if element_type(c.type) is not None), None)
    if collected is not None:
        message = f"rows of a text are explained without sets, which {collected!r} has"
        hint = "write the recursion with recursive_agg and ra.collect_set"
        raise UnsupportedError("PARALAGG_WHY_UNSUPPORTED", message, value=collected, place=_PLACE, hint=hint)
    plan = compile_program(program, broadcast_max_bytes)
    try:
        from mpi_backend.codegen.portable import check_portable  # noqa: PLC0415 - numba is slow to load
    except ModuleNotFoundError as problem:
        message = f"a row of a text is explained in this process, and {problem.name} is not installed"
        hint = "pip install 'pyspark-paralagg[mpi]'"
        raise EnvironmentProblem("PARALAGG_PACKAGE_MISSING", message, value=problem.name, hint=hint) from problem
    try:
        check_portable(plan, place=_PLACE, hint="compute it before the text, as a column of an input", inputs=True)
    except UnsupportedError as problem:
        message = f"a row of a text is explained in this process, which cannot compute it: {problem.message}"
        raise UnsupportedError(
            "PARALAGG_WHY_UNSUPPORTED", message, value=problem.value, place=problem.place, hint=problem.hint
        ) from problem
    return plan


def _answer(df: DataFrame, relation: TextRelation, question: Question) -> list[dict[str, Any]]:
    resolved = relation.resolved
    setting = Setting(df.sparkSession.conf.get("spark.sql.ansi.enabled") == "true")
    plan = compiled_question(resolved, question, relation.name, setting)
    read = {i.source for i in plan.inputs if i.relation is None}
    sources = {n: _batches(resolved.sources[n], relation.inputs) for n in sorted(read)}
    from mpi_backend.loop.alone import run_alone  # noqa: PLC0415 - numba is slow to load

    tables, _ = run_alone(plan, sources, [question.name], ansi=setting.ansi)
    rows: list[dict[str, Any]] = tables[question.name].to_pylist()
    return rows


def _batches(source: Source, inputs: Mapping[str, DataFrame]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source: those of its DataFrame, and the facts of the text."""
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    from mpi_backend.state.types import type_of  # noqa: PLC0415 - numba is slow to load

    schema = pa.schema([(c.name, type_of(c.type).arrow) for c in source.columns])
    rows = [tuple(r) for r in inputs[source.relation].collect()] if source.relation in inputs else []
    for part in (rows, source.rows):
        if part:
            columns = zip(*part, strict=True)
            arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
