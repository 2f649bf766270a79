"""The one floor of the solvers."""

import numpy as np

# Smallest value of an entry of H, of a used entry of W and of a rate λ. It keeps v/λ, log λ,
# β/h and v/λ² finite (1e-30 squared is far from underflow) and lies so far below any data that
# clamping there moves no objective. Exact zeros of W (features never counted) are left alone.
FLOOR = 1e-30
# Least level of data that a fit takes: far enough above.
LEAST_LEVEL = 1e10 * FLOOR


def lifted(H):
    """A copy of activations to start from, (K, N), row by row in memory and not below the floor."""
    return np.maximum(H, FLOOR, order="C")
