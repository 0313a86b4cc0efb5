"""One Spark session for all tests: seven slots, the shim configured, no UI; its confs are put back after each test."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Iterator

# pytest imports tests by path; what they share lies beside them.
sys.path.insert(0, str(Path(__file__).parent))
pytest_plugins = ["rotation", "slow"]

from jvm_options import use_quick_jvms  # noqa: E402 - beside the tests

# Python workers need this Python, with pyarrow; Spark would take the first `python3` on the path.
os.environ["PYSPARK_PYTHON"] = sys.executable


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell has started the tests in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that tests start inherit it
    if not config.getoption("whole"):
        use_quick_jvms()


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the session; tests ask for ``spark``."""
    builder = (
        SparkSession.builder.master("local[7]")
        .appName("paralagg-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("local")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")  # off by default in 3.5; a test that means it off says so
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.ui.showConsoleProgress", "false")
    )
    session = ra.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_jvm_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that starts the JVM without the session: the JVM keeps Spark's default memory for all later tests."""
    before = SparkContext._gateway
    yield
    if before is None and SparkContext._gateway is not None and "spark_session" not in request.fixturenames:
        pytest.fail("the test starts a JVM of its own: let it use the fixture `spark`")


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Give the session; all its confs are those of before when the test is over."""
    jvm, state = spark_session.sparkContext._jvm, spark_session._jsparkSession.sessionState()
    settings = state.conf().settings()
    before = jvm.java.util.HashMap(settings)
    yield spark_session
    if not settings.equals(before):
        settings.clear()
        settings.putAll(before)
