"""Find the jar of the JVM shim for the installed Spark, or compile it once.

Third step of ``configure``: ``java`` -> ``spark_home`` -> ``shim`` -> ``configure``. A wheel contains the sources and
one jar for each supported Spark minor. If no jar fits (a source install, a patch level that does not link), the sources
are compiled into the user's cache. The compiler comes from Spark's own jars, so its version always fits.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.linkage import links
from pyspark_paralagg.session.private import check_private, private_folder
from pyspark_paralagg.session.spark_home import SparkHome, find_spark_home, minor_of

JAR_NAME = "paralagg.jar"
PROPERTIES = "META-INF/paralagg.properties"
"""A file in every jar: ``spark`` = the Spark it was compiled against, ``shim`` = the digest of the sources."""

_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED_JARS = _PACKAGE / "_shim" / "jars"
# A wheel has the sources inside the package, a checkout next to it.
_SOURCE_ROOTS = (_PACKAGE / "_shim" / "src" / "main", _PACKAGE.parent / "jvm_shim" / "src" / "main")
_COMPILER_JARS = ("scala-compiler", "scala-reflect", "scala-library")
_SETTING = "XDG_CACHE_HOME"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_COMPILER_OUTPUT_LINES = 60
_CACHE_HINT = "set XDG_CACHE_HOME to a folder that you can write to, or install a wheel, which contains the jar"


@dataclass(frozen=True)
class ShimSources:
    """The Scala files and the resources of the shim for one Spark minor, and the digest of their contents."""

    root: Path
    minor: str

    @property
    def scala(self) -> list[Path]:
        """Return the files that all Spark versions share, then those for this minor.

        Of files with the same name in several ``spark-<minor>``, the one of the last minor up to this one is for it.
        """
        found: dict[Path, Path] = {}
        for folder in sorted(self.root.glob("spark-*"), key=_version_of):
            if _version_of(folder) <= _version(self.minor):
                found |= {path.relative_to(folder): path for path in folder.rglob("*.scala")}
        return [*sorted((self.root / "scala").rglob("*.scala")), *(found[name] for name in sorted(found))]

    def compiled_with(self, spark: SparkHome) -> list[Path]:
        """Return the files to compile: the relation plugin of Connect only where Spark has Connect's jar."""
        has_connect = any(spark.jars.glob("spark-connect_*.jar"))
        return [path for path in self.scala if has_connect or path.parent.name != "connect"]

    @property
    def resources(self) -> list[tuple[str, Path]]:
        """Return the files that are copied into the jar, each with its name there."""
        folder = self.root / "resources"
        return [(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file()]

    @property
    def digest(self) -> str:
        """Return twelve hexadecimal digits that change whenever a file's name or content changes."""
        state = hashlib.sha256()
        for path in [*self.scala, *(path for _, path in self.resources)]:
            state.update(path.relative_to(self.root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return state.hexdigest()[:12]


def _version(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))


def _version_of(folder: Path) -> tuple[int, ...]:
    return _version(folder.name.removeprefix("spark-"))


def find_sources(minor: str) -> ShimSources:
    """Return the shim's sources for a Spark minor such as ``4.2``; raise ``PARALAGG_SHIM_MISSING`` without sources."""
    for root in _SOURCE_ROOTS:
        sources = ShimSources(root, minor)
        if sources.scala:
            return sources
    raise EnvironmentProblem(
        "PARALAGG_SHIM_MISSING",
        "this installation has no sources of the shim",
        value=[str(root) for root in _SOURCE_ROOTS],
        hint="reinstall it: `pip install --force-reinstall pyspark-paralagg`",
    )


def find_jar(spark: SparkHome | None = None) -> Path:
    """Return the path of a jar that fits the installed Spark; compile it if there is none yet (4-10 s, once).

    Several processes may call this at the same time: each sees a whole jar or none.

    Raises ``EnvironmentProblem``: ``PARALAGG_SPARK_MISSING``, ``PARALAGG_SPARK_UNSUPPORTED``,
    ``PARALAGG_JAVA_MISSING``, ``PARALAGG_JAVA_TOO_OLD``, ``PARALAGG_SHIM_MISSING``, ``PARALAGG_SHIM_BUILD``,
    ``PARALAGG_CACHE_UNSAFE`` if others may have written the jar.
    """
    spark = spark or find_spark_home()
    jar = locate_jar(spark)
    if jar is None:
        sources = find_sources(spark.minor)
        jar = _cached_path(spark, sources.digest)
        once = f"compiling the shim for Spark {spark.version} (once, some seconds)"
        sys.stderr.write(f"pyspark-paralagg: {once}: {jar}\n")
        build_jar(spark, sources, jar)
    return jar


def locate_jar(spark: SparkHome) -> Path | None:
    """Return the path of a jar that fits, or None if it has to be compiled first.

    A jar fits if it was compiled from these sources, against this Spark or against another patch level with which the
    jar links. A jar among Spark's own is preferred: images have it there.
    """
    digest = find_sources(spark.minor).digest
    folders = (spark.jars, _BUNDLED_JARS)
    bundled = [(jar, read_properties(jar)) for folder in folders for jar in sorted(folder.glob("paralagg*.jar"))]
    bundled = [(jar, properties) for jar, properties in bundled if properties.get("shim") == digest]
    for jar, properties in bundled:
        if properties["spark"] == spark.version:
            return jar
    cached = _cached_path(spark, digest)
    if _is_file(cached):
        check_private(private_folder(cached.parent, _SETTING) / cached.name, _SETTING)
        return cached
    for jar, properties in bundled:
        if minor_of(properties["spark"]) == spark.minor and links(jar, spark.jars):
            return jar
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # another user's folder; the later attempt to write raises with the reason
        return False


def _cached_path(spark: SparkHome, digest: str) -> Path:
    return cache_folder() / f"{spark.version}-{digest}" / JAR_NAME


def cache_folder() -> Path:
    """Return the folder of compiled jars: ``pyspark-paralagg`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "pyspark-paralagg"
    except RuntimeError as problem:  # neither HOME nor an entry for this user
        raise EnvironmentProblem(
            "PARALAGG_SHIM_BUILD", f"no folder for the shim's jar: {problem}", value="HOME", hint=_CACHE_HINT
        ) from problem


def read_properties(jar: Path) -> dict[str, str]:
    """Return the properties that ``build_jar`` wrote into the jar; an empty dict for any other file."""
    try:
        with zipfile.ZipFile(jar) as archive:
            lines = archive.read(PROPERTIES).decode().splitlines()
    except (OSError, KeyError, zipfile.BadZipFile):
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def build_jar(spark: SparkHome, sources: ShimSources, jar: Path) -> None:
    """Compile ``sources`` against ``spark`` into ``jar``; replace an existing jar atomically.

    Raises ``EnvironmentProblem`` with ``PARALAGG_SHIM_BUILD`` and the compiler's output.
    """
    try:
        jar.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=jar.parent) as scratch:
            classes = Path(scratch) / "classes"
            classes.mkdir()
            _compile(spark, sources, classes)
            packed = Path(scratch) / JAR_NAME
            _pack(spark, sources, classes, packed)
            packed.chmod(0o644)  # independent of the umask: a jar that others may write to is not loaded
            # The same folder is the same file system, so readers see the old jar, the new one, or none.
            packed.replace(jar)
    except OSError as problem:
        raise EnvironmentProblem(
            "PARALAGG_SHIM_BUILD",
            f"the shim's jar cannot be written: {problem}",
            value=str(jar),
            hint=_CACHE_HINT,
        ) from problem


def _compile(spark: SparkHome, sources: ShimSources, classes: Path) -> None:
    command = [
        str(find_java().launcher),
        # Deep expression trees need stack. The compiler ends before the second JIT pays off: compiling this shim took
        # 6 s of CPU with the first JIT alone, 16 s with both.
        *("-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-cp", os.pathsep.join(str(_compiler_jar(spark, name)) for name in _COMPILER_JARS), "scala.tools.nsc.Main"),
        *("-classpath", str(spark.jars / "*"), "-d", str(classes), "-nowarn", "-encoding", "UTF-8"),
        *map(str, sources.compiled_with(spark)),
    ]
    compilation = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - Spark's own compiler
    if compilation.returncode != 0:
        output = (compilation.stdout + compilation.stderr).strip().splitlines()
        raise EnvironmentProblem(
            "PARALAGG_SHIM_BUILD",
            f"the shim does not compile against Spark {spark.version}:\n" + "\n".join(output[:_COMPILER_OUTPUT_LINES]),
            value=spark.version,
            hint='report the lines above, or use mode="iterate" with backend="dataframe", which needs no shim',
        )


def _compiler_jar(spark: SparkHome, name: str) -> Path:
    for jar in sorted(spark.jars.glob(f"{name}-*.jar")):
        return jar
    raise EnvironmentProblem(
        "PARALAGG_SHIM_BUILD",
        f"{spark.jars} has no {name}-*.jar, which the compilation of the shim needs",
        value=name,
        hint="use a pyspark from PyPI, whose jars contain the Scala compiler, or a wheel of pyspark-paralagg",
    )


def _pack(spark: SparkHome, sources: ShimSources, classes: Path, jar: Path) -> None:
    properties = f"spark={spark.version}\nshim={sources.digest}\n"
    files = [(path.relative_to(classes).as_posix(), path) for path in sorted(classes.rglob("*")) if path.is_file()]
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        # Fixed dates and sorted names: the same sources give the same bytes.
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\n\n")
        archive.writestr(zipfile.ZipInfo(PROPERTIES, _EPOCH), properties)
        for name, path in [*files, *sources.resources]:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
