"""``RunReport``: what is counted is the same on every executor, and how a report shows itself."""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from matplotlib.figure import Figure
from rows import frame

import pyspark_paralagg as ra
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

LIBRARY = Path(__file__).parents[1]
COUNTED = ("iteration", "relation", "delta", "total")
HOSTILE = '</script><b onmouseover="x">&amp; ünï'


def hops(spark: SparkSession, backend: str, **how: Any) -> DataFrame:  # noqa: ANN401 - arguments of the API
    """Places within three hops on two roads that meet in 4, with the fewest kilometres."""
    roads = frame(
        spark, "src bigint, dst bigint, km bigint", [(1, 2, 5), (2, 3, 5), (3, 4, 5), (9, 4, 1), (4, 5, 1), (5, 6, 1)]
    )
    starts = frame(spark, "node bigint, km bigint", [(1, 0), (9, 0)])
    return starts.recursive_agg(
        "node",
        {"km": "min"},
        step=lambda d: d.join(roads, d.node == roads.src).select(
            roads.dst.alias("node"), (d.km + roads.km).alias("km")
        ),
        **{"max_iterations": 3, "on_limit": "return", "name": "hops", "backend": backend, **how},
    )


def report_of(df: DataFrame) -> ra.RunReport:
    df.collect()
    report = ra.report(df)
    assert report is not None
    return report


def a_report(**changed: Any) -> ra.RunReport:  # noqa: ANN401 - fields of the report
    """Two iterations of two relations."""
    entry = {"seconds": 0.25, "bytes": None, "balance": None}
    rounds = (
        {"iteration": 1, "relation": "even", "delta": 30, "total": 40, **entry, "bytes": 64, "balance": 1.5},
        {"iteration": 1, "relation": "odd", "delta": 10, "total": 10, **entry, "balance": 1.0},
        {"iteration": 2, "relation": "even", "delta": 0, "total": 40, **entry},
        {"iteration": 2, "relation": "odd", "delta": 0, "total": 10, **entry},
    )
    seconds = {"plan": 0.5, "load": 1.0, "loop": 0.5, "store": 0.25}
    fields = {
        "backend": "spark",
        "reason": "it can",
        "iterations": 2,
        "tuples": 50,
        "seconds": seconds,
        "rounds": rounds,
    }
    return ra.RunReport(**{**fields, **changed})


class Tags(HTMLParser):
    """Checks that what is opened is closed, and gathers tags, attributes and text."""

    VOID = ("meta", "path", "circle", "rect")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def reports(spark_session: SparkSession) -> Iterator[dict[str, ra.RunReport]]:
    """Of the same recursion on every executor, on two tasks or ranks."""
    spark_session.conf.set(conf.MPI_OVERSUBSCRIBE.name, "true")
    spark_session.conf.set(conf.MPI_RANKS.name, "2")
    backends = ("spark", "dataframe", "local", "mpi")
    yield {backend: report_of(hops(spark_session, backend)) for backend in backends}
    spark_session.conf.unset(conf.MPI_OVERSUBSCRIBE.name)
    spark_session.conf.unset(conf.MPI_RANKS.name)


def test_iterations_deltas_and_totals_are_the_same_on_every_executor(reports: dict[str, ra.RunReport]) -> None:
    # 2 and 4; 3 and 5; 6, while 4 by way of 3 is longer.
    expected = [(1, "hops", 2, 4), (2, "hops", 2, 6), (3, "hops", 1, 7)]
    for backend, report in reports.items():
        assert (report.backend, report.iterations, report.tuples) == (backend, 3, 7)
        assert [tuple(r[c] for c in COUNTED) for r in report.rounds] == expected, backend
        assert list(report.to_pandas()[list(COUNTED)].itertuples(index=False, name=None)) == expected
        assert all(r["seconds"] > 0 for r in report.rounds)
        assert ra.RunReport.from_json(report.to_json()) == report


CHAIN = 7
FORMS: dict[str, tuple[dict[str, str] | None, str]] = {
    "best first": ({"dist": "min"}, "dist + 1 AS dist"),
    "in place": ({"dist": "min"}, "dist"),
    "in rounds": ({"dist": "sum"}, "dist * 2 AS dist"),
    "set": (None, ""),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", ["spark", "spark in tasks", "dataframe", "local", "python"])
def test_totals_are_the_rows_after_each_iteration(spark: SparkSession, backend: str, form: str) -> None:
    """Along a chain, iteration n derives row n + 1. Best first, and on one rank, an entry may have several."""
    backend, _, tasks = backend.partition(" in ")
    spark.conf.set("spark.paralagg.oneTask.maxRows", 0 if tasks else 100_000)
    edges = spark.range(CHAIN - 1).selectExpr("id AS src", "id + 1 AS dst")
    base = spark.sql("SELECT 0L AS node, 1L AS dist")
    aggs, value = FORMS[form]
    columns = ["dst AS node", *([value] if value else [])]
    df = (base if aggs else base.select("node")).recursive_agg(
        "node", aggs, step=lambda d: d.join(edges, d.node == edges.src).selectExpr(*columns), backend=backend
    )
    report = report_of(df)
    if form == "best first" and tasks:  # passes of one iteration follow the chain until it leaves the task
        assert [r["total"] for r in report.rounds] == sorted(r["total"] for r in report.rounds)
        assert report.rounds[-1]["total"] == report.tuples == CHAIN
        return
    assert (report.iterations, report.tuples) == (CHAIN, CHAIN)
    rows = {entry["iteration"]: (entry["delta"], entry["total"]) for entry in report.rounds}
    ends = list(rows)
    assert ends[-1] == CHAIN
    assert backend in {"local", "python"} or ends == [*range(1, CHAIN + 1)]
    totals = {0: 1, **{n: min(n + 1, CHAIN) for n in ends}}
    before = [0, *ends[:-1]]
    assert rows == {n: (totals[n] - totals[m], totals[n]) for m, n in zip(before, ends, strict=True)}


def test_who_counts_balance_and_bytes_says_them(reports: dict[str, ra.RunReport]) -> None:
    assert reports["dataframe"].balance is None
    assert [r["bytes"] for r in reports["dataframe"].rounds] == [None, None, None]
    assert [r["balance"] for r in reports["local"].rounds] == [1.0, 1.0, 1.0]
    assert [r["bytes"] for r in reports["local"].rounds] == [0, 0, 0]
    for backend in ("spark", "mpi"):
        # Two tasks: of two rows one each or both on one, of one row all on one.
        first, second, last = (r["balance"] for r in reports[backend].rounds)
        assert {first, second} <= {1.0, 2.0}
        assert last == 2.0
        # Keys go to their owners by the same hash, so the same rows travel.
        assert sum(r["bytes"] for r in reports[backend].rounds) > 0


@pytest.mark.parametrize("limit", [None, 20])
def test_a_delta_of_one_row_is_all_on_one_of_two_tasks(spark: SparkSession, limit: int | None) -> None:
    """In place, where a delta is counted when it is applied, and in rounds."""
    spark.conf.set("spark.paralagg.oneTask.maxRows", 0)
    roads = spark.range(20).selectExpr("id as src", "id + 1 as dst")
    report = report_of(
        spark.range(1)
        .selectExpr("id as node")
        .recursive_agg(
            "node",
            step=lambda d: d.join(roads, d.node == roads.src).select(roads.dst.alias("node")),
            max_iterations=limit,
            on_limit="return",
            backend="spark",
        )
    )
    assert [(r["delta"], r["balance"]) for r in report.rounds[:20]] == [(1, 2.0)] * 20
    assert [(r["delta"], r["balance"]) for r in report.rounds[20:]] == ([] if limit else [(0, None)])
    assert report.balance == 2.0


def test_work_is_the_edges_of_the_delta_on_every_engine(reports: dict[str, ra.RunReport]) -> None:
    assert [r["work"] for r in reports["dataframe"].rounds] == [None, None, None]
    assert reports["dataframe"].work_balance is None
    # In each iteration the edges out of the rows that the one before changed.
    by_engine = {b: [r["work"] for r in reports[b].rounds] for b in ("spark", "local", "mpi")}
    assert by_engine["spark"] == by_engine["local"] == by_engine["mpi"]
    assert reports["local"].work_balance == 1.0
    for backend in ("spark", "mpi"):
        counted = reports[backend].work_balance
        assert counted is not None
        assert 1.0 <= counted <= 2.0
        assert json.loads(reports[backend].to_json())["work_balance"] == counted


def test_balance_of_a_run_is_weighed_by_rows() -> None:
    assert a_report().balance == pytest.approx((30 * 1.5 + 10 * 1.0) / 40)
    assert a_report(rounds=()).balance is None


def test_rows_at_the_end_are_counted_by_relation() -> None:
    assert a_report().totals == {"even": 40, "odd": 10}
    assert a_report(rounds=()).totals == {}


def test_pandas_has_a_row_for_each_iteration_and_relation() -> None:
    table = a_report().to_pandas()
    assert list(table.columns) == [*COUNTED, "seconds", "bytes", "balance", "work", "work_balance"]
    assert list(table["relation"]) == ["even", "odd", "even", "odd"]
    assert table["balance"].iloc[0] == 1.5
    assert math.isnan(table["balance"].iloc[2])
    assert list(a_report(rounds=()).to_pandas().columns) == list(table.columns)


def test_the_page_of_a_notebook_has_numbers_and_a_picture_and_needs_nothing() -> None:
    html = a_report()._repr_html_()
    found = Tags(html)
    assert found.tags.count("svg") == 1
    assert found.tags.count("tr") == 5
    assert "spark: 2 iterations, 50 rows" in found.text
    assert "why spark: it can" in found.text
    assert "1.38 times the average" in found.text
    assert re.findall(r"</i>(\w+)</span>", html) == ["even", "odd"]
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert not re.search(r"https?://|url\(|(?<![-\w])color:(?! inherit)", html)


def test_the_legend_is_whole_whatever_the_length_and_number_of_names() -> None:
    names = [f"a_relation_with_a_name_of_many_letters_{n}" for n in range(8)]
    [row, *_] = a_report().rounds
    html = a_report(rounds=tuple({**row, "relation": name} for name in names))._repr_html_()
    legend, svg = html.partition("<svg")[0], html.partition("<svg")[2].partition("</svg>")[0]
    assert re.findall(r"</i>(\w+)</span>", legend) == names
    assert not any(name[:9] in svg for name in names)  # text in a picture breaks no lines
    drawn = re.findall(r'stroke="(#\w+)"', svg)
    assert re.findall(r"border-color:(#\w+)", legend) == drawn
    assert len(drawn) == len(names)


def test_whatever_a_name_holds_is_shown_and_not_run() -> None:
    rounds = tuple({**r, "relation": HOSTILE} for r in a_report().rounds)
    html = a_report(reason=HOSTILE, rounds=rounds)._repr_html_()
    found = Tags(html)
    assert found.text.count(HOSTILE) == 1 + len(rounds) + 1  # the reason, the table, the legend
    assert found.tags.count("b") == 1  # the executor's name
    assert "script" not in found.tags
    assert "onmouseover" not in found.attributes


def test_long_runs_are_shortened() -> None:
    rounds = tuple(
        {"iteration": n, "relation": "r", "delta": n % 7, "total": n, "seconds": 0.001, "bytes": 8, "balance": 1.0}
        for n in range(1, 20_001)
    )
    html = a_report(rounds=rounds)._repr_html_()
    assert len(html) < 40_000
    assert "19,970 more" in html


def test_a_report_without_iterations_says_so(spark: SparkSession) -> None:
    edges = spark.range(30).selectExpr("id as src", "id + 1 as dst")
    there = edges.toDF("a", "b")
    report = report_of(
        edges.recursive_agg(
            ["src", "dst"],
            step=lambda r: r.join(there, r.dst == there.a).select(r.src, there.b.alias("dst")),
            backend="spark",
        )
    )
    assert (report.rounds, report.tuples) == ((), 30 * 31 // 2)
    assert "did not count its iterations" in report._repr_html_()
    with pytest.raises(ra.UsageError) as caught:
        report.plot()
    assert caught.value.code == "PARALAGG_NO_ITERATIONS"
    assert "print the report for its times" in (caught.value.hint or "")


def test_a_run_value_by_value_tells_of_its_end_only(spark: SparkSession) -> None:
    pytest.importorskip("numba", reason="the MPI engine needs numba")
    edges = spark.range(30).selectExpr("id as src", "id + 1 as dst")
    start = spark.range(2).selectExpr("id * 10 as source", "id * 10 as node", "0L as dist")
    distances = start.recursive_agg(
        ["source", "node"],
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            d.source, edges.dst.alias("node"), (d.dist + 1).alias("dist")
        ),
        backend="local",
    )
    told: list[ra.RunProgress] = []
    with ra.progress(told.append):
        report = report_of(distances)
    assert (report.rounds, report.iterations, report.tuples) == ((), 31, 31 + 21)
    assert {t.iteration for t in told if t.state == "running"} <= {0}
    assert (told[-1].state, told[-1].iteration, told[-1].total) == ("done", 31, 52)


def test_the_plot_shows_deltas_totals_and_seconds() -> None:
    figure = a_report().plot()
    assert isinstance(figure, Figure)
    rows, time = figure.axes
    assert figure.get_suptitle() == "spark: 2 iterations, 50 rows, 2.25 s"
    assert rows.get_yscale() == "log"
    drawn = {line.get_label(): list(line.get_ydata()) for line in rows.lines}
    assert drawn == {
        "even: rows": [40, 40],
        "even: changed rows": [30, 0.5],
        "odd: rows": [10, 10],
        "odd: changed rows": [10, 0.5],
    }
    assert [bar.get_height() for bar in time.patches] == [250.0, 250.0]
    assert time.get_ylabel() == "ms per iteration"
    assert not hasattr(figure, "number")  # pyplot does not know it
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark_paralagg.report.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ra.EnvironmentProblem) as caught:
        a_report().plot()
    assert caught.value.code == "PARALAGG_NO_MATPLOTLIB"
    assert caught.value.hint == "pip install 'pyspark-paralagg[plots]'"


def test_explain_as_a_page_has_all_parts(spark: SparkSession) -> None:
    found = hops(spark, "spark")
    before = Tags(ra.explain(found, "html"))
    assert "Not run yet." in before.text
    assert "Executor: spark" in before.text
    found.collect()
    html = ra.explain(found, "html")
    page = Tags(html)
    assert html.startswith("<!doctype html>")
    for part in ("Program", "Stages", "binarize", "Plan", "Iterations"):
        assert f"<summary>{part}</summary>" in html
    assert "spark: 3 iterations, 7 rows" in page.text
    assert 'requested by backend="spark"' in page.text
    assert "mermaid" in page.attributes["class"]
    assert ra.explain(found, "plan") in page.text
    assert ra.explain(found, "mermaid") in page.text
    assert not {"script", "link", "img"} & set(page.tags)


def test_explain_as_a_page_of_what_has_no_plan(spark: SparkSession) -> None:
    assert "dataframe: 3 iterations" in Tags(ra.explain(hops(spark, "dataframe"), "html")).text
    assert "There is no recursive aggregate" in Tags(ra.explain(spark.range(1), "html")).text


def test_the_library_logs_and_does_not_print() -> None:
    """But for what the supervisor of ranks tells its parent."""
    files = [f for folder in ("pyspark_paralagg", "mpi_backend") for f in (LIBRARY / folder).rglob("*.py")]
    printing = {
        str(file.relative_to(LIBRARY))
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert len(files) > 100
    assert printing == {"mpi_backend/launch/__main__.py"}
