"""Install the wheel with each supported Spark in a clean environment, and run a recursion there from the wheel's jar.

``make try-wheel`` runs it after ``make wheel``. Neither sources nor a cache of compiled jars are there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LINES = """
import pyspark, pyspark_paralagg as ra
from pyspark.sql import SparkSession
spark = ra.configure(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
roads = spark.createDataFrame([(1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 1, 0)], "src long, dst long, km long")
start = spark.sql("SELECT 1 AS node, 0 AS dist")
dist = start.recursive_agg("node", {"dist": "min"}, backend="spark", step=lambda d: d.join(roads, d.node == roads.src)
    .selectExpr("dst AS node", "dist + km AS dist"))
assert sorted(map(tuple, dist.collect())) == [(1, 0), (2, 7), (3, 8)]
print(pyspark.__version__, ra.report(dist).backend, sorted(map(tuple, dist.collect())))
"""


def main() -> int:
    """Try the wheel with the Sparks that the command line names; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="+", help="such as 3.5.9")
    parser.add_argument("--wheel", type=Path, default=next(iter((ROOT / "dist").glob("*.whl")), None))
    options = parser.parse_args()
    if options.wheel is None:
        parser.error("there is no wheel in dist: run make wheel")
    return max(_try(options.wheel, version) for version in options.versions)


def _try(wheel: Path, version: str) -> int:
    """Return 0 if the lines run with this Spark."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, f"{wheel}", f"pyspark=={version}"], check=True)  # noqa: S603 - fixed
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME")}
        done = subprocess.run(  # noqa: S603 - fixed
            [python, "-c", LINES],
            cwd=folder,
            env={**environment, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"},
            check=False,
            capture_output=True,
            text=True,
        )
        compiled = list(Path(folder, "cache").rglob("*.jar"))
    is_right = done.returncode == 0 and not compiled
    shown = done.stdout.strip() if is_right else f"{version} fails: {compiled or done.stderr[-2000:]}"
    sys.stdout.write(f"{shown}   ({time.monotonic() - started:.0f} s)\n")
    sys.stdout.flush()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
