"""Conditional laws of activations: Geweke's joint test for every chain."""

import numpy as np
import pytest

import cases
from temporalnmf import registry
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import First

N = 5
Q = np.array([1.5, 0.0, 0.7, 2.0, 0.0])  # two steps were not observed
FIRST_LAW = First(2.0, 3.0)
CHAINS = [
    GaP(2.0, 0.7), Rate(4.0, 4.0), Rate(0.8, 1.1), HierRate(6.0, 5.0, 4.0, 4.0),
    Shape(1.5, 1.5), HierShape(1.3, 0.9), BGAR(3.0, 1.2, 0.6), BGAR(0.8, 0.5, 0.9),
    ARG(3.0, 1.2, 0.6), ARG(0.8, 0.5, 0.9),
]  # fmt: skip
LONG = ("bgar", "hier_shape", "arg")


def test_every_chain_with_a_law_has_its_conditionals():
    known = {
        name for name in registry.CHAINS if registry.create(registry.CHAINS, name, "").has_draws
    }
    assert known == set(registry.CHAINS) - {"none"} == {chain.name for chain in CHAINS}


def first_values(chain, n_paths, rng):
    if chain.stationary() is not None:  # gap, bgar and arg have a law of their own
        return None
    return rng.gamma(FIRST_LAW.shape, FIRST_LAW.level / FIRST_LAW.shape, size=n_paths)


def functionals(H, Y):
    """Twelve numbers of a draw (…, N): levels, spreads, neighbours, ends, counts."""
    u = np.log(np.maximum(H, 1e-8))
    return np.stack(
        [
            u[..., 0], u[..., 1], u[..., -1], u.mean(axis=-1), u.std(axis=-1),
            np.tanh(u[..., 0] * u[..., 1]), np.tanh(u[..., -1] - u[..., -2]),
            np.minimum(H[..., 2], 20.0), np.minimum(H.sum(axis=-1), 60.0), np.log1p(Y[..., 0]),
            np.log1p(Y.sum(axis=-1)), np.tanh(u[..., 3] * np.log1p(Y[..., 3])),
        ],
        axis=-1,
    )  # fmt: skip


@pytest.mark.parametrize(
    "chain",
    [
        # A chain's second, and those of which the draws take long.
        pytest.param(chain, marks=pytest.mark.long if i in (2, 9) or chain.name in LONG else ())
        for i, chain in enumerate(CHAINS)
    ],
    ids=cases.named,
)
def test_conditionals_leave_the_joint_law_as_it_is(chain):
    """Draw (h, y) from the joint law; alternate h | y and y | h; the law must stay (Geweke 2004).

    Many short chains side by side, each started from the joint law, so that draws at the end are
    independent of each other. Any error in a conditional moves them away from where they began.
    """
    n_chains, rounds = 4000, 25
    rng = np.random.default_rng(1)
    H = chain.sample(n_chains, N, rng, first_values(chain, n_chains, rng))
    H = np.maximum(H, 1e-30)
    before = functionals(H, rng.poisson(Q * H))
    Z = np.zeros((len(H), H.shape[1] - 1))
    H, Y = H.copy(), rng.poisson(Q * H).astype(float)
    for _ in range(rounds):
        Y[:] = rng.poisson(Q * H)
        chain.draw(H, Z, Y, Q, rng, FIRST_LAW)
    after = functionals(H, rng.poisson(Q * H))
    z = (after.mean(axis=0) - before.mean(axis=0)) / np.sqrt(
        (before.var(axis=0) + after.var(axis=0)) / n_chains
    )
    # Twelve functionals and their squares, eight chains: |z| > 4.2 by chance once in 200 runs.
    assert abs(z).max() < 4.2, z
    squares = (np.square(after).mean(axis=0) - np.square(before).mean(axis=0)) / np.sqrt(
        (np.square(before).var(axis=0) + np.square(after).var(axis=0)) / n_chains
    )
    assert abs(squares).max() < 4.2, squares
