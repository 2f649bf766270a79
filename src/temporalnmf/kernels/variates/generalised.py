"""The generalised inverse Gaussian distribution.

After L. Devroye (2014), Random variate generation for the generalized inverse Gaussian
distribution, Statistics and Computing 24, 239-246, with other points of contact.
"""

import math

from .shared import compiled, envelope_draw

_SMALLEST, _LARGEST = 2.3e-308, 1.7e308
# Least α: the density of log x is then flat over the whole range of floats.
_FLATTEST = 1e-300
_EXP_MAX = 709.0

# With p = λ ≥ 0 and r = √(λ² + ab), log x has its mode at log m, m = (λ + r)/a, and the log density
# of y = log(x/m) is, with α = r − λ = ab/(r + λ), up to a constant
#
#   ψ(y) = −α (cosh y − 1) − λ (e^y − 1 − y):
#
# concave, two terms of one sign. For p < 0, 1/x is distributed with −p, b, a.


@compiled
def _exp_minus(x, growth):
    """e^x − 1 − x, given e^x − 1."""
    if abs(x) > 0.0625:
        return growth - x
    tail = 1.0 + x / 6 * (1.0 + x / 7 * (1.0 + x / 8 * (1.0 + x / 9)))
    return 0.5 * x * x * (1.0 + x / 3 * (1.0 + x / 4 * (1.0 + x / 5 * tail)))


@compiled
def gig_log_density(alpha, lam, y):
    """ψ(y) and ψ′(y)."""
    if abs(y) > _EXP_MAX:
        return -math.inf, 0.0
    growth = math.expm1(abs(y))
    falling = growth / (1.0 + growth)  # 1 − e^−|y|
    change = growth if y > 0.0 else -falling
    sinh = math.copysign(0.5 * (growth + falling), y)
    value = -0.5 * alpha * growth * falling - lam * _exp_minus(y, change)
    return value, -alpha * sinh - lam * change


@compiled
def _contacts(alpha, lam):
    """Points of contact: s and t with −ψ(t) in [1, 2], −ψ(−s) in [1, 2.14]."""
    # t > 0: cosh t − 1 ≤ e^t − 1 − t ≤ 2 (cosh t − 1). Solve (α + λ)(cosh t − 1) = 1.
    t = 2.0 * math.asinh(math.sqrt(0.5 / (alpha + lam)))
    # s > 0: s²/(2 + s) ≤ e^−s − 1 + s ≤ 1.14 s²/(2 + s). One of the terms is 1, the other less.
    s = 2.0 * math.asinh(math.sqrt(0.5 / alpha))
    return min(s, (1.0 + math.sqrt(1.0 + 8.0 * lam)) / (2.0 * lam)), t


@compiled
def _log_ratio_draw(rng, alpha, lam):
    """A draw y with log density ψ, and its number of rounds."""
    s, t = _contacts(alpha, lam)
    left, xi = gig_log_density(alpha, lam, -s)
    right, zeta = gig_log_density(alpha, lam, t)
    rounds = 0
    while True:
        rounds += 1
        y, height = envelope_draw(rng, s, -left, xi, t, -right, -zeta)
        if height <= gig_log_density(alpha, lam, y)[0]:
            return y, rounds


@compiled
def gig_rounds(rng, p, a, b):
    if not (a >= 0.0 and b >= 0.0 and abs(p) < math.inf and a < math.inf and b < math.inf):
        return math.nan, 0
    if p < 0.0:
        a, b = b, a
    lam = abs(p)
    if a == 0.0 or (b == 0.0 and lam == 0.0):
        return math.nan, 0
    if b == 0.0:
        x, rounds = 2.0 * rng.standard_gamma(lam) / a, 1
    else:
        omega = math.sqrt(a) * math.sqrt(b)
        total = lam + math.hypot(lam, omega)
        alpha = max(omega * (omega / total), _FLATTEST)
        y, rounds = _log_ratio_draw(rng, alpha, lam)
        x = min(total / a, _LARGEST) * math.exp(y)
    x = min(max(x, _SMALLEST), _LARGEST)
    return (1.0 / x if p < 0.0 else x), rounds


@compiled
def gig(rng, p, a, b):
    """Draw from the generalised inverse Gaussian, density ∝ x^(p−1) exp(−(a x + b/x)/2).

    Parameters
    ----------
    rng : numpy.random.Generator
    p : float
        Index, any sign.
    a, b : float
        Not negative. b = 0 needs p > 0 (Gamma), a = 0 needs p < 0 (inverse Gamma); with other
        zeros the result is NaN.

    Returns
    -------
    float
        Positive and finite, clipped to the range of floats.
    """
    return gig_rounds(rng, float(p), float(a), float(b))[0]
