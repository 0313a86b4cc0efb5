"""The demos: their recursions on networks that fit on a page, their pictures, their data, and the real thing.

The slow tests read the real data sets: the roads are fetched where needed, the taxonomy (90 MB) only taken from
the cache. Where there are no data they are skipped, with the reason.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from examples import data, maps, roads, sunburst, taxonomy
from pyspark_paralagg.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PNG = b"\x89PNG\r\n\x1a\n"

#     1 ──High St 100── 2 ──High St 100── 3        5 is reached by a one-way street from 3 alone,
#     │                                   │        6 leads to 1 and is never reached.
#     └─────────Bypass 150──────── 4 ─20──┘        The way to 3 over the bypass (170) beats High Street (200).
CROSSINGS = [(1, 0.0, 0.0), (2, 1.0, 0.0), (3, 2.0, 0.0), (4, 1.0, -0.5), (5, 3.0, 0.0), (6, 0.0, 1.0)]
BOTH_WAYS = [
    (10, 1, 2, 100.0, "High St"),
    (11, 2, 3, 100.0, "High St"),
    (12, 1, 4, 150.0, "Bypass"),
    (13, 4, 3, 20.0, None),
]
ONE_WAY = [(14, 3, 5, 30.0, "Dead End"), (15, 6, 1, 5.0, "Way In")]


@pytest.fixture
def network(spark: SparkSession) -> DataFrame:
    links = [*BOTH_WAYS, *((link, dst, src, *rest) for link, src, dst, *rest in BOTH_WAYS), *ONE_WAY]
    columns = "link bigint, src bigint, dst bigint, metres double, name string, kind string"
    return spark.createDataFrame([(*link, "residential") for link in links], columns)


@pytest.fixture
def found(spark: SparkSession, network: DataFrame) -> pd.DataFrame:
    start = spark.createDataFrame([(1,)], "node bigint")
    return roads.travel_distances(network, start).orderBy("node").toPandas()


def test_distances_take_the_shorter_way_and_remember_the_last_link(found: pd.DataFrame) -> None:
    rows = [(node, metres, None if pd.isna(via) else via) for node, metres, via in found.itertuples(index=False)]
    assert rows == [(1, 0.0, None), (2, 100.0, 10), (3, 170.0, 13), (4, 150.0, 12), (5, 200.0, 14)]


def test_path_joins_the_stretches_of_a_street(network: DataFrame, found: pd.DataFrame) -> None:
    links = network.toPandas()
    assert roads.path_to(5, found, links) == (
        [1, 4, 3, 5],
        [
            roads.Stretch("Bypass", 150.0, 150.0),
            roads.Stretch("(road without a name)", 20.0, 170.0),
            roads.Stretch("Dead End", 30.0, 200.0),
        ],
    )
    along_high_street = found.assign(via=[None, 10, 11, 12, 14], metres=[0.0, 100.0, 200.0, 150.0, 230.0])
    assert roads.path_to(3, along_high_street, links) == ([1, 2, 3], [roads.Stretch("High St", 200.0, 200.0)])


def test_nearest_crossing_of_a_place(spark: SparkSession) -> None:
    crossings = spark.createDataFrame(CROSSINGS, "node bigint, lon double, lat double")
    places = spark.createDataFrame(
        [("east", 2.8, 0.1, "left"), ("south", 1.1, -0.6, "right")],
        "place string, lon double, lat double, side string",
    )
    rows = roads.nearest_crossings(crossings, places).orderBy("place").collect()
    assert [tuple(row) for row in rows] == [("east", "left", 5), ("south", "right", 4)]


def test_pictures_are_written(tmp_path: Path, network: DataFrame, found: pd.DataFrame) -> None:
    found = found.merge(pd.DataFrame(CROSSINGS, columns=["node", "lon", "lat"]))
    known = pd.DataFrame(
        [("Town Hall", "right", 1, 0.0), ("Gallows", "left", 3, 170.0)], columns=["place", "side", "node", "metres"]
    )
    maps.draw_roads(tmp_path / "new" / "roads.png", found, network.toPandas(), known, "Town Hall", [1, 4, 3, 5])
    tree = pd.DataFrame(
        {
            "taxon": [1, 2, 3, 4, 5],
            "parent": [None, 1, 2, 3, 1],
            "rank": ["no rank", "superkingdom", "clade", "phylum", "superkingdom"],
            "name": ["root", "Eukaryota", "X", "Y", "Bacteria"],
            "species": [9, 6, 4, 4, 3],
        }
    )
    sunburst.draw_tree(tmp_path / "new" / "tree.png", tree)
    for name in ("roads.png", "tree.png"):
        assert (tmp_path / "new" / name).read_bytes().startswith(PNG)
    parts = {part.name: part for part in sunburst.slices(tree)}
    assert set(parts) == {"Eukaryota", "Y", "Bacteria"}  # a clade has no ring
    assert parts["Y"].width == pytest.approx(2 * np.pi * 4 / 9)
    assert parts["Bacteria"].start == pytest.approx(parts["Eukaryota"].start + parts["Eukaryota"].width)
    assert parts["Y"].inner == parts["Eukaryota"].outer  # no kingdom between them: the phylum fills its ring


@pytest.fixture
def taxa(spark: SparkSession) -> DataFrame:
    rows = [(1, None, "no rank", "root"), (2, 1, "phylum", "a"), (3, 1, "phylum", "b"), (4, 2, "species", "a1")]
    rows += [(5, 2, "species", "a2"), (6, 5, "strain", "a2x"), (7, 3, "genus", "bg")]
    return spark.createDataFrame(rows, "taxon bigint, parent bigint, rank string, name string")


def test_species_are_summed_up_the_tree(taxa: DataFrame) -> None:
    rows = taxonomy.count_species(taxa).orderBy("taxon").collect()
    assert [tuple(row) for row in rows] == [(1, 2, 7), (2, 2, 4), (3, 0, 2), (4, 1, 1), (5, 1, 2), (6, 0, 1), (7, 0, 1)]


def test_depth_is_measured_from_the_root(taxa: DataFrame) -> None:
    rows = taxonomy.measure_depth(taxa).orderBy("taxon").collect()
    assert [tuple(row) for row in rows] == [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 2)]


def test_lineage_holds_a_taxon_and_all_above_it(taxa: DataFrame) -> None:
    rows = taxonomy.lineage(taxa, 6).orderBy("taxon").collect()
    assert [row.taxon for row in rows] == [1, 2, 5, 6]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "cache"


def test_no_index_says_what_cannot_be_fetched(empty_cache: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"PARALAGG_DEMO_DATA: cannot download aequilibrae==1\.7\.2"):
        data.roads()
    assert not list(empty_cache.rglob("*.parquet"))


def test_another_file_than_the_pinned_one_is_refused(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "aequilibrae-1.7.2-py3-none-any.whl", "w") as wheel:
        info = "aequilibrae-1.7.2.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: aequilibrae\nVersion: 1.7.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"PARALAGG_DEMO_DATA: .* has SHA-256 .*, expected ff7f9ceb"):
        data.roads()
    assert not [path for path in empty_cache.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_real_distances_equal_those_of_scipy(spark: SparkSession) -> None:
    try:
        data.roads()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    sparse = pytest.importorskip("scipy.sparse")
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    crossings, network = roads.read_roads(spark)
    assert (crossings.count(), network.count()) == (15_591, 34_175)

    links = network.toPandas()
    size = int(max(links.src.max(), links.dst.max())) + 1
    matrix = sparse.csr_matrix((links.metres, (links.src, links.dst)), shape=(size, size))
    start = int(crossings.agg({"node": "min"}).collect()[0][0])
    expected = csgraph.dijkstra(matrix, indices=start)

    found = roads.travel_distances(network, crossings.filter(crossings.node == start)).toPandas()
    assert len(found) == np.isfinite(expected).sum()
    # Both add the links from the start on, so even the last bit agrees.
    assert (found.metres == expected[found.node]).all()
    way, stretches = roads.path_to(int(found.node[found.metres.idxmax()]), found, links)
    assert way[0] == start
    assert sum(part.metres for part in stretches) == pytest.approx(found.metres.max())


@pytest.mark.slow
def test_real_taxonomy_adds_up(spark: SparkSession) -> None:
    if not (data.cache_folder() / data.TAXONOMY.folder).is_dir():
        pytest.skip("the taxonomy is not in the cache; make demo-taxonomy fetches it")
    taxa = spark.read.parquet(str(data.taxonomy() / "taxa.parquet"))
    sizes = taxonomy.count_species(taxa)
    root = sizes.filter("taxon = 1").collect()
    assert [tuple(row) for row in root] == [(1, taxa.filter("rank = 'species'").count(), 2_609_295)]
