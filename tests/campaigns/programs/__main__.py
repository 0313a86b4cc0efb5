"""``python -m campaigns.programs ENGINE --count N --seed S``, with ``tests`` on the path: see docs/reliability.md."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from typing import TYPE_CHECKING

from jvm_options import use_quick_jvms

if TYPE_CHECKING:
    from campaigns.programs.campaign import Tally

ENGINES = (
    "simulated",
    "whole",
    "interpreted",
    "explained",
    "traced",
    "local",
    "ranks",
    "forced",
    "spark",
    "dataframe",
    "sql",
    "delta",
)


def main() -> int:
    """1 if a program failed."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.programs", description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--count", type=int, default=1000, help="programs, outer queries or steps")
    parser.add_argument("--seed", type=int, help="of the first, else a fresh one; the next one has the next seed")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after so long")
    options = parser.parse_args()
    began = time.monotonic()
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    seeds = range(seed, seed + options.count)
    sys.stdout.write(f"{options.engine}: --seed {seed}\n")
    sys.stdout.flush()
    tally = _run(options, seeds, began + options.seconds)
    for why, count in tally.refused.most_common(12):
        sys.stdout.write(f"  {count} refused: {why}\n")
    for mechanism, count in tally.seen.most_common():
        sys.stdout.write(f"  {mechanism} in {count} strata\n")
    sys.stdout.write(f"{options.engine}, seeds {seed}..: {tally}; {time.monotonic() - began:.0f} s\n")
    return bool(tally.failures)


def _run(options: argparse.Namespace, seeds: range, until: float) -> Tally:
    if options.engine in ("interpreted", "explained", "traced"):
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # read when Numba is imported
    from campaigns.programs import campaign, engines  # noqa: PLC0415 - likewise

    if options.engine in ("ranks", "forced"):
        forced = engines.FORCED if options.engine == "forced" else ((),)
        return campaign.run_by_ranks(seeds, options.ranks, until, options_of=forced)
    if options.engine in ("explained", "traced"):
        from campaigns.programs import rows_explained, rows_traced  # noqa: PLC0415 - likewise

        run = rows_explained.explained if options.engine == "explained" else rows_traced.with_ways
        return campaign.run(seeds, run, until=until)
    if options.engine in ("simulated", "whole", "interpreted", "local"):
        return campaign.run(seeds, getattr(engines, options.engine), until=until)
    if options.engine == "delta":
        from campaigns.programs import lake_steps  # noqa: PLC0415 - needs Delta

        use_quick_jvms()

        return lake_steps.run(seeds, until)
    from campaigns.programs.session import spark_session  # noqa: PLC0415 - needs a JVM

    spark = spark_session()
    try:
        if options.engine == "sql":
            from campaigns.programs import outer  # noqa: PLC0415 - likewise

            return outer.run(spark, seeds, until)
        backend = None if options.engine == "spark" else options.engine
        return campaign.run(seeds, engines.on_spark(spark, backend), until=until)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
