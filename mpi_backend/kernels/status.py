"""Define the layout of ``cur``, the array of numbers that a kernel shares with the loop around it.

A kernel processes the rows ``cur[ROW]:cur[ROW_END]``. If it is suspended, it stores the positions of its inner loops
from ``cur[PLACES]`` on and the reason in ``cur[STATUS]``. The next call has ``cur[RESUMED]`` set. ``cur[WORK]``
counts the rows of probed sides that were read: edges visited, in graphs.
"""

MAX_LOOPS = MAX_ARGUMENTS = 512
"""The maximum of nested loops in a rule, and of arguments of a text function."""

ROW, ROW_END, STATUS, OUT, RESUMED, WORK, PLACES = 0, 1, 2, 3, 4, 5, 6
CALL = PLACES + MAX_LOOPS
LENGTH = CALL + MAX_ARGUMENTS

DONE = 0
FULL = 1
"""The buffer of derived rows is full; ``cur[OUT]`` counts its rows."""
WANTED = 1000
"""Plus the number of a text function whose result is missing; its arguments begin at ``cur[CALL]``."""
FAILED = 2000
"""Plus the number of an error."""
