"""The array of numbers through which a kernel and the loop around it talk.

A kernel goes through the rows ``cur[ROW]`` until ``cur[ROW_END]``. Where it cannot go on it notes the places of its
inner loops from ``cur[PLACES]`` on and why in ``cur[STATUS]``, and is called again with ``cur[RESUMED]`` set.
"""

MOST_LOOPS = MOST_ARGUMENTS = 512
"""What a rule may have inside of one another, and a text function may take."""

ROW, ROW_END, STATUS, OUT, RESUMED, PLACES = 0, 1, 2, 3, 4, 5
CALL = PLACES + MOST_LOOPS
LENGTH = CALL + MOST_ARGUMENTS

DONE = 0
FULL = 1
"""The buffer of derived rows has no room left; ``cur[OUT]`` counts its rows."""
WANTED = 1000
"""And the number of a text function, whose arguments stand from ``cur[CALL]`` on."""
FAILED = 2000
"""And the number of an error."""
