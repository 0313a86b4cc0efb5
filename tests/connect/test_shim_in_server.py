"""A Connect server with the jar and its relation plugin: the Spark engine, SQL included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from caller import FailedError, client_of
from server import ROOT, connect_server
from spark_versions import since
from test_fixtures import CASES

from pyspark_paralagg.session.jvm import EXTENSION, EXTENSIONS
from pyspark_paralagg.session.shim import find_jar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from caller import Client

pytestmark = [since("4.0", "Spark 3.5 has its Connect server in a jar apart"), pytest.mark.rotates(runs=3)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    confs = {
        "spark.jars": str(find_jar()),
        EXTENSIONS: EXTENSION,
        "spark.connect.extensions.relation.classes": "org.apache.spark.sql.paralagg.connect.ParalaggRelations",
        "spark.paralagg.pythonPath": str(ROOT),
    }
    with connect_server(tmp_path_factory.mktemp("shim"), confs=confs) as address, client_of(address) as client:
        yield client


@pytest.mark.rotates(runs=4)
@pytest.mark.parametrize("case", CASES)
def test_fixture(client: Client, case: str) -> None:
    client.ask("fixture_by_shim", case)


@since("4.1", "recursive SQL")
def test_sql(client: Client) -> None:
    step = "SELECT node + 1, hops + 1 FROM r WHERE node < 4"
    query = f"WITH RECURSIVE r(node, min() AS hops) AS (SELECT 1L, 0L UNION {step}) TABLE r"
    assert client.ask("sql", query) == [[1, 0], [2, 1], [3, 2], [4, 3]]


@pytest.mark.slow("the question about a text compiles kernels in the client")
def test_rows_are_explained(client: Client) -> None:
    *proofs, codes = client.ask("why")
    assert proofs[6] == "r(node=3, dist=3)   by step of r"
    assert proofs[11] == "there is no row r(node=4)"
    assert codes == "PARALAGG_WHY_UNSUPPORTED PARALAGG_WHY_UNSUPPORTED"


@since("4.1", "recursive SQL")
def test_rows_of_sql_are_explained(client: Client) -> None:
    query = """
        WITH RECURSIVE r(node, min() AS hops) AS (
            SELECT 1L, 0L UNION SELECT node + 1, hops + 1 FROM r WHERE node < 3)
        SELECT count(*) FROM r"""
    assert client.ask("why_in_sql", query, 2, 4)[:4] == [
        "r(node=2, hops=1)   by step of r",
        "  r(node=1, hops=0)   by base of r",
        "there is no row r(node=4)",
        "  base of r: input 0 has no row with node = 4",
    ]
    with pytest.raises(FailedError) as caught:
        client.ask("why_in_sql", "SELECT 1L AS node", 1, 2)
    assert "PARALAGG_WHY_UNSUPPORTED" in caught.value.text


def test_auto_takes_the_spark_engine_and_reports(client: Client) -> None:
    shown = client.ask("shown")
    assert shown["backend"] == "spark"
    assert shown["before"] is None
    assert (shown["counted"], shown["iterations"], shown["tuples"]) == (7, 10, 10)
    assert "Executor: spark" in shown["explained"]
    assert "  shim     0.1.0 for Spark 4" in shown["doctor"].split("session")[1]


def test_indexes_are_kept_and_freed(client: Client, tmp_path: Path) -> None:
    assert client.ask("kept_indexes", str(tmp_path / "edges")) == [False, True, False, True]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("reads rows", "[PARALAGG_REFERENCE_OUTSIDE_STEP]"),
        ("outer join", "PARALAGG_STEP_UNSUPPORTED: a left outer join"),
        ("assumption", "[PARALAGG_ASSUMPTION_VIOLATED]"),
        ("limit", "[PARALAGG_LIMIT_REACHED]"),
    ],
)
def test_misuse_is_an_error_with_a_code(client: Client, what: str, text: str) -> None:
    with pytest.raises(FailedError) as caught:
        client.ask("misused", what, "spark")
    assert text in caught.value.text
