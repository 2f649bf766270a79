"""Draws of components and activations together."""

import numpy as np
import pytest
from scipy import sparse, stats

import cases
from temporalnmf.chains import BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.parallel import Workers
from temporalnmf.sampling.conditionals import First
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.sampling.learning import Learned, Smoothing
from temporalnmf.validation import Series

FIRST_LAW = First(2.0, 3.0)
F, K, N, SMOOTHING = 4, 2, 4, 0.7


def started(series, chain, W, H, smoothing, first, seed, workers):
    """A run with hyper-parameters that are known."""
    law, known = Learned(chain, 1.0, W.shape[1]), Smoothing(smoothing, False)
    return Gibbs(series, law, W, H, known, first, seed, workers)


EXPOSURE = np.array([1.5, 1.0, 0.7, 2.0])
# A step and two entries were not observed.
SEEN = np.ones((N, F))
SEEN[2] = 0.0
SEEN[0, 1] = SEEN[3, 3] = 0.0


def joint(chain, rng):
    """Components, activations and counts from the prior and the likelihood."""
    W = rng.dirichlet(np.full(F, SMOOTHING), size=K).T
    h1 = None
    if chain.stationary() is None:
        h1 = rng.gamma(FIRST_LAW.shape, FIRST_LAW.level / FIRST_LAW.shape, size=K)
    H = np.maximum(chain.sample(K, N, rng, h1), 1e-30)
    return W, H, rng.poisson(EXPOSURE * (W @ H)).T.astype(float)


def functionals(W, H, X):
    """Symmetric in the components, since draws may swap them."""
    u = np.log(np.maximum(H, 1e-8))
    v = np.log(np.maximum(W, 1e-8))
    return np.array(
        [
            u.mean(), u[:, 0].mean(), u[:, -1].mean(), u.std(), np.tanh(u[:, 0] @ u[:, 1]),
            v.mean(), v[0].mean(), W.max(), np.sum(W**2), np.tanh((v[0] * u[:, 0]).mean()),
            np.log1p(X.sum()), np.log1p(X[0, 0]), np.log1p(np.abs(W[:, 0] @ W[:, 1])),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    "chain",
    [GaP(2.0, 0.7), Rate(4.0, 4.0), HierRate(6.0, 5.0, 4.0, 4.0), Shape(1.5, 1.5),
     HierShape(1.3, 0.9), BGAR(3.0, 1.2, 0.6)],
    ids=cases.named,
)  # fmt: skip
def test_sweeps_leave_the_joint_law_as_it_is(chain):
    """Geweke's test, a step and some entries missing; many short chains from the joint law."""
    rng = np.random.default_rng(0)
    before, after = [], []
    weights = SEEN
    for _ in range(500):
        W, H, X = joint(chain, rng)
        before.append(functionals(W, H, X * weights))
        gibbs = None
        for _round in range(6):
            series = Series(X, weights, EXPOSURE)
            gibbs_seed = np.random.SeedSequence(int(rng.integers(2**31)))
            now = started(series, chain, W, H, SMOOTHING, FIRST_LAW, gibbs_seed, Workers(1))
            if gibbs is not None:
                now.Z = gibbs.Z
            gibbs = now
            gibbs.sweep()
            W, H = gibbs.W, gibbs.H
            X = rng.poisson(EXPOSURE * (W @ H)).T.astype(float)
        after.append(functionals(W, H, X * weights))
    before, after = np.array(before), np.array(after)
    error = np.sqrt((before.var(axis=0) + after.var(axis=0)) / len(before))
    z = (after.mean(axis=0) - before.mean(axis=0)) / error
    # 13 functionals, six chains: |z| > 4 by chance once in 200 runs.
    assert abs(z).max() < 4.0, z


def test_one_component_has_the_closed_form_posterior():
    """K = 1 with independent steps: Dirichlet and Gamma laws, to Monte-Carlo error."""
    rng = np.random.default_rng(1)
    X = rng.poisson(6.0, size=(N, F)).astype(float)
    series = Series(X, np.ones((N, 1)), EXPOSURE)
    start = np.full((F, 1), 1 / F), np.ones((1, N))
    seed = np.random.SeedSequence(2)
    gibbs = started(series, GaP(2.0, 0.7), *start, SMOOTHING, FIRST_LAW, seed, Workers(1))
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
def test_same_seed_same_draws_for_any_number_of_threads(storage):
    rng = np.random.default_rng(3)
    X = rng.poisson(rng.gamma(0.5, 3.0, size=(30, 900))).astype(float)
    start = rng.dirichlet(np.ones(900), size=3).T, rng.gamma(2.0, 100.0, size=(3, 30))
    found = []
    seen = (rng.random(X.shape) < 0.9).astype(float)
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            series = Series(storage(X), seen, np.ones(30))
            seed = np.random.SeedSequence(4)
            gibbs = started(series, Rate(50.0, 50.0), *start, 0.1, First(0.5, 100.0), seed, workers)
            for _ in range(3):
                gibbs.sweep()
        found.append((gibbs.W, gibbs.H))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][0].sum(axis=0), 1.0)


def test_weights_and_fractions_have_no_law():
    start = np.full((F, 1), 1 / F), np.ones((1, N))
    rest = 0.7, FIRST_LAW, np.random.SeedSequence(0), Workers(1)
    with pytest.raises(ValueError, match="observed or not"):
        started(
            Series(np.ones((N, F)), np.full((N, 1), 0.5), EXPOSURE), GaP(2.0, 0.7), *start, *rest
        )
    with pytest.raises(ValueError, match="whole numbers"):
        started(
            Series(np.full((N, F), 0.5), np.ones((N, 1)), EXPOSURE), GaP(2.0, 0.7), *start, *rest
        )
