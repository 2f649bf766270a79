"""Hidden steps that public code of PGDS and PRGDS predicted, filled and forecast by our models.

    python benchmarks/peers.py [--settings default gap]

The hidden inner steps (gaps) and the last two (forecasts) are those of `peers_masks.json`, whose
predictions by the peers are in `peers_pgds.csv`. Errors are Kullback–Leibler errors; densities are
predictive log densities per entry. Needs TEMPORALNMF_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from default_intervals import data_of
from joblib import Parallel, delayed

from temporalnmf import TemporalNMF
from temporalnmf.chains import BGAR, GaP, Rate
from temporalnmf.metrics import kl_error

FILES = {
    "nips": "nips.npy", "icews": "icews_2001_2003_pairs_3day.npz", "sotu": "sotu_words_by_year.npz"
}  # fmt: skip
SETTINGS = {
    "default": {},
    "before": {"chain": Rate(300.0), "likelihood": "poisson", "gaps": "mode", "tol": 1e-5,
               "intervals": "model"},
    "gap": {"chain": GaP()},
    "bgar": {"chain": BGAR()},
}  # fmt: skip
SAMPLES = 200


def look(name: str, K: int, setting: str, mask: str, steps: list[int]) -> dict[str, object]:
    warnings.simplefilter("ignore")
    X = data_of(FILES[name])
    train = X[:-2].copy()
    train[steps] = np.nan
    model = TemporalNMF(K, random_state=0, **SETTINGS[setting]).fit(train)
    found: dict[str, object] = {"data": name, "K": K, "setting": setting, "mask": mask}
    inside = model.smooth(n_samples=SAMPLES).at(steps)
    for part, forecast, truth in (("S", inside, X[steps]), ("F", model.forecast(2), X[-2:])):
        there = ~np.isnan(truth[:, 0])
        found[f"{part}_kle"] = kl_error(truth[there], np.maximum(forecast.values[there], 1e-6))
        density = forecast.log_density(truth)[there]
        found[f"{part}_pll"] = float(density.mean())
        found[f"{part}_least"] = float(density.min())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    folder = Path(os.environ["TEMPORALNMF_DATA"])
    masks = json.loads((folder / "peers_masks.json").read_text())
    tasks = [
        delayed(look)(name, K, setting, mask, steps)
        for name in FILES for K in ((10, 25) if name == "icews" else (10,))
        for setting in given.settings for mask, steps in masks[name].items()
    ]  # fmt: skip
    ours = pd.DataFrame(Parallel(given.jobs)(tasks)).drop(columns="mask")
    print(ours.groupby(["data", "K", "setting"]).mean().round(3).to_string())
    peers = pd.read_csv(folder / "peers_pgds.csv")
    columns = ["S_kle", "S_pll", "F_kle", "F_pll"]
    print(peers.groupby(["data", "n_components", "model"])[columns].mean().round(3).to_string())


if __name__ == "__main__":
    main()
