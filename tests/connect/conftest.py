"""A Connect server and a client, once for all tests in this folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from caller import Client

HERE = Path(__file__).parent

# pytest imports tests by path; what they share lies beside them.
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Give a client of a server on whose machine Python has this package."""
    if SPARK < (4, 0):
        pytest.skip("Spark 4.0 and later: Spark 3.5 has its Connect server in a jar apart")
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from caller import client_of  # noqa: PLC0415 - in this folder
    from server import connect_server  # noqa: PLC0415 - likewise

    with connect_server(tmp_path_factory.mktemp("connect")) as address, client_of(address) as client:
        yield client
