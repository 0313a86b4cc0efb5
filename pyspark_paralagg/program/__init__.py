"""Define the logical IR, the Program: what the user asks for. Imports neither pyspark nor mpi4py."""
