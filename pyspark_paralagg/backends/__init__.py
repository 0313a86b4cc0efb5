"""Executors: an adapter for each behind one Protocol; ``choose`` selects one and records the reason."""
