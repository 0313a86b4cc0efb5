"""What ``doctor`` found: one finding a part, with what is wrong and what to do where something is.

Beside ``session``, whose ``doctor`` adds the finding on the running session. Nothing here starts Spark or compiles.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.java import find_java
from pyspark_paralagg.shim import locate_jar, read_properties
from pyspark_paralagg.spark_home import find_spark_home
from pyspark_paralagg.version import VERSION


@dataclass(frozen=True)
class Finding:
    """One part of the installation: its name, what was found, and the problem if there is one."""

    part: str
    found: str
    problem: EnvironmentProblem | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All findings; ``str()`` of it is what a person reads.

    ``is_healthy`` says whether the Spark engine can run; Delta and MPI are optional.
    """

    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """Nothing that the Spark engine needs is missing."""
        return not self.problems

    @property
    def problems(self) -> tuple[EnvironmentProblem, ...]:
        """What is wrong; each says what to do."""
        return tuple(finding.problem for finding in self.findings if finding.problem is not None)

    def __str__(self) -> str:
        width = max(len(finding.part) for finding in self.findings)
        lines = [f"pyspark-paralagg {VERSION}"]
        for finding in self.findings:
            mark = "!" if finding.problem else " "
            lines.append(f"{mark} {finding.part:<{width}}  {finding.found}")
        if self.is_healthy:
            return "\n".join([*lines, "", "Nothing is wrong."])
        return "\n".join([*lines, "", *map(str, self.problems)])


def examine(*more: Finding) -> Diagnosis:
    """Look at Python, Java, Spark, the shim's jar and the optional parts; ``more`` findings are put at the end."""
    python = Finding("python", platform.python_version())
    return Diagnosis((python, _java(), _spark(), _jar(), _delta(), _mpi(), *more))


def _java() -> Finding:
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        return Finding("java", "none that Spark can use", problem)
    return Finding("java", f"{java.description} ({java.launcher})")


def _spark() -> Finding:
    try:
        spark = find_spark_home()
    except EnvironmentProblem as problem:
        return Finding("spark", str(problem.value or "none"), problem)
    return Finding("spark", f"{spark.version} ({spark.home})")


def _jar() -> Finding:
    try:
        jar = locate_jar(find_spark_home())
    except EnvironmentProblem as problem:
        # A Spark that is missing or unknown is the finding above: one cause, said once.
        return Finding("shim", "none", problem if problem.code.startswith("PARALAGG_SHIM") else None)
    if jar is None:
        return Finding("shim", "none yet: it will be compiled on first use, which takes some seconds, once")
    return Finding("shim", f"compiled for Spark {read_properties(jar)['spark']} ({jar})")


def _delta() -> Finding:
    return Finding("delta", _version_of("delta-spark") or "not installed (optional)")


def _mpi() -> Finding:
    mpi4py = _version_of("mpi4py")
    launcher = shutil.which("mpiexec")
    if mpi4py and launcher:
        return Finding("mpi", f"mpi4py {mpi4py}, {launcher} (no executor of this version uses it yet)")
    return Finding("mpi", "not installed (optional)")


def _version_of(distribution: str) -> str | None:
    import importlib.metadata  # noqa: PLC0415 - takes a fifth of the time that importing this package does

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
