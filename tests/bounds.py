"""Majorizers (M) of a likelihood, alone and with a chain."""

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
    added = chain.terms(H, aux, scale)
    return Majorizer(*(one + other for one, other in zip(likelihood, added, strict=True)))
