"""What one rank holds of a stratum: keys, values, indexes, strings."""
