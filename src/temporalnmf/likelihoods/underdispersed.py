"""Counts that vary less than Poisson counts, for intervals; no fit uses it."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._typing import Array
from .poisson import Poisson

# NumPy draws from fewer.
_MOST_TRIALS = 1_000_000_000


class Underdispersed(Poisson):
    """Binomial counts with mean λ and variance (1 − p) λ: schedules, quotas, shifts.

    The number of trials is λ/p, rounded up with the probability that leaves the mean unchanged.
    Its rounding adds at most p²/4 to the variance.

    Parameters
    ----------
    missing : float
        p, 0 < p < 1: the share of a Poisson count's variance that is missing.
    """

    def __init__(self, missing: float) -> None:
        self.missing = missing

    def log_density(self, v: Array, lam: Array) -> Array:
        trials = np.asarray(lam) / self.missing
        fewer, rest = np.floor(trials), trials - np.floor(trials)
        found = (1.0 - rest) * stats.binom.pmf(v, fewer, self.missing)
        found = found + rest * stats.binom.pmf(v, fewer + 1.0, self.missing)
        with np.errstate(divide="ignore"):  # counts above the number of trials
            return np.asarray(np.log(found))

    def sample(self, lam: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(self._trials(lam, rng), self.missing).astype(float)

    def split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        """Hypergeometric draws: every count is a trial that was successful."""
        shares = rates / rates.sum(axis=1, keepdims=True)
        trials = self._trials(counts[:, None] * shares, rng)
        found = np.empty(rates.shape)
        for row, (n, count) in enumerate(zip(trials, counts.astype(int).tolist(), strict=True)):
            if (missing := count - int(n.sum())) > 0:  # by rounding
                n = n + rng.multinomial(missing, shares[row])
            if n.sum() < _MOST_TRIALS:
                found[row] = rng.multivariate_hypergeometric(n, count, method="marginals")
            else:  # the noise of such parts is negligible
                found[row] = rng.multinomial(count, shares[row])
        return found

    def _trials(self, lam: Array, rng: np.random.Generator) -> Array:
        trials = np.asarray(lam) / self.missing
        return np.floor(trials + rng.random(trials.shape)).astype(np.int64)
