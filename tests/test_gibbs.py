"""Draws of components and activations together, by Geweke's joint test."""

import numpy as np
import pytest
from scipy import sparse, stats

from geweke import (
    BOUND,
    EXPOSURE,
    FIRST_LAW,
    MASKS,
    NAMES,
    OWN_FIRST_LAW,
    SETTINGS,
    SMOOTHING,
    F,
    N,
    fixed,
    geweke,
    started,
)
from temporalnmf.chains import GaP, Rate
from temporalnmf.chains.base import Chain, First
from temporalnmf.data.series import Series
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling import gibbs as sampler


def test_every_chain_with_a_law_is_tested():
    assert set(SETTINGS) == set(NAMES)
    for name, chain in SETTINGS.items():
        own = chain.stationary()
        assert (own is not None) == (name in OWN_FIRST_LAW)
        if own is not None:
            assert own.mean() == pytest.approx(chain.alpha / chain.beta)
            assert own.var() == pytest.approx(chain.alpha / chain.beta**2)


@pytest.mark.quick("rate-entries")
@pytest.mark.parametrize(
    "mask", [m if m == "entries" else pytest.param(m, marks=pytest.mark.long) for m in MASKS]
)
@pytest.mark.parametrize("name", NAMES)
def test_sweeps_leave_the_joint_law_as_it_is(name, mask):
    """Geweke's test (2004), with known hyper-parameters."""
    z = geweke(fixed(name, mask, 0), n_chains=600, rounds=5)
    assert abs(z).max() < BOUND, z


def _weights_off(monkeypatch):
    """Pseudo-counts of W half as large again."""
    right = sampler.draw_weights

    def draw_weights(*args):
        args = list(args)
        args[5] *= 1.5
        right(*args)

    monkeypatch.setattr(sampler, "draw_weights", draw_weights)


def _activations_off(change):
    """Activations drawn with another exposure, other counts or another first law."""

    def apply(monkeypatch):
        right = Chain.draw

        def draw(chain, H, Z, Y, q, rng, first, *, held):
            right(chain, H, Z, *change(Y, q), rng, first, held=held)

        monkeypatch.setattr(Chain, "draw", draw)

    return apply


def _first_off(monkeypatch):
    """The power that a first activation has of its own law is forgotten."""
    right = Chain.draw

    def draw(chain, H, Z, Y, q, rng, first, *, held):
        wrong = First(0.5 * first.shape, 0.5 * first.level)  # the same rate
        right(chain, H, Z, Y, q, rng, wrong, held=held)

    monkeypatch.setattr(Chain, "draw", draw)


def _unseen_off(monkeypatch):
    """Entries that are missing are taken for zeros."""
    right = sampler.allocate_rows

    def allocate_rows(*args):
        args = list(args)
        args[7] = np.zeros_like(args[7])
        right(*args)

    monkeypatch.setattr(sampler, "allocate_rows", allocate_rows)


_MUTATIONS = {
    "smoothing": (_weights_off, "gap", "all"),
    "exposure of a missing step": (
        _activations_off(lambda Y, q: (Y, np.where(q > 0.0, q, 1.0))), "hier_shape", "steps",
    ),
    "a count too many": (_activations_off(lambda Y, q: (Y + 1.0, q)), "bgar", "all"),
    "first law": (_first_off, "rate", "all"),
    "missing entries": (_unseen_off, "shape", "entries"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "mutation",
    [
        name if name == "smoothing" else pytest.param(name, marks=pytest.mark.long)
        for name in _MUTATIONS
    ],
)
def test_gewekes_test_finds_a_wrong_conditional(mutation, monkeypatch):
    """It notices terms that are broken on purpose, by a wide margin."""
    apply, name, mask = _MUTATIONS[mutation]
    apply(monkeypatch)
    z = geweke(fixed(name, mask, 0), n_chains=600, rounds=5)
    assert abs(z).max() > 2.0 * BOUND, z


def geweke_of_sharing(name, off=0.0, n_chains=250, rounds=8, simulation=None):
    """z of each functional, with nothing but moves that share, from the prior; no data needed."""
    simulation, differences = simulation or fixed(name, "entries", 0), []
    run = simulation.run
    for _ in range(n_chains):
        simulation.draw_prior()
        simulation.draw_data()
        before, rates = simulation.functionals(), run.W @ run.activations
        for _round in range(rounds):
            sampler.share(
                run.W, run.H, run.Z, run.chain, SMOOTHING + off, FIRST_LAW, run.active, run._rng,
                run.factors,
            )  # fmt: skip
        np.testing.assert_allclose(run.W @ run.activations, rates, rtol=1e-6, atol=1e-12)
        differences.append(simulation.functionals() - before)
    differences = np.delete(differences, [10, 11], axis=1)  # the data, which stay
    differences = differences[:, np.ptp(differences, axis=0) > 0.0]  # and the effects
    return np.mean(differences, axis=0) / (np.std(differences, axis=0) / np.sqrt(n_chains))


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [n if n in ("rate", "bgar") else pytest.param(n, marks=pytest.mark.long) for n in NAMES]
)
def test_sharing_keeps_rates_and_the_prior(name):
    """So it keeps every posterior, the likelihood being a function of the rates."""
    z = geweke_of_sharing(name)
    assert abs(z).max() < BOUND, z


@pytest.mark.long
def test_gewekes_test_finds_sharing_with_another_prior():
    assert abs(geweke_of_sharing("gap", off=3.0)).max() > 2.0 * BOUND


def test_one_component_has_the_closed_form_posterior():
    """K = 1 with independent steps: Dirichlet and Gamma laws, to Monte-Carlo error."""
    rng = np.random.default_rng(1)
    X = rng.poisson(6.0, size=(N, F)).astype(float)
    series = Series(X, np.ones((N, 1)), EXPOSURE)
    start = np.full((F, 1), 1 / F), np.ones((1, N))
    seed = np.random.SeedSequence(2)
    gibbs = started(series, GaP(2.0, 0.7), *start, SMOOTHING, FIRST_LAW, seed, Threads(1))
    W, H = [], []
    for _ in range(4000):
        gibbs.sweep()
        W.append(gibbs.W[:, 0].copy())
        H.append(gibbs.H[0].copy())
    # One component gets all counts, so sweeps are independent draws. False alarm: 1 in 1000 each.
    for n in range(N):
        law = stats.gamma(2.0 + X[n].sum(), scale=1.0 / (0.7 + EXPOSURE[n]))
        assert stats.kstest(np.array(H)[:, n], law.cdf).pvalue > 1e-3
    total = SMOOTHING * F + X.sum()
    for f in range(F):
        a = SMOOTHING + X[:, f].sum()
        assert stats.kstest(np.array(W)[:, f], stats.beta(a, total - a).cdf).pvalue > 1e-3


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_sweeps_do_not_depend_on_the_number_of_threads(storage):
    rng = np.random.default_rng(3)
    X = rng.poisson(rng.gamma(0.5, 3.0, size=(30, 900))).astype(float)
    start = rng.dirichlet(np.ones(900), size=3).T, rng.gamma(2.0, 100.0, size=(3, 30))
    found = []
    seen = (rng.random(X.shape) < 0.9).astype(float)
    for n_jobs in (1, 2):
        with Threads(n_jobs) as threads:
            series = Series(storage(X), seen, np.ones(30))
            seed = np.random.SeedSequence(4)
            gibbs = started(series, Rate(50.0, 50.0), *start, 0.1, First(0.5, 100.0), seed, threads)
            for _ in range(3):
                gibbs.sweep()
        found.append((gibbs.W, gibbs.H))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][0].sum(axis=0), 1.0)


def test_draws_refuse_weights_and_fractions():
    start = np.full((F, 1), 1 / F), np.ones((1, N))
    rest = 0.7, FIRST_LAW, np.random.SeedSequence(0), Threads(1)
    with pytest.raises(ValueError, match="observed or not"):
        started(
            Series(np.ones((N, F)), np.full((N, 1), 0.5), EXPOSURE), GaP(2.0, 0.7), *start, *rest
        )
    with pytest.raises(ValueError, match="whole numbers"):
        started(
            Series(np.full((N, F), 0.5), np.ones((N, 1)), EXPOSURE), GaP(2.0, 0.7), *start, *rest
        )
