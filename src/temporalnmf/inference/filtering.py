"""The activations of each step given the data up to it, at fixed components.

An extended Kalman filter on the log scale. The prediction of a step (F1) has the mean and the
variance that the chain gives it, as a normal variable log h; the update (F2) is Laplace's
approximation of its posterior given the data of the step, by Fisher scoring: K unknowns per step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from .._typing import Array
from ..chains.base import Chain
from ..data.series import Series
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood
from .laplace import step_part

# Covariance of log h at the first step, and the largest relative variance of a transition, for
# chains whose variance is infinite.
_DIFFUSE, _HEAVIEST = 4.0, 50.0
# Scoring ends when log h moves by less than the first; a step moves it by at most the second.
_CONVERGED, _LONGEST, _MOST_STEPS = 0.01, 2.0, 20
# Added to the diagonal of a matrix that rounding made singular, as a share of its largest entry.
_RIDGE = 1e-12


class Filtered(NamedTuple):
    """Normal approximations of log h, given the data up to each step."""

    means: Array  # (N, K)
    covariances: Array  # (N, K, K)


class Ahead(NamedTuple):
    """Predictions from O states: means of h, and covariances of log h."""

    means: Array  # (steps, O, K)
    covariances: Array  # (steps, O, K, K)


def filtered(
    series: Series, W: Array, likelihood: Likelihood, chain: Chain, h: Array, first: int = 0,
    factors: Array | None = None,
) -> Filtered:  # fmt: skip
    """Filter a series from a step on, at components W (F, K); levels h (K,) are where it starts.

    `factors` (N, K) are those of effects.
    """
    N, K = series.n_steps, W.shape[1]
    W, observed = np.ascontiguousarray(W), series.observed
    means, covariances = np.full((N, K), np.nan), np.full((N, K, K), np.nan)
    mean, covariance = np.log(np.maximum(h, FLOOR)), _DIFFUSE * np.eye(K)
    for n in range(first, N):
        if n > first:
            ahead = predicted(chain, np.exp(mean)[None], covariance[None], 1)
            mean = np.log(np.maximum(ahead.means[0, 0], FLOOR))
            covariance = ahead.covariances[0, 0]
        if observed[n]:
            shift = 0.0 if factors is None else np.log(factors[n])
            mean, covariance = _updated(series, n, W, likelihood, mean + shift, covariance)
            mean = mean - shift
        means[n], covariances[n] = mean, covariance
    return Filtered(means, covariances)


def predicted(chain: Chain, h: Array, covariance: Array, steps: int) -> Ahead:
    """(F1): predictions from states h (O, K) whose logarithms have covariances (O, K, K)."""
    both = chain.moments_ahead(np.stack([h, np.full_like(h, FLOOR)]), steps)
    (means, offsets), variances = np.moveaxis(both[0], 1, 0), both[1][:, 0]
    means = np.where(np.isfinite(means), means, h)
    # The mean is linear in h: its elasticity is one less the share of the constant term.
    elasticity = 1.0 - np.minimum(np.where(np.isfinite(offsets), offsets, 0.0) / means, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        relative = variances / means**2
    relative = np.minimum(np.where(np.isfinite(relative), relative, np.inf), _HEAVIEST)
    spread = elasticity[..., :, None] * elasticity[..., None, :] * covariance
    return Ahead(means, spread + np.log1p(relative)[..., None] * np.eye(h.shape[1]))


def _updated(
    series: Series, n: int, W: Array, likelihood: Likelihood, mean: Array, covariance: Array
) -> tuple[Array, Array]:
    """(F2): mean and covariance of log h after the data of a step."""
    precision, u = np.linalg.inv(covariance), mean.copy()
    for _ in range(_MOST_STEPS):
        information, slope = step_part(series, n, W, likelihood, np.exp(u), expected=True)
        total = precision + information
        target = slope + precision @ (u - mean)
        try:
            move = -np.linalg.solve(total, target)
        except LinAlgError:  # many components of few huge features: rounding hides the precision
            total += _RIDGE * np.abs(total).max() * np.eye(len(u))
            move = -np.linalg.solve(total, target)
        largest = float(np.abs(move).max())
        u += move * min(1.0, _LONGEST / max(largest, _LONGEST))
        if largest < _CONVERGED:
            break
    return u, np.linalg.inv(total)
