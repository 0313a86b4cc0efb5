"""What does a Python package bring along? Dependencies of what is installed here, with their size on disk.

    python -m examples.packages [--out demo-output]        (or: make example NAME=packages)

The data are real: the metadata of the Python environment that runs this, read with `importlib.metadata`. Extras that
were not asked for and requirements of other systems are left out, as pip leaves them out.

Look at what is *not* done: sizes are not summed along the recursion. Two packages may need the same third one, and a
sum along the paths would count it twice. So the recursion collects the *set* of what is needed, in which everything is
there once, and an ordinary groupBy adds up the sizes.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from examples import charts, stage

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


def read_installed() -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """(package, bytes on disk) of everything installed, and (package, needs) between them."""
    found = {canonicalize_name(package.name): package for package in metadata.distributions()}
    sizes = [(name, bytes_of(package)) for name, package in found.items()]
    needs = set()
    for name, package in found.items():
        for line in package.requires or []:
            requirement = Requirement(line)
            needed = canonicalize_name(requirement.name)
            if needed in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                needs.add((name, needed))
    return sorted(sizes), sorted(needs)


def bytes_of(package: metadata.Distribution) -> int:
    """What the package's files take on disk; 0 where it does not list them."""
    paths = (Path(str(file.locate())) for file in package.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())


def all_needs(needs: DataFrame) -> DataFrame:
    """(package, needs): what each package needs, directly or by way of others; itself only if there is a cycle."""
    more = needs.toDF("other", "needed")
    return needs.recursive_agg(
        keys=["package", "needs"],
        step=lambda known: known.join(more, known.needs == more.other).select("package", more.needed.alias("needs")),
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% What is installed, and who needs whom.
    installed, required = read_installed()
    sizes = spark.createDataFrame(installed, "package string, bytes bigint")
    needs = spark.createDataFrame(required, "package string, needs string")

    # %% Everything that a package needs in the end, and what it weighs together.
    everything = all_needs(needs)
    needed = sizes.withColumnRenamed("package", "needs")
    others = F.col("needs") != F.col("package")  # where there is a cycle, a package needs itself
    brought = everything.filter(others).join(needed, "needs").groupBy("package").agg(
        F.count("*").alias("packages"), F.sum("bytes").alias("brought")
    )  # fmt: skip
    found = sizes.join(brought, "package", "left").fillna(0, ["packages", "brought"]).toPandas()
    found = found.sort_values("bytes", ascending=False)
    found["total"] = found.bytes + found.brought
    largest = found.nlargest(18, "total")
    print(
        f"{len(found)} packages are installed here, {found.bytes.sum() / 1e6:,.0f} MB; {len(required)} requirements\n"
    )
    print_packages(largest)

    # %% The other way round: who would miss a package? The same rows, grouped by the other column.
    missed = everything.filter(others).groupBy("needs").count().orderBy(F.desc("count"), "needs").limit(5)
    print("\nNeeded by most others: " + ", ".join(f"{name} ({count})" for name, count in missed.collect()))

    # %% As a picture.
    picture = out / "packages.png"
    charts.draw_sizes(picture, largest)
    return picture


def print_packages(largest: pd.DataFrame) -> None:
    """Print for each package what it takes by itself, and with all that it needs."""
    print(f"  {'package':<24}{'itself':>11}{'needs':>8}{'together':>14}\n  {'─' * 57}")
    for name, own, needs, total in largest[["package", "bytes", "packages", "total"]].itertuples(index=False):
        print(f"  {name:<24}{own / 1e6:>8,.1f} MB{needs:>8}{total / 1e6:>11,.1f} MB")


if __name__ == "__main__":
    stage.run(__doc__, tell)
