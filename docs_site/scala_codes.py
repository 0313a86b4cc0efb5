"""``ErrorCodes.scala``: the codes that the shim uses, as constants.

``python -m docs_site.scala_codes`` writes it from the registry ``pyspark_paralagg.codes``: one ``val`` for each
``ErrorCodes.Name`` in the other Scala sources. ``tests/test_error_codes.py`` fails if the file is stale.
"""

from __future__ import annotations

import re
import sys
import textwrap

from docs_site.error_index import ROOT
from pyspark_paralagg.codes import CODES, OF_RANKS

SOURCES = ROOT / "jvm_shim/src/main"
FILE = SOURCES / "scala/org/apache/spark/sql/paralagg/ErrorCodes.scala"
_USE = re.compile(r"\bErrorCodes\.(\w+)")
_TEXT = """\
package org.apache.spark.sql.paralagg

/**
 * The error codes that the shim raises. `python -m docs_site.scala_codes` writes this file from pyspark_paralagg/codes,
 * with the constants that the other sources use.
 */
object ErrorCodes {
%s

  /** Errors of the ranks and their engine, not of the query. Lazy, so that `ShimJars` links with another Scala. */
  lazy val OfRanks: Set[String] = Set(
%s)
}
"""


def constant(code: str) -> str:
    """Return the name of the constant for ``code``.

    >>> constant("PARALAGG_MPI_NO_MPI4PY")
    'MpiNoMpi4py'
    """
    return "".join(word.capitalize() for word in code.removeprefix("PARALAGG_").split("_"))


NAMES = {constant(code): code for code in CODES}
"""The code of each constant."""


def source() -> str:
    """Return the text of ``ErrorCodes.scala``; raise ``KeyError`` for a constant without a registered code."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.scala") if path != FILE]
    used = sorted({name for text in texts for name in _USE.findall(text)} - {"OfRanks"})
    values = "\n".join(f'  val {name} = "{NAMES[name]}"' for name in used)
    of_ranks = textwrap.wrap(", ".join(f'"{code}"' for code in sorted(OF_RANKS)), 112)
    return _TEXT % (values, "\n".join(f"    {line}" for line in of_ranks))


def main() -> None:
    """Write the file."""
    FILE.write_text(source(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
