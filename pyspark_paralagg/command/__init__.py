"""Implement the command `paralagg`: directives -> files -> Spark or the engine of ``mpi_backend`` -> results.

Of the package, only ``__main__`` imports this folder.
"""
