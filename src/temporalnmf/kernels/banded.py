"""Banded upper factors U of P = UᵀU, stored as scipy.linalg does: band[b + i − j, j] = U[i, j]."""

import math

import numpy as np

from .dense import compiled


@compiled
def factor_upper(band):
    """Factor a band P in place; return whether it is positive definite.

    LAPACK is a hundred times slower for so narrow a band, since its threads wait for each other;
    their number is global to the process, so concurrent forecasts must not set it.
    """
    b, n = band.shape[0] - 1, band.shape[1]
    for j in range(n):
        first = max(j - b, 0)
        for i in range(first, j + 1):
            total = band[b + i - j, j]
            for k in range(first, i):
                total -= band[b + k - i, i] * band[b + k - j, j]
            if i < j:
                band[b + i - j, j] = total / band[b, i]
            elif total > 0.0:
                band[b, j] = math.sqrt(total)
            else:
                return False
    return True


@compiled
def solve_upper(band, Z):
    """x with U x = z for every row z of Z (S, n), in place: draws with precision P."""
    b, n = band.shape[0] - 1, band.shape[1]
    for s in range(Z.shape[0]):
        x = Z[s]
        for i in range(n - 1, -1, -1):
            total = x[i]
            for j in range(i + 1, min(i + b, n - 1) + 1):
                total -= band[b + i - j, j] * x[j]
            x[i] = total / band[b, i]
    return Z


@compiled
def solve_lower(band, Z):
    """x with Uᵀ x = z for every row z of Z (S, n), in place."""
    b, n = band.shape[0] - 1, band.shape[1]
    for s in range(Z.shape[0]):
        x = Z[s]
        for j in range(n):
            total = x[j]
            for i in range(max(j - b, 0), j):
                total -= band[b + i - j, j] * x[i]
            x[j] = total / band[b, j]
    return Z


@compiled
def inverse_in_band(band):
    """Entries of P⁻¹ within the band: S[i, j − i] = Σ_ij for i ≤ j ≤ i + b.

    Takahashi's recursion, from the last row up:

        Σ_ij = [i = j]/U_ii² − (1/U_ii) Σ_{k>i} U_ik Σ_kj.
    """
    b, n = band.shape[0] - 1, band.shape[1]
    S = np.zeros((n, b + 1))
    for i in range(n - 1, -1, -1):
        end = min(i + b, n - 1)
        for j in range(end, i - 1, -1):
            total = 0.0
            for k in range(i + 1, end + 1):
                total += band[b + i - k, k] * (S[k, j - k] if k <= j else S[j, k - j])
            total = -total / band[b, i]
            if i == j:
                total += 1.0 / band[b, i] ** 2
            S[i, j - i] = total
    return S


def band_of_inverse(band, K):
    """The diagonal blocks (n/K, K, K) of P⁻¹."""
    S = inverse_in_band(band)
    blocks = np.empty((len(S) // K, K, K))
    for offset in range(K):
        pairs = np.arange(offset, K)
        found = S[:, offset].reshape(-1, K)[:, : K - offset]
        blocks[:, pairs - offset, pairs] = blocks[:, pairs, pairs - offset] = found
    return blocks


@compiled
def inverse_of(S):
    """The inverse of a symmetric matrix, and whether it is positive definite.

    LAPACK is not faster for a few hundred rows, see `factor_upper`.
    """
    n = len(S)
    band = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            band[n - 1 + i - j, j] = S[i, j]
    if not factor_upper(band):
        return S, False
    return solve_upper(band, solve_lower(band, np.eye(n))), True
