"""Who delivers to which shop after a road is closed and a supplier is dropped? Deletes in maintained Delta tables.

    python -m examples.deliveries [--out demo-output]        (or: make example NAME=deliveries)

Two tables have the roads of a valley and the bakeries that supply its shops; both are invented. A third one is
recursive and *maintained* (`ra.delta.RecursiveTable`): the nearest bakery of each shop and its distance. It is filled,
then a road is closed, then a bakery is dropped, and after each it is refreshed.

Look at the reports. A closed road makes only those shops *fall* whose nearest way led over it. The engine derives them
again from the shops that stay, and writes the rows that differ. A shop that nobody can supply any more leaves the
table. A last refresh finds nothing to do.
"""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

import pandas as pd

import pyspark_paralagg as ra
from examples import layers, stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROSE, GOLD = "#f4617b", "#c08a2d"
ROADS = """\
src,dst,km
Harbour,Mill,5
Harbour,Church,9
Mill,Bridge,4
Mill,Quarry,11
Church,Bridge,7
Church,Orchard,6
Bridge,Market,3
Orchard,Market,8
Market,School,2
School,Chapel,6
Quarry,Chapel,10
Chapel,Alp,12
Farm,Spring,3
"""
BAKERIES = """\
shop,bakery
Harbour,Old Oven
Chapel,Summit Bread
Farm,Summit Bread
"""
CLOSED, DROPPED = ("Mill", "Bridge"), "Summit Bread"


def write(spark: SparkSession, table: Path, rows: str) -> None:
    """Write rows of CSV to a Delta table with a change feed."""
    frame = spark.createDataFrame(pd.read_csv(io.StringIO(rows)))
    frame.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(table))


def delete(spark: SparkSession, table: Path, condition: str) -> None:
    """Delete the rows of a Delta table that meet ``condition``."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - an extra

    DeltaTable.forPath(spark, str(table)).delete(condition)


def nearest_bakeries(spark: SparkSession, lake: Path) -> ra.delta.RecursiveTable:
    """(shop, km, bakery): the nearest bakery of each shop, by road in either direction."""

    def step(known: DataFrame, t: Mapping[str, DataFrame]) -> DataFrame:
        roads = t["roads"].unionAll(t["roads"].selectExpr("dst AS src", "src AS dst", "km"))
        return known.join(roads, known.shop == roads.src).select(
            roads.dst.alias("shop"), (known.km + roads.km).alias("km"), known.bakery
        )

    return ra.delta.RecursiveTable(
        spark,
        f"{lake}/nearest",
        keys="shop",
        aggs={"km": "min", "bakery": ra.min_by("km")},
        sources={"roads": f"{lake}/roads", "bakeries": f"{lake}/bakeries"},
        base=lambda t: t["bakeries"].selectExpr("shop", "0L AS km", "bakery"),
        step=step,
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The two tables as they are at first, in a folder of their own, and the recursive one, filled.
    lake = out / "deliveries"
    shutil.rmtree(lake, ignore_errors=True)
    write(spark, lake / "roads", ROADS)
    write(spark, lake / "bakeries", BAKERIES)
    nearest = nearest_bakeries(spark, lake)
    print(nearest.refresh())
    before = print_shops(spark, lake)

    # %% A road is closed.
    src, dst = CLOSED
    delete(spark, lake / "roads", f"src = '{src}' AND dst = '{dst}'")
    print(nearest.refresh())
    print_shops(spark, lake)

    # %% A bakery is dropped.
    delete(spark, lake / "bakeries", f"bakery = '{DROPPED}'")
    print(nearest.refresh())
    after = print_shops(spark, lake)

    # %% Nothing new: nothing is computed, nothing written.
    print(nearest.refresh())

    # %% The shops and roads after both changes, as a picture.
    picture = out / "deliveries.png"
    draw_valley(picture, before, after)
    return picture


def print_shops(spark: SparkSession, lake: Path) -> pd.DataFrame:
    """Print the nearest bakery of each shop, and return the rows."""
    shops = spark.read.format("delta").load(f"{lake}/nearest").toPandas().sort_values(["km", "shop"])
    for shop, km, bakery in shops[["shop", "km", "bakery"]].itertuples(index=False):
        print(f"  {shop:<8}{km:>4} km from {bakery}")
    print()
    return shops.set_index("shop")


def draw_valley(file: Path, before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Draw the roads and shops: red is what was closed, gold are the shops whose row changed."""
    roads = pd.read_csv(io.StringIO(ROADS))
    boxes, arrows = [], []
    for shop, km, bakery in before[["km", "bakery"]].itertuples():
        is_left = shop not in after.index
        now = "no bakery" if is_left else f"{after.km[shop]} km, {after.bakery[shop]}"
        is_same = not is_left and (after.km[shop], after.bakery[shop]) == (km, bakery)
        boxes.append(layers.Box(shop, f"{shop}\n{now}", layers.QUIET if is_same else GOLD))
    for src, dst, km in roads.itertuples(index=False):
        arrows.append(layers.Arrow(src, dst, f"{km} km", ROSE if (src, dst) == CLOSED else layers.QUIET))
    subtitle = f"{' to '.join(CLOSED)} is closed (red), {DROPPED} is dropped. Gold: shops with another row than before"
    layers.draw(file, boxes, arrows, "Who delivers now?", subtitle, "Invented roads and bakeries")


if __name__ == "__main__":
    stage.run(__doc__, tell, with_delta=True)
