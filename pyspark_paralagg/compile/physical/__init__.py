"""Build the Plan of a verified Program: delta rules, join chains, distribution, indexes."""
