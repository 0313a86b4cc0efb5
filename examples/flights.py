"""What is the cheapest way by air, and over which airports? Over Spark Connect, with no jar anywhere.

    python -m examples.flights [--out demo-output]        (or: make example NAME=flights)

A client of Spark Connect cannot load a jar into the server. The recursion is the same all the same: its plan is made
in Python, and it runs in one of Spark's own Python workers. The session below is a client, and the server that PySpark
starts for it; with `SparkSession.builder.remote("sc://host")` it is anybody's. Flights and prices are invented.

Look at the report: the executor is `python`, and it says why. The fare is a `min`, and `ra.min_by` carries along the
airport before, from which the route is read back.
"""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra
from examples import layers, stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FLIGHTS = """\
src,dst,fare
Reykjavík,Oslo,89
Reykjavík,London,99
Reykjavík,Boston,310
Oslo,Frankfurt,75
Oslo,London,120
London,Frankfurt,69
London,New York,280
London,Lisbon,49
Lisbon,São Paulo,420
Lisbon,Recife,395
Frankfurt,São Paulo,610
Frankfurt,Buenos Aires,720
Boston,New York,79
New York,Miami,95
Miami,Bogotá,140
Bogotá,Santiago,210
Bogotá,São Paulo,260
Recife,São Paulo,60
São Paulo,Buenos Aires,110
Buenos Aires,Ushuaia,130
Santiago,Buenos Aires,90
Santiago,Punta Arenas,80
Punta Arenas,Ushuaia,160
"""
START, END = "Reykjavík", "Ushuaia"
GOLD, EMBER = "#ffd166", "#ff8f5a"


def cheapest_fares(flights: DataFrame, start: str) -> DataFrame:
    """(airport, fare, via): the least sum of fares from ``start``, and the airport before on that way."""
    row = [F.lit(start).alias("airport"), F.lit(0).alias("fare"), F.lit("").alias("via")]
    return (
        flights.sparkSession.range(1)
        .select(*row)
        .recursive_agg(
            "airport",
            {"fare": "min", "via": ra.min_by("fare")},
            step=lambda known: known.join(flights, known.airport == flights.src).select(
                flights.dst.alias("airport"), (known.fare + flights.fare).alias("fare"), known.airport.alias("via")
            ),
            assume="fare >= 0",
        )
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The flights, and where the session is.
    table = pd.read_csv(io.StringIO(FLIGHTS))
    flights = spark.createDataFrame(table, "src string, dst string, fare int")
    print(type(spark).__module__)

    # %% All cheapest fares from Reykjavík, in one expression.
    fares = cheapest_fares(flights, START)
    found = fares.orderBy("fare").toPandas()
    print(found.to_string(index=False))

    # %% Who has computed it, and why there.
    report = ra.report(fares)
    if report is not None:
        print(f"{report.backend}: {report.iterations} iterations, {report.tuples} rows\nwhy: {report.reason}")

    # %% The way to Ushuaia, read back from its end.
    via = dict(zip(found.airport, found.via, strict=True))
    route = [END]
    while route[0] != START:
        route.insert(0, via[route[0]])
    print(" → ".join(route))

    # %% All flights. Yellow: the last flight of a cheapest way. Orange: the way to Ushuaia.
    picture = out / "flights.png"
    draw_flights(picture, table, found, route)
    return picture


def draw_flights(file: Path, table: pd.DataFrame, found: pd.DataFrame, route: list[str]) -> None:
    """Draw all flights, with the least fare to each airport."""
    fare = dict(zip(found.airport, found.fare, strict=True))
    via = dict(zip(found.airport, found.via, strict=True))
    boxes = [
        layers.Box(a, f"{a}\n{fare[a]} €", EMBER if a in route else GOLD)
        for a in dict.fromkeys([*table.src, *table.dst])
    ]
    legs = set(pairwise(route))
    arrows = []
    for src, dst, price in table.itertuples(index=False):
        if (src, dst) in legs:
            arrows.append(layers.Arrow(src, dst, f"{price} €", EMBER))
        elif via[dst] == src:
            arrows.append(layers.Arrow(src, dst, f"{price} €", GOLD))
        else:
            arrows.append(layers.Arrow(src, dst))
    subtitle = f"Orange: the cheapest way from {START} to {END}. Yellow: the last flights of other cheapest ways"
    layers.draw(file, boxes, arrows, "What is the cheapest way by air?", subtitle, "Invented fares")


if __name__ == "__main__":
    stage.run(__doc__, tell, over_connect=True)
