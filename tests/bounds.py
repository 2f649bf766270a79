"""Majorizers (M) of a likelihood, alone and with a chain, and their minimisers."""

import sys

import numpy as np

from temporalnmf.kernels.roots import _quadratic_root
from temporalnmf.likelihoods import Majorizer


def bound_in_h(observations, W, H):
    """(M) in H at the current (W, H), (K, N)."""
    (sums,) = observations.sums(W, H, "h")
    return observations.likelihood.majorizer(*sums, H)


def bound_in_w(observations, W, H):
    """(M) in W at the current (W, H), (F, K)."""
    (sums,) = observations.sums(W, H, "w")
    return observations.likelihood.majorizer(*sums, W)


def with_chain(likelihood, chain, H, aux, scale):
    """A bound in H, and what the chain adds to it where the neighbours of a step are fixed."""
    chains = zip(H, aux, chain._rows(len(H), scale), strict=True)
    at = chain._kernels.terms
    added = [[at(h, z, n, tuple(row)) for n in range(len(h))] for h, z, row in chains]
    parts = zip(likelihood, np.moveaxis(np.array(added), 2, 0), strict=True)
    return Majorizer(*(one + other for one, other in parts))


def quadratic(h, z, n, p, q, r, row):
    return _quadratic_root(p, q, r, h[n])


def minimisers(chain, H, aux, total, steps, scale):
    """Minimisers over h_n for the given steps, likelihood and chain together: `with_chain`.

    That of (M), unless the module of the chain has one of its own.
    """
    chains = zip(H, aux, *total, chain._rows(len(H), scale), strict=True)
    at = getattr(sys.modules[type(chain).__module__], "_minimiser", quadratic)
    columns = range(H.shape[1])[steps]
    found = [
        [at(h, z, n, p[n], q[n], r[n], tuple(row)) for n in columns]
        for h, z, p, q, r, row in chains
    ]
    return np.array(found)
