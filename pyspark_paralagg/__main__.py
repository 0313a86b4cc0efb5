"""`python -m pyspark_paralagg`: the doctor; `… java`, `… spark-home`, `… shim`: one part of it, for scripts.

The Makefile asks `java` before anything is installed, so that this runs on a bare Python.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.java import find_java
from pyspark_paralagg.session import doctor
from pyspark_paralagg.shim import build_jar, find_jar, find_sources
from pyspark_paralagg.spark_home import find_spark_home


def main() -> None:
    """Answer one question on standard output, or say on standard error what is wrong and exit with 1."""
    parser = argparse.ArgumentParser(prog="python -m pyspark_paralagg", description=__doc__.splitlines()[0])
    parser.add_argument(
        "part",
        nargs="?",
        default="doctor",
        choices=["doctor", "java", "spark-home", "shim"],
        help="all of it; the Java that Spark would start; Spark's folder; the shim's jar, compiled where it has to be",
    )
    parser.add_argument(
        "--into", type=Path, help="shim: compile into this folder instead, as paralagg-spark<minor>.jar"
    )
    chosen = parser.parse_args()
    try:
        sys.stdout.write(f"{_answer(chosen.part, chosen.into)}\n")
    except EnvironmentProblem as problem:
        sys.exit(str(problem))


def _answer(part: str, into: Path | None) -> object:
    if part == "java":
        return find_java().description
    if part == "spark-home":
        return find_spark_home().home
    if part == "doctor":
        return doctor()
    if into is None:
        return find_jar()
    spark = find_spark_home()
    jar = into / f"paralagg-spark{spark.minor}.jar"
    build_jar(spark, find_sources(spark.minor), jar)
    return jar


if __name__ == "__main__":
    main()
