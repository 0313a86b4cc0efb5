"""Explain single rows of a result: their derivations (``ra.why``), or why they are missing (``ra.why_not``)."""
