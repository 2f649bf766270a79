"""How far components move in a step, compared with how far the chain expects them to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from ..chains.base import Chain
from ..estimator import TemporalNMF
from ..sampling.traces import one_step_on
from . import canvas
from .canvas import BLUE, GREY, Axes, Components, new_axes

# Movement within this factor of what the chain expects counts as agreement.
_AGREEMENT = 1.5
_PATHS_PER_STEP = 200

# Replaces an activation of zero, from which no chain can start.
_SMALLEST = 1e-300

# Factors to label on the axis, largest first.
_FACTORS = (
    1e20, 1e10, 1e5, 1e3, 100.0, 30.0, 10.0, 5.0, 3.0, 2.0, 1.5, 1.2, 1.1, 1.05, 1.02,
)  # fmt: skip


def plot_movement(
    model: TemporalNMF,
    components: Components = None,
    *,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """How far components move in a step, and how far the chain expects them to.

    Both are distributions of log h_n / h_{n−1} at pairs of observed steps: of posterior draws of
    the levels, which are activations without seasons and other effects, and of one step of the
    chain from the same h_{n−1}. If the chain is correct, the two agree. If components move much
    more than expected, the chain is too stiff and a looser one follows them better; if much less, a
    stiffer one gives narrower bands.

    Parameters
    ----------
    model : TemporalNMF
        Fitted. The chain "none" expects nothing, so only the movement found is drawn.
    components : int or sequence of int, default=None
        Indices of the components to include; None is all.
    random_state : int, default=0
        Seed of the draws.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    chosen = canvas.component_indices(components, len(model.components_))
    ax = ax or new_axes(6.4, 3.6)
    found, expected = movements(model, chosen, random_state)
    samples = [found] if expected is None else [found, expected]
    reach = max(np.abs(np.quantile(sample, (0.005, 0.995))).max() for sample in samples)
    bins = np.linspace(-reach, reach, 61)
    if expected is not None:
        shares = np.histogram(expected, bins)[0] / len(expected)
        ax.stairs(shares, bins, fill=True, color=GREY, alpha=0.35, label="expected by the chain")
    shares = np.histogram(found, bins)[0] / len(found)
    ax.stairs(shares, bins, color=BLUE, lw=1.4, label="found")
    ax.axvline(0.0, color=GREY, lw=0.8, ls=":")
    factors = round_factors(reach)
    ax.set_xticks(np.log(factors), [factor_text(factor) for factor in factors])
    ax.set_xlabel("change of an activation in one step")
    ax.set_ylabel("share of all steps")
    ax.set_title(_verdict(model.chain_, found, expected), fontsize=9, loc="left")
    ax.legend(fontsize=8, frameon=False)
    return ax


def movements(
    model: TemporalNMF, chosen: Sequence[int], random_state: int
) -> tuple[Array, Array | None]:
    """log h_n / h_{n−1}, found and expected, at all pairs of neighbours that were observed."""
    after = np.flatnonzero(model.observed_[1:] & model.observed_[:-1]) + 1
    if not len(after):
        raise ValueError("The model has no two adjacent steps that were observed.")
    smooth = model.smooth(random_state=random_state)
    # (n, N, K): posterior draws of the levels if there are any, else the levels themselves.
    draws = model.levels_[None]
    if smooth.has_bands:
        draws = smooth.samples(of="components") / smooth.factor
    found = _log_ratio(draws[:, after][..., chosen], draws[:, after - 1][..., chosen])
    if not smooth.has_bands:
        return found, None
    rng = np.random.default_rng(random_state)
    if model.posterior_ is not None:  # each draw with its own hyper-parameters
        which = model.posterior_.pick(_PATHS_PER_STEP)
        before = model.posterior_.steps(which, model._kept, len(model.times_), rng)[:, after - 1]
        now = one_step_on(model.posterior_, which, before, rng)
        return found, _log_ratio(now[..., chosen], before[..., chosen])
    rows = rng.integers(len(draws), size=_PATHS_PER_STEP)
    before = draws[rows][:, after - 1].reshape(-1, draws.shape[2])  # (n, K)
    paths = model.chain_.sample(len(before), 2, rng, np.maximum(before, _SMALLEST))
    return found, _log_ratio(paths[:, 1][:, chosen], before[:, chosen])


def _log_ratio(now: Array, before: Array) -> Array:
    """log now/before, flat; clipped to ±50, which includes paths that reached zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(now) - np.log(before)
    return np.clip(np.nan_to_num(ratio, nan=0.0), -50.0, 50.0).ravel()


def round_factors(reach: float) -> list[float]:
    """Factors to label on a logarithmic axis from −reach to reach, not too close together."""
    marks: list[float] = []
    for factor in _FACTORS:
        place, taken = np.log(factor), np.log([*marks, 1.0])
        if place <= reach and np.abs(taken - place).min() > reach / 3.0:
            marks.append(factor)
    return [*(1.0 / factor for factor in marks), 1.0, *marks]


def factor_text(factor: float) -> str:
    """×0.5, ×1.2, ×10⁵"""
    if 1e-2 <= factor < 1e3:
        return f"×{factor:.2g}" if factor < 1.0 else f"×{factor:g}"
    return f"×$10^{{{round(np.log10(factor))}}}$"


def _verdict(chain: Chain, found: Array, expected: Array | None) -> str:
    if expected is None and chain.has_law:
        return "nothing to compare with:\nthe likelihood is no distribution"
    if expected is None:
        return "no chain to compare with:\nplain NMF assumes nothing about the next step"
    spreads = [float(np.subtract(*np.quantile(x, (0.9, 0.1)))) for x in (found, expected)]
    factor = spreads[0] / max(spreads[1], _SMALLEST)
    verdict, ratio = "fits", f"{factor:.2f}"
    if factor > _AGREEMENT:
        verdict, ratio = "is too stiff", f"{factor:.1f}"
    elif factor < 1.0 / _AGREEMENT:
        verdict, ratio = "is too loose", f"{factor:.2g}"
    moved = f"components move {ratio} times as far as it expects"
    return f"{chain.name} ({chain.numbers()}) {verdict}:\n{moved}"
