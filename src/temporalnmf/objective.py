"""The MAP objective, written once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .chains.base import Aux, Chain, Scale
from .likelihoods.base import Array
from .observations.base import Observations


@dataclass(frozen=True)
class Problem:
    """What a solver minimises: data, chain, scale of the mode and smoothing of W.

    The variables are W (F, K), whose columns sum to one, and H (K, N), with the auxiliary
    variables of the chain.
    """

    observations: Observations
    chain: Chain
    scale: Scale = "log"
    smoothing: float = 0.0

    def parts(self, W: Array, H: Array, aux: Aux) -> dict[str, float]:
        """The terms of the objective by name."""
        smoothing = 0.0 if self.smoothing == 0.0 else -self.smoothing * np.log(W).sum()  # (W3)
        return {
            "likelihood": self.observations.value(W, H),
            "chain": self.chain.value(H, aux, self.scale),
            "smoothing": float(smoothing),
        }

    def objective(self, W: Array, H: Array, aux: Aux = None) -> float:
        """−log p(V | WH) − log p(H) − s Σ log w; `aux` is made from H where it is not given."""
        if aux is None:
            aux = self.chain.auxiliary(H, self.scale)
        return sum(self.parts(W, H, aux).values())
