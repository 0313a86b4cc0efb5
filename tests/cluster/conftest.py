"""Runs scenarios and gives their facts to tests.

A scenario (``scenario_*.py``) is a process of its own, since a Python process has one Spark context: it starts the
session it is about, does things to it, and prints one JSON line for each fact. A test asks for one fact by name. A
scenario runs once, whoever asks first; what hangs is killed with all that it started, and the facts told until then
count.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HERE = Path(__file__).parent

# pytest imports tests by path; what they share with scenarios lies beside them.
sys.path.insert(0, str(HERE))

from standalone import Standalone, environment  # noqa: E402 - they lie beside this file
from user_jars import build  # noqa: E402 - likewise

SHOWN_LINES = 40
SUBMITTED_SECONDS = 240
PYTHON_PATH = os.pathsep.join([str(HERE.parent.parent), str(HERE.parent), str(HERE)])


class Facts:
    """What a scenario told, its log (what Spark and the engine wrote), and how it ended."""

    def __init__(self, told: dict[str, dict[str, Any]], log: str, end: str) -> None:
        self.told = told
        self.log = log
        self.end = end

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the scenario told
        fact = self.told.get(name)
        assert fact is not None, f"the scenario {self.end} before it could tell {name!r}; its log ends:\n{self._tail()}"
        assert "failed" not in fact, f"{fact['failed']}\nthe scenario's log ends:\n{self._tail()}"
        return fact["value"]

    def _tail(self) -> str:
        return "\n".join(self.log.splitlines()[-SHOWN_LINES:])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "delta: needs Delta's jars, which delta-spark resolves over the network")


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Facts]:
    """``scenario(name, *arguments, seconds=120)`` runs it, or gives the facts of the run that was."""
    done: dict[tuple[str, ...], Facts] = {}

    def facts(name: str, *arguments: str, seconds: int = 150) -> Facts:
        key = (name, *arguments)
        if key not in done:
            name_of_folder = re.sub(r"\W+", "-", "-".join(key))  # a comma ends a name in spark.local.dir
            done[key] = run(key, tmp_path_factory.mktemp(name_of_folder), seconds)
        return done[key]

    return facts


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Give a master and two workers, for all tests that submit something to them."""
    with Standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def user_jars(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give the jars of ``user_jars.build``."""
    return build(tmp_path_factory.mktemp("jars"))


def submit(cluster: Standalone, folder: Path, name: str, *arguments: str, options: Sequence[str] = ()) -> Facts:
    """Give the facts of a scenario that spark-submit runs on the cluster."""
    command = cluster.submit(HERE / f"scenario_{name}.py", *arguments, options=options)
    return _facts(command, folder, SUBMITTED_SECONDS, environment(PYTHONPATH=PYTHON_PATH))


def run(key: tuple[str, ...], folder: Path, seconds: int) -> Facts:
    """One scenario in ``folder``, in a process group of its own, for so many seconds at most."""
    name, *arguments = key
    command = [sys.executable, str(HERE / f"scenario_{name}.py"), *arguments]
    return _facts(command, folder, seconds, {**os.environ, "PYTHONPATH": PYTHON_PATH})


def _facts(command: Sequence[str], folder: Path, seconds: int, env: Mapping[str, str]) -> Facts:
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
        process = subprocess.Popen(  # noqa: S603 - our own scenario
            command, cwd=folder, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            end = f"ended with code {process.wait(seconds)}"
        except subprocess.TimeoutExpired:
            end = f"was killed after {seconds} s"
        finally:
            _kill_group(process)
    lines = (folder / "stdout").read_text().splitlines()
    told = [json.loads(line) for line in lines if line.startswith('{"fact"')]
    return Facts({fact["fact"]: fact for fact in told}, (folder / "stderr").read_text(), end)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Also after a good end: a JVM that outlives its Python would take the next scenario's memory."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
