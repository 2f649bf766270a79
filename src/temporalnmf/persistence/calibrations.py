"""Calibrations as arrays of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

import numpy as np

from .._typing import Array
from ..forecasting.checks import CHECKED, Calibration, Check, Noise, Tally
from ..messages.warning import warn


def calibration_arrays(found: Calibration) -> dict[str, Array]:
    """Numbers where earlier versions expect them, and a row per check."""
    noise, first, entries = found.noise, found.of("totals")[0], found.of("entries")
    held = [round(tally.inside * first.n_origins) for tally in (first.before, first.after)]
    share = entries[0].before.inside if entries else found.coverage
    numbers = [found.coverage, first.n_origins, *held, share, noise.dispersion, 0.0]
    checks = []
    for one in found.checks:
        tallies = *astuple(one.before), *astuple(one.after)
        checks.append([CHECKED.index(one.of), one.ahead, one.n_origins, one.n_values, *tallies])
    return {
        "calibration": np.array(numbers),
        "calibration_level": noise.level,
        "calibration_own": noise.own,
        "calibration_persistence": np.array([noise.persistence]),
        **({"calibration_scale": np.array([noise.scale])} if noise.keeps_totals else {}),
        "calibration_checks": np.array(checks),
        "calibration_refitted": np.array([found.refitted]),
    }


def calibration_of(arrays: Mapping[str, Array]) -> Calibration | None:
    """The calibration in the arrays of a model file."""
    if "calibration" not in arrays:
        return None
    if "calibration_checks" not in arrays:
        return _old_calibration(arrays)
    coverage, *_, dispersion, _ = arrays["calibration"].tolist()
    checks = []
    for row in arrays["calibration_checks"].tolist():
        of, ahead, n_origins, n_values = map(int, row[:4])
        tallies = Tally(*row[4:7]), Tally(*row[7:])
        checks.append(Check(CHECKED[of], ahead, n_origins, n_values, *tallies))
    (persistence,) = arrays["calibration_persistence"].tolist()
    new = "calibration_scale" in arrays
    scale = float(arrays["calibration_scale"][0]) if new else 1.0
    level, own = arrays["calibration_level"], arrays["calibration_own"]
    noise = Noise(level, own, persistence, dispersion, scale, keeps_totals=new)
    refitted = bool(arrays.get("calibration_refitted", np.ones(1)).all())
    return Calibration(coverage, tuple(checks), noise, refitted)


def _old_calibration(arrays: Mapping[str, Array]) -> Calibration:
    """The calibration of an earlier version, of totals one step ahead, without scores and widths.

    The second term of its variance of entries, dμ + cμ², does not carry over to sums of entries:
    it is dropped.
    """
    coverage, n, inside, widened, _, dispersion, clumping = arrays["calibration"].tolist()
    level = arrays["calibration_level"]
    if clumping > 0.0:
        problem = "An earlier version calibrated the model: intervals of entries are narrower now."
        warn(f"{problem} model.calibrate() checks them again.")
    tallies = (Tally(held / n, 0.0, width) for held, width in ((inside, 0.0), (widened, 1.0)))
    checks = (Check("totals", 1, int(n), int(n), *tallies),)
    return Calibration(coverage, checks, Noise(level, np.zeros_like(level), 1.0, dispersion))
