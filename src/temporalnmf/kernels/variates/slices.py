"""A slice-sampling step.

R. M. Neal (2003), Slice sampling, Annals of Statistics 31, 705-767: the interval by doubling (his
figures 4 and 6), the draw by shrinkage (figure 5).
"""

from numba import njit

# Inlined: with a function as a run-time argument, numba could not cache the caller on disk.
inlined = njit(nogil=True, error_model="numpy", inline="always")

# The interval grows to at most 2^60 widths. A trial shrinks it by a quarter or more on average.
DOUBLINGS = 60
TRIALS = 400

# The distribution is invariant whatever the limits. That of the doublings is Neal's. The interval
# and the rejected trials that lead from x to x′ lead from x′ to x with the same density and number
# of trials (his section 4.3). So moves within a number of trials are reversible, and so is staying
# at x otherwise.


@inlined
def _double(rng, log_density, x, params, width, level, doublings):
    """An interval around x with ends outside the slice, unless the limit is reached."""
    left = x - width * rng.random()
    right = left + width
    left_inside = log_density(left, params) > level
    right_inside = log_density(right, params) > level
    for _ in range(doublings):
        if not (left_inside or right_inside):
            break
        if rng.random() < 0.5:
            left -= right - left
            left_inside = log_density(left, params) > level
        else:
            right += right - left
            right_inside = log_density(right, params) > level
    return left, right


@inlined
def _reversible(log_density, x, new, params, width, level, left, right, doublings):
    """Whether doubling from `new` could have led to the same interval."""
    differ = False
    for _ in range(doublings):
        if right - left <= 1.1 * width:
            break
        middle = left + 0.5 * (right - left)
        if (x < middle) != (new < middle):
            differ = True
        if new < middle:
            right = middle
        else:
            left = middle
        if differ and not (log_density(left, params) > level or log_density(right, params) > level):
            return False
    return True


@inlined
def slice_step(rng, log_density, x, params, width, doublings=DOUBLINGS, trials=TRIALS):
    """Move x by a step that leaves a distribution invariant.

    Any width is valid; one that is wrong by a factor c costs about log₂ c evaluations.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : compiled function of (x, params)
        Log density on the real line up to a constant, −∞ (or NaN) outside the support. For a
        positive unknown let x be its logarithm, and add x for the change of variables.
    x : float
        The current point, inside the support.
    params : tuple
        Passed to `log_density`.
    width : float
        Approximate width of the distribution, positive.
    doublings, trials : int
        Limits: at most 3 + doublings + trials (1 + 2 doublings) evaluations.

    Returns
    -------
    float
        The new point; x itself if all trials were rejected.
    """
    level = log_density(x, params) - rng.standard_exponential()
    left, right = _double(rng, log_density, x, params, width, level, doublings)
    low, high = left, right
    for _ in range(trials):
        new = low + rng.random() * (high - low)
        if log_density(new, params) > level and _reversible(
            log_density, x, new, params, width, level, left, right, doublings
        ):
            return new
        if new < x:
            low = new
        else:
            high = new
    return x
