"""Define the functions that users call: ``recursive_agg``, ``recursive``, ``datalog``, ``explain``, ``aggregator``."""
