"""``python -m tests.campaigns.faults [--count N] [--seed N] [--engine NAME] [--fault NAME]``; 1: a case has failed."""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time

from tests.campaigns.faults import isolation
from tests.campaigns.faults.cases import FAULTS, draw
from tests.campaigns.faults.run import Campaign
from tests.campaigns.faults.table import table


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.faults", description="harm runs, and judge them")
    parser.add_argument("--count", type=int, default=30, help="of runs")
    parser.add_argument("--seed", type=int, help="of what is drawn; a new one unless said, and printed")
    parser.add_argument("--engine", action="append", choices=list(FAULTS), help="only these")
    parser.add_argument("--fault", action="append", help="only these")
    parser.add_argument("--target", action="append", help="only these")
    options = parser.parse_args()
    if not isolation.is_entered():
        reason = isolation.reason_against()
        if reason is not None:
            print(f"no campaign here: {reason}", file=sys.stderr)  # noqa: T201 - a command's answer
            return 2
        isolation.enter("tests.campaigns.faults", sys.argv[1:])
    isolation.mount()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - likewise
    chance = random.Random(seed)  # noqa: S311 - no secret
    cases = draw(chance, options.count, options.engine or FAULTS)
    cases = [c for c in cases if not options.fault or c.fault in options.fault]
    cases = [c for c in cases if not options.target or c.target in options.target]
    campaign = Campaign(chance)
    results = []
    began = time.monotonic()
    for result in campaign.run(cases):
        results.append(result)
        end = result.outcome.kind if result.is_hit else f"{result.outcome.kind}, too late"
        print(f"{result.case}: {end} after {result.seconds:.1f} s", flush=True)  # noqa: T201 - likewise
        text = result.outcome.text.splitlines()
        if text:
            print(f"    {text[0][:300]}", flush=True)  # noqa: T201 - likewise
        for problem in result.problems:
            print(f"    FAILED {problem}", flush=True)  # noqa: T201 - likewise
    campaign.close()
    failed = sum(bool(result.problems) for result in results)
    print(table(results))  # noqa: T201 - likewise
    print(f"{len(results)} runs, {failed} failures, {time.monotonic() - began:.0f} s, seed {seed}")  # noqa: T201 - likewise
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
