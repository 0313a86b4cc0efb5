"""Logical IR: what the user meant. Imports neither pyspark nor mpi4py."""
