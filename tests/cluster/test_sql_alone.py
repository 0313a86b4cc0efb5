"""Test recursive queries without Python: `spark-sql` and a thrift server on a standalone cluster.

The session has the shim by ``--jars`` and ``spark.sql.extensions`` only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from ports import free_port
from spark_versions import since
from standalone import HOST, ROOT, environment, program

from pyspark_paralagg.session.jvm import EXTENSION
from pyspark_paralagg.session.shim import find_jar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from standalone import Standalone

pytestmark = [pytest.mark.cluster, pytest.mark.slow("a thrift server and spark-sql on a standalone cluster")]
QUERY = (
    "WITH RECURSIVE r(node, min() AS dist) AS (SELECT 1, 0 UNION SELECT e.dst, r.dist + e.w FROM r JOIN "
    "VALUES (1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 1, 2) AS e(src, dst, w) ON r.node = e.src) "
    "SELECT concat('row ', node, ' ', dist) AS line FROM r"
)
REFUSED = QUERY.replace("r.dist + e.w", "e.w - r.dist")
ROWS = ["row 1 0", "row 2 7", "row 3 8"]
SECONDS = 240


def options(cluster: Standalone) -> list[str]:
    confs = {
        "spark.sql.extensions": EXTENSION,
        "spark.paralagg.python": sys.executable,
        "spark.paralagg.pythonPath": str(ROOT),
    }
    listed = [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    return [*cluster.options(), "--jars", str(find_jar()), *listed]


def rows_in(text: str) -> list[str]:
    words = text.replace("|", " ").splitlines()
    return sorted(line.strip() for line in words if line.strip().startswith("row "))


def run(command: list[str], folder: Path) -> tuple[str, str]:
    """Run a program. Return its stdout and stderr."""
    with subprocess.Popen(  # noqa: S603 - a program of Spark's
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def server(standalone: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide the URL of a thrift server."""
    folder = tmp_path_factory.mktemp("thrift")
    port = free_port()
    confs = {"spark.hadoop.hive.server2.thrift.port": port, "spark.hadoop.hive.server2.thrift.bind.host": HOST}
    java_class = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    command = [program("spark-submit"), *options(standalone), "--class", java_class]
    command += [word for key, value in confs.items() for word in ("--conf", f"{key}={value}")]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - a program of Spark's
            [*command, "spark-internal"],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + SECONDS
        while "HiveThriftServer2 started" not in log.read_text(errors="replace"):
            assert process.poll() is None and time.monotonic() < until, log.read_text(errors="replace")[-3000:]  # noqa: PT018 - one cause, one log
            time.sleep(0.1)
        yield f"jdbc:hive2://{HOST}:{port}/default"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@since("4.0", "Spark 3.5 parses no recursive query")
def test_spark_sql(standalone: Standalone, tmp_path: Path) -> None:
    out, err = run([program("spark-sql"), *options(standalone), "-e", QUERY], tmp_path)
    assert rows_in(out) == ROWS, err[-3000:]


@since("4.0", "Spark 3.5 parses no recursive query")
def test_clients_of_a_thrift_server(server: str, tmp_path: Path) -> None:
    command = [program("beeline"), "-u", server, "--silent=true", "--outputformat=tsv2"]
    out, err = run([*command, "-e", f"{QUERY}; {QUERY}; {REFUSED}"], tmp_path)
    assert rows_in(out) == sorted(ROWS * 2), err[-3000:]
    assert "PARALAGG_NOT_MONOTONE" in out + err
