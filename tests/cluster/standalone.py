"""Start a standalone cluster of Spark on this machine: a master and two workers of one core each.

    with Standalone(folder) as cluster:
        cluster.master                                          # spark://127.0.0.1:40123
        cluster.submit("app.py", options=["--jars", "a.jar"])   # the command line of spark-submit in client mode

All processes belong to one group that is killed at the end. They also end with the process that started them.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jvm_options

from mpi_backend.launch import process_tree
from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

HOST = "127.0.0.1"
WORKERS = 2
ROOT = Path(__file__).parents[2]
START_SECONDS = 90.0
CONFS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "768m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
}


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without variables of an earlier Spark, but for the options of JVMs."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name == jvm_options.VARIABLE or not name.startswith(("PYSPARK_", "SPARK_"))
    }
    home = str(find_spark_home().home)
    return {**variables, "SPARK_HOME": home, "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable, **more}


def program(name: str) -> str:
    """Return the path of a program of Spark's, such as ``spark-submit``."""
    return str(find_spark_home().home / "bin" / name)


class Standalone:
    """A cluster that runs inside a ``with`` block. ``folder`` gets the logs and the executors' files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Standalone:  # noqa: PYI034 - Python 3.10 has no Self
        try:
            self._start("master", "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0")
            self.master = self._wait("master", r"Starting Spark master at (spark://\S+)", 1)[0]
            for n in range(WORKERS):
                resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / f"work{n}")]
                self._start(
                    f"worker{n}", "org.apache.spark.deploy.worker.Worker", "--host", HOST, *resources, self.master
                )
            self._wait("master", r"Registering worker (\S+)", WORKERS)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def submit(self, app: Path, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        """Return the command that runs ``app`` on the cluster, with its driver on this machine."""
        return [program("spark-submit"), *self.options(), *options, str(app), *arguments]

    def options(self) -> list[str]:
        """Return the options of every program of Spark: the master and the confs."""
        confs = {**CONFS, **jvm_options.executor_conf(), "spark.local.dir": str(self._folder / "local")}
        return ["--master", self.master, *(word for k, v in confs.items() for word in ("--conf", f"{k}={v}"))]

    def stop(self) -> None:
        """Kill the master, the workers and their executors."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def _start(self, name: str, java_class: str, *arguments: str) -> None:
        env = environment(SPARK_DAEMON_JAVA_OPTS=jvm_options.quick(), SPARK_DAEMON_MEMORY="256m")
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(  # noqa: S603 - Spark's own classes
                    [program("spark-class"), java_class, "--webui-port", "0", *arguments],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    start_new_session=True,
                    preexec_fn=process_tree.end_with_parent,  # noqa: PLW1509 - nothing else runs in a child yet
                )
            )

    def _wait(self, name: str, pattern: str, count: int) -> list[str]:
        """Wait until a log matches ``pattern`` ``count`` times. Return the matches."""
        until = time.monotonic() + START_SECONDS
        while True:
            text = (self._folder / f"{name}.log").read_text(errors="replace")
            matches: list[str] = re.findall(pattern, text)
            if len(matches) >= count:
                return matches
            if time.monotonic() > until or any(process.poll() is not None for process in self._processes):
                raise TimeoutError(
                    f"the log of the {name} has no {count} lines with {pattern}; it ends: {text[-2000:]}"
                )
            time.sleep(0.05)
