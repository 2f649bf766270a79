"""Forecasts of each series by AutoETS, in an environment of its own that has statsforecast.

    $TEMPORALNMF_ETS_PYTHON benchmarks/auto_ets.py in.npz out.npz

`in.npz` has X (N, F), the origins, the number of steps to forecast and the season length in steps;
`out.npz` gets the forecasts (origins, steps, F) and the seconds that they took. Missing values are
interpolated. Run by seasons.py.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from statsforecast.models import AutoETS


def filled(x: np.ndarray) -> np.ndarray:
    """A series without missing values."""
    seen = np.flatnonzero(~np.isnan(x))
    return np.interp(np.arange(len(x)), seen, x[seen])


def forecast(x: np.ndarray, steps: int, season: int) -> np.ndarray | None:
    """Of one series; None if AutoETS fails or gives no number."""
    try:
        found = AutoETS(season_length=season).forecast(x, h=steps)["mean"]
    except Exception as error:
        print(f"AutoETS failed: {error}", file=sys.stderr)
        return None
    return found if np.isfinite(found).all() else None


def main() -> None:
    warnings.simplefilter("ignore")
    given = np.load(sys.argv[1])
    X, steps, season = given["X"], int(given["steps"]), int(given["season"])
    forecast(filled(X[: given["origins"][0], 0]), steps, season)  # compile
    found, start = np.empty((len(given["origins"]), steps, X.shape[1])), time.perf_counter()
    n_failed = 0
    for i, origin in enumerate(given["origins"]):
        for f in range(X.shape[1]):
            past = filled(X[:origin, f])
            ahead = forecast(past, steps, season)
            n_failed += ahead is None
            found[i, :, f] = past[-1] if ahead is None else ahead
    n = len(given["origins"]) * X.shape[1]
    print(f"{n_failed} of {n} series have the last value in place of a forecast", file=sys.stderr)
    np.savez(sys.argv[2], forecasts=found, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main()
