"""What goes into a bicycle, and when can it be built? A bill of materials in Delta tables, kept up to date.

    python -m examples.bill_of_materials [--out demo-output]        (or: make example NAME=bill_of_materials)

Two tables say what is fitted into what, and what is bought; both are invented (`examples.bicycles`). Two more are
recursive and *maintained* (`ra.delta.RecursiveTable`): how many of each part a product needs, and on which day each
assembly is ready. They are filled, then the cargo bicycle gets a motor, and both are refreshed.

Look at the two reports of the second refresh. The day is a `max`, a lattice: what is known stays true, so the engine
goes on from the stored rows with the inserted ones, and writes only what changed. Numbers of parts are a `sum`: the
engine computes what the inserted rows add to them, and adds that to the stored rows. A third refresh finds nothing to
do.
"""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra
from examples import layers, stage
from examples.bicycles import BOUGHT, MOTOR_BOUGHT, MOTOR_STRUCTURE, STRUCTURE

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROSE = "#f4617b"


def append(spark: SparkSession, table: Path, rows: str) -> None:
    """Append rows of CSV to a Delta table with a change feed, which is made if it is not there."""
    frame = spark.createDataFrame(pd.read_csv(io.StringIO(rows)))
    frame.write.format("delta").mode("append").option("delta.enableChangeDataFeed", "true").save(str(table))


def ready_days(spark: SparkSession, lake: Path) -> ra.delta.RecursiveTable:
    """(part, day, waits_for): the day on which a part is there, or an assembly put together; its latest part."""
    return ra.delta.RecursiveTable(
        spark,
        f"{lake}/ready",
        keys="part",
        aggs={"day": "max", "waits_for": ra.max_by("day")},
        sources={"structure": f"{lake}/structure", "bought": f"{lake}/bought"},
        base=lambda t: t["bought"].select("part", F.col("days").alias("day"), F.lit("").alias("waits_for")),
        step=lambda known, t: known.join(t["structure"], known.part == t["structure"].part).select(
            t["structure"].assembly.alias("part"),
            (known.day + t["structure"].days).alias("day"),
            t["structure"].part.alias("waits_for"),
        ),
    )


def needed_parts(spark: SparkSession, lake: Path) -> ra.delta.RecursiveTable:
    """(product, part, quantity): how many of each part are in one product, over all levels."""
    return ra.delta.RecursiveTable(
        spark,
        f"{lake}/needed",
        keys=["product", "part"],
        aggs={"quantity": "sum"},
        sources={"structure": f"{lake}/structure"},
        base=lambda t: (
            t["structure"]
            .filter(F.col("assembly").endswith("bicycle"))
            .select(F.col("assembly").alias("product"), "part", "quantity")
        ),
        step=lambda known, t: known.join(t["structure"], known.part == t["structure"].assembly).select(
            known.product, t["structure"].part, (known.quantity * t["structure"].quantity).alias("quantity")
        ),
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The two tables as they are at first, in a folder of their own.
    lake = out / "bicycles"
    shutil.rmtree(lake, ignore_errors=True)
    append(spark, lake / "structure", STRUCTURE)
    append(spark, lake / "bought", BOUGHT)

    # %% The two recursive tables, filled for the first time.
    ready, needed = ready_days(spark, lake), needed_parts(spark, lake)
    for view in (ready, needed):
        print(view.refresh(), end="\n\n")
    print_products(spark, lake)

    # %% The cargo bicycle gets a motor. Before anything is done, `status` says what a refresh would do.
    append(spark, lake / "structure", MOTOR_STRUCTURE)
    append(spark, lake / "bought", MOTOR_BOUGHT)
    print(ready.status(), end="\n\n")
    for view in (ready, needed):
        print(view.refresh(), end="\n\n")
    print_products(spark, lake)

    # %% Nothing new: nothing is computed, nothing written.
    print(ready.refresh())

    # %% What each assembly waits for, as a picture.
    picture = out / "bill_of_materials.png"
    days = spark.read.format("delta").load(f"{lake}/ready").toPandas()
    draw_structure(picture, pd.read_csv(io.StringIO(STRUCTURE + MOTOR_STRUCTURE.partition("\n")[2])), days)
    return picture


def print_products(spark: SparkSession, lake: Path) -> None:
    """Print for each product its bought parts, what they cost together, and the day on which it is ready."""
    tables = {name: spark.read.format("delta").load(f"{lake}/{name}") for name in ("needed", "bought", "ready")}
    costs = tables["needed"].join(tables["bought"], "part").groupBy("product").agg(
        F.sum("quantity").alias("parts"), F.sum(F.col("quantity") * F.col("price")).alias("price")
    )  # fmt: skip
    rows = costs.join(tables["ready"], costs["product"] == tables["ready"].part).orderBy("product").collect()
    for row in rows:
        print(f"  {row['product']:<16}{row.parts:>5} parts, {row.price:>8.2f} to buy, ready on day {row.day}")


def draw_structure(file: Path, structure: pd.DataFrame, ready: pd.DataFrame) -> None:
    """Draw what is fitted into what: red is what a bicycle waits for."""
    day, waits_for = ready.set_index("part").day, ready.set_index("part").waits_for
    late = [name for name in structure.assembly.unique() if name.endswith("bicycle")]
    for name in late:
        late += [waits_for[name]] if waits_for[name] else []
    names = dict.fromkeys([*structure.part[~structure.part.isin(structure.assembly)], *structure.assembly[::-1]])
    boxes = [layers.Box(n, f"{n}\nday {day[n]}", ROSE if n in late else layers.QUIET) for n in names]
    arrows = []
    for assembly, part, quantity, _ in structure.itertuples(index=False):
        colour = ROSE if assembly in late and waits_for[assembly] == part else layers.QUIET
        arrows.append(layers.Arrow(part, assembly, f"{quantity} pieces" if quantity > 1 else "", colour))
    subtitle = "From what is bought (left) to what is sold. Red: the parts that a bicycle waits for"
    layers.draw(file, boxes, arrows, "What does a bicycle wait for?", subtitle, "Invented bill of materials")


if __name__ == "__main__":
    stage.run(__doc__, tell, with_delta=True)
