"""The examples, told from beginning to end, each answer held against a computation that knows nothing of paralagg.

What is run are the cells of the notebooks, in the tests' own session; they are the lines of the modules. Networkx,
scipy and DuckDB, a real run of the analysed program, and arithmetic by hand say what is right.
"""

from __future__ import annotations
import __future__

import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from spark_versions import python_path, skip_without_delta

from examples import control, data, deliveries, isochrones, layers, notebooks, points_to, warehouse
from pyspark_paralagg.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

ROOT = Path(__file__).parents[1]
PNG = b"\x89PNG\r\n\x1a\n"


def told(name: str, spark: SparkSession, out: Path) -> dict[str, Any]:
    """Run an example's notebook but for the cell that starts Spark; return its variables."""
    names: dict[str, Any] = {"__name__": "notebook", "spark": spark, "out": out, "Image": str}
    for cell in notebooks.cells(name):
        if cell.kind == "code" and not cell.is_session:
            code = compile(cell.source, name, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
            exec(code, names)  # noqa: S102 - the example's own code
    assert names["picture"].read_bytes().startswith(PNG)
    return names


def test_fares_are_those_of_networkx_and_the_route_adds_up(spark: SparkSession, tmp_path: Path) -> None:
    names = told("flights", spark, tmp_path)
    graph = nx.from_pandas_edgelist(names["table"], "src", "dst", "fare", create_using=nx.DiGraph)
    expected = nx.single_source_dijkstra_path_length(graph, "Reykjavík", weight="fare")
    assert dict(zip(names["found"].airport, names["found"].fare, strict=True)) == expected
    assert nx.path_weight(graph, names["route"], "fare") == expected["Ushuaia"]


def test_votes_add_up_through_what_is_controlled(spark: SparkSession, tmp_path: Path) -> None:
    names = told("control", spark, tmp_path)
    shares = {(owner, company): percent for owner, company, percent in names["register"].itertuples(index=False)}
    everybody = {name for pair in shares for name in pair}
    controls: set[tuple[str, str]] = set()
    while True:
        votes = {
            (x, z): sum(p for (y, company), p in shares.items() if company == z and (y == x or (x, y) in controls))
            for x, z in itertools.product(everybody, everybody)
        }
        if controls == (controls := {pair for pair, percent in votes.items() if percent > control.HALF}):
            break
    found = {(row.owner, row.company): row.votes for row in names["found"].itertuples()}
    assert found == pytest.approx({pair: percent for pair, percent in votes.items() if percent})
    assert set(zip(names["controlled"].owner, names["controlled"].company, strict=True)) == controls
    assert found["Familie Brandt", "Windpark Ost"] == 40 + 7 + 6
    assert ("Erbin Lund", "Lund Reederei") not in controls


def test_what_a_package_needs_is_what_networkx_finds(spark: SparkSession, tmp_path: Path) -> None:
    names = told("packages", spark, tmp_path)
    network = nx.DiGraph(names["required"])
    size = dict(names["installed"])
    found = names["found"].set_index("package")
    assert set(found.index) == set(size)
    for package, own in size.items():
        needs = nx.descendants(network, package) if package in network else set()
        assert found.packages[package] == len(needs)
        assert found.total[package] == own + sum(size[other] for other in needs)
    assert "numpy" in nx.descendants(network, "pandas")  # else nothing was read
    assert size["numpy"] > 1_000_000


def test_what_the_program_does_is_among_what_points_to_says(spark: SparkSession, tmp_path: Path) -> None:
    names = told("points_to", spark, tmp_path)
    made: dict[int, str] = {}

    def constructor(kind: str) -> type:
        def note(self: object) -> None:
            made[id(self)] = f"{kind}:{sys._getframe(1).f_lineno}"

        return type(kind, (), {"__init__": note})

    variables = {kind: constructor(kind) for kind in set(re.findall(r"(\w+)\(\)", points_to.PROGRAM))}
    exec(points_to.PROGRAM, variables)  # noqa: S102 - the program that is analysed
    objects = {name: value for name, value in variables.items() if id(value) in made}
    holds = set(names["holds"].itertuples(index=False, name=None))
    fields = set(names["field"].itertuples(index=False, name=None))
    assert {(name, made[id(value)]) for name, value in objects.items()} <= holds
    happened = {(made[id(v)], field, made[id(w)]) for v in objects.values() for field, w in vars(v).items()}
    assert len(happened) == 10
    assert happened <= fields

    leaks = dict(zip(names["leaks"].object, names["leaks"].fields, strict=True))
    network = nx.DiGraph((p, o) for p, _, o in fields)
    assert leaks == {p: nx.shortest_path_length(network, p, "Secret:1") for p in nx.ancestors(network, "Secret:1")}
    assert leaks == {"User:3": 1, "Session:6": 2, "Cache:9": 3, "Request:11": 3, "Failure:14": 4, "Log:16": 5}


def test_lines_that_the_analysis_cannot_read_are_named() -> None:
    with pytest.raises(SyntaxError, match=r"line 2: f\(a\) is no assignment"):
        points_to.facts_of("a = A()\nf(a)")
    with pytest.raises(SyntaxError, match=r"line 1: b \+ c is no new object"):
        points_to.facts_of("a = b + c")


@pytest.fixture
def nothing_stays_cached(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


@pytest.mark.usefixtures("nothing_stays_cached")
def test_entities_are_the_components_of_the_links(spark: SparkSession, tmp_path: Path) -> None:
    names = told("entities", spark, tmp_path)
    truth = {row.record: row.person for row in names["records"].collect()}
    links = names["links"].toPandas()
    entities = names["persons"].toPandas()
    true_pairs = sum(n * (n - 1) // 2 for n in Counter(truth.values()).values())
    assert len(names["scores"]) == len(names["THRESHOLDS"])
    for row in names["scores"].itertuples():
        linked = links[links.threshold == row.threshold]
        network = nx.Graph(list(zip(linked.a, linked.b, strict=True)))
        network.add_nodes_from(truth)
        components = list(nx.connected_components(network))
        expected = {record: min(component) for component in components for record in component}
        chosen = entities[entities.threshold == row.threshold]
        assert dict(zip(chosen.record, chosen.entity, strict=True)) == expected
        joined = [pair for component in components for pair in itertools.combinations(component, 2)]
        right = sum(truth[a] == truth[b] for a, b in joined)
        assert (row.precision, row.recall) == pytest.approx((right / len(joined), right / true_pairs))
        linked_right = sum(truth[a] == truth[b] for a, b in network.edges)
        alone = (linked_right / len(linked), linked_right / true_pairs)
        assert (row.pair_precision, row.pair_recall) == pytest.approx(alone)
    best = names["scores"].query("threshold == 0.75").iloc[0]
    assert best.precision > 0.95
    assert best.recall > best.pair_recall + 0.05


def rows_of_the_shop(chance: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    days = [f"2026-{month:02}-15" for month in range(1, 13)]
    orders, products, customers = range(300), range(20), range(40)
    lines = [(o, p, chance.randint(1, 4), p + 1.5) for o in orders for p in chance.sample(products, 3)]
    return {
        "customers": [(c, f"c{c}@shop", chance.choice(["de", "fr"]), chance.choice(days), c // 2) for c in customers],
        "orders": [
            (o, chance.choice(customers), chance.choice(days), chance.choice(["paid", "sent", "cancelled"]), o % 7)
            for o in orders
        ],
        "order_lines": lines,
        "products": [(p, f"p{p}", chance.choice(["a", "b"]), p / 2, p / 10) for p in products],
        "payments": [
            (o, chance.choice(["card", "cash"]), chance.random() * 40, chance.choice(["settled", "open"]))
            for o in orders
        ],
        "returned": [(o, p, 1, "broken") for o, p, _, _ in lines if chance.random() < 0.4],
    }


def test_dashboards_that_duckdb_sees_change_are_those_of_the_lineage(spark: SparkSession, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    names = told("lineage", spark, tmp_path)
    found = names["in_tables"][names["in_tables"].column.str.startswith("dash_")]
    said = {pair: set(rows.column.str.split(".").str[0]) for pair, rows in found.groupby("asked")}
    shop = rows_of_the_shop(random.Random(3))  # noqa: S311 - made-up data
    connection = duckdb.connect()
    for table, columns in warehouse.TABLES.items():
        declared = ", ".join(f"{column} {kind.replace('string', 'text')}" for column, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({declared})")
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", shop[table])  # noqa: S608
    for view, sql in warehouse.VIEWS.items():
        connection.execute(f"CREATE VIEW {view} AS {sql}")
    dashboards = [view for view in warehouse.VIEWS if view.startswith("dash_")]

    def shown(dashboard: str) -> Counter[tuple[Any, ...]]:
        rows = connection.execute(f"FROM {dashboard}").fetchall()
        return Counter(tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows)

    before = {dashboard: shown(dashboard) for dashboard in dashboards}
    assert all(before.values())
    other = {"bigint": "{} + 3", "double": "{} * 2 + 1", "string": "{} || '!'", "date": "{} + 40"}
    changed = {}
    for table, columns in warehouse.TABLES.items():
        for column, kind in columns.items():
            connection.execute("BEGIN")
            connection.execute(f"UPDATE {table} SET {column} = {other[kind].format(column)}")  # noqa: S608
            changed[f"{table}.{column}"] = {name for name in dashboards if shown(name) != before[name]}
            connection.execute("ROLLBACK")
    for column, names_of in changed.items():
        assert names_of <= said.get(column, set()), column
    # What joins or groups may leave a dashboard as it was. What is computed with, or is not used, is told exactly.
    computed = ["orders.discount", "orders.ordered_on", "order_lines.quantity", "order_lines.unit_price"]
    computed += ["products.unit_cost", "products.weight", "payments.amount"]
    computed += ["customers.email", "customers.country", "returned.quantity", "customers.referrer", "payments.method"]
    assert {column: changed[column] for column in computed} == {c: said.get(c, set()) for c in computed}
    assert changed["orders.discount"] == {"dash_revenue", "dash_open_bills", "dash_best_customers"}


@pytest.fixture
def roads_fetched() -> None:
    try:
        data.roads()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


@pytest.mark.usefixtures("roads_fetched")
def test_cycling_times_are_those_of_scipy(spark: SparkSession, tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    names = told("isochrones", spark, tmp_path)
    links = isochrones.cycling_times(names["roads"]).toPandas()
    size = int(max(links.src.max(), links.dst.max())) + 1
    matrix = sparse.csr_matrix((links.takes, (links.src, links.dst)), shape=(size, size))
    for place, node in names["starts"].collect():
        minutes = csgraph.dijkstra(matrix, indices=node)
        rides = names["rides"][names["rides"].place == place]
        assert set(rides.node) == set(np.flatnonzero(minutes <= max(isochrones.BANDS)))
        assert rides.minutes.to_numpy() == pytest.approx(minutes[rides.node], rel=1e-12)


@pytest.mark.usefixtures("roads_fetched")
def test_ranks_find_the_rows_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    names = told("offload", spark, tmp_path)
    (on_spark, report), (on_ranks, ranks_report) = names["runs"]["spark"], names["runs"]["mpi"]
    pd.testing.assert_frame_equal(on_spark, on_ranks)
    assert len(on_spark) == 15_548
    assert (report.backend, ranks_report.backend) == ("spark", "mpi")
    assert len(ranks_report.ranks) >= 1


def told_with_delta(name: str, out: Path) -> str:
    """Run an example in a process of its own, whose session has Delta; return what it prints."""
    pytest.importorskip("delta")
    ran = subprocess.run(  # noqa: S603 - the example itself
        [sys.executable, "-W", "ignore", "-m", f"examples.{name}", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": python_path(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    skip_without_delta(ran.stderr)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert (out / f"{name}.png").read_bytes().startswith(PNG)
    return ran.stdout


@pytest.mark.rotates(runs=3, turn=2)
@pytest.mark.slow("an example with six refreshes of Delta tables")
def test_the_bill_of_materials_is_refreshed_by_what_came_in(tmp_path: Path) -> None:
    printed = told_with_delta("bill_of_materials", tmp_path)
    refreshed = re.findall(r"^(\w+) refresh of .*/(\w+):", printed, flags=re.MULTILINE)
    ready, needed = "ready", "needed"
    later = [("incremental", ready), ("incremental", needed), ("none", ready)]
    assert refreshed == [("full", ready), ("full", needed), *later]
    # By hand: the bought parts of a city bicycle are 8 tubes and a fork, two wheels of 36 (rim, 32 spokes, 2 bearings,
    # tyre), a chain and 2 bearings, 4 pads and the lights; the motor's cells are there on day 60.
    products = re.findall(r"^  (\w+) bicycle +(\d+) parts, +([\d.]+) to buy, ready on day (\d+)", printed, re.MULTILINE)
    city, cargo = ("City", "89", "252.40", "28"), ("Cargo", "96", "290.40", "28")
    assert sorted(products[:2]) == [cargo, city]
    assert sorted(products[2:]) == [("Cargo", "140", "773.80", "65"), city]


def nearest_by_dijkstra(roads: pd.DataFrame, bakeries: pd.DataFrame) -> dict[str, tuple[int, str]]:
    graph = nx.from_pandas_edgelist(roads, "src", "dst", "km")
    lengths = nx.single_source_dijkstra_path_length
    ways = [(lengths(graph, shop, weight="km"), bakery) for shop, bakery in bakeries.itertuples(index=False)]
    return {shop: min((km[shop], b) for km, b in ways if shop in km) for shop in set().union(*(km for km, _ in ways))}


@pytest.mark.rotates(runs=3, turn=1)
@pytest.mark.slow("an example with four refreshes of Delta tables")
def test_deliveries_after_each_delete_are_those_of_networkx(tmp_path: Path) -> None:
    printed = told_with_delta("deliveries", tmp_path)
    kinds = re.findall(r"^(\w+) refresh of .*/nearest:", printed, flags=re.MULTILINE)
    assert kinds == ["full", "incremental", "incremental", "none"]
    roads, bakeries = (pd.read_csv(io.StringIO(text)) for text in (deliveries.ROADS, deliveries.BAKERIES))
    src, dst = deliveries.CLOSED
    open_roads = roads[(roads.src != src) | (roads.dst != dst)]
    states = [(roads, bakeries), (open_roads, bakeries), (open_roads, bakeries[bakeries.bakery != deliveries.DROPPED])]
    tables = [
        {
            shop: (int(km), bakery)
            for shop, km, bakery in re.findall(r"^  (\w+) +(\d+) km from (.+)$", part, re.MULTILINE)
        }
        for part in re.split(r"^\w+ refresh of .*", printed, flags=re.MULTILINE)[1:4]
    ]
    assert tables == [nearest_by_dijkstra(*state) for state in states]
    assert "2 deleted" in printed  # nobody supplies the farm and the spring any more


def test_arrows_have_lanes_where_they_pass_a_layer() -> None:
    boxes = [layers.Box(name, name) for name in "abcd"]
    arrows = [layers.Arrow(src, dst) for src, dst in ("ab", "bc", "ac", "cd", "db")]
    layer = layers.layers_of(boxes, arrows)
    assert layer == {"a": 0, "b": 1, "c": 2, "d": 3}  # the arrow from d closes a cycle and leads back
    assert arrows[2].lanes(layer) == ["a", "a → c at 1", "c"]
    assert arrows[4].lanes(layer) == ["d", "d → b at 2", "b"]
    places = layers.place(layer, arrows)
    rows = {name: y for name, (x, y) in places.items() if x == 1}
    assert set(rows) == {"b", "a → c at 1"}
    assert abs(rows["b"] - rows["a → c at 1"]) == pytest.approx((1 + layers.LANE) / 2)


def test_a_module_is_cut_into_cells() -> None:
    text = '''"""Why? Because.

About ``it``.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from a import b  # noqa: N812 - a name

if TYPE_CHECKING:
    from pathlib import Path

ONE = 1


def two(x: int) -> int:
    # why
    return x + ONE


def tell(spark: SparkSession, out: Path) -> Path:
    # %% First.
    found = two(1)

    # %% Then.
    # a comment of the code
    return out / "x"


if __name__ == "__main__":
    stage.run(__doc__, tell, with_delta=True)
'''
    heading, session, head, function, *story = notebooks.cut("why", text)
    assert heading == notebooks.Cell("markdown", "# Why? Because.\n\nAbout `it`.")
    assert 'stage.session("why", with_delta=True)' in session.source
    assert session.is_session
    assert head.source == "from __future__ import annotations\n\nimport io\n\nfrom a import b\n\nONE = 1"
    assert function.source == "def two(x: int) -> int:\n    # why\n    return x + ONE"
    assert [(cell.kind, cell.source) for cell in story] == [
        ("markdown", "First."),
        ("code", "found = two(1)"),
        ("markdown", "Then."),
        ("code", '# a comment of the code\nImage(out / "x")'),
    ]


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_notebooks_are_those_of_their_modules_and_have_run(name: str) -> None:
    file = notebooks.FOLDER / f"{name}.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    stored = [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
    assert stored == [(cell.kind, cell.source) for cell in notebooks.cells(name)], "run python -m examples.notebooks"
    assert file.stat().st_size < 400_000
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "execute_result"}
    assert "image/png" in outputs[-1]["data"]
    shown = "".join(output.get("text", "") for output in outputs)
    assert not re.search(r"(^|[\s'\"])/(root|home|tmp|Users)/", shown)


@pytest.mark.parametrize("page", ["examples/README.md", "docs/examples.md"])
def test_every_example_is_in_the_gallery_with_its_picture(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)|<img src=\"([^\"]+)\"[^>]* alt=\"[^\"]+\"", text)
    files = {((ROOT / page).parent / (one or other)).resolve() for one, other in pictures}
    assert {file.stem for file in files} == set(notebooks.NAMES)
    assert all(file.stat().st_size < 250_000 for file in files)
    for name in notebooks.NAMES:
        assert f"examples.{name}" in text or f"({name}.py)" in text, name
