"""The floor of the solvers."""

import numpy as np

# Smallest value of an entry of H, of a used entry of W and of a rate λ. It keeps v/λ, log λ,
# β/h and v/λ² finite (1e-30 squared is far from underflow) and is so far below any data that
# clamping there does not change the objective. Zeros of W (features never counted) stay zero.
FLOOR = 1e-30
# Least level of data that a fit accepts, far above the floor.
LEAST_LEVEL = 1e10 * FLOOR


def lifted(H):
    """A C-ordered copy of starting activations (K, N), at least at the floor."""
    return np.maximum(H, FLOOR, order="C")
