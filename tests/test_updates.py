"""Every one-dimensional update against a brute-force search, the paper's polynomials and (W2)."""

from typing import NamedTuple

import gmpy2
import numpy as np
import pytest
from cases import SCALES
from oracle_updates import (
    PRECISION,
    Law,
    brute_force,
    exact,
    half_line,
    interval,
    log,
    majorizer_value,
    simplex_by_bisection,
)
from scipy.special import gammaln, logsumexp

from temporalnmf.chains import BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.kernels.floor import FLOOR
from temporalnmf.kernels.roots import profile_root, quadratic_root, simplex_minimiser
from temporalnmf.likelihoods.base import Majorizer

CHAINS = {
    "gap": GaP,
    "rate": Rate,
    "hier_rate": HierRate,
    "shape": Shape,
    "hier_shape": HierShape,
    "bgar": BGAR,
}
N_CHAINS = 170  # of three steps each, per scale: a thousand updates per prior
N_STEPS = 3
RELATIVE = 1e-13
ULP = 2.0**-52


@pytest.fixture(autouse=True)
def precision():
    with gmpy2.context(precision=PRECISION):
        yield


# Random cases.


class Inputs(NamedTuple):
    """K chains of three steps, the same for the library and for the written-out law."""

    chain: object
    law: Law
    H: np.ndarray
    aux: np.ndarray | None
    likelihood: Majorizer


def spread_out(rng, decades, shape):
    return 10.0 ** (decades * rng.uniform(-1.0, 1.0, shape))


def above_one(rng, size):
    return 1.0 + 10.0 ** rng.uniform(-6.0, 3.0, size)


def likelihood_terms(rng, decades, shape):
    """Steps with counts (r = 0), with zero counts only, exponential (p = 0) and missing ones."""
    kind = rng.choice(["counts", "zeros", "exponential", "missing"], size=shape)
    p, q, r = (spread_out(rng, decades, shape) for _ in range(3))
    return Majorizer(
        np.where(kind == "counts", p, 0.0),
        np.where(kind == "missing", 0.0, q),
        np.where(kind == "exponential", r, 0.0),
    )


def hyper_parameters(rng, name, scale, size):
    """One value per chain, from the domain that the scale admits up to its edge."""
    anything = 10.0 ** rng.uniform(-2.0, 3.0, (2, size))
    restricted = above_one(rng, size) if scale == "linear" else anything[1]
    rates = spread_out(rng, 3.0, (2, size))
    if name == "hier_rate":
        return {
            "alpha_z": anything[0],
            "beta_z": rates[0],
            "alpha_h": restricted,
            "beta_h": rates[1],
        }
    if name == "bgar":
        gamma, eta = 10.0 ** rng.uniform(-3.0, 2.0, (2, size))
        if scale == "linear":
            gamma, eta = above_one(rng, size), above_one(rng, size)
        return {"alpha": gamma + eta, "beta": rates[0], "rho": eta / (gamma + eta)}
    return {"alpha": restricted if name == "rate" else anything[0], "beta": rates[0]}


def auxiliary_variables(rng, name, decades, H):
    """Any feasible z, E z or b: the updates of h hold them, optimal or not."""
    size = (len(H), N_STEPS - 1)
    if name in ("hier_rate", "hier_shape"):
        return spread_out(rng, decades, size)
    if name == "bgar":
        share = rng.random(size)
        close = 1.0 - 10.0 ** rng.uniform(-9.0, 0.0, size)
        share = np.where(rng.random(size) < 0.5, share, close)
        return share * np.minimum(1.0, H[:, 1:] / H[:, :-1])
    return None


def law_of(name, scale, parameters):
    if name == "bgar":
        # γ and η as doubles: close to 1, γ − 1 has fewer digits than α and ρ.
        parameters = dict(parameters)
        alpha, rho = parameters["alpha"], parameters.pop("rho")
        parameters |= {"gamma": alpha * (1.0 - rho), "eta": alpha * rho}
    return Law(name, scale, parameters)


def random_inputs(name, scale, seed, size=N_CHAINS, **settings):
    rng = np.random.default_rng(seed)
    decades = rng.choice([0.5, 3.0, 8.0], size=(size, 1))
    H = spread_out(rng, decades, (size, N_STEPS))
    likelihood = likelihood_terms(rng, decades, H.shape)
    parameters = hyper_parameters(rng, name, scale, size)
    chain = CHAINS[name](**parameters, **settings)
    chain.check(scale)
    aux = auxiliary_variables(rng, name, decades, H)
    return Inputs(chain, law_of(name, scale, parameters), H, aux, likelihood)


def assert_close(got, expected, allowed):
    """|got − expected| ≤ allowed, the difference taken in all digits."""
    excess = (abs(exact(got) - expected) / allowed).astype(float)
    worst = np.argmax(excess)
    assert excess[worst] <= 1.0, (
        f"case {worst}: {got[worst]!r} instead of {float(expected[worst])!r}, "
        f"off by {excess[worst]:.3g} times what is allowed; {np.sum(excess > 1.0)} such cases"
    )


# The updates of h.


def neighbours(inputs, n):
    """before, after, and the auxiliary variables on either side; None where there is no step."""
    H = exact(inputs.H)
    aux = np.full((len(H), N_STEPS - 1), None) if inputs.aux is None else exact(inputs.aux)
    before, aux_before = (H[:, n - 1], aux[:, n - 1]) if n > 0 else (None, None)
    after, aux_after = (H[:, n + 1], aux[:, n]) if n < N_STEPS - 1 else (None, None)
    return before, after, aux_before, aux_after


def cost_of(inputs, n):
    """The written-out objective as a function of h_n."""
    around = neighbours(inputs, n)
    p, q, r = (exact(x[:, n]) for x in inputs.likelihood)
    return lambda h: majorizer_value(h, p, q, r) + inputs.law.around(h, *around)


def updates(inputs, scale):
    """The library's minimisers over each h_n, neighbours held."""
    chain, _, H, aux, likelihood = inputs
    total = likelihood.plus(chain.terms(H, aux, scale))
    return chain.minimise(H, aux, total, slice(None), scale)


@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", [name for name in CHAINS if name != "bgar"])
def test_update_of_h_is_the_minimiser(name, scale, n):
    inputs = random_inputs(name, scale, seed=1)
    got = updates(inputs, scale)[:, n]
    cost = cost_of(inputs, n)
    v, at_zero = brute_force(lambda v: cost(half_line(v)), len(got), reach=100, spacing=4)
    np.testing.assert_array_equal(got[at_zero], 0.0)
    best = half_line(v)
    assert_close(got[~at_zero], best[~at_zero], RELATIVE * best[~at_zero])
    unbounded = name in ("gap", "hier_shape") or (name == "shape" and n == N_STEPS - 1)
    if name == "hier_shape" and n == 0:
        unbounded = False
    assert at_zero.any() == (scale == "linear" and unbounded)


@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_update_of_h_is_the_minimiser_for_bgar(scale, n):
    inputs = random_inputs("bgar", scale, seed=1)
    got = updates(inputs, scale)[:, n]
    cost = cost_of(inputs, n)
    before, after, b_before, b_after = neighbours(inputs, n)
    lower = exact(np.zeros(len(got))) if before is None else b_before * before
    if after is None:
        v, at_end = brute_force(lambda v: cost(half_line(v, lower)), len(got), reach=80, spacing=4)
        best = half_line(v, lower)
        room = best - lower
    else:
        width = after / b_after - lower
        v, at_end = brute_force(
            lambda v: cost(interval(v, lower, width)), len(got), reach=80, spacing=4
        )
        best = interval(v, lower, width)
        room = np.minimum(best - lower, lower + width - best)
    assert not at_end.any()
    # The distance to the nearer end is as good as the rounding of h lets it be.
    assert_close(got, best, 2.0 * ULP * best + RELATIVE * room)


def test_sweep_clamps_zeros_at_the_floor():
    H = np.array([[2.0, 3.0]])
    likelihood = Majorizer(np.array([[0.1, 4.0]]), np.ones((1, 2)), np.zeros((1, 2)))
    GaP(0.5, 1.0).sweep(H, None, likelihood, "linear")
    np.testing.assert_array_equal(H, [[FLOOR, 1.75]])


# The updates of auxiliary variables.


def transitions(inputs):
    """The two transitions of every chain one after the other: before, after."""
    return inputs.H[:, :-1].T.ravel(), inputs.H[:, 1:].T.ravel()


def doubled(law):
    """The law of the transitions in that order."""
    twice = {key: np.concatenate([value] * (N_STEPS - 1)) for key, value in law.parameters.items()}
    return Law(law.name, law.scale, twice)


@pytest.mark.parametrize("scale", SCALES)
def test_update_of_b_is_the_minimiser(scale):
    inputs = random_inputs("bgar", scale, seed=2, size=300)
    got = inputs.chain.auxiliary(inputs.H, scale).T.ravel()
    law = doubled(inputs.law)
    before, after = map(exact, transitions(inputs))
    width = np.minimum(after / before, 1)
    v, at_end = brute_force(
        lambda v: law.step(before, after, interval(v, 0, width)), len(got), reach=80, spacing=4
    )
    assert not at_end.any()
    best = interval(v, 0, width)
    assert_close(got, best, 2.0 * ULP * best + RELATIVE * np.minimum(best, width - best))


@pytest.mark.parametrize(("scale", "marginal"), [("linear", False), ("log", False), ("log", True)])
def test_update_of_z_is_the_minimiser_for_hier_rate(scale, marginal):
    inputs = random_inputs("hier_rate", scale, seed=3, size=300, marginal=marginal)
    got = inputs.chain.auxiliary(inputs.H, scale).T.ravel()
    law = doubled(inputs.law)
    before, after = map(exact, transitions(inputs))
    v, at_zero = brute_force(
        lambda v: law.step(before, after, half_line(v)), len(got), reach=100, spacing=4
    )
    assert not at_zero.any()
    assert_close(got, half_line(v), RELATIVE * half_line(v))


@pytest.mark.parametrize("scale", SCALES)
def test_marginal_z_is_the_mean_for_hier_rate(scale):
    inputs = random_inputs("hier_rate", scale, seed=4, size=300, marginal=True)
    before, after = inputs.H[:, :1], inputs.H[:, 1:2]
    got = inputs.chain.auxiliary(inputs.H, scale)[:, 0]
    alpha_z, beta_z, alpha_h, beta_h = (
        inputs.law.parameters[key].astype(float)[:, None]
        for key in ("alpha_z", "beta_z", "alpha_h", "beta_h")
    )
    # The trapezoidal rule in log z, around the mode of its density.
    power, rate = alpha_z + alpha_h, beta_z * before + beta_h * after
    t = np.linspace(-12.0, 12.0, 4001) * (1.0 + 4.0 / power) / np.sqrt(power)
    z = power / rate * np.exp(t)
    log_density = alpha_z * np.log(z * before) - beta_z * before * z + alpha_h * np.log(z)
    log_density -= beta_h * after * z
    mean = np.exp(logsumexp(log_density + np.log(z), axis=1) - logsumexp(log_density, axis=1))
    np.testing.assert_allclose(got, mean, rtol=1e-11)


@pytest.mark.parametrize("scale", SCALES)
def test_z_is_the_mean_count_for_hier_shape(scale):
    rng = np.random.default_rng(5)
    size = 300
    alpha, beta = 10.0 ** rng.uniform(-2.0, 2.0, size), spread_out(rng, 2.0, size)
    H = spread_out(rng, 1.5, (size, 2)) / beta[:, None]
    got = HierShape(alpha, beta).auxiliary(H, scale)[:, 0]
    z = np.arange(1000.0)
    shape, (before, after) = alpha[:, None] + z, (beta * H.T)[:, :, None]
    log_density = z * np.log(before) - gammaln(z + 1.0) + shape * np.log(after) - gammaln(shape)
    weight = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    np.testing.assert_allclose(got, weight @ z / weight.sum(axis=1), rtol=1e-11)


# (B5): h_n with the b on both of its sides minimised out.


def lowest_step(law, before, after):
    """min over b of −log p(b, after | before)."""
    width = np.minimum(after / before, 1)

    def cost(v):
        return law.step(before, after, interval(v, 0, width))

    v, at_end = brute_force(cost, len(width), reach=80, spacing=4, width=1e-12)
    assert not at_end.any()
    return cost(v)


def profile_of(law, likelihood, before, after):
    """The objective as a function of h, lowest over the b's; a missing neighbour is None."""

    def profile(h):
        h = exact(h)
        total = majorizer_value(h, *map(exact, likelihood))
        total += law.first(h) if before is None else lowest_step(law, exact(before), h)
        return total if after is None else total + lowest_step(law, h, exact(after))

    return profile


def assert_local_minimum(profile, h, distance):
    """There is a minimum within the relative distance of h."""
    here = profile(h)
    for factor in (1 - exact(distance), 1 + exact(distance)):
        higher = (profile(exact(h) * factor) > here).astype(bool)
        assert higher.all(), f"{np.sum(~higher)} cases, the first is {np.argmin(higher)}"


def profile_case(scale, n, seed, size):
    """The chain, and around step n: the likelihood's terms and the neighbours."""
    inputs = random_inputs("bgar", scale, seed, size)
    likelihood = Majorizer(*(x[:, n] for x in inputs.likelihood))
    before = inputs.H[:, n - 1] if n > 0 else None
    after = inputs.H[:, n + 1] if n < N_STEPS - 1 else None
    return inputs, likelihood, before, after


@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_profile_root_is_a_local_minimiser_and_never_higher(scale, n):
    size = 100
    inputs, likelihood, before, after = profile_case(scale, n, 6, size)
    alpha, beta, eta, gamma = (
        inputs.law.parameters[key].astype(float) for key in ("alpha", "beta", "eta", "gamma")
    )
    lost = float(scale == "linear")
    p, q, r = likelihood.p.copy(), likelihood.q + beta, likelihood.r
    if before is None:
        p += alpha - lost
    if after is not None:
        p -= alpha - 2.0 * lost
    ends = [np.zeros(size) if h is None else h for h in (before, after)]
    current = inputs.H[:, n]
    got = profile_root(p, q, r, *ends, beta, eta - lost, gamma - lost, current)
    profile = profile_of(inputs.law, likelihood, before, after)
    assert_local_minimum(profile, got, 1e-9)
    assert (profile(got) <= profile(current)).all()
