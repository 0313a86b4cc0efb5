"""Ask for the proofs of some rows of a program, and check what they rest on: an engine of ``engines`` without rows."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING, Any

from campaigns.programs.engines import interpreted_kernels, meaning
from mpi.staged import arrow

from mpi_backend.loop.alone import run_alone
from pyspark_paralagg.compile.rewrite.derivations import Derivations
from pyspark_paralagg.compile.rewrite.failures import Failures
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.why.absence import absence_of
from pyspark_paralagg.why.prover import first_proof
from pyspark_paralagg.why.text import compiled_question, keys_of

if TYPE_CHECKING:
    from campaigns.programs.engines import Rows
    from datalog.programs_random import Case

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.program.question import Question
    from pyspark_paralagg.why.proof import Proof

_RELATIONS = 2


def explained(case: Case) -> list[Rows]:
    """Check the proof of a row of some relations, and why a row that is not there is missing. No rows to compare."""
    expected = meaning(case)
    resolved = resolve_text(parse(case.text), case.inputs)
    known: dict[str, set[tuple[Any, ...]]] = {name: set(rows) for name, rows in (expected | dict(case.facts)).items()}
    dice = random.Random(zlib.crc32(case.text.encode()))
    with interpreted_kernels():
        derived = {r.name for r in resolved.program.relations}
        names = [n for n, rows in expected.items() if rows and n in derived and "@" not in n]
        for name in dice.sample(names, min(_RELATIONS, len(names))):
            row = dice.choice(expected[name])
            _check(_proof(case, resolved, name, row), name, row, resolved, known)
    return []


def _proof(case: Case, resolved: Resolved, name: str, row: tuple[Any, ...]) -> Proof | None:
    """Return the proof of ``row``; None if several of its columns have derivations of their own, or a key is null."""
    given = _keys(resolved, name, row)
    if None in given.values():
        return None
    question = Derivations(name, [keys_of(resolved, parse(case.text), name, given)])
    missing = Failures(name, question.rows[0])
    if "there is a row" not in (_refused(case, resolved, missing, name) or ""):
        raise AssertionError(f"why_not does not find {name}{row}")
    try:
        return first_proof(question, _answer(case, resolved, question, name), f"{name}{row}")
    except UsageError as problem:
        allowed = ("derivations of their own", "a limit of", "from rows of the result, but for itself")
        if not any(text in problem.message for text in allowed) or not resolved.program.relation(name).dependents:
            raise
        return None


def _refused(case: Case, resolved: Resolved, question: Failures, name: str) -> str | None:
    """Return why ``why_not`` has no answer."""
    try:
        absence_of(question, _answer(case, resolved, question, name), name)
    except UsageError as problem:
        return problem.message
    return None


def _keys(resolved: Resolved, name: str, row: tuple[Any, ...]) -> dict[str, Any]:
    values = dict(zip(resolved.names(name), row, strict=True))
    return {k.name: values[k.name] for k in resolved.program.relation(name).keys}


def _answer(case: Case, resolved: Resolved, question: Question, name: str) -> list[dict[str, Any]]:
    plan = compiled_question(resolved, question, name, Setting())
    sources = {}
    for n in {i.source for i in plan.inputs if i.relation is None}:
        source = resolved.sources[n]
        rows = [*case.facts.get(source.relation, ()), *source.rows]
        sources[n] = iter(arrow([(c.name, c.type) for c in source.columns], rows).to_batches())
    return run_alone(plan, sources, [question.name])[0][question.name].to_pylist()


def _check(
    proof: Proof | None, name: str, row: tuple[Any, ...], resolved: Resolved, known: dict[str, set[tuple[Any, ...]]]
) -> None:
    """Check that the proof is of ``row``, and that it rests on rows that exist, by rules of their relations."""
    if proof is None:
        return
    assert proof.row == dict(zip(resolved.names(name), row, strict=True)), f"{proof.row} is shown for {name}{row}"
    contributions = {id(q) for p in proof.rows() if p.contributions for q in p.premises}
    for p in proof.rows():
        if id(p) in contributions or p.name not in known:
            continue
        columns = resolved.names(p.name)
        values = tuple(p.row.get(c) for c in columns)
        assert p.row.keys() == set(columns), f"{p.name} has the columns {columns}, shown are {list(p.row)}"
        assert values in known[p.name], f"{p.name}{values} is no row"
