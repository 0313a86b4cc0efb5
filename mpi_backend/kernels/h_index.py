"""Take the rows of a witness relation into the h-indexes of its view (``HIndex`` in ``program/aggregators.py``).

A row of the view knows how many witnesses have each value below its h. If a value falls, that is one witness more below
h; while fewer than h are left, h falls by one, and the witnesses of that value count again. (Twin of ``HIndexes``.)
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT
from mpi_backend.kernels.lists import mark_changed

ANY = MISSING = np.iinfo(np.int64).max
"""The value of a witness that holds any h, and the total of a row that has none yet."""
MOST = np.iinfo(np.int32).max - 8
"""The greatest total: the shim's rows of counts are arrays of Java."""


@njit(nogil=True)
def follow(  # noqa: C901 - one pass over the rows
    rows, done, row_of, nulls, total, value, valid, value_at, taken, totals, levels, lost, first, below, used, to_v,
    to_f, to_d, to_n, to_p, origin,
):  # fmt: skip
    """Take ``rows`` from ``done`` on. Return where it ended: before a row that needs more room in ``below``.

    ``taken`` has the last value of each witness. ``below[first[at] + x]`` is the number of witnesses of row ``at`` with
    the value x, for x below its level; ``lost`` is their sum.
    """
    for i in range(done, len(rows)):
        row = rows[i]
        at = row_of[row]
        before, latest = taken[row], taken[row]
        if nulls[row] == 0 and (valid.shape[0] == 0 or valid[value_at, row] != 0):
            latest = max(np.int64(0), value[row])
        new_total = max(np.int64(0), total[row])
        if totals[at] == MISSING:
            levels[at] = new_total
        totals[at] = min(totals[at], new_total)
        level = levels[at]
        if latest < before and latest < level:
            if first[at] < 0:
                if used[0] + level > len(below):
                    return i
                first[at] = used[0]
                used[0] += level
            below[first[at] + latest] += 1
            if before < level:
                below[first[at] + before] -= 1
            else:
                lost[at] += 1
        taken[row] = latest
        while level > 0 and totals[at] - lost[at] < level:
            level -= 1
            if first[at] >= 0:
                lost[at] -= below[first[at] + level]
        levels[at] = level
        if to_v[at] == level and to_f[at] & PRESENT:
            continue
        to_v[at] = level
        mark_changed(at, origin + row, to_f, to_d, to_n, to_p)
    return len(rows)
