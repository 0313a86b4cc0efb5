"""Diagnose an installation: one finding for each part, with the problem and its remedy if there is one.

Nothing in this module starts Spark or compiles. If mpi4py and a launcher are installed, it starts two MPI ranks and
ends them at once.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.connect.plugin import server_shim
from pyspark_paralagg.errors import EnvironmentProblem, ParalaggError, UnsupportedError, error_from_rank
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.jvm import handshake, jvm_of, load_bridge
from pyspark_paralagg.session.running import is_connect
from pyspark_paralagg.session.shim import locate_jar, read_properties
from pyspark_paralagg.session.shim_jars import check_own_jars
from pyspark_paralagg.session.spark_home import find_spark_home
from pyspark_paralagg.session.workers import obstacle, state_of
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Finding:
    """One part of the installation: its name, its state, and its problem or None.

    The Spark engine runs without a part whose ``is_optional`` is true.
    """

    part: str
    found: str
    problem: ParalaggError | None = None
    is_optional: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """All findings. ``str()`` gives them as text for a user; Delta and MPI are optional."""

    findings: tuple[Finding, ...]

    @property
    def is_healthy(self) -> bool:
        """Return whether the Spark engine can run: no part that it needs has a problem."""
        return all(finding.problem is None or finding.is_optional for finding in self.findings)

    @property
    def problems(self) -> tuple[ParalaggError, ...]:
        """Return the problems; the hint of each is its remedy."""
        return tuple(finding.problem for finding in self.findings if finding.problem is not None)

    def __str__(self) -> str:
        width = max(len(finding.part) for finding in self.findings)
        lines = [f"pyspark-paralagg {VERSION}"]
        for finding in self.findings:
            mark = "!" if finding.problem else " "
            lines.append(f"{mark} {finding.part:<{width}}  {finding.found}")
        if not self.problems:
            return "\n".join([*lines, "", "No problems found."])
        return "\n".join([*lines, "", *map(str, self.problems)])


def examine(*more: Finding) -> Diagnosis:
    """Examine Python, Java, Spark, the shim's jar and the optional parts; append the findings ``more``."""
    python = Finding("python", platform.python_version())
    return Diagnosis((python, _java(), _spark(), _jar(), _delta(), _mpi(), *more))


def _java() -> Finding:
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        return Finding("java", "no Java that Spark can use", problem)
    return Finding("java", f"{java.description} ({java.launcher})")


def _spark() -> Finding:
    try:
        spark = find_spark_home()
    except EnvironmentProblem as problem:
        return Finding("spark", str(problem.value or "none"), problem)
    return Finding("spark", f"{spark.version} ({spark.home})")


def _jar() -> Finding:
    try:
        spark = find_spark_home()
    except EnvironmentProblem:
        return Finding("shim", "none")  # the finding `spark` has the problem
    try:
        check_own_jars(spark)
        jar = locate_jar(spark)
    except EnvironmentProblem as problem:
        return Finding("shim", "none", problem)
    if jar is None:
        return Finding("shim", "not compiled yet; the first use compiles it, which takes some seconds")
    return Finding("shim", f"compiled for Spark {read_properties(jar)['spark']} ({jar})")


def _delta() -> Finding:
    return Finding("delta", _version_of("delta-spark") or "not installed (optional)")


def _mpi() -> Finding:
    from mpi_backend.launch import preflight, trial  # noqa: PLC0415 - this module loads without the MPI engine

    versions = {name: _version_of(name) for name in ("mpi4py", "numba")}
    installed = [f"{name} {version}" for name, version in versions.items() if version]
    if versions["mpi4py"] is None:
        return Finding("mpi", ", ".join([*installed, "no mpi4py: ranks cannot run (optional)"]), is_optional=True)
    request = preflight.Request(launcher="local", ranks=2, oversubscribe=True)
    try:
        preflight.check(request)
        trial.start_ranks(request)
    except preflight.Problem as problem:
        state = ", ".join([*installed, "ranks do not start (optional)"])
        return Finding("mpi", state, error_from_rank({**problem.fields, "kind": problem.kind}), is_optional=True)
    state = ", ".join([*installed, preflight.mpiexec(request)])
    return Finding("mpi", f"{state}: two ranks started and connected", is_optional=True)


def _version_of(distribution: str) -> str | None:
    import importlib.metadata  # noqa: PLC0415 - takes a fifth of the time that importing this package does

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def doctor() -> Diagnosis:
    """Return what is installed, what is wrong, and how to repair it.

    It does not start Spark and compiles nothing. If mpi4py is installed, it starts two MPI ranks and ends them at once.
    If the active session is one of Spark Connect, it asks a Python worker of the server for its packages.

    >>> print(doctor())                                                                       # doctest: +SKIP
    """
    return examine(*_examine_session())


def _examine_session() -> tuple[Finding, ...]:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - this module loads without pyspark
    except ImportError:
        return (Finding("session", "none"),)
    spark = SparkSession.getActiveSession()
    if spark is None:
        return (Finding("session", "no session in this process"),)
    if is_connect(spark):
        return _examine_connect(spark)
    try:
        module = handshake(spark, load_bridge(jvm_of(spark)))
    except EnvironmentProblem as problem:
        return (Finding("session", f"Spark {spark.version}", problem),)
    return (Finding("session", f"Spark {spark.version}, shim {module.version()}"),)


def _examine_connect(spark: SparkSession) -> tuple[Finding, ...]:
    session = Finding("session", f"Spark Connect, server with Spark {spark.version}")
    why = obstacle(spark)
    problem = None
    if why is not None:
        problem = UnsupportedError("PARALAGG_BACKEND_UNAVAILABLE", why, value="python", place="workers")
    shim = Finding("shim", server_shim(spark) or "none in the server (optional)")
    state = state_of(spark)
    if "error" in state:
        return session, shim, Finding("workers", "none runs", problem)
    packages = [f"{name} {version or 'missing'}" for name, version in state["versions"].items()]
    return session, shim, Finding("workers", f"Python {state['python']}, {', '.join(packages)}", problem)
