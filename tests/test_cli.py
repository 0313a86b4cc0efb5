"""The command `paralagg`: what it writes and prints, its exit codes, and that a run that fails leaves nothing.

Most tests call ``main`` beside the tests' session; what only a process of its own shows runs as one.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from spark_versions import SPARK, python_path, skip_without_delta

from pyspark_paralagg.command import frame_results, outputs, staging
from pyspark_paralagg.command.cli import FAILED, INTERRUPTED, OK, TERMINATED, USAGE, WRONG, main
from pyspark_paralagg.command.failure import interruption, summary
from pyspark_paralagg.session.quiet import without_spark_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

ROOT = Path(__file__).parent.parent

DISTANCES = """
.decl edge(x: number, y: number, w: number)
.decl dist(x: number, d: number)
.input edge
.output dist
dist(0, 0).
dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w).
"""
ENDLESS = """
.decl n(x: number)
.output n
n(0).
n(x + 1) :- n(x), x < 1000000000.
"""
EDGES = "0\t1\t4\n1\t2\t5\n0\t2\t11\n2\t10\t1\n"
FAILING_RUNS = [
    (
        DISTANCES,
        {},
        WRONG,
        "PARALAGG_INPUT_MISSING: the file facts/edge.facts does not exist (in program.dl, line 4, ",
    ),
    (
        DISTANCES,
        {"edge": "0\t1\tx\n"},
        WRONG,
        "PARALAGG_BAD_FACT: 'x' is not a number (in facts/edge.facts, line 1)",
    ),
    (DISTANCES.replace("edge(x, y, w)", "egde(x, y, w)"), {"edge": EDGES}, WRONG, "did you mean `edge`?"),
    (DISTANCES.replace("$MIN(d + w)", "$MIN(0 - d)"), {"edge": EDGES}, WRONG, "PARALAGG_"),
    (DISTANCES + ".output edge\n.assume edge.w >= 0", {"edge": "0\t1\t-4\n"}, FAILED, "PARALAGG_ASSUMPTION"),
    (DISTANCES, {"edge": "0\t1\t1\n1\t0\t-2\n"}, FAILED, "PARALAGG_NO_FIXPOINT"),
]
"""Texts and facts that fail with or without Spark: the exit code, and a part of what is printed."""


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Run a text over files in a folder of its own; outputs go to ``out`` there."""
    before = Path.cwd()
    os.chdir(tmp_path)

    def run(text: str, *arguments: str, **files: str) -> int:
        Path("facts").mkdir(exist_ok=True)
        for name, content in files.items():
            (Path("facts") / f"{name}.facts").write_bytes(content.encode())
        Path("program.dl").write_text(text, encoding="utf-8")
        return main(["run", "program.dl", "-F", "facts", "-D", "out", *arguments])

    yield run
    os.chdir(before)


@pytest.mark.usefixtures("spark")
def test_outputs_are_tab_separated_and_sorted_by_value(case: Callable[..., int]) -> None:
    assert case(DISTANCES, edge=EDGES) == OK
    assert Path("out/dist.csv").read_bytes() == b"0\t0\n1\t4\n2\t9\n10\t10\n"
    assert [p.name for p in Path("out").iterdir()] == ["dist.csv"]


def test_the_active_session_is_that_from_before(case: Callable[..., int], spark: SparkSession) -> None:
    spark.createDataFrame([(1,)], "x int")  # makes its session the active one, as the facts of a text do
    assert case(DISTANCES, edge=EDGES) == OK
    assert type(spark).getActiveSession() is spark
    jvm = spark._jvm
    assert jvm is not None
    assert jvm.SparkSession.getActiveSession().get().equals(spark._jsparkSession)


@pytest.mark.usefixtures("spark")
def test_values_are_written_as_they_read_back(case: Callable[..., int]) -> None:
    text = """
    .decl v(f: float, s: symbol, n: number)
    .input v
    .output v
    """
    rows = '-0.25\t\t-1\n1e-07\té\t9223372036854775807\n1.0\t"q"\t2\n1e+20\t a ,\\t\t3\ninf\tz\t0\n'
    assert case(text, v=rows) == OK
    assert Path("out/v.csv").read_text(encoding="utf-8") == rows


@pytest.mark.usefixtures("spark")
def test_parameters_of_output(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    text = """
    .decl p(x: number, s: symbol)
    p(1, "a"). p(2, "b,\\"c\\"").
    .output p(filename="deep/er.txt", delimiter=", ", headers="true")
    .output p(filename="quoted.csv", rfc4180="true")
    .output p(IO="stdout", headers="true")
    .output p(filename="p.parquet")
    .printsize p
    """
    assert case(text) == OK
    assert Path("out/deep/er.txt").read_text() == 'x, s\n1, a\n2, b,"c"\n'
    assert Path("out/quoted.csv").read_text() == '1,"a"\n2,"b,""c"""\n'
    assert pq.read_table("out/p.parquet").to_pydict() == {"x": [1, 2], "s": ["a", 'b,"c"']}
    assert capfd.readouterr().out == (
        '---------------\np\nx\ts\n===============\n1\ta\n2\tb,"c"\n===============\np\t2\n'
    )


@pytest.mark.usefixtures("spark")
def test_a_dash_prints_and_a_format_counts_where_none_is_named(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert case(DISTANCES, "--out", "-", "--quiet", edge="0\t1\t4\n") == OK
    printed = capfd.readouterr()
    assert printed.out == "---------------\ndist\n===============\n0\t0\n1\t4\n===============\n"
    assert printed.err == ""
    assert not Path("out").exists()
    assert case(DISTANCES, "--format", "parquet", edge="0\t1\t4\n") == OK
    assert pq.read_table("out/dist.parquet").to_pydict() == {"x": [0, 1], "d": [0, 4]}


@pytest.mark.usefixtures("spark")
def test_the_report_and_the_progress(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    assert case(DISTANCES + ".output edge", "--report", "report.json", "--backend", "dataframe", edge=EDGES) == OK
    report = json.loads(Path("report.json").read_text())
    assert list(report) == ["dist", "edge"]
    assert report["edge"] is None
    assert (report["dist"]["backend"], report["dist"]["iterations"]) == ("dataframe", 4)
    assert "dist: 4 rows, 4 iterations by dataframe" in capfd.readouterr().err


@pytest.mark.usefixtures("spark")
def test_explain_runs_nothing(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    assert case(DISTANCES, "--explain", edge=EDGES) == OK
    printed = capfd.readouterr().out
    assert "-- dist" in printed
    assert "Not run yet" in printed
    assert not Path("out").exists()
    assert case(DISTANCES, "--explain", "mermaid", edge=EDGES) == OK
    assert capfd.readouterr().out.startswith("%% dist\nflowchart")
    assert case(DISTANCES, "--explain", "html", edge=EDGES) == OK
    assert capfd.readouterr().out.startswith("<!-- dist -->\n<!doctype html>")
    assert case(DISTANCES, "--explain", "nothing", edge=EDGES) == USAGE


def test_a_conf_is_for_this_run_only(spark: SparkSession, case: Callable[..., int]) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    text = ".decl p(x: number)\n.output p\np(x) :- x = 9223372036854775807 + y, q(y).\n.decl q(y: number)\nq(1)."
    assert case(text, "--conf", "spark.sql.ansi.enabled=false") == OK
    assert spark.conf.get("spark.sql.ansi.enabled") == before
    assert case(text) == FAILED


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("text", "files", "code", "told"),
    [
        *FAILING_RUNS,
        (DISTANCES.replace(".output", ".output gone\n.output"), {"edge": EDGES}, WRONG, "gone"),
        (DISTANCES.replace(".output dist", ""), {"edge": EDGES}, WRONG, "PARALAGG_NO_OUTPUT"),
        (
            ".decl z(x: number)\nz(1). z(0).\n.decl q(x: number)\n.output z\n.output q\nq(1 / x) :- z(x).",
            {},
            FAILED,
            (
                "DIVIDE_BY_ZERO: Division by zero. (in program.dl, line 6, column 1, q)\n"
                "Hint: correct the data or the expression (1L div"
                if SPARK >= (4, 0)  # 3.5 does not say where
                else "DIVIDE_BY_ZERO: Division by zero. (in q)"
            ),
        ),
        (DISTANCES + '.output edge(filename="dist.csv/e.csv")', {"edge": EDGES}, WRONG, "the targets of two outputs, "),
        (
            DISTANCES.replace("input edge", 'input edge(IO="parquet")'),
            {"edge": EDGES},
            WRONG,
            "the file facts/edge.parquet does not exist",
        ),
        (
            DISTANCES.replace("input edge", 'input edge(IO="parquet", filename="edge.facts")'),
            {"edge": EDGES},
            FAILED,
            "CANNOT_READ_FILE_FOOTER",
        ),
    ],
)
def test_a_run_that_fails_says_why_and_leaves_nothing(  # noqa: PLR0913, PLR0917 - a table
    case: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
    text: str,
    files: dict[str, str],
    code: int,
    told: str,
) -> None:
    assert case(text, "--report", "reports/r.json", **files) == code
    shown = capfd.readouterr().err
    assert told in shown
    assert "Traceback" not in shown
    assert "org.apache" not in shown
    assert not Path("out").exists()
    assert not Path("reports").exists()


@pytest.mark.usefixtures("spark")
def test_what_was_there_before_a_failed_run_stays(case: Callable[..., int]) -> None:
    Path("out").mkdir()
    Path("out/dist.csv").write_text("of yesterday")
    assert case(DISTANCES, edge="0\t1\t1\n1\t0\t-2\n") == FAILED
    assert {p.name: p.read_text() for p in Path("out").iterdir()} == {"dist.csv": "of yesterday"}


def test_what_cannot_be_written_is_told_before_anything_runs(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_paralagg.command.on_spark.session", None)  # it would fail otherwise
    for place in ("a file", "a file/deep", "/proc/none"):
        Path("a file").write_text("of yesterday")
        assert case(DISTANCES, "--out", place, edge=EDGES) == WRONG
        assert "PARALAGG_BAD_OUTPUT: cannot " in capfd.readouterr().err
    for place, told in (
        ("out/dist.csv", "two outputs have the target "),
        ("facts", "is a folder"),
        (os.devnull, "is not a plain file"),
    ):
        assert case(DISTANCES, "--report", place, edge=EDGES) == WRONG
        assert told in capfd.readouterr().err
    assert sorted(p.name for p in Path().iterdir()) == ["a file", "facts", "program.dl"]
    assert Path("a file").read_text() == "of yesterday"


@pytest.mark.usefixtures("spark")
def test_a_link_stays_a_link(case: Callable[..., int]) -> None:
    Path("out").mkdir()
    Path("out/dist.csv").symlink_to("../elsewhere.csv")
    assert case(DISTANCES, edge="0\t1\t4\n") == OK
    assert Path("out/dist.csv").is_symlink()
    assert Path("elsewhere.csv").read_bytes() == b"0\t0\n1\t4\n"


@pytest.mark.usefixtures("spark")
def test_relations_without_columns_are_as_souffle_has_them(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    text = """
    .decl p() .decl q() .decl r()
    .input p
    .output q, r
    .output q(IO=stdout)
    .printsize r
    q() :- p().
    r() :- p(), 1 > 2.
    """
    assert case(text, "-q", p="()\n") == OK
    assert (Path("out/q.csv").read_text(), Path("out/r.csv").read_text()) == ("()\n", "")
    assert capfd.readouterr().out == "---------------\nq\n===============\n()\n===============\nr\t0\n"
    assert case(text, "-q", p="") == OK
    assert Path("out/q.csv").read_text() == ""
    assert case(text, p="x\n") == WRONG
    assert "'x' is not ()" in capfd.readouterr().err


@pytest.mark.usefixtures("spark")
def test_an_output_that_is_asked_for_twice_is_written_once(case: Callable[..., int]) -> None:
    assert case(DISTANCES + '.output dist\n.output dist(filename="./dist.csv")', edge="0\t1\t4\n") == OK
    assert Path("out/dist.csv").read_bytes() == b"0\t0\n1\t4\n"


@pytest.mark.usefixtures("spark")
def test_a_quiet_run_says_errors_alone(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    assert case(".output n\nn(0).\nn(x + 1) :- n(x).\n.limit n(iterations=3)", "-q") == OK
    assert capfd.readouterr().err == ""
    assert case(".output n\nn(0).\nn(x + 1) :- n(x).", "-q") == FAILED
    said = capfd.readouterr().err
    assert "has no bound" not in said
    assert said.startswith("PARALAGG_LIMIT_REACHED")
    assert case(".output n\nn(0).\nn(x + 1) :- n(x).\nn(x + 2) :- n(x).") == FAILED
    assert capfd.readouterr().err.count("has no bound") == 1  # a line for each relation


def test_a_move_that_fails_undoes_those_before_it(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("of yesterday")

    def fails(staged: Path, target: Path) -> Callable[[], object]:
        raise OSError(f"{staged} {target}")

    def run() -> None:
        with staging.Staging() as files:
            for name in ("old", "new/er", "bad"):
                staged = files.place(tmp_path / name)
                staged.write_text("of today")
            files.move_by(staged, fails)
            files.commit()

    with pytest.raises(OSError, match="bad"):
        run()
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"old": "of yesterday"}


def test_an_interrupt_during_the_moves_comes_too_late(tmp_path: Path) -> None:
    def moves(staged: Path, target: Path) -> Callable[[], object]:
        os.kill(os.getpid(), signal.SIGINT)
        staged.replace(target)
        return lambda: None

    with staging.Staging() as files:
        staged = files.place(tmp_path / "new")
        staged.write_text("of today")
        files.move_by(staged, moves)
        files.commit()
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"new": "of today"}


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stdout").write_text("p\t1\n")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        outputs._print(tmp_path / "stdout")


def test_stacks_that_py4j_logs_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    for name, expected in (("py4j/clientserver.py", []), ("mine/clientserver.py", ["lost"])):
        with without_spark_logs():
            root = logging.getLogger()
            root.handle(root.makeRecord("root", logging.ERROR, f"/lib/{name}", 1, "lost", (), None))
        assert caplog.messages == expected


def test_what_asked_to_end_is_found_behind_what_failed_after_it() -> None:
    end, after = SystemExit(TERMINATED), AttributeError("no JVM")
    after.__context__ = ValueError()
    after.__context__.__context__ = end
    assert interruption(after) is end
    assert interruption(ValueError()) is None


@pytest.mark.parametrize(
    "wrong",
    [
        ["run"],
        ["run", "p.dl", "--conf", "x"],
        ["run", "p.dl", "--format", "xml"],
        ["fly"],
        ["run", "p.dl", "--explain", "--backend", "dataframe"],
        ["run", "p.dl", "--explain", "--report", "r.json"],
        ["run", "p.dl", "--backend", "flink"],
        ["run", "p.dl", "--frob"],
    ],
)
def test_a_wrong_command_line_is_two(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(wrong)
    assert end.value.code == USAGE
    assert "usage: paralagg" in capsys.readouterr().err


def test_a_program_or_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "p.dl")]) == WRONG
    (tmp_path / "p.dl").write_text(DISTANCES)
    assert main(["run", str(tmp_path / "p.dl"), "--facts", str(tmp_path / "gone")]) == WRONG
    assert f"the folder {tmp_path / 'gone'} does not exist" in capsys.readouterr().err


def test_the_parts_for_scripts_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["java"]) == OK
    assert "version" in capsys.readouterr().out
    assert main([]) == OK
    assert "Spark" in capsys.readouterr().out


def test_batches_come_in_order_over_partitions(spark: SparkSession) -> None:
    ordered = spark.range(0, 50_000, 1, 7).selectExpr("50000 - id as n", "cast(id as string) as s").sort("n")
    numbers = [n for batch in frame_results.batches(ordered) for n in batch.column("n").to_pylist()]
    assert numbers == list(range(1, 50_001))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "x\n [PARALAGG_LIMIT_REACHED] after 3 Hint: raise it SQLSTATE: XX000\n\tat a",
            "PARALAGG_LIMIT_REACHED: after 3",
        ),
        (
            "Job aborted: [ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003\n\tat b",
            "ARITHMETIC_OVERFLOW: long overflow.",
        ),
        ("java.lang.OutOfMemoryError: Java heap space\n\tat c", "java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_sparks_pages_become_a_line(text: str, told: str) -> None:
    assert told in str(summary(text))
    assert "\tat" not in str(summary(text))


def _start(folder: Path, text: str, *more: str) -> subprocess.Popen[str]:
    (folder / "p.dl").write_text(text)
    arguments = [
        sys.executable,
        "-m",
        "pyspark_paralagg",
        "run",
        "p.dl",
        "-F",
        ".",
        "-D",
        "out",
        "--master",
        "local[2]",
        *more,
    ]
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT), "TMPDIR": str(folder)}
    return subprocess.Popen(  # noqa: S603 - this Python and our own arguments
        arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_a_process_of_its_own_says_nothing_but_its_progress(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text(EDGES)
    process = _start(tmp_path, DISTANCES + ".printsize dist")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (OK, "dist\t4\n")
    assert all(line.startswith("dist: ") for line in err.splitlines()), err
    assert not list(tmp_path.glob("paralagg-*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "backend"), [(signal.SIGINT, INTERRUPTED, "spark"), (signal.SIGTERM, TERMINATED, "dataframe")]
)
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int, backend: str) -> None:
    process = _start(tmp_path, ENDLESS, "--backend", backend)
    assert process.stderr is not None
    assert any(line.startswith("n: iteration ") for line in process.stderr)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    lines = [line for line in err.splitlines() if not line.startswith("n: iteration ")]
    assert lines == [f"{'interrupted' if backend == 'spark' else 'terminated'}; no output is written"]
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("paralagg-*"))


@pytest.mark.rotates(runs=3, turn=2)
@pytest.mark.slow("processes with Delta, several commits")
def test_delta_tables_go_out_and_come_in(tmp_path: Path) -> None:
    """The second run reads what the first wrote and gives the table a new version."""
    (tmp_path / "edge.facts").write_text(EDGES)
    to_delta = DISTANCES.replace(".output dist", '.output dist(filename="dist.delta")')
    first = _start(tmp_path, to_delta)
    said = first.communicate(timeout=300)[1]
    skip_without_delta(said)
    assert first.returncode == OK, said
    closer = """
    .decl dist(x: number, d: number)
    .decl half(x: number, d: number)
    .input dist(filename="out/dist.delta")
    .output half(filename="dist.delta")
    .output half(filename="half.csv")
    half(x, d / 2) :- dist(x, d).
    """
    second = _start(tmp_path, closer)
    said = second.communicate(timeout=300)[1]
    assert second.returncode == OK, said
    assert (tmp_path / "out" / "half.csv").read_text() == "0\t0\n1\t2\n2\t4\n10\t5\n"
    log = sorted(p.name for p in (tmp_path / "out" / "dist.delta" / "_delta_log").glob("*.json"))
    assert log == ["00000000000000000000.json", "00000000000000000001.json"]
