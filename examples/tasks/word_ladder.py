"""How does one get from COLD to WARM, changing one letter at a time, with words only?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORDS = ["COLD", "CORD", "CARD", "WARD", "WARM", "WORD", "WORM", "GOLD", "BOLD", "BALD"]
ROWS = [(4, ["COLD", "CORD", "CARD", "WARD", "WARM"])]


def answer(spark: SparkSession) -> DataFrame:
    """Return the number of changes and the words of a shortest ladder; of several, the parent that sorts first."""
    words = spark.createDataFrame([(w,) for w in WORDS], "word string")
    pairs = words.crossJoin(words.toDF("next")).where(F.levenshtein("word", "next") == 1)
    ladders = words.where("word = 'COLD'").recursive_agg(
        "word",
        {"changes": ra.hops(), "ladder": ra.path()},
        step=lambda r: r.join(pairs, "word").select(F.col("next").alias("word")),
    )
    return ladders.where("word = 'WARM'").select("changes", "ladder")
