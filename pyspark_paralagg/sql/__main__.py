"""Run the compiler's process for one JVM until it closes the pipe: ``python -m pyspark_paralagg.sql``.

Standard output carries answers only. Anything else that this process or a child writes there goes to standard error.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from pyspark_paralagg.sql.serve import serve

if __name__ == "__main__":
    for stream in (sys.stdin, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # independent of the locale: the JVM writes and reads UTF-8
            stream.reconfigure(encoding="utf-8")
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.stdout = sys.stderr
        serve(sys.stdin, answers)
