"""Acyclic graphs: levels of a topological order, and quantities and values over all levels of a product structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import edges_of, ends_of, ids_of, values_of, vertices_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def topological_order(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, level``: the number of edges on the longest path that ends at a vertex; every edge leads upwards.

    >>> ra.graph.topological_order(tasks).orderBy("level", "id").show()                   # doctest: +SKIP

    ``orderBy("level")`` is a topological order. Vertices of one level are a topological generation of networkx: they
    do not depend on each other.

    A cycle has no order: ``PARALAGG_NO_FIXPOINT`` when the result is read, which names the cycle. The arguments and
    errors are those of :func:`connected_components`. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst)
    return recursive_agg(
        vertices_of(rows, vertices).withColumn("level", F.lit(0).cast("bigint")),
        "id",
        {"level": "max"},
        step=lambda known: known.join(rows, F.col("id") == F.col("src")).select(
            F.col("dst").alias("id"), (F.col("level") + 1).alias("level")
        ),
        name="topological_order",
        backend=backend,
    )


def bill_of_materials(  # noqa: PLR0913 - names as in the other algorithms
    edges: DataFrame,
    sources: Any,  # noqa: ANN401 - see the docstring
    quantity: str = "quantity",
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``source, id, quantity``: how many of each part are in one of each source, over all levels.

    >>> ra.graph.bill_of_materials(parts, ["bike"], src="whole", dst="part").show()       # doctest: +SKIP

    edges
        One row for each part of a whole: ``src`` is the whole, ``dst`` the part. A row with a null is ignored, and
        parallel rows add up.
    sources
        The products: a DataFrame with a column ``id`` (or with one column), a list of ids, or one id. A source has a
        row of quantity 1 for itself.
    quantity
        The column with the number of parts in one whole. Integers give a ``bigint``, other numbers a ``double``.
    src, dst
        Other names of the columns of ``edges``.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. A whole that contains itself is ``PARALAGG_NO_FIXPOINT`` when the result is read, unless the quantities around
    the cycle multiply to less than 1: then the sums converge, and are returned. A missing column, or ids of different
    types, are ``PARALAGG_GRAPH_COLUMN``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, quantity)
    start = ids_of(sources, rows, "sources").selectExpr("id AS source", "id")
    return recursive_agg(
        start.withColumn("quantity", F.lit(1).cast(rows.schema["weight"].dataType)),
        ["source", "id"],
        {"quantity": "sum"},
        step=lambda known: known.join(rows, F.col("id") == F.col("src")).select(
            "source", F.col("dst").alias("id"), (F.col("quantity") * F.col("weight")).alias("quantity")
        ),
        name="bill_of_materials",
        backend=backend,
    )


def roll_up(  # noqa: PLR0913 - names as in the other algorithms
    edges: DataFrame,
    values: Any,  # noqa: ANN401 - see the docstring
    quantity: str | None = "quantity",
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, value``: a vertex's own value and, times their quantity, the values of all its parts.

    >>> ra.graph.roll_up(parts, {"screw": 0.1, "frame": 80}).show()                       # doctest: +SKIP

    values
        The own values, such as prices: a dict from ids to numbers, or a DataFrame with ``id`` and ``value``. Several
        rows of one id add up. Vertices that are not listed have 0. If values and quantities are integers, the result is
        a ``bigint``, else a ``double``.
    quantity
        The column with the number of parts in one whole. None: 1.

    The other arguments and errors are those of :func:`bill_of_materials`. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, quantity)
    rows = rows if quantity is not None else rows.withColumn("weight", F.lit(1).cast("bigint"))
    own = values_of(values, rows, "values", "value")
    value_type = (
        "double"
        if "double" in (own.schema["value"].dataType.typeName(), rows.schema["weight"].dataType.typeName())
        else "bigint"
    )
    own = own.withColumn("value", F.col("value").cast(value_type))
    return recursive_agg(
        own.union(ends_of(rows).withColumn("value", F.lit(0).cast(value_type))),
        "id",
        {"value": "sum"},
        step=lambda known: known.join(rows, F.col("id") == F.col("dst")).select(
            F.col("src").alias("id"), (F.col("value") * F.col("weight")).alias("value")
        ),
        name="roll_up",
        backend=backend,
    )
