"""Make a proof of the instances that an engine returned for a question of ``derivations``."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.rewrite.derivations import RULE, TIMES
from pyspark_paralagg.errors import FixpointError, UsageError
from pyspark_paralagg.program.names import is_added, stem_of
from pyspark_paralagg.why.proof import Proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark_paralagg.compile.rewrite.derivations import Derivations, Read, Shape

    _Instance = tuple[Shape, Mapping[str, Any]]
    Decoders = Mapping[str, Sequence[Callable[[str], str] | None]]
_Row = tuple[str, str]


def check_size(count: int, limit: int, name: str) -> None:
    """Raise ``FixpointError`` ``PARALAGG_WHY_LARGE`` for more than ``limit`` derivations."""
    if count > limit:
        raise FixpointError(
            "PARALAGG_WHY_LARGE",
            f"the row of {name!r} has more than {limit:,} derivations below it",
            value=limit,
            place=f"relation {name}",
            hint=f"raise it: ra.why(..., limit={max(10 * limit, 1_000)})",
        )


def first_proof(
    question: Derivations, found: Iterable[Mapping[str, Any]], shown: str, decoders: Decoders | None = None
) -> Proof:
    """Return the proof of the first asked row; ``found`` are the rows of the answer, ``shown`` is the row in errors.

    ``decoders`` write the columns of a relation, in their order, as text.

    Raises ``UsageError`` ``PARALAGG_WHY`` if the result has no such row, or if no rule derives it.
    """
    instances: dict[_Row, list[_Instance]] = defaultdict(list)
    asked: list[_Row] = []
    for values in found:
        shape = question.shapes[values[RULE]]
        row = _identity(shape.row, values)
        if shape.derived is None:
            asked.append(row)
        else:
            instances[row].append((shape, values))
    if not asked:
        hint = "ra.why_not says why a row is missing"
        raise UsageError("PARALAGG_WHY", f"there is no row {shown}", value=shown, place="ra.why", hint=hint)
    if asked[0] not in instances:
        message = f"no rule derives {shown} from rows of the result, but for itself"
        hint = "its key is null, or its value comes from an earlier value of a row, which a better one has replaced"
        raise UsageError("PARALAGG_WHY", message, value=shown, place="ra.why", hint=hint)
    return _Prover(question, instances, decoders or {}).proof(asked[0])


class _Prover:
    """Makes each row's proof once: its first instance, with the proofs of the rows that it read."""

    def __init__(self, question: Derivations, instances: Mapping[_Row, list[_Instance]], decoders: Decoders) -> None:
        self._decoders = decoders
        self._summed = question.summed
        self._instances = instances
        self._made: dict[_Row, Proof] = {}

    def proof(self, row: _Row) -> Proof:
        """Return the proof of a row that has an instance. No recursion: proofs may be deep."""
        stack = [row]
        while stack:
            current = stack[-1]
            needed = [r for r in self._below(current) if r not in self._made]
            if needed:
                stack += needed
                continue
            stack.pop()
            if current not in self._made:
                self._made[current] = self._proof(current)
        return self._made[row]

    def _below(self, row: _Row) -> list[_Row]:
        """Return the rows with proofs of their own that the proof of ``row`` rests on."""
        if row[0] in self._summed:
            return []
        shape, values = min(self._instances[row], key=_order)
        read = [_identity(r, values) for r in shape.body if r.relation is not None]
        return [r for r in read if r in self._instances]

    def _proof(self, row: _Row) -> Proof:
        options = self._instances[row]
        shape, values = min(options, key=_order)
        shown = self._shown(shape.row, values)
        if row[0] not in self._summed:
            premises = tuple(self._read(r, values) for r in shape.body)
            return Proof(stem_of(shape.row.name), shown, shape.place, premises, shape.excluded)
        contributions = sorted((self._contribution(s, v) for s, v in options), key=_by_size)
        return Proof(stem_of(shape.row.name), shown, "contributions", tuple(contributions), contributions=True)

    def _contribution(self, shape: Shape, values: Mapping[str, Any]) -> Proof:
        assert shape.derived is not None  # noqa: S101 - only asked rows have none
        premises = tuple(Proof(stem_of(r.name), self._shown(r, values)) for r in shape.body)
        derived = self._shown(shape.derived, values)
        return Proof(stem_of(shape.row.name), derived, shape.place, premises, shape.excluded, times=values[TIMES])

    def _read(self, read: Read, values: Mapping[str, Any]) -> Proof:
        known = None if read.relation is None else self._made.get(_identity(read, values))
        return known or Proof(stem_of(read.name), self._shown(read, values))

    def _shown(self, read: Read, values: Mapping[str, Any]) -> dict[str, Any]:
        row = [values[slot] for slot in read.slots]
        decoders = self._decoders.get(read.name, ())
        if len(decoders) == len(row):
            row = [v if d is None or v is None else d(v) for v, d in zip(row, decoders, strict=True)]
        return {c: v for c, v in zip(read.columns, row, strict=True) if not is_added(c)}


def _identity(read: Read, values: Mapping[str, Any]) -> _Row:
    """Return what distinguishes final rows: the relation, and all values as text (they may be arrays)."""
    return read.name, repr([values[slot] for slot in read.slots])


def _order(instance: _Instance) -> tuple[int, str]:
    shape, values = instance
    return values[RULE], repr([[values[s] for s in r.slots] for r in shape.body])


def _by_size(contribution: Proof) -> tuple[float, str]:
    """Order contributions by their largest number, the largest first."""
    numbers = [abs(float(v)) for v in list(contribution.row.values()) if isinstance(v, int | float)]
    return -(numbers[-1] if numbers else 0.0), repr(contribution.row)
