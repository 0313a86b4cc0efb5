"""Where should a recursion run? The same job on Spark's engine and on MPI ranks, switched by one configuration key.

    python -m examples.offload [--out demo-output]        (or: make example NAME=offload)

The job is that of `examples.roads`: travel distances on 34,000 real road links (© OpenStreetMap contributors, ODbL).
``spark.paralagg.backend`` says who runs it: ``spark`` the engine inside of Spark, ``mpi`` as many ranks as the machine
has cores. On a cluster ``spark.paralagg.mpi.launcher`` says how ranks start: within Spark's executors, or by a command
such as srun. Needs the extra ``mpi``; `docs/guide/mpi.md` tells more.

Look at the switch in `run_on`, and at the waves in the picture: ranks finish what is near before they go farther, so
fewer distances are found that a shorter one replaces later. The rows are the same. Seconds say little here: the first
run of each has to compile its loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark_paralagg as ra
from examples import charts, stage
from examples.roads import read_roads, travel_distances

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

BACKENDS = ("spark", "mpi")


def run_on(backend: str, roads: DataFrame, start: DataFrame) -> tuple[pd.DataFrame, ra.RunReport]:
    """The rows and the report of the job, with the switch set to ``backend`` for as long as it takes."""
    confs = roads.sparkSession.conf
    before = confs.get("spark.paralagg.backend", "auto")
    confs.set("spark.paralagg.backend", backend)
    try:
        distances = travel_distances(roads, start)
        return distances.orderBy("node").toPandas(), ra.report(distances)
    finally:
        confs.set("spark.paralagg.backend", before)


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The roads, and a crossing to start from.
    crossings, roads = read_roads(spark)
    start = crossings.orderBy("node").select("node").limit(1)

    # %% The same job twice.
    runs = {backend: run_on(backend, roads, start) for backend in BACKENDS}
    for _, report in runs.values():
        print(f"{report!r}\n")

    # %% The rows are equal, to the last bit of each distance and to the last link of each way.
    expected, _ = runs["spark"]
    for backend, (rows, _) in runs.items():
        print(f"{backend:<8}{len(rows):,} rows, {'equal' if rows.equals(expected) else 'DIFFERENT'}")

    # %% Distances that became shorter, by iteration.
    picture = out / "offload.png"
    charts.draw_iterations(picture, {backend: report.to_pandas() for backend, (_, report) in runs.items()})
    return picture


if __name__ == "__main__":
    stage.run(__doc__, tell)
