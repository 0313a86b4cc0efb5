"""Choose the keys by which each relation is distributed over the tasks.

    dist(s, y, min d + w) :- dist(s, x, d), edges(x, y, w)      by s, if edges may be replicated: nothing moves
    dist(y, min d + w)    :- dist(x, d), edges(x, y, w)         by the column that the largest join looks up
    path(x, z)            :- path(x, y), path(y, z)             by the first rule's column, and a copy by the other

Aggregated columns are never among them. See docs/architecture.md, "The compiler's stages".
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Col, Expr
from pyspark_paralagg.program.text import show_size

if TYPE_CHECKING:
    from pyspark_paralagg.compile.physical.bit_rows import BitForm
    from pyspark_paralagg.compile.physical.chain import Chain, Lookup
    from pyspark_paralagg.program.program import Program, Relation


@dataclass(frozen=True)
class Distribution:
    """Key positions by relation; ``is_decomposed`` if no row moves in the loop; and the reasons.

    ``has_bit_rows``: the positions are those of rows of bits.
    """

    by: dict[str, tuple[int, ...]]
    is_decomposed: bool
    reasons: tuple[str, ...]
    has_bit_rows: bool = False


def distribute(
    relations: tuple[Relation, ...],
    chains: tuple[Chain, ...],
    program: Program,
    broadcast_max_bytes: int,
    bit_form: BitForm | None = None,
) -> Distribution:
    """Return the distribution of a stratum's relations for ``chains``; for ``bit_form`` if there is one."""
    size = _static_bytes(chains, program)
    fits = size is not None and size <= broadcast_max_bytes
    is_known = show_size(size) is not None
    large = f"{_megabytes(size or 0)}, more than {_megabytes(broadcast_max_bytes)}" if is_known else "of unknown size"
    note = ""
    if bit_form is not None and fits:
        by: dict[str, tuple[int, ...]] = {r.name: (bit_form.carried[r.name],) for r in relations}
        names = ", ".join(f"{r.name}.{r.keys[bit_form.carried[r.name]].name}" for r in relations)
        reason = (
            f"distributed by {names}, which every rule copies from one atom; the static sides "
            f"({_megabytes(size or 0)}) are stored in every task"
        )
        return Distribution(by, is_decomposed=False, reasons=(reason,), has_bit_rows=True)
    if bit_form is not None:
        note = f"every rule copies a key from one atom, but the static sides are {large}: no rows of bits"
    recursive = [r for r in relations if any(c.rule.head == r.name for c in chains)]
    carried = carried_keys(recursive[0], chains) if len(recursive) == 1 and relations[0] is recursive[0] else ()
    if carried and len(carried) < len(recursive[0].keys):
        names = ", ".join(recursive[0].keys[p].name for p in carried)
        if fits:
            by = {r.name: carried if r is recursive[0] else tuple(range(len(r.keys))) for r in relations}
            reason = (
                f"{recursive[0].name}: distributed by {names}, which every rule carries unchanged; "
                f"the static sides ({_megabytes(size or 0)}) are stored in every task, and the loop exchanges no rows"
            )
            return Distribution(by, is_decomposed=True, reasons=(reason,))
        note = f"{recursive[0].name}: {names} is carried unchanged, but the static sides are {large}: not decomposed"
    by = {}
    reasons = [note] if note else []
    for r in relations:
        by[r.name], reason = _joined_keys(r, chains, program)
        reasons.append(reason)
    for r in relations:
        # A viewed relation has the same keys first, and is counted in the task of its rows.
        by |= {d.view.relation: by[r.name] for d in r.dependents if d.view is not None}
    return Distribution(by, is_decomposed=False, reasons=tuple(reasons))


def carried_keys(relation: Relation, chains: tuple[Chain, ...]) -> tuple[int, ...]:
    """Return the positions of keys that every recursive rule copies; none unless all recursion is linear."""
    loops = [c for c in chains if c.rule.head == relation.name and c.driver_relation == relation.name]
    probed = [a for c in chains for n, a in enumerate(c.rule.body) if a.relation is not None and n != c.driver]
    if not loops or probed:
        return ()
    return tuple(p for p in range(len(relation.keys)) if all(_is_variable(c.emit[p], c.driver_binds[p]) for c in loops))


def driver_columns(lookup: Lookup, chain: Chain, relation: Relation) -> tuple[tuple[int, int], ...] | None:
    """Return pairs of looked-up column and driver key; None unless every probe key is a plain key of the driver."""
    positions = {v: p for p, v in enumerate(chain.driver_binds[: len(relation.keys)]) if v is not None}
    pairs = []
    for column, expr in lookup.keys:
        if not isinstance(expr, Col) or expr.name not in positions:
            return None
        pairs.append((column, positions[expr.name]))
    # Two columns looked up by one driver key have the hash of the pair, not of the key.
    return tuple(pairs) if pairs and len({d for _, d in pairs}) == len(pairs) else None


def _is_variable(expr: Expr, name: str | None) -> bool:
    return isinstance(expr, Col) and expr.name == name


def _static_bytes(chains: tuple[Chain, ...], program: Program) -> int | None:
    ids = {a.input for c in chains for a in c.rule.body if a.input is not None}
    sizes = [program.input(i).size_bytes for i in sorted(ids)]
    known = [s for s in sizes if s is not None]
    return sum(known) if len(known) == len(sizes) else None


def _bytes(lookup: Lookup, chain: Chain, program: Program) -> float:
    """Return the bytes to replicate for ``lookup``; infinite for a recursive relation or an unknown size."""
    atom = chain.rule.body[lookup.atom]
    size = None if atom.input is None else program.input(atom.input).size_bytes
    return math.inf if size is None else size


def _joined_keys(relation: Relation, chains: tuple[Chain, ...], program: Program) -> tuple[tuple[int, ...], str]:
    all_keys = tuple(range(len(relation.keys)))
    votes: Counter[tuple[int, ...]] = Counter()
    for chain in chains:
        if chain.driver_relation != relation.name:
            continue
        local_lookups = [(x, p) for x in chain.lookups if (p := driver_columns(x, chain, relation)) is not None]
        if local_lookups:
            _, pairs = max(local_lookups, key=lambda lookup_and_pairs: _bytes(lookup_and_pairs[0], chain, program))
            votes[tuple(sorted(d for _, d in pairs))] += 1
    if not relation.keys:
        return (), f"{relation.name}: one row, at task 0"
    if not votes:
        return all_keys, f"{relation.name}: distributed by all its keys, because no rule looks rows up by some of them"
    chosen = votes.most_common(1)[0][0]
    names = ", ".join(relation.keys[p].name for p in chosen)
    return chosen, f"{relation.name}: distributed by {names}, the columns by which its largest joins look rows up"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
