"""The algorithm of `temporalnmf.solvers.mm` as a researcher would write it in plain NumPy.

The baseline of the benchmarks: Poisson counts without gaps, W @ H in full, updates of H
vectorised where neighbours allow it, Newton without a safeguard for Shape, and for BGAR a Python
loop over `numpy.roots` of the paper's polynomials. `largest_rise` checks it against the objective
of the library. Labels such as (R2) are those of docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, ive, polygamma

from temporalnmf.chains.base import Chain, lost_power
from temporalnmf.objective import Problem

SMALLEST = 1e-30
NEWTON_STEPS = 50


def iterate(
    problem: Problem, V: np.ndarray, W: np.ndarray, H: np.ndarray, Z: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One iteration: W (F, K), H (K, N) and the auxiliary variables Z (K, N−1) after it."""
    W = W * ((V / _rates(W, H)) @ H.T) + problem.smoothing
    W /= W.sum(axis=0)
    p = H * (W.T @ (V / _rates(W, H)))
    lost = lost_power(problem.scale)
    for _ in range(problem.chain.sweeps):
        H, Z = UPDATES[problem.chain.name](H, Z, p, problem.chain, lost)
        H = np.maximum(H, SMALLEST)
    return W, H, Z


def largest_rise(
    problem: Problem, V: np.ndarray, W: np.ndarray, H: np.ndarray, iterations: int
) -> float:
    """Largest relative rise of the library's objective in one iteration; negative is descent.

    NaN if an update without a safeguard has failed.
    """
    Z = problem.chain.auxiliary(H, problem.scale)
    history = [problem.objective(W, H, Z)]
    with np.errstate(all="ignore"):
        for _ in range(iterations):
            W, H, Z = iterate(problem, V, W, H, Z)
            history.append(problem.objective(W, H, Z))
    return float(np.max(np.diff(history) / np.abs(history[1:])))


def _rates(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    return np.maximum(W @ H, SMALLEST)


def _none(H, Z, p, chain: Chain, lost: float):
    return p, Z


def _gap(H, Z, p, chain, lost):
    return np.maximum(p + chain.alpha - lost, 0.0) / (1.0 + chain.beta), Z


def _rate(H, Z, p, chain, lost):
    """(R1)–(R3); odd steps, then even ones."""
    H = H.copy()
    p = p.copy()
    p[:, 1:] += chain.alpha - lost
    p[:, :-1] -= chain.alpha
    for parity in (0, 1):
        q, r = np.ones_like(H), np.zeros_like(H)
        q[:, 1:] += chain.beta / H[:, :-1]
        r[:, :-1] += chain.beta * H[:, 1:]
        root = np.sqrt(p**2 + 4.0 * q * r)
        with np.errstate(invalid="ignore"):  # 0/0 in the case that is not taken
            updated = np.where(p >= 0.0, (p + root) / (2.0 * q), 2.0 * r / (root - p))
        H[:, parity::2] = updated[:, parity::2]
    return H, Z


def _hier_rate(H, Z, p, chain, lost):
    """(HR0)–(HR3)"""
    p, q = p.copy(), np.ones_like(H)
    p[:, 1:] += chain.alpha_h - lost
    q[:, 1:] += chain.beta_h * Z
    p[:, :-1] += chain.alpha_z
    q[:, :-1] += chain.beta_z * Z
    H = p / q
    power = chain.alpha_z + chain.alpha_h - lost
    return H, power / (chain.beta_z * H[:, :-1] + chain.beta_h * H[:, 1:])


def _shape(H, Z, p, chain, lost):
    """(S), (S3); odd steps, then even ones."""
    H = H.copy()
    alpha, beta = chain.alpha, chain.beta
    for parity in (0, 1):
        P, Q = p.copy(), np.ones_like(H)
        P[:, 1:] += alpha * H[:, :-1] - lost
        Q[:, 1:] += beta
        closed = np.maximum(P[:, -1] / Q[:, -1], SMALLEST)
        Q[:, :-1] -= alpha * np.log(beta * H[:, 1:])
        h = H[:, :-1][:, parity::2]
        P, Q = P[:, :-1][:, parity::2], Q[:, :-1][:, parity::2]
        for _ in range(NEWTON_STEPS):
            slope = Q - P / h + alpha * digamma(alpha * h)
            curvature = P / h**2 + alpha**2 * polygamma(1, alpha * h)
            moved = h - slope / curvature
            moved = np.where(moved > 0.0, moved, 0.1 * h)
            settled = np.all(np.abs(moved - h) <= 1e-8 * h)
            h = moved
            if settled:
                break
        H[:, :-1][:, parity::2] = h
        if (H.shape[1] - 1) % 2 == parity:
            H[:, -1] = closed
    return H, Z


def _hier_shape(H, Z, p, chain, lost):
    """(HS0), (HS1)"""
    return _poisson_gamma(p.copy(), np.ones_like(H), Z, chain.alpha, chain.beta, 1.0, lost)


def _arg(H, Z, p, chain, lost):
    """(A0)–(A3)"""
    p, q = p.copy(), np.ones_like(H)
    p[:, 0] += chain.alpha - lost
    q[:, 0] += chain.beta
    return _poisson_gamma(p, q, Z, chain.alpha, chain.beta / (1.0 - chain.rho), chain.rho, lost)


def _poisson_gamma(p, q, Z, alpha, tau, rho, lost):
    p[:, 1:] += alpha - lost + Z
    q[:, 1:] += tau
    p[:, :-1] += Z
    q[:, :-1] += tau * rho
    H = p / q
    x = 2.0 * tau * np.sqrt(rho * H[:, :-1] * H[:, 1:])
    return H, 0.5 * x * ive(alpha, x) / ive(alpha - 1.0, x)


def _bgar(H, Z, p, chain, lost):
    """(B1)–(B4), from left to right."""
    H, Z = H.copy(), Z.copy()
    alpha, beta = chain.alpha, chain.beta
    eta, gamma = alpha * chain.rho - lost, alpha * (1.0 - chain.rho) - lost
    last = H.shape[1] - 1
    for h, b, power in zip(H, Z, p, strict=True):
        for n in range(last + 1):
            v = power[n]
            c = b[n - 1] * h[n - 1] if n > 0 else 0.0
            d = h[n + 1] / b[n] if n < last else np.inf
            Q = 1.0 + beta * (1.0 - b[n]) if n < last else 1.0 + beta
            if n == 0:
                v += alpha - lost
                polynomial = [-Q, v + Q * d + gamma, -v * d]
            elif n < last:
                ends = c + d
                polynomial = [
                    -Q,
                    v + Q * ends + 2.0 * gamma,
                    -v * ends - Q * c * d - gamma * ends,
                    v * c * d,
                ]
            else:
                polynomial = [Q, -(v + Q * c + gamma), v * c]
            h[n] = _root_between(polynomial, c, d, h[n])
        for n in range(1, last + 1):
            x, rate = h[n] / h[n - 1], beta * h[n - 1]
            polynomial = [
                -rate,
                rate * (1.0 + x) - eta - 2.0 * gamma,
                (eta + gamma) * (1.0 + x) - rate * x,
                -eta * x,
            ]
            b[n - 1] = _root_between(polynomial, 0.0, min(1.0, x), b[n - 1])
    return H, Z


def _root_between(polynomial: list[float], low: float, high: float, otherwise: float) -> float:
    """There is exactly one root; if rounding moves it out of the interval, keep the old value."""
    roots = np.roots(polynomial)
    roots = roots[np.isreal(roots)].real
    inside = roots[(roots > low) & (roots < high)]
    return inside[0] if len(inside) else otherwise


UPDATES: dict[str, Callable] = {
    "none": _none,
    "gap": _gap,
    "rate": _rate,
    "hier_rate": _hier_rate,
    "shape": _shape,
    "hier_shape": _hier_shape,
    "bgar": _bgar,
    "arg": _arg,
}
