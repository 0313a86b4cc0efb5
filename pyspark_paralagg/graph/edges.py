"""Read the arguments of all algorithms: edges, vertices and sources become DataFrames with fixed column names.

An algorithm calls ``edges_of`` first, so everything after it has ``src``, ``dst`` and ``weight``, one type of ids and
no nulls. Nothing runs here: the checks read schemas only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import explain_as
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.session.arguments import check_dataframe, not_a_dataframe, type_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BROADCAST_ROWS = 1 << 20  # ids of 8 bytes in a hashed relation: about 32 MB
SEVERAL = "it runs several recursions, one after the other"
ENDLESS = "each of its iterations replaces all values, so rows derive from rows that are gone"
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
INTEGERS = tuple(_BITS)


def edges_of(edges: DataFrame, src: str, dst: str, weight: str | None = None, *, directed: bool = True) -> DataFrame:
    """Return the columns ``src``, ``dst`` and, if there is a weight, ``weight`` as ``bigint`` or ``double``.

    A row with a null among them is no edge. Undirected edges are returned in both directions, a self-loop once.
    """
    types = _types(edges, "edges")
    for name in (src, dst, *(() if weight is None else (weight,))):
        _check_column(name, types, "edges")
    _check_type(types[dst], dst, types[src], "edges")
    columns = [f"{quoted(src)} AS src", f"{quoted(dst)} AS dst"]
    if weight is not None:
        columns.append(f"cast({quoted(weight)} AS {_number_type(types[weight], f'weight {weight}')}) AS weight")
    rows = _without_nulls(edges.selectExpr(*columns))
    if not directed:
        rows = rows.union(rows.where("src != dst").selectExpr("dst AS src", "src AS dst", *rows.columns[2:]))
    return rows.alias("edges")  # the name in messages and proofs


def ends_of(edges: DataFrame) -> DataFrame:
    """Return the ends of all edges as ``id``, without duplicates; ``edges`` has the columns of ``edges_of``."""
    return vertices_of(edges, None)


def vertices_of(edges: DataFrame, vertices: DataFrame | None) -> DataFrame:
    """Return ``id``: the ends of ``edges`` and the ids of ``vertices``, without duplicates or nulls."""
    return all_ids(edges, vertices).distinct()  # one aggregation of all, not one of each part


def all_ids(edges: DataFrame, vertices: DataFrame | None) -> DataFrame:
    """Return ``id`` as :func:`vertices_of` does, with repetitions: for callers that aggregate them with other rows."""
    ids = edges.selectExpr("src AS id").union(edges.select("dst"))
    return ids if vertices is None else ids.union(_ids(vertices, edges, "vertices"))


def marked_vertices_of(edges: DataFrame, vertices: DataFrame | None) -> DataFrame:
    """Return ``id, is_end``, the rows of ``vertices_of``: 1 for ends of ``edges``, 0 for the other vertices.

    One aggregation gives both kinds; an anti join of the vertices with the ends would aggregate the ends twice.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    ids = all_ids(edges, None).selectExpr("id", "1L AS is_end")
    if vertices is not None:
        ids = ids.union(_ids(vertices, edges, "vertices").selectExpr("id", "0L AS is_end"))
    return ids.groupBy("id").agg(F.max("is_end").alias("is_end"))


def ids_of(ids: Any, edges: DataFrame, argument: str) -> DataFrame:  # noqa: ANN401 - see below
    """Return ``ids`` as a DataFrame ``id`` in the type of ``edges.src``, without duplicates or nulls.

    ``ids`` is a DataFrame with a column ``id`` or with one column, an iterable of ids, or one id.
    """
    return _ids(ids, edges, argument).distinct()


def values_of(values: Any, edges: DataFrame, argument: str, column: str) -> DataFrame:  # noqa: ANN401 - see below
    """Return ``values``, a dict or a DataFrame with these columns, as a DataFrame of ``id`` and ``column``.

    Integers are ``bigint``, other numbers ``double``.
    """
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - likewise

    id_type = _types(edges, "edges")["src"]
    if isinstance(values, DataFrame):
        types = _types(values, argument)
        for name in ("id", column):
            _check_column(name, types, argument)
        _check_type(types["id"], "id", id_type, argument)
        value_type = _number_type(types[column], f"column {column} of {argument}")
        return _without_nulls(values.selectExpr("id", f"cast({quoted(column)} AS {value_type}) AS {column}"))
    if not isinstance(values, dict):
        raise not_a_dataframe(argument, values, argument)
    for key, value in values.items():
        _check_id(key, id_type, argument)
        if key is None or isinstance(value, bool) or not isinstance(value, Real | Decimal):
            raise bad_argument(argument, {key: value}, "a dict from ids to numbers")
    value_type, number = ("bigint", int) if all(isinstance(v, Integral) for v in values.values()) else ("double", float)
    pairs = F.create_map(*(F.lit(part) for pair in values.items() for part in (pair[0], number(pair[1]))))
    literals = pairs.cast(f"map<{id_type}, {value_type}>")
    return edges.sparkSession.range(1).select(F.explode(literals).alias("id", column))


def kept(rows: DataFrame) -> DataFrame:
    """Run ``rows`` and keep the result by ``localCheckpoint``; joins broadcast it if it has few rows.

    Spark cannot know how many they are: the plan's estimate for a recursion is too large, so a join of all edges with
    them would exchange and sort the edges (17 s for 7.6 million, against 3 s).
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    found = rows.localCheckpoint()
    return F.broadcast(found) if found.count() <= BROADCAST_ROWS else found


def unexplained(result: DataFrame, algorithm: str, cause: str) -> DataFrame:
    """Return ``result``, whose rows ``ra.why`` and ``ra.why_not`` refuse to explain for the ``cause``."""

    def refuse() -> DataFrame:
        message = f"rows of ra.graph.{algorithm} are not explained: {cause}"
        hint = "write the part that you ask about with recursive_agg"
        raise UnsupportedError("PARALAGG_WHY_UNSUPPORTED", message, value=algorithm, place="ra.why", hint=hint)

    explain_as(result, refuse)
    return result


def bad_argument(argument: str, value: object, expected: str) -> UsageError:
    """Return ``PARALAGG_BAD_OPTION`` for an argument of an algorithm."""
    hint = f"set {argument} to {expected}"
    message = f"{argument}={value!r} is not valid"
    return UsageError("PARALAGG_BAD_OPTION", message, value=value, place=argument, hint=hint)


def check_count(argument: str, value: object) -> None:
    """Raise ``PARALAGG_BAD_OPTION`` unless ``value`` is a whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise bad_argument(argument, value, "a whole number of at least 1")


def check_number(argument: str, value: object, expected: str, fits: Callable[[float], bool]) -> None:
    """Raise ``PARALAGG_BAD_OPTION`` unless ``value`` is a number that ``fits``."""
    if isinstance(value, bool) or not isinstance(value, Real) or not fits(float(value)):
        raise bad_argument(argument, value, expected)


def _types(df: DataFrame, argument: str) -> dict[str, str]:
    check_dataframe(argument, df, argument)
    return {field.name: field.dataType.simpleString() for field in df.schema}


def _check_column(name: object, types: dict[str, str], argument: str) -> None:
    if name not in types:
        hint = did_you_mean(str(name), types)
        raise UsageError("PARALAGG_GRAPH_COLUMN", f"{argument} has no column {name!r}", value=name, hint=hint)


def _check_type(found: str, name: str, expected: str, argument: str) -> None:
    if found != expected:
        message = f"{argument}.{name} is {found}, but the ids of the edges are {expected}"
        hint = f'cast it: {argument}.withColumn("{name}", F.col("{name}").cast("{expected}"))'
        raise UsageError("PARALAGG_GRAPH_COLUMN", message, value=name, place=argument, hint=hint)


def _number_type(found: str, name: str) -> str:
    if found in INTEGERS:
        return "bigint"
    if found in {"float", "double"} or found.startswith("decimal"):
        return "double"
    hint = "name a column of numbers, or cast it"
    raise UsageError("PARALAGG_GRAPH_COLUMN", f"the {name} is {found}, not a number", value=name, hint=hint)


def _ids(ids: Any, edges: DataFrame, argument: str) -> DataFrame:  # noqa: ANN401 - as ids_of
    from pyspark.sql import DataFrame  # noqa: PLC0415 - this module loads without pyspark
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - likewise

    id_type = _types(edges, "edges")["src"]
    if isinstance(ids, DataFrame):
        types = _types(ids, argument)
        name = next(iter(types)) if len(types) == 1 else "id"
        _check_column(name, types, argument)
        _check_type(types[name], name, id_type, argument)
        return _without_nulls(ids.selectExpr(f"{quoted(name)} AS id"))
    if ids is None or type_name(ids).startswith(("pandas", "pyarrow")):
        raise not_a_dataframe(argument, ids, argument)
    values = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    for value in values:
        _check_id(value, id_type, argument)
    literals = F.array(*(F.lit(value) for value in values)).cast(f"array<{id_type}>")
    one = edges.sparkSession.range(1)
    return _without_nulls(one.select(F.explode(literals).alias("id")))


def _check_id(value: Any, id_type: str, argument: str) -> None:  # noqa: ANN401 - what the user has passed
    """Raise ``UsageError`` if a cast to the type of the ids would make another id of ``value``."""
    is_int = hasattr(value, "__index__") and not isinstance(value, bool)
    bits = _BITS.get(id_type)
    if bits is not None:
        fits = is_int and -(1 << bits - 1) <= value.__index__() < 1 << bits - 1
    elif id_type.startswith("decimal"):
        fits = is_int or isinstance(value, Decimal)
    elif id_type in {"double", "float"}:
        fits = is_int or (isinstance(value, Real) and not isinstance(value, bool))
    else:
        fits = isinstance(value, bool) if id_type == "boolean" else not isinstance(value, Real | Decimal)
    if not fits and value is not None:
        message = f"{argument} has {value!r}, but the ids of the edges are {id_type}"
        hint = f"pass ids of this type, or a DataFrame with a column id of {id_type}"
        raise UsageError("PARALAGG_GRAPH_COLUMN", message, value=value, place=argument, hint=hint)


def _without_nulls(rows: DataFrame) -> DataFrame:
    """Return the rows without a null; ``dropna`` would drop NaN, too."""
    return rows.where(" AND ".join(f"{quoted(c)} IS NOT NULL" for c in rows.columns))
