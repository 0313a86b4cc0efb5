"""Recursion over Spark Connect, on a server without a jar of this project: the step is analysed in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from plans import plans
from test_fixtures import CASES

if TYPE_CHECKING:
    from conftest import Client
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("case", CASES)
def test_step_has_the_same_plan_as_in_a_classic_session(spark: SparkSession, client: Client, case: str) -> None:
    assert client.ask("plans", case) == json.loads(json.dumps(plans(spark, case)))


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("case", CASES)
def test_fixture(client: Client, case: str) -> None:
    client.ask("fixture", case, "python")
