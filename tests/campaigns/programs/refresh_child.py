"""``python -m campaigns.programs.refresh_child FOLDER``: refresh the shortest paths there, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

from lake import Lake, delta_session


def main() -> None:
    """Say when the session is there, then refresh."""
    spark = delta_session()
    spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    Lake(spark, sys.argv[1]).shortest("dist").refresh()
    print("done", flush=True)


if __name__ == "__main__":
    main()
