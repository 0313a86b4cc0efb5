"""Proves the class of each stratum, or finds a counterexample: rules, samples, then z3."""
