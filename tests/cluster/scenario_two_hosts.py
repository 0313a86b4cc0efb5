"""Run ranks in the executors of a standalone cluster of two hosts that share no writable files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hosts import DRIVER, Host, Network, enter
from probes import iterations_now
from queries import chain, chain_total, paths, scattered_distances, scattered_edges, total
from scala_objects import scala_object
from stage import print_facts, session, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MASTER = f"spark://{DRIVER}:7077"
VERTICES = 1000
LONG, SHORT = 400_000, 50
RANK = ("mpi_backend", "run")
HOSTS: list[Host] = []


def apart(_: SparkSession) -> dict[str, Any]:
    """Return the driver's file that hosts see, and the number of executors of each host."""
    Path("/tmp/only-the-drivers").touch()  # noqa: S108 - hosts must not share this folder
    seen = {host.name: host.find("only-the-*") for host in HOSTS}
    executors = [len(host.processes("org.apache.spark.executor.CoarseGrainedExecutorBackend")) for host in HOSTS]
    return {"seen": seen, "executors": executors}


def offloaded(spark: SparkSession) -> dict[str, Any]:
    """Compare the rows of ranks, of the Spark engine, and of Dijkstra's algorithm."""

    def distances(backend: str) -> DataFrame:
        start = spark.range(1).selectExpr("id as node", "0L as dist")
        return paths(start, scattered_edges(spark, VERTICES), backend=backend)

    by_ranks = distances("mpi")
    rows = sorted(tuple(row) for row in by_ranks.collect())
    report = ra.report(by_ranks)
    assert report is not None
    return {
        "as_spark": rows == sorted(tuple(row) for row in distances("spark").collect()),
        "right": rows == sorted(scattered_distances(VERTICES).items()),
        "backend": report.backend,
        "hosts": sorted(rank["host"] for rank in report.ranks),
        "sent": [rank["bytes"] > 0 for rank in report.ranks],
        "left": left_after(),
    }


def killed(spark: SparkSession) -> dict[str, Any]:
    """Kill the rank on the second host in the middle of its loop."""
    harmed: list[float] = []

    def kill() -> None:
        wait_until(lambda: iterations_now(spark) > 0, 60, "ranks are at work")
        rank, _ = (p for p in HOSTS[1].processes(*RANK) if "PMI_RANK" in Path(f"/proc/{p}/environ").read_text())
        os.kill(rank, signal.SIGKILL)
        harmed.append(time.monotonic())

    thread = threading.Thread(target=kill)
    thread.start()
    error = ""
    try:
        total(chain(spark, LONG, backend="mpi"))
    except Exception as problem:  # noqa: BLE001 - the text is the fact
        error = str(problem)
    ended = time.monotonic()
    thread.join()
    return {
        "error": next((line for line in error.splitlines() if "PARALAGG_" in line), error),
        "seconds": ended - harmed[0],
        "left": left_after(),
        "runs": int(scala_object(spark, "offload.Offloads").liveCount()),
        "next_is_right": total(chain(spark, SHORT, backend="mpi")) == chain_total(SHORT),
    }


def left_after() -> dict[str, Any]:
    """Return the ranks and files that are left on the hosts after a few seconds."""

    def remaining() -> dict[str, Any]:
        return {
            "ranks": [host.name for host in HOSTS for _ in host.processes(*RANK)],
            "files": [path for host in HOSTS for path in host.find("paralagg-*")],
            "drivers": [str(path) for path in Path("local").rglob("paralagg-*")],
        }

    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not any(remaining().values()), 5, "all is cleared away")
    return remaining()


def start_cluster() -> None:
    """Start a master, and two hosts with a worker of two cores and two local directories."""
    spark, java = find_spark_home().home, find_java().launcher.resolve()
    daemon = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{spark}/jars/*"]
    place = ["--host", DRIVER, "--port", "7077", "--webui-port", "0"]
    with Path("master.log").open("w") as log:
        master = [*daemon, "org.apache.spark.deploy.master.Master", *place]
        subprocess.Popen(master, stdout=log, stderr=log)  # noqa: S603
    network = Network()
    worker = [
        "env",
        f"SPARK_HOME={spark}",
        "SPARK_SCALA_VERSION=2.13",
        "SPARK_LOCAL_DIRS=/tmp/local-1,/tmp/local-2",
        *daemon,
        "org.apache.spark.deploy.worker.Worker",
    ]
    worker += ["--host", "ADDRESS", "--webui-port", "0", "--cores", "2", "--memory", "1g", "--work-dir", "/tmp/work"]  # noqa: S108 - its own
    visible = (spark, java.parent.parent)
    HOSTS.extend(network.host(n, [*worker, MASTER], visible, Path(f"{n}.log")) for n in ("one", "two"))


if __name__ == "__main__":
    enter()
    start_cluster()
    confs = {
        "spark.driver.host": DRIVER,
        "spark.driver.bindAddress": DRIVER,
        "spark.executor.cores": "2",
        "spark.executor.memory": "600m",
        "spark.paralagg.mpi.launcher": "spark",
        "spark.paralagg.mpi.ranks": "4",
    }
    print_facts(session(MASTER, confs, slots=4), apart, offloaded, killed)
