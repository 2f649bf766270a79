"""A slice-sampling step.

R. M. Neal (2003), Slice sampling, Annals of Statistics 31, 705-767: the interval by doubling (his
figures 4 and 6), the draw by shrinkage (figure 5).
"""

from numba import njit

# Inlined where it is called: a function handed over at run time would keep the caller's machine
# code from being kept on disk.
inlined = njit(nogil=True, error_model="numpy", inline="always")

# The interval grows to at most 2^60 widths. An average trial takes a quarter of it away, or more.
DOUBLINGS = 60
TRIALS = 400

# Any limits keep the law. That of the doublings is Neal's. The interval and the rejected trials
# that lead from x to x′ lead, with the same density and in the same number of trials, from x′ to x
# (his section 4.3); so this holds for the moves within a number of trials, and to stay at x when
# there was none is a move that is its own reverse.


@inlined
def _double(rng, log_density, x, params, width, level, doublings):
    """An interval around x whose ends lie outside of the slice, if the limit is not reached."""
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
    """Move x by a step that leaves a law unchanged.

    Any width gives the right law; one that is wrong by a factor c costs some log₂ c evaluations.

    Parameters
    ----------
    rng : numpy.random.Generator
    log_density : compiled function of (x, params)
        Log density on the real line up to a constant, −∞ (or NaN) outside of the support. For a
        positive unknown take x as its logarithm, and add x for the change of variables.
    x : float
        Where the chain is, inside the support.
    params : tuple
        Handed to `log_density`.
    width : float
        About the width of the law, positive.
    doublings, trials : int
        Limits, which do not change the law: at most 3 + doublings + trials (1 + 2 doublings)
        evaluations.

    Returns
    -------
    float
        Where it goes; x itself if all trials were refused.
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
