"""Effective draws with and without the moves of `sampling/sharing.py`, four features, K = 2.

python benchmarks/sharing_gibbs.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from temporalnmf import TemporalNMF
from temporalnmf.sampling import gibbs

CHAINS = ("gap", "rate", "hier_rate", "shape", "hier_shape", "arg")


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    level = np.linspace(1.0, 9.0, 40)
    X = rng.poisson(np.column_stack([level, 10.0 - level]) @ [[8, 4, 0, 1], [0, 3, 9, 1]])
    moves = gibbs.share
    print("| chain | R-hat | effective draws of 2000 | per second |\n| --- | --- | --- | --- |")
    for chain in CHAINS:
        rhat, ess, rate = [], [], []
        for share in (lambda *arguments: None, moves):
            gibbs.share = share
            model = TemporalNMF(2, chain=chain, solver="gibbs", smoothing=0.5, random_state=0)
            model.set_params(solver__n_draws=5, solver__n_tune=5).fit(X)  # compiles
            began = time.process_time()
            model.set_params(solver__n_draws=500, solver__n_tune=500).fit(X)
            seconds = time.process_time() - began
            found = next(
                q for q in model.posterior_.diagnosis.quantities if q.name == "activations"
            )
            rhat.append(f"{found.rhat:.2f}")
            ess.append(f"{found.ess_bulk:.0f}")
            rate.append(f"{found.ess_bulk / seconds:.1f}")
        cells = [chain, *(" → ".join(pair) for pair in (rhat, ess, rate))]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
