"""How far does one get by bicycle in 15, 30 and 60 minutes? Isochrones on the roads of La Serena and Coquimbo, Chile.

    python -m examples.isochrones [--out demo-output]        (or: make example NAME=isochrones)

The roads are those of `examples.roads`: 34,000 directed links, © OpenStreetMap contributors, ODbL. Speeds are a guess
at somebody in no hurry; motorways and trunk roads are left out. Look at the filter within the recursion: what takes
longer than an hour is never followed, so a short ride reads a small part of the map. `min` may be filtered this way
because a shorter time passes wherever a longer one does, which is proved before anything runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra
from examples import data, maps, stage
from examples.roads import PLACES, START, nearest_crossings, read_roads

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

BANDS = (15, 30, 60)  # minutes
KMH = {"residential": 13.0, "living_street": 10.0}  # else
ELSE_KMH = 16.0
NO_BICYCLES = ("motorway", "trunk")


def cycling_times(roads: DataFrame) -> DataFrame:
    """(src, dst, takes): minutes by bicycle along each link where bicycles may go."""
    speed = F.lit(ELSE_KMH)
    for kind, kmh in KMH.items():
        speed = F.when(F.col("kind") == kind, kmh).otherwise(speed)
    takes = F.col("metres") / 1000 / speed * 60
    return roads.filter(~F.col("kind").isin(*NO_BICYCLES)).select("src", "dst", takes.alias("takes"))


def within(minutes: float, starts: DataFrame, links: DataFrame) -> DataFrame:
    """(place, node, minutes): what is reached from each place of ``starts`` (place, node), and how fast."""
    return starts.select("place", "node", F.lit(0.0).alias("minutes")).recursive_agg(
        keys=["place", "node"],
        aggs={"minutes": "min"},
        step=lambda there: (
            there.join(links, there.node == links.src)
            .select(there.place, links.dst.alias("node"), (there.minutes + links.takes).alias("minutes"))
            .filter(F.col("minutes") <= minutes)
        ),
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The map, and where the rides start: for each place the nearest crossing of a residential street.
    crossings, roads = read_roads(spark)
    places = spark.createDataFrame(PLACES, "place string, lon double, lat double, side string")
    streets = roads.filter("kind = 'residential'")
    homes = crossings.join(streets, crossings.node == streets.src, "left_semi")
    starts = nearest_crossings(homes, places).select("place", "node")

    # %% All rides of at most an hour, from all seven places in one recursion: the place is part of the key.
    reached = within(max(BANDS), starts, cycling_times(roads))
    rides = reached.join(crossings, "node").toPandas()

    # %% Crossings within reach. The airport lies beside a road; from the lighthouse half of the circle is sea.
    print(f"Crossings within reach by bicycle  ({data.OSM_ATTRIBUTION})\n")
    print_reach(rides)
    print(f"\n{ra.report(reached)}")

    # %% The rides from the Plaza de Armas, as a map.
    from_plaza = rides[rides.place == START]
    picture = out / "isochrones.png"
    maps.draw_isochrones(picture, from_plaza, crossings.toPandas(), roads.toPandas(), START, BANDS)
    return picture


def print_reach(rides: pd.DataFrame) -> None:
    """Print for each place the crossings within each band, the place with the largest hour first."""
    bands = {band: rides[rides.minutes <= band].groupby("place").size() for band in BANDS}
    table = pd.DataFrame(bands).fillna(0).astype(int).sort_values(max(BANDS), ascending=False)
    print(f"  {'from':<28}" + "".join(f"{f'{band} min':>10}" for band in BANDS) + f"\n  {'─' * 58}")
    for place, *counts in table.itertuples():
        print(f"  {place:<28}" + "".join(f"{count:>10,}" for count in counts))


if __name__ == "__main__":
    stage.run(__doc__, tell)
