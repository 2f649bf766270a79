"""Posterior draws with effects: whether they are from the posterior."""

import numpy as np
import pytest
from scipy import stats

import geweke as joint
from cases import FEW
from temporalnmf.chains import GaP, Rate
from temporalnmf.chains.base import Chain
from temporalnmf.data.series import Series
from temporalnmf.effects import Season
from temporalnmf.effects.design import Design
from temporalnmf.effects.effects import Effects
from temporalnmf.likelihoods import NegativeBinomial
from temporalnmf.runtime.states import StateError
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling import effects as drawn
from temporalnmf.sampling import gibbs as sampler
from temporalnmf.sampling.effects import GivenActivations, GivenCounts, LearnedEffects
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.timeline.clock import Clock
from temporalnmf.timeline.spacing import AS_GIVEN
from test_gibbs import geweke_of_sharing
from test_posterior_laws import LEAST, calibrated, means_of_run

# Six steps, so that a cycle of three recurs. A step is missing, and so are entries.
N = 6
SEEN = np.ones((N, joint.F))
SEEN[2] = SEEN[0, 1] = SEEN[4, 3] = 0.0
SEEN[:, 2] = 0.0
LAWS = {"poisson": None, "given": NegativeBinomial(1.5), "learned": NegativeBinomial()}


def effects(n_components=joint.K, strengths=("learn", 1.0), n_steps=N):
    """A season of three steps, of two columns, and a term whose column does not add up to zero."""
    clock = Clock(np.arange(n_steps), AS_GIVEN)
    seasons = [Season(p, strength=s) for p, s in zip((3, 2), strengths, strict=False)]
    design = Design.of([season.resolve(clock) for season in seasons], clock)
    assert design is not None
    design.columns[:, 2:] = np.linspace(0.0, 1.5, n_steps)[:, None]
    return LearnedEffects(Effects.start(design, n_components))


def simulation(name, law="poisson", seed=0):
    known = joint.known_parameters(
        joint.SETTINGS[name], joint.SMOOTHING, joint.K, likelihood=LAWS[law], effects=effects()
    )
    return joint.Simulation(known, SEEN, seed)


# Ways to break a sweep.


def _exposures_without_factors(patch):
    """Levels are drawn as if they were activations."""
    right = Chain.draw

    def draw(chain, H, Z, Y, q, rng, first, *, held):
        seen = np.where(SEEN.any(axis=1), np.resize(joint.EXPOSURE, N), 0.0)
        right(chain, H, Z, Y, seen if np.ndim(q) == 2 else q, rng, first, held=held)

    patch.setattr(Chain, "draw", draw)


def _parts_of_levels(patch):
    """Counts are split, and missing ones drawn, with levels in place of activations."""
    patch.setattr(
        Gibbs, "_allocate", lambda run: run.allocate(run.H, run.parameters.likelihood.value)
    )


def _expectations(change):
    """Other expectations of the parts of counts, for the coefficients."""

    def apply(patch):
        right = LearnedEffects.draw

        def draw(effects, counts, expected, rng):
            right(effects, counts, change(expected), rng)

        patch.setattr(LearnedEffects, "draw", draw)

    return apply


def _value_off(kind, term):
    """A term more in the log density of a step."""

    def apply(patch):
        right = kind.value
        patch.setattr(kind, "value", lambda target, b: right(target, b) + term(target, b))

    return apply


def _prior_of_strengths(patch):
    patch.setattr(Season, "usual", 0.15)


def _sharing_of_levels(patch):
    """Components share as if all factors were equal."""
    right = sampler.share
    patch.setattr(sampler, "share", lambda *args: right(*args[:-1], None))


BREAKS = {
    "exposures without factors": (_exposures_without_factors, "hier_shape", "poisson"),
    "parts of levels": (_parts_of_levels, "rate", "given"),
    "counts for clumps": (_expectations(lambda mean: mean / LAWS["given"].cost), "gap", "given"),
    "prior of coefficients": (
        _value_off(GivenCounts, lambda t, b: 0.5 * b**2 @ t.precisions), "shape", "poisson",
    ),
    "volume": (
        _value_off(GivenActivations, lambda t, b: (b @ t.columns.T).sum(axis=1)), "gap", "poisson",
    ),
    "prior given activations": (
        _value_off(GivenActivations, lambda t, b: 0.5 * b**2 @ t.precisions), "gap", "poisson",
    ),
    "strengths": (_prior_of_strengths, "gap", "poisson"),
}  # fmt: skip


# Geweke's test: eighteen cases of up to 24 functionals; |z| beyond 4.5 by chance once in 340 runs
# of them all.


@pytest.mark.quick("rate-poisson", "gap-learned")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", joint.NAMES)
def test_sweeps_leave_the_joint_law_as_it_is(name, law):
    """With a missing step, missing entries, and a feature that was never observed."""
    z = joint.geweke(simulation(name, law), n_chains=400, rounds=5)
    assert abs(z).max() < joint.BOUND, z


@pytest.mark.long
@pytest.mark.parametrize("case", BREAKS)
def test_gewekes_test_finds_a_wrong_conditional(case, monkeypatch):
    breaks, name, law = BREAKS[case]
    breaks(monkeypatch)
    z = joint.geweke(simulation(name, law), n_chains=800, rounds=5)
    assert abs(z).max() > 1.5 * joint.BOUND, z


@pytest.mark.long
@pytest.mark.parametrize("name", ["rate", "bgar"])
def test_sharing_keeps_rates_and_the_prior(name):
    """Rates of levels times factors."""
    z = geweke_of_sharing(name, simulation=simulation(name))
    assert abs(z).max() < joint.BOUND, z


def test_sharing_of_levels_would_change_rates(monkeypatch):
    _sharing_of_levels(monkeypatch)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        geweke_of_sharing("rate", simulation=simulation("rate"), n_chains=20)


# Simulation-based calibration: 14 p-values, one below 1e-4 by chance once in 700 runs.


def _ranked(run):
    """Strength, coefficients by symmetric functions, activations and levels."""
    effects = run.parameters.effects.value
    b, G = effects.coefficients, run.activations
    rates = run.W @ G
    return [
        effects.strengths[0], np.sum(b[:, :2] ** 2), b[:, 0].sum(), b[:, 2].sum(),
        rates[0, 0], G[:, 2].sum(), run.H[:, -1].sum(),
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("law", ["given", "learned"])
def test_ranks_of_the_truth_among_draws_are_uniform(law):
    found = calibrated(simulation("rate", law, 1), 128, 25, 6, _ranked)
    assert found.min() > LEAST, found


@pytest.mark.long
def test_ranks_find_a_prior_that_is_forgotten(monkeypatch):
    _value_off(GivenCounts, lambda t, b: 0.5 * b**2 @ t.precisions)(monkeypatch)
    found = calibrated(simulation("rate", "given", 1), 128, 25, 6, _ranked)
    assert found.min() < 0.1 * LEAST, found


# Quadrature: one component, four independent steps, a season of two steps.

COUNTS = np.array([[7.0, 2.0], [1.0, 1.0], [0.0, 0.0], [3.0, 0.0]])
EXPOSURE = np.array([1.5, 1.0, 1.0, 0.7])  # the third step was not observed
GAP = GaP(3.0, 0.9)


def _numbers(b, log_s, h1, h3):
    return np.array([b, b**2, np.exp(b), log_s, log_s**2, h1, h3, h1 * b])


def by_quadrature(n):
    """Posterior means on a grid of b and log σ; given b, levels are Gamma variables."""
    b, log_s = np.linspace(-9.0, 9.0, 8 * n + 1)[:, None], np.linspace(-5.0, 9.0, n)
    s = np.exp(log_s)
    log_mass = stats.invgamma.logpdf(s**2, 0.5, scale=0.5 * 0.1**2) + 2.0 * log_s
    log_mass = log_mass + stats.norm.logpdf(b, scale=s)
    y, levels = COUNTS.sum(axis=1), []
    for n, e in enumerate(np.where(y > 0.0, EXPOSURE, 0.0)):
        rate = e * np.exp(b if n % 2 == 0 else -b)
        log_mass = log_mass + y[n] * np.log(np.maximum(rate, 1e-300)) * (y[n] > 0.0)
        log_mass = log_mass - (GAP.alpha + y[n]) * np.log(GAP.beta + rate)
        levels.append((GAP.alpha + y[n]) / (GAP.beta + rate) + 0.0 * s)
    mass = np.exp(log_mass - log_mass.max())
    found = _numbers(b + 0.0 * s, log_s + 0.0 * b, levels[0], levels[2])
    return (found * mass).sum(axis=(1, 2)) / mass.sum()


def of_draws(n_sweeps):
    """Means of draws, and their standard errors."""
    seen = (COUNTS.sum(axis=1) > 0.0).astype(float)[:, None]
    clock = Clock(np.arange(4), AS_GIVEN)
    design = Design.of([Season(2).resolve(clock)], clock)
    of_season = LearnedEffects(Effects.start(design, 1))
    run = Gibbs(
        Series(COUNTS, seen, EXPOSURE),
        joint.known_parameters(GAP, 0.7, 1, effects=of_season),
        np.full((2, 1), 0.5),
        np.ones((1, 4)),
        joint.FIRST_LAW,
        np.random.SeedSequence(3),
        Threads(1),
    )

    def numbers(run):
        effects = run.parameters.effects.value
        return _numbers(
            effects.coefficients[0, 0], np.log(effects.strengths[0]), run.H[0, 0], run.H[0, 2]
        )

    return means_of_run(run, numbers, n_sweeps)


@pytest.mark.quick("1200")
@pytest.mark.parametrize("n_sweeps", [1200, 40000], ids=str)
def test_draws_have_the_means_and_variances_of_quadrature(n_sweeps):
    """Eight means, errors from 40 batches: |t| > 6 by chance once in 200,000 runs."""
    expected = by_quadrature(400)
    np.testing.assert_allclose(by_quadrature(200), expected, rtol=1e-3, atol=1e-4)
    found, error = of_draws(n_sweeps)
    assert np.all(abs(found - expected) < 6.0 * error), (found - expected) / error


@pytest.mark.long
@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(_expectations(lambda mean: mean * np.array([1.5, 1, 1, 1])), id="exposure"),
        pytest.param(_value_off(GivenActivations, lambda t, b: t.columns[0] @ b.T), id="volume"),
        pytest.param(_prior_of_strengths, id="prior of strengths"),
    ],
)
def test_quadrature_finds_a_wrong_conditional(breaks, monkeypatch):
    expected = by_quadrature(400)
    breaks(monkeypatch)
    found, error = of_draws(40_000)
    assert np.any(abs(found - expected) > 9.0 * error), (found - expected) / error


# Steps of the coefficients.


def _targets(name="rate", n_steps=120, counts=200.0, seed=0):
    """Both densities of the coefficients of two components, with a week's season."""
    rng, chain = np.random.default_rng(seed), joint.SETTINGS[name]
    clock = Clock(np.arange(n_steps), AS_GIVEN)
    X = Season(7).resolve(clock).columns(clock)
    b = rng.normal(scale=0.2, size=(2, X.shape[1]))
    H, Z = rng.gamma(4.0, 0.25, size=(2, n_steps)), np.zeros((2, n_steps - 1))
    G, prior = H * np.exp(b @ X.T), np.full(X.shape[1], 20.0)
    given_counts = GivenCounts(X, prior, rng.poisson(counts * G).astype(float), counts * H)
    return b, [given_counts, GivenActivations(X, prior, G, Z, chain, joint.FIRST_LAW)]


@pytest.mark.parametrize("name", ["rate", "hier_rate", "shape", "hier_shape"])
def test_slopes_and_curvatures_are_those_of_the_densities(name):
    b, targets = _targets(name)
    for target in targets:
        slope, bend = target.expand(b)
        for j in range(b.shape[1]):
            step = np.zeros_like(b)
            step[:, j] = 1e-4
            up, down = target.value(b + step), target.value(b - step)
            np.testing.assert_allclose(slope[:, j], (up - down) / 2e-4, rtol=1e-4, atol=1e-3)
            if name in ("rate", "hier_rate"):  # elsewhere it is raised to be positive
                second = (2.0 * target.value(b) - up - down) / 1e-8
                np.testing.assert_allclose(bend[:, j, j], second, rtol=0.02)


def test_most_proposals_are_accepted():
    b, targets = _targets()
    for target in targets:
        rng, moves = np.random.default_rng(1), []
        for _ in range(100):
            b, moved = drawn.independence_step(target, b, rng)
            moves.append(moved.mean())
        assert np.mean(moves) > 0.8


def test_levels_and_coefficients_move_together_where_counts_are_large():
    """Given such counts and levels, coefficients are nearly known: alone they would not move."""
    rng, chain = np.random.default_rng(0), Rate(20.0, 20.0)
    season, counts = effects(1, ("learn",), 60), 1e6
    H, Z = joint.paths(chain, 1, 60, rng, joint.FIRST_LAW)
    H *= counts / H.mean()
    found = []
    for _ in range(200):
        G = H * season.value.factors
        season.draw(rng.poisson(G).astype(float), H, rng)
        G = H * season.value.factors
        season.interweave(H, Z, chain, joint.FIRST_LAW, rng)
        np.testing.assert_allclose(H * season.value.factors, G)
        found.append(season.value.coefficients[0, 0])
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.5


def test_steps_at_the_floor_are_not_moved():
    """There a path has a probability, not a density."""
    _, (_, target) = _targets()
    target.activations[0, 5] = 0.0
    b = np.zeros((2, 6))
    with np.errstate(all="raise"):
        new, moved = drawn.independence_step(target, b, np.random.default_rng(0))
    assert not moved[0]
    np.testing.assert_array_equal(new[0], 0.0)


def test_states_that_are_not_of_such_effects_are_refused():
    season = effects()
    b, s = season.value.coefficients, season.value.strengths
    with pytest.raises(StateError, match="other strengths"):
        season.move(b, s + 0.1)
    with pytest.raises(StateError, match="out of range"):
        season.move(b + 200.0, s)


# Without effects.


@pytest.mark.parametrize(
    ("name", "last"), [("rate", [4.38000270, 5.88787093]), ("bgar", [1.13399790, 3.66046494])]
)
def test_draws_without_effects_are_those_of_before(name, last):
    """Recorded before there were effects; another random number would change them altogether."""
    run = simulation_without(name)
    for _ in range(4):
        run.sweep()
    np.testing.assert_allclose(run.H[:, -1], last, rtol=1e-6)


def simulation_without(name):
    known = joint.known_parameters(
        joint.SETTINGS[name], joint.SMOOTHING, FEW, likelihood=NegativeBinomial()
    )
    found = joint.Simulation(known, joint.MASKS["entries"], 0)
    found.draw_prior()
    found.draw_data()
    return found.run
