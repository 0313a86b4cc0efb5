"""Start a Spark Connect server as a process of its own: Spark as pip has it, and no jar of this project."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
START_SECONDS = 90
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(
    folder: Path, *, python: str = sys.executable, python_path: str = str(ROOT), confs: dict[str, str] | None = None
) -> Iterator[str]:
    """Yield the address of a server; its log is in ``folder``.

    Workers are processes of ``python``, which finds packages in ``python_path``, too.
    """
    home = Path(pyspark.__file__).parent
    [jar] = home.glob("jars/spark-connect_*.jar")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **(confs or {}),
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", MAIN]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    env = {**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": python_path, "SPARK_LOCAL_IP": "127.0.0.1"}
    env["PYSPARK_PYTHON"] = python
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([*command, str(jar)], stdout=log, stderr=log, env=env, cwd=folder)  # noqa: S603 - Spark
        try:
            _wait(process, port, folder / "server.log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the Connect server does not answer; its log ends: {log.read_text(errors='replace')[-2000:]}")
