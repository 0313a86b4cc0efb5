"""Look up the parts of a planned stratum by name or id. Loading and code generation use them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mpi_backend.state.refinable import refinable
from mpi_backend.state.types import Type, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpi_backend.state.edge_placement import EdgePlacement
    from mpi_backend.state.sub_buckets import Refinement
    from pyspark_paralagg.plan.plan import PlannedRelation, RelationIndex, Spread, StaticIndex, Stratum
    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.program import Input

HEAVY_PARTS = 8


@dataclass(frozen=True)
class Facts:
    """A stratum of the Plan as the engine evaluates it, with the inputs that it reads, by id.

    ``spread``: rows are in ``sub_buckets`` sub-buckets of each bucket. ``mirror``: the copy whose rows drive the rules.
    ``stratum`` is then the one that the Plan has for it, and ``placement`` says where the edges lie. An end of edges is
    heavy if it has more than 1/``heavy_parts`` of a rank's fair part of them (0: none is). ``refinement``: the number
    of sub-buckets of the relations in ``spread`` changes while the loop runs. A rank that holds ``roll_over_rows``
    derived rows of other ranks sends them before the iteration ends (0: never). ``functors`` are the user's, by the
    names of their calls.
    """

    stratum: Stratum
    inputs: Mapping[int, Input]
    sub_buckets: int = 1
    spread: Spread | None = None
    mirror: int | None = None
    placement: EdgePlacement | None = None
    heavy_parts: float = HEAVY_PARTS
    refinement: Refinement | None = None
    roll_over_rows: int = 0
    functors: Mapping[str, Functor] = field(default_factory=dict)

    @classmethod
    def for_stratum(
        cls, stratum: Stratum, inputs: Mapping[int, Input], sub_buckets: int = 1, heavy_parts: float = HEAVY_PARTS,
        refinement: Refinement | None = None, roll_over_rows: int = 0,
    ) -> Facts:  # fmt: skip
        """Return the facts of ``stratum``, or of its form for sub-buckets if there are several and it has one."""
        form = None if refinement is None else refinable(stratum)
        if form is not None:
            found = cls(form.stratum, inputs, 1, form, heavy_parts=heavy_parts, refinement=refinement)
        elif sub_buckets == 1 or stratum.spread is None:
            found = cls(stratum, inputs, heavy_parts=heavy_parts)
        else:
            found = cls(stratum.spread.stratum, inputs, sub_buckets, stratum.spread)
        return replace(found, roll_over_rows=roll_over_rows)

    def is_spread_index(self, index: int) -> bool:
        """Return whether the rows of a static index are in sub-buckets."""
        return self.spread is not None and index in self.spread.statics

    def is_spread(self, relation: str) -> bool:
        """Return whether the rows of a relation are in sub-buckets."""
        return self.spread is not None and relation in self.spread.relations

    @property
    def moving(self) -> frozenset[str]:
        """Return the relations whose sub-buckets are split and merged while the loop runs."""
        return frozenset() if self.refinement is None or self.spread is None else frozenset(self.spread.relations)

    def goes_to_all(self, index: int) -> bool:
        """Return whether the rows of a copy go to all sub-buckets of their bucket."""
        return self.spread is not None and index in self.spread.to_all

    @cached_property
    def relations(self) -> dict[str, PlannedRelation]:
        """Return the relations by name."""
        return {r.name: r for r in self.stratum.relations}

    @cached_property
    def statics(self) -> dict[int, StaticIndex]:
        """Return the static indexes by id."""
        return {i.id: i for i in self.stratum.static_indexes}

    @cached_property
    def relation_indexes(self) -> dict[int, RelationIndex]:
        """Return the relation indexes by id."""
        return {i.id: i for i in self.stratum.relation_indexes}

    @property
    def is_lattice(self) -> bool:
        """Return whether values only improve."""
        return self.stratum.relation_class == "lattice"

    @property
    def is_accumulating(self) -> bool:
        """Return whether differences are added up."""
        return self.stratum.relation_class == "accumulating"

    @property
    def is_iterated(self) -> bool:
        """Return whether every round starts from the base rows."""
        return self.stratum.relation_class == "iterated"

    def input_types(self, number: int) -> list[Type]:
        """Return the types of an input's columns."""
        return [type_of(e.type) for e in self.inputs[number].exprs]

    def payload_types(self, index: int) -> list[Type]:
        """Return the types of the payload of a static index."""
        types = self.input_types(self.statics[index].input)
        return [types[p] for p in self.statics[index].payload]

    def column_of(self, relation: str, name: str | None) -> int | None:
        """Return the position of a dependent column of a relation; None if it has no name."""
        return None if name is None else [d.column.name for d in self.relations[relation].dependents].index(name)

    def is_followed(self, relation: str) -> bool:
        """Return whether a view reads the relation."""
        return any(
            d.view is not None and d.view.relation == relation for r in self.stratum.relations for d in r.dependents
        )
