"""The engine without Spark: it evaluates a Plan on MPI ranks or in this process (``local``), without pyspark."""
