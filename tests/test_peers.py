"""Plain KL-NMF against scikit-learn's, and librosa with ours inside."""

import numpy as np
import pytest
from scipy.special import kl_div
from sklearn.decomposition import non_negative_factorization

from series import LEVELS, PARTS
from temporalnmf import TemporalNMF


def _separable(seed):
    """Counts with components that hardly overlap, so that both solvers find the same optimum."""
    rng = np.random.default_rng(seed)
    blocks = np.kron(np.eye(3), np.ones(5)) + 0.05 * rng.random((3, 15))
    H = 1.0 + 100.0 * rng.random((25, 3))
    return rng.poisson(H @ blocks).astype(float)


def _sklearn(X, H, W, max_iter):
    """Divergence after scikit-learn's multiplicative updates from a given start."""
    H, W, _ = non_negative_factorization(
        X, H.copy(), W.copy(), n_components=len(W), init="custom", solver="mu",
        beta_loss="kullback-leibler", max_iter=max_iter, tol=0.0,
    )  # fmt: skip
    return kl_div(X, H @ W).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Of the seeds 0 to 5, those where both end in the same optimum; in 1 and 5 ours is the lower one.
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in (2, 3, 4))])
def test_plain_nmf_ends_in_the_same_optimum_as_scikit_learn(seed):
    X = _separable(seed)
    rng = np.random.default_rng(seed + 100)
    W, H = rng.gamma(2.0, size=(3, 15)), rng.gamma(2.0, 10.0, size=(25, 3))
    ours = TemporalNMF(3, chain="none", smoothing=0.0, init=(W, H), tol=1e-15, max_iter=20_000).fit(
        X
    )
    theirs = _sklearn(X, H, W, max_iter=20_000)
    np.testing.assert_allclose(ours.reconstruction_err_, theirs, rtol=1e-8)

    here = kl_div(X, ours.activations_ @ ours.components_).sum()
    further = _sklearn(X, ours.activations_, ours.components_, max_iter=1)
    assert abs(further - here) < 1e-9 * here


@pytest.mark.long
def test_librosa_decomposes_with_the_estimator():
    import librosa

    power = np.random.default_rng(8).exponential(PARTS.T @ LEVELS.T + 1e-3)
    model = TemporalNMF(2, likelihood="exponential", random_state=0)
    components, activations = librosa.decompose.decompose(power, transformer=model, fit=True)
    assert components.shape == (12, 2)
    assert activations.shape == (2, 40)
    np.testing.assert_array_equal(activations.T, model.activations_)
    np.testing.assert_array_equal(components.T, model.components_)
    sorted_components, _ = librosa.decompose.decompose(power, transformer=model, sort=True)
    assert (np.diff(np.argmax(sorted_components, axis=0)) >= 0).all()
