"""Define the flags of an accumulator's row, one byte for each row: ``h_f`` in generated code."""

QUEUED = 1
"""The row is on the list of changed rows."""
PRESENT = 2
"""The row exists: a rule derived it, or it is a base row."""
IN_DELTA = 4
"""The row belongs to the delta that rules read in this iteration."""
COUNTED = 8
"""The row is included in the totals of a report."""
SETTLED = 16
"""The row is unchanged since before the run (settled relations)."""
