"""Run the command `paralagg`: `python -m pyspark_paralagg`."""

import sys

from pyspark_paralagg.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
