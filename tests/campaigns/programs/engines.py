"""What the engines make of a case, and what it means: the interpreter of the definition.

simulated   a compiled Plan a stratum, on 1, 2 and 3 simulated ranks, in pure Python
whole       the Plan of the whole text, on two of them
local       the engine of ``mpi_backend`` in this process (compiles each program to machine code)
interpreted the same, its kernels run by Python: no overflow, and far less time
ranks       the same on real ranks of MPI
forced      the same, with what balances ranks forced by tiny limits (``FORCED``)
spark       the Spark engine, as ``ra.datalog`` gives it
dataframe   plain DataFrames
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import warnings
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from zlib import crc32

from datalog.interpreter import evaluate
from datalog.simulate import simulate, simulate_whole
from mpi.staged import Staged, run_on_ranks
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame, rows_of

import pyspark_paralagg as ra
from mpi_backend.kernels.compiler import Kernel
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import UnsupportedError, VerificationError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence

    from datalog.programs_random import Case
    from pyspark.sql import SparkSession

FORCED: tuple[tuple[object, ...], ...] = (
    ("--roll-over", 1, "--out-words", 64),
    ("--refine", 1, 1, 0),
    ("--roll-over", 3, "--refine", 1, 0, 0.6),
    ("--edges-a-rank", 1000, "--heavy-parts", 1e9),
    ("--edges-a-rank", -1, "--heavy-parts", 2),
    ("--sub-buckets", 3, "--roll-over", 2),
)
"""Options of ``all_folders``: exchanges within iterations, sub-buckets that are split and merged, edges of hubs."""
MECHANISMS = {
    "early exchanges": r"[1-9]\d* early exchange",
    "splits": r"[1-9]\d* buckets? split",
    "merges": r"[1-9]\d* merged",
    "hubs": r"hubs? spread",
    "mirrors": "mirrored",
}
"""Patterns that a stratum's form has if they happened."""
Rows = dict[str, list[tuple[Any, ...]]]
Engine = "Callable[[Case], list[Rows]]"


class NoMeaning(Exception):  # noqa: N818 - of a program, not of the code
    """The program overflows, divides by zero, or does not end soon: nothing to compare with."""


class Refused(Exception):  # noqa: N818 - a right answer
    """The compiler refuses the program with a reason."""


def meaning(case: Case) -> Rows:
    """The rows of all derived relations by the interpreter."""
    try:
        found = evaluate(parse(case.text), {name: set(rows) for name, rows in case.facts.items()})
    except (OverflowError, ZeroDivisionError) as problem:
        raise NoMeaning(str(problem)) from None
    except AssertionError as problem:
        if "does not end" not in str(problem):
            raise
        raise NoMeaning(str(problem)) from None
    return {name: sorted(rows) for name, rows in found.items() if name not in case.inputs}


def simulated(case: Case) -> list[Rows]:
    """On 1, 2 and 3 simulated ranks, a Plan a stratum."""
    resolved = resolve_text(parse(case.text), case.inputs)
    return [simulate(resolved, case.facts, tasks) for tasks in (1, 2, 3)]


def whole(case: Case) -> list[Rows]:
    """As one Plan, on two simulated ranks."""
    return [simulate_whole(resolve_text(parse(case.text), case.inputs), case.facts, 2)]


def staged(case: Case) -> Staged:
    """The whole text as one Plan."""
    resolved = resolve_text(parse(case.text), case.inputs)
    return Staged(resolved, case.facts, [r.name for r in resolved.program.relations if "@" not in r.name])


def local(case: Case) -> list[Rows]:
    """In this process."""
    return [staged(case).run_local()]


def interpreted(case: Case) -> list[Rows]:
    """In this process, with Numba switched off before it was imported."""
    with interpreted_kernels():
        return local(case)


@contextmanager
def interpreted_kernels() -> Iterator[None]:
    """Let Python run the kernels; Numba was switched off before it was imported."""
    with patch.object(Kernel, "prepare", lambda *_, **__: True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of hashes that wrap around
        yield


def ranks(case: Case, options: Sequence[object] = ()) -> list[Rows]:
    """One program on three ranks."""
    found = on_ranks([staged(case)], 3, options)[0]
    if isinstance(found, AssertionError):
        raise found
    return [found]


def on_ranks(
    all_staged: list[Staged], count: int, options: Sequence[object] = (), seen: Counter[str] | None = None
) -> list[Rows | AssertionError]:
    """Programs on so many ranks, by one ``mpiexec``; where that fails, each by one of its own.

    ``seen`` counts the strata in which each of ``MECHANISMS`` happened.
    """
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / f"{n:04d}" for n in range(len(all_staged))]
        for place, one in zip(places, all_staged, strict=True):
            one.write(place)
        try:
            run_on_ranks(Path(folder), "x", count, *options)
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            if isinstance(problem, subprocess.TimeoutExpired):
                problem = AssertionError(str(problem))
            return (
                [problem] if len(all_staged) == 1 else [on_ranks([one], count, options, seen)[0] for one in all_staged]
            )
        if seen is not None:
            forms = [f for p in places for file in p.glob("out-x/forms") for f in file.read_text().splitlines()]
            seen.update(name for f in forms for name, pattern in MECHANISMS.items() if re.search(pattern, f))
        return [_read(one, place / "out-x") for place, one in zip(places, all_staged, strict=True)]


def _read(one: Staged, out: Path) -> Rows | AssertionError:
    try:
        return one.read(out)
    except AssertionError as problem:  # what a rank has raised
        return problem


def on_spark(spark: SparkSession, backend: str | None) -> Callable[[Case], list[Rows]]:
    """By Spark: the text decides whether a loop may run in one task, and on how Spark runs what is around it."""

    def run(case: Case) -> list[Rows]:
        drawn = crc32(case.text.encode())
        spark.conf.set("spark.paralagg.oneTask.maxRows", drawn % 2 << 20)
        spark.conf.set("spark.sql.adaptive.enabled", str(drawn & 2 != 0).lower())
        # Generated code for the inputs takes half the time of a program, and is not what the campaign tries.
        spark.conf.set("spark.sql.codegen.wholeStage", str(drawn & 12 == 0).lower())
        spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if drawn & 12 == 0 else "NO_CODEGEN")
        inputs = {
            name: frame(spark, ", ".join(f"{c} {t}" for c, t in columns), case.facts[name])
            for name, columns in case.inputs.items()
        }
        relations = ra.datalog(spark, case.text, inputs, backend=backend)
        # One query: as many fixpoints as the text has strata, where one query a relation computes those below again.
        parts = [
            df.select(F.lit(name).alias("name"), F.to_json(F.struct("*")).alias("row"))
            for name, df in relations.items()
        ]
        found: Rows = {name: [] for name in relations}
        for name, text in rows_of(reduce(DataFrame.unionAll, parts)):
            values = json.loads(text)
            found[name].append(tuple(values.get(c) for c in relations[name].columns))
        return [found]

    return run


def difference(case: Case, run: Callable[[Case], list[Rows]]) -> str | None:
    """How ``run`` differs from what ``case`` means; None where it does not. Raises ``NoMeaning`` or ``Refused``."""
    expected = meaning(case)
    try:
        found = run(case)
    except (VerificationError, UnsupportedError) as problem:
        raise Refused(f"{problem.code} {problem.message}") from None
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is a finding
        return f"{type(problem).__name__}: {problem}"
    return compared(found, expected)


def compared(found: list[Rows], expected: Rows) -> str | None:
    """The first difference."""
    for n, results in enumerate(found):
        for name, rows in results.items():
            problem = _difference(rows, expected[name])
            if problem:
                return f"rows of {name} differ (run {n}): {problem}"
    return None


def _difference(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> str | None:
    try:
        assert_same_rows(found, expected)
    except AssertionError as problem:
        return str(problem)
    return None
