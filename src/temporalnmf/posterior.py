"""How sure the activations are, given the components: Laplace's approximation on the log scale.

Around the mode û of u = log h, −log p(u | V) is taken as a quadratic (L1). Its Hessian couples the
components of one step through the data and neighbouring steps through the chain, so in the order
(step, component) it is a band of K numbers beside the diagonal:

    ∂²/∂u_kn ∂u_ln = h_kn h_ln Σ_f f″(λ_fn) w_fk w_fl + [k=l] h_kn Σ_f f′(λ_fn) w_fk + chain  (L1)

A banded Cholesky factor takes time linear in the number of steps, and so does a draw.

A draw is h = ĥ g/a with g ~ Gamma(a, 1), a = 1/Σ_ii, and the Gaussian dependence between entries
that Σ says (L2). Its log has the mode log ĥ and the curvature 1/Σ_ii there, as asked for, and its
mean is ĥ. For one component with a Gamma prior this is the posterior itself, to the letter. And a
point forecast, which is linear in the last value, is the mean of the simulated law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky_banded
from scipy.special import gammaincinv, ndtr
from threadpoolctl import threadpool_limits

from .chains.base import Chain
from .kernels.banded import band_of_inverse, solve_upper
from .kernels.curvature import add_curvature, rates
from .kernels.floor import FLOOR
from .likelihoods.base import Array, Likelihood
from .validation import Series


@dataclass(frozen=True, eq=False)
class Posterior:
    """Activations of N steps as Gamma variables with mean `activations`, dependent on each other.

    Attributes
    ----------
    activations : array, (N, K)
    factor : array, (K + 1, N·K)
        Banded upper Cholesky factor of the precision of log h, as `scipy.linalg` stores it.
    covariance : array, (N, K, K)
        Of log h within each step.
    """

    activations: Array
    factor: Array
    covariance: Array

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Joint draws of all steps, (n_draws, N, K)."""
        N, K = self.activations.shape
        deviations = solve_upper(self.factor, rng.standard_normal((n_draws, N * K)))
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)
        normal = deviations.reshape(n_draws, N, K) / np.sqrt(variances)
        shapes = 1.0 / variances
        return np.maximum(self.activations * gammaincinv(shapes, ndtr(normal)) / shapes, FLOOR)

    @property
    def last(self) -> Posterior:
        """The last step alone."""
        K = self.activations.shape[1]
        corner = self.factor[:, -K:].copy()
        for offset in range(1, K + 1):  # what couples it to the step before
            corner[K - offset, :offset] = 0.0
        return Posterior(self.activations[-1:], corner, self.covariance[-1:])


def laplace(series: Series, W: Array, H: Array, chain: Chain, likelihood: Likelihood) -> Posterior:
    """The posterior of activations H (K, N) of the steps of a series, at fixed components W (F, K).

    H should be the mode on the log scale. Where it is not quite one and the Hessian has no Cholesky
    factor, the data's part is replaced by its expectation, which is never negative.
    """

    def part_of(H: Array, expected: bool) -> tuple[Array, Array]:
        return data_part(series, W, H, likelihood, expected)

    return laplace_of(part_of, H, chain)


def laplace_of(
    part_of: Callable[[Array, bool], tuple[Array, Array]], H: Array, chain: Chain
) -> Posterior:
    """The same from the data's part, as `data_part` makes it, for H and `expected`."""
    H = np.maximum(H, FLOOR)
    try:
        factor = _factor(*part_of(H, False), H, chain)
    except LinAlgError:
        blocks, slopes = part_of(H, True)
        factor = _factor(blocks, np.maximum(slopes, 0.0), H, chain, ridge=_RIDGE)
    covariance = band_of_inverse(factor, len(H))
    return Posterior(np.ascontiguousarray(H.T), factor, covariance)


# Precision of log h where neither data nor chain say anything: a spread of a factor e^10.
_RIDGE = 1e-2


def data_part(
    series: Series, W: Array, H: Array, likelihood: Likelihood, expected: bool
) -> tuple[Array, Array]:
    """Σ f″ w w′ (N, K, K) and Σ f′ w (K, N), both times the h of (L1)."""
    if not expected and sparse.issparse(series.X) and series.weights.shape[1] == 1:
        return _counts_part(series, W, H)
    K, N = H.shape
    W = np.ascontiguousarray(W)
    blocks, slopes = np.zeros((N, K, K)), np.zeros((K, N))
    for n in map(int, np.flatnonzero(series.observed)):
        x, weight = series.row(n)
        seen = np.flatnonzero(weight > 0.0)
        h = np.ascontiguousarray(H[:, n])
        entries = x[seen].astype(float), weight[seen], float(series.exposure[n]), rates(W, seen, h)
        curvature = likelihood.curvature(*entries, expected=expected)
        add_curvature(W, seen, curvature, likelihood.slope(*entries), h, blocks[n], slopes[:, n])
    return blocks, slopes


def _counts_part(series: Series, W: Array, H: Array) -> tuple[Array, Array]:
    """`data_part` of sparse counts: zeros have no curvature, and their slopes are known at once.

    f′ = m (e − v/λ) and f″ = m v/λ².
    """
    K, N = H.shape
    W = np.ascontiguousarray(W)
    weights = np.asarray(series.weights[:, 0], dtype=float)
    blocks, slopes = np.zeros((N, K, K)), np.multiply.outer(W.sum(axis=0), weights)
    slopes *= series.exposure * H
    for n in np.flatnonzero(weights).tolist():
        part = slice(*series.X.indptr[n : n + 2])
        features, counts = series.X.indices[part], weights[n] * series.X.data[part]
        h = np.ascontiguousarray(H[:, n])
        lam = rates(W, features, h)
        add_curvature(W, features, counts / lam**2, -counts / lam, h, blocks[n], slopes[:, n])
    return blocks, slopes


def _factor(blocks: Array, slopes: Array, H: Array, chain: Chain, ridge: float = 0.0) -> Array:
    """Cholesky factor of (L1), which raises LinAlgError where it has none."""
    K, N = H.shape
    expansion = chain.expansion(H, "log")
    band = np.zeros((K + 1, N, K))  # scipy's upper form: band[K + i − j, j] = P[i, j]
    for offset in range(K):
        pairs = np.arange(offset, K)
        band[K - offset, :, offset:] = blocks[:, pairs - offset, pairs]
    band[K] += (slopes + expansion.diagonal).T + ridge
    band[0, 1:] = expansion.off.T
    # For so narrow a band threads only wait for each other: a hundred times longer.
    with threadpool_limits(1, "blas"):
        return cholesky_banded(band.reshape(K + 1, N * K), lower=False)
