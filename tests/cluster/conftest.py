"""Run scenarios and pass their facts to tests.

A scenario (``scenario_*.py``) is a separate process, because a Python process has one Spark context. It starts a
session, runs experiments, and prints one JSON line for each fact. A test reads one fact by name. A scenario runs once,
when a test first reads a fact. A scenario that hangs is killed with its processes, and each of its tests fails.
"""

from __future__ import annotations

import importlib.util
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

# pytest imports tests by path; modules shared with scenarios are in this folder.
sys.path.insert(0, str(HERE))

from spark_versions import python_path, skip_without_delta  # noqa: E402 - in the folder above
from standalone import Standalone, environment  # noqa: E402 - in this folder
from user_jars import build  # noqa: E402 - likewise

SHOWN_LINES = 40
SUBMITTED_SECONDS = 240
PYTHON_PATH = python_path(HERE.parent.parent, HERE.parent, HERE)


class Facts:
    """The facts that a scenario printed, its log (of Spark and the engine), and how it ended."""

    def __init__(self, facts: dict[str, dict[str, Any]], log: str, end: str, *, hung: bool) -> None:
        self.by_name = facts
        self.log = log
        self.end = end
        self.hung = hung

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        fact = self.by_name.get(name)
        assert not self.hung, f"the scenario {self.end}, after {list(self.by_name)}; its log ends:\n{self._tail()}"
        assert fact is not None, f"the scenario {self.end} before it printed {name!r}; its log ends:\n{self._tail()}"
        assert "failed" not in fact, f"{fact['failed']}\nthe scenario's log ends:\n{self._tail()}"
        return fact["value"]

    def _tail(self) -> str:
        return "\n".join(self.log.splitlines()[-SHOWN_LINES:])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "delta: needs Delta's jars, which delta-spark resolves over the network")


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Facts]:
    """Return a function: ``scenario(name, *arguments, seconds=150)`` runs a scenario once and returns its facts."""
    finished: dict[tuple[str, ...], Facts] = {}

    def facts(name: str, *arguments: str, seconds: int = 150) -> Facts:
        key = (name, *arguments)
        if key not in finished:
            folder_name = re.sub(r"\W+", "-", "-".join(key))  # spark.local.dir is split at commas
            finished[key] = run(key, tmp_path_factory.mktemp(folder_name), seconds)
        return finished[key]

    return facts


@pytest.fixture
def delta(scenario: Callable[..., Facts]) -> Callable[..., Facts]:
    """Return ``scenario``, which skips the test if Delta or its jars are not available."""
    if importlib.util.find_spec("delta") is None:
        pytest.skip("delta-spark is not installed")

    def facts(*key: str, seconds: int = 300) -> Facts:
        found = scenario(*key, seconds=seconds)
        if not found.by_name:
            skip_without_delta(found.log)
        return found

    return facts


@pytest.fixture
def fact(delta: Callable[..., Facts], request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Return a function that reads a fact of ``SCENARIO`` of the test's module, which has ``SECONDS`` to run."""
    facts = delta(*request.module.SCENARIO, seconds=request.module.SECONDS)
    return lambda name: facts[name]


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Provide a master and two workers for all tests that submit applications."""
    with Standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def user_jars(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Provide the jars of ``user_jars.build``."""
    return build(tmp_path_factory.mktemp("jars"))


def submit(cluster: Standalone, folder: Path, name: str, *arguments: str, options: Sequence[str] = ()) -> Facts:
    """Run a scenario by spark-submit on the cluster. Return its facts."""
    command = cluster.submit(HERE / f"scenario_{name}.py", *arguments, options=options)
    return _facts(command, folder, SUBMITTED_SECONDS, environment(PYTHONPATH=PYTHON_PATH))


def run(key: tuple[str, ...], folder: Path, seconds: int) -> Facts:
    """Run a scenario in ``folder`` in a separate process group, with a timeout."""
    name, *arguments = key
    command = [sys.executable, str(HERE / f"scenario_{name}.py"), *arguments]
    return _facts(command, folder, seconds, {**os.environ, "PYTHONPATH": PYTHON_PATH})


def _facts(command: Sequence[str], folder: Path, seconds: int, env: Mapping[str, str]) -> Facts:
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
        process = subprocess.Popen(  # noqa: S603 - our own scenario
            command, cwd=folder, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            end, hung = f"ended with code {process.wait(seconds)}", False
        except subprocess.TimeoutExpired:
            end, hung = f"was killed after {seconds} s", True
        finally:
            _kill_group(process)
    lines = (folder / "stdout").read_text().splitlines()
    facts = [json.loads(line) for line in lines if line.startswith('{"fact"')]
    return Facts({fact["fact"]: fact for fact in facts}, (folder / "stderr").read_text(), end, hung=hung)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, also after success: a JVM that outlives its Python uses the next scenario's memory."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
