"""The posterior of the activations at fixed components: Laplace's approximation on the log scale.

Around the mode û of u = log h, −log p(u | V) is approximated by a quadratic (L1). Its Hessian
couples the components of one step through the data and neighbouring steps through the chain, so in
the order (step, component) it is a band matrix with bandwidth K:

    ∂²/∂u_kn ∂u_ln = h_kn h_ln Σ_f f″(λ_fn) w_fk w_fl + [k=l] h_kn Σ_f f′(λ_fn) w_fk + chain  (L1)

A banded Cholesky factor takes time linear in the number of steps, and so does a draw.

A draw is h = ĥ g/a with g ~ Gamma(a, 1), a = 1/Σ_ii, and the Gaussian dependence between entries
of Σ (L2). Its log has the mode log ĥ and the curvature 1/Σ_ii there, as required, and its mean is
ĥ. For one component with a Gamma prior this is exactly the posterior. A point forecast, which is
linear in the last value, is the mean of the simulated futures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.special import gammaincinv, ndtr

from .._typing import Array
from ..chains.prior import ActivationPrior
from ..data.series import Series, dense
from ..effects.effects import Effects
from ..kernels.banded import band_of_inverse, factor_upper, inverse_in_band, solve_upper
from ..kernels.curvature import add_curvature, add_curvatures, rates, rates_of_steps
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood

# The data terms of (L1) for H and `expected`, see `data_part`.
DataPart = Callable[[Array, bool], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Posterior:
    """Activations of N steps as Gamma variables with mean `activations`, dependent on each other.

    Attributes
    ----------
    activations : array, (N, K)
    factor : array, (K + 1, N·K)
        Banded upper Cholesky factor of the precision of log h, as `scipy.linalg` stores it.
    covariance : array, (N, K, K)
        Covariance of log h within each step.
    """

    activations: Array
    factor: Array
    covariance: Array

    def in_unit(self, unit: float) -> Posterior:
        """Convert activations from a unit."""
        return replace(self, activations=unit * self.activations)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Joint draws of all steps, (n_draws, N, K)."""
        N, K = self.activations.shape
        deviations = solve_upper(self.factor, rng.standard_normal((n_draws, N * K)))
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)
        normal = deviations.reshape(n_draws, N, K) / np.sqrt(variances)
        shapes = 1.0 / variances
        drawn = self.activations * gammaincinv(shapes, ndtr(normal)) / shapes
        return np.maximum(drawn, np.minimum(self.activations, 1.0) * FLOOR)  # positive, always

    def between_steps(self) -> Array:
        """Covariance (N−1, K) of log h of each component between neighbouring steps."""
        N, K = self.activations.shape
        found: Array = inverse_in_band(self.factor)[:-K, K].reshape(N - 1, K)
        return found

    @property
    def last(self) -> Posterior:
        """The last step alone."""
        K = self.activations.shape[1]
        corner = self.factor[:, -K:].copy()
        for offset in range(1, K + 1):  # coupling to the previous step
            corner[K - offset, :offset] = 0.0
        return Posterior(self.activations[-1:], corner, self.covariance[-1:])


def laplace(part_of: DataPart, H: Array, chain: ActivationPrior) -> Posterior:
    """The posterior of activations H (K, N) at fixed components.

    H should be the mode on the log scale. If it is inexact and the Hessian has no Cholesky factor,
    or if neither data nor chain determine some direction, the data terms are replaced by their
    expectation, which is never negative, and a small ridge is added to the diagonal.
    """
    H = np.maximum(H, FLOOR)
    found = _posterior_of(*part_of(H, False), H, chain)
    if found is None:
        blocks, slopes = part_of(H, True)
        tried = (_posterior_of(blocks, np.maximum(slopes, 0.0), H, chain, r) for r in _RIDGES)
        found = next(filter(None, tried), None)
    if found is None:
        raise LinAlgError("The curvature of the posterior is not finite.")
    return found


# Entries whose curvature is computed at a time.
_ENTRIES = 10**6
# Least precision of log h where neither data nor chain determine it: a spread of a factor e^10.
LEAST = 1e-2
# Added to the diagonal besides the least precision, as shares of the largest entry, if rounding
# requires it.
_RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)


def _posterior_of(
    blocks: Array, slopes: Array, H: Array, chain: ActivationPrior, ridge: float | None = None
) -> Posterior | None:
    """The posterior; None if there is no Cholesky factor, or some direction is undetermined."""
    factor = _factor(blocks, slopes, H, chain, ridge)
    if factor is None:
        return None
    covariance = band_of_inverse(factor, len(H))
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    if not np.all((variances > 0.0) & (variances <= 1.01 / LEAST)):
        return None
    return Posterior(np.ascontiguousarray(H.T), factor, covariance)


def data_part(
    series: Series, W: Array, likelihood: Likelihood, H: Array, expected: bool
) -> tuple[Array, Array]:
    """Σ f″ w w′ (N, K, K) and Σ f′ w (K, N), both times the h of (L1)."""
    if not expected and sparse.issparse(series.X) and series.weights.shape[1] == 1:
        return _counts_part(series, W, likelihood, H)
    if isinstance(series.X, np.ndarray):
        return _dense_part(series, W, likelihood, H, expected)
    K, N = H.shape
    W = np.ascontiguousarray(W)
    blocks, slopes = np.zeros((N, K, K)), np.zeros((K, N))
    for n in map(int, np.flatnonzero(series.observed)):
        blocks[n], slopes[:, n] = step_part(series, n, W, likelihood, H[:, n], expected=expected)
    return blocks, slopes


def _dense_part(
    series: Series, W: Array, likelihood: Likelihood, H: Array, expected: bool
) -> tuple[Array, Array]:
    """`data_part` of dense data, many steps at a time."""
    K, N = H.shape
    W, weights = np.ascontiguousarray(W), dense(series.weights)
    blocks, slopes = np.zeros((N, K, K)), np.zeros((N, K))
    observed = np.flatnonzero(series.observed)
    for steps in np.array_split(observed, max(1, len(observed) * len(W) // _ENTRIES)):
        G = series.exposure[steps, None] * H[:, steps].T
        lam = rates_of_steps(W, G)
        weight = np.broadcast_to(weights[steps].astype(float), lam.shape)
        x = np.where(weight > 0.0, series.X[steps].astype(float), 1.0)  # hidden ones may be NaN
        curvature = likelihood.curvature(x, weight, lam, expected=expected)
        part = blocks[steps], slopes[steps]
        add_curvatures(W, curvature, likelihood.slope(x, weight, lam), G, *part)
        blocks[steps], slopes[steps] = part
    return blocks, np.ascontiguousarray(slopes.T)


def of_levels(part: DataPart, effects: Effects | None) -> DataPart:
    """Data terms as functions of levels, which effects turn into activations.

    Derivatives in the logarithm of a level are those in the logarithm of the activation.
    """
    if effects is None:
        return part
    factors = effects.factors
    return lambda H, expected: part(H * factors, expected)


def step_part(
    series: Series, n: int, W: Array, likelihood: Likelihood, h: Array, *, expected: bool
) -> tuple[Array, Array]:
    """The terms of `data_part` for one step: (K, K) and (K,). W is C-ordered."""
    x, weight = series.row(n)
    seen = np.flatnonzero(weight > 0.0)
    h = series.exposure[n] * h
    entries = x[seen].astype(float), weight[seen], rates(W, seen, h)
    block, slope = np.zeros((len(h), len(h))), np.zeros(len(h))
    curvature = likelihood.curvature(*entries, expected=expected)
    add_curvature(W, seen, curvature, likelihood.slope(*entries), h, block, slope)
    return block, slope


def _counts_part(series: Series, W: Array, likelihood: Likelihood, H: Array) -> tuple[Array, Array]:
    """`data_part` of sparse counts: zeros have no curvature, and all the same slope."""
    K, N = H.shape
    W = np.ascontiguousarray(W)
    weights = np.asarray(series.weights[:, 0], dtype=float)
    blocks, slopes = (
        np.zeros((N, K, K)),
        np.multiply.outer(W.sum(axis=0), likelihood.cost * weights),
    )
    exposed = series.exposure * H
    slopes *= exposed
    X = sparse.csr_array(series.X)
    for n in np.flatnonzero(weights).tolist():
        part = slice(*X.indptr[n : n + 2])
        features, counts = X.indices[part], X.data[part]
        weight = np.full(len(counts), weights[n])
        h = np.ascontiguousarray(exposed[:, n])
        lam = rates(W, features, h)
        curvature = likelihood.curvature(counts, weight, lam)
        more = likelihood.slope(counts, weight, lam) - likelihood.cost * weight
        add_curvature(W, features, curvature, more, h, blocks[n], slopes[:, n])
    return blocks, slopes


def _factor(
    blocks: Array, slopes: Array, H: Array, chain: ActivationPrior, ridge: float | None
) -> Array | None:
    """Cholesky factor of (L1), or None if it has none."""
    factor = band_of(blocks, slopes, H, chain)
    if ridge is not None:
        factor[-1] += LEAST + ridge * factor[-1].max()
    return factor if factor_upper(factor) else None


def band_of(blocks: Array, slopes: Array, H: Array, chain: ActivationPrior) -> Array:
    """(L1) as an upper band matrix (K + 1, N·K), as `scipy.linalg` stores it."""
    K, N = H.shape
    band = np.zeros((K + 1, N, K))
    for offset in range(K):
        pairs = np.arange(offset, K)
        band[K - offset, :, offset:] = blocks[:, pairs - offset, pairs]
    chain.expansion(H, "log").add_to(band, slopes)
    return band.reshape(K + 1, N * K)
