"""Verified Program -> Plan: delta rules, join chains, distribution, indexes."""
