"""Find the Spark that pyspark will start: its folder, its jars, its exact version. Check that the shim supports it.

Second step of ``configure``: ``java`` -> ``spark_home`` -> ``shim`` -> ``configure``. The version is read from the
jars, not from ``pyspark.__version__``: with ``SPARK_HOME`` set the two may differ, and the shim is compiled against the
jars.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.version import PYSPARK, SUPPORTED_MINORS, VERSION

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<version>\d+\.\d+.*)\.jar")


@dataclass(frozen=True)
class SparkHome:
    """A Spark installation: the folder that holds ``jars``, and the exact version (``4.2.0``)."""

    home: Path
    version: str

    @property
    def jars(self) -> Path:
        """Return the folder of Spark's own jars, which include the Scala compiler."""
        return self.home / "jars"

    @property
    def minor(self) -> str:
        """Return the first two numbers of the version."""
        return minor_of(self.version)


def minor_of(version: str) -> str:
    """Return the first two numbers of a Spark version.

    >>> minor_of("4.2.0-SNAPSHOT")
    '4.2'
    """
    return ".".join(re.findall(r"\d+", version)[:2])


def find_spark_home() -> SparkHome:
    """Return the Spark that pyspark would start: ``SPARK_HOME``, else the one inside the pyspark package.

    Raises ``EnvironmentProblem``: ``PARALAGG_SPARK_MISSING`` if there is none, ``PARALAGG_SPARK_UNSUPPORTED`` if its
    minor is not in ``SUPPORTED_MINORS``.
    """
    home = _pyspark_home()
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        match = _CORE_JAR.fullmatch(jar.name)
        if match:
            spark = SparkHome(home, match["version"])
            check_supported(spark.version)
            return spark
    raise EnvironmentProblem(
        "PARALAGG_SPARK_MISSING",
        f"{home / 'jars'} contains no Spark (no spark-core_*.jar)",
        value=str(home),
        hint=f"install the full pyspark (`pip install '{PYSPARK}'`; pyspark-client contains no Spark), or set "
        "SPARK_HOME to the folder of a Spark" + (", which it is not now" if "SPARK_HOME" in os.environ else ""),
    )


def check_supported(version: str) -> None:
    """Raise ``PARALAGG_SPARK_UNSUPPORTED`` unless the shim supports that version of Spark."""
    if minor_of(version) not in SUPPORTED_MINORS:
        raise EnvironmentProblem(
            "PARALAGG_SPARK_UNSUPPORTED",
            f"Spark {version} is installed; pyspark-paralagg {VERSION} supports Spark {', '.join(SUPPORTED_MINORS)}",
            value=version,
            hint=f"run `pip install 'pyspark~={SUPPORTED_MINORS[-1]}.0'`, or install a newer pyspark-paralagg",
        )


def _pyspark_home() -> Path:
    try:
        from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - this module loads without pyspark

        return Path(_find_spark_home())
    except ImportError as problem:
        message = "pyspark is not installed"
        cause: BaseException = problem
    except SystemExit as problem:  # raised by pyspark if it finds none
        message = "pyspark does not find a Spark"
        cause = problem
    raise EnvironmentProblem("PARALAGG_SPARK_MISSING", message, hint=f"`pip install '{PYSPARK}'`") from cause
