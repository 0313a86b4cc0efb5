"""Holds what one rank has of a stratum: keys, values, indexes, strings."""
