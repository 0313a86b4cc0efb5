"""How far is it by road? Travel distances in La Serena and Coquimbo, Chile: a table, a path, a picture.

    python -m examples.roads [--out demo-output]        (or: make demo)

Read downwards: the places, the recursion (`travel_distances`), the way back (`path_to`), what is printed.
The roads are those of OpenStreetMap (© OpenStreetMap contributors, ODbL), from the package aequilibrae, fetched once.
The recursion is shortest paths by distance; `via` remembers the last link of the shortest path, so that the
path itself can be read from the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra
from examples import data, maps, stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

START = "Plaza de Armas, La Serena"
PLACES = [  # name, longitude, latitude, side of its label in the picture
    (START, -71.2520, -29.9027, "right"),
    ("Lighthouse", -71.2745, -29.9054, "left"),
    ("Las Compañías", -71.2400, -29.8720, "right"),
    ("La Florida airport", -71.1995, -29.9162, "right"),
    ("Tierras Blancas", -71.2500, -29.9550, "right"),
    ("Peñuelas", -71.2883, -29.9496, "left"),
    ("Coquimbo", -71.3377, -29.9531, "left"),
]


@dataclass(frozen=True)
class Stretch:
    """A part of a path along one street: its length, and the distance from the start at its end."""

    street: str
    metres: float
    end: float


def read_roads(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Crossings (node, lon, lat) and directed links (link, src, dst, metres, name, kind) of the road network."""
    folder = data.roads()
    crossings = spark.read.parquet(str(folder / "nodes.parquet")).filter("not is_centroid")
    roads = spark.read.parquet(str(folder / "links.parquet")).filter("kind <> 'centroid_connector'")
    return crossings.select("node", "lon", "lat"), roads


def nearest_crossings(crossings: DataFrame, places: DataFrame) -> DataFrame:
    """For each place (place, lon, lat, side) the crossing next to it: (place, side, node)."""
    here = places.select("place", "side", F.col("lon").alias("x"), F.col("lat").alias("y"))
    # Good enough within a city: a degree of longitude is cos(latitude) degrees of latitude long.
    away = F.hypot((F.col("lon") - F.col("x")) * F.cos(F.radians("y")), F.col("lat") - F.col("y"))
    return here.crossJoin(crossings).groupBy("place", "side").agg(F.min_by("node", away).alias("node"))


def travel_distances(roads: DataFrame, start: DataFrame) -> DataFrame:
    """Distance by road from the crossings in ``start`` (node) to every crossing that can be reached.

    (node, metres, via): ``via`` is the last link of the shortest path, null at the start itself.
    """
    return start.select("node", F.lit(0.0).alias("metres"), F.lit(None).cast("bigint").alias("via")).recursive_agg(
        keys="node",
        aggs={"metres": "min", "via": ra.min_by("metres")},
        step=lambda reached: reached.join(roads, reached.node == roads.src).select(
            roads.dst.alias("node"),
            (reached.metres + roads.metres).alias("metres"),
            roads.link.alias("via"),
        ),
    )


def path_to(node: int, distances: pd.DataFrame, roads: pd.DataFrame) -> tuple[list[int], list[Stretch]]:
    """Follow ``via`` back from ``node``: the path's crossings from the start on, and the streets that it takes."""
    reached = distances.set_index("node")
    links = roads.set_index(["link", "dst"])
    crossings, stretches = [node], list[Stretch]()
    while pd.notna(via := reached.via[crossings[0]]):
        link = links.loc[(int(via), crossings[0])]
        street = link["name"] if isinstance(link["name"], str) else "(road without a name)"
        if stretches and stretches[0].street == street:
            stretches[0] = Stretch(street, stretches[0].metres + link.metres, stretches[0].end)
        else:
            stretches.insert(0, Stretch(street, link.metres, reached.metres[crossings[0]]))
        crossings.insert(0, int(link.src))
    return crossings, stretches


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The road network, and the crossing next to each place.
    crossings, roads = read_roads(spark)
    places = spark.createDataFrame(PLACES, "place string, lon double, lat double, side string")
    known = nearest_crossings(crossings, places).toPandas()
    start = spark.createDataFrame([(int(known.node[known.place == START].item()),)], "node bigint")

    # %% The recursion. `distances` is lazy, an ordinary DataFrame: it runs with what is made of it, here a join.
    distances = travel_distances(roads, start)
    found = distances.join(crossings, "node").toPandas()
    known = known.merge(found).sort_values("metres")
    streets = roads.toPandas()
    print(f"Travel distances from {START}, Chile  ({data.OSM_ATTRIBUTION})")
    print(f"{len(found):,} crossings reached over {len(streets):,} directed road links\n")
    print_places(known)

    # %% The farthest crossing, and the way to it, read back from `via`.
    way, stretches = path_to(int(found.node[found.metres.idxmax()]), found, streets)
    print_path(stretches)

    # %% What was run, by whom, and how it went.
    print(f"\n>>> ra.explain(distances)\n{ra.explain(distances)}\n\n>>> ra.report(distances)\n{ra.report(distances)}")

    # %% As a map.
    picture = out / "roads.png"
    maps.draw_roads(picture, found, streets, known, START, way)
    return picture


def print_places(known: pd.DataFrame) -> None:
    """Print for each place: by road, as the crow flies, and how much longer the road is; the nearest first."""
    home = known.iloc[0]
    east, north = (known.lon - home.lon) * maps.LON_TO_LAT, known.lat - home.lat
    straight = (east**2 + north**2) ** 0.5 * maps.METRES_PER_DEGREE
    print(f"  {'place':<28}{'by road':>10}{'straight':>12}{'detour':>10}\n  {'─' * 60}")
    for place, metres, line in zip(known.place, known.metres, straight, strict=True):
        detour = f"{metres / line - 1:>+10.0%}" if line else ""
        print(f"  {place:<28}{metres / 1000:>7.1f} km{line / 1000:>9.1f} km{detour}")


def print_path(stretches: list[Stretch]) -> None:
    """Print street by street, with the distance from the start at the end of each."""
    print(f"\nThe crossing that is farthest away, {stretches[-1].end / 1000:.1f} km, is reached by\n")
    print(f"  {'street':<44}{'along':>10}{'in all':>10}\n  {'─' * 64}")
    for part in stretches:
        print(f"  {part.street:<44}{part.metres / 1000:>7.2f} km{part.end / 1000:>7.2f} km")


if __name__ == "__main__":
    stage.run(__doc__, tell)
