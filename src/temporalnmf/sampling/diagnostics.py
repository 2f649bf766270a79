"""Convergence of runs: R-hat and effective sample sizes.

After Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and
localization: an improved R-hat. Runs are split in halves and values replaced by normal scores of
their ranks; tail sizes are those of the indicators of the 5 % and 95 % quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from .._typing import Array
from ..messages.errors import Arg, Text

if TYPE_CHECKING:
    from .draws import PosteriorDraws

# Largest R-hat and least effective sample size of reliable draws (Vehtari et al., section 2).
RHAT, ESS_PER_RUN = 1.05, 50
FEWEST = 4


@dataclass(frozen=True)
class Quantity:
    """Convergence of one kind of quantity: the worst of its values."""

    name: str
    rhat: float
    ess_bulk: float
    ess_tail: float

    def settled(self, n_runs: int) -> bool:
        """Whether its draws have converged."""
        return self.rhat <= RHAT and min(self.ess_bulk, self.ess_tail) >= ESS_PER_RUN * n_runs


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Whether the runs agree, and how many independent draws they are worth.

    Attributes
    ----------
    quantities : tuple of Quantity
        Log posterior, totals, forecasts, activations, learned hyper-parameters and effects.
    n_runs, n_draws : int
        Number of runs, and of draws kept per run.
    rhat_of_components : tuple of float
        The worst R-hat of the activations of each component.
    likeness : tuple of float
        Similarity of each component between runs, 0 to 1: the least cosine of means.
    """

    quantities: tuple[Quantity, ...]
    n_runs: int
    n_draws: int
    rhat_of_components: tuple[float, ...]
    likeness: tuple[float, ...]

    @property
    def ok(self) -> bool:
        """Whether all quantities have converged."""
        return all(quantity.settled(self.n_runs) for quantity in self.quantities)

    @property
    def verdict(self) -> str:
        """What is reliable, and what to do about the rest, in words."""
        return str(self.advice)

    @property
    def advice(self) -> Text:
        """The verdict, for front ends that spell arguments differently."""
        unsettled = {q.name: q for q in self.quantities if not q.settled(self.n_runs)}
        if not unsettled and self.n_runs == 1:
            settled = "The run has settled, but a single run cannot show whether others agree:"
            return Text(f"{settled} use {{four}}.", four=Arg("n_chains", "4"))
        if not unsettled:
            least, worst = _least(self.quantities), max(q.rhat for q in self.quantities)
            return Text(
                f"The {self.n_runs} runs agree (R-hat at most {worst:.2f}), and their draws are "
                f"worth at least {least:.0f} independent ones."
            )
        numbers = zip(self.rhat_of_components, self.likeness, strict=True)
        apart = [k + 1 for k, (r, like) in enumerate(numbers) if r > _APART and like < _ALIKE]
        agreed = not {"totals", "forecasts"} & set(unsettled)
        if apart and agreed and self.n_runs > 1:
            names = ", ".join(map(str, apart))
            return Text(
                f"The runs found different components ({names}), but agree on totals and "
                f"forecasts: rely on predictions, not on what these components mean. The "
                f"data may support fewer components only."
            )
        if self.n_draws < FEWEST:
            problem = f"Too few draws for a verdict, {self.n_draws} per run."
            return Text(f"{problem} Use several hundred, {{many}}.", many=Arg("n_draws", "500"))
        least, worst = _least(unsettled.values()), max(q.rhat for q in unsettled.values())
        return Text(
            f"Not settled: {', '.join(unsettled)} (R-hat up to {worst:.2f}, should be at most "
            f"{RHAT}; worth {least:.0f} independent draws, should be {ESS_PER_RUN * self.n_runs}). "
            f"Use more sweeps: {{n_tune=}} and {{n_draws=}} {_times(least, self.n_runs)} times as "
            f"large" + (f"; components {', '.join(map(str, apart))} differ most." if apart else ".")
        )

    def __repr__(self) -> str:
        lines = [f"{'':<16}{'R-hat':>8}{'bulk ESS':>10}{'tail ESS':>10}"]
        lines += [
            f"{q.name:<16}{q.rhat:>8.3f}{q.ess_bulk:>10.0f}{q.ess_tail:>10.0f}"
            for q in self.quantities
        ]
        return "\n".join([*lines, self.verdict])


def _least(quantities: Iterable[Quantity]) -> float:
    """The smallest effective sample size."""
    return min(min(q.ess_bulk, q.ess_tail) for q in quantities)


def _times(effective: float, n_runs: int) -> int:
    """Factor, 2 to 50, by which sweeps should increase if the runs are only slow."""
    wanted = ESS_PER_RUN * n_runs / max(effective, 1e-300)
    return min(max(math.ceil(wanted), 2), 50)


# Runs have different components, rather than being slow, if R-hat is above, and similarity below.
_APART, _ALIKE = 1.2, 0.95


def diagnose(draws: PosteriorDraws) -> Diagnosis:
    """Diagnose all reported quantities."""
    H = draws.activations
    C, D = H.shape[:2]
    chain_means = draws.means_ahead(np.arange(C * D), 1).reshape(C, D, -1)
    looked_at = {
        "log posterior": draws.log_posterior,
        "totals": H.sum(axis=3),
        "forecasts": chain_means.sum(axis=2),
        "activations": H,
        **{name: draws.parameters[name] for name in draws.learned},
    }
    if np.ptp(draws.smoothing) > 0.0:
        looked_at["smoothing"] = draws.smoothing
    looked_at |= draws.of_likelihood
    if draws.effects is not None:
        looked_at["effects"] = draws.effects.coefficients
        if draws.effects.design.learned.any():
            looked_at["strengths"] = draws.effects.learned
    if D < FEWEST:
        nothing = tuple(Quantity(name, np.inf, 0.0, 0.0) for name in looked_at)
        return Diagnosis(nothing, C, D, (np.inf,) * H.shape[3], (1.0,) * H.shape[3])
    found = []
    for name, x in looked_at.items():
        sizes = (float(np.min(ess(x))) for ess in (ess_bulk, ess_tail))
        found.append(Quantity(name, float(np.max(rhat(x))), *sizes))
    means = draws.components.mean(axis=1, dtype=float)  # (runs, K, F)
    unit = means / np.linalg.norm(means, axis=2, keepdims=True)
    likeness = np.einsum("akf,bkf->kab", unit, unit).min(axis=(1, 2))
    numbers = (tuple(x.tolist()) for x in (rhat(H).max(axis=0), np.clip(likeness, 0, 1)))
    return Diagnosis(tuple(found), C, D, *numbers)


def rhat(x: Array) -> Array:
    """R-hat (…) of draws (runs, draws, …): rank-normalised, the larger of bulk and folded."""
    halves = _halves(x)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_rhat(_scores(halves)), _plain_rhat(_scores(folded)))


def ess_bulk(x: Array) -> Array:
    """Effective sample size (…) of draws (runs, draws, …) for the bulk of the distribution."""
    return _ess(_scores(_halves(x)))


def ess_tail(x: Array) -> Array:
    """Effective sample size (…) of draws (runs, draws, …): the smaller of both 5 % tails."""
    quantiles = np.quantile(x, [0.05, 0.95], axis=(0, 1))
    return np.minimum(*(_ess(_halves((x <= q).astype(float))) for q in quantiles))


def _halves(x: Array) -> Array:
    """First and second halves of the runs as separate runs."""
    x = np.asarray(x, dtype=float)
    n = x.shape[1] // 2
    return np.concatenate([x[:, :n], x[:, x.shape[1] - n :]])


def _scores(x: Array) -> Array:
    """Normal scores of the ranks among all draws."""
    flat = x.reshape(x.shape[0] * x.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(x.shape)


def _plain_rhat(x: Array) -> Array:
    n = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(all="ignore"):
        found = np.sqrt((n - 1) / n + between / within)
    return np.where((within == 0.0) & (between == 0.0), 1.0, found)


def _ess(x: Array) -> Array:
    """Geyer's initial monotone sequence on the autocorrelations of all runs together."""
    m, n = x.shape[:2]
    centred = x - x.mean(axis=1, keepdims=True)
    size = next_fast_len(2 * n)
    spectrum = rfft(centred, size, axis=1)
    autocovariance = irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n].mean(axis=0) / n
    within = autocovariance[0] * n / (n - 1)
    total = within * (n - 1) / n + (x.mean(axis=1).var(axis=0, ddof=1) if m > 1 else 0.0)
    with np.errstate(all="ignore"):
        rho = 1.0 - (within - autocovariance) / total
    rho[0] = 1.0
    # Pairs of lags (0, 1), (2, 3), … while their sum is positive, without the last ones.
    most = max((n - 3) // 2, 0)
    pairs = rho[: 2 * (most + 1) : 2] + rho[1 : 2 * (most + 1) : 2]
    positive = np.logical_and.accumulate(pairs[:most] > 0.0, axis=0)
    monotone = np.minimum.accumulate(np.where(positive, pairs[:most], 0.0), axis=0)
    # The even lag after them is added, too, unless it is negative and ended the sequence.
    length = positive.sum(axis=0)[None]
    even, pair = (
        np.take_along_axis(x, i, axis=0)[0] for x, i in ((rho, 2 * length), (pairs, length))
    )
    time = -1.0 + 2.0 * monotone.sum(axis=0) + np.where(pair < 0.0, np.maximum(even, 0.0), even)
    size_of_all = m * n
    with np.errstate(all="ignore"):
        found = size_of_all / np.maximum(time, 1.0 / np.log10(size_of_all))
    return np.where(np.ptp(x, axis=(0, 1)) > 0.0, found, float(size_of_all))
