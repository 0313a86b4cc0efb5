"""The command without Spark: `--backend local` and `mpi` write what Spark writes, and say the same errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_versions import python_path
from test_cli import DISTANCES, EDGES, ENDLESS, FAILING_RUNS

from pyspark_paralagg.api.explain import formats
from pyspark_paralagg.command.cli import FAILED, INTERRUPTED, OK, TERMINATED, USAGE, WRONG, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.rotates(runs=3)

ROOT = Path(__file__).parent.parent


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
        backend = () if "--backend" in arguments else ("--backend", "local")
        return main(["run", "program.dl", "-F", "facts", "-D", "out", *backend, *arguments])

    yield run
    os.chdir(before)


def _process(folder: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    (folder / "p.dl").write_text(text)
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT), "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "pyspark_paralagg", "run", "p.dl", "-F", ".", "-D", "out", *arguments]
    return subprocess.Popen(  # noqa: S603 - this Python and our own arguments
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


PATHS = """
.decl dist(x: symbol, d: float, route: path, legs: number)
.decl edge(x: symbol, y: symbol, w: float)
.input edge
dist("a", 0.0, $PATH(), $HOPS()).
dist(y, $MIN(d + w), $PATH(d + w), $HOPS()) :- dist(x, d, _, _), edge(x, y, w).
.output dist
.output dist(filename="paths.parquet")
.printsize dist
.assume edge.w >= 0
"""


@pytest.mark.parametrize("backend", ["local", "mpi"])
def test_paths_are_written_as_text_and_as_lists(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], backend: str
) -> None:
    assert case(PATHS, "--backend", backend, edge="a\tb\t5\na\tc\t1.5\nc\tb\t1\n") == OK
    rows = "a\t0.0\t[a]\t0\nb\t2.5\t[a, c, b]\t2\nc\t1.5\t[a, c]\t1\n"
    assert Path("out/dist.csv").read_text(encoding="utf-8") == rows
    written = pq.read_table("out/paths.parquet").to_pydict()
    assert written["route"] == [["a"], ["a", "c", "b"], ["a", "c"]]
    assert capfd.readouterr().out == "dist\t3\n"
    assert case(PATHS, "--backend", backend, "-D", "no", edge="b\tc\t1\n") == OK
    assert Path("no/dist.csv").read_text(encoding="utf-8") == "a\t0.0\t[a]\t0\n"


@pytest.mark.parametrize("value", ["d + w", "max(d, w)"])  # found by the recursion itself, and by a search
def test_a_path_over_whole_numbers_has_a_report(case: Callable[..., int], value: str) -> None:
    text = ".decl dist(x: symbol, d: number, r: path)\n.decl dist_r(x: symbol)\n"
    text += ".decl edge(x: symbol, y: symbol, w: number)\n"
    text += '.input edge\ndist("a", 0, $PATH()).\n.output dist, dist_r\ndist_r(x) :- dist(x, _, _).\n'
    text += f"dist(y, $MIN({value}), $PATH()) :- dist(x, d, _), edge(x, y, w)."
    assert case(text, "--report", "r.json", edge="a\tb\t5\na\tc\t1\nc\tb\t1\n") == OK
    assert "b\t" in Path("out/dist.csv").read_text(encoding="utf-8")
    assert "[a, c, b]" in Path("out/dist.csv").read_text(encoding="utf-8")
    assert Path("out/dist_r.csv").read_text(encoding="utf-8") == "a\nb\nc\n"
    assert json.loads(Path("r.json").read_text())["dist"]["tuples"] == 3


def test_outputs_reports_and_what_is_said(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    text = DISTANCES + '.output edge(filename="e.parquet")\n.printsize edge'
    assert case(text, "--report", "r.json", edge=EDGES + EDGES) == OK
    assert Path("out/dist.csv").read_bytes() == b"0\t0\n1\t4\n2\t9\n10\t10\n"
    assert pq.read_table("out/e.parquet").to_pydict() == {"x": [0, 0, 1, 2], "y": [1, 2, 2, 10], "w": [4, 11, 5, 1]}
    report = json.loads(Path("r.json").read_text())
    assert report["edge"] is None
    assert (report["dist"]["backend"], report["dist"]["tuples"]) == ("local", 4)
    assert report["dist"]["reason"] == "requested by --backend local"
    assert {r["relation"] for r in report["dist"]["per_iteration"]} == {"dist"}
    said = capfd.readouterr()
    assert said.out == "edge\t4\n"
    assert f"dist: 4 rows, {report['dist']['iterations']} iterations by local, " in said.err


def test_a_report_is_that_of_the_recursion_below(case: Callable[..., int]) -> None:
    text = DISTANCES + ".decl far(x: number)\n.output far\nfar(x) :- dist(x, d), d > 5."
    assert case(text, "--report", "r.json", edge=EDGES) == OK
    report = json.loads(Path("r.json").read_text())
    assert report["far"]["per_iteration"] == report["dist"]["per_iteration"]


def test_values_are_written_as_they_read_back(case: Callable[..., int]) -> None:
    rows = '-0.25\t\t-1\n1e-07\té\t9223372036854775807\n1.0\t"q"\t2\n1e+20\t a ,\\t\t3\ninf\tz\t0\nnan\tz\t0\n'
    assert case(".decl v(f: float, s: symbol, n: number)\n.input v\n.output v", v=rows) == OK
    assert Path("out/v.csv").read_text(encoding="utf-8") == rows


def test_parquet_of_any_type_comes_in_and_goes_out_as_spark_shows_it(case: Callable[..., int]) -> None:
    """Undeclared, so that the file says the types; nulls come first, NaN last, instants as Spark writes them too."""
    Path("facts/v.parquet").mkdir(parents=True)
    when = datetime(2024, 5, 6, 7, 8, 9, 120_000, tzinfo=timezone.utc)
    table = pa.table(
        {
            "m": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(9, 2)),
            "f": pa.array([0.5, float("nan"), None], pa.float32()),
            "a": pa.array([date(2020, 1, 2), None, date(1969, 12, 31)]),
            "w": pa.array([when, None, when], pa.timestamp("us", tz="UTC")),
            "i": pa.array([1, 2, None], pa.int16()),
        }
    )
    pq.write_table(table, "facts/v.parquet/part-0.parquet", use_deprecated_int96_timestamps=True)
    text = ".input v\n.output u\nu(a, w, m, f, i) :- v(m, f, a, w, i)."
    assert case(text) == OK
    shown = when.astimezone().replace(tzinfo=None).isoformat(sep=" ").rstrip("0")
    lines = ["\t\t\tnan\t2", f"1969-12-31\t{shown}\t-0.01\t\t", f"2020-01-02\t{shown}\t1.50\t0.5\t1"]
    assert Path("out/u.csv").read_text().splitlines() == lines


def test_relations_without_columns(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    text = (
        ".decl p() .decl q() .decl r()\n.input p\n.output q, r\n.output q(IO=stdout)\nq() :- p().\nr() :- p(), 1 > 2."
    )
    assert case(text, "-q", p="()\n") == OK
    assert (Path("out/q.csv").read_text(), Path("out/r.csv").read_text()) == ("()\n", "")
    assert capfd.readouterr().out == "---------------\nq\n===============\n()\n===============\n"


def test_only_what_is_wanted_is_computed(case: Callable[..., int]) -> None:
    assert case(DISTANCES + ENDLESS.replace(".output n", ""), edge=EDGES) == OK


def test_explain_runs_nothing(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    assert case(DISTANCES, "--explain", edge=EDGES) == OK
    told = capfd.readouterr().out
    assert told.startswith("-- dist\nProgram\n")
    assert told.endswith("Executor: local\n  why: requested by --backend local\n\nNot run yet\n")
    assert case(DISTANCES, "--explain", "mermaid", edge=EDGES) == OK
    assert capfd.readouterr().out.startswith("%% dist\nflowchart")
    assert not Path("out").exists()


def test_whatever_ra_explain_knows_is_explained(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    for part in formats():
        assert case(DISTANCES, "--explain", part, edge=EDGES) == OK
        assert "dist" in capfd.readouterr().out, part


@pytest.mark.parametrize(
    ("text", "files", "code", "told"),
    [
        *FAILING_RUNS,
        (
            ".decl z(x: number)\nz(1). z(0).\n.decl q(x: number)\n.output q\nq(1 / x) :- z(x).",
            {},
            FAILED,
            "PARALAGG_RUN_FAILED: DIVIDE_BY_ZERO",
        ),
        (
            '.decl z(x: symbol)\nz("a").\n.decl q(x: number)\n.output q\nq(to_number(x)) :- z(x).',
            {},
            FAILED,
            "PARALAGG_RUN_FAILED: CAST_INVALID_INPUT",
        ),
        (
            ".decl z(x: float)\nz(1).\n.decl q(x: symbol)\n.output q\nq(to_string(x)) :- z(x).",
            {},
            WRONG,
            "PARALAGG_NOT_PORTABLE: the engine outside of the JVM does not support",
        ),
        (DISTANCES.replace(".output dist", ".output dist(IO=delta)"), {"edge": EDGES}, WRONG, "DELTA_NEEDS_SPARK"),
        (
            DISTANCES.replace("input edge", 'input edge(IO="parquet", filename="edge.facts")'),
            {"edge": EDGES},
            WRONG,
            "PARALAGG_INPUT_UNREADABLE: facts/edge.facts cannot be read as Parquet",
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
    assert not Path("out").exists()
    assert not Path("reports").exists()


def test_parquet_that_does_not_fit(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    Path("facts").mkdir()
    for table, told in (
        ({"x": [1], "y": [2]}, "edge has 3 columns, see program.dl, line 2, column 1, but the file has 2: x, y"),
        (
            {"x": [1], "y": [2], "w": ["a"]},
            "w of edge is a number, see program.dl, line 2, column 1, but w of the file is",
        ),
    ):
        pq.write_table(pa.table(table), "facts/edge.parquet")
        assert case(DISTANCES) == WRONG
        assert f"PARALAGG_DATALOG_INPUT: {told}" in capfd.readouterr().err
    pq.write_table(pa.table({"x": [1], "y": [2], "w": [-1]}), "facts/edge.parquet")
    assert case(DISTANCES.replace("w: number", "w: unsigned")) == WRONG
    assert "PARALAGG_BAD_FACT: -1 is negative" in capfd.readouterr().err


def test_confs_of_the_engine(case: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    text = ".decl p(x: number)\n.output p\np(x) :- x = 9223372036854775807 + y, q(y).\n.decl q(y: number)\nq(1)."
    assert case(text, "--conf", "spark.sql.ansi.enabled=false") == OK
    assert Path("out/p.csv").read_text() == "-9223372036854775808\n"
    assert case(text) == FAILED
    assert "ARITHMETIC_OVERFLOW" in capfd.readouterr().err
    assert case(text, "--conf", "spark.ui.enabled=false") == USAGE
    assert (
        "PARALAGG_BAD_CONF: --backend local runs without Spark and does not use spark.ui.enabled"
        in capfd.readouterr().err
    )
    assert case(text, "--backend", "mpi", "--conf", "spark.paralagg.mpi.ranks=none") == USAGE
    assert case(text, "--backend", "mpi", "--ranks", "999") == USAGE
    assert "PARALAGG_MPI_TOO_MANY_RANKS" in capfd.readouterr().err
    launcher = "spark.paralagg.mpi.launcher=no-such {ranks}"
    assert case(text, "--backend", "mpi", "--ranks", "2", "--conf", launcher) == WRONG
    assert "PARALAGG_MPI_NO_LAUNCHER" in capfd.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [["--ranks", "2"], ["--backend", "local", "--ranks", "2"], ["--backend", "mpi", "--ranks", "0"],
     ["--backend", "mpi", "--ranks", "x"], ["--backend", "local", "--master", "local[2]"]],
)  # fmt: skip
def test_combinations_that_mean_nothing(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "p.dl", *wrong])
    assert end.value.code == USAGE
    assert "usage: paralagg" in capsys.readouterr().err


def test_missing_packages_are_told_before_anything_runs(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None if name == "mpi4py" else found(name))
    assert case(DISTANCES, "--backend", "mpi", "--ranks", "2", edge=EDGES) == WRONG
    assert "PARALAGG_MPI_NO_MPI4PY: mpi4py is not installed" in capfd.readouterr().err
    assert case(DISTANCES, edge=EDGES) == OK


def test_without_pyspark_auto_is_local_and_says_so(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_paralagg.command.run.has_pyspark", lambda: False)
    assert case(DISTANCES, "--backend", "auto", edge=EDGES) == OK
    said = capfd.readouterr().err
    assert said.startswith("pyspark is not installed: the recursion runs in this process, as with --backend local\n")
    assert "by local" in said


def test_no_spark_is_in_the_process(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text(EDGES)
    (tmp_path / "p.dl").write_text(DISTANCES)
    code = (
        "import sys; from pyspark_paralagg.command.cli import main;"
        "main(['run', 'p.dl', '-q', '--backend', 'local']);"
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j')])"
    )
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT)}
    run = subprocess.run(  # noqa: S603 - this Python and our own code
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"
    assert (tmp_path / "dist.csv").exists()


MPI = ("--backend", "mpi", "--ranks", "2", "--conf", "spark.paralagg.mpi.oversubscribe=true")


def test_ranks_write_the_same(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text(EDGES)
    run = _process(tmp_path, DISTANCES + ".output edge", *MPI, "--report", "r.json")
    out, err = run.communicate(timeout=300)
    assert (run.returncode, out) == (OK, ""), err
    assert (tmp_path / "out" / "dist.csv").read_text() == "0\t0\n1\t4\n2\t9\n10\t10\n"
    assert (tmp_path / "out" / "edge.csv").read_text() == "0\t1\t4\n0\t2\t11\n1\t2\t5\n2\t10\t1\n"
    report = json.loads((tmp_path / "r.json").read_text())["dist"]
    assert (report["backend"], len(report["ranks"])) == ("mpi", 2)
    assert all(line.startswith(("dist: ", "edge: ")) for line in err.splitlines()), err
    assert not list(tmp_path.glob("paralagg-*"))


def test_an_error_in_the_data_on_ranks_is_told_as_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("0\t1\t1\n1\t0\t-2\n")
    run = _process(tmp_path, DISTANCES, *MPI)
    err = run.communicate(timeout=300)[1]
    assert run.returncode == FAILED
    assert "PARALAGG_NO_FIXPOINT" in err
    assert "Traceback" not in err
    assert "rank" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("number", "code", "backend"),
    [(signal.SIGINT, INTERRUPTED, ("--backend", "local")), (signal.SIGTERM, TERMINATED, MPI)],
)
def test_an_interrupted_run_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int, backend: tuple[str, ...]
) -> None:
    process = _process(tmp_path, ENDLESS, *backend)
    assert process.stderr is not None
    assert any(line.startswith("n: iteration ") for line in process.stderr)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert err.splitlines()[-1] == f"{'interrupted' if code == INTERRUPTED else 'terminated'}; no output is written"
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("paralagg-*"))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout  # noqa: S607 - ps
    assert str(tmp_path) not in listed


@pytest.mark.parametrize("how", ["MIN", "MAX"])
def test_a_constant_text_is_aggregated_where_there_is_none_yet(case: Callable[..., int], how: str) -> None:
    text = f'.decl e(x: number)\n.decl r(k: number, m: symbol)\ne(2).\nr(1, ${how}("b")) :- e(_), e(2).\n.output r'
    assert case(text) == OK
    assert Path("out/r.csv").read_text() == "1\tb\n"
