"""Functors of the user: Python functions over arrays, on the engine of ``mpi_backend`` and on Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from datalog.interpreter import evaluate
from datalog.operations import OPERATIONS
from rows import assert_same_rows, rows_of

import pyspark_paralagg as ra
from mpi_backend.loop.alone import run_alone
from mpi_backend.state.types import type_of
from pyspark_paralagg.command.cli import FAILED, OK, USAGE, WRONG, main
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import FixpointError, ParalaggError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    Functions = Mapping[str, Callable[..., Any]]

pytestmark = pytest.mark.rotates(runs=3)

SCALARS: dict[str, Callable[..., Any]] = {
    "weight": lambda s, n: sum(map(ord, s)) + n,
    "up": lambda s: s.upper(),
    "half": lambda x: x / 2,
    "next": lambda n: (7 * n + 3) % 11,
}


def vectorised(scalar: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: [scalar(*row) for row in zip(*(a.tolist() for a in arrays), strict=True)]


FUNCTIONS = {name: vectorised(scalar) for name, scalar in SCALARS.items()}
DECLARATIONS = """
.functor weight(s: symbol, n: number): number
.functor up(symbol): symbol
.functor half(x: float): float
.functor next(n: unsigned): unsigned
"""
TEXT = """
.decl edge(x: symbol, y: symbol, n: number)
edge("a", "b", 1). edge("b", "cc", 2). edge("cc", "a", 3). edge("cc", "", 4).
.decl head(x: symbol, n: number)
head(@up(x), @weight(y, n) + 1) :- edge(x, y, n).
.decl fact(x: symbol, h: float)
fact(@up("zz"), @half(3)).
.decl body(x: symbol, y: symbol)
body(x, y) :- edge(x, y, n), @weight(x, n) > 98, y != @up(y).
.decl join(x: symbol, y: symbol)
join(x, y) :- edge(x, _, n), fact(y, h), @half(n) <= h, !head(@up(x), 100).
.decl seen(x: symbol, n: number)
seen("a", 0).
seen(y, @weight(y, n) - 90) :- seen(x, n), edge(x, y, _), n < 40.
.decl above(x: symbol)
above("a").
above(y) :- above(x), edge(x, y, _), @up(x) < y.
.decl steps(n: unsigned)
steps(1u).
steps(@next(n)) :- steps(n), n < 9u.
.decl total(n: number)
total(n) :- n = sum @weight(x, m) : { edge(x, _, m) }.
.decl least(x: symbol, n: number)
least(x, $MIN(@weight(y, n))) :- edge(x, y, n).
"""
NAMES = ["head", "fact", "body", "join", "seen", "above", "steps", "total", "least"]


def local(text: str, functions: Functions, names: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of ``names`` by the engine of ``mpi_backend`` in this process."""
    resolved = resolve_text(read(text), {}, functions=functions)
    plan = compile_program(requested_program(resolved, names))
    sources = {}
    for n in {i.source for i in plan.inputs if i.relation is None}:
        source = resolved.sources[n]
        columns = list(zip(*source.rows, strict=True)) or [()] * len(source.columns)
        arrays = [pa.array(v, type_of(c.type).arrow) for v, c in zip(columns, source.columns, strict=True)]
        sources[n] = [pa.record_batch(arrays, [c.name for c in source.columns])]
    tables, _ = run_alone(plan, sources, names)
    return {n: [tuple(r[c] for c in resolved.names(n)) for r in tables[n].to_pylist()] for n in names}


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[tuple[Any, ...]]]:
    """Return the rows of ``TEXT`` by the interpreter of the syntax tree, which calls the scalar functions."""
    for name, scalar in SCALARS.items():
        monkeypatch.setitem(OPERATIONS, f"@{name}", scalar)
    return evaluate(parse(DECLARATIONS + TEXT), {})


def test_local_rows_are_those_of_the_interpreter(expected: dict[str, set[tuple[Any, ...]]]) -> None:
    found = local(DECLARATIONS + TEXT, FUNCTIONS, NAMES)
    for name in NAMES:
        assert_same_rows(found[name], list(expected[name]))


@pytest.mark.slow("recursions on plain DataFrames")
def test_dataframe_rows_are_those_of_the_interpreter(
    spark: SparkSession, expected: dict[str, set[tuple[Any, ...]]]
) -> None:
    found = ra.datalog(spark, DECLARATIONS + TEXT, functors=FUNCTIONS)
    for name in NAMES:
        assert_same_rows(rows_of(found[name]), list(expected[name]))
    reason = ra.report(found["seen"]).reason
    assert "the Spark engine cannot call the functor `@weight`, a Python function, on rows of a recursion" in reason
    assert "the functor `@weight`" in ra.explain(found["seen"])


COSTS = """
.functor cost(w: number): number
.decl edge(x: number, y: number, w: number)
edge(1, 2, 4). edge(2, 3, 5). edge(1, 3, 20).
.decl dist(x: number, d: number)
dist(@cost(0) + 1, 0).
dist(y, $MIN(d + @cost(w))) :- dist(x, d), edge(x, y, w), @cost(w) >= 0.
"""


@pytest.mark.parametrize("backend", ["auto", "spark", "local", "python", "dataframe"])
def test_engines_read_calls_over_inputs(spark: SparkSession, backend: str) -> None:
    found = ra.datalog(spark, COSTS, functors={"cost": lambda w: 2 * w}, backend=backend)["dist"]
    assert_same_rows(rows_of(found), [(1, 0), (2, 8), (3, 18)])
    assert ra.report(found).backend == ("spark" if backend == "auto" else backend)


@pytest.mark.parametrize("backend", ["spark", "local", "mpi", "python"])
def test_engines_refuse_calls_on_rows_of_a_recursion(spark: SparkSession, backend: str) -> None:
    text = ".functor f(number): number\np(1). p(@f(x)) :- p(x), x < 9."
    with pytest.raises(ra.UnsupportedError) as caught:
        ra.datalog(spark, text, functors={"f": lambda x: x + 1}, backend=backend)["p"]
    assert (caught.value.code, caught.value.value) == ("PARALAGG_FUNCTOR_BACKEND", "@f")
    assert 'backend="auto"' in (caught.value.hint or "")


def test_the_proof_knows_nothing_of_a_functor() -> None:
    text = COSTS.replace("d + @cost(w)", "@cost(d + w)")
    with pytest.raises(VerificationError) as caught:
        local(text, {"cost": lambda w: 2 * w}, ["dist"])
    assert caught.value.code == "PARALAGG_NOT_PROVED"


def test_a_key_that_a_functor_computes_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_paralagg.compile.prove.limit_growth.MAX_ITERATIONS", 9)
    with pytest.raises(FixpointError, match="PARALAGG_LIMIT_REACHED"):
        local(".functor f(number): number\np(1). p(@f(x)) :- p(x).", {"f": lambda x: x + 1}, ["p"])


def test_a_function_gets_numpy_arrays_of_its_types() -> None:
    types = []

    def f(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        types.append([type(a).__name__ + " " + str(a.dtype) for a in arrays])
        return arrays[0]

    text = '.functor f(number, unsigned, float, symbol): number\np(@f(1, 2, 3, "a")).'
    assert local(text, {"f": f}, ["p"]) == {"p": [(1,)]}
    assert types == [["ndarray int64", "ndarray int64", "ndarray float64", "ndarray object"]]


def test_results_may_be_arrays_or_lists() -> None:
    text = ".functor f(number): float\np(@f(1))."
    for result in ([1], np.array([1.0]), np.array([1], np.int16), pa.array([1.0])):
        assert local(text, {"f": lambda _, result=result: result}, ["p"]) == {"p": [(1.0,)]}


# Wrong texts and wrong arguments

WRONG_TEXTS = [
    ("p(@g(x)) :- q(x).", "DATALOG_FUNCTOR", 3, 3, "functor `@g` is not declared", "use one of @f"),
    ("p(f(x)) :- q(x).", "DATALOG_FUNCTOR", 3, 3, "functor `f` does not exist", "`@f(...)`"),
    ("p(@f(x, x)) :- q(x).", "DATALOG_ARITY", 3, 3, "`@f` takes 1 argument, not 2", None),
    ('p(@f("a")) :- q(_).', "DATALOG_TYPE", 3, 6, "argument 1 of `@f` is a unsigned", "to_number"),
    ("p(cat(@f(x), x)) :- q(x).", "DATALOG_TYPE", 3, 3, "`cat` takes symbol, but this is a number", None),
    ("p(x) :- q(x), @f(y) > 1.", "DATALOG_UNBOUND", 3, 18, "nothing in the body binds `y`", None),
    (".functor f(number): number", "DATALOG_DECLARED_TWICE", 3, 1, "the functor `f` is declared twice", "remove"),
    (".functor h(numbr): number", "DATALOG_TYPE", 3, 12, "type `numbr` does not exist", "did you mean 'number'?"),
    (".functor h(): number", "DATALOG_ARITY", 3, 1, "the functor `h` has no argument", "h(x: number): number"),
    (".functor h(number): number", "FUNCTOR_MISSING", 3, 1, "the functor `h` has no Python function", "--functors"),
    (
        ".type R = [x: number] .functor h(r: R): number",
        "DATALOG_STRUCTURE",
        3,
        34,
        "the functor `h` takes and returns no structures",
        "pass their fields",
    ),
]


@pytest.mark.parametrize(("text", "code", "line", "column", "message", "hint"), WRONG_TEXTS)
def test_wrong_texts(  # noqa: PLR0913, PLR0917 - the parts of an error
    text: str, code: str, line: int, column: int, message: str, hint: str | None
) -> None:
    text = f".functor f(x: unsigned): number\nq(1).\n{text}"
    with pytest.raises(ParalaggError) as caught:
        resolve_text(read(text), {}, functions={"f": abs})
    problem = caught.value
    assert (problem.code, problem.place) == (f"PARALAGG_{code}", f"line {line}, column {column}")
    assert problem.message.startswith(message)
    assert hint is None or hint in (problem.hint or "")
    assert len(problem.problems) == 1


def test_a_structure_is_no_argument() -> None:
    text = ".functor f(symbol): number\n.type R = [x: number]\n.decl q(r: R)\nq([1]). p(@f(r)) :- q(r)."
    with pytest.raises(ParalaggError, match="`@f` takes no structure"):
        resolve_text(read(text), {}, functions={"f": abs})


@pytest.mark.parametrize(
    ("functions", "message", "hint"),
    [
        ({"f": abs, "g": abs}, "the functor 'g' is not declared by the text", "use one of f"),
        ({"f": 3}, "the functor 'f' is a int, not a function", "pass a function of arrays"),
    ],
)
def test_wrong_functions(functions: Functions, message: str, hint: str) -> None:
    with pytest.raises(ra.UsageError) as caught:
        resolve_text(read(".functor f(number): number p(@f(1))."), {}, functions=functions)
    assert (caught.value.code, caught.value.message) == ("PARALAGG_FUNCTOR_MISSING", message)
    assert hint in (caught.value.hint or "")


# Wrong results


def failing() -> Callable[..., Any]:
    """Return a function that Spark sends by value: its workers do not have this module."""

    def fail(_: object) -> None:
        raise ValueError("no\nsuch value")

    return fail


WRONG_RESULTS: list[tuple[str, Callable[..., Any], str, str]] = [
    ("number", failing(), "FUNCTOR_FAILED", "raised ValueError: no for (5)"),
    ("number", lambda _: [1, 2], "FUNCTOR_RESULT", "returned 2 values for 1 rows"),
    ("number", lambda _: 1, "FUNCTOR_RESULT", "returned 1 for 1 rows"),
    ("number", lambda _: None, "FUNCTOR_RESULT", "returned None for 1 rows"),
    ("number", lambda _: [None], "FUNCTOR_RESULT", "returned None for (5), which is no number"),
    ("number", lambda _: [1.5], "FUNCTOR_RESULT", "returned 1.5 for (5), which is no number"),
    ("number", lambda _: [True], "FUNCTOR_RESULT", "returned True for (5), which is no number"),
    ("number", lambda _: [1 << 63], "FUNCTOR_RESULT", "returned 9223372036854775808 for (5), which is no number"),
    ("unsigned", lambda _: [-1], "FUNCTOR_RESULT", "returned -1 for (5), which is no unsigned"),
    ("symbol", lambda x: x, "FUNCTOR_RESULT", "returned 5 for (5), which is no symbol"),
    ("symbol", lambda _: "a", "FUNCTOR_RESULT", "returned 'a' for 1 rows"),
    ("float", lambda _: ["a"], "FUNCTOR_RESULT", "returned 'a' for (5), which is no float"),
]


@pytest.mark.parametrize(("result", "function", "code", "message"), WRONG_RESULTS)
def test_wrong_results(result: str, function: Callable[..., Any], code: str, message: str) -> None:
    with pytest.raises(FixpointError) as caught:
        local(f".functor f(number): {result}\np(@f(5)).", {"f": function}, ["p"])
    assert (caught.value.code, caught.value.message) == (f"PARALAGG_{code}", f"the functor `@f` {message}")


@pytest.mark.parametrize(("result", "function", "code", "message"), WRONG_RESULTS[:4])
def test_wrong_results_on_spark(
    spark: SparkSession, result: str, function: Callable[..., Any], code: str, message: str
) -> None:
    found = ra.datalog(spark, f".functor f(number): {result}\np(@f(5)).", functors={"f": function})
    with pytest.raises(Exception) as caught:  # noqa: PT011 - an exception of Spark, which has the code
        found["p"].collect()
    assert f"[PARALAGG_{code}] the functor `@f` {message}" in str(caught.value)


def test_a_failure_names_the_row(spark: SparkSession) -> None:
    text = ".functor f(number): number\nq(3). q(0). q(2). p(@f(x)) :- q(x)."
    inverse = vectorised(lambda x: 6 // x)
    for run in (
        lambda: local(text, {"f": inverse}, ["p"]),
        ra.datalog(spark, text, functors={"f": inverse})["p"].collect,
    ):
        with pytest.raises(Exception, match=r"raised ZeroDivisionError: .* for \(0\)"):
            run()


def test_an_unsigned_argument_is_checked() -> None:
    text = ".functor f(unsigned): number\nq(3). p(@f(x - 4)) :- q(x)."
    with pytest.raises(FixpointError, match="PARALAGG_DATALOG_UNSIGNED"):
        local(text, {"f": lambda x: x}, ["p"])


# The command line


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Callable[..., int]]:
    before = Path.cwd()
    os.chdir(tmp_path)

    def run(text: str, functions: str, *arguments: str) -> int:
        Path("program.dl").write_text(text, encoding="utf-8")
        Path("functors.py").write_text(functions, encoding="utf-8")
        return main(["run", "program.dl", "-D", "out", "-q", *arguments])

    yield run
    os.chdir(before)


PROGRAM = """
.functor twice(x: symbol): symbol
.functor size(x: symbol): number
.decl name(s: symbol)
name("ab"). name("c").
name(@twice(s)) :- name(s), @size(s) < 5.
.output name
"""
FUNCTORS = """
import numpy as np

def helper(s): return s + s
def twice(x): return helper(x)
def size(x): return np.array([len(s) for s in x])
"""
OUTPUT = "ab\nabab\nabababab\nc\ncc\ncccc\ncccccccc\n"


@pytest.mark.parametrize("backend", [["local"], ["mpi", "--ranks", "2"], ["dataframe"]])
def test_command_line(case: Callable[..., int], backend: list[str]) -> None:
    assert case(PROGRAM, FUNCTORS, "--functors", "functors.py", "--backend", *backend) == OK
    assert Path("out/name.csv").read_text(encoding="utf-8") == OUTPUT


def test_why_calls_functors(spark: SparkSession) -> None:
    found = ra.datalog(spark, PROGRAM, functors={"twice": lambda x: x + x, "size": vectorised(len)})["name"]
    assert "name(s='cc')" in str(ra.why(found, s="cc"))


def test_a_null_is_no_argument(spark: SparkSession) -> None:
    q = spark.sql("SELECT * FROM VALUES (1L), (CAST(NULL AS BIGINT)) AS q(x)")
    found = ra.datalog(spark, ".functor f(number): number p(@f(x)) :- q(x).", functors={"f": abs}, q=q)["p"]
    with pytest.raises(Exception, match=r"\[PARALAGG_FUNCTOR_FAILED\] the functor `@f` got a null"):
        found.collect()


def test_a_proof_calls_functors(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    assert case(PROGRAM, FUNCTORS, "--functors", "functors.py", "--why", 'name("cc")') == OK
    assert "name(s='cc')" in capfd.readouterr().out


def test_wrong_files_of_functors(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--backend", "local", "--functors")
    assert case(PROGRAM, "", *arguments, "none.py") == USAGE
    assert capfd.readouterr().err.startswith("PARALAGG_FUNCTOR_FILE: the file none.py does not exist")
    assert case(PROGRAM, "import nothing_of_this_name", *arguments, "functors.py") == USAGE
    assert "raised ModuleNotFoundError: No module named" in capfd.readouterr().err
    assert case(PROGRAM, "def twice(x): return x", *arguments, "functors.py") == WRONG
    assert capfd.readouterr().err.startswith("PARALAGG_FUNCTOR_MISSING: the functor `size` has no Python function")


@pytest.mark.parametrize("backend", [["local"], ["mpi", "--ranks", "2"], ["dataframe"]])
def test_a_functor_that_fails(case: Callable[..., int], capfd: pytest.CaptureFixture[str], backend: list[str]) -> None:
    functions = f"{FUNCTORS}\ndef size(x): return [3 if s == 'c' else len(s) // 0 for s in x]"
    assert case(PROGRAM, functions, "--functors", "functors.py", "--backend", *backend) == FAILED
    error = capfd.readouterr().err
    assert error.startswith("PARALAGG_FUNCTOR_FAILED: the functor `@size` raised ZeroDivisionError: ")
    assert "for ('ab')" in error
    assert "Hint: the function must accept every value of its types" in error
    assert not Path("out").exists()


def test_calls_over_an_input_get_whole_arrays() -> None:
    sizes: dict[str, list[int]] = {"f": [], "g": [], "h": []}

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arrays: sizes[name].append(len(arrays[0])) or function(*arrays)

    text = """
    .functor f(number): number
    .functor g(number, symbol): symbol
    .functor h(number): number
    p(@g(@f(x), s)) :- q(x, s), x != 0, @h(x) > 2.
    """ + "".join(f'q({n}, "{n % 3}"). q({n}, "a").' for n in range(10))
    functions = {
        "f": counted("f", lambda x: x // 2),
        "g": counted("g", vectorised(lambda x, s: f"{x}{s}")),
        "h": counted("h", vectorised(lambda x: 30 // x)),
    }
    rows = {(f"{n // 2}{s}",) for n in range(1, 10) for s in (str(n % 3), "a") if 30 // n > 2}
    assert_same_rows(local(text, functions, ["p"])["p"], list(rows))
    assert sizes["h"] == sizes["f"] == [9]  # once for each value that the filter keeps
    assert sizes["g"] == [len(rows)]
