"""How many species lie below each taxon? The tree of life, rolled up, and how deep it is.

    python -m examples.taxonomy [--out demo-output]        (or: make demo-taxonomy)

The NCBI taxonomy of September 2024 (public domain), 90 MB, fetched once. Two recursions over its 2.6 million rows
(taxon, parent, rank, name): `count_species` goes from the leaves to the root and
sums, `measure_depth` from the root to the leaves. Then two tables and a picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

import pyspark_paralagg as ra  # adds DataFrame.recursive_agg
from examples import data, stage, sunburst

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

LARGE = 1_000  # species that a taxon needs to be drawn


def count_species(taxa: DataFrame) -> DataFrame:
    """(taxon, species, below): species in the subtree of each taxon, and its number of taxa, itself included."""
    own = taxa.select(
        "taxon", F.expr("if(rank = 'species', 1L, 0L)").alias("species"), F.lit(1).cast("bigint").alias("below")
    )
    edges = taxa.select(F.col("taxon").alias("child"), "parent").filter("parent is not null")
    return own.recursive_agg(
        keys="taxon",
        aggs={"species": "sum", "below": "sum"},
        step=lambda size: size.join(edges, size.taxon == edges.child).select(
            edges.parent.alias("taxon"), size.species, size.below
        ),
    )


def measure_depth(taxa: DataFrame) -> DataFrame:
    """(taxon, depth): steps from the root, which has depth 0."""
    edges = taxa.select(F.col("taxon").alias("child"), "parent")
    return (
        taxa.filter("parent is null")
        .select("taxon", F.lit(0).alias("depth"))
        .recursive_agg(
            keys="taxon",
            aggs={"depth": "min"},
            step=lambda above: above.join(edges, above.taxon == edges.parent).select(
                edges.child.alias("taxon"), (above.depth + 1).alias("depth")
            ),
        )
    )


def lineage(taxa: DataFrame, taxon: int) -> DataFrame:
    """(taxon,): ``taxon`` and everything above it; without an aggregate, so a set."""
    edges = taxa.select(F.col("taxon").alias("child"), "parent").filter("parent is not null")
    return (
        taxa.filter(F.col("taxon") == taxon)
        .select("taxon")
        .recursive_agg(
            keys="taxon",
            step=lambda below: below.join(edges, below.taxon == edges.child).select(edges.parent.alias("taxon")),
        )
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% All taxa that have a name.
    taxa = spark.read.parquet(str(data.taxonomy() / "taxa.parquet"))

    # %% Species, summed up to the root. Whatever is above a large taxon is large: what is kept is a tree.
    sizes = count_species(taxa)
    large = sizes.filter(F.col("species") >= LARGE).join(taxa, "taxon").toPandas()
    root = large.loc[large.parent.isna()].iloc[0]
    print(f"The tree of life: {root.species:,} species in {root.below:,} taxa  ({data.NCBI_ATTRIBUTION})\n")
    print_largest(large)

    # %% Depth, from the root down; and all that lies above the deepest taxon.
    depths = measure_depth(taxa)
    deepest = depths.join(taxa, "taxon").orderBy(F.desc("depth"), "taxon").first()
    above = lineage(taxa, deepest.taxon).join(depths, "taxon").join(taxa, "taxon").orderBy("depth").toPandas()
    print(f"The deepest lineage, {deepest.depth} steps below the root\n")
    print_lineage(above)

    # %% What was run, by whom, and how it went.
    print(f">>> ra.explain(sizes)\n{ra.explain(sizes)}\n\n>>> ra.report(sizes)\n{ra.report(sizes)}")

    # %% As a picture.
    picture = out / "taxonomy.png"
    sunburst.draw_tree(picture, large)
    return picture


def print_largest(large: pd.DataFrame, rows: int = 15) -> None:
    """Print the phyla with the most species."""
    phyla = large[large["rank"] == "phylum"].nlargest(rows, "species")
    print(f"  {'phylum':<24}{'species':>12}{'share':>9}{'taxa':>12}\n  {'─' * 57}")
    for name, species, below in zip(phyla["name"], phyla.species, phyla.below, strict=True):
        share = species / large.species.max()
        print(f"  {name:<24}{species:>12,}{share:>9.1%}{below:>12,}")


def print_lineage(above: pd.DataFrame) -> None:
    """Print one line for each taxon, from the root down."""
    for depth, rank, name in zip(above.depth, above["rank"], above["name"], strict=True):
        print(f"  {depth:>3}  {'' if rank == 'no rank' else rank:<16} {name}")


if __name__ == "__main__":
    stage.run(__doc__, tell)
