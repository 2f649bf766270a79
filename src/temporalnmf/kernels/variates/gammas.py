"""Gamma variables with shapes so small that they lie below the smallest double, by logarithms."""

import numpy as np


def log_gamma_draws(
    alpha: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Logarithms of Gamma(α, 1) variables, for any α: they may lie far below the smallest double.

    Gamma(α) is Gamma(α+1) times U^(1/α).
    """
    large = np.log(rng.standard_gamma(alpha + 1.0, size=shape))
    return large - rng.standard_exponential(size=shape) / alpha


def gamma_shares(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gamma variables (S, B), each row divided by its largest; shapes may be tiny or zero."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = log_gamma_draws(shapes, shapes.shape, rng)
    largest = logs.max(axis=1, keepdims=True)
    logs -= np.where(np.isfinite(largest), largest, 0.0)
    return np.exp(logs, out=logs)
