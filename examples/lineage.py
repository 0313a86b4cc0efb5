"""Which dashboards break if I drop this column? Lineage of columns through the SQL of a warehouse's views.

    python -m examples.lineage [--out demo-output]        (or: make example NAME=lineage)

The SQL is that of `examples.warehouse`: six tables of a web shop, seven views, six dashboards. sqlglot reads it and
says which column a column is made of *directly*: by its expression, or because the whole SELECT filters, joins or
groups by it. Common table expressions are views in between. What follows from what, over any number of views, is the
recursion. Other dashboards may break too, but come back once their views no longer mention the column.

Look at ``min_by``: next to the distance it keeps the column before the last, so the way from a column to a dashboard
can be read back. All columns are asked at once, since the column that is asked about is part of the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

import pyspark_paralagg as ra
from examples import layers, stage
from examples.warehouse import TABLES, VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

ASKED = "orders.discount"
GOLD, EMBER = "#ffd166", "#ff8f5a"


def direct_lineage() -> list[tuple[str, str]]:
    """(column, made): ``made`` is computed from ``column`` in one SELECT; both are named table.column."""
    schema, edges = dict(TABLES), set()
    for view, sql in VIEWS.items():
        query = qualify(parse_one(sql, dialect="spark"), schema=schema, dialect="spark")
        schema[view] = dict.fromkeys(query.named_selects, "unknown")
        for scope in traverse_scope(query):
            made_here = f"{view}.{scope.expression.parent.alias}" if scope.is_cte else view
            edges.update(_edges_of(scope, view, made_here))
    return sorted(edges)


def _edges_of(scope: Scope, view: str, made_here: str) -> Iterator[tuple[str, str]]:
    for column in scope.columns:
        source = scope.sources[column.table]
        table = source.name if isinstance(source, exp.Table) else f"{view}.{source.expression.parent.alias}"
        # Of an output it is a part of that output; in WHERE, ON or GROUP BY it decides on all rows, so on all outputs.
        outputs = [o for o in scope.expression.selects if any(part is column for part in o.find_all(exp.Column))]
        for output in outputs or scope.expression.selects:
            yield f"{table}.{column.name}", f"{made_here}.{output.alias_or_name}"


def impact(lineage: DataFrame) -> DataFrame:
    """(asked, column, steps, via): every column that depends on ``asked``, in how many steps, and the last but one."""
    asked = lineage.select(F.col("column").alias("asked"), F.col("made").alias("column"), "steps", "via")
    return asked.recursive_agg(
        keys=["asked", "column"],
        aggs={"steps": "min", "via": ra.min_by("steps")},
        step=lambda known: known.join(lineage, known.column == lineage.column).select(
            known.asked, lineage.made.alias("column"), (known.steps + 1).alias("steps"), lineage.column.alias("via")
        ),
    )


def tell(spark: SparkSession, out: Path) -> Path:
    # %% What is made of what in one SELECT.
    edges = direct_lineage()
    print(f"{len(TABLES)} tables, {len(VIEWS)} views: {len(edges)} columns are made of a column directly\n")
    lineage = spark.createDataFrame(edges, "column string, made string")
    lineage = lineage.withColumns({"steps": F.lit(1), "via": F.col("column")})

    # %% What depends on what in the end; of this, the columns of the tables and the dashboards.
    found = impact(lineage).toPandas()
    in_tables = found[found.asked.str.split(".").str[0].isin(list(TABLES))]
    print_impact(in_tables[in_tables.column.str.startswith("dash_")])

    # %% The ways from one column to the dashboards.
    affected = found[found.asked == ASKED].set_index("column")
    print(f"\nFrom {ASKED} to\n")
    for dashboard in sorted(name for name in affected.index if name.startswith("dash_")):
        print(f"  {' ← '.join(way_back(dashboard, affected))}")

    # %% As a picture.
    picture = out / "lineage.png"
    draw_impact(picture, edges, set(affected.index))
    return picture


def way_back(column: str, affected: pd.DataFrame) -> list[str]:
    """The columns from ``column`` back to the one that is asked about."""
    way = [column]
    while way[-1] in affected.index:
        way.append(affected.via[way[-1]])
    return way


def print_impact(found: pd.DataFrame) -> None:
    """Print for each column of a table the dashboards that depend on it; those that nobody needs last."""
    dashboards = found.assign(dashboard=found.column.str.extract(r"dash_(\w+)\.", expand=False))
    by_column = dashboards.groupby("asked").dashboard.agg(lambda names: sorted(set(names)))
    columns = [f"{table}.{column}" for table, columns in TABLES.items() for column in columns]
    print(f"  {'drop this column':<24}{'and these dashboards are lost'}\n  {'─' * 76}")
    for column in sorted(columns, key=lambda name: (-len(by_column.get(name, [])), name)):
        print(f"  {column:<24}{', '.join(by_column.get(column, ['(none)']))}")


def draw_impact(file: Path, edges: list[tuple[str, str]], affected: set[str]) -> None:
    """Draw tables and views; in colour what depends on the column that is asked about, with the columns that do."""
    touched: dict[str, list[str]] = {}
    arrows: dict[tuple[str, str], str] = {}
    for src, dst in edges:
        (table, column), (made_here, made) = src.rsplit(".", 1), dst.rsplit(".", 1)
        for name, part, full in ((table, column, src), (made_here, made, dst)):
            touched.setdefault(name, []).extend([part] if full in affected | {ASKED} else [])
        if src in affected | {ASKED} or (table, made_here) not in arrows:
            arrows[table, made_here] = GOLD if src in affected | {ASKED} else layers.QUIET
    boxes = []
    for table, columns in touched.items():
        names = sorted(set(columns))
        text = f"{names[0]} and {len(names) - 1} more" if len(names) > 2 else ", ".join(names)  # noqa: PLR2004 - a line
        colour = layers.QUIET if not names else EMBER if table.startswith("dash_") else GOLD
        boxes.append(layers.Box(table, f"{table}\n{text}" if text else table, colour))
    pictured = [layers.Arrow(src, dst, colour=colour) for (src, dst), colour in arrows.items()]
    subtitle = f"Coloured: tables, views and dashboards with a column that depends on {ASKED}"
    layers.draw(file, boxes, pictured, "Which dashboards break?", subtitle, "Views of a web shop, invented")


if __name__ == "__main__":
    stage.run(__doc__, tell)
