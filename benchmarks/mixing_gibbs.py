"""Effective draws per second of activations and hyper-parameters, chain by chain.

    python benchmarks/mixing_gibbs.py [--out FILE] [--before FILE]

One component, 100 steps with about 300 counts each, of which 10 in a row are missing; eight runs
side by side. What is counted: the worst step of the missing stretch, the worst of the others, the
mean over all steps, and hyper-parameters where they are learned. Seconds are of the processor. For
another state of the code run it with PYTHONPATH there, keep what it found by --out, and give that
as --before to have both in one table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from temporalnmf.chains import ARG, BGAR, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import First
from temporalnmf.sampling.diagnostics import ess_bulk
from temporalnmf.sampling.learning import LearnedChain

N, LEVEL, RUNS, TUNE, SWEEPS = 100, 300.0, 8, 300, 2000
MISSING = slice(45, 55)
KNOWN = {
    "rate, α = 300": Rate(300.0, 300.0),
    "rate, α = 20000": Rate(2e4, 2e4),
    "hier_rate, α = 300": HierRate(300.0, 299.0, 300.0, 300.0),
    "hier_rate, α = 20000": HierRate(2e4, 2e4 - 1.0, 2e4, 2e4),
    "shape, α = 1": Shape(1.0, 1.0),
    "shape, α = 60": Shape(60.0, 60.0),
    "hier_shape, β = 1": HierShape(1.0, 1.0),
    "hier_shape, β = 60": HierShape(1.0, 60.0),
    "bgar, α = 1, ρ = 0.97": BGAR(1.0, 1.0 / LEVEL, 0.97),
    "bgar, α = 3, ρ = 0.9": BGAR(3.0, 3.0 / LEVEL, 0.9),
    "bgar, α = 20, ρ = 0.97": BGAR(20.0, 20.0 / LEVEL, 0.97),
    "bgar, α = 1000, ρ = 0.97": BGAR(1e3, 1e3 / LEVEL, 0.97),
    "arg, α = 1, ρ = 0.97": ARG(1.0, 1.0 / LEVEL, 0.97),
    "arg, α = 20, ρ = 0.97": ARG(20.0, 20.0 / LEVEL, 0.97),
    "arg, α = 1000, ρ = 0.97": ARG(1e3, 1e3 / LEVEL, 0.97),
}
LEARNED = {
    "rate": Rate(alpha="learn", beta="learn"),
    "hier_rate": HierRate(alpha_z="learn", alpha_h="learn"),
    "shape": Shape(alpha="learn"),
    "hier_shape": HierShape(beta="learn"),
    "bgar": BGAR(alpha="learn", rho="learn"),
    "arg": ARG(alpha="learn", rho="learn"),
}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Counts and exposures."""
    rng = np.random.default_rng(0)
    q = np.ones(N)
    q[MISSING] = 0.0
    return rng.poisson(q * LEVEL * np.exp(0.5 * np.sin(np.arange(N) / 8.0))).astype(float), q


def run(law: LearnedChain, *, learn: bool) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
    """Draws (RUNS, SWEEPS, N) of log h, of what is learned, and seconds."""
    y, q = data()
    rng = np.random.default_rng(1)
    H = np.tile(np.interp(np.arange(N), np.flatnonzero(q), y[q > 0.0]), (RUNS, 1))
    Z, Y = np.zeros((len(H), H.shape[1] - 1)), np.tile(y, (RUNS, 1))
    paths = np.empty((RUNS, SWEEPS, N))
    learned = {name: np.empty((RUNS, SWEEPS)) for name in law.names}
    began = 0.0
    for sweep in range(-TUNE, SWEEPS):
        if sweep == 0:
            began = time.process_time()
        law.chain.draw(H, Z, Y, q, rng, First(0.5, LEVEL))
        if learn:
            law.draw(H, Z, rng)
        if sweep >= 0:
            paths[:, sweep] = np.log(H)
            for name, values in law.values.items():
                learned[name][:, sweep] = values
    return paths, learned, time.process_time() - began


def measured() -> dict[str, dict[str, float]]:
    """By chain: effective draws of everything looked at, seconds."""
    found = {}
    cases = [(name, chain, False) for name, chain in KNOWN.items()]
    cases += [(f"{name}, learned", chain, True) for name, chain in LEARNED.items()]
    for name, chain, learn in cases:
        law = LearnedChain(chain, LEVEL * RUNS, RUNS)  # a level for each of them
        paths, learned, seconds = run(law, learn=learn)
        ess = ess_bulk(paths)
        seen = np.ones(N, dtype=bool)
        seen[MISSING] = False
        found[name] = {
            "missing": float(ess[MISSING].min()),
            "seen": float(ess[seen].min()),
            "level": float(ess_bulk(paths.mean(axis=2))),
            **{p: float(ess_bulk(x)) for p, x in learned.items()},
            "seconds": seconds,
        }
        print(name, {key: round(value, 2) for key, value in found[name].items()}, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    now = measured()
    if options.out:
        options.out.write_text(json.dumps(now, indent=1))
    before = json.loads(options.before.read_text()) if options.before else {}
    print("\n| chain | quantity | per 1000 sweeps | per second | µs per step |")
    print("| --- | --- | --- | --- | --- |")
    for name, found in now.items():
        both = [before[name], found] if name in before else [found]
        for key in found:
            if key != "seconds":
                draws = " → ".join(f"{1e3 * x[key] / (RUNS * SWEEPS):.3g}" for x in both)
                rates = " → ".join(f"{x[key] / x['seconds']:.3g}" for x in both)
                each = " → ".join(f"{1e6 * x['seconds'] / (RUNS * SWEEPS * N):.2f}" for x in both)
                print(f"| {name} | {key} | {draws} | {rates} | {each} |")


if __name__ == "__main__":
    main()
