"""The order of components, and how stable they are."""

import numpy as np

from series import LEVELS, PARTS, X, fitted
from temporalnmf import TemporalNMF
from temporalnmf.chains import GaP


def test_components_come_in_the_order_of_their_total_activation():
    for seed in range(6):
        model = TemporalNMF(3, random_state=seed, tol=1e-8, max_iter=4000).fit(X)
        assert (np.diff(model.activations_.sum(axis=0)) <= 0).all(), seed
    starts = np.ones((2, 12)) + PARTS, LEVELS + 1.0
    small_first = fitted(init=(starts[0][::-1], starts[1][:, ::-1]))
    large_first = fitted(init=starts)
    np.testing.assert_allclose(
        small_first.components_[::-1], large_first.components_, rtol=0.05, atol=1e-3
    )


def test_learned_hyper_parameters_move_with_their_components():
    levels = LEVELS * [0.05, 1.0]
    data = np.random.default_rng(3).poisson(levels @ PARTS * 4).astype(float)
    model = fitted(GaP(2.0, beta="learn"), data)
    np.testing.assert_allclose(2.0 / model.chain_.beta, model.activations_.mean(axis=0), rtol=0.02)


def test_stability_tells_a_real_component_from_an_accident():
    """Two components are in the data; the third is noise and differs by start."""
    model = TemporalNMF(3, chain="none", n_init=8, random_state=0, smoothing=0.0).fit(
        np.random.default_rng(4).poisson(20 * np.kron(LEVELS[:, :1] > 60, [1] * 6 + [0] * 6)
                                         + 20 * np.kron(LEVELS[:, :1] <= 60, [0] * 6 + [1] * 6) + 1)
    )  # fmt: skip
    assert model.stability_.shape == (3,)
    assert ((model.stability_ >= 0) & (model.stability_ <= 1)).all()
    assert TemporalNMF(2, random_state=0).fit(X).stability_ is None
    sure = TemporalNMF(1, n_init=3, random_state=0).fit(X)
    np.testing.assert_allclose(sure.stability_, 1.0, atol=1e-4)
    assert model.stability_.min() < 0.95 < sure.stability_.min()


def test_stability_is_the_mean_cosine_of_the_best_matching():
    """Against a search over all matchings."""
    from itertools import permutations

    from temporalnmf.inference.matching import stability
    from temporalnmf.likelihoods import Poisson
    from temporalnmf.observations import observe

    rng = np.random.default_rng(5)
    W, *others = rng.gamma(0.5, size=(4, 9, 3))

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = np.zeros(3)
    for other in others:
        best = max(
            permutations(range(3)),
            key=lambda p: sum(cosine(W[:, k], other[:, p[k]]) for k in range(3)),
        )
        expected += [cosine(W[:, k], other[:, best[k]]) / 3 for k in range(3)]
    hold = observe(np.ones((2, 9)), np.ones((2, 1)), np.ones(2), Poisson()).hold
    found = stability(hold(W), [hold(other) for other in others])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
