"""Reduce Soufflé's larger constructs to declarations and plain rules: components, equivalence relations, records."""
