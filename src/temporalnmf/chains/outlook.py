"""A chain's forecast of the steps ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, Law
from .regime import Regime


def paths_for_quantiles(n_steps: int) -> int:
    """10,000 paths, fewer if long ones would not fit into memory."""
    return min(10_000, max(200, 20_000_000 // n_steps))


@dataclass(frozen=True)
class Outlook:
    """A chain's forecast from a known value: moments, quantiles, simulated paths.

    Arrays run over the steps ahead, then over the components if there are several.

    Attributes
    ----------
    mean, var : array, (steps, …)
        Exact; infinite or NaN if they do not exist.
    point : array, (steps, …)
        The point forecast, of the kind that `point_name` says.
    paths : array, (n_paths, steps, …)
        Simulated.
    laws : list
        The frozen SciPy distribution of each step, or None if it has no closed form.
    regime : Regime, or a list of them
        Long-run behaviour.

    Examples
    --------
    >>> from temporalnmf.chains import BGAR
    >>> ahead = BGAR(alpha=2.0, beta=1.0, rho=0.5).forecast(4.0, steps=3)
    >>> ahead.mean
    array([3.  , 2.5 , 2.25])
    >>> ahead.quantile([0.05, 0.95]).shape
    (2, 3)
    """

    mean: Array
    var: Array
    point: Array
    point_name: str
    paths: Array
    laws: list[Law | None]
    regime: Regime | list[Regime]

    def quantile(self, levels: ArrayLike) -> Array:
        """Quantiles at the levels, e.g. 0.9: (len(levels), steps, …), or (steps, …) for one.

        Exact if the distribution of the step has a closed form (and SciPy finds its quantiles),
        otherwise those of the simulated paths.
        """
        wanted = np.asarray(levels, dtype=float)
        if not np.all((wanted > 0.0) & (wanted < 1.0)):
            raise ValueError(f"levels={levels!r}: expected numbers strictly between 0 and 1.")
        found = np.empty((wanted.size, *self.paths.shape[1:]))
        for s, law in enumerate(self.laws):
            if law is not None:
                found[:, s] = [law.ppf(level) for level in wanted.ravel()]
            if law is None or np.isnan(found[:, s]).any():
                found[:, s] = np.quantile(self.paths[:, s], wanted.ravel(), axis=0)
        return found.reshape(wanted.shape + found.shape[1:])
