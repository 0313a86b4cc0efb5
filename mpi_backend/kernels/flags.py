"""Flags of a row of an accumulator, one byte each, as ``h_f`` of generated code holds them."""

QUEUED = 1
"""It is on the list of changed rows."""
PRESENT = 2
"""It exists: a rule derived it, or it came with the base."""
IN_DELTA = 4
"""It belongs to the delta that rules read in this iteration."""
COUNTED = 8
"""It is among the rows that the totals of a report count."""
