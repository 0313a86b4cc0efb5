"""The Plan: everything that an engine would otherwise have to work out again.

One :class:`Stratum` is one fixpoint. Its rules run once an iteration ("epoch"); each is a chain that starts from a
*driver* (the delta, or all rows, of one recursive relation), probes indexes, filters, and emits a row of its head.
Rows are tuples of 64-bit words; where a word goes is a matter of *placement*: a relation is distributed by the hash of
``distribute_by`` (a subset of its keys), an index by the hash of its key columns, or it stands ``everywhere``.
The planner guarantees that every probe is local.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, to_json

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Column, Dependent, Input

VERSION = 6

RelationClass = Literal["lattice", "accumulating", "iterated"]
Placement = Literal["partitioned", "everywhere"]


@dataclass(frozen=True)
class PlannedRelation:
    """State of a recursive relation. ``distribute_by`` are positions among the keys; none: all rows at task 0.

    ``settled`` (lattices): the initial rows are a fixpoint that the base joins. They are there before the first
    iteration and in no delta, and the result has only rows that are new or have changed.
    """

    name: str
    keys: tuple[Column, ...]
    dependents: tuple[Dependent, ...]
    distribute_by: tuple[int, ...]
    base: int
    initial: int | None = None
    settled: bool = False


@dataclass(frozen=True)
class StaticIndex:
    """An input grouped by key columns (positions in the input's ``exprs``; none: one group of all rows).

    ``partition_by`` are the positions whose hash owns a row when ``placement`` is ``partitioned``; the keys
    themselves, save under a product, where any column will do. A row with a null key is dropped.
    """

    id: int
    input: int
    keys: tuple[int, ...]
    payload: tuple[int, ...]
    placement: Placement
    partition_by: tuple[int, ...]


@dataclass(frozen=True)
class RelationIndex:
    """A recursive relation, grouped by some of its keys, for probes by other rules (non-linear recursion).

    ``copy`` is true where it lives elsewhere than the relation itself: then it is distributed by the hash of ``keys``
    (``partitioned``) or held by every task (``everywhere``), and follows the relation after each iteration.
    """

    id: int
    relation: str
    keys: tuple[int, ...]
    placement: Placement
    copy: bool


@dataclass(frozen=True)
class Driver:
    """Where a rule starts: ``delta`` or ``full`` rows of a relation, or of a copy of it (``index``).

    ``binds`` gives a variable to each column of the relation, None where the rule does not read it.
    """

    relation: str
    version: Literal["delta", "full"]
    binds: tuple[str | None, ...]
    index: int | None = None


@dataclass(frozen=True)
class Probe:
    """Look up ``keys`` in a static or relation index; bind its payload (a relation index: all its columns).

    ``semi`` and ``anti`` bind nothing. ``version`` ``old`` leaves out rows that are in the current delta, so that no
    pair of rows is joined twice.
    """

    index: int
    kind: Literal["join", "semi", "anti"]
    keys: tuple[Expr, ...]
    binds: tuple[str | None, ...] = ()
    recursive: bool = False
    version: Literal["full", "old"] = "full"
    op: str = "probe"


@dataclass(frozen=True)
class Filter:
    """Go on only where ``condition`` is true (null is not)."""

    condition: Expr
    op: str = "filter"


@dataclass(frozen=True)
class Target:
    """How the head's row is found.

    ``same``: the driver's own row. ``resolved``: the key columns are payload of the partitioned static index of step
    ``step``, at ``payload`` positions, so ids are resolved at load. ``computed``: by hashing.
    """

    kind: Literal["same", "resolved", "computed"]
    step: int | None = None
    payload: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedRule:
    """One Δ variant of a rule. ``emit`` has one expression a column of the head, keys first.

    ``place`` is where the user wrote it.
    """

    head: str
    driver: Driver
    steps: tuple[Probe | Filter, ...]
    emit: tuple[Expr, ...]
    target: Target
    text: str
    place: str = ""


@dataclass(frozen=True)
class Bitmap:
    """Blocks of carried keys evaluated as bitmaps: a set relation whose rules move one key column along edges.

    ``moving`` is the position of the column that moves, ``edges`` the static indexes (key: from, payload: to).
    """

    relation: str
    moving: int
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Decomposition:
    """The stratum for one value of the key columns ``carried``, which every rule copies.

    Its base has no input of its own: it is the outer base without these columns, where they have that value.
    """

    carried: tuple[int, ...]
    stratum: Stratum


@dataclass(frozen=True)
class Stratum:
    """One fixpoint of mutually recursive relations.

    ``in_place``: values may be read in the iteration that wrote them (a lattice without a limit: nobody can tell).
    ``cycle_check``: a climb without end cannot be excluded. ``climb_limit``: the iterations after which a run is ended
    that may climb, or converge late; None where rules only translate values, so that a run with more iterations than
    keys climbs for ever, and is traced.
    ``makes_strings``: rules derive strings that no input may have, so an engine numbers them as they come.
    ``ordered_by``: the dependent column (its position) whose best values an engine may apply first.
    ``carried``: keys that every rule copies from every recursive atom, each as its position among the keys of each
    relation: rows with one value there come from base rows with that value.
    """

    relations: tuple[PlannedRelation, ...]
    static_indexes: tuple[StaticIndex, ...]
    relation_indexes: tuple[RelationIndex, ...]
    rules: tuple[PlannedRule, ...]
    relation_class: RelationClass
    in_place: bool
    cycle_check: bool
    makes_strings: bool = False
    bitmap: Bitmap | None = None
    ordered_by: int | None = None
    decomposition: Decomposition | None = None
    max_iterations: int | None = None
    on_limit: Literal["error", "return"] = "error"
    tolerance: float | None = None
    carried: tuple[tuple[int, ...], ...] = ()
    climb_limit: int | None = None

    @property
    def input_ids(self) -> frozenset[int]:
        """The inputs that it reads."""
        starts = {i for r in self.relations for i in (r.base, r.initial) if i is not None}
        return frozenset(starts | {i.input for i in self.static_indexes})


@dataclass(frozen=True)
class Slice:
    """Some columns (positions) of one of the Plan's inputs."""

    input: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Narrower:
    """What is left to compute where of a relation only the dependent ``columns`` (names) are wanted, beside its keys.

    ``stratum`` replaces the one at position ``position``; ``inputs`` are its own, and ``slices`` says what each is of
    the Plan's.
    """

    position: int
    relation: str
    columns: tuple[str, ...]
    stratum: Stratum
    inputs: tuple[Input, ...]
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class Plan:
    """The whole: inputs, strata in order, reasons for every choice; what may be left out where few columns are read."""

    name: str
    inputs: tuple[Input, ...]
    strata: tuple[Stratum, ...]
    reasons: tuple[str, ...] = ()
    narrower: tuple[Narrower, ...] = ()
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """JSON that ``mpi_backend`` and the shim read. Field names are those of the dataclasses."""
        return {f.name: _encode(getattr(self, f.name)) for f in fields(self)}


def _encode(value: Any) -> Any:  # noqa: ANN401 - walks every type of the Plan
    if isinstance(value, Col | Lit | Call):
        return to_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_encode(v) for v in value]
    return value


__all__ = [
    "VERSION",
    "Bitmap",
    "Decomposition",
    "Driver",
    "Filter",
    "Narrower",
    "Plan",
    "PlannedRelation",
    "PlannedRule",
    "Probe",
    "RelationIndex",
    "Slice",
    "StaticIndex",
    "Stratum",
    "Target",
]
