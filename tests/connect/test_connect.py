"""Recursion over Spark Connect, on a server without a jar of this project: the step is analysed in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import test_graph
from caller import FailedError
from compiled_plans import plans
from test_fixtures import CASES

if TYPE_CHECKING:
    from caller import Client
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

CLOSURE = "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z), x < 3."


@pytest.mark.rotates(runs=4)
@pytest.mark.parametrize("case", CASES)
def test_step_has_the_same_plan_as_in_a_classic_session(spark: SparkSession, client: Client, case: str) -> None:
    assert client.ask("plans", case) == json.loads(json.dumps(plans(spark, case)))


@pytest.mark.rotates(runs=8)
@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_fixture(client: Client, case: str, tasks: int) -> None:
    client.ask("fixture", case, tasks)


@pytest.mark.slow("plain DataFrames run a query a round")
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("udf", "a Python UDF cannot run inside the loop (in step of r)"),
        (
            "function",
            "the function upper(string), which Python does not analyse, cannot run inside the loop (in step of r)",
        ),
        ("view", "a temporary view of the step's relation cannot run inside the loop (in step of r)"),
        ("argument", "a subquery, or spark.sql with a DataFrame as an argument, in the step cannot run"),
    ],
)
def test_step_that_python_cannot_analyse_runs_on_plain_dataframes(client: Client, what: str, reason: str) -> None:
    assert client.ask("refused", what).startswith(f"dataframe: {reason}")


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("reads rows", "SparkRuntimeException", "[PARALAGG_REFERENCE_OUTSIDE_STEP]"),
        ("outer join", "UnsupportedError", "PARALAGG_STEP_UNSUPPORTED: a full outer join"),
        ("limit", "PythonException", "FixpointError: PARALAGG_LIMIT_REACHED: r: "),
        ("assumption", "SparkRuntimeException", "[PARALAGG_ASSUMPTION_VIOLATED] `w` >= 0 is assumed, but a row has -2"),
        ("unknown column", "UsageError", "PARALAGG_ASSUME_COLUMN"),
        ("more tasks than slots", "UsageError", "PARALAGG_MPI_TOO_MANY_RANKS: 3 ranks need as many slots"),
    ],
)
def test_misuse_is_an_error_with_a_code(client: Client, what: str, kind: str, text: str) -> None:
    with pytest.raises(FailedError) as caught:
        client.ask("misused", what)
    assert caught.value.kind == kind
    assert text in caught.value.text


@pytest.mark.rotates(runs=4)
@pytest.mark.slow("strong components start ranks in every round")
@pytest.mark.parametrize("name", test_graph.ALL)
def test_graph_algorithm(spark: SparkSession, client: Client, name: str) -> None:
    expected = sorted(map(list, test_graph.small(spark, name).collect()))
    assert client.ask("graph", name) == [pytest.approx(row) for row in expected]


def test_datalog(client: Client) -> None:
    assert client.ask("datalog", CLOSURE, "path", [[1, 2], [2, 3], [3, 4]]) == [
        [1, 2],
        [1, 3],
        [1, 4],
        [2, 3],
        [2, 4],
        [3, 4],
    ]


@pytest.mark.slow("a question compiles kernels in a Python worker")
def test_rows_are_explained(client: Client) -> None:
    *proofs, codes = client.ask("why")
    assert len(proofs) == 14
    assert "=3" in proofs[0]
    assert proofs[6] == "r(node=3, dist=3)   by step of r"
    assert proofs[11] == "there is no row r(node=4)"
    assert codes == "PARALAGG_WHY_UNSUPPORTED PARALAGG_WHY_UNSUPPORTED"


@pytest.mark.slow("a question compiles kernels in a Python worker")
def test_a_result_that_can_be_explained_frees_its_checkpoints(client: Client) -> None:
    assert client.ask("hold_a_checkpoint").startswith("r(node=2)   by base of r")


def test_report_explain_and_doctor(client: Client) -> None:
    shown = client.ask("shown")
    assert shown["before"] is None
    assert (shown["counted"], shown["iterations"], shown["tuples"], shown["rounds"]) == (7, 10, 10, 10)
    assert "Executor: python\n  why: over Spark Connect, Python workers run every step" in shown["explained"]
    assert "session  Spark Connect, server with Spark" in shown["doctor"]
    assert "workers  Python 3." in shown["doctor"]


def test_cancelled_query_ends(client: Client) -> None:
    assert 2 < client.ask("interrupted") < 20
    assert client.ask("datalog", CLOSURE, "path", [[1, 2]]) == [[1, 2]]
