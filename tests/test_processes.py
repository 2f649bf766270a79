"""Chains as laws of motion: do the draws, the moments, the densities and the words agree?

Statistical tests use fixed seeds. A z-test fails beyond five standard errors (false alarm 6e-7 for
normal means), a Kolmogorov-Smirnov test below p = 1e-6. This file makes about 300 of the former and
80 of the latter, which makes 3e-4. Means of skewed draws are not quite normal, so with other seeds
count on a failure by chance in one run of a thousand.
"""

import math
import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from cases import named, processes
from temporalnmf.chains import (  # fmt: skip
    ARG,
    BGAR,
    GAR,
    GaP,
    HierRate,
    HierShape,
    LongRun,
    NoChain,
    Paths,
    Rate,
    Shape,
    map_region,
)
from temporalnmf.chains.outlook import paths_for_quantiles

LAWS = processes()
every_law = pytest.mark.parametrize("law", LAWS, ids=named)
WITH_DENSITY = [law for law in LAWS if law.name != "gar"]


def assert_mean(draws, expected, what=""):
    """z-test of a mean, by the spread of the draws; their number makes it nearly normal."""
    draws = np.asarray(draws)
    error = draws.std() / np.sqrt(draws.size)
    assert abs(draws.mean() - expected) < 5.0 * error, what


def assert_follows(draws, cdf):
    assert stats.kstest(draws, cdf).pvalue > 1e-6


# Moments


def table(law, h1, n):
    """Mean and variance of h_n, as docs/math.md and the paper tabulate them."""
    s = n - 1
    if law.name == "rate":
        a, b = law.alpha, law.alpha if law.beta == "auto" else law.beta
        return h1 * (a / b) ** s, h1**2 * (((a**2 + a) / b**2) ** s - (a**2 / b**2) ** s)
    if law.name == "hier_rate":
        az, ah = law.alpha_z, law.alpha_h
        ratio = (az - 1) / ah if law.beta_z == "auto" else law.beta_z / law.beta_h
        A = ah**2 / (az - 1) ** 2
        B = ah * (ah + az - 1) / ((az - 1) ** 2 * (az - 2))
        return h1 * (ratio * ah / (az - 1)) ** s, h1**2 * ratio ** (2 * s) * ((A + B) ** s - A**s)
    if law.name == "shape":
        g = law.alpha / law.beta
        return h1 * g**s, h1 / law.beta * g**s * sum(g**i for i in range(s))
    if law.name == "hier_shape":
        a, b = law.alpha, law.beta
        return h1 + s * a / b, s * 2 / b * h1 + s**2 * a / b**2
    a, b = law.alpha, law.beta
    if law.name == "gap":
        return (h1, 0.0) if s == 0 else (a / b, a / b**2)
    rho = law.rho
    mean = rho**s * h1 + (1 - rho**s) * a / b
    if law.name == "gar":
        return mean, (1 - rho ** (2 * s)) * a / b**2
    if law.name == "arg":
        return mean, (1 - rho**s) / b * (2 * rho**s * h1 + (1 - rho**s) * a / b)
    second, first, gamma = h1**2, h1, a * (1 - rho)
    for _ in range(s):
        second = (
            rho * (a * rho + 1) / (a + 1) * second + 2 * rho * gamma / b * first
            + gamma * (gamma + 1) / b**2
        )  # fmt: skip
        first = rho * first + gamma / b
    return mean, second - first**2


@every_law
def test_moments_are_those_of_the_paper(law):
    steps = np.arange(1, 41)
    mean, var = law.mean(1.7, steps), law.var(1.7, steps)
    expected = np.array([table(law, 1.7, n) for n in steps])
    np.testing.assert_allclose(mean, expected[:, 0], rtol=1e-12)
    # The table's own variances are differences of numbers that are nearly equal.
    np.testing.assert_allclose(var, expected[:, 1], rtol=1e-9, atol=1e-13)


@every_law
def test_moments_after_one_step_are_the_conditional_ones(law):
    h = np.array([0.2, 3.0])
    for value in h:
        mean, var = law.mean(value, 2), law.var(value, 2)
        np.testing.assert_allclose(mean, law.conditional_mean(value), rtol=1e-14)
        np.testing.assert_allclose(var, law.conditional_var(value), rtol=1e-14)
    np.testing.assert_allclose(law.conditional_var(h), [law.var(x, 2) for x in h], rtol=1e-14)


@every_law
def test_simulated_moments_agree_with_the_formulas(law):
    n_paths, h1 = 100_000, 2.0
    paths = law.sample(n_paths, 4, 11, h1)
    assert paths.shape == (n_paths, 4)
    np.testing.assert_array_equal(paths[:, 0], h1)
    for n in (2, 3, 4):
        mean, var = law.mean(h1, n), law.var(h1, n)
        assert_mean(paths[:, n - 1], mean, f"mean at {n}")
        # Squares of heavy tails are not averaged by any number of paths.
        if n == 2 or var < mean**2:
            assert_mean((paths[:, n - 1] - mean) ** 2, var, f"variance at {n}")


@pytest.mark.each_value
@every_law
@pytest.mark.parametrize("h1", [2.0, None])
def test_simulated_correlations_agree_with_the_formula(law, h1):
    paths = law.sample(100_000, 5, 12, h1)
    n, lags = 2, np.array([0, 1, 3])
    claimed = law.autocorrelation(lags, n, h1)
    for lag, correlation in zip(lags, claimed, strict=True):
        scale = np.sqrt(law.var(h1, n) * law.var(h1, n + lag))
        left, right = (paths[:, m - 1] - law.mean(h1, m) for m in (n, n + lag))
        assert_mean(left * right / scale, correlation, f"lag {lag}")


@pytest.mark.parametrize("law", [law for law in LAWS if law.mean(1.0, 400) > 1e-100], ids=named)
def test_correlations_far_from_the_start_are_those_of_the_limit(law):
    lags = np.array([0, 1, 3])
    near, far = law.autocorrelation(lags, 200, 1.0), law.autocorrelation(lags, 400, 1.0)
    limit = law.autocorrelation(lags)
    assert np.all(np.abs(far - limit) <= np.abs(near - limit) + 1e-12)
    np.testing.assert_allclose(far, limit, rtol=0.01)


def test_correlations_have_their_closed_forms():
    lags = np.arange(6)
    for law in (
        BGAR(2.0, 1.0, 0.9), BGAR(0.4, 3.0, 0.2), GAR(2.0, 1.0, 0.7), ARG(0.4, 3.0, 0.7)
    ):  # fmt: skip
        np.testing.assert_allclose(law.autocorrelation(lags), law.rho**lags, rtol=1e-14)
        np.testing.assert_allclose(law.autocorrelation(lags, 3), law.rho**lags, rtol=1e-13)
    np.testing.assert_array_equal(GaP(2.0, 1.0).autocorrelation(lags), [1, 0, 0, 0, 0, 0])
    # A multiplicative chain forgets by its relative noise, whatever its drift.
    np.testing.assert_allclose(Rate(3.0, 9.0).autocorrelation(2), 1.0 / (1.0 + 1.0 / 3.0))
    # The variance of a dying Shape chain falls like its mean, by α/β per step.
    np.testing.assert_allclose(Shape(1.0, 2.0).autocorrelation(2), 0.5)
    np.testing.assert_allclose(Shape(1.0, 2.0).autocorrelation(2, 60, 1.0), 0.5, rtol=1e-12)
    assert np.isnan(Shape(1.0, 2.0).autocorrelation(1, 1, 3.0))  # a given value does not vary


def test_moments_that_do_not_exist_are_infinite_or_nan():
    heavy = HierRate(1.5, 1.0, 2.0, 1.0)  # 1 < α_z ≤ 2: a mean, no variance
    assert heavy.mean(1.0, 3) == pytest.approx(16.0)
    assert heavy.var(1.0, 3) == np.inf
    assert heavy.conditional_var(1.0) == np.inf
    assert np.isnan(heavy.autocorrelation(1))
    assert heavy.var(1.0, 1) == 0.0
    none = HierRate(0.9, 1.0, 2.0, 1.0)
    assert none.mean(1.0, 2) == np.inf
    assert np.isnan(none.var(1.0, 2))
    assert np.isnan(none.conditional_var(1.0))
    assert none.mean(1.0, 1) == 1.0
    assert "infinite from the first step" in str(none.regime())
    assert heavy.regime().note == ""
    both = HierRate([0.9, 3.0], 1.0, 2.0, 1.0)
    np.testing.assert_array_equal(both.mean([1.0, 1.0], 2), [np.inf, 1.0])


# Densities


def side_integrals(law, before, n_points=6000):
    """u = log h, the mass beyond each, and all of the mass, below and above `before`.

    With h = before·exp(±e^s) even a pole at h = before becomes a smooth function of s. Nearer than
    e^−30 the mass falls like a power, known from the density: 1, or 2γ at a pole of BGAR.
    """
    s = np.linspace(-30.0, np.log(690.0), n_points)
    power = min(1.0, 2.0 * law.alpha * (1.0 - law.rho)) if law.name == "bgar" else 1.0
    sides = []
    for sign in (-1.0, 1.0):
        u = np.log(before) + sign * np.exp(s)
        h = np.exp(u)
        usable = (h > 1e-300) & (h < 1e300)
        mass = np.zeros(n_points)
        mass[usable] = np.exp(law.log_density(h[usable], before)) * h[usable] * np.exp(s[usable])
        steps = 0.5 * (mass[1:] + mass[:-1]) * (s[1] - s[0])
        outside = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
        sides.append((u, outside, outside[0] + mass[0] / power))
    return sides


@pytest.mark.each_value
@pytest.mark.parametrize("law", WITH_DENSITY, ids=named)
@pytest.mark.parametrize("before", [0.3, 2.0])
def test_densities_integrate_to_one_and_draws_follow_them(law, before):
    (u_below, below, total_below), (u_above, above, total_above) = side_integrals(law, before)
    assert total_below + total_above == pytest.approx(1.0, abs=2e-8)
    draws = np.log(law.sample(10_000, 2, 13, before)[:, 1])

    def cdf(u):
        lower = np.interp(u, u_below[::-1], below[::-1])
        return np.where(u < np.log(before), lower, 1.0 - np.interp(u, u_above, above))

    assert_follows(draws, cdf)


def test_small_gamma_draws_follow_the_density():
    """γ = 0.05: the density has a pole of power −0.9 at h_{n−1}, where half of all draws are."""
    law, before = BGAR(0.5, 1.0, 0.9), 1.5
    draws = law.sample(20_000, 2, 14, before)[:, 1]
    edges = before * np.array([1e-3, 0.05, 0.4, 0.8, 0.97, 0.999, 1.001, 1.03, 1.2, 1.8, 4.0])
    (u_below, below, _), (u_above, above, _) = side_integrals(law, before)
    lower = np.interp(np.log(edges[:6]), u_below[::-1], below[::-1])
    upper = np.interp(np.log(edges[6:]), u_above, above)
    for edge, share in zip(edges[:6], lower, strict=True):
        assert_mean(draws < edge, share, f"below {edge}")
    for edge, share in zip(edges[6:], upper, strict=True):
        assert_mean(draws > edge, share, f"above {edge}")
    assert law.log_density(before, before) == np.inf


def bgar_oracle(h, before, alpha, beta, rho):
    """∫ Beta(b; η, γ) Gamma(h − b before; γ, β) db to many digits, as an integral over b."""
    h, before, alpha, beta, rho = map(mp.mpf, (h, before, alpha, beta, rho))
    eta, gamma = alpha * rho, alpha * (1 - rho)
    end = min(mp.mpf(1), h / before)

    def integrand(b):
        fresh = h - b * before
        if b <= 0 or b >= 1 or fresh <= 0:
            return mp.mpf(0)
        return (
            b ** (eta - 1) * (1 - b) ** (gamma - 1) * fresh ** (gamma - 1) * mp.exp(-beta * fresh)
        )

    peak = [end * mp.mpf(k) / 16 for k in range(17)]
    total = mp.quad(integrand, peak)
    return mp.log(total * beta**gamma / mp.gamma(gamma) / mp.beta(eta, gamma))


@pytest.mark.long
@pytest.mark.parametrize(
    ("alpha", "beta", "rho"),
    [
        (2.0, 1.0, 0.5), (40.0, 3.0, 0.9),
        # Small powers take many digits.
        *(
            pytest.param(*given, marks=pytest.mark.long)
            for given in [(2.0, 1.0, 0.9), (3.0, 0.1, 0.1), (300.0, 10.0, 0.5), (0.5, 2.0, 0.5),
                          (0.6, 1.0, 0.2)]
        ),
    ],
)  # fmt: skip
def test_bgar_density_equals_its_integral(alpha, beta, rho):
    law = BGAR(alpha, beta, rho)
    level = alpha / beta
    # Nodes come as near to an end as there are digits; of a power p, 10^(−p·digits) is missed.
    with mp.workdps(int(20 + 15 / min(1.0, alpha * rho, alpha * (1.0 - rho)))):
        for before, ratio in ((level, 1.3), (level, 0.6), (0.3 * level, 1 + 1e-6), (level, 0.999)):
            expected = bgar_oracle(before * ratio, before, alpha, beta, rho)
            found = law.log_density(before * ratio, before)
            # 1e-8 relative is asked for of the density; rounding of its powers leaves less.
            assert abs(found - expected) < 1e-12 * (1.0 + alpha), (before, ratio)


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "rho"), [(0.02, 0.5), (0.3, 0.99), (5.0, 0.999), (2.0, 0.002)])
@pytest.mark.parametrize("ratio", [1 + 1e-9, 1 - 1e-9, 1.5])
def test_bgar_density_is_exact_for_tiny_powers(alpha, rho, ratio):
    """η or γ of some thousandths: the definition, with v = log(a/(w−a)) instead of b = a/h."""
    with mp.workdps(30):
        h, before = mp.mpf(2 * ratio), mp.mpf(2)
        eta, gamma = mp.mpf(alpha * rho), mp.mpf(alpha * (1.0 - rho))
        w = min(h, before)

        def integrand(v):
            near = w / (1 + mp.exp(v))
            a = w / (1 + mp.exp(-v))
            b, rest = a / before, (near + (before - w)) / before  # b and 1 − b
            fresh = near + (h - w)  # h − b·before
            density = b ** (eta - 1) * rest ** (gamma - 1) / mp.beta(eta, gamma)
            density *= fresh ** (gamma - 1) * mp.exp(-fresh) / mp.gamma(gamma)
            return density * a * near / w / before  # db = a·near/(w·before) dv

        ends = [-60 / eta, -200, -60, *range(-40, 80, 4), 100, 200, 100 + 60 / gamma]
        expected = mp.log(mp.quad(integrand, sorted(ends)))
    found = BGAR(alpha, 1.0, rho).log_density(float(h), 2.0)
    assert abs(found - float(expected)) < 1e-10


def test_bgar_density_is_finite_and_continuous_at_the_value_before():
    """γ > 1/2: finite there, and continuous."""
    law = BGAR(3.0, 1.0, 0.6)
    at, beside = law.log_density([2.0, 2.0 * (1 + 1e-13)], 2.0)
    assert at == pytest.approx(beside, abs=1e-3)
    assert np.isfinite(at)


@pytest.mark.parametrize(
    "chain",
    [Rate(1.5, 1.3), HierRate(3.0, 2.0, 1.4, 1.1, marginal=True), Shape(0.9, 0.8),
     HierShape(1.6, 0.7), HierShape(0.4, 0.3), ARG(1.6, 0.7, 0.8), ARG(0.4, 0.3, 0.2)],
    ids=named,
)  # fmt: skip
def test_density_is_the_one_that_fits_maximise(chain):
    H = np.random.default_rng(0).gamma(2.0, 5.0, size=(3, 8))
    value = chain.value(H, chain.auxiliary(H, "linear"), "linear")
    found = chain.log_density(H[:, 1:], H[:, :-1]).sum()
    if chain.stationary() is not None:
        found += chain.stationary().logpdf(H[:, 0]).sum()
    np.testing.assert_allclose(-found, value, rtol=1e-12)


def test_density_is_zero_outside_its_support():
    for law in WITH_DENSITY:
        np.testing.assert_array_equal(law.log_density([-1.0, -np.inf], 1.0), [-np.inf, -np.inf])


def test_hier_shape_without_a_source_dies():
    law, before, n = HierShape(0.0, 1.5), 0.8, 100_000
    (_, _, below), (_, _, above) = side_integrals(law, before)
    dying = np.exp(law.log_density(0.0, before))
    assert dying == pytest.approx(np.exp(-1.5 * 0.8))
    assert below + above + dying == pytest.approx(1.0, abs=1e-9)
    paths, z = law.sample(n, 6, 15, before, return_aux=True)
    assert_mean(paths[:, 1] == 0.0, dying)
    assert_mean(paths[:, 5] == 0.0, np.exp(-1.5 * 0.8 / 5))  # five steps: β/5
    np.testing.assert_array_equal(z == 0.0, paths[:, 1:] == 0.0)
    assert np.all(paths[:, 1:][paths[:, :-1] == 0.0] == 0.0)
    assert law.transition(before) is None


DIFFUSIONS = [HierShape(0.7, 1.3), ARG(0.7, 0.4, 0.8)]


@pytest.mark.parametrize("law", DIFFUSIONS, ids=named)
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_diffusions_have_their_law_after_several_steps(law, steps):
    draws = law.sample(20_000, steps + 1, 16, 2.5)[:, -1]
    assert_follows(draws, law.transition(2.5, steps).cdf)


@pytest.mark.parametrize("law", DIFFUSIONS, ids=named)
@pytest.mark.parametrize(("first", "then"), [(1, 1), (0.3, 0.7), (2.5, 0.25)])
def test_transitions_of_diffusions_compose(law, first, then):
    """The Chapman–Kolmogorov equation, by quadrature over the fourth root of h between."""
    root, width = np.linspace(1e-4, 3.0, 4_001, retstep=True)
    h, after = root**4, np.array([0.05, 1.0, 3.0, 8.0])
    reached = law.transition(2.5, first).pdf(h) * 4.0 * root**3 * width
    found = reached @ law.transition(h[:, None], then).pdf(after)
    np.testing.assert_allclose(found, law.transition(2.5, first + then).pdf(after), rtol=1e-6)


def test_arg_is_a_diffusion_whose_correlation_decays_with_time():
    law = ARG(2.0, 0.5, 0.7)
    for time in (0.5, 2, 3):
        there, rho = law.transition(2.5, time), 0.7**time
        assert there.mean() == pytest.approx(rho * 2.5 + (1.0 - rho) * 4.0)
        one_step = ARG(2.0, 0.5, rho).transition(2.5)
        np.testing.assert_allclose(there.ppf([0.1, 0.9]), one_step.ppf([0.1, 0.9]))
    np.testing.assert_allclose(law.transition(2.5, 200).ppf(0.3), law.stationary().ppf(0.3))


def test_arg_near_a_random_walk_is_hier_shape():
    walk, h = HierShape(1.4, 3.0), np.array([0.5, 2.0, 4.0])
    near = ARG(1.4, 3.0 * 1e-10, 1.0 - 1e-10)
    np.testing.assert_allclose(near.log_density(h, 2.0), walk.log_density(h, 2.0), rtol=1e-6)
    np.testing.assert_allclose(near.var(2.0, 9), walk.var(2.0, 9), rtol=1e-6)


@pytest.mark.parametrize("law", WITH_DENSITY, ids=named)
def test_transition_laws_have_the_density(law):
    frozen = law.transition(1.4)
    if law.name == "bgar":
        assert frozen is None
        return
    h = np.geomspace(0.5, 3.0, 7)
    np.testing.assert_allclose(law.log_density(h, 1.4), frozen.logpdf(h), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(frozen.mean(), law.conditional_mean(1.4), rtol=1e-12)
    np.testing.assert_allclose(frozen.var(), law.conditional_var(1.4), rtol=1e-9)


# Stationary laws


@every_law
def test_stationary_chains_keep_their_law(law):
    stationary = law.stationary()
    if law.name not in ("gap", "bgar", "arg", "gar"):
        assert stationary is None
        np.testing.assert_array_equal(law.sample(3, 2, 0)[:, 0], 1.0)
        return
    paths = law.sample(20_000, 6, 17)
    for n in (0, 1, 5):
        assert_follows(paths[:, n], stats.gamma(law.alpha, scale=1.0 / law.beta).cdf)
    assert stationary.mean() == pytest.approx(law.alpha / law.beta)
    assert law.mean(None, 9) == pytest.approx(law.alpha / law.beta)
    assert law.var(None, 9) == pytest.approx(law.alpha / law.beta**2)


def test_bgar_without_correlation_is_independent():
    law = BGAR(2.0, 1.5, 0.0)
    paths, b = law.sample(20_000, 2, 18, 5.0, return_aux=True)
    np.testing.assert_array_equal(b, 0.0)
    assert_follows(paths[:, 1], stats.gamma(2.0, scale=1 / 1.5).cdf)
    h = np.array([0.2, 1.0, 4.0])
    np.testing.assert_allclose(law.log_density(h, 5.0), GaP(2.0, 1.5).log_density(h, 5.0))
    mixed = BGAR(2.0, 1.5, [0.0, 0.5]).log_density([1.0, 1.0], [5.0, 5.0])
    one = [law.log_density(1.0, 5.0), BGAR(2.0, 1.5, 0.5).log_density(1.0, 5.0)]
    np.testing.assert_allclose(mixed, one)
    np.testing.assert_allclose(law.transition([5.0, 6.0], 3).mean(), [2.0 / 1.5] * 2)
    assert BGAR(2.0, 1.5, [0.0, 0.5]).transition(5.0) is None


def test_arg_without_correlation_is_independent():
    law, h = ARG(2.0, 1.5, 0.0), np.array([0.2, 1.0, 4.0])
    paths, z = law.sample(20_000, 2, 18, 5.0, return_aux=True)
    np.testing.assert_array_equal(z, 0.0)
    assert_follows(paths[:, 1], stats.gamma(2.0, scale=1 / 1.5).cdf)
    np.testing.assert_allclose(law.log_density(h, 5.0), GaP(2.0, 1.5).log_density(h, 5.0))
    mixed = ARG(2.0, 1.5, [0.0, 0.5]).log_density([1.0, 1.0], [5.0, 5.0])
    one = [law.log_density(1.0, 5.0), ARG(2.0, 1.5, 0.5).log_density(1.0, 5.0)]
    np.testing.assert_allclose(mixed, one)
    np.testing.assert_allclose(law.transition(5.0, 3).ppf(0.4), law.stationary().ppf(0.4))


def test_gar_steps_are_a_share_and_jumps():
    """The Laplace transform of ε is ((β + ρu)/(β + u))^α; nothing is added with odds ρ^α."""
    law, before = GAR(1.2, 0.7, 0.6), 2.0
    step = law.sample(200_000, 2, 19, before)[:, 1] - 0.6 * before
    assert_mean(step == 0.0, 0.6**1.2)
    for u in (0.3, 2.0):
        assert_mean(np.exp(-u * step), ((0.7 + 0.6 * u) / (0.7 + u)) ** 1.2)
    independent = GAR(1.2, 0.7, 0.0).sample(20_000, 2, 20, before)[:, 1]
    assert_follows(independent, stats.gamma(1.2, scale=1 / 0.7).cdf)


# Auxiliary variables


def test_auxiliary_variables_are_those_of_the_step():
    n, before = 20_000, 2.0
    paths, z = HierRate(3.0, 2.0, 4.0, 0.5).sample(n, 2, 21, before, return_aux=True)
    assert z.shape == (n, 1)
    assert_follows(z[:, 0], stats.gamma(3.0, scale=1.0 / (2.0 * before)).cdf)
    assert_follows(paths[:, 1] * z[:, 0], stats.gamma(4.0, scale=1.0 / 0.5).cdf)
    paths, b = BGAR(2.0, 1.0, 0.7).sample(n, 2, 22, before, return_aux=True)
    assert_follows(b[:, 0], stats.beta(1.4, 0.6).cdf)
    assert_follows(paths[:, 1] - b[:, 0] * before, stats.gamma(0.6).cdf)
    paths, z = HierShape(1.2, 0.9).sample(n, 2, 23, before, return_aux=True)
    assert_mean(z[:, 0], 0.9 * before)
    assert_mean(z[:, 0] == 0, np.exp(-0.9 * before))
    rest = stats.gamma(1.2 + z[:, 0], scale=1 / 0.9).cdf(paths[:, 1])
    assert_follows(rest, "uniform")
    paths, z = ARG(1.2, 0.9, 0.4).sample(n, 2, 24, before, return_aux=True)
    assert_mean(z[:, 0], 0.9 / 0.6 * 0.4 * before)
    rest = stats.gamma(1.2 + z[:, 0], scale=0.6 / 0.9).cdf(paths[:, 1])
    assert_follows(rest, "uniform")
    _, nothing = Rate(2.0).sample(5, 4, 0, return_aux=True)
    assert nothing.shape == (5, 0)


# Regimes

ZERO, FIN, INF, NONE = LongRun.ZERO, LongRun.FINITE, LongRun.INFINITE, LongRun.UNDEFINED
REGIMES = [
    # The paper's five of Rate, at α = 1.5, where √(α(α+1)) = 1.936…
    (Rate(1.5, 2.5), ZERO, ZERO, Paths.COLLAPSE),
    (Rate(1.5, math.sqrt(1.5 * 2.5)), ZERO, FIN, Paths.COLLAPSE),
    (Rate(1.5, 1.7), ZERO, INF, Paths.COLLAPSE),
    (Rate(1.5, 1.5), FIN, INF, Paths.COLLAPSE),
    (Rate(1.5, 1.0), INF, INF, Paths.EXPLODE),
    # The mean grows, nearly all paths collapse.
    (Rate(1.5, 1.3), INF, INF, Paths.COLLAPSE),
    (Rate(4.0, 3.0), INF, INF, Paths.EXPLODE),
    (HierRate(6.0, 1.0, 4.0, 2.0), ZERO, ZERO, Paths.COLLAPSE),
    (HierRate(3.0, 1.0, 1.0, 1.0), ZERO, FIN, Paths.COLLAPSE),  # (1 + 3)/4 = 1
    (HierRate(2.5, 1.0, 1.0, 1.0), ZERO, INF, Paths.COLLAPSE),
    (HierRate(6.0, "auto", 4.0), FIN, INF, Paths.COLLAPSE),
    (HierRate(3.0, 3.0, 4.0, 4.0), INF, INF, Paths.EXPLODE),
    (HierRate(5.0, 5.0, 5.0, 5.0), INF, INF, Paths.WANDER),
    (HierRate(1.5, "auto", 4.0), FIN, INF, Paths.COLLAPSE),
    (HierRate(0.9, 1.0, 4.0, 1.0), INF, NONE, Paths.EXPLODE),
    (Shape(1.0, 1.5), ZERO, ZERO, Paths.COLLAPSE),
    (Shape(2.0, 2.0), FIN, INF, Paths.COLLAPSE),
    (Shape(3.0, 2.0), INF, INF, Paths.SPLIT),
    (HierShape(0.0, 1.0), FIN, INF, Paths.ABSORBED),
    (HierShape(0.5, 1.0), INF, INF, Paths.WANDER),
    (HierShape(3.0, 1.0), INF, INF, Paths.EXPLODE),
    (GaP(0.3, 2.0), FIN, FIN, Paths.STATIONARY),
    (BGAR(2.0, 1.0, 0.99), FIN, FIN, Paths.STATIONARY),
    (BGAR(2.0, 1.0, 0.0), FIN, FIN, Paths.STATIONARY),
    (ARG(2.0, 1.0, 0.99), FIN, FIN, Paths.STATIONARY),
    (ARG(2.0, 1.0, 0.0), FIN, FIN, Paths.STATIONARY),
    (GAR(2.0, 1.0, 0.5), FIN, FIN, Paths.STATIONARY),
]
# So near to a border that numbers show the difference after millions of steps only.
NEAR = [
    (Rate(1e9), FIN, INF, Paths.COLLAPSE),
    (Rate(1.5, math.sqrt(1.5 * 2.5) * (1 + 1e-6)), ZERO, ZERO, Paths.COLLAPSE),
    (Rate(1.5, math.sqrt(1.5 * 2.5) * (1 - 1e-6)), ZERO, INF, Paths.COLLAPSE),
    (Rate(1.5, 1.5 * (1 + 1e-6)), ZERO, INF, Paths.COLLAPSE),
    (Rate(1.5, 1.5 * (1 - 1e-6)), INF, INF, Paths.COLLAPSE),
    (Shape(2.02, 2.0), INF, INF, Paths.SPLIT),
    (HierShape(1.0, 1.0), INF, INF, Paths.WANDER),
    (HierShape(1.2, 1.0), INF, INF, Paths.EXPLODE),
]


def regimes_of(cases):
    return pytest.mark.parametrize(
        ("law", "mean", "var", "paths"), cases, ids=[named(case[0]) for case in cases]
    )


every_regime = regimes_of(REGIMES)


@regimes_of(REGIMES + NEAR)
def test_regimes_are_named_for_mean_variance_and_paths(law, mean, var, paths):
    regime = law.regime()
    assert (regime.mean, regime.var, regime.paths) == (mean, var, paths)
    assert paths.value in str(regime)
    assert mean.value in str(regime)


one_of_each_kind = pytest.mark.quick(
    "rate(1.5,2.5)",
    "rate(1.5,1.0)",
    "hier_rate(4.0,6.0,2.0,1.0,False)",
    "hier_rate(4.0,0.9,1.0,1.0,False)",
    "shape(1.0,1.5)",
    "shape(3.0,2.0)",
    "hier_shape(0.0,1.0)",
    "gap(0.3,2.0)",
    "bgar(2.0,1.0,0.0)",
)


@one_of_each_kind
@every_regime
def test_regimes_agree_with_the_moments(law, mean, var, paths):
    """The classification against the numbers themselves, far out."""
    for found, kind in ((law.mean, mean), (law.var, var)):
        early, late = (float(found(1.0, n)) for n in (1000, 2000))
        if kind is ZERO:
            assert late < 1e-6
        elif kind is FIN:
            assert late == pytest.approx(early, rel=0.01)
            assert late > 0.0
        elif kind is INF:
            assert late > 1.2 * early or late == np.inf
        else:
            assert np.isnan(late)


@pytest.mark.long
@every_regime
def test_regimes_agree_with_the_paths(law, mean, var, paths):
    """400 paths: shares of those that are tiny, or huge, after many steps."""
    early, late = law.sample(400, 4001, 24, 1.0)[:, [400, 4000]].T
    if paths in (Paths.COLLAPSE, Paths.ABSORBED):
        assert np.mean(late < 1e-6) > 0.95
        if paths is Paths.ABSORBED:
            assert np.mean(late == 0.0) > 0.95
    elif paths is Paths.EXPLODE:
        assert np.median(late) > min(3.0 * np.median(early), 1e299)
        assert np.quantile(late, 0.02) > np.median(early) / 3.0
    elif paths is Paths.SPLIT:
        dead = np.mean(late == 0.0)
        assert np.mean((late == 0.0) | (late > 1e100)) == 1.0
        assert abs(dead - np.exp(-law.extinction_rate())) < 5.0 * np.sqrt(dead * (1 - dead) / 400)
    elif paths is Paths.WANDER:
        whole = law.sample(400, 4001, 24, 1.0)
        assert np.median(whole[:, 400:].max(axis=1)) > 2.0 * np.median(whole[:, :400].max(axis=1))
        assert np.mean(whole[:, 2000:].min(axis=1) < np.median(early)) > 0.5  # they come back
    else:
        assert stats.ks_2samp(early, late).pvalue > 1e-6


def test_autocorrelations_are_those_of_each_component_and_start_alone():
    law = Shape(2.0, 1.5)
    both = law.autocorrelation([1, 3], n=3, h1=[1.0, 5.0])
    alone = [law.autocorrelation([1, 3], n=3, h1=h1) for h1 in (1.0, 5.0)]
    np.testing.assert_allclose(both, np.transpose(alone), rtol=1e-13)
    many = BGAR([2.0, 30.0], 1.0, 0.5)
    np.testing.assert_allclose(
        many.autocorrelation([1, 2, 3]), [[0.5] * 2, [0.25] * 2, [0.125] * 2]
    )
    each = [BGAR(a, 1.0, 0.5).autocorrelation([1, 2], n=2, h1=1.0) for a in (2.0, 30.0)]
    np.testing.assert_allclose(many.autocorrelation([1, 2], 2, 1.0), np.transpose(each), rtol=1e-13)


def test_extinction_rate_of_shape_solves_its_equation():
    assert Shape(1.0, 2.0).extinction_rate() == 0.0
    rate = Shape(3.0, 2.0).extinction_rate()
    assert rate == pytest.approx(3.0 * np.log1p(rate / 2.0), rel=1e-13)
    assert rate > 0.5
    assert "0.1" in Shape(3.0, 2.0).regime().note
    np.testing.assert_array_equal(Shape([1.0, 3.0], 2.0).extinction_rate(), [0.0, rate])


def test_regime_titles_are_short_and_differ():
    titles = {law.regime().title for law, *_ in REGIMES}
    assert len(titles) >= 10
    assert max(map(len, titles)) < 60


# Simulation: numbers that leave the range of doubles, components, seeds


@pytest.mark.long
@pytest.mark.parametrize(
    "law",
    [Rate(3.0, 1.0), Rate(0.001, 5.0), Rate(1e6, 1.0), HierRate(0.01, 1.0, 5.0, 1e-3),
     HierRate(5.0, 1e-3, 0.01, 1.0), Shape(1e6, 1.0), Shape(1e-3, 1.0), Shape(1e9, 1e-9),
     HierShape(1e6, 1e-12), HierShape(1e-3, 1e12), HierShape(0.0, 1e12), GaP(1e-3, 1.0),
     BGAR(1e-3, 1.0, 0.5), BGAR(1e6, 1e-6, 0.999999), ARG(1e-3, 1.0, 0.5),
     ARG(1e6, 1e-6, 0.999999), GAR(1e-3, 1.0, 0.5), GAR(1e3, 1.0, 0.99)],
    ids=named,
)  # fmt: skip
@pytest.mark.parametrize("h1", [1e-200, 1.0, 1e200])
def test_ten_thousand_steps_are_finite_and_silent(law, h1):
    with np.errstate(all="raise"):
        paths, aux = law.sample(3, 10_000, 25, h1, return_aux=True)
    for values in (paths, aux):
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0.0)


def test_counts_that_are_too_large_to_draw_keep_mean_and_variance():
    """A Poisson rate of 1e17: mean and variance of h, and of the counts."""
    law, h1, n = HierShape(1.0, 1.0), 1e17, 100_000
    paths, z = law.sample(n, 2, 29, h1, return_aux=True)
    assert_mean((paths[:, 1] - h1) / np.sqrt(2.0 * h1), 0.0)
    assert_mean((paths[:, 1] - h1) ** 2 / (2.0 * h1), 1.0)
    assert_mean((z[:, 0] - h1) ** 2 / h1, 1.0)


def test_values_far_from_one_neither_overflow_nor_cancel():
    """Products of large or small values are not doubles, but what is asked for is."""
    for h, alpha, expected in (  # mpmath, 40 digits
        (1e-200, 0.5, 229.6861449), (1e-200, 3.0, -921.7271819), (1e200, 3.0, -231.5240214),
    ):  # fmt: skip
        assert HierShape(alpha, 1.0).log_density(h, h) == pytest.approx(expected, rel=1e-8)
    for law in (Shape(2.0, 2.0), HierShape(1.0, 1.0), GaP(2.0, 1.0), GAR(2.0, 1.0), ARG(2.0, 1.0)):
        assert not np.isnan(law.conditional_var(1e300))
    assert np.isfinite(BGAR(0.2, 1.0, 0.5).log_density([5e-324, 1e-310], [1.0, 1e3])).all()
    np.testing.assert_array_equal(GaP(10.0, 1e-308).sample(3, 2, 0), 1e300)
    np.testing.assert_array_equal(Shape(3e10, 1e10).sample(2, 3000, 0)[:, -1], 1e300)
    far = HierShape(1.0, 200.0).forecast(1e9, 2).quantile([0.1, 0.9])  # where SciPy gives up
    spread = np.sqrt(2.0 * 1e9 / 200.0 * np.array([1.0, 2.0]))
    np.testing.assert_allclose((far[1] - far[0]) / spread, 2.563, rtol=0.05)


def test_densities_of_nan_and_infinity_are_nan_and_zero():
    for law in WITH_DENSITY:
        found = law.log_density([np.nan, np.inf, 0.0 if law.name != "gap" else -1.0, 1.0], 1.0)
        assert np.isnan(found[0])
        assert found[1] == -np.inf
        assert np.isfinite(found[3]) or law.name == "bgar"


def test_paths_beyond_the_doubles_end_at_their_limits():
    np.testing.assert_array_equal(Rate(3.0, 1.0).sample(4, 3000, 0)[:, -1], 1e300)
    np.testing.assert_array_equal(Rate(3.0, 9.0).sample(4, 3000, 0)[:, -1], 0.0)
    np.testing.assert_array_equal(Shape(3.0, 1.0).sample(4, 3000, 0, 50.0)[:, -1], 1e300)
    # A random walk of logarithms: what went below the smallest double may come back.
    path = HierRate(0.05, 1.0, 0.05, 1.0).sample(200, 2000, 0)
    gone, back = path[:, :-1] == 0.0, path[:, 1:] > 0.0
    assert np.any(gone & back)


def test_tiny_gamma_variables_are_drawn_as_logarithms():
    """Gamma(0.001) is below the smallest double in half of all cases; its logarithm is not."""
    paths = Rate(0.01, 1.0).sample(100_000, 2, 27, 1e250)[:, 1]
    assert_mean(paths < 1e-50, stats.gamma(0.01).cdf(1e-300))


def test_components_move_side_by_side():
    rates = np.array([1.5, 40.0, 300.0])
    law = Rate(rates, rates)
    paths = law.sample(50_000, 3, 28, [1.0, 2.0, 3.0])
    assert paths.shape == (50_000, 3, 3)
    for k in range(3):
        assert_mean(paths[:, 2, k], k + 1.0)
        assert_mean((paths[:, 2, k] - k - 1.0) ** 2, Rate(rates[k]).var(k + 1.0, 3))
    assert abs(np.corrcoef(paths[:, 2, 1], paths[:, 2, 2])[0, 1]) < 5.0 / np.sqrt(50_000)
    np.testing.assert_allclose(
        law.var([1.0, 2.0, 3.0], [2, 5]),
        [[Rate(r).var(k + 1.0, n) for k, r in enumerate(rates)] for n in (2, 5)],
    )
    assert [r.paths for r in law.regime()] == [Paths.COLLAPSE] * 3
    np.testing.assert_allclose(law.conditional_mean([[1.0], [3.0]]), [[1.0] * 3, [3.0] * 3])
    assert BGAR([1.0, 2.0], 1.0, 0.5).sample(7, 4, 0).shape == (7, 4, 2)
    assert Rate(2.0).sample(7, 4, 0, np.ones((7, 2))).shape == (7, 4, 2)
    assert HierShape([0.0, 2.0], 1.0).regime()[0].paths is Paths.ABSORBED


@every_law
def test_samples_repeat_with_the_same_seed_and_differ_with_another(law):
    a = law.sample(5, 6, 3)
    np.testing.assert_array_equal(a, law.sample(5, 6, np.random.default_rng(3)))
    assert np.any(a != law.sample(5, 6, 4))
    assert law.sample(2, 1, 0).shape == (2, 1)


def test_auto_without_data_means_a_level_of_one():
    for law in (GaP(), BGAR(), ARG(), GAR()):
        assert law.mean(None, 3) == pytest.approx(1.0)
    for law in (Rate(), HierRate(), Shape()):
        assert law.conditional_mean(1.0) == pytest.approx(1.0)
    assert HierShape().conditional_mean(1.0) == pytest.approx(1.005)
    chain = Shape()
    chain.sample(2, 3, 0)
    assert chain.get_params() == {"alpha": "auto", "beta": "auto"}


# Forecasts


@every_law
def test_forecasts_have_the_moments_and_quantiles_of_the_law(law):
    ahead = law.forecast(1.6, 4, n_paths=40_000)
    np.testing.assert_allclose(ahead.mean, law.mean(1.6, [2, 3, 4, 5]))
    np.testing.assert_allclose(ahead.var, law.var(1.6, [2, 3, 4, 5]))
    if getattr(law, "dynamic", True):
        np.testing.assert_allclose(ahead.point, ahead.mean, rtol=1e-12)
        assert ahead.point_name == "conditional mean"
    else:
        np.testing.assert_array_equal(ahead.point, 1.6)
        assert ahead.point_name == "last value"
    low, high = ahead.quantile([0.1, 0.75])
    fresh = law.sample(40_000, 5, 99, 1.6)[:, 1:]
    for level, bounds in ((0.1, low), (0.75, high)):
        slack = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / 40_000)  # both have their noise
        # With "or equal": GAR often adds nothing, and some paths of Shape are zero.
        assert np.all(np.mean(fresh < bounds, axis=0) <= level + slack)
        assert np.all(np.mean(fresh <= bounds, axis=0) >= level - slack)
    np.testing.assert_array_equal(ahead.quantile(0.75), high)
    again = law.forecast(1.6, 4, n_paths=40_000)
    np.testing.assert_array_equal(again.paths, ahead.paths)
    assert ahead.regime == law.regime()


def test_quantiles_are_exact_where_the_law_is_known():
    level = [0.05, 0.5, 0.9]
    exact = stats.gamma(3.0, scale=2.0 / 2.5).ppf(level)
    np.testing.assert_allclose(Rate(3.0, 2.5).forecast(2.0, 1).quantile(level)[:, 0], exact)
    ahead = HierShape(1.5, 2.0).forecast(2.0, 5).quantile(level)
    for s in range(1, 6):  # 2βh/s is non-central χ²
        law = stats.ncx2(3.0, 2.0 * 2.0 * 2.0 / s, scale=s / 4.0)
        np.testing.assert_allclose(ahead[:, s - 1], law.ppf(level))
    assert GaP(2.0, 1.0).transition([1.0, 2.0, 3.0]).mean().shape == (3,)


def test_quantile_levels_must_lie_strictly_between_zero_and_one():
    ahead = Rate(3.0, 2.5).forecast(2.0, 1, n_paths=2)
    for level in (0.0, 1.0, [0.5, 1.5], [-0.5, 0.5], np.nan):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            ahead.quantile(level)


def test_quantiles_of_long_paths_are_from_fewer_paths():
    assert [paths_for_quantiles(n) for n in (1, 2_000, 10_000, 100_000, 10_000_000)] == [
        10_000, 10_000, 2_000, 200, 200
    ]  # fmt: skip


def test_forecasts_by_the_mode_follow_it_or_say_that_there_is_none():
    chain = Rate(4.0, 3.0)  # Févotte's choice β = α − 1: the mode stays where it is
    np.testing.assert_allclose(
        chain.forecast(2.0, 3, point="mode", scale="linear").point, 2.0, rtol=1e-12
    )
    np.testing.assert_allclose(chain.conditional_mean(2.0), 8.0 / 3.0)
    for law, scale, words in (
        (GAR(), "log", "simulation only"),
        (HierShape(0.0, 1.0), "log", "positive"),
        (BGAR(2.0, 1.0, 0.0), "log", "between 0 and 1"),
        (Rate(0.5), "linear", "alpha >= 1"),
        (BGAR(2.0, 1.0, 0.9), "linear", "no mode"),
        (Rate(2.0), "lin", "scale='lin'"),
    ):
        with pytest.raises(ValueError, match=words):
            law.forecast(1.0, 2, point="mode", scale=scale)


def test_forecasts_are_made_per_component():
    law = BGAR([2.0, 4.0], [1.0, 4.0], [0.5, 0.9])
    ahead = law.forecast([4.0, 3.0], 2, n_paths=50)
    np.testing.assert_allclose(ahead.mean, [[3.0, 2.8], [2.5, 2.62]])
    assert ahead.paths.shape == (50, 2, 2)
    assert ahead.quantile([0.1, 0.5, 0.9]).shape == (3, 2, 2)
    assert ahead.point.shape == (2, 2)


def test_forecasts_are_medians_where_no_mean_exists():
    ahead = HierRate(0.8, 1.0, 2.0, 1.0).forecast(3.0, 2)
    np.testing.assert_array_equal(ahead.mean, np.inf)
    assert "median" in ahead.point_name
    assert ahead.point[0] == pytest.approx(3.0 * stats.betaprime(2.0, 0.8).median())
    np.testing.assert_array_equal(ahead.point, ahead.quantile(0.5))
    # Where one component has no mean, the others keep theirs.
    some = HierRate([0.8, 3.0], 1.0, 2.0, 1.0)
    np.testing.assert_allclose(some.forecast([3.0, 3.0], 2).point[:, 1], 3.0)
    np.testing.assert_allclose(some.point_forecast(np.array([3.0, 3.0]), 2)[1], 3.0)
    assert np.isfinite(some.point_forecast(np.array([3.0, 3.0]), 2)).all()


@pytest.mark.parametrize(
    ("alpha_z", "alpha_h"), [(1.0, 1.0), (0.8, 2.0), (0.1, 5.0), (1e-3, 1e6), (0.5, 1e-3)]
)
def test_medians_without_a_mean_are_those_of_simulated_paths(alpha_z, alpha_h):
    """Medians of 20,001 paths stray by 0.009 of the spread, and this seed is fixed."""
    chain = HierRate(alpha_z, "auto", alpha_h, "auto").resolve(1.0, 1)
    steps, _ = chain._log_factors((40, 20_001), np.random.default_rng(3))
    walks = np.cumsum(steps, axis=0)
    off = (chain._log_medians(40)[0] - np.median(walks, axis=1)) / walks.std(axis=1)
    assert np.abs(off).max() < 0.02
    np.testing.assert_allclose(
        chain._log_medians(1)[0, 0], np.log(chain.transition(1.0).median()), rtol=1e-9
    )


@pytest.mark.long
def test_medians_far_ahead_take_no_memory():
    """They were simulated: of a series whose last 100,000 steps are missing, in 32 GB."""
    chain = HierRate(0.9, "auto", 2.0, "auto").resolve(1.0, 2)
    tracemalloc.start()
    try:
        ahead = chain.point_forecast(np.array([1.0, 3.0]), 100_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * ahead.nbytes
    assert np.all((ahead >= 0.0) & (ahead <= 1e300))
    np.testing.assert_allclose(ahead[1, :9], 3.0 * ahead[0, :9])
    assert chain.point_forecast(np.array([1.0, 3.0]), 0).shape == (2, 0)


# What is refused

DRAW = {"n_paths": 2, "n_steps": 3}
REFUSED = {
    "alpha": (lambda: Rate(-1.0).sample(**DRAW), r"Rate\(alpha=-1.0\).*positive"),
    "alpha of zero": (lambda: Rate(0.0).sample(**DRAW), r"Rate\(alpha=0.0\).*positive"),
    "beta": (lambda: GaP(1.0, 0.0).sample(**DRAW), r"GaP\(beta=0.0\).*positive"),
    "beta of shape": (lambda: Shape(1.0, -2).mean(1.0, 2), r"Shape\(beta=-2\).*positive"),
    "hier_shape": (lambda: HierShape(-0.1).sample(**DRAW), r"alpha=-0.1.*zero or positive"),
    "beta_h": (lambda: HierRate(beta_h=np.nan).regime(), r"HierRate\(beta_h=nan\).*positive"),
    "rho of one": (lambda: BGAR(rho=1.0).sample(**DRAW), r"rho=1.0.*\[0, 1\)"),
    "rho below zero": (lambda: BGAR(rho=-0.2).sample(**DRAW), r"rho=-0.2.*\[0, 1\)"),
    "rho of arg": (lambda: ARG(rho=1.0).sample(**DRAW), r"ARG\(rho=1.0\).*\[0, 1\)"),
    "rho of gar": (lambda: GAR(rho=1.5).sample(**DRAW), r"GAR\(rho=1.5\).*\[0, 1\)"),
    "h1 of zero": (lambda: Rate(2.0).sample(**DRAW, h1=0.0), r"h1=0.0.*positive"),
    "h1 below zero": (lambda: Rate(2.0).mean(-1.0, 2), r"h1=-1.0.*positive"),
    "h1 of many": (lambda: Rate(2.0).sample(**DRAW, h1=[1, 2, 3]), r"h1.*\(3,\).*\(2,\)"),
    "one h1": (lambda: Rate(2.0).sample(**DRAW, h1=[1, np.inf]), r"h1=inf.*positive"),
    "h1 of components": (lambda: BGAR([2, 3]).sample(3, 1, 0, np.ones((3, 5))), r"h1.*\(3, 5\)"),
    "mean of three": (lambda: Rate([2.0, 3.0]).mean([1, 2, 3], 2), r"h1.*\(3,\).*2 values"),
    "h_last of rows": (lambda: Rate(2.0).forecast(np.ones((1, 3)), 2), r"h_last.*\(1, 3\)"),
    "negative h": (lambda: Rate(2.0).conditional_mean(-3.0), r"h=-3.0.*non-negative"),
    "NaN h": (lambda: Rate(2.0).conditional_var(np.nan), r"h=nan.*non-negative"),
    "rng": (lambda: Rate(2.0).sample(2, 2, "a"), r"rng='a'.*Generator"),
    "seed": (lambda: Rate(2.0).sample(2, 2, -1), r"rng=-1.*at least 0"),
    "half a path": (lambda: Rate(2.0).forecast(1.0, 2, n_paths=1.5), r"n_paths=1.5"),
    "several steps": (lambda: Rate(2.0).transition(1.0, [1, 2]), r"steps=\[1, 2\]"),
    "half a step of rate": (lambda: Rate(2.0).transition(1.0, 0.5), r"steps=0.5.*whole number"),
    "no time": (lambda: ARG().transition(1.0, 0.0), r"steps=0.0.*positive, finite"),
    "too many jumps": (lambda: GAR(1e20, 1.0, 0.5).sample(2, 2), r"alpha=1e\+20.*jumps.*BGAR"),
    "region": (lambda: map_region(2.0, 0.5, "lin"), r"scale='lin'"),
    "h1 of words": (lambda: Rate(2.0).sample(**DRAW, h1="one"), r"h1='one'"),
    "n_steps": (lambda: Rate(2.0).sample(2, 0), r"n_steps=0.*at least 1"),
    "half a step": (lambda: Rate(2.0).sample(2, 1.5), r"n_steps=1.5.*whole number"),
    "n_paths": (lambda: Rate(2.0).sample(-3, 1), r"n_paths=-3.*at least 1"),
    "n": (lambda: Rate(2.0).mean(1.0, 0), r"n=0.*at least 1"),
    "lag": (lambda: Rate(2.0).autocorrelation(-1), r"lag=-1.*at least 0"),
    "steps": (lambda: Rate(2.0).forecast(1.0, 0), r"steps=0.*at least 1"),
    "point": (lambda: Rate(2.0).forecast(1.0, 1, point="median"), r"point='median'.*mean"),
    "before": (lambda: Rate(2.0).log_density(1.0, 0.0), r"before=0.0.*positive"),
    "levels": (lambda: Rate(2.0).forecast(1.0, 1).quantile(90), r"levels=90.*between 0 and 1"),
    "nothing to learn": (lambda: Rate(2.0, "learn").sample(**DRAW), r"beta='learn'.*no data"),
    "lengths": (lambda: Rate([1.0, 2.0], [1.0] * 3).sample(**DRAW), r"2 of alpha.*3 of beta"),
    "plain NMF": (lambda: NoChain().sample(**DRAW), r"plain NMF.*GaP"),
    "density of gar": (lambda: GAR().log_density(1.0, 1.0), r"no transition density.*BGAR"),
    "fit of gar": (lambda: GAR().check("map"), r"simulation only.*BGAR"),
    "purpose": (lambda: Rate().check("fit"), r"purpose='fit'.*map, draw, simulate"),
    "scale": (lambda: Rate().check("map", "lin"), r"scale='lin'.*log, linear"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_input_is_refused_by_name(case):
    attempt, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        attempt()


def test_hyper_parameters_outside_the_admissible_sets_are_refused():
    HierShape(0.0, 1.0).check("simulate")
    BGAR(2.0, 1.0, 0.0).check("simulate")
    ARG(2.0, 1.0, 0.0).check("simulate")
    with pytest.raises(ValueError, match="positive"):
        HierShape(0.0, 1.0).check("map")
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        BGAR(2.0, 1.0, 0.0).check("map")
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        ARG(2.0, 1.0, 0.0).check("map")
    BGAR(2.0, 1.0, 0.9).check("map", "log")
    np.testing.assert_array_equal(map_region([2.0, 4.0, 4.0], [0.5, 0.25, 0.75]), False)  # edges
    for alpha in (0.5, 1.9, 2.1, 5.0, 11.0):
        for rho in (0.05, 0.3, 0.5, 0.85, 0.95):
            chain = BGAR(alpha, 1.0, rho)
            inside = alpha * (1.0 - rho) > 1.0 and alpha * rho > 1.0
            assert map_region(alpha, rho) == inside
            assert map_region(alpha, rho, "log")
            if inside:
                chain.check("map", "linear")
            else:
                with pytest.raises(ValueError, match="linear"):
                    chain.check("map", "linear")
