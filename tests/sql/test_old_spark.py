"""Test what a recursive query in SQL says where Spark parses none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from spark_versions import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(SPARK >= (4, 0), reason="Spark 4.0 and later parse it")


def test_recursive_queries_are_refused_with_what_to_write_instead(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match=r"PARALAGG_SQL_NO_RECURSION.*df\.recursive_agg") as caught:
        spark.sql(["SELECT 1", "\nWITH  recursive t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t) SELECT * FROM t"][1])
    assert "line 2 pos 16" in str(caught.value)


def test_texts_with_that_word_are_parsed_as_before(spark: SparkSession) -> None:
    assert spark.sql("WITH recursive AS (SELECT 1 AS n) SELECT n FROM recursive").collect()[0].n == 1
