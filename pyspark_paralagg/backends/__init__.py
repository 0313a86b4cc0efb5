"""Executors: one small adapter each behind one Protocol; ``choose`` decides and says why."""
