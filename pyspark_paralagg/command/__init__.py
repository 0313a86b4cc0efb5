"""`paralagg run`: directives -> files -> Spark and `ra.datalog`, or the engine of ``mpi_backend`` -> results.

Nothing else imports this folder.
"""
