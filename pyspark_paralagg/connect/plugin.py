"""Call the shim in a Spark Connect server: a call is a relation, which the server's relation plugin turns into a plan.

``ParalaggRelations.scala`` is the other side. A call has arguments as JSON and the plans of DataFrames, packed into
messages that Spark's protocol has anyway. What it returns is a DataFrame like any other: it is analysed when its schema
is asked for, and runs when its rows are read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pyspark_paralagg.connect.frames import frame_of, plan_of
from pyspark_paralagg.connect.messages import TYPE, call_in
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.connect.messages import Message

PLUGIN = (
    "spark.connect.extensions.relation.classes=org.apache.spark.sql.paralagg.connect.ParalaggRelations, with the jar"
)
_SERVERS: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


class ConnectShim:
    """The shim of the server of ``session``."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def reference(self, name: str, schema: StructType) -> DataFrame:
        """Return the DataFrame that a step receives."""
        return _call(self._session, {"call": "reference", "name": name, "schema": schema.json()})

    def analyse(self, steps: Mapping[str, DataFrame]) -> ConnectAnalysis:
        """Return the analysis of ``steps``."""
        return ConnectAnalysis(self._session, steps)


class ConnectAnalysis:
    """Analysed steps. The server analyses them anew for each call, with the same result."""

    def __init__(self, session: SparkSession, steps: Mapping[str, DataFrame]) -> None:
        self._session = session
        self._names, self._frames = list(steps), list(steps.values())

    def json(self) -> dict[str, Any]:
        """Return the Step JSON."""
        text = _text(self._session, {"call": "analyse", "names": self._names}, self._frames)
        step_json: dict[str, Any] = json.loads(text or "")
        return step_json

    def source(self, number: int) -> DataFrame:
        """Return a source of the steps."""
        return _call(self._session, {"call": "source", "names": self._names, "source": number}, self._frames)

    def fixpoint(
        self, plan: dict[str, Any], stratum: int, relation: str, sources: Sequence[DataFrame], reason: str
    ) -> DataFrame:
        """Return the lazy result of one relation of one stratum."""
        described = {"plan": json.dumps(plan), "stratum": stratum, "relation": relation, "reason": reason}
        arguments = {"call": "fixpoint", "names": self._names, "run": str(uuid4()), **described}
        return _call(self._session, arguments, [*self._frames, *sources])


def obstacle(session: SparkSession) -> str | None:
    """Return why the server's shim cannot run the Spark engine; None if it can."""
    answer = _server(session)
    if answer is None:
        return f"the Spark Connect server has no relation plugin of this package ({PLUGIN})"
    compiled_for, version, slots = answer.split("|")
    if version != VERSION:
        return (
            f"the Spark Connect server has the shim {version} for Spark {compiled_for}, but this process has {VERSION}"
        )
    return None if int(slots) > 0 else "the Spark Connect server has no slots for a gang, or dynamic allocation is on"


def server_shim(session: SparkSession) -> str | None:
    """Return the version of the server's shim, its Spark and the slots, as text; None without one."""
    answer = _server(session)
    return None if answer is None else "{1} for Spark {0}, {2} slots".format(*answer.split("|"))


def _server(session: SparkSession) -> str | None:
    """Return Spark version, version and slots of the server's shim; None if no plugin answers. Asked once a session."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - pyspark is optional

    if session not in _SERVERS:
        try:
            _SERVERS[session] = _text(session, {"call": "server"})
        except PySparkException:  # no plugin handles the message
            _SERVERS[session] = None
    return _SERVERS[session]


def described_by(df: DataFrame) -> dict[str, Any] | None:
    """Return how the outermost fixpoint in the plan of ``df`` was described, and its ``run``; None without one."""
    for call in call_in(plan_of(df)):
        arguments: dict[str, Any] = json.loads(call.root.local_relation.schema)
        if arguments["call"] == "fixpoint":
            return {**arguments, "plan": json.loads(arguments["plan"])}
    return None


def report_of(session: SparkSession, run: str) -> str | None:
    """Return the report of the last run of a fixpoint, as JSON; None before it."""
    return _text(session, {"call": "report", "run": run})


def free_indexes(session: SparkSession) -> None:
    """Free the indexes that queries have left, as ``Bridge.freeIndexes``."""
    _text(session, {"call": "freeIndexes"})


def recursion_in_sql(df: DataFrame) -> str | None:
    """Return the Plan of the recursion in SQL that ``df`` reads, as ``Bridge.recursionInSql``; None without one."""
    return _text(df.sparkSession, {"call": "recursionInSql"}, [df])


def answer_in_sql(df: DataFrame, answer: str) -> DataFrame:
    """Return the answer to a question about that recursion, as ``Bridge.answerInSql``."""
    return _call(df.sparkSession, {"call": "answerInSql", "answer": answer}, [df])


def _text(session: SparkSession, arguments: dict[str, Any], frames: Sequence[DataFrame] = ()) -> str | None:
    text: str | None = _call(session, arguments, frames).collect()[0]["value"]
    return text


def _call(session: SparkSession, arguments: dict[str, Any], frames: Sequence[DataFrame] = ()) -> DataFrame:
    def relation(empty: Message, client: Any) -> Message:  # noqa: ANN401 - as pyspark declares it
        from pyspark.sql.connect import proto  # noqa: PLC0415 - needs grpc

        call = proto.WithRelations()
        call.root.local_relation.schema = json.dumps(arguments)
        call.references.extend(plan_of(frame, client) for frame in frames)
        empty.extension.type_url, empty.extension.value = TYPE, call.SerializeToString()
        return empty

    return frame_of(session, relation, frames, is_observed=True)
