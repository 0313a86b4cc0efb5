"""Every configuration key of this package, once: name, type, default, meaning.

``python -m pyspark_paralagg.conf`` prints them as the Markdown table of the documentation. The keys belong to the Spark
session (``spark.conf.set``), so a query reads what stands there when it is planned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

BACKENDS = ("auto", "spark", "dataframe")
BACKENDS_LATER = ("mpi", "local")

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _size(text: str) -> int:
    """Bytes of ``"1g"``, ``"512 MB"``, ``"1000"``."""
    match = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    if not match:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _backend(text: str) -> str:
    if text not in (*BACKENDS, *BACKENDS_LATER):
        raise ValueError(text)
    return text


@dataclass(frozen=True)
class Key:
    """A configuration key. ``parse`` raises ``ValueError`` for a text that is not of ``type``."""

    name: str
    type: str
    default: Any
    parse: Callable[[str], Any]
    doc: str


BACKEND = Key(
    "spark.paralagg.backend",
    " | ".join(BACKENDS),
    "auto",
    _backend,
    "Who runs a recursion. `auto` takes the Spark engine and, where that cannot, plain DataFrames, saying why. "
    "`spark` and `dataframe` insist. The argument `backend=` of a call stands above it.",
)
CHECKPOINT_DIR = Key(
    "spark.paralagg.checkpoint.dir",
    "path",
    None,
    str,
    "Where the Spark engine writes checkpoints of its state. Unset: "
    "a lost executor starts the fixpoint again from its inputs.",
)
CHECKPOINT_INTERVAL = Key(
    "spark.paralagg.checkpoint.interval",
    "number of iterations",
    10,
    _count,
    "How many iterations lie between two checkpoints.",
)
BROADCAST_MAX_BYTES = Key(
    "spark.paralagg.broadcast.maxBytes",
    "bytes",
    1 << 30,
    _size,
    "A static side up to this size may stand in every task, where that saves the exchange of each iteration.",
)

REGISTRY: tuple[Key, ...] = (BACKEND, CHECKPOINT_DIR, CHECKPOINT_INTERVAL, BROADCAST_MAX_BYTES)


def read(session: SparkSession, key: Key) -> Any:  # noqa: ANN401 - the type is the key's
    """The value of ``key`` in ``session``; ``UsageError`` ``PARALAGG_BAD_CONF`` where it is not of the key's type."""
    text = session.conf.get(key.name, None)
    if text is None:
        return key.default
    try:
        return key.parse(text)
    except ValueError:
        raise UsageError(
            "PARALAGG_BAD_CONF",
            f"{key.name} is {text!r}, which is not {key.type}",
            value=text,
            place="the session's configuration",
            hint=f"the default is {key.default}",
        ) from None


def markdown() -> str:
    """The registry as a Markdown table.

    >>> print(markdown().splitlines()[0])
    | key | type | default | meaning |
    """
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in REGISTRY:
        default = "unset" if key.default is None else f"`{key.default}`"
        rows.append(f"| `{key.name}` | {key.type.replace('|', chr(92) + '|')} | {default} | {key.doc} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())  # noqa: T201 - this is what the command is for
