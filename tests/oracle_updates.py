"""Brute-force minimisers of the written-out objectives, in sixty digits.

The densities are those of docs/math.md and share nothing with the library. Arrays hold
gmpy2 numbers (dtype object), one per case; `PRECISION` has to be the precision of gmpy2's context.
"""

from functools import lru_cache

import gmpy2
import numpy as np

PRECISION = 200
_GOLDEN = (5.0**0.5 - 1.0) / 2.0

# Most arguments come back in every step of a search.
_remember = lru_cache(maxsize=1 << 17)
exact = np.frompyfunc(gmpy2.mpfr, 1, 1)
exp = np.frompyfunc(gmpy2.exp, 1, 1)
root = np.frompyfunc(gmpy2.sqrt, 1, 1)
log = np.frompyfunc(_remember(gmpy2.log), 1, 1)
log_gamma = np.frompyfunc(_remember(lambda x: gmpy2.lgamma(x)[0]), 1, 1)


# Log densities.


def gamma_law(x, shape, rate):
    return shape * log(rate) - log_gamma(shape) + (shape - 1) * log(x) - rate * x


def beta_law(x, first, second):
    constant = log_gamma(first + second) - log_gamma(first) - log_gamma(second)
    return constant + (first - 1) * log(x) + (second - 1) * log(1 - x)


def poisson_law(count, mean):
    return count * log(mean) - mean - log_gamma(count + 1)


# One step of every chain: the log density of (aux, after) given before. `jacobian(x)` is what the
# scale adds for a variable whose mode is taken: log x on the log scale, nothing on the linear one.


def gap_step(before, after, aux, jacobian, alpha, beta):
    return gamma_law(after, alpha, beta) + jacobian(after)


def rate_step(before, after, aux, jacobian, alpha, beta):
    return gamma_law(after, alpha, beta / before) + jacobian(after)


def hier_rate_step(before, after, z, jacobian, alpha_z, beta_z, alpha_h, beta_h):
    kept = gamma_law(z, alpha_z, beta_z * before) + jacobian(z)
    return kept + gamma_law(after, alpha_h, beta_h * z) + jacobian(after)


def shape_step(before, after, aux, jacobian, alpha, beta):
    return gamma_law(after, alpha * before, beta) + jacobian(after)


def hier_shape_step(before, after, z, jacobian, alpha, beta):
    """Linear in the count z up to terms without h, so that z may be the mean of the EM bound."""
    return poisson_law(z, beta * before) + gamma_law(after, alpha + z, beta) + jacobian(after)


def arg_step(before, after, z, jacobian, alpha, beta, rho):
    """Linear in the count z, like that of HierShape."""
    tau = beta / (1 - rho)
    kept = poisson_law(z, tau * rho * before)
    return kept + gamma_law(after, alpha + z, tau) + jacobian(after)


def bgar_step(before, after, b, jacobian, alpha, beta, eta, gamma):
    fresh = after - b * before
    kept = beta_law(b, eta, gamma) + jacobian(b) + jacobian(1 - b)
    return kept + gamma_law(fresh, gamma, beta) + jacobian(fresh)


STEPS = {
    "gap": gap_step,
    "rate": rate_step,
    "hier_rate": hier_rate_step,
    "shape": shape_step,
    "hier_shape": hier_shape_step,
    "bgar": bgar_step,
    "arg": arg_step,
}


class Law:
    """−log density of K chains on a scale, hyper-parameters as arrays with one value per chain."""

    def __init__(self, name, scale, parameters):
        self.name = name
        self.scale = scale
        self.parameters = {key: exact(value) for key, value in parameters.items()}

    def jacobian(self, x):
        return log(x) if self.scale == "log" else 0

    def first(self, h):
        """Of h_1, which is flat except under GaP, BGAR and ARG."""
        if self.name not in ("gap", "bgar", "arg"):
            return 0
        alpha, beta = self.parameters["alpha"], self.parameters["beta"]
        return -gamma_law(h, alpha, beta) - self.jacobian(h)

    def step(self, before, after, aux):
        return -STEPS[self.name](before, after, aux, self.jacobian, **self.parameters)

    def around(self, h, before, after, b_before=None, b_after=None):
        """Every term with h; a neighbour that does not exist is None."""
        arriving = self.first(h) if before is None else self.step(before, h, b_before)
        leaving = 0 if after is None else self.step(h, after, b_after)
        return arriving + leaving


def majorizer_value(h, p, q, r):
    return -p * log(h) + q * h + r / h


# Searches. They run in v, which has no bounds: h = lower + exp(v) on a half-line,
# lower + width·expit(v) on an interval.


def half_line(v, lower=0):
    return lower + exp(v)


def interval(v, lower, width):
    return lower + width / (1 + exp(-v))


def golden_section(cost, low, high, width):
    """Minimisers of `cost` between the arrays low and high, to the given width."""
    ratio = (gmpy2.sqrt(gmpy2.mpfr(5)) - 1) / 2
    n_steps = int(np.ceil(np.log(width / float(np.max(high - low))) / np.log(_GOLDEN)))
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    cost_a, cost_b = cost(a), cost(b)
    for _ in range(n_steps):
        left = (cost_a < cost_b).astype(bool)
        low, high = np.where(left, low, a), np.where(left, b, high)
        new = np.where(left, high - ratio * (high - low), low + ratio * (high - low))
        cost_new = cost(new)
        a, b = np.where(left, new, b), np.where(left, a, new)
        cost_a, cost_b = np.where(left, cost_new, cost_b), np.where(left, cost_a, cost_new)
    return (low + high) / 2


def brute_force(cost, n_cases, *, reach, spacing, width=1e-14):
    """v of the lowest cost(v) on (−reach, reach), and whether that is the lower limit."""
    grid = exact(np.arange(-reach, reach + spacing, spacing))
    values = np.array([cost(np.full(n_cases, v)) for v in grid])
    best = np.argmin(values, axis=0)
    assert np.all(best < len(grid) - 1), "the search ran to its upper limit"
    inner = np.maximum(best, 1)
    return golden_section(cost, grid[inner - 1], grid[inner + 1], width), best == 0


def simplex_by_bisection(p, q, r):
    """(W2) for one column: w_f(μ) with Σ_f w_f(μ) = 1, bisecting log(μ + min q)."""
    used = p + r > 0.0
    p, q, r = exact(p[used]), exact(q[used]), exact(r[used])
    excess = q - q.min()
    low, high = gmpy2.mpfr(-300), gmpy2.mpfr(300)
    for _ in range(PRECISION):
        middle = (low + high) / 2
        rate = excess + gmpy2.exp(middle)
        w = (p + root(p * p + 4 * rate * r)) / (2 * rate)
        low, high = (middle, high) if w.sum() > 1 else (low, middle)
    weights = exact(np.zeros(len(used)))
    weights[used] = w
    return weights
