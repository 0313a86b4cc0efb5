"""``python -m pyspark_paralagg.sql``: answers the questions of one JVM until that closes the pipe."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from pyspark_paralagg.sql.serve import serve

if __name__ == "__main__":
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # whatever the locale is: the JVM writes and reads UTF-8
            stream.reconfigure(encoding="utf-8")
    serve(sys.stdin, sys.stdout)
