"""Hyper-parameters and smoothing that are drawn: their laws, their steps, and the joint law."""

import numpy as np
import pytest
from scipy import stats

import geweke as joint
from temporalnmf import registry
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import PathLaw
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.sampling import learning
from temporalnmf.sampling.learning import (
    LearnedChain,
    LearnedLikelihood,
    LearnedSmoothing,
    Parameters,
    Prior,
    slice_step,
    slice_steps,
)

# All that can be learned at once, and where narrower priors put it: with the wide ones that users
# get, most draws from the prior are so extreme that they would tell little.
LEARNED = {
    "gap": (GaP("learn", "learn"), {"alpha": (0.7, 0.5), "beta": (-0.4, 0.5)}),
    "rate": (Rate("learn", "learn"), {"alpha": (1.4, 0.5), "beta": (0.0, 0.5)}),
    "hier_rate": (
        HierRate("learn", "auto", "learn", "learn"),
        {"alpha_z": (1.8, 0.5), "alpha_h": (1.4, 0.5), "beta_h": (0.0, 0.5)},
    ),
    "shape": (Shape("learn", "learn"), {"alpha": (0.4, 0.5), "beta": (0.0, 0.5)}),
    "hier_shape": (HierShape("learn", "learn"), {"alpha": (0.3, 0.5), "beta": (-0.1, 0.5)}),
    "bgar": (
        BGAR("learn", "learn", "learn"),
        {"alpha": (1.2, 0.5), "beta": (-0.8, 0.5), "rho": (0.0, None)},
    ),
    "arg": (
        ARG("learn", "learn", "learn"),
        {"alpha": (1.2, 0.5), "beta": (-0.8, 0.5), "rho": (0.0, None)},
    ),
}  # fmt: skip
# Words in other places: a rate that goes along with its shape, and one that does not.
SOME = [
    (GaP("learn", "auto"), {"alpha": (0.7, 0.5)}),
    (Rate("learn", "auto"), {"alpha": (1.4, 0.5)}),
    (Rate(4.0, "learn"), {"beta": (1.4, 0.5)}),
    (HierRate("learn", "learn", 4.0, 4.0), {"alpha_z": (1.8, 0.5), "beta_z": (0.0, 0.5)}),
    (HierRate("learn", "auto", "learn", "auto"), {"alpha_z": (1.8, 0.5), "alpha_h": (1.4, 0.5)}),
    (Shape("learn", 1.5), {"alpha": (0.4, 0.5)}),
    (HierShape(1.3, "learn"), {"beta": (-0.1, 0.5)}),
    (BGAR(3.0, "auto", "learn"), {"rho": (0.0, 1.0)}),
    (BGAR("learn", "auto", 0.6), {"alpha": (1.2, 0.5)}),
    (ARG(3.0, "auto", "learn"), {"rho": (0.0, 1.0)}),
    (ARG("learn", "auto", 0.6), {"alpha": (1.2, 0.5)}),
]


def log_law(chain, H, Z):
    return chain.path_law(len(H)).given_first(H, Z)


# Steps of paths on their own; one was not observed.
N_STEPS = 5
EXPOSURE = np.array([1.5, 0.0, 0.7, 2.0, 1.0])


def narrowed(chain, priors, n_components, level=3.0):
    """What is learned, with other priors."""
    law = LearnedChain(chain, level * n_components, n_components)
    assert set(law.names) == set(priors) == set(law.priors)
    law.priors = {name: Prior(*priors[name]) for name in law.names}
    return law


def test_every_chain_is_learned_here():
    assert set(LEARNED) == set(joint.NAMES) == set(registry.CHAINS) - {"none"}


@pytest.mark.parametrize("name", joint.NAMES)
def test_laws_of_paths_are_those_of_the_chain(name):
    """log_law is the sum over the transitions, with the first step where it has a law."""
    law = narrowed(*LEARNED[name], 6)
    rng = np.random.default_rng(1)
    law.move(joint.prior_coordinates(law, 6, rng))
    H, Z = joint.paths(law.chain, 6, N_STEPS, rng, joint.FIRST_LAW)
    H[0, 1:3] = 1e-5, 40.0  # and a path that nobody would expect
    expected = np.zeros(6)
    for n in range(1, N_STEPS):
        expected += law.chain.log_density(H[:, n], H[:, n - 1])
    if name in joint.OWN_FIRST_LAW:
        expected += law.chain.stationary().logpdf(H[:, 0])
    found = log_law(law.chain, H, Z) if name != "bgar" else _integrated_bgar(law.chain, H)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_dead", [1, 60])
def test_a_path_that_has_died_teaches_nothing_more(n_dead):
    """Shape: a path on the floor stays there whatever α and β are, and so says nothing of them."""
    alive, dead = np.array([[3.0, 1.2, 2.5, 1e-30]]), np.full((1, n_dead), 1e-30)
    path = np.hstack([alive, dead])
    for chain in (Shape(0.3, 0.5), Shape(8.0, 2.0)):
        found = log_law(chain, path, np.zeros((1, path.shape[1] - 1)))
        np.testing.assert_allclose(found, log_law(chain, alive, np.zeros((1, 3))), atol=1e-9)


@pytest.mark.parametrize(
    ("chain", "law"),
    [
        (GaP(0.02, 0.7), stats.gamma(0.02, scale=1.0 / 0.7)),
        (Shape(0.05, 0.7), stats.gamma(0.1, scale=1.0 / 0.7)),
        (HierShape(0.02, 0.7), stats.ncx2(0.04, 2.8, scale=0.5 / 0.7)),
        (ARG(0.02, 0.7, 0.3), stats.ncx2(0.04, 1.2, scale=0.5)),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_the_floor_holds_all_that_is_below_it(chain, law):
    """A tiny activation is one at the floor: it has a probability there, not a density."""
    H, H_above = np.array([[2.0, 1e-30]]), np.array([[2.0, 1e-29]])
    nothing = np.zeros((1, 1))
    first = chain.stationary().logpdf(2.0) if chain.own_first else 0.0
    assert log_law(chain, H, nothing)[0] - first == pytest.approx(law.logcdf(1e-30))
    assert log_law(chain, H_above, nothing)[0] - first == pytest.approx(law.logpdf(1e-29))


def _integrated_bgar(chain, H):
    """Log law of paths, retained parts integrated out.

    The density is that of the retained part a = w/(1 + e^−z), so da = a (w − a)/w dz counts. Given
    the path transitions do not depend on each other: each is looked at as a path of two steps.
    """
    z, own = np.linspace(-200.0, 200.0, 40001), chain.stationary().logpdf
    log_jacobian = -np.logaddexp(0.0, z) - np.logaddexp(0.0, -z)
    total = own(H[:, 0])
    for k, n in np.ndindex(len(H), H.shape[1] - 1):
        pair = np.tile(H[k, n : n + 2], (len(z), 1))
        values = log_law(chain._component(k), pair, z[:, None]) + log_jacobian
        values += np.log(pair.min()) - own(np.tile(H[k, n], len(H)))[k]
        top = values.max()
        total[k] += top + np.log(np.exp(values - top).sum() * (z[1] - z[0]))
    return total


def test_transitions_of_bgar_add_up():
    """The law of a path with its retained parts: that of its pairs, steps between counted once."""
    chain, rng = BGAR(3.0, 1.2, 0.6), np.random.default_rng(2)
    H, Z = joint.paths(chain, 4, N_STEPS, rng, joint.FIRST_LAW)
    pairs = [log_law(chain, H[:, n : n + 2], Z[:, n : n + 1]) for n in range(N_STEPS - 1)]
    twice = chain.stationary().logpdf(H[:, 1:-1]).sum(axis=1)
    np.testing.assert_allclose(log_law(chain, H, Z), np.sum(pairs, axis=0) - twice, rtol=1e-10)


@pytest.mark.quick(
    "gap-alpha-beta",
    "rate-alpha-beta",
    "hier_rate-alpha_z-alpha_h-beta_h",
    "shape-alpha-beta",
)
@pytest.mark.parametrize(
    "learned", [*LEARNED.values(), *SOME], ids=lambda case: f"{case[0].name}-{'-'.join(case[1])}"
)
def test_paths_and_what_they_teach_keep_their_joint_law(learned):
    """Geweke's test for one component, very many of them side by side."""
    z = geweke_of_paths(narrowed(*learned, 3000))
    # 18 laws of 13 to 23 functionals each: beyond it by chance once in 500 runs of them all.
    assert abs(z).max() < joint.BOUND, z


def geweke_of_paths(law, rounds=8):
    """z of each functional, before and after; see `geweke.geweke`."""
    n, rng = joint.n_paths(law), np.random.default_rng(3)
    law.move(joint.prior_coordinates(law, n, rng))
    H, Z = joint.paths(law.chain, n, N_STEPS, rng, joint.FIRST_LAW)
    Y = rng.poisson(EXPOSURE * H).astype(float)
    before = _functionals(law, H, Y)
    for _ in range(rounds):
        law.chain.draw(H, Z, Y, EXPOSURE, rng, joint.FIRST_LAW)
        law.draw(H, Z, rng)
        Y = rng.poisson(EXPOSURE * H).astype(float)
    moved = _functionals(law, H, Y) - before
    return moved.mean(axis=0) / (moved.std(axis=0) / np.sqrt(n))


def _functionals(law, H, Y):
    """Numbers (n, m) of each component on its own."""
    u = np.log(np.maximum(H, 1e-8))
    found = [u[:, 0], u[:, 1], u[:, -1], u.std(axis=1), np.tanh(u[:, 0] * u[:, 1])]
    found += [np.tanh(u[:, -1] - u[:, -2]), np.log1p(Y[:, 0]), np.log1p(Y.sum(axis=1))]
    for x in law.coordinates.values():
        found += [x, x**2, x * np.tanh(u[:, -1] - u[:, 0]), x * np.tanh(u.std(axis=1))]
        found += [x * np.clip(u[:, -1], -5.0, 5.0)]
    return np.column_stack(found)


@pytest.mark.long
def test_bgar_keeps_its_joint_law_where_little_is_new():
    """BGAR as it is by default, ρ = 0.97: what is new or lost is often below rounding of h."""
    priors = {"alpha": (1.0, 0.3), "rho": (3.5, 0.3)}
    z = geweke_of_paths(narrowed(BGAR("learn", "auto", "learn"), priors, 3000))
    # 18 functionals: beyond it by chance once in 8000 runs.
    assert abs(z).max() < joint.BOUND, z


@pytest.fixture
def narrow_smoothing(monkeypatch):
    """A prior of the smoothing whose draws are not extreme."""
    monkeypatch.setattr(learning, "_WIDE", 0.4)
    monkeypatch.setattr(learning, "SMOOTHING", 0.7)


def all_learned(name, mask, seed):
    """A simulation in which nothing is known."""
    law = narrowed(*LEARNED[name], joint.K)
    parameters = Parameters(law, LearnedSmoothing(0.7, True), LearnedLikelihood(Poisson()))
    return joint.Simulation(parameters, joint.MASKS[mask], seed)


@pytest.mark.long
@pytest.mark.parametrize("mask", ["entries", pytest.param("all", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", joint.NAMES)
@pytest.mark.usefixtures("narrow_smoothing")
def test_sweeps_that_learn_leave_the_joint_law_as_it_is(name, mask):
    """Geweke's test with nothing known."""
    z = joint.geweke(all_learned(name, mask, 0), n_chains=300, rounds=4)
    assert abs(z).max() < joint.BOUND, z


def _prior_dropped(monkeypatch):
    """What is learned is drawn by the likelihood alone."""
    monkeypatch.setattr(Prior, "log_density", lambda prior, x: np.zeros_like(x))


def _jacobian_dropped(monkeypatch):
    """The prior is taken for a density of θ itself, not of its logarithm."""
    right = Prior.log_density
    monkeypatch.setattr(Prior, "log_density", lambda prior, x: right(prior, x) - x)


def _law_twice(monkeypatch):
    """Transitions count twice."""
    right = PathLaw.given_first
    monkeypatch.setattr(PathLaw, "given_first", lambda *given: 2.0 * right(*given))


def _slice_dropped(monkeypatch):
    """Every draw from the first interval is taken, inside the slice or not."""

    def step(rng, log_density, x, width=1.0):
        return x + width * rng.uniform(-1.0, 1.0, size=len(x))

    monkeypatch.setattr(learning, "slice_steps", step)


_MUTATIONS = {
    "prior": (_prior_dropped, "rate"),
    "Jacobian": (_jacobian_dropped, "hier_shape"),
    "transitions": (_law_twice, "gap"),
    "slice": (_slice_dropped, "shape"),
}


@pytest.mark.quick("transitions", "slice")
@pytest.mark.parametrize("mutation", _MUTATIONS)
def test_gewekes_test_finds_a_wrong_step_of_learning(mutation, monkeypatch):
    """Geweke's test for paths notices terms that are broken on purpose, by a wide margin."""
    apply, name = _MUTATIONS[mutation]
    apply(monkeypatch)
    z = geweke_of_paths(narrowed(*LEARNED[name], 3000))
    assert abs(z).max() > 2.0 * joint.BOUND, z


@pytest.mark.long
@pytest.mark.usefixtures("narrow_smoothing")
def test_gewekes_test_finds_a_wrong_smoothing(monkeypatch):
    """The test for sweeps notices if features that were never observed count."""
    right = LearnedSmoothing.draw

    def draw(self, counts, rng):
        right(self, np.vstack([counts, np.zeros((2, counts.shape[1]))]), rng)

    monkeypatch.setattr(LearnedSmoothing, "draw", draw)
    z = joint.geweke(all_learned("rate", "entries", 0), n_chains=600, rounds=4)
    assert abs(z).max() > 2.0 * joint.BOUND, z


def test_priors_are_normal_or_uniform_by_log_odds():
    """Normal in the coordinate, and the log odds of a uniform variable."""
    x = np.linspace(-4.0, 5.0, 7)
    normal, odds = Prior(0.3, 1.7), Prior(2.0, None)
    for prior, law in ((normal, stats.norm(0.3, 1.7)), (odds, stats.logistic())):
        difference = prior.log_density(x) - law.logpdf(x)
        np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_priors_are_centred_at_the_defaults():
    """Centres are defaults; rates are measured in their shapes where both are learned."""
    level = 12.0  # 6 per component

    def priors(chain):
        return {name: tuple(p) for name, p in LearnedChain(chain, level, 2).priors.items()}

    assert priors(Rate("learn", "learn")) == {
        "alpha": (pytest.approx(np.log(150.0)), 2.0), "beta": (pytest.approx(0.0), 0.5)
    }  # fmt: skip
    assert priors(Rate(50.0, "learn")) == {"beta": (pytest.approx(np.log(50.0)), 0.5)}
    assert priors(GaP(3.0, "learn")) == {"beta": (pytest.approx(np.log(3.0 / 6.0)), 2.0)}
    for kind, odds in ((BGAR, 0.97 / 0.03), (ARG, 0.99 / 0.01)):
        assert priors(kind(2.0, 1.0, "learn")) == {"rho": (pytest.approx(np.log(odds)), None)}


@pytest.mark.parametrize(("chain", "names"), [(case[0], case[1]) for case in SOME])
def test_automatic_hyper_parameters_follow_the_learned_ones(chain, names):
    """At any coordinates, the chain is the one that the user would get for these numbers."""
    law = narrowed(chain, names, 3, level=4.0)
    x = joint.prior_coordinates(law, 3, np.random.default_rng(5))
    law.move(x)
    given, values = chain.get_params(), {name: getattr(law.chain, name) for name in law.names}
    by_hand = type(chain)(**{**given, **values}).resolve(12.0, 3, "draw")
    for name, value in by_hand.get_params().items():
        np.testing.assert_allclose(getattr(law.chain, name), value, rtol=1e-12)
    for name, prior in law.priors.items():
        unit = {"beta": "alpha", "beta_z": "alpha_z", "beta_h": "alpha_h"}.get(name)
        value = values[name] / (values[unit] if unit in law.names else 1.0)
        if name == "rho":
            value = value / (1.0 - value)
        np.testing.assert_allclose(np.log(value), x[name], rtol=1e-9)
        assert prior == Prior(*names[name])


@pytest.mark.parametrize("width", [0.2, 1.0, 30.0])
def test_slice_steps_keep_a_law(width):
    """Skewed, two-peaked and heavy-tailed laws: started from them, draws stay there.

    False alarm 1 in 1000 for each of three p-values.
    """
    rng = np.random.default_rng(6)
    n = 3000
    shape = 0.7

    def two(x):
        return np.logaddexp(-0.5 * (x + 2.0) ** 2, -0.5 * ((x - 2.0) / 0.5) ** 2)

    laws = [
        (lambda x: shape * x - np.exp(x), np.log(rng.gamma(shape, size=n)),
         lambda x: stats.gamma(shape).cdf(np.exp(x))),
        (two, np.where(rng.random(n) < 2 / 3, rng.normal(-2.0, 1.0, n), rng.normal(2.0, 0.5, n)),
         lambda x: 2 / 3 * stats.norm.cdf(x + 2.0) + 1 / 3 * stats.norm.cdf(2.0 * x - 4.0)),
        (lambda x: -2.0 * np.log1p(x**2 / 3.0), rng.standard_t(3, size=n), stats.t(3).cdf),
    ]  # fmt: skip
    for density, x, cdf in laws:
        start = x.copy()
        for _ in range(5):
            x = slice_steps(rng, density, x, width)
        assert stats.kstest(x, cdf).pvalue > 1e-3
        assert np.mean(x == start) < 0.01


@pytest.mark.parametrize("width", [0.05, 1.0, 30.0])
def test_a_single_slice_step_is_one_of_several_to_the_bit(width):
    """From everywhere, with an end beyond which there is no density."""

    def log_density(x):
        return np.where(x < 3.0, -0.5 * x**2, -np.inf)

    for seed in range(200):
        one, other = np.random.default_rng(seed), np.random.default_rng(seed)
        start = float(np.random.default_rng([seed, 1]).uniform(-20.0, 3.0))
        found = slice_step(one, lambda x: float(log_density(x)), start, width)
        assert found == slice_steps(other, log_density, np.array([start]), width)[0]
        assert one.random() == other.random()


def test_slice_steps_find_a_law_from_anywhere():
    """A thinned run from far away: independent draws of a skewed law, all unknowns apart."""
    rng, x, kept = np.random.default_rng(7), np.array([20.0, -30.0]), []
    rates = np.array([0.5, 3.0])

    def density(x):
        return 2.0 * x - rates * np.exp(x)

    for i in range(6000):
        x = slice_steps(rng, density, x)
        if i >= 100 and i % 10 == 0:
            kept.append(x)
    for found, rate in zip(np.exp(kept).T, rates, strict=True):
        assert stats.kstest(found, stats.gamma(2.0, scale=1.0 / rate).cdf).pvalue > 1e-3


def test_slice_steps_stay_where_nothing_else_is_possible():
    """A law that is nowhere else, and one that is not a number beyond a border."""
    rng, x = np.random.default_rng(8), np.array([1.0, 2.0])
    stuck = slice_steps(rng, lambda at: np.where(at == [1.0, 2.0], 0.0, -np.inf), x)
    np.testing.assert_array_equal(stuck, x)
    for _ in range(200):
        x = slice_steps(rng, lambda at: np.where(at > 0.0, -at, np.nan), x)
        assert np.all(x > 0.0)


def test_the_density_of_the_smoothing_is_that_of_the_counts_and_the_prior():
    """Its density: Dirichlet-multinomial, one factor per count, and the prior."""
    counts = np.array([[0, 1, 255], [3, 0, 256], [0, 0, 257], [700, 2, 0], [1, 0, 1]], dtype=float)
    seen = []

    def spy(rng, density, x):
        seen.append(density)
        return x + 0.25

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "slice_steps", spy)
        smoothing = LearnedSmoothing(0.4, True)
        smoothing.draw(counts, np.random.default_rng(0))
    assert smoothing.value == pytest.approx(0.4 * np.exp(0.25))

    def oracle(s):
        value = -0.5 * (np.log(s / 0.1) / 2.0) ** 2
        for column in counts.T:
            value += sum(np.log(s + i) for y in column for i in range(int(y)))
            value -= sum(np.log(len(counts) * s + i) for i in range(int(column.sum())))
        return value

    at = np.array([0.003, 0.1, 0.9, 20.0])
    found = [float(seen[0](np.log([s]))[0]) for s in at]
    expected = [oracle(s) for s in at]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)
    priors = [LearnedSmoothing(s, True).log_prior() for s in at]
    np.testing.assert_allclose(priors, -0.5 * (np.log(at / 0.1) / 2.0) ** 2)


@pytest.mark.long
def test_the_smoothing_is_drawn_from_its_law():
    """Given counts: against the same density on a grid. False alarm 1 in 1000."""
    counts = np.array([[0, 4], [3, 0], [0, 0], [9, 2]], dtype=float)
    smoothing, rng, kept = LearnedSmoothing(5.0, True), np.random.default_rng(9), []
    for i in range(6000):
        smoothing.draw(counts, rng)
        if i >= 50 and i % 5 == 0:
            kept.append(smoothing.value)
    x = np.linspace(-12.0, 10.0, 801)
    log_density = stats.norm(np.log(0.1), 2.0).logpdf(x)
    for column in counts.T:
        log_density += np.array(
            [stats.dirichlet_multinomial.logpmf(column, np.full(4, np.exp(at)), int(column.sum()))
             for at in x]
        )  # fmt: skip
    mass = np.cumsum(np.exp(log_density - log_density.max()))
    mass /= mass[-1]
    assert stats.kstest(np.log(kept), lambda at: np.interp(at, x, mass)).pvalue > 1e-3


def test_known_smoothing_and_hyper_parameters_are_not_drawn():
    """Neither a known smoothing nor hyper-parameters that are numbers; and no draw is used up."""
    rng = np.random.default_rng(0)
    smoothing = LearnedSmoothing(0.3, False)
    smoothing.draw(np.ones((3, 2)), rng)
    assert smoothing.value == 0.3
    assert smoothing.log_prior() == 0.0
    law = LearnedChain(Rate(4.0, 4.0), 6.0, 2)
    law.draw(np.ones((2, 3)), np.zeros((2, 2)), rng)
    assert law.coordinates == {}
    assert law.log_prior() == 0.0
    assert rng.random() == np.random.default_rng(0).random()
