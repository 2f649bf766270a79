"""The tables of the paper, and the sizes of its data."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """Mean and standard deviation of both errors over 25 runs."""

    kle_s_mean: float
    kle_s_std: float
    kle_f_mean: float
    kle_f_std: float


# Number of components and shape (features, steps) of each dataset in the paper.
N_COMPONENTS = {"nips": 3, "lastfm": 5, "icews": 5}
SHAPES = {"nips": (11463, 29), "lastfm": (7017, 53), "icews": (6197, 365)}

TABLES: dict[str, dict[str, Published]] = {
    "nips": {
        "gap": Published(6.19e4, 9.69e3, 1.08e5, 2.67e3),
        "rate": Published(6.07e4, 8.97e3, 1.03e5, 3.53e3),
        "hier_rate": Published(6.06e4, 9.18e3, 3.24e5, 2.09e5),
        "shape": Published(9.37e4, 2.99e4, 1.30e5, 2.35e4),
        "bgar": Published(6.17e4, 8.24e3, 1.36e5, 2.00e3),
    },
    "lastfm": {
        "gap": Published(1.30e4, 3.35e2, 6.89e3, 5.84e1),
        "rate": Published(1.23e4, 2.35e2, 7.76e3, 4.13e1),
        "hier_rate": Published(1.23e4, 2.95e2, 6.35e3, 1.57e3),
        "shape": Published(1.58e4, 2.45e3, 2.04e4, 9.92e3),
        "bgar": Published(1.24e4, 3.00e2, 9.65e3, 2.91e3),
    },
    "icews": {
        "gap": Published(8.91e4, 2.82e3, 1.59e3, 6.34e1),
        "rate": Published(9.17e4, 2.99e3, 1.62e3, 7.57e1),
        "hier_rate": Published(9.11e4, 2.81e3, 1.62e3, 9.02e1),
        "shape": Published(9.95e4, 3.82e3, 1.84e3, 1.37e2),
        "bgar": Published(8.99e4, 2.80e3, 1.78e3, 8.62e1),
    },
}
