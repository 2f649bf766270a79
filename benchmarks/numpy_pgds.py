"""A sweep of Poisson-gamma dynamical systems in plain NumPy, to compare ours with per non-zero.

After A. Schein, H. Wallach and M. Zhou (2016), Poisson-gamma dynamical systems, NIPS 29, section 3,
with τ, η and the prior of Π fixed. Written from the paper, in whole arrays where that is possible:

    y_vt ~ Poisson(Σ_k φ_vk θ_kt),    θ_kt ~ Gamma(τ Σ_j π_kj θ_j,t−1, τ),    columns Dirichlet.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse


class PGDS:
    """State and sweep.

    Parameters
    ----------
    Y : sparse array, (V, T)
        Counts.
    Phi, Theta : array, (V, K) and (K, T)
        Where to start.
    seed : int
    """

    def __init__(self, Y: sparse.sparray, Phi: np.ndarray, Theta: np.ndarray, seed: int) -> None:
        Y = Y.tocoo()
        self.v, self.t = Y.coords
        self.counts = Y.data.astype(np.int64)
        self.Phi, self.Theta = Phi.copy(), Theta.copy()
        self.Pi = np.full((len(Theta), len(Theta)), 0.1 / len(Theta)) + 0.9 * np.eye(len(Theta))
        self.tau, self.eta = 1.0, 0.1
        self.rng = np.random.default_rng(seed)

    def sweep(self) -> None:
        of_features, of_steps = self.allocate()
        self.Phi = self._dirichlet(self.eta + of_features)
        self._draw_states(of_steps)

    def allocate(self) -> tuple[np.ndarray, np.ndarray]:
        """Split every count over the components; sums (V, K) and (K, T)."""
        K = len(self.Theta)
        rates = self.Phi[self.v] * self.Theta.T[self.t]
        rates /= rates.sum(axis=1, keepdims=True)
        parts = self.rng.multinomial(self.counts, rates)
        of_features, of_steps = np.empty((len(self.Phi), K)), np.empty(self.Theta.shape)
        for k in range(K):
            of_features[:, k] = np.bincount(self.v, parts[:, k], minlength=len(self.Phi))
            of_steps[k] = np.bincount(self.t, parts[:, k], minlength=self.Theta.shape[1])
        return of_features, of_steps

    def _draw_states(self, y: np.ndarray) -> None:
        """Backwards tables l of Chinese restaurants, forwards θ, then transitions Π."""
        (K, T), rng, tau = y.shape, self.rng, self.tau
        zeta = np.zeros(T + 1)
        arriving = np.zeros((K, T + 1))  # l_·k: tables that steps to come ask of step t
        of_transitions = np.zeros((K, K))
        for t in range(T - 1, 0, -1):
            zeta[t] = np.log1p(1.0 / tau + zeta[t + 1])
            shares = self.Pi * self.Theta[:, t - 1]
            for k in range(K):
                customers = int(y[k, t] + arriving[k, t + 1])
                r = tau * shares[k].sum()
                tables = np.sum(rng.random(customers) * (r + np.arange(customers)) < r)
                split = rng.multinomial(tables, shares[k] / shares[k].sum())
                of_transitions[k] += split
                arriving[:, t] += split
        shape = np.full(K, tau / K)
        for t in range(T):
            if t > 0:
                shape = tau * self.Pi @ self.Theta[:, t - 1]
            shape = shape + y[:, t] + arriving[:, t + 1]
            self.Theta[:, t] = rng.gamma(shape) / (tau + 1.0 + tau * zeta[t + 1])
            np.maximum(self.Theta[:, t], 1e-12, out=self.Theta[:, t])
        self.Pi = self._dirichlet(1.0 / K + of_transitions)

    def _dirichlet(self, pseudo_counts: np.ndarray) -> np.ndarray:
        """Columns."""
        found = np.maximum(self.rng.standard_gamma(pseudo_counts), 1e-300)
        return found / found.sum(axis=0)
