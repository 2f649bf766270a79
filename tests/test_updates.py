"""Every one-dimensional update against a brute-force search, the paper's polynomials and (W2)."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import gmpy2
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from bounds import minimisers, with_chain
from cases import SCALES, chains, update_weights
from oracle_updates import (
    PRECISION,
    Law,
    brute_force,
    exact,
    half_line,
    interval,
    majorizer_value,
    root,
    simplex_by_bisection,
)
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.cluster.executor import Slot
from temporalnmf.cluster.features import SplitFeatures
from temporalnmf.cluster.requests import result
from temporalnmf.kernels import roots
from temporalnmf.kernels.floor import FLOOR
from temporalnmf.kernels.roots import _quadratic_root
from temporalnmf.kernels.simplex import lowest_rates
from temporalnmf.likelihoods.base import Majorizer
from temporalnmf.observations.block import Block

CHAINS = {
    "gap": GaP,
    "rate": Rate,
    "hier_rate": HierRate,
    "hier_rate_marginal": partial(HierRate, marginal=True),
    "shape": Shape,
    "hier_shape": HierShape,
    "bgar": BGAR,
    "arg": ARG,
}
# Steps at which the density on the linear scale can be unbounded at zero.
ZEROS = {"gap": (0, 1, 2), "shape": (2,), "hier_shape": (1, 2), "arg": (0, 1, 2)}
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
    aux: np.ndarray
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
    if name == "arg":
        rho = rng.choice([rng.random(size), 1.0 - 10.0 ** rng.uniform(-6.0, 0.0, size)])
        return {"alpha": anything[0], "beta": rates[0], "rho": rho}
    return {"alpha": restricted if name == "rate" else anything[0], "beta": rates[0]}


def auxiliary_variables(rng, name, decades, H):
    """Any feasible z, E z or b: the updates of h hold them, optimal or not."""
    size = (len(H), N_STEPS - 1)
    if name in ("hier_rate", "hier_shape", "arg"):
        return spread_out(rng, decades, size)
    if name == "bgar":
        share = rng.random(size)
        close = 1.0 - 10.0 ** rng.uniform(-9.0, 0.0, size)
        share = np.where(rng.random(size) < 0.5, share, close)
        return share * np.minimum(1.0, H[:, 1:] / H[:, :-1])
    return np.empty((len(H), 0))


def law_of(name, scale, parameters):
    if name == "bgar":
        # γ and η as doubles: close to 1, γ − 1 has fewer digits than α and ρ.
        parameters = dict(parameters)
        alpha, rho = parameters["alpha"], parameters.pop("rho")
        parameters |= {"gamma": alpha * (1.0 - rho), "eta": alpha * rho}
    return Law(name, scale, parameters)


def random_inputs(name, scale, seed, size=N_CHAINS):
    kind = name.removesuffix("_marginal")
    rng = np.random.default_rng(seed)
    decades = rng.choice([0.5, 3.0, 8.0], size=(size, 1))
    H = spread_out(rng, decades, (size, N_STEPS))
    likelihood = likelihood_terms(rng, decades, H.shape)
    parameters = hyper_parameters(rng, kind, scale, size)
    chain = CHAINS[name](**parameters)
    chain.check("map", scale)
    aux = auxiliary_variables(rng, kind, decades, H)
    return Inputs(chain, law_of(kind, scale, parameters), H, aux, likelihood)


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
    aux = exact(inputs.aux) if inputs.aux.size else np.full((len(H), N_STEPS - 1), None)
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
    total = with_chain(likelihood, chain, H, aux, scale)
    return minimisers(chain, H, aux, total, slice(None), scale)


@pytest.mark.quick("gap-log-0", "rate-linear-1", "hier_rate-log-2", "hier_shape-log-0")
@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", [name for name in CHAINS if name != "bgar"])
def test_update_of_h_is_the_minimiser(name, scale, n):
    inputs = random_inputs(name, scale, seed=1)
    got = updates(inputs, scale)[:, n]
    cost = cost_of(inputs, n)
    v, at_zero = brute_force(lambda v: cost(half_line(v)), len(got), reach=96, spacing=8)
    np.testing.assert_array_equal(got[at_zero], 0.0)
    best = half_line(v)
    assert_close(got[~at_zero], best[~at_zero], RELATIVE * best[~at_zero])
    assert at_zero.any() == (scale == "linear" and n in ZEROS.get(name, ()))


@pytest.mark.quick("log-0")
@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_update_of_h_is_the_minimiser_for_bgar(scale, n):
    inputs = random_inputs("bgar", scale, seed=1)
    got = updates(inputs, scale)[:, n]
    cost = cost_of(inputs, n)
    before, after, b_before, b_after = neighbours(inputs, n)
    lower = exact(np.zeros(len(got))) if before is None else b_before * before
    if after is None:
        v, at_end = brute_force(lambda v: cost(half_line(v, lower)), len(got), reach=80, spacing=8)
        best = half_line(v, lower)
        room = best - lower
    else:
        width = after / b_after - lower
        v, at_end = brute_force(
            lambda v: cost(interval(v, lower, width)), len(got), reach=80, spacing=8
        )
        best = interval(v, lower, width)
        room = np.minimum(best - lower, lower + width - best)
    assert not at_end.any()
    # The distance to the nearer end is as good as the rounding of h lets it be, and the library
    # stays four units in the last place below an upper end.
    assert_close(got, best, 5.0 * ULP * best + RELATIVE * room)


def test_sweep_clamps_zeros_at_the_floor():
    H = np.array([[2.0, 3.0]])
    likelihood = Majorizer(np.array([[0.1, 4.0]]), np.ones((1, 2)), np.zeros((1, 2)))
    GaP(0.5, 1.0).sweep(H, np.empty((1, 0)), likelihood, "linear")
    np.testing.assert_array_equal(H, [[FLOOR, 1.75]])


# The updates of auxiliary variables.


def transitions(inputs):
    """The two transitions of every chain one after the other: before, after."""
    return inputs.H[:, :-1].T.ravel(), inputs.H[:, 1:].T.ravel()


def doubled(law):
    """The law of the transitions in that order."""
    twice = {key: np.concatenate([value] * (N_STEPS - 1)) for key, value in law.parameters.items()}
    return Law(law.name, law.scale, twice)


@pytest.mark.long
@pytest.mark.parametrize("scale", ["log", pytest.param("linear", marks=pytest.mark.long)])
def test_update_of_b_is_the_minimiser(scale):
    inputs = random_inputs("bgar", scale, seed=2, size=250)
    got = inputs.chain.auxiliary(inputs.H, scale).T.ravel()
    law = doubled(inputs.law)
    before, after = map(exact, transitions(inputs))
    width = np.minimum(after / before, 1)
    v, at_end = brute_force(
        lambda v: law.step(before, after, interval(v, 0, width)), len(got), reach=80, spacing=8
    )
    assert not at_end.any()
    best = interval(v, 0, width)
    assert_close(got, best, 5.0 * ULP * best + RELATIVE * np.minimum(best, width - best))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("hier_rate", "linear"),
        pytest.param("hier_rate", "log", marks=pytest.mark.long),
        ("hier_rate_marginal", "log"),
    ],
)
def test_update_of_z_is_the_minimiser_for_hier_rate(name, scale):
    inputs = random_inputs(name, scale, seed=3, size=250)
    got = inputs.chain.auxiliary(inputs.H, scale).T.ravel()
    law = doubled(inputs.law)
    before, after = map(exact, transitions(inputs))
    v, at_zero = brute_force(
        lambda v: law.step(before, after, half_line(v)), len(got), reach=96, spacing=8
    )
    assert not at_zero.any()
    assert_close(got, half_line(v), RELATIVE * half_line(v))


@pytest.mark.parametrize("scale", SCALES)
def test_marginal_z_is_the_mean_for_hier_rate(scale):
    rng = np.random.default_rng(4)
    size = 300
    alpha_z, alpha_h = 1.0 + 10.0 ** rng.uniform(-6.0, 3.0, (2, size))
    beta_z, beta_h = spread_out(rng, 3.0, (2, size))
    H = spread_out(rng, 8.0, (size, 2))
    chain = HierRate(alpha_z, beta_z, alpha_h, beta_h, marginal=True)
    # p(z | h) ∝ z^(α_z−1) e^(−β_z h_{n−1} z) · z^α_h e^(−β_h h_n z), summed on a grid of log z.
    power = alpha_z + alpha_h
    rate = beta_z * H[:, 0] + beta_h * H[:, 1]
    reach = 40.0 / power + np.sqrt(80.0 / power)
    t = np.linspace(-reach, np.minimum(reach, 5.0), 4001)
    log_density = power * t - power * np.exp(t)
    mean = (
        power / rate * np.exp(logsumexp(log_density + t, axis=0) - logsumexp(log_density, axis=0))
    )
    np.testing.assert_allclose(chain.auxiliary(H, scale)[:, 0], mean, rtol=1e-12)


@pytest.mark.parametrize("name", ["hier_shape", "arg"])
@pytest.mark.parametrize("scale", SCALES)
def test_z_is_the_mean_count(scale, name):
    rng = np.random.default_rng(5)
    size = 300
    alpha, tau = 10.0 ** rng.uniform(-2.0, 2.0, size), spread_out(rng, 2.0, size)
    H = spread_out(rng, 1.5, (size, 2)) / tau[:, None]
    rho = rng.random(size) if name == "arg" else np.ones(size)
    chain = ARG(alpha, tau * (1.0 - rho), rho) if name == "arg" else HierShape(alpha, tau)
    got = chain.auxiliary(H, scale)[:, 0]
    z = np.arange(1000.0)
    shape = alpha[:, None] + z
    before, after = (tau * rho * H[:, 0])[:, None], (tau * H[:, 1])[:, None]
    log_density = z * np.log(before) - gammaln(z + 1.0) + shape * np.log(after) - gammaln(shape)
    weight = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    np.testing.assert_allclose(got, weight @ z / weight.sum(axis=1), rtol=1e-11)


# (B5): h_n with the b on both of its sides minimised out.


def lowest_step(law, before, after):
    """min over b of −log p(b, after | before)."""
    width = np.minimum(after / before, 1)

    def cost(v):
        return law.step(before, after, interval(v, 0, width))

    v, at_end = brute_force(cost, len(width), reach=64, spacing=8, width=1e-12)
    assert not at_end.any()
    return cost(v)


class Profile(NamedTuple):
    """The objective as a function of one h, lowest over the b's; a missing neighbour is None."""

    law: Law
    likelihood: Majorizer
    before: np.ndarray | None
    after: np.ndarray | None

    @classmethod
    def around(cls, n, law, likelihood, H):
        return cls(
            law,
            Majorizer(*(x[:, n] for x in likelihood)),
            H[:, n - 1] if n > 0 else None,
            H[:, n + 1] if n < N_STEPS - 1 else None,
        )

    def value(self, h):
        h = exact(h)
        total = majorizer_value(h, *map(exact, self.likelihood))
        if self.before is None:
            total += self.law.first(h)
        else:
            total += lowest_step(self.law, exact(self.before), h)
        return total if self.after is None else total + lowest_step(self.law, h, exact(self.after))

    def sizes(self, h):
        """Of the terms that have to cancel in the slope at h."""
        alpha, beta = (self.law.parameters[name].astype(float) for name in ("alpha", "beta"))
        p, q, r = self.likelihood
        return p + alpha + (q + beta) * h + r / h

    def assert_local_minimum(self, h, distance):
        """A minimum lies within the relative distance, or the slope at h is zero to rounding.

        Returns the value at h.
        """
        rounding = 30.0 * ULP * self.sizes(h)
        here = self.value(h)
        for factor in (1 - exact(distance), 1 + exact(distance)):
            drop = ((here - self.value(exact(h) * factor)) / distance).astype(float) / rounding
            worst = np.argmax(drop)
            assert drop[worst] <= 1.0, (
                f"case {worst}: {h[worst]!r} has a lower value on one side, with a slope "
                f"{drop[worst]:.3g} times what is allowed; {np.sum(drop > 1.0)} such cases"
            )
        return here


def holding_others(likelihood, H, n):
    """A likelihood that is the given one at step n; its weight holds all others where they are."""
    p, q, r = np.zeros((3, *H.shape))
    p[:, n], q[:, n], r[:, n] = likelihood
    others = np.arange(N_STEPS) != n
    p[:, others], q[:, others] = 1e30, 1e30 / H[:, others]
    return Majorizer(p, q, r)


def assert_sweeps_settle(profile, chain, H, n, *, rounds):
    """Sweeps take h_n to a local minimum of the profile, and none of them raises its value."""
    likelihood, others = holding_others(profile.likelihood, H, n), np.arange(N_STEPS) != n
    moving, scale = H.copy(), profile.law.scale
    aux = chain.auxiliary(H, scale)
    values = [profile.value(H[:, n])]
    for turn in range(rounds):
        aux = chain.sweep(moving, aux, likelihood, scale)
        if turn < 2:
            values.append(profile.value(moving[:, n]))
    np.testing.assert_allclose(moving[:, others], H[:, others], rtol=1e-14)
    # h stays where it is if it would gain less than the rounding of the value: hence the distance.
    values.append(profile.assert_local_minimum(moving[:, n], 1e-5))
    size = profile.sizes(H[:, n])
    for before, after in pairwise(values):
        assert (after <= before + exact(1e-13 * size)).all()
    assert (values[-1] < values[0]).all()


@pytest.mark.long
@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_sweeps_of_bgar_settle_at_a_local_minimum_of_the_profile(scale, n):
    inputs = random_inputs("bgar", scale, seed=7, size=80)
    profile = Profile.around(n, inputs.law, inputs.likelihood, inputs.H)
    assert_sweeps_settle(profile, inputs.chain, inputs.H, n, rounds=100)


@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_sweeps_of_bgar_settle_soon(scale, n):
    """Newton's steps: nine of ten are where they stay after four sweeps, all after ten."""
    inputs = random_inputs("bgar", scale, seed=30, size=300)
    likelihood = holding_others([x[:, n] for x in inputs.likelihood], inputs.H, n)
    H, aux = inputs.H.copy(), inputs.chain.auxiliary(inputs.H, scale)
    moves = []
    for _ in range(11):
        before = H[:, n].copy()
        aux = inputs.chain.sweep(H, aux, likelihood, scale)
        moves.append(abs(np.log(H[:, n] / before)))
    assert np.mean(moves[3] > 1e-6) < 0.1
    assert np.max(moves[10]) < 2e-6
    expected = inputs.chain.auxiliary(H, scale)
    np.testing.assert_allclose(aux[:, max(n - 1, 0) : n + 1], expected[:, max(n - 1, 0) : n + 1],
                               rtol=1e-8)  # fmt: skip


@pytest.mark.parametrize("start", [1e-28, 1e25])
@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("scale", SCALES)
def test_sweeps_of_bgar_come_near_from_afar(scale, n, start):
    """Thirty of Newton's steps are not enough; (B1)–(B3) go the rest of the way."""
    chain, found = BGAR(8.0, 0.4, 0.6), []
    for begin in (start, 40.0):
        H = np.array([[30.0, 50.0, 20.0]])
        likelihood = holding_others(([40.0], [1.0], [0.0]), H, n)
        H[0, n] = begin
        aux = chain.auxiliary(H, scale)
        path = []
        for _ in range(8):
            aux = chain.sweep(H, aux, likelihood, scale)
            path.append(H[0, n])
        found.append(path)
    (first, *_, last), (*_, expected) = found
    assert abs(np.log(first / expected)) < 0.3
    assert last == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("held", [0, 1, 2])
@pytest.mark.parametrize("scale", SCALES)
def test_sweeps_are_rounds_of_updates(scale, held):
    """Neighbours that are coupled take turns; auxiliary variables follow each round."""
    rng = np.random.default_rng(31)
    H = rng.gamma(2.0, 5.0, size=(3, 7))
    likelihood = Majorizer(*rng.gamma(1.0, size=(3, *H.shape)))
    for chain in chains(scale):
        if chain.name == "bgar":
            continue  # has its own way, see (B5)
        turns = 2 if chain.name in ("rate", "shape") else 1
        expected, aux = H.copy(), chain.auxiliary(H, scale)
        for _ in range(chain.sweeps):
            for first in range(held, held + turns):
                total = with_chain(likelihood, chain, expected, aux, scale)
                part = slice(first, None, turns)
                expected[:, part] = minimisers(chain, expected, aux, total, part, scale)
            aux = chain.auxiliary(expected, scale)
        found = H.copy()
        returned = chain.sweep(found, chain.auxiliary(H, scale), likelihood, scale, held=held)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(chain))
        np.testing.assert_allclose(returned, aux, rtol=1e-12, err_msg=str(chain))


@pytest.mark.long
@pytest.mark.parametrize("scale", ["log", pytest.param("linear", marks=pytest.mark.long)])
def test_sweeps_of_bgar_leave_the_neighbourhood_of_a_neighbour(scale):
    """There Newton's first step is tiny although the minimum is far."""
    rng = np.random.default_rng(18)
    size = 80
    gamma, eta = 1.0 + 10.0 ** rng.uniform(-3.0, 1.0, (2, size))
    alpha, beta = gamma + eta, 10.0 ** rng.uniform(2.0, 4.0, size)
    before = 10.0 ** rng.uniform(4.0, 6.0, size)
    after = before * 10.0 ** rng.uniform(0.3, 1.5, size)
    parameters = {"alpha": alpha, "beta": beta, "rho": eta / alpha}
    missing = Majorizer(*np.zeros((3, size)))
    current = before * (1.0 + 10.0 ** rng.uniform(-12.0, -8.0, size))
    profile = Profile(law_of("bgar", scale, parameters), missing, before, after)
    H = np.column_stack([before, current, after])
    assert_sweeps_settle(profile, BGAR(**parameters), H, 1, rounds=100)


# Results that are as close to an end of their interval as rounding lets them be.


def tight_transitions(rng, size):
    """α, β, ρ, H (K, 2) and a feasible b of chains whose minimisers sit at an end."""
    gamma, eta = 1.0 + 10.0 ** rng.uniform(-6.0, 0.0, (2, size))
    H = spread_out(rng, 1.0, (size, 2))
    b = rng.uniform(0.01, 0.99, (size, 1)) * np.minimum(1.0, H[:, 1:] / H[:, :1])
    return BGAR(gamma + eta, 10.0 ** rng.uniform(-3.0, 20.0, size), eta / (gamma + eta)), H, b


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("pull", ["up", "down"])
def test_bgar_noise_stays_positive_after_an_update_of_h(scale, pull):
    rng = np.random.default_rng(8)
    chain, H, b = tight_transitions(rng, 3000)
    force = 10.0 ** rng.uniform(10.0, 25.0, H.shape)
    zero = np.zeros_like(H)
    likelihood = Majorizer(zero, zero, force) if pull == "up" else Majorizer(zero, force, zero)
    total = with_chain(likelihood, chain, H, b, scale)
    moved = minimisers(chain, H, b, total, slice(None), scale)
    assert (H[:, 1] - b[:, 0] * moved[:, 0] > 0.0).all()
    assert (moved[:, 1] - b[:, 0] * H[:, 0] > 0.0).all()
    assert (moved > 0.0).all()


@pytest.mark.parametrize("scale", SCALES)
def test_bgar_noise_stays_positive_after_an_update_of_b(scale):
    chain, H, _ = tight_transitions(np.random.default_rng(9), 3000)
    b = chain.auxiliary(H, scale)[:, 0]
    assert ((b > 0.0) & (b < 1.0)).all()
    assert (H[:, 1] - b * H[:, 0] > 0.0).all()


# The paper's polynomials, on its scale.


def only_root_inside(coefficients, low, high):
    """The one real root of each polynomial, highest power first, in its open interval."""
    found = []
    for row, *ends in zip(np.transpose(coefficients), low, high, strict=True):
        roots = np.roots(row)
        real = roots.real[abs(roots.imag) < 1e-9 * abs(roots)]
        inside = real[(real > ends[0]) & (real < ends[1])]
        assert len(inside) == 1
        found.append(inside[0])
    return np.array(found)


class Moderate(NamedTuple):
    """200 chains of three steps on the linear scale; p, q, r of the middle of the road."""

    H: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    likelihood: Majorizer


def moderate_case(seed, *, exponential=False, size=200):
    rng = np.random.default_rng(seed)
    H = spread_out(rng, 0.5, (size, N_STEPS))
    p, q = spread_out(rng, 0.7, (2, *H.shape))
    zero = np.zeros_like(H)
    likelihood = Majorizer(zero, q, p) if exponential else Majorizer(p, q, zero)
    return Moderate(H, 1.0 + spread_out(rng, 0.5, size), spread_out(rng, 0.5, size), likelihood)


def table_1(n, case):
    """(a_2, a_1, a_0) of the paper's Table 1."""
    H, alpha, beta, (p, q, _) = case
    p, q = p[:, n], q[:, n]
    if n == 0:
        return q, alpha - p, -beta * H[:, 1]
    if n == N_STEPS - 1:
        return np.zeros_like(q), q + beta / H[:, n - 1], 1.0 - alpha - p
    return q + beta / H[:, n - 1], 1.0 - p, -beta * H[:, n + 1]


@pytest.mark.parametrize("n", range(N_STEPS))
def test_rate_solves_table_1(n):
    case = moderate_case(10)
    none = np.empty((len(case.H), 0))
    inputs = Inputs(Rate(case.alpha, case.beta), None, case.H, none, case.likelihood)
    zero, infinity = np.zeros(len(case.H)), np.full(len(case.H), np.inf)
    expected = only_root_inside(table_1(n, case), zero, infinity)
    np.testing.assert_allclose(updates(inputs, "linear")[:, n], expected, rtol=1e-13)


def moderate_bgar(seed, exponential):
    case = moderate_case(seed, exponential=exponential)
    rng = np.random.default_rng(seed + 1)
    gamma, eta = 1.0 + spread_out(rng, 0.5, (2, len(case.H)))
    chain = BGAR(gamma + eta, case.beta, eta / (gamma + eta))
    chain.check("map", "linear")
    case = case._replace(alpha=gamma + eta)
    b = rng.uniform(0.1, 0.9, (len(case.H), N_STEPS - 1))
    return case, chain, gamma, eta, b * np.minimum(1.0, case.H[:, 1:] / case.H[:, :-1])


def table_2(n, case, gamma, c, d, b_after):
    """(a_3, …, a_0) of the paper's Table 2."""
    p, q = case.likelihood.p[:, n], case.likelihood.q[:, n]
    one_alpha, one_gamma, zero = 1.0 - case.alpha, 1.0 - gamma, np.zeros_like(p)
    if n == N_STEPS - 1:
        s = q + case.beta
        return zero, s, -p - c * s + one_gamma, c * p
    s = q + case.beta * (1.0 - b_after)
    if n == 0:
        return zero, -s, -(one_alpha - p) + s * d - one_gamma, (one_alpha - p) * d
    a_1 = -p * (c + d) + one_gamma * (c + d) - s * c * d
    return -s, p - 2.0 * one_gamma + s * (c + d), a_1, p * c * d


def appendix_g(n, case, gamma, c, d, b_after):
    """(a_4, …, a_0) of the paper's Appendix G, whose p is our r."""
    q, p = case.likelihood.q[:, n], case.likelihood.r[:, n]
    one_alpha, one_gamma, zero = 1.0 - case.alpha, 1.0 - gamma, np.zeros_like(p)
    if n == N_STEPS - 1:
        s = q + case.beta
        return zero, s, -s * c + one_gamma, -p, c * p
    s = q + case.beta * (1.0 - b_after)
    if n == 0:
        return zero, -s, s * d - one_alpha - one_gamma, one_alpha * d + p, -p * d
    a_2 = -c * d * s + p + one_gamma * (c + d)
    return -s, s * (c + d) - 2.0 * one_gamma, a_2, -p * (c + d), p * c * d


@pytest.mark.parametrize("n", range(N_STEPS))
@pytest.mark.parametrize("polynomial", [table_2, appendix_g])
def test_bgar_solves_table_2_and_appendix_g(polynomial, n):
    case, chain, gamma, _, b = moderate_bgar(11, exponential=polynomial is appendix_g)
    H = case.H
    c = b[:, n - 1] * H[:, n - 1] if n > 0 else np.zeros(len(H))
    last = n == N_STEPS - 1
    b_after = None if last else b[:, n]
    d = np.full(len(H), np.inf) if last else H[:, n + 1] / b_after
    expected = only_root_inside(polynomial(n, case, gamma, c, d, b_after), c, d)
    got = updates(Inputs(chain, None, H, b, case.likelihood), "linear")[:, n]
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_b_solves_the_papers_polynomial():
    case, chain, gamma, eta, _ = moderate_bgar(13, exponential=False)
    before, after = case.H[:, 0], case.H[:, 1]
    x = after / before
    weight = case.beta * before
    # Without the stray d_kn beside a_0.
    coefficients = (
        -weight,
        2.0 * (1.0 - gamma) + (1.0 - eta) + weight * (x + 1.0),
        -(1.0 - gamma) * (x + 1.0) - (1.0 - eta) * (x + 1.0) - weight * x,
        (1.0 - eta) * x,
    )
    expected = only_root_inside(coefficients, np.zeros(len(x)), np.minimum(1.0, x))
    np.testing.assert_allclose(chain.auxiliary(case.H, "linear")[:, 0], expected, rtol=1e-11)


# The kernels on their own.

quadratic_root = np.vectorize(_quadratic_root, otypes=[float])


def test_quadratic_root_keeps_what_no_minimum_holds():
    p, r = np.array([0.0, 0.0, 2.0, 2.0]), np.array([0.0, 3.0, 0.0, 3.0])
    np.testing.assert_array_equal(quadratic_root(p, 0.0, r, 5.0), 5.0)


def test_quadratic_root_without_linear_term_is_the_minimum_or_zero():
    """α log h + r/h has its minimum at r/α, α log h its infimum at 0."""
    np.testing.assert_array_equal(quadratic_root(-4.0, 0.0, [3.0, 0.0], 5.0), [0.75, 0.0])


def test_quadratic_root_without_inverse_term_is_the_quotient_or_zero():
    np.testing.assert_array_equal(quadratic_root([3.0, 0.0, -3.0], 2.0, 0.0, 5.0), [1.5, 0.0, 0.0])


def test_quadratic_root_does_not_cancel():
    rng = np.random.default_rng(14)
    size = 500
    p = -(10.0 ** rng.uniform(-8.0, 8.0, size))
    p[:100] = -1e8
    p[100:200] *= -1.0
    q, r = 10.0 ** rng.uniform(-8.0, 8.0, (2, size))
    q[:100], r[:100] = 10.0 ** rng.uniform(-12.0, 0.0, (2, 100))
    P, Q, R = exact(p), exact(q), exact(r)
    expected = (P + root(P * P + 4 * Q * R)) / (2 * Q)
    assert_close(quadratic_root(p, q, r, 5.0), expected, 1e-15 * expected)


# The searches: an error in a derivative or in a step would change not their result but their pace.


def equations(rng, size=300):
    """Each equation as a function of its unknown, with a place to start from."""
    p, q, r, lower, width, near, far, start = spread_out(rng, 3.0, (8, size))
    r[::2], width[::3] = 0.0, np.inf
    shape = [
        (partial(roots._shape_equation, p=p[i] + 1.0, q=q[i], r=r[i], alpha=near[i]), start[i])
        for i in range(size)
    ]
    barrier = [
        (
            partial(roots._barrier_equation, p=p[i], q=q[i], r=r[i], lower=lower[i],
                    width=width[i], g_lower=near[i], g_upper=far[i]),
            start[i],
        )
        for i in range(size)
    ]  # fmt: skip
    retained = [
        (
            partial(roots._retained_equation, rate=q[i], gap=p[i], kappa=near[i], lam=far[i]),
            roots._retained_guess(q[i], p[i], near[i], far[i]),
        )
        for i in range(size)
    ]
    return {"shape": shape, "barrier": barrier, "retained": retained}


@pytest.mark.parametrize("name", ["shape", "barrier", "retained"])
def test_equations_come_with_their_derivatives(name):
    """In the logarithm of the unknown, by central differences of the fourth order."""
    step = 1e-3
    for equation, x in equations(np.random.default_rng(20))[name][:100]:
        at = np.array([equation(x * np.exp(u * step)) for u in (-2, -1, 0, 1, 2)])
        slope, bend = (8.0 * (at[3, :2] - at[1, :2]) - (at[4, :2] - at[0, :2])) / (12.0 * step)
        size = abs(at[2]).max()
        np.testing.assert_allclose(at[2, 1:], [slope, bend], rtol=1e-8, atol=1e-9 * size)


@pytest.mark.parametrize(
    ("name", "mean", "most"), [("shape", 5.7, 11), ("barrier", 6.3, 13), ("retained", 1.9, 4)]
)
def test_searches_take_few_steps(name, mean, most):
    counts = []
    for equation, x in equations(np.random.default_rng(21))[name]:
        low, high, step, last, count = 0.0, np.inf, 0.5, False, 0
        while not last:
            value, slope, bend = equation(x)
            x, low, high, step, last = roots._advance(
                x, value, slope, bend, low, high, step, roots.LAST_STEP
            )
            count += 1
            assert count <= most
        counts.append(count)
    assert np.mean(counts) < mean


ADVANCES = {
    # (x, value, slope, bend, low, high, previous): (x, low, high, step, last)
    "at the root": ((2.0, 0.0, 1.0, 0.0, 1.0, 3.0, 1.0), (2.0, 2.0, 3.0, 0.0, True)),
    "Newton": ((1.0, -0.1, 1.0, 0.0, 0.5, 2.0, 0.3), (1.105, 1.0, 2.0, 0.1, False)),
    "Halley": ((1.0, -1.0, 1.0, 10.0, 0.5, 2.0, 0.5), (1 + 13 / 72, 1.0, 2.0, 1 / 6, False)),
    "twice Newton at most": (
        (1.0, -0.1, 1.0, -100.0, 0.5, 2.0, 0.5), (1.22, 1.0, 2.0, 0.2, False)
    ),
    "last": ((1.0, 1e-6, 1.0, 0.0, 0.5, 2.0, 1.0), (1.0 - 1e-6, 0.5, 1.0, -1e-6, True)),
    "does not shrink": (
        (1.0, -0.1, 1.0, 0.0, 0.5, 4.0, 0.15), (2.0, 1.0, 4.0, np.log(2.0), False)
    ),
    "leaves the bracket": (
        (1.0, 0.5, 1.0, 0.0, 0.81, 4.0, 2.0), (0.9, 0.81, 1.0, np.log(0.9), False)
    ),
    "no slope": ((1.0, 0.5, 0.0, 0.0, 0.25, 4.0, 2.0), (0.5, 0.25, 1.0, np.log(0.5), False)),
    "closed bracket": (
        (1.0 + 4e-16, 0.5, 0.0, 0.0, 1.0, 4.0, 2.0), (1.0, 1.0, 1.0 + 4e-16, 0.0, True)
    ),
    "up, still open": ((1.0, -0.5, 0.0, 0.0, 0.0, np.inf, 0.25), (2.5, 1.0, np.inf, 1.0, False)),
    "down, still open": (
        (1.0, 0.5, -1.0, 0.0, 0.0, np.inf, -0.125), (0.625, 0.0, 1.0, -0.5, False)
    ),
    "Halley, still open": (
        (1.0, -0.1, 1.0, 0.0, 0.0, np.inf, 0.5), (1.105, 1.0, np.inf, 0.1, False)
    ),
    "at the largest": (
        (1e304, -1.0, 0.0, 0.0, 0.0, np.inf, 0.5), (1e304, 1e304, np.inf, 2.0, True)
    ),
    "at the smallest": (
        (1e-304, 1.0, 0.0, 0.0, 0.0, np.inf, 0.5), (1e-304, 0.0, 1e-304, -2.0, True)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ADVANCES)
def test_searches_advance_by_halley_or_half_the_bracket(case):
    given, expected = ADVANCES[case]
    found = roots._advance(*given, roots.LAST_STEP)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-11, atol=1e-15)
    assert found[4] == expected[4]


def test_steps_of_searches_multiply_by_their_exponential():
    """x e^step, to step³/6 for small steps."""
    for step in np.concatenate([np.linspace(-1.0, 1.0, 21), [-30.0, -1.5, 1.1, 5.0]]):
        allowed = 0.5 * abs(step) ** 3 if abs(step) <= 1.0 else 1e-14
        assert roots._grown(3.0, step) == pytest.approx(3.0 * np.exp(step), rel=allowed + 1e-15)


@pytest.mark.parametrize("gap", [0.0, 1e300])
def test_the_first_guess_of_b_is_the_root_where_one_barrier_is_all(gap):
    """The barriers fall together, or one is out of sight: a quadratic equation is left."""
    for rate, kappa, lam in spread_out(np.random.default_rng(22), 3.0, (200, 3)):
        guess = roots._retained_guess(rate, gap, kappa, lam)
        found = roots._retained_odds(rate, gap, kappa, lam, 1.0, roots.LAST_STEP)
        assert guess == pytest.approx(found, rel=1e-12)


# (W2): the W step on the simplex.


def simplex_case(rng, decades, *, shared, inverse, size=40, n_features=12):
    """p, q, r with a third of p and of r zero, one feature without both, per column."""
    shape = (n_features, size)
    p, q, r = (spread_out(rng, decades, shape) for _ in range(3))
    p[rng.random(shape) < 0.3] = 0.0
    r[rng.random(shape) < (0.3 if inverse else 1.0)] = 0.0
    p[0] = r[0] = 0.0
    p[1] = spread_out(rng, decades, size)
    return p, q[:1] if shared else q, r


class Bounded(Block):
    """Some features with a majorizer that is given."""

    def __init__(self, p, q, r):
        law = SimpleNamespace(local=False)
        observations = SimpleNamespace(order="C", shared=False, likelihood=law)
        super().__init__(observations, np.full(p.shape, np.nan))
        self.given = Majorizer(p.copy(), q, r)

    def bound(self, H, smoothing):
        self._bound = self.given
        return lowest_rates(*self._bound, smoothing, self.W)


class Side(Slot):
    """Blocks side by side in this process."""

    def __init__(self, blocks):
        self.blocks, self.executor = blocks, SimpleNamespace(n_blocks=len(blocks))

    def call(self, method, arguments, how):
        found = [getattr(block, method.__name__)(*arguments) for block in self.blocks]
        return result({(0, i): one for i, one in enumerate(found)}, len(found), how)

    def post(self, method, arguments):
        self.call(method, arguments, "each")


def minimised(p, q, r, n_blocks=1):
    """(W2), with the features in several places."""
    cuts = np.array_split(np.arange(len(p)), n_blocks)
    blocks = [
        Bounded(p[cut], q if len(q) == 1 else q[cut], r if len(r) == 1 else r[cut]) for cut in cuts
    ]
    features = blocks[0] if n_blocks == 1 else SplitFeatures(blocks[0].observations, Side(blocks))
    update_weights(features, None, 0.0)
    return features.array()


@pytest.mark.each_value
@pytest.mark.parametrize("n_blocks", [1, 5])
@pytest.mark.parametrize("decades", [1.0, 12.0])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_simplex_minimiser_meets_the_optimality_conditions(shared, inverse, decades, n_blocks):
    rng = np.random.default_rng(15)
    p, q, r = simplex_case(rng, decades, shared=shared, inverse=inverse)
    W = minimised(p, q, r, n_blocks)
    every_q = np.broadcast_to(q, p.shape)
    np.testing.assert_allclose(W.sum(axis=0), 1.0, rtol=1e-13)
    np.testing.assert_array_equal(W[0], 0.0)
    for k in range(p.shape[1]):
        expected = simplex_by_bisection(p[:, k], every_q[:, k], r[:, k])
        used = p[:, k] + r[:, k] > 0.0
        assert_close(W[used, k], expected[used], 1e-12 * expected[used])
        np.testing.assert_array_equal(W[~used, k], 0.0)


def test_simplex_minimiser_is_exact_where_the_cheapest_feature_has_the_least_mass():
    p = np.array([[1e-12, 1e-100, 1e-12], [1.0, 1.0, 1e6], [2.0, 3.0, 1.0]])
    q = np.array([[1e-6, 1e-3, 1e-12], [1e3, 5.0, 1e12], [2e3, 6.0, 1.0]])
    W = minimised(p, q, np.zeros_like(p))
    np.testing.assert_allclose(W.sum(axis=0), 1.0, rtol=1e-13)
    for k in range(3):
        expected = simplex_by_bisection(p[:, k], q[:, k], np.zeros(3))
        assert_close(W[:, k], expected, 1e-12 * expected + ULP)  # Σw = 1 holds to rounding


def test_simplex_minimiser_is_exact_where_the_cheapest_feature_is_not_used():
    """With its q in the bracket, the multiplier would lie to the left of it."""
    p, q, r = np.array([[0.0], [1.0], [2.0]]), np.array([[1e-3], [10.0], [20.0]]), np.zeros((3, 1))
    expected = simplex_by_bisection(p[:, 0], q[:, 0], r[:, 0])
    assert_close(minimised(p, q, r)[:, 0], expected, 1e-14 * expected + 1e-300)


def test_simplex_minimiser_is_the_papers_rule_where_it_holds():
    p, q, r = simplex_case(np.random.default_rng(16), 3.0, shared=True, inverse=False)
    np.testing.assert_allclose(minimised(p, q, r), p / p.sum(axis=0), rtol=1e-14)


def test_simplex_minimiser_agrees_with_brute_force_for_two_features():
    rng = np.random.default_rng(17)
    p, q, r = spread_out(rng, 3.0, (3, 2, 200))
    r[:, :100] = 0.0
    W = minimised(p, q, r)
    P, Q, R = exact(p), exact(q), exact(r)

    def cost(v):
        w = interval(v, 0, 1)
        first = majorizer_value(w, P[0], Q[0], R[0])
        return first + majorizer_value(interval(-v, 0, 1), P[1], Q[1], R[1])

    v, at_end = brute_force(cost, 200, reach=80, spacing=8)
    assert not at_end.any()
    expected = interval(v, 0, 1), interval(-v, 0, 1)
    for got, best in zip(W, expected, strict=True):
        assert_close(got, best, 1e-12 * best)
