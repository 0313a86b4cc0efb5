"""``python -m pyspark_paralagg.sql``: answers the questions of one JVM until that closes the pipe."""

from __future__ import annotations

import sys

from pyspark_paralagg.sql.serve import serve

if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
