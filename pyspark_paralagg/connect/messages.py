"""Read messages of Spark Connect's protocol: the relations below a relation, and their identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Message: TypeAlias = Any
"""A protobuf message; its classes are made when pyspark's client is imported."""

TYPE = "paralagg"
"""The type of a relation that is a call of the shim in the server."""
_RELATION = "spark.connect.Relation"


def inputs(relation: Message) -> Iterator[Message]:
    """Yield the relations that ``relation`` reads."""
    kind = relation.WhichOneof("rel_type")
    for descriptor, value in getattr(relation, kind).ListFields() if kind else ():
        if descriptor.message_type is not None and descriptor.message_type.full_name == _RELATION:
            yield from value if hasattr(value, "append") else (value,)


def plan_ids(relation: Message) -> Iterator[int]:
    """Yield the id of ``relation`` and of every relation below it."""
    yield relation.common.plan_id
    for child in inputs(relation):
        yield from plan_ids(child)


def names(relation: Message) -> Iterator[str]:
    """Yield the user's names of what ``relation`` reads: aliases and tables."""
    kind = relation.WhichOneof("rel_type")
    if kind == "subquery_alias":
        yield relation.subquery_alias.alias
    elif kind == "read" and relation.read.HasField("named_table"):
        yield relation.read.named_table.unparsed_identifier.split(".")[-1].strip("`")
    else:
        for child in inputs(relation):
            yield from names(child)


def one_row() -> Message:
    """Return a relation of one row."""
    from pyspark.sql.connect import proto  # noqa: PLC0415 - needs grpc

    return proto.Relation(range=proto.Range(end=1, step=1))


def call_in(relation: Message) -> Iterator[Message]:
    """Yield the calls of the shim in ``relation``, the outermost first (``plugin``)."""
    from pyspark.sql.connect import proto  # noqa: PLC0415 - needs grpc

    if relation.WhichOneof("rel_type") == "extension" and relation.extension.type_url == TYPE:
        call = proto.WithRelations()
        call.ParseFromString(relation.extension.value)
        yield call
        for child in call.references:
            yield from call_in(child)
    for child in inputs(relation):
        yield from call_in(child)


def metrics_in(relation: Message) -> Iterator[str]:
    """Yield the names of the observed metrics in ``relation``, the outermost first."""
    if relation.WhichOneof("rel_type") == "collect_metrics":
        yield relation.collect_metrics.name
    for child in inputs(relation):
        yield from metrics_in(child)


def may_read_a_view(relation: Message) -> bool:
    """Return whether ``relation`` reads something by name that may be a temporary view."""
    kind = relation.WhichOneof("rel_type")
    if kind == "read" and relation.read.HasField("named_table"):
        return "." not in relation.read.named_table.unparsed_identifier
    return kind == "sql" or any(map(may_read_a_view, inputs(relation)))


def identity(relation: Message) -> bytes:
    """Return bytes that are equal for equal plans: ``relation`` with its plan ids numbered from 0."""
    numbers: dict[int, int] = {}
    copy = type(relation)()
    copy.CopyFrom(relation)

    def renumber(message: Message) -> None:
        for descriptor, value in message.ListFields():
            if descriptor.name == "plan_id":
                message.plan_id = numbers.setdefault(value, len(numbers))
            elif descriptor.name == "origin":  # the user's line
                message.ClearField("origin")
            elif descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
                for item in value if hasattr(value, "append") else (value,):
                    renumber(item)

    renumber(copy)
    serialized: bytes = copy.SerializeToString(deterministic=True)
    return serialized


def type_name(data_type: Message) -> str:
    """Return Spark's name of a type."""
    from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type  # noqa: PLC0415 - pyspark is optional

    return proto_schema_to_pyspark_data_type(data_type).simpleString()
