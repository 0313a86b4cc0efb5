"""Evaluate the strata of a Plan: rules, exchange and aggregation until nothing changes."""
