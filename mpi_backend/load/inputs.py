"""Read the inputs of a stratum: replace texts by words that all ranks share, drop duplicates, evaluate expressions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mpi_backend.codegen.input import evaluate
from mpi_backend.kernels import hashing
from mpi_backend.kernels.distinct import distinct
from mpi_backend.state.gathered import gathered
from mpi_backend.state.rows import flatten, send_to_owners
from mpi_backend.state.strings import Strings, sorted_texts
from mpi_backend.state.types import Table, type_of
from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import Col, Lit, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.types import Column
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.program import Input


@dataclass(frozen=True)
class Inputs:
    """The inputs of a stratum, by id, and their texts."""

    tables: dict[int, Table]
    strings: Strings


def read_inputs(
    facts: Facts, sources: Mapping[int, Table], results: Mapping[str, Table], comm: Comm, *, ansi: bool
) -> Inputs:
    """Return the stratum's inputs from ``sources`` (by number) and ``results`` of lower strata. Collective."""
    used = used_inputs(facts)
    tables = {i.id: sources[i.source] if i.relation is None else results[i.relation] for i in used}
    constants = [t for i in used for t in _texts((*i.exprs, *i.filters))] + _rule_texts(facts)
    strings, tables = intern(tables, constants, comm, facts.functors, ansi=ansi)
    if not facts.is_lattice:
        tables = {
            i.id: _distinct(tables[i.id], comm) if i.is_set and i.relation is None else tables[i.id] for i in used
        }
    tables = {i.id: _evaluate(i, tables[i.id], strings, ansi=ansi) for i in used}
    has_new_texts = comm.allreduce_sum(np.array([float(len(strings) > strings.ranked)]))[0] > 0
    if has_new_texts:
        texts = strings.all()
        with_texts = {
            n: Table(tuple(replace(c, texts=texts) if c.type.kind == "text" else c for c in t.columns), t.count)
            for n, t in tables.items()
        }
        strings, tables = intern(with_texts, constants, comm, facts.functors, ansi=ansi)
    return Inputs(tables, strings)


def used_inputs(facts: Facts) -> list[Input]:
    """Return the inputs that a stratum reads."""
    ids = {i.input for i in facts.stratum.static_indexes}
    ids |= {n for r in facts.stratum.relations for n in (r.base, r.initial) if n is not None}
    return [facts.inputs[n] for n in sorted(ids)]


def _texts(exprs: Iterable[Expr]) -> list[str]:
    return [
        str(e.value)
        for x in exprs
        for e in walk(x)
        if isinstance(e, Lit) and e.type == "string" and e.value is not None
    ]


def _rule_texts(facts: Facts) -> list[str]:
    out: list[str] = []
    for rule in facts.stratum.rules:
        out += _texts(rule.emit)
        for step in rule.steps:
            out += _texts([step.condition] if isinstance(step, Filter) else step.keys)
    for r in facts.stratum.relations:
        for d in r.dependents:
            if d.custom is not None:
                out += _texts([*d.custom.combine, *([d.custom.improves] if d.custom.improves is not None else [])])
    return out


def intern(
    tables: Mapping[int, Table],
    constants: Sequence[str],
    comm: Comm,
    functors: Mapping[str, Functor] = MappingProxyType({}),
    *,
    ansi: bool,
) -> tuple[Strings, dict[int, Table]]:
    """Build one sorted dictionary of the texts of all ranks. Replace the words of texts by their positions in it."""
    arrays = [c.texts for t in tables.values() for c in t.columns if c.type.kind == "text" and c.texts is not None]
    # A null has the word 0, so the dictionary needs an entry there even if there is no text.
    texts = sorted_texts([*arrays, pa.array(["", *constants], pa.large_string())])
    if comm.size > 1:
        texts = sorted_texts([t.column(0).combine_chunks() for t in gathered([texts], comm)])
    strings = Strings(texts, functors, ansi=ansi)
    ranked = {}
    for n, table in tables.items():
        ranked[n] = Table(tuple(_rank_texts(c, texts) for c in table.columns), table.count)
    return strings, ranked


def _rank_texts(column: Column, sorted_array: pa.Array) -> Column:
    if column.type.kind != "text":
        return column
    if column.texts is None or not len(column.texts):
        return replace(column, texts=None)
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to load, and few inputs have texts

    ranks = np.asarray(pc.index_in(column.texts.cast(pa.large_binary()), value_set=sorted_array)).astype(np.int64)
    words = ranks[column.words] if len(column.words) else column.words
    return replace(column, words=words, texts=None)


def _distinct(table: Table, comm: Comm) -> Table:
    """Return the distinct rows of all ranks, each row at one rank."""
    masked = bool(comm.allreduce_sum(np.array([float(any(c.nulls is not None for c in table.columns))]))[0])
    columns, count = table.columns, table.count
    if comm.size > 1 and columns:
        hashes = _row_hashes(flatten(columns, count, masked=masked), len(columns) + masked, count)
        columns = tuple(send_to_owners(columns, hashes % comm.size, comm, masked=masked))
        count = len(columns[0])
    first = distinct(flatten(columns, count, masked=masked), len(columns) + masked, count)
    first.sort()
    return Table(tuple(c.take(first) for c in columns), len(first))


def _row_hashes(rows: Array, stride: int, count: int) -> Array:
    out = np.zeros(count, np.int32)
    places = np.arange(stride)
    none, no_bytes = np.zeros(1, np.int64), np.zeros(0, np.uint8)
    hashing.hash_words(rows, 0, stride, count, places, np.zeros(stride, np.int64), -1, none, no_bytes, out)
    return out & 0x7FFFFFFF


def _evaluate(declared: Input, table: Table, strings: Strings, *, ansi: bool) -> Table:
    names = [c.name for c in declared.columns]
    if not declared.filters and all(
        isinstance(e, Col) and type_of(e.type) == table.columns[names.index(e.name)].type for e in declared.exprs
    ):
        picked = tuple(table.columns[names.index(e.name)] for e in declared.exprs if isinstance(e, Col))
        return Table(picked, table.count)
    columns, count = evaluate(declared, table.columns, table.count, strings, ansi=ansi)
    return Table(tuple(columns), count)
