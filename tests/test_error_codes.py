"""The registry of error codes: the sources raise these codes and no others, and the examples raise theirs."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import SPARK

import pyspark_paralagg as ra
from docs_site import scala_codes
from docs_site.error_index import CLASSES, in_python
from docs_site.scala_errors import in_scala
from pyspark_paralagg import codes
from pyspark_paralagg.codes import CODES, IN_SPARK, ErrorCode
from pyspark_paralagg.command import cli, started
from pyspark_paralagg.command.failure import system_problem
from pyspark_paralagg.compile import PASSES
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import ParalaggError
from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.plan.read import plan_from_json
from pyspark_paralagg.program.program import Column, Input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]

# A Datalog error is a usage error; which class a code has depends on where its value stands.
RELATED = {"UsageError": {"DatalogError"}, "DatalogError": {"UsageError"}}
ALSO = {
    "PARALAGG_DATALOG_PATTERN": {"FixpointError"},  # the program computes the pattern
    "PARALAGG_DATALOG_UNSIGNED": {"FixpointError"},  # a rank computes the value
    "PARALAGG_MPI_STAGING": {"FixpointError"},  # the disk of a rank is full
    "PARALAGG_SQL_HEAD_ARGUMENT": {"UsageError"},  # the compiler raises it, Spark passes it on
    "PARALAGG_SQL_USING_KEY": {"UsageError"},  # likewise, for count
}
"""Further classes that raise a code, besides exceptions of Spark."""


def examples(language: str) -> list[ErrorCode]:
    return [entry for entry in CODES.values() if entry.language == language]


def code_of(problem: Exception) -> str | None:
    """Return the code of an error of this package, or of one of Spark's that carries it."""
    if isinstance(problem, ParalaggError):
        return problem.code
    in_message = re.search(r"\[(PARALAGG_\w+)\]", str(problem))
    return in_message[1] if in_message else None


def compile_text(text: str) -> None:
    """Compile a text without Spark, as far as its proof."""
    program = resolve_text(read(text), {}).program
    for run in PASSES:
        program = run(program)


# The registry and the sources


@pytest.fixture(scope="module")
def raised() -> dict[str, set[str]]:
    """Return the classes that raise each code of the sources."""
    found = defaultdict(set)
    for place in (*in_python(), *in_scala()):
        found[place.code].add(place.kind)
    return dict(found)


def test_the_sources_raise_the_codes_of_the_registry(raised: dict[str, set[str]]) -> None:
    assert len(raised) > 100
    assert set(raised) == set(CODES)


def test_the_sources_raise_the_registered_class(raised: dict[str, set[str]]) -> None:
    for code, kinds in raised.items():
        kind = CODES[code].kind
        assert kind in kinds, code
        assert kinds - {kind, IN_SPARK} - RELATED.get(kind, set()) == ALSO.get(code, set()), code


def test_a_code_says_cause_and_remedy_and_has_an_example_or_a_test() -> None:
    for code, entry in CODES.items():
        assert entry.code == code
        assert entry.kind in (*CLASSES, IN_SPARK), code
        assert entry.cause.endswith("."), code
        assert entry.remedy.endswith((".", "`")), code
        assert bool(entry.example) != bool(entry.tested_by), code


def test_a_code_is_registered_once() -> None:
    registered = [entry.code for area in codes.AREAS.values() for entry in area]
    assert sorted(registered) == sorted(CODES)


def test_named_tests_have_the_code() -> None:
    for code, entry in CODES.items():
        for name in filter(None, entry.tested_by.split(", ")):
            file, _, test = name.partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"\b(PARALAGG_)?{code.removeprefix('PARALAGG_')}\b", text), (code, file)
            assert not test or f"def {test}(" in text, name


def test_constants_of_the_shim_are_those_of_the_registry() -> None:
    message = "python -m docs_site.scala_codes writes it again"
    assert scala_codes.FILE.read_text(encoding="utf-8") == scala_codes.source(), message


def test_the_shim_has_codes_as_constants_only() -> None:
    for file in scala_codes.SOURCES.rglob("*.scala"):
        if file != scala_codes.FILE:
            texts = re.findall(r'"(PARALAGG_\w+)"', file.read_text(encoding="utf-8"))
            assert not CODES.keys() & set(texts), file


def test_sentences_are_short() -> None:
    """A sentence of a cause or a remedy has at most 25 words."""
    for code, entry in CODES.items():
        for text in (entry.cause, entry.remedy):
            for sentence in re.split(r"[.:;] ", re.sub(r"`[^`]*`", "code", text)):
                assert len(sentence.split()) <= 25, (code, sentence)


# Examples


@pytest.mark.parametrize("entry", examples("datalog"), ids=lambda entry: entry.code)
def test_datalog_example_raises_its_code(entry: ErrorCode) -> None:
    with pytest.raises(ParalaggError) as caught:
        compile_text(entry.example)
    assert (caught.value.code, type(caught.value).__name__) == (entry.code, entry.kind)
    assert [problem.code for problem in caught.value.problems] == [entry.code]


@pytest.mark.parametrize("entry", examples("python"), ids=lambda entry: entry.code)
def test_python_example_raises_its_code(spark: SparkSession, entry: ErrorCode) -> None:
    if SPARK < (4, 0) and "WITH RECURSIVE" in entry.example:
        pytest.skip("Spark 4.0 and later parse it")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the code says which
        exec(compile(entry.example, entry.code, "exec"), {"spark": spark, "ra": ra})  # noqa: S102 - our own examples
    assert code_of(caught.value) == entry.code
    if isinstance(caught.value, ParalaggError):
        assert type(caught.value).__name__ == entry.kind


# Codes that need more than an example


def test_a_plan_of_another_version() -> None:
    with pytest.raises(ra.UsageError) as caught:
        plan_from_json({**Plan("none", (), ()).to_json(), "version": 0})
    assert caught.value.code == "PARALAGG_PLAN_VERSION"


def test_a_file_that_the_system_refuses() -> None:
    problem = system_problem(PermissionError(13, "Permission denied", "out/dist.csv"))
    assert (problem.code, problem.place) == ("PARALAGG_SYSTEM", "out/dist.csv")


def test_a_program_that_is_not_there(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["run", str(tmp_path / "none.dl")]) == cli.WRONG
    assert capfd.readouterr().err.startswith("PARALAGG_NO_PROGRAM: cannot read ")
    (tmp_path / "latin1.dl").write_bytes(b"// caf\xe9")
    assert cli.main(["run", str(tmp_path / "latin1.dl")]) == cli.WRONG
    assert "is not UTF-8, at byte 6" in capfd.readouterr().err


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def missing(_: object) -> None:
        raise ModuleNotFoundError(name="lark")

    monkeypatch.setattr("pyspark_paralagg.command.run.run", missing)
    assert cli.main(["run", "p.dl"]) == cli.WRONG
    assert capfd.readouterr().err.startswith("PARALAGG_PACKAGE_MISSING: the Python package lark is not installed")


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Give a function that replaces Spark's start by another one."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    return lambda start: monkeypatch.setattr(started, "configure", lambda _: SimpleNamespace(getOrCreate=start))


def test_spark_that_does_not_start(no_session: Callable[[Callable[[], object]], None]) -> None:
    def fail() -> None:
        raise RuntimeError("Could not parse Master URL")

    no_session(fail)
    with pytest.raises(ra.EnvironmentProblem) as caught, started.session("p", "nowhere", {}, None):
        pass
    assert (caught.value.code, caught.value.place) == ("PARALAGG_SPARK_START", "--master nowhere")


def test_spark_that_ends_within_the_run(no_session: Callable[[Callable[[], object]], None]) -> None:
    gateway = SimpleNamespace(proc=None)
    context = SimpleNamespace(_gateway=gateway)
    spark = SimpleNamespace(sparkContext=context, conf=SimpleNamespace(get=lambda _: "true"))
    no_session(lambda: spark)
    with pytest.raises(ra.FixpointError) as caught, started.session("p", "local", {}, None):
        raise ConnectionRefusedError
    assert caught.value.code == "PARALAGG_SPARK_LOST"


@contextlib.contextmanager
def dynamic_allocation(spark: SparkSession) -> Iterator[None]:
    """Let the engine believe that executors come and go."""
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.dynamicAllocation.enabled", "true")
    try:
        yield
    finally:
        conf.set("spark.dynamicAllocation.enabled", "false")


def test_no_gang_under_dynamic_allocation(spark: SparkSession) -> None:
    found = spark.range(3).recursive_agg("id", step=lambda r: r.where("id < 2"), backend="spark")
    with dynamic_allocation(spark), pytest.raises(Exception, match="dynamic allocation is on") as caught:
        found.collect()
    assert code_of(caught.value) == "PARALAGG_NO_SLOTS"


def test_a_job_that_is_too_small_to_offload(spark: SparkSession) -> None:
    from pyspark_paralagg.backends import offload  # noqa: PLC0415 - it loads the compiler

    few = Input(0, 0, (Column("x", "bigint"),), (), size_bytes=80)
    with pytest.raises(ra.UnsupportedError) as caught:
        offload._check_size(Plan("small", (few,), ()), spark)
    assert (caught.value.code, caught.value.value) == ("PARALAGG_OFFLOAD_SMALL", 10)


def test_a_rank_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpi_backend.launch.preflight import Problem, Request, check  # noqa: PLC0415 - optional

    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Problem) as caught:
        check(Request("local", 1))
    assert caught.value.fields["code"] == "PARALAGG_MPI_NO_NUMBA"


def test_a_staged_file_of_other_columns(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("numba")
    from mpi_backend.load.files import read_sources  # noqa: PLC0415 - optional

    (tmp_path / "0").mkdir()
    pq.write_table(pa.table({"x": [1], "y": [2]}), tmp_path / "0" / "a.parquet")
    plan = Plan("one", (Input(0, 0, (Column("x", "bigint"),), ()),), ())
    with pytest.raises(ra.UsageError) as caught:
        read_sources(plan, tmp_path, "parquet", 0, 1)
    assert (caught.value.code, caught.value.value) == ("PARALAGG_INPUT_COLUMNS", 2)


def test_a_pattern_that_java_reads_otherwise() -> None:
    from mpi_backend.state.texts import check_pattern  # noqa: PLC0415 - optional

    with pytest.raises(ra.UnsupportedError) as caught:
        check_pattern(r"\p{L}")
    assert caught.value.code == "PARALAGG_EXPRESSION_UNPORTABLE"


def test_a_rule_that_is_too_long_for_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from mpi.staged import Staged  # noqa: PLC0415 - optional

    monkeypatch.setattr("mpi_backend.codegen.rule.MAX_LOOPS", 2)
    text = ".decl e(x: number, y: number)\n.input e\np(x, y) :- e(x, y).\n"
    text += "p(x, w) :- p(x, y), e(y, z), p(z, v), e(v, w)."
    rows: dict[str, Any] = {"e": [(1, 2), (2, 3)]}
    with pytest.raises(ra.UnsupportedError) as caught:
        Staged(resolve_text(read(text), {}), rows, ["p"]).run_local()
    assert caught.value.code == "PARALAGG_RULE_TOO_LONG"
