"""Simulated futures: one draw is one joint path of activations, totals and entries.

Totals, groups and sums over steps are sums of the entries of a draw. Counts are drawn top-down: the
total of a step given its activations, blocks of features given the total, features given their
block. Sums of Poisson counts are Poisson, and sums of Gamma variables with one scale are Gamma, so
the entries are distributed as if drawn independently, and a total has no cost per feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._typing import Array
from ..components import ShardedComponents
from ..likelihoods.base import Likelihood

# Draws of components per copy.
_AT_ONCE = 64
# Approximate size of the samples of a block of features.
_IN_A_BLOCK = 2**21
# Last part of a seed, by purpose; not zero: [seed, step] and [seed, step, 0] are one to NumPy.
_TOTAL, _BLOCKS, _FIRST_BLOCK = 2, 3, 4


@dataclass(frozen=True, eq=False)
class Mixture:
    """Components, which map activations to rates, one block of features at a time."""

    components: Array | ShardedComponents  # (K, F), or M draws of them (M, K, F)
    n_samples: int  # draws of the activations; blocks of features get smaller with it
    which: Array | None = None  # (n_samples,), the draw of the components of each

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of features."""
        F, width = int(self.components.shape[-1]), max(_IN_A_BLOCK // self.n_samples, 1)
        return [slice(at, min(at + width, F)) for at in range(0, F, width)]

    def rates(self, h: Array, columns: slice) -> Array:
        """Rates (S, …) of some features for activations (S, K)."""
        W = self._columns(columns)
        if self.which is None:
            return np.asarray(h @ W)
        found = np.empty((len(h), W.shape[2]))
        for at in range(0, len(h), _AT_ONCE):
            part = slice(at, at + _AT_ONCE)
            np.einsum("sk,skf->sf", h[part], W[self.which[part]], out=found[part])
        return found

    def block_rates(self, h: Array) -> Array:
        """Rates (S, blocks) of whole blocks for activations (S, K)."""
        if self.which is None:
            return np.asarray(h @ self._masses)
        return np.einsum("sk,skb->sb", h, self._masses[self.which])

    @cached_property
    def _masses(self) -> Array:
        """Sums (…, K, blocks) of the components over each block."""
        sums = [np.sum(self._columns(block), axis=-1, dtype=float) for block in self.blocks]
        return np.stack(sums, axis=-1)

    def _columns(self, columns: slice) -> Any:
        W = self.components
        return W[:, columns] if W.ndim == 2 else W[:, :, columns]


@dataclass(frozen=True, eq=False)
class Futures:
    """S draws of T steps."""

    activations: Array  # (S, T, K)
    exposure: Array  # (T,)
    mixture: Mixture
    likelihood: Likelihood
    streams: Array  # (T, 2), seeds of the steps: draws of a step do not depend on the others

    def __len__(self) -> int:
        return len(self.activations)

    def at(self, steps: Array) -> Futures:
        """Some of the steps only."""
        return replace(
            self,
            activations=self.activations[:, steps],
            exposure=self.exposure[steps],
            streams=self.streams[steps],
        )

    def rates(self, t: int, columns: slice) -> Array:
        """Rates (S, …) of some features of a step, exposure included."""
        return self.exposure[t] * self.mixture.rates(self.activations[:, t], columns)

    def totals(self, t: int) -> Array:
        """Totals (S,) of a step."""
        if not self.likelihood.additive:
            return np.sum([draws.sum(axis=1) for _, draws in self.features(t)], axis=0)
        rate = self._block_rates(t).sum(axis=1)
        return self.likelihood.sample(rate, self._rng(t, _TOTAL))

    def features(self, t: int, wanted: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Blocks of features and their draws (S, …) of a step; all blocks, or those wanted."""
        blocks, in_blocks = self.mixture.blocks, None
        if self.likelihood.additive:
            in_blocks = self._split(self.totals(t), self._block_rates(t), self._rng(t, _BLOCKS))
        for b in range(len(blocks)) if wanted is None else wanted.tolist():
            yield blocks[b], self._block(t, b, None if in_blocks is None else in_blocks[:, b])

    def log_density(self, t: int, x: Array) -> Array:
        """Logarithm (F,) of the mean density of values x (F,) of a step over the draws."""
        found = np.empty(len(x))
        for block in self.mixture.blocks:
            of_draws = self.likelihood.log_density(x[block], self.rates(t, block))
            found[block] = logsumexp(of_draws, axis=0) - np.log(len(self))
        return found

    def _block(self, t: int, b: int, counts: Array | None) -> Array:
        """Draws (S, …) of a block, given its sums if these were drawn before."""
        rates, rng = self.rates(t, self.mixture.blocks[b]), self._rng(t, _FIRST_BLOCK + b)
        if counts is None:
            return self.likelihood.sample(rates, rng)
        return self._split(counts, rates, rng)

    def _split(self, counts: Array, rates: Array, rng: np.random.Generator) -> Array:
        """Counts (S, B) with given sums (S,), each part with its rate."""
        if rates.shape[1] == 1:
            return counts[:, None]
        return self.likelihood.split(counts, rates, rng)

    def _block_rates(self, t: int) -> Array:
        return self.exposure[t] * self.mixture.block_rates(self.activations[:, t])

    def _rng(self, t: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([*self.streams[t], purpose])
