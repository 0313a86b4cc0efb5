"""A client of Spark Connect: a process beside the tests, because one process has classic or Connect sessions, not both.

It reads one call a line, ``{"call": "fixture", "args": [...]}``, runs that function of ``asked.py`` with a session, and
prints one line: ``{"value": ...}``, or ``{"error": ..., "code": ..., "kind": ...}``.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1], Path(__file__).parents[2]):
    sys.path.insert(0, str(folder))

import asked  # noqa: E402 - in this folder
from pyspark.sql import SparkSession  # noqa: E402 - as above

import pyspark_paralagg as ra  # noqa: E402 - as above

MARK = "paralagg reply "


def main(address: str) -> None:
    """Answer calls until the input ends."""
    spark = ra.configure(SparkSession.builder.remote(address)).getOrCreate()
    _reply({"value": "ready"})
    for line in sys.stdin:
        call = json.loads(line)
        try:
            reply = {"value": getattr(asked, call["call"])(spark, *call["args"])}
        except Exception as problem:  # noqa: BLE001 - the test decides what it means
            reply = {"error": traceback.format_exc(), "text": str(problem), "kind": type(problem).__name__}
            reply["code"] = getattr(problem, "code", None)
        _reply(reply)


def _reply(reply: object) -> None:
    sys.stdout.write(MARK + json.dumps(reply, default=str) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
