"""Prove the class of each stratum, or find a counterexample: by rules, samples, then z3."""
