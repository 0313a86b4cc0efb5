"""Evaluate a Plan without Spark: on MPI ranks, or in this process (``local``). Nothing here imports pyspark."""
