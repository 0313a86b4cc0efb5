"""Find the Java that Spark will use, check its version, and name the package to install if it does not fit.

First step of ``configure``: ``java`` -> ``spark_home`` -> ``shim`` -> ``configure``. The Makefile runs
`python -m pyspark_paralagg java` before anything is installed, so this module needs no installed package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pyspark_paralagg.errors import EnvironmentProblem

OLDEST_JAVA = 17
"""Spark 4 runs on Java 17 and later."""

ADVICE = (
    "install Java 17 or later: `sudo apt-get install openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`brew install openjdk@17` (macOS); then add it to PATH or set JAVA_HOME to its folder"
)

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True)
class Java:
    """A Java runtime: its launcher, its feature release (17), and the line in which it names itself."""

    launcher: Path
    release: int
    description: str


def find_java() -> Java:
    """Return the Java that Spark's own scripts would start: ``JAVA_HOME``'s, else the one on ``PATH``.

    Raises ``EnvironmentProblem`` with ``PARALAGG_JAVA_MISSING`` or ``PARALAGG_JAVA_TOO_OLD``; both say what to install.
    """
    launcher = _launcher()
    try:
        version_run = subprocess.run([launcher, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - the user's own Java
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _missing(f"{launcher} does not start: {problem}", launcher) from problem
    output = version_run.stderr + version_run.stdout
    version = _VERSION.search(output)
    # /usr/bin/java of macOS may be a stub that prints an advice and exits with 1.
    if version_run.returncode != 0 or version is None:
        raise _missing(f"{launcher} is not a working Java: {output.strip()[:200]!r}", launcher)
    release = int(version.group(1))
    if release < OLDEST_JAVA:
        raise EnvironmentProblem(
            "PARALAGG_JAVA_TOO_OLD",
            f"{launcher} is Java {release}, but Spark 4 needs Java {OLDEST_JAVA} or later",
            value=release,
            hint=ADVICE,
        )
    # With JAVA_TOOL_OPTIONS set, Java prints a line before the version.
    description = next(line for line in output.splitlines() if _VERSION.search(line))
    return Java(launcher, release, description)


def _launcher() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        launcher = Path(home) / "bin" / ("java.exe" if os.name == "nt" else "java")
        if not launcher.is_file():
            # Spark's scripts use JAVA_HOME without a check: they would ignore a Java on PATH.
            raise _missing(f"JAVA_HOME is {home}, but there is no {launcher}", launcher)
        return launcher
    on_path = shutil.which("java")
    if on_path is None:
        raise _missing("no Java found: JAVA_HOME is not set, and PATH has no java", None)
    return Path(on_path)


def _missing(message: str, launcher: Path | None) -> EnvironmentProblem:
    value = None if launcher is None else str(launcher)
    return EnvironmentProblem("PARALAGG_JAVA_MISSING", message, value=value, hint=ADVICE)
