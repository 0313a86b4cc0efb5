"""Compare what the proof claims of random typed expressions with what Spark computes on a grid of values.

    python tests/campaigns/proofs --count 20000 --seed 1

An expression reads columns ``v_…``, which improve along the grid, and ``w_…``, which stay. For each one the rule system
says how it moves, where it is null, between which bounds it lies, and whether it ties values; Spark says what it is.
Both settings of ANSI mode and two time zones take turns. A seed gives the same expressions each time.
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

import pyspark_paralagg as ra  # noqa: E402 - likewise

# A constant that fails would fail the whole batch while it is planned.
EXCLUDED = ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in ("ConstantFolding", "ConstantPropagation", "NullPropagation")
)


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
    begun, rng = time.monotonic(), random.Random(options.seed)
    batch = 0
    while oracle.tally.expressions < options.count and time.monotonic() - begun < options.seconds:
        oracle.run(SETTINGS[batch % len(SETTINGS)], rng)
        batch += 1
    print(oracle.tally.table())
    for failure in oracle.failures[:20]:
        print(failure)
    passed = oracle.tally.expressions - len(oracle.failures)
    print(f"{passed} passed, {len(oracle.failures)} failed")
    spark.stop()
    return 1 if oracle.failures else 0


if __name__ == "__main__":
    sys.exit(main())
