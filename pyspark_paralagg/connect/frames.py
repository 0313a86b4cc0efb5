"""Go from a Connect DataFrame to its message and back; pyspark has no public way to either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.connect.messages import Message


def plan_of(df: DataFrame, client: Any = None) -> Message:  # noqa: ANN401 - pyspark has no type for its client
    """Return the relation of ``df``."""
    frame: Any = df  # pyspark declares the class for both kinds of sessions
    return frame._plan.plan(client or frame.sparkSession._client)  # noqa: SLF001 - as the module says


def frame_of(
    session: SparkSession,
    relation: Callable[[Any, Any], Message],
    origins: Sequence[DataFrame],
    *,
    is_observed: bool = False,
) -> DataFrame:
    """Return the DataFrame of a relation, which keeps ``origins`` alive, the DataFrames in it.

    ``relation`` gets a relation with a new plan id, to fill or to replace, and the client. With ``is_observed`` a run
    brings back the metrics of ``origins``. Spark's client refuses a join of two DataFrames that bring back the same.
    """
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame  # noqa: PLC0415 - needs grpc
    from pyspark.sql.connect.plan import LogicalPlan  # noqa: PLC0415 - likewise

    class Made(LogicalPlan):
        kept = tuple(origins)

        def plan(self, session: Any) -> Message:  # noqa: ANN401 - as pyspark declares it
            return relation(self._create_proto_relation(), session)

        @property
        def observations(self) -> dict[str, Any]:
            frames: tuple[Any, ...] = self.kept if is_observed else ()
            return {k: v for frame in frames for k, v in frame._plan.observations.items()}  # noqa: SLF001

    return ConnectFrame(Made(None), session)  # type: ignore[arg-type]  # pyspark declares both as one class
