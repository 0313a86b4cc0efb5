"""The engine without Spark: a Plan on MPI ranks, or in this one process (``local``). It imports no pyspark."""
