"""Errors of predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kl_div

# Not the floor of the solvers: features never seen in training would make the error infinite. The
# published tables use machine epsilon.
_PREDICTION_FLOOR = float(np.finfo(float).eps)
_NOTHING = 1e-300


def kl_error(observed: ArrayLike, predicted: ArrayLike) -> float:
    """Generalised Kullback–Leibler error Σ v log(v/v̂) − v + v̂, with v̂ at least 2.2e-16.

    The KLE of the paper: KLE-S on hidden steps inside the series, KLE-F on the last one.

    Examples
    --------
    >>> kl_error([1.0, 2.0], [1.0, 2.0])
    0.0
    >>> kl_error([0.0], [3.0])
    3.0
    """
    v_hat = np.maximum(np.asarray(predicted, dtype=float), _PREDICTION_FLOOR)
    v = np.asarray(observed, dtype=float)
    # If v/v̂ underflows, v counts as zero.
    return float(np.where(v > _NOTHING * v_hat, kl_div(v, v_hat), v_hat).sum())


def is_error(observed: ArrayLike, predicted: ArrayLike) -> float:
    """Itakura–Saito error Σ v/v̂ − log(v/v̂) − 1 of positive values.

    Examples
    --------
    >>> is_error([1.0, 2.0], [1.0, 2.0])
    0.0
    """
    ratio = np.asarray(observed, dtype=float) / np.asarray(predicted, dtype=float)
    return float(np.sum(ratio - np.log(ratio) - 1.0))
