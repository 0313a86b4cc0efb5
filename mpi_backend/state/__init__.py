"""Hold one rank's data of a stratum: keys, values, indexes, strings."""
