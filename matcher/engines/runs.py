"""Arrays that are cut into runs of rows: those of some runs, copied one behind the other. Compiled."""

import numpy as np
from numba import njit

__all__ = ["copy_runs"]


@njit(cache=True, nogil=True)
def copy_runs(values, starts, places):
    """The rows of the runs at these places; `starts` has the first row of each run and the end of the last."""
    count = 0
    for place in places:
        count += starts[place + 1] - starts[place]
    found = np.empty((count, values.shape[1]), values.dtype)
    at = 0
    for place in places:
        for row in range(starts[place], starts[place + 1]):
            for k in range(values.shape[1]):
                found[at, k] = values[row, k]
            at += 1
    return found
