"""Nanoseconds per random variate, by regime, and the time to allocate counts like those of NIPS.

python benchmarks/variates.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from temporalnmf.kernels.variates import allocate, bessel, binomial, crt, gig, slice_step

REPETITIONS = 5
# Entries, components and the bar of issue 7's allocation, in milliseconds.
ENTRIES, COMPONENTS, BAR = 260_000, 3, 40.0

GIG = [
    (p, omega)
    for p in (0.0, 1e-3, 0.5, 3.0, 1e3, 1e9)
    for omega in (1e-30, 1e-3, 1.0, 1e3, 1e12)
]  # fmt: skip
BESSEL = [(nu, x) for nu in (-0.5, 10.0, 1e6) for x in (0.1, 10.0, 1e3, 1e9)]
CRT = [(n, r) for n in (3.0, 50.0, 1e3, 1e6, 1e9) for r in (0.1, 10.0, 1e4, 1e9)]
BINOMIAL = [(n, p) for n in (1.0, 4.0, 20.0, 100.0, 1e4, 1e9) for p in (1e-9, 0.1, 0.5)]
WIDTHS = [(width,) for width in (1e-3, 0.1, 1.0, 10.0, 1e3)]


@njit(nogil=True)
def normal(x, params):
    return -0.5 * x * x


@njit(nogil=True)
def slice_draw(rng, width):
    return slice_step(rng, normal, 0.3, (), width)


@njit(nogil=True)
def gig_draw(rng, p, omega):
    return gig(rng, p, omega, omega)


def repeat(draw: Callable[..., float]) -> Callable[..., float]:
    """A compiled loop of draws."""

    @njit(nogil=True)
    def loop(rng, arguments, size):
        total = 0.0
        for _ in range(size):
            total += draw(rng, *arguments)
        return total

    return loop


@njit(nogil=True)
def allocate_all(rng, v, W, H, step, out):
    """Split v[i] in proportion to W[i] H[step[i]]."""
    weights = np.empty(W.shape[1])
    for i in range(len(v)):
        for k in range(W.shape[1]):
            weights[k] = W[i, k] * H[step[i], k]
        allocate(rng, v[i], weights, out[i])


def best(run: Callable[[], Any]) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def nanoseconds(loop: Callable[..., float], arguments: tuple[float, ...]) -> float:
    rng = np.random.default_rng(0)
    loop(rng, arguments, 1)
    pilot = best(lambda: loop(rng, arguments, 3)) / 3
    size = max(3, min(100_000, int(0.01 / pilot)))
    return 1e9 * best(lambda: loop(rng, arguments, size)) / size


def like_nips(rng: np.random.Generator) -> np.ndarray:
    """Counts with mean near 40, half of them at most 8."""
    return 1.0 + rng.poisson(rng.lognormal(1.9, 1.9, ENTRIES))


def allocation() -> float:
    """Milliseconds for all entries."""
    rng = np.random.default_rng(0)
    v = like_nips(rng)
    W, H = rng.gamma(0.5, size=(ENTRIES, COMPONENTS)), rng.gamma(5.0, size=(17, COMPONENTS))
    step, out = rng.integers(17, size=ENTRIES), np.zeros((ENTRIES, COMPONENTS))
    run = lambda: allocate_all(rng, v, W, H, step, out)  # noqa: E731
    run()
    print(f"counts: mean {v.mean():.0f}, median {np.median(v):.0f}, largest {v.max():.0f}")
    return 1e3 * best(run)


def main() -> None:
    tables: list[tuple[str, Callable[..., float], list[tuple[float, ...]]]] = [
        ("gig(p, ω)", gig_draw, GIG),
        ("bessel(ν, x)", bessel, BESSEL),
        ("crt(n, r)", crt, CRT),
        ("binomial(n, p)", binomial, BINOMIAL),
        ("slice_step, normal law (width)", slice_draw, WIDTHS),
    ]
    for title, draw, cases in tables:
        print(f"\n{title}, ns per draw")
        loop = repeat(draw)
        for case in cases:
            print(f"  {', '.join(f'{c:g}' for c in case):>16} {nanoseconds(loop, case):12.0f}")
    took = allocation()
    print(f"allocate: {ENTRIES} entries × {COMPONENTS}: {took:.1f} ms (bar {BAR:.0f} ms)")


if __name__ == "__main__":
    main()
