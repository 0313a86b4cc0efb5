"""Compare what the proof claims of random typed expressions with what Spark computes on a grid of values.

    python tests/campaigns/proofs --count 20000 --seed 1

An expression reads columns ``v_…``, which improve along the grid, and ``w_…``, which stay. For each one the rule system
says how it moves, where it is null, between which bounds it lies, and whether it ties values; Spark says what it is.
Both settings of ANSI mode and two time zones take turns. A seed gives the same expressions each time. ``sums`` compares
fixpoints of random values under sums.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE)]

from oracle import Oracle  # noqa: E402 - found by the line above
from settings import SETTINGS  # noqa: E402 - likewise
from sums import Sums  # noqa: E402 - likewise

import pyspark_paralagg as ra  # noqa: E402 - likewise

# A constant that fails would fail the whole batch while it is planned.
EXCLUDED = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in ("ConstantFolding", "ConstantPropagation", "NullPropagation")
)

BATCHES_A_SUM = 4
VALUES = 12
"""Values under a sum that each of these batches draws."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2_000, help="expressions (2000)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30), help="a fresh one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN").config(
        "spark.sql.codegen.wholeStage", "false"
    )
    builder = builder.config("spark.sql.optimizer.excludedRules", EXCLUDED)
    spark = ra.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    oracle = Oracle(spark)
    sums = Sums(spark, oracle.tally.tell)
    begun, rng = time.monotonic(), random.Random(options.seed)
    batch = 0
    while oracle.tally.expressions < options.count and time.monotonic() - begun < options.seconds:
        oracle.run(SETTINGS[batch % len(SETTINGS)], rng)
        batch += 1
        if batch % BATCHES_A_SUM == 0:
            sums.run(rng, VALUES, ansi=batch % (2 * BATCHES_A_SUM) == 0)
    print(oracle.tally.table())
    failures = [*oracle.failures, *sums.failures]
    for failure in failures[:20]:
        print(failure)
    print(f"{oracle.tally.expressions - len(failures)} passed, {len(failures)} failed")
    spark.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
