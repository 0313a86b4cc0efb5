"""The Spark session that ours and GraphX run in, and what can be asked of its JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

MASTER = "local[2]"


def builder(memory: str) -> SparkSession.Builder:
    """Return a builder with two cores, the UI off and all else as Spark has it (AQE on, ANSI on)."""
    return (
        SparkSession.builder.master(MASTER)
        .appName("benchmarks")
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
    )


class HeapPeak:
    """Peak heap of a run, garbage included: the sum of the memory pools' own peaks, set back before the run."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 (pyspark's only way to the JVM)
        beans = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        self._heap = [bean for bean in beans if bean.getType().toString().startswith("Heap")]

    def reset(self) -> None:
        """Forget the peaks so far."""
        for pool in self._heap:
            pool.resetPeakUsage()

    def megabytes(self) -> float:
        """Return the peak since the last reset."""
        return float(sum(pool.getPeakUsage().getUsed() for pool in self._heap)) / 1e6
