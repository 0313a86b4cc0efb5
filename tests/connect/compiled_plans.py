"""What the compiler makes of a fixture's steps: the same texts in a classic session and over Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rows import frame, read_table
from test_fixtures import FIXTURES, load

from pyspark_paralagg.api import dataframe
from pyspark_paralagg.backends.analysed import analysed, analyser_of
from pyspark_paralagg.compile.compile_step import compile_step
from pyspark_paralagg.errors import ParalaggError
from pyspark_paralagg.lowering.struct_type import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.protocol import Job

OF_SPARK = ("handle", "size_bytes", "name", "codegen")
"""What only one of the two analyses has: Catalyst's expressions, statistics, names of tables."""


def plans(spark: SparkSession, case: str) -> list[Any]:
    """Return the Plan of each recursion of a fixture, or the text of the error."""
    tables = {
        path.stem: frame(spark, *read_table(path))
        for path in sorted((FIXTURES / case).glob("*.tsv"))
        if not path.stem.startswith("expected")
    }
    found: list[Any] = []

    def execute(job: Job, _: str | None) -> dict[str, DataFrame]:
        found.append(_plan(job))
        return {
            s.relation.name: spark.createDataFrame(
                [], struct_of([(c.name, c.type) for c in s.relation.columns], s.base)
            )
            for s in job.seeds
        }

    before = dataframe.execute
    dataframe.execute = execute
    try:
        load(FIXTURES / case / "step.py").run(tables, backend=None)
    finally:
        dataframe.execute = before
    return found


def _plan(job: Job) -> Any:  # noqa: ANN401 - JSON
    found = analysed(job, analyser_of(job.session))
    step_json = found.json
    for source in step_json["sources"]:
        source["size"] = None
    try:
        compiled = compile_step(
            step_json,
            found.relations,
            join_order=job.join_order,
            mode=job.mode,
            assume=job.assume,
            max_iterations=job.max_iterations,
            on_limit=job.on_limit,
            tolerance=job.tolerance,
        )
    except ParalaggError as problem:
        return str(problem)
    return _common({"plan": compiled.plan.to_json(), "setting": step_json["setting"]})


def _common(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _common(item) for key, item in value.items() if key not in OF_SPARK}
    return [_common(item) for item in value] if isinstance(value, list | tuple) else value
