"""A server whose Python workers have Spark's packages, but neither this one nor numba."""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from caller import client_of
from server import connect_server
from spark_versions import since

if TYPE_CHECKING:
    from collections.abc import Iterator

    from caller import Client

SPARKS_OWN = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "python-dateutil", "pytz", "six", "tzdata")
GRPC = ("grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "zstandard")


def link_packages(names: tuple[str, ...], folder: Path) -> None:
    """Link the installed folders and modules of these distributions, and nothing else, into a folder."""
    for name in names:
        for file in files(name) or ():
            top = file.parts[0]
            if top != ".." and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / top)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    folder, packages = tmp_path_factory.mktemp("lacking"), tmp_path_factory.mktemp("packages")
    link_packages((*SPARKS_OWN, *GRPC), packages)
    python = getattr(sys, "_base_executable", sys.executable)
    with connect_server(folder, python=python, python_path=str(packages)) as address, client_of(address) as client:
        yield client


@since("4.0", "Spark 3.5 has its Connect server in a jar apart")
@pytest.mark.slow("starts a server, and plain DataFrames run a query a round")
def test_auto_takes_plain_dataframes_and_says_what_is_missing(client: Client) -> None:
    said = client.ask("lacking")
    assert "have no pyspark-paralagg and no numba: install pyspark-paralagg 0.1.0 there" in said["auto"]
    assert said["python"].startswith("PARALAGG_BACKEND_UNAVAILABLE: the Python workers (Python 3.")
    assert "pyspark-paralagg missing, numba missing" in said["doctor"]
    assert "! workers" in said["doctor"]
