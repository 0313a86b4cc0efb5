"""The table of docs/semantics.md: what the check says of each program in tests/verdicts, and that it is so.

What is proved is run: the rounds as they are meant and the plan, which takes differences, give the same rows.
What is refuted is evaluated once more from the words of its counterexample.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from interpret import run_plan, run_program

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.prove.solve import _decide
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

sys.path.insert(0, str(Path(__file__).parent.parent / "verdicts"))

import semantics

SHAPES = semantics.files()
PAPERS = semantics.files(semantics.HERE / "programs")
FOUND = {f: semantics.check(f) for f in (*SHAPES, *PAPERS)}
PROVED = [f for f, found in FOUND.items() if found.verdict == "proved"]
REFUTED = [f for f, found in FOUND.items() if found.verdict == "refuted"]


def stem(file: Path) -> str:
    return file.stem


def output(file: Path) -> str:
    return re.findall(r"^\.output (\w+)", file.read_text(), re.MULTILINE)[-1]


@pytest.mark.parametrize("file", FOUND, ids=stem)
def test_the_verdict_is_what_the_program_expects(file: Path) -> None:
    assert FOUND[file].expected == FOUND[file].header["expect"]


@pytest.mark.parametrize("file", [f for f in PROVED if f in SHAPES], ids=stem)
def test_the_verdict_decides_the_class(file: Path) -> None:
    plan = FOUND[file].plan
    assert plan is not None
    wanted = FOUND[file].header["class"].replace("set", "lattice")
    output = re.findall(r"^\.output (\w+)", file.read_text(), re.MULTILINE)[-1]
    [stratum] = [s for s in plan.strata if output in [r.name for r in s.relations]]
    assert stratum.relation_class == wanted


# A mean is no aggregate of a loop, and what follows a column beside a sum is a matter for plain DataFrames.
ITERABLE = [f for f in REFUTED if FOUND[f].header.get("iterate") != "no"]


@pytest.mark.parametrize("file", ITERABLE, ids=stem)
def test_what_is_refuted_runs_under_iterate(file: Path) -> None:
    assert "iterated" in [s.relation_class for s in semantics.iterated(file).strata]


def test_fourteen_programs_come_out_as_the_paper_says() -> None:
    names = {FOUND[f].header["name"]: FOUND[f].verdict for f in PAPERS}
    assert len(names) == 14
    assert {n for n, v in names.items() if v == "refuted"} == {"CommNet", "GCN-forward"}
    assert {n for n, v in names.items() if v == "proved"} == {
        "SSSP", "Connected components", "Katz metric", "Paths in a DAG", "Viterbi", "Lowest common ancestor",
        "PageRank", "Adsorption", "Belief propagation", "Cost", "SimRank", "APSP",
    }  # fmt: skip


def test_the_table_has_every_class_and_every_way_of_refusal() -> None:
    cells = {(FOUND[f].header["class"], FOUND[f].header["shape"]) for f in SHAPES}
    assert cells >= {(c, s) for c in ("lattice", "accumulating") for s in semantics.SHAPES}
    assert {FOUND[f].expected.split()[-1] for f in REFUTED} == {
        "PARALAGG_NOT_MONOTONE", "PARALAGG_NOT_LINEAR", "PARALAGG_MIXED_AGGREGATES",
    }  # fmt: skip


def test_the_document_is_what_the_programs_make() -> None:
    assert semantics.TARGET.read_text() == semantics.document(), "run python tests/verdicts/semantics.py"


@pytest.mark.parametrize("file", PROVED, ids=stem)
def test_compiling_again_asks_z3_nothing(file: Path) -> None:
    program = semantics.program_of(file)
    compile_program(program)
    claims = _decide.cache_info().misses
    compile_program(program)
    assert _decide.cache_info().misses == claims


# Counterexamples, from their words


def value(expr: str, names: dict[str, float]) -> Any:  # noqa: ANN401 - a number or a truth value
    return eval(expr, {"least": min, "greatest": max}, names)  # noqa: S307 - the messages of our own fixtures


def assigned(text: str) -> dict[str, float]:
    return {n: float(v) for n, v in re.findall(r"(\w+)=(-?[\d.]+)", text)}


WORSE = re.compile(r"([\w=,. -]+) improves ([\w=,. -]+), but (.+) gives (\S+), worse than (\S+)$")
LOST = re.compile(r"(\w+=\S+) improves (\w+=\S+), but no longer passes (.+)$")
NOT_LINEAR = re.compile(
    r" = (.+) is not linear .*?(\w+=\S+) and (\S+) give (\S+) and (\S+), but their sum (\S+) gives (\S+),"
)
PARTS = re.compile(r"(\w+=\S+) (passes|fails) (.+) and (\S+) (passes|fails), but their sum (\S+) (passes|fails)")
TIE = re.compile(r"(\w+=\S+) improves (\w+=\S+) and replaces \w+=\S+ by \w+=\S+, but (.+) stays (\S+),")
PRODUCT = re.compile(
    r"rounds, (\S+, \S+) and (\S+, \S+), give (\S+) and (\S+) separately, but their sum (.+) gives (\S+)$"
)


def is_counterexample(message: str) -> bool:  # noqa: PLR0911 - a form a line
    given = assigned(m[1]) if (m := re.search(r"with ([^:]*): ", message)) else {}

    def at(text: str, expr: str) -> Any:  # noqa: ANN401 - as value
        return value(expr, given | assigned(text))

    if m := WORSE.search(message):
        return (at(m[1], m[3]), at(m[2], m[3])) == (float(m[4]), float(m[5])) and m[4] != m[5]
    if m := LOST.search(message):
        return bool(at(m[2], m[3]) and not at(m[1], m[3]))
    if m := NOT_LINEAR.search(message):
        one, two, both = (at(m[n], m[1]) for n in (2, 3, 6))
        return (one, two, both) == (float(m[4]), float(m[5]), float(m[7])) and one + two != both
    if m := PARTS.search(message):
        said = [m[n] == "passes" for n in (2, 5, 7)]
        return [at(m[n], m[3]) for n in (1, 4, 6)] == said and said[0] == said[1] != said[2]
    if m := TIE.search(message):
        return bool(at(m[1], m[3]) == at(m[2], m[3]) == float(m[4]))
    if m := PRODUCT.search(message):
        one, two, both = (at(m[n], "m * n") for n in (1, 2, 5))
        return (one, two, both) == (float(m[3]), float(m[4]), float(m[6])) and one + two != both
    if "the mean of 1 and the mean of 3 and 5 is 2.5, but the mean of 1, 3 and 5 is 3" in message:
        return (1 + (3 + 5) / 2) / 2 == 2.5 and (1 + 3 + 5) / 3 == 3
    return "some keep the best value, others add up" in message


@pytest.mark.parametrize("file", REFUTED, ids=stem)
def test_every_counterexample_is_one(file: Path) -> None:
    error = FOUND[file].error
    assert error is not None
    assert is_counterexample(error.message), error.message


# Proofs, on random data


def random_sources(file: Path, rng: random.Random) -> tuple[Any, dict[int, list[tuple[Any, ...]]]]:
    """The Program of a text, and rows: edges lead upwards, so that every climb ends."""
    resolved = resolve_text(parse(file.read_text()), {})
    sources: dict[int, list[tuple[Any, ...]]] = {}
    for n, s in enumerate(resolved.sources):
        rows = set(s.rows)
        for _ in range(rng.randint(4, 9) if s.is_external else 0):
            numbers = [c for c in s.columns if c.type == "bigint"]
            up = iter(sorted(rng.sample(range(6), 2)) + [rng.randint(0, 4) for _ in numbers])
            points = iter(sorted(rng.sample("abcdef", 2)))
            row = {
                "bigint": lambda up=up: next(up),
                "double": lambda: rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]),
                "string": lambda points=points: next(points),
            }
            rows.add(tuple(row[c.type]() for c in s.columns))
        sources[n] = sorted(rows)
    return resolved.program, sources


def rounded(state: dict[Any, tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    return {k: tuple(round(v, 6) if isinstance(v, float) else v for v in values) for k, values in state.items()}


def by_differences(file: Path) -> bool:
    plan = FOUND[file].plan
    return plan is not None and all(s.relation_class != "iterated" for s in plan.strata)


@pytest.mark.parametrize("file", list(filter(by_differences, PROVED)), ids=stem)
def test_differences_give_what_the_rounds_mean(file: Path) -> None:
    rng = random.Random(file.stem)  # noqa: S311
    filled = 0
    for _ in range(6):
        program, sources = random_sources(file, rng)
        found = run_plan(compile_program(program), sources, tasks=3, rounds=60)[output(file)]
        if FOUND[file].header.get("shape") == "thresholded":  # witnesses are in relations of their own in a plan alone
            meant = run_plan(semantics.iterated(file), sources, tasks=1, rounds=60)[output(file)]
        else:
            meant = run_program(program, sources, rounds=60)[output(file)]
        assert rounded(found) == rounded(meant)
        filled += len(found)
    assert filled > 0


@pytest.mark.parametrize(
    ("file", "sources", "expected"),
    [
        (
            PAPERS[12],
            {"talks": [(1, 2, 0.5), (2, 1, 1.0)], "keeps": [(1, 1.0), (2, 2.0)], "state": [(1, -4.0), (2, 3.0)]},
            # round 1: 1: 0 + 3 = 3, 2: 0 + 6 = 6; round 2: 1: 3 + 6 = 9, 2: 1.5 + 12 = 13.5
            {(1,): (9.0,), (2,): (13.5,)},
        ),
        (
            PAPERS[13],
            {"a": [(1, 1, 1.0), (2, 1, 0.5), (1, 2, 1.0)], "para": [(-1.0,)], "feature": [(1, -2.0), (2, 4.0)]},
            # round 1: relu(2) = 2 and relu(-4) = 0: 1: 2, 2: 2; round 2: relu(-2) = 0 everywhere
            {(1,): (0.0,), (2,): (0.0,)},
        ),
    ],
    ids=["commnet", "gcn_forward"],
)
def test_the_refused_two_run_under_iterate(
    file: Path, sources: dict[str, list[tuple[Any, ...]]], expected: dict[Any, Any]
) -> None:
    resolved = resolve_text(parse(file.read_text()), {})
    rows = {n: sources.get(s.relation, list(s.rows)) for n, s in enumerate(resolved.sources)}
    assert run_plan(semantics.iterated(file), rows, tasks=2)[output(file)] == expected
