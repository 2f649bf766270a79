"""Random variates against their laws.

Every comparison has a false-alarm rate of at most 1e-6 (five standard deviations: 6e-7). There are
some 700, so correct samplers with other seeds would fail in fewer than one of a thousand suites.
"""

import math

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import digamma, polygamma

from temporalnmf.kernels.variates import (
    allocate,
    bessel,
    binomial,
    crt,
    few_crt,
    gig,
    slice_step,
    splits,
    tilted,
)
from temporalnmf.kernels.variates.generalised import gig_log_density, gig_rounds
from temporalnmf.kernels.variates.shared import log1p_minus, log_rising
from temporalnmf.kernels.variates.splits import binomial_rounds
from temporalnmf.kernels.variates.tilted import bessel_rounds

FALSE_ALARM = 1e-6
DEVIATIONS = 5.0
SIZE = 20_000


def sampler(draw):
    """Many draws in compiled code."""

    @njit
    def many(rng, size, arguments):
        draws = np.empty(size)
        for i in range(size):
            draws[i] = draw(rng, *arguments)
        return draws

    def sample(*arguments, size=SIZE, seed=0):
        return many(np.random.default_rng(seed), size, tuple(float(a) for a in arguments))

    return sample


def mean_rounds(draw):
    """Average number of rounds of a rejection."""

    @njit
    def mean(rng, size, arguments):
        total = 0
        for _ in range(size):
            total += draw(rng, *arguments)[1]
        return total / size

    return lambda *arguments: mean(
        np.random.default_rng(0), SIZE, tuple(float(a) for a in arguments)
    )


many_gig, many_bessel, many_crt, many_binomial = map(sampler, (gig, bessel, crt, binomial))
many_few_crt = sampler(few_crt)


def assert_law(draws, cdf):
    assert stats.kstest(draws, cdf).pvalue > FALSE_ALARM


def assert_counts(draws, first, pmf):
    """Chi-square test of draws against P(first), P(first + 1), …, in cells of at least 1 %."""
    assert np.all(draws == np.floor(draws))
    assert draws.min() >= first
    cell = np.minimum(np.cumsum(pmf) / np.sum(pmf) * (1 - 1e-12), 1 - 1e-12) * 100 // 1
    cell = np.unique(cell, return_inverse=True)[1]
    expected = np.bincount(cell, weights=pmf) * (len(draws) / np.sum(pmf))
    where = np.clip(draws - first, 0, len(pmf) - 1).astype(int)
    observed = np.bincount(cell[where], minlength=len(expected))
    # Cells at the ends can be small: one with an expectation below 5 joins its neighbour.
    while len(expected) > 1 and expected.min() < 5:
        i = expected.argmin()
        j = i + 1 if i == 0 else i - 1
        expected[j] += expected[i]
        observed[j] += observed[i]
        expected, observed = np.delete(expected, i), np.delete(observed, i)
    if len(expected) == 1:
        assert observed[0] == len(draws)
        return
    square = np.sum((observed - expected) ** 2 / expected)
    assert stats.chi2.sf(square, len(expected) - 1) > FALSE_ALARM


def assert_mean(draws, mean, variance):
    assert abs(draws.mean() - mean) < DEVIATIONS * math.sqrt(variance / len(draws))


# Differences of logarithms.


def test_log1p_minus_agrees_with_mpmath():
    u = np.concatenate(
        (-1 + np.logspace(-8, -0.1, 40), *np.outer([1, -1], np.logspace(-20, -1, 90)))
    )
    u = np.append(u, np.logspace(-1, 5, 40))
    with mpmath.workdps(60):
        reference = [mpmath.log(1 + mpmath.mpf(v)) - mpmath.mpf(v) for v in u]
        errors = [float(abs(log1p_minus(v) / r - 1)) for v, r in zip(u, reference, strict=True)]
    assert max(errors) < 5e-15


@pytest.mark.parametrize("z", [1.0, 1.7, 9.0, 15.0, 16.0, 40.5, 1e4, 1e9, 1e15])
def test_log_rising_agrees_with_mpmath(z):
    for share in (-0.9, -1e-2, -1e-6, 1e-9, 1e-4, 0.3, 5.0):
        k = share * z if z < 16 else np.trunc(share * z)
        with mpmath.workdps(60):
            value = mpmath.loggamma(mpmath.mpf(z) + k) - mpmath.loggamma(z) - k * mpmath.log(z)
            error = float(abs(log_rising(z, k) - value))
        assert error < 1e-14 * max(1.0, abs(float(value)))


# Generalised inverse Gaussian law.

INDICES = [0.0, 1e-9, 1e-3, 0.3, 1.0, 7.5, 200.0, 1e5, 1e9]
PRODUCTS = [1e-30, 1e-8, 1e-2, 0.4, 3.0, 100.0, 1e6, 1e12]


def gig_cdf(p, a, b):
    """By trapezoids in log x, with the density as it is written, relative to the mode."""
    root = np.sqrt(p * p + a * b)
    mode = (p + root) / a if p > 0 else b / (root - p)

    def log_density(y):
        return p * y - 0.5 * (a * mode * np.expm1(y) + b / mode * np.expm1(-y))

    reach = np.concatenate((np.logspace(-9, 2, 3000), np.linspace(100, 1e4, 3000)))
    with np.errstate(over="ignore"):
        ends = [sign * reach[np.argmax(log_density(sign * reach) < -45)] for sign in (-1, 1)]
    y = np.linspace(*ends, 40_001)
    density = np.exp(log_density(y))
    cdf = np.cumsum(density) - 0.5 * density
    return lambda x: np.interp(np.log(x / mode), y, cdf / density.sum())


@pytest.mark.parametrize("lam", INDICES)
@pytest.mark.parametrize("omega", PRODUCTS)
def test_gig_log_density_does_not_cancel(lam, omega):
    total = lam + math.hypot(lam, omega)
    alpha = omega * (omega / total)
    with mpmath.workdps(60):
        exact = mpmath.mpf(lam), mpmath.mpf(omega)
        mode = (exact[0] + mpmath.hypot(*exact)) / exact[1]
        for y in np.array([-5.0, -1.0, -0.1, 0.1, 1.0, 5.0]) / math.sqrt(max(0.01, alpha + lam)):
            up, down = mpmath.expm1(y), mpmath.expm1(-mpmath.mpf(y))
            value = exact[0] * y - exact[1] / 2 * (mode * up + down / mode)
            slope = exact[0] - exact[1] / 2 * (mode * (up + 1) - (down + 1) / mode)
            for ours, reference in zip(gig_log_density(alpha, lam, y), (value, slope), strict=True):
                assert abs(ours / float(reference) - 1) < 2e-14


@pytest.mark.each_value
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("product", PRODUCTS)
def test_gig_follows_its_law(index, product, sign):
    p, a, b = sign * index, product * 30.0, product / 30.0
    draws = many_gig(p, a, b, seed=int(1e3 * (index + product)) % 2**31)
    assert_law(draws, gig_cdf(p, a, b))


@pytest.mark.parametrize("p", [-2.0, 0.0, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("omega", [0.3, 2.0, 50.0])
def test_gig_has_the_moments_of_bessel_functions(p, omega):
    a, b = omega * 4.0, omega / 4.0
    # E x^k = (b/a)^(k/2) K_{p+k}(ω) / K_p(ω)
    moments = [
        0.25**k * float(mpmath.besselk(p + k, omega) / mpmath.besselk(p, omega)) for k in (1, 2)
    ]
    assert_mean(many_gig(p, a, b, size=100_000), moments[0], moments[1] - moments[0] ** 2)


@pytest.mark.parametrize("p", [0.2, 1.0, 30.0, 1e9])
def test_gig_is_gamma_or_its_inverse_at_the_edge(p):
    law = stats.gamma(p, scale=2.0 / 3.0)
    assert_law(many_gig(p, 3.0, 0.0), law.cdf)
    assert_law(1.0 / many_gig(-p, 0.0, 3.0), law.cdf)
    assert_law(many_gig(p, 3.0, 1e-60), law.cdf)


def test_gig_is_finite_and_positive_at_the_ends_of_the_floats():
    extremes = [5e-324, 1e-300, 1e-30, 1.0, 1e30, 1e300]
    for p in (0.0, 1e-300, 1e-5, 1.0, 1e9, 1e300, -1e-5, -1e9):
        for a in extremes:
            for b in extremes:
                draws = many_gig(p, a, b, size=50)
                assert np.all(np.isfinite(draws))
                assert np.all(draws > 0.0)


def test_gig_without_a_law_is_nan():
    for arguments in (
        (0.0, 1.0, 0.0),
        (-1.0, 1.0, 0.0),
        (1.0, 0.0, 1.0),
        (1.0, -1.0, 1.0),
        (np.nan, 1, 1),
    ):
        assert np.all(np.isnan(many_gig(*arguments, size=3)))


def test_gig_needs_few_rounds():
    rounds = mean_rounds(gig_rounds)
    worst = max(rounds(p, omega, omega) for p in INDICES for omega in PRODUCTS)
    assert 1.0 < worst < 1.6


# Bessel law.


def bessel_pmf(nu, x):
    """The first count of a window, and P there, by products of ratios from the mode."""
    mode = np.floor(0.5 * x * (x / (np.hypot(nu, x) + abs(nu))) if nu > 0 else 0.5 * (x - nu))
    window = np.ceil(12 * np.sqrt(mode + 1) + 30)
    first = max(0.0, mode - window)
    n = np.arange(first, mode + window)
    steps = 2 * np.log(x / 2) - np.log(n[1:]) - np.log(n[1:] + nu)
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    return first, np.exp(logs - logs.max())


@pytest.mark.each_value
@pytest.mark.parametrize("nu", [-0.999, -0.5, 0.0, 3.2, 150.0, 1e6])
@pytest.mark.parametrize("x", [1e-3, 0.7, 6.0, 33.0, 40.0, 1e3, 1e6, 1e9])
def test_bessel_follows_its_law(nu, x):
    assert_counts(many_bessel(nu, x), *bessel_pmf(nu, x))


@pytest.mark.parametrize(("nu", "mode"), [(-0.9, 17.0), (2.5, 100.0), (1e6, 1e4), (0.3, 5e8)])
def test_bessel_log_ratio_agrees_with_mpmath(nu, mode):
    g = (mode + 0.4) * (mode + 0.4 + nu)
    slope = math.log(g / ((mode + 1) * (mode + 1 + nu)))
    for k in np.trunc(np.array([-4, -1, 0.3, 5]) * math.sqrt(mode)):
        with mpmath.workdps(60):
            top, bottom = mpmath.mpf(mode) + k + 1, mpmath.mpf(mode) + 1
            value = k * mpmath.log(g)
            for shift in (0, mpmath.mpf(nu)):
                value += mpmath.loggamma(bottom + shift) - mpmath.loggamma(top + shift)
            found = tilted.bessel_log_ratio(nu, mode, slope, k)
            assert abs(found - float(value)) < 1e-14 * (10 + abs(k))


def test_bessel_has_the_mean_of_bessel_functions():
    for nu, x in ((-0.7, 2.0), (0.3, 30.0), (4.0, 90.0), (70.0, 200.0)):
        # E n = x I_{ν+1}(x) / (2 I_ν(x)),  E n(n−1) = x² I_{ν+2}(x) / (4 I_ν(x))
        first, second = (
            float((x / 2) ** k * mpmath.besseli(nu + k, x) / mpmath.besseli(nu, x)) for k in (1, 2)
        )
        assert_mean(many_bessel(nu, x, size=100_000), first, second + first - first**2)


def test_bessel_has_its_limits_at_the_edge():
    assert np.all(many_bessel(0.0, 0.0, size=10) == 0.0)
    assert np.all(many_bessel(1e300, 1.0, size=10) == 0.0)
    assert np.all(np.isfinite(many_bessel(-1 + 1e-15, 1e-300, size=10)))
    assert np.all(np.isfinite(many_bessel(1e12, 1e15, size=10)))
    for arguments in ((-1.0, 1.0), (0.0, -1.0), (0.0, np.inf)):
        assert np.all(np.isnan(many_bessel(*arguments, size=3)))


def test_bessel_needs_few_rounds():
    rounds = mean_rounds(bessel_rounds)
    worst = max(rounds(nu, x) for nu in (-0.9, 0.0, 50.0, 1e6) for x in (40.0, 100.0, 1e4, 1e9))
    assert 1.0 < worst < 1.6


# Chinese restaurant tables.


def crt_pmf(n, r):
    """By convolution, one customer at a time."""
    pmf = np.ones(1)
    for i in range(n):
        p = r / (r + i)
        pmf = np.append(pmf * (1 - p), 0.0) + np.append(0.0, pmf * p)
    return pmf


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 2, 7, 60, 400, 2500])
@pytest.mark.parametrize("r", [1e-6, 0.05, 1.0, 12.0, 300.0, 1e4, 1e7])
def test_crt_follows_its_law(n, r):
    assert_counts(many_crt(n, r), 0, crt_pmf(n, r))


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 2, 7, 64, 65, 400])
@pytest.mark.parametrize("r", [1e-30, 0.05, 1.0, 12.0, 300.0])
def test_few_crt_follows_the_same_law(n, r):
    assert_counts(many_few_crt(n, r), 0, crt_pmf(n, r))
    assert np.all(many_few_crt(0.0, r, size=10) == 0.0)


@pytest.mark.parametrize(
    ("n", "r", "size"),
    [(1e6, 1e-3, 5000), (1e6, 5.0, 5000), (1e9, 30.0, 5000), (1e9, 1e4, 500), (1e5, 1e5, 2000),
     (1e7, 1e6, 300), (1e9, 1e9, 60), (1e6, 1e12, 5000)],
)  # fmt: skip
def test_crt_of_many_customers_has_its_moments(n, r, size):
    draws = many_crt(n, r, size=size)
    if r > 1e5 * n:
        # Customers without a table: the sum of i/(r + i), about Poisson.
        draws, mean = n - draws, n * (n - 1) / (2 * r) - (n - 1) * n * (2 * n - 1) / (6 * r * r)
        variance = mean
    else:
        mean = r * (digamma(r + n) - digamma(r))
        variance = mean + r * r * (polygamma(1, r + n) - polygamma(1, r))
    assert_mean(draws, mean, variance)
    if mean > 50:
        assert stats.kstest((draws - mean) / math.sqrt(variance), "norm").pvalue > FALSE_ALARM
        spread = np.var(draws) / variance * size
        assert (
            2 * min(stats.chi2.cdf(spread, size - 1), stats.chi2.sf(spread, size - 1)) > FALSE_ALARM
        )


def test_crt_has_its_limits_at_the_edge():
    assert np.all(many_crt(0.0, 1.0, size=10) == 0.0)
    for r in (0.0, 1e-300, 1e-30):
        assert np.all(many_crt(1e9, r, size=10) == 1.0)
    assert np.all(many_crt(1e9, 1e300, size=10) == 1e9)


# Splits.


def binomial_pmf(n, p):
    """The first count of a window of twelve deviations, and P there."""
    window = np.ceil(12 * math.sqrt(n * p * (1 - p)) + 30)
    first, last = max(0.0, np.floor(n * p - window)), min(n, np.ceil(n * p + window))
    return first, stats.binom(n, p).pmf(np.arange(first, last + 1))


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 5, 8, 9, 30, 45, 200, 10_000, 10**9])
@pytest.mark.parametrize("p", [1e-9, 0.03, 0.3, 0.5, 0.8, 1 - 1e-7])
def test_binomial_follows_its_law(n, p):
    assert_counts(many_binomial(n, p), *binomial_pmf(n, p))


@pytest.mark.parametrize(("n", "p"), [(30.0, 0.4), (1e4, 0.01), (1e9, 0.3)])
def test_binomial_log_ratio_agrees_with_mpmath(n, p):
    mode = math.floor((n + 1) * p)
    for k in np.trunc(np.array([-3, -1, 0.3, 4]) * math.sqrt(n * p * (1 - p))):
        with mpmath.workdps(60):
            exact = mpmath.mpf(p)
            value = mpmath.log(mpmath.binomial(n, mode + k) / mpmath.binomial(n, mode))
            value += k * mpmath.log(exact / (1 - exact))
            found = splits.binomial_log_ratio(n, p, mode, k)
            assert abs(found - float(value)) < 1e-14 * (10 + abs(k))


@pytest.mark.parametrize("mean", [10.0, 10.6, 12.0, 17.7, 40.0, 1e3, 1e5])
@pytest.mark.parametrize("p", [1e-4, 0.05, 0.2, 0.37, 0.5])
def test_binomial_hat_covers_the_law_and_the_squeeze_lies_below_it(mean, p):
    n = math.ceil(mean / p)
    a, b, certain, scale = splits.binomial_hat(n, p)
    u = np.linspace(-0.4999, 0.4999, 20_001)
    us = 0.5 - abs(u)
    k = np.floor((2 * a / us + b) * u + n * p + 0.5)
    law = stats.binom(n, p)
    accepted = law.pmf(k) / law.pmf(math.floor((n + 1) * p)) * (a / us**2 + b) / scale
    assert accepted.max() <= 1.0
    assert accepted[us >= 0.07].min() >= certain


def test_binomial_has_its_limits_at_the_edge():
    for n, p, value in (
        (5, 0, 0),
        (5, 1, 5),
        (0, 0.4, 0),
        (1e9, 0, 0),
        (1e9, 1, 1e9),
        (1e9, 1e-300, 0),
    ):
        assert np.all(many_binomial(n, p, size=10) == value)
    assert np.all(many_binomial(1e9, np.nan, size=3) == 0.0)


def test_binomial_needs_few_rounds():
    rounds = mean_rounds(binomial_rounds)
    worst = max(
        rounds(n, p) for n, p in ((20, 0.5), (100, 0.1), (1e3, 0.3), (1e9, 1e-8), (1e9, 0.5))
    )
    assert 1.0 < worst < 1.7


@njit
def many_allocations(rng, v, weights, size):
    out = np.zeros((size, len(weights)))
    for i in range(size):
        allocate(rng, v, weights, out[i])
    return out


def allocations(v, weights, size=SIZE):
    return many_allocations(np.random.default_rng(0), float(v), np.array(weights, float), size)


@pytest.mark.each_value
@pytest.mark.parametrize("v", [1, 3, 8, 9, 40, 3000, 10**9])
@pytest.mark.parametrize(
    "weights", [(2.0, 5.0, 1.0), (0.0, 1e-7, 0.0, 3e-7, 1e-7, 0.0), (1.0,) * 12]
)
def test_allocation_is_multinomial(v, weights):
    draws = allocations(v, weights)
    share = np.array(weights) / sum(weights)
    assert np.all(draws.sum(axis=1) == v)
    assert np.all(draws[:, share == 0] == 0)
    for k in np.flatnonzero(share):
        assert_counts(draws[:, k], *binomial_pmf(v, share[k]))
    # Two parts together are binomial, too: the parts are correlated as they should be.
    law = stats.binom(v, min(1.0, share[1] + share[-1]))
    assert_mean(draws[:, 1] + draws[:, -1], law.mean(), law.var() + 1e-12)
    assert np.var(draws[:, 1] + draws[:, -1]) == pytest.approx(law.var(), rel=0.08, abs=0.01)


def test_allocation_to_a_tiny_remainder_has_its_mean():
    v = 1e15
    for weights in ((1.0, 1e-15, 3e-15), (1e-15, 1.0, 3e-15), (3e-15, 1e-15, 1.0)):
        draws = allocations(v, weights, size=100_000)
        for k, weight in enumerate(weights):
            if weight < 1.0:
                assert_mean(draws[:, k], weight * v, weight * v)


def test_allocation_adds_to_what_is_there():
    out = np.array([10.0, 20.0])
    allocate(np.random.default_rng(0), 5.0, np.array([0.0, 1.0]), out)
    allocate(np.random.default_rng(0), 5.0, np.zeros(2), out)
    assert out.tolist() == [10.0, 25.0]
    allocate(np.random.default_rng(0), 1000.0, np.array([1.0, 1.0]), out)
    assert out.sum() == 1035.0


# Slice steps. Starts are drawn from the law; after any number of steps they must follow it still.


@njit
def normal(x, params):
    centre, scale = params
    return -0.5 * ((x - centre) / scale) ** 2


@njit
def two_normals(x, params):
    (distance,) = params
    return math.log(
        0.3 * math.exp(-0.5 * x * x) + 0.7 * math.exp(-0.5 * (x - distance) ** 2) + 1e-300
    )


@njit
def exponential(x, params):
    return -x if x >= 0.0 else -np.inf


@njit
def log_gamma_law(x, params):
    return params[0] * x - math.exp(x)


@njit
def slice_steps(rng, log_density, starts, params, width, steps, doublings, trials):
    ends = starts.copy()
    for _ in range(steps):
        for i in range(len(ends)):
            ends[i] = slice_step(rng, log_density, ends[i], params, width, doublings, trials)
    return ends


def two_normals_cdf(distance):
    return lambda x: 0.3 * stats.norm.cdf(x) + 0.7 * stats.norm.cdf(x - distance)


def two_normals_draws(distance):
    rng = np.random.default_rng(1)
    return rng.standard_normal(SIZE) + distance * (rng.random(SIZE) < 0.7)


def target(name):
    """Log density, parameters, draws and distribution function of a law."""
    rng = np.random.default_rng(1)
    match name:
        case "normal" | "narrow" | "wide":
            scale = {"normal": 1.0, "narrow": 1e-9, "wide": 1e9}[name]
            centre = 2.0 * scale
            draws = centre + scale * rng.standard_normal(SIZE)
            return normal, (centre, scale), draws, stats.norm(centre, scale).cdf
        case "bimodal" | "separate":
            distance = {"bimodal": 4.0, "separate": 12.0}[name]
            draws, cdf = two_normals_draws(distance), two_normals_cdf(distance)
            return two_normals, (distance,), draws, cdf
        case "exponential":
            return exponential, (), rng.standard_exponential(SIZE), stats.expon.cdf
        case _:
            return log_gamma_law, (0.4,), np.log(rng.gamma(0.4, size=SIZE)), stats.loggamma(0.4).cdf


TARGETS = ["normal", "narrow", "wide", "bimodal", "separate", "exponential", "log gamma"]
LIMITS = [(60, 400), (2, 400), (60, 2), (1, 1)]


@pytest.mark.long
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("width", [0.05, 0.7, 20.0])
@pytest.mark.parametrize(
    "name",
    [n if n == "normal" else pytest.param(n, marks=pytest.mark.long) for n in TARGETS],
)
def test_slice_steps_keep_the_law(name, width, limits):
    log_density, params, starts, cdf = target(name)
    # Where the slice is not connected, a wrong rule shows at the boundary between the parts.
    ends = slice_steps(np.random.default_rng(2), log_density, starts, params, width, 3, *limits)
    assert_law(ends, cdf)
    if limits == LIMITS[0] and name != "separate":
        assert abs(np.corrcoef(starts, ends)[0, 1]) < 0.6


@pytest.mark.long
def test_slice_steps_reach_both_modes():
    starts = np.zeros(SIZE)
    ends = slice_steps(np.random.default_rng(0), two_normals, starts, (6.0,), 1.0, 100, 60, 400)
    assert_law(ends, two_normals_cdf(6.0))


@njit
def counted(x, params):
    params[0][0] += 1
    return -0.5 * (x / params[1]) ** 2


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_slice_steps_need_few_evaluations(scale):
    count = np.zeros(1)
    starts = scale * np.random.default_rng(0).standard_normal(2000)
    slice_steps(np.random.default_rng(0), counted, starts, (count, scale), 1.0, 1, 60, 400)
    assert count[0] / len(starts) < (15 if scale == 1.0 else 250)
    for doublings, trials in ((0, 0), (0, 3), (3, 2), (60, 1)):
        for start in starts[:100]:
            count[0] = 0
            slice_steps(
                np.random.default_rng(0), counted, np.array([start]), (count, scale), 1.0, 1,
                doublings, trials,
            )  # fmt: skip
            assert count[0] <= 3 + doublings + trials * (1 + 2 * doublings)


def test_slice_steps_at_the_resolution_of_floats_are_finite():
    for width in (1e-300, 1.5, 1e300):
        ends = slice_steps(
            np.random.default_rng(0), normal, np.full(20, 1e16), (1e16, 1.0), width, 5, 60, 400
        )
        assert np.all(np.isfinite(ends))


@pytest.mark.long
def test_code_with_a_slice_step_can_be_kept_on_disk():
    @njit
    def step(rng, x):
        return slice_step(rng, normal, x, (0.0, 1.0), 1.0)

    step(np.random.default_rng(0), 0.3)
    (compilation,) = step.overloads.values()
    assert not compilation.library.has_dynamic_globals


# Streams.


@pytest.mark.parametrize(
    ("sample", "arguments"),
    [(many_gig, (0.3, 1.0, 2.0)), (many_bessel, (0.5, 100.0)), (many_crt, (1e4, 20.0)),
     (many_binomial, (1e4, 0.3))],
)  # fmt: skip
def test_variates_of_one_seed_are_the_same(sample, arguments):
    first = sample(*arguments, size=200, seed=5)
    assert np.array_equal(first, sample(*arguments, size=200, seed=5))
    assert not np.array_equal(first, sample(*arguments, size=200, seed=6))
