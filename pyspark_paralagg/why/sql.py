"""Ask about a row of a recursion in SQL: its Program comes from the query's plan, and the shim keeps its sources."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.compile_step import CompiledStep
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError
from pyspark_paralagg.plan import EXTRAS
from pyspark_paralagg.plan.read import program_from_json
from pyspark_paralagg.session.attach import bridge, frame_of
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.program import Program
    from pyspark_paralagg.program.question import Question


@dataclass(frozen=True)
class SqlRecursion:
    """The recursion of a query: its Program, and the number of its sources."""

    df: DataFrame
    program: Program
    sources: int
    broadcast_max_bytes: int

    @property
    def name(self) -> str:
        """The relation that the query reads."""
        return self.program.name

    @property
    def keys(self) -> dict[str, str]:
        """The types of its keys."""
        return {k.name: k.type for k in self.program.relation(self.name).keys}

    def ask(self, question: Question) -> DataFrame:
        """Return the answer to ``question``; lazy. Raises ``UnsupportedError`` for values that are no words."""
        packed = next((c.name for r in self.program.relations for c in r.columns if c.packed), None)
        if packed is not None:
            message = f"rows of a recursion in SQL are explained without arrays and structs, which {packed!r} has"
            hint = "write the recursion with recursive_agg"
            raise UnsupportedError("PARALAGG_WHY_UNSUPPORTED", message, value=packed, place="ra.why", hint=hint)
        start = time.perf_counter()
        program = question.rewrite(self.program)
        plan = compile_program(program, self.broadcast_max_bytes)
        compiled = CompiledStep(program, plan, self.broadcast_max_bytes, time.perf_counter() - start)
        strata = [
            {"relations": names, "plan": json.dumps(compiled.to_json(part))}
            for names, part in compiled.strata(self.sources, [question.name])
        ]
        session, answer = self.df.sparkSession, json.dumps({"strata": strata, "result": question.name})
        if is_connect(session):
            from pyspark_paralagg.connect.plugin import answer_in_sql  # noqa: PLC0415 - needs grpc

            return answer_in_sql(self.df, answer)
        return frame_of(bridge(session).answerInSql(_jdf(self.df), answer), session)


def sql_recursion_of(df: DataFrame) -> SqlRecursion | None:
    """Return the recursion in SQL that ``df`` reads; None without one, and if there are several.

    Raises ``UnsupportedError`` ``PARALAGG_WHY_UNSUPPORTED`` for other DataFrames over Spark Connect, whose plans are in
    the server.
    """
    text = _in_server(df) if is_connect(df) else _in_session(df)
    if text is None:
        return None
    found = json.loads(text)
    plan = json.loads(found["plan"]) if isinstance(found["plan"], str) else found["plan"]
    extras = plan[EXTRAS]
    return SqlRecursion(df, program_from_json(extras["program"]), found["sources"], extras["broadcast_max_bytes"])


def _in_session(df: DataFrame) -> str | None:
    try:
        text: str | None = bridge(df.sparkSession).recursionInSql(_jdf(df))
    except EnvironmentProblem:
        return None
    return text


def _in_server(df: DataFrame) -> str:
    from pyspark_paralagg.connect.plugin import obstacle, recursion_in_sql  # noqa: PLC0415 - needs grpc

    lacking = obstacle(df.sparkSession)
    text = recursion_in_sql(df) if lacking is None else None
    if text is None:
        raise UnsupportedError(
            "PARALAGG_WHY_UNSUPPORTED",
            "over Spark Connect, further operations on a recursion are not explained, and this query of SQL reads no "
            "recursion, or several"
            if lacking is None
            else f"over Spark Connect, results of SQL are explained by the server's shim, and {lacking}",
            value="Spark Connect",
            place="ra.why",
            hint="pass the result of recursive_agg or of a text as the call returned it, or ask in a classic session",
        )
    return text


def _jdf(df: DataFrame) -> Any:  # noqa: ANN401 - a py4j object
    return df._jdf  # noqa: SLF001 - pyspark has no public way to the JVM DataFrame
