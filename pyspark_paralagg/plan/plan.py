"""Define the Plan: all decisions of the compiler, so that no engine has to repeat them.

One :class:`Stratum` is one fixpoint. Its rules run once an iteration ("epoch"); each is a chain that starts from a
*driver* (the delta, or all rows, of one recursive relation), probes indexes, filters, and emits a row of its head.
Rows are tuples of 64-bit words. *Placement* decides the task of a row: a relation is distributed by the hash of
``distribute_by`` (a subset of its keys), an index by the hash of its key columns, or it is replicated ``everywhere``.
The planner guarantees that every probe is local.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, to_json

if TYPE_CHECKING:
    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.program import Column, Dependent, Input

VERSION = 12

RelationClass = Literal["lattice", "accumulating", "iterated"]
Placement = Literal["partitioned", "everywhere"]


@dataclass(frozen=True)
class PlannedRelation:
    """The state of a recursive relation. ``distribute_by`` are positions among the keys; none: all rows at task 0.

    ``settled`` (lattices): the initial rows are a fixpoint that the base is added to. They exist before the first
    iteration and are in no delta, and the result has only rows that are new or changed. ``numbered``: the last key of
    the result is the number of the row, in the order of the other keys.
    """

    name: str
    keys: tuple[Column, ...]
    dependents: tuple[Dependent, ...]
    distribute_by: tuple[int, ...]
    base: int
    initial: int | None = None
    settled: bool = False
    numbered: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return key columns, then dependent columns."""
        return (*self.keys, *(d.column for d in self.dependents))


@dataclass(frozen=True)
class StaticIndex:
    """An input grouped by key columns (positions in the input's ``exprs``; none: one group of all rows).

    ``partition_by`` are the positions whose hash decides a row's task if ``placement`` is ``partitioned``: the keys,
    except under a product, where any column works. A row with a null key is dropped.

    ``read`` are the positions in ``payload`` that the loop reads; an engine keeps no others. ``aligned_to`` is the
    relation whose row numbers are the groups. ``sorted_by`` is the rule by whose targets the rows of a group are
    sorted, so that those of the own task come first.
    """

    id: int
    input: int
    keys: tuple[int, ...]
    payload: tuple[int, ...]
    placement: Placement
    partition_by: tuple[int, ...]
    read: tuple[int, ...] = ()
    aligned_to: str | None = None
    sorted_by: int | None = None


@dataclass(frozen=True)
class RelationIndex:
    """A recursive relation, grouped by some of its keys, for probes by other rules (non-linear recursion).

    ``copy`` is true if it is distributed differently from the relation: by the hash of ``keys`` (``partitioned``) or
    replicated to every task (``everywhere``). A copy is updated after each iteration.
    """

    id: int
    relation: str
    keys: tuple[int, ...]
    placement: Placement
    copy: bool


@dataclass(frozen=True)
class Driver:
    """The start of a rule: ``delta`` or ``full`` rows of a relation, or of a copy of it (``index``).

    ``binds`` has a variable for each column of the relation, or None if the rule does not read it.
    """

    relation: str
    version: Literal["delta", "full"]
    binds: tuple[str | None, ...]
    index: int | None = None


@dataclass(frozen=True)
class Probe:
    """A lookup of ``keys`` in a static or relation index that binds its payload (a relation index: all columns).

    ``semi`` and ``anti`` bind nothing. ``version`` ``old`` skips rows of the current delta, so that no pair of rows is
    joined twice. ``aligned``: the keys are the driver's whole key, so the number of its row is the group: no lookup.
    """

    index: int
    kind: Literal["join", "semi", "anti"]
    keys: tuple[Expr, ...]
    binds: tuple[str | None, ...] = ()
    recursive: bool = False
    version: Literal["full", "old"] = "full"
    aligned: bool = False
    op: str = "probe"


@dataclass(frozen=True)
class Filter:
    """A filter: the chain continues only if ``condition`` is true (null is not)."""

    condition: Expr
    op: str = "filter"


@dataclass(frozen=True)
class Target:
    """The method that locates the head's row.

    ``same``: the driver's own row. ``resolved``: the key columns are payload of the partitioned static index of step
    ``step``, at ``payload`` positions, so ids are resolved at load. ``computed``: by hashing. ``local``: the row
    belongs to the task of the driver's row.
    """

    kind: Literal["same", "resolved", "computed"]
    step: int | None = None
    payload: tuple[int, ...] = ()
    local: bool = False


@dataclass(frozen=True)
class PlannedRule:
    """One Δ variant of a rule. ``emit`` has one expression for each column of the head, keys first.

    ``place`` is the rule's position in the user's program. ``reads`` are the variables that the loop evaluates: not
    those of aligned keys, nor of the head's keys unless its row is located by hashing. ``adds_by_target``: the rule
    adds doubles that depend on the driver's row alone to the targets of its last probe, so an engine may add up the
    values of all sources of a target at once.
    """

    head: str
    driver: Driver
    steps: tuple[Probe | Filter, ...]
    emit: tuple[Expr, ...]
    target: Target
    text: str
    place: str = ""
    reads: tuple[str, ...] = ()
    adds_by_target: bool = False

    @property
    def resolving_probe(self) -> Probe:
        """Return the probe whose rows stand for the targets of a resolved rule."""
        probe = None if self.target.step is None else self.steps[self.target.step]
        if not isinstance(probe, Probe):
            msg = f"rule {self.text} has no resolved target"
            raise TypeError(msg)
        return probe


def hashed_heads(rules: tuple[PlannedRule, ...]) -> tuple[str, ...]:
    """Return the relations with rules that locate rows by hashing, and none whose row ids are resolved at load."""
    heads = {kind: {r.head for r in rules if r.target.kind == kind} for kind in ("computed", "resolved")}
    return tuple(sorted(heads["computed"] - heads["resolved"]))


@dataclass(frozen=True)
class Bitmap:
    """The bitmap form of a set relation whose rules move one key column along edges and carry the other.

    ``moving`` is the position of the moving column, ``edges`` the static indexes (key: from, payload: to).
    """

    relation: str
    moving: int
    edges: tuple[int, ...]


End = Literal["row", "carried", "found"]
"""What names an end of an edge, or is looked up: a key of the pair that is read, or the column found by a lookup."""


@dataclass(frozen=True)
class Flow:
    """Edges along which the bits of a row of ``source`` go to a row of ``head``.

    There is an edge for each pair of ``reads`` (None: for each row of ``source``) and, if there is an ``index``, for
    each of its rows with that pair's ``key``. ``found`` is the column of its payload that is read.
    """

    head: str
    source: str
    reads: str | None
    index: int | None
    key: End | None
    found: int | None
    origin: End
    target: End


@dataclass(frozen=True)
class BitRows:
    """The form of sets with two keys in which a row is a value of one, with a bit for each value of the other.

    ``carried`` is the position of the other key in each relation. Rules copy it from one atom, and move bits by flows.
    """

    carried: tuple[int, ...]
    flows: tuple[Flow, ...]


@dataclass(frozen=True)
class Decomposition:
    """The stratum for one value of the key columns ``carried``, which every rule copies.

    Its base is not an input: it is the outer base, filtered to that value and without these columns.
    """

    carried: tuple[int, ...]
    stratum: Stratum


@dataclass(frozen=True)
class Mirrored:
    """The stratum with the rows of its indexes ``edges`` at their targets: rules are driven by a copy, the ``mirror``.

    An engine with several ranks chooses it by the number of edges (docs/architecture.md, "The engine without Spark").
    """

    mirror: int
    edges: tuple[int, ...]
    stratum: Stratum


@dataclass(frozen=True)
class HubEdges:
    """The index ``edges`` and the one ``of_hubs`` to which an engine moves the edges of hubs."""

    edges: int
    of_hubs: int


@dataclass(frozen=True)
class Hubs:
    """The stratum with further indexes, for the edges of hubs, and rules over them that a ``copy`` of the hubs drives.

    The Spark engine chooses it if a row has a large part of all edges (docs/balance.md).
    """

    copy: int
    edges: tuple[HubEdges, ...]
    stratum: Stratum


@dataclass(frozen=True)
class Spread:
    """The stratum for sub-buckets: rows of one bucket are on several ranks, by the columns that are not hashed into it.

    ``statics`` and ``relations`` are what is spread. Of the copies that drive rules, those in ``to_all`` go to all
    sub-buckets of their bucket, the others to the first.
    """

    statics: tuple[int, ...]
    relations: tuple[str, ...]
    to_all: tuple[int, ...]
    stratum: Stratum


@dataclass(frozen=True)
class Stratum:
    """One fixpoint of mutually recursive relations.

    ``in_place``: values may be read in the iteration that wrote them (correct for a lattice without a limit).
    ``cycle_check``: an endless climb is possible. ``climb_limit``: the iterations after which a run that may climb, or
    converge late, is stopped. It is None if rules only shift values: then a run with more iterations than keys climbs
    without end, and is traced.
    ``makes_strings``: rules may derive strings that no input has, or order them, so an engine numbers them when they
    appear.
    ``ordered_by``: the position of the dependent column whose best values an engine may apply first. ``copies_order``:
    every rule copies that column from its driver's row.
    ``carried``: keys that every rule copies from every recursive atom, each as its position among the keys of each
    relation: rows with a value of such a key derive from base rows with that value.
    ``mirrored``, ``spread``, ``hubs``: the same fixpoint with its rows placed otherwise.
    ``bitmap``, ``decomposition``, ``bit_rows``: other forms of evaluation, which an engine prefers where it can.
    ``sent_early``: the relations whose derived rows a task may send before an iteration ends, and then forget.
    ``ends_at``: the number of rows after which a set needs no further iteration.
    ``keeps_state``: a later run over changed inputs may go on from the state of this one. ``keeps_indexes``: one with
    other base rows may take its static indexes.
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
    copies_order: bool = False
    mirrored: Mirrored | None = None
    spread: Spread | None = None
    hubs: Hubs | None = None
    bit_rows: BitRows | None = None
    sent_early: tuple[str, ...] = ()
    ends_at: int | None = None
    keeps_state: bool = False
    keeps_indexes: bool = False

    @property
    def input_ids(self) -> frozenset[int]:
        """Return the ids of the inputs that the stratum reads."""
        starts = {i for r in self.relations for i in (r.base, r.initial) if i is not None}
        return frozenset(starts | {i.input for i in self.static_indexes})


@dataclass(frozen=True)
class Slice:
    """Some columns (positions) of one of the Plan's inputs."""

    input: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Narrower:
    """A reduced stratum that computes only the dependent ``columns`` (names) of a relation, besides its keys.

    ``stratum`` replaces the one at position ``position``. ``inputs`` are its inputs, and ``slices`` maps each to
    columns of the Plan's inputs.
    """

    position: int
    relation: str
    columns: tuple[str, ...]
    stratum: Stratum
    inputs: tuple[Input, ...]
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class Plan:
    """A physical plan: inputs, strata in order, reasons for each choice, and reduced strata for fewer columns.

    ``functors`` are functions of this process, so they are no part of the JSON.
    """

    name: str
    inputs: tuple[Input, ...]
    strata: tuple[Stratum, ...]
    reasons: tuple[str, ...] = ()
    narrower: tuple[Narrower, ...] = ()
    version: int = VERSION
    functors: tuple[Functor, ...] = field(default=(), compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``mpi_backend`` and the shim read. Keys are the field names of the dataclasses."""
        return {f.name: to_data(getattr(self, f.name)) for f in fields(self) if f.name != "functors"}


def to_data(value: Any) -> Any:  # noqa: ANN401 - walks every type of the Plan
    """Return a dataclass of the Plan or of the Program as JSON data; ``plan.read`` has the inverse."""
    if isinstance(value, Col | Lit | Call):
        return to_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_data(v) for v in value]
    return value


__all__ = [
    "VERSION",
    "BitRows",
    "Bitmap",
    "Decomposition",
    "Driver",
    "End",
    "Filter",
    "Flow",
    "HubEdges",
    "Hubs",
    "Mirrored",
    "Narrower",
    "Plan",
    "PlannedRelation",
    "PlannedRule",
    "Probe",
    "RelationIndex",
    "Slice",
    "Spread",
    "StaticIndex",
    "Stratum",
    "Target",
    "hashed_heads",
    "to_data",
]
