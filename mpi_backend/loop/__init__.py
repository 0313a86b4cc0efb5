"""Evaluates strata: the fixpoint and its variants."""
