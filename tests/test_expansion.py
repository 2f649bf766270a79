"""The chains to second order in log h, against differences of what they expand."""

import numpy as np
import pytest

from cases import SCALES, chains
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.kernels.floor import FLOOR

CASES = [(chain, scale) for scale in SCALES for chain in chains(scale)]


def activations(seed, shape=(2, 6)):
    return np.random.default_rng(seed).gamma(1.5, 4.0, size=shape)


def difference(function, step=3e-3):
    """Derivative at zero by central differences of the sixth order."""
    weights = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * step)
    points = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]) * step
    return sum(weight * function(u) for weight, u in zip(weights, points, strict=True))


def moved(H, index, u):
    H = H.copy()
    H[index] *= np.exp(u)
    return H


def beside(off):
    """What stands beside the diagonal in each row."""
    total = np.zeros((len(off), off.shape[1] + 1))
    total[:, 1:] -= off
    total[:, :-1] -= off
    return total


def assert_well_formed(expansion):
    """Finite, off the diagonal not positive, diagonally dominant."""
    value, slope, diagonal, off = expansion
    assert np.isfinite(value)
    assert all(np.isfinite(x).all() for x in (slope, diagonal, off))
    assert (off <= 0.0).all()
    assert (diagonal >= beside(off) * (1.0 - 1e-15)).all()
    assert slope.shape == diagonal.shape == (len(off), off.shape[1] + 1)


@pytest.mark.parametrize(("chain", "scale"), CASES, ids=str)
@pytest.mark.parametrize("shape", [(2, 6), (3, 2)])
def test_value_of_the_expansion_is_that_of_the_chain(chain, scale, shape):
    for seed in range(5):
        H = activations(seed, shape)
        expected = chain.value(H, chain.auxiliary(H, scale), scale)
        np.testing.assert_allclose(chain.expansion(H, scale).value, expected, 1e-12, 1e-12)


@pytest.mark.parametrize(("chain", "scale"), CASES, ids=str)
@pytest.mark.parametrize("shape", [(2, 6), (3, 2)])
def test_slope_is_the_derivative_of_the_value(chain, scale, shape):
    H = activations(6, shape)

    def value(index, u):
        trial = moved(H, index, u)
        return chain.value(trial, chain.auxiliary(trial, scale), scale)

    slope = chain.expansion(H, scale).slope
    expected = [difference(lambda u, i=i: value(i, u)) for i in np.ndindex(H.shape)]
    size = 1.0 + abs(chain.expansion(H, scale).value)
    np.testing.assert_allclose(slope.ravel(), expected, rtol=1e-9, atol=1e-11 * size)


@pytest.mark.parametrize(("chain", "scale"), CASES, ids=str)
@pytest.mark.parametrize("shape", [(2, 6), (3, 2)])
def test_curvature_is_the_derivative_of_the_slope(chain, scale, shape):
    """To the letter off the diagonal; on it, raised to what stands beside."""
    H = activations(7, shape)
    K, N = shape
    hessian = np.array(
        [
            difference(lambda u, i=i: chain.expansion(moved(H, i, u), scale).slope)
            for i in np.ndindex(H.shape)
        ]
    ).reshape(K, N, K, N)
    _, _, diagonal, off = chain.expansion(H, scale)
    expected = np.zeros_like(hessian)
    size = 1e-9 * abs(hessian).max() + 1e-12
    for k in range(K):
        block = hessian[k, :, k, :]
        np.testing.assert_allclose(off[k], np.diag(block, 1), rtol=1e-8, atol=size)
        raised = np.maximum(np.diag(block), beside(off)[k])
        np.testing.assert_allclose(diagonal[k], raised, rtol=1e-8, atol=size)
        if chain.name in ("none", "gap", "rate", "hier_rate"):  # dominant as they are
            np.testing.assert_allclose(diagonal[k], np.diag(block), rtol=1e-8, atol=size)
        # Nothing outside the three diagonals of a component.
        expected[k, :, k, :] = np.triu(np.tril(block, 1), -1)
    np.testing.assert_allclose(hessian, expected, atol=size)


def extreme_chains(alpha, scale):
    """Every chain at this shape that the scale admits."""
    if scale == "linear" and alpha < 3.0:
        return [
            GaP(alpha, 1.0), Shape(alpha, alpha), HierShape(alpha, alpha), ARG(alpha, 1.0, 0.9),
        ]  # fmt: skip
    return [
        GaP(alpha, 1.0), Rate(alpha, alpha), HierRate(alpha, alpha, alpha, alpha),
        HierRate(alpha, 1.0, alpha, 1.0, marginal=True), Shape(alpha, alpha),
        HierShape(alpha, alpha), BGAR(alpha, 1.0, 0.5), BGAR(alpha, 1e3, 0.4),
        ARG(alpha, 1.0, 0.5), ARG(alpha, 1e3, 0.999),
    ]  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", [1e-3, 0.5, 3.0, 1e3, 1e6])
def test_expansions_are_finite_and_dominant_at_the_extremes(alpha, scale):
    rng = np.random.default_rng(8)
    wide = 10.0 ** rng.uniform(-30.0, 9.0, size=(3, 9))
    wide[0, ::2] = FLOOR
    close = 10.0 ** rng.uniform(-3.0, 6.0, size=(3, 1))
    close = close * (1.0 + 10.0 ** rng.uniform(-16.0, -8.0, size=(3, 9)))
    for H in (wide, close, np.full((2, 4), FLOOR), np.full((2, 4), 1e9)):
        for chain in extreme_chains(alpha, scale):
            assert_well_formed(chain.expansion(H, scale))
            value = chain.value(H, chain.auxiliary(H, scale), scale)
            assert np.isfinite(value), chain


@pytest.mark.parametrize(("chain", "scale"), CASES, ids=str)
def test_expansions_of_components_do_not_mix(chain, scale):
    H = activations(9, (3, 7))
    together = chain.expansion(H, scale)
    alone = [chain.expansion(H[[k]], scale) for k in range(3)]
    np.testing.assert_allclose(together.value, sum(x.value for x in alone), rtol=1e-12)
    for name in ("slope", "diagonal", "off"):
        stacked = np.vstack([getattr(x, name) for x in alone])
        np.testing.assert_array_equal(getattr(together, name), stacked)


def test_slope_of_bgar_is_exact_where_the_profile_is_flat():
    """Inside a long gap the terms of the slope are β h large and cancel; their rest does not."""
    H = np.array([[1e9, 1.5e9, 2.5e9]])
    slope = BGAR(4.0, 1.0, 0.5).expansion(H, "log").slope[0, 1]
    # Noise far below the activations: a is min(h, o) but for λ/β, and κ/a − λ/(o−a) remains.
    kappa = lam = 2.0
    assert slope == pytest.approx(
        -kappa + lam * 1.5 / 1.0 - lam * 1.5 / 0.5 + kappa + lam, rel=1e-7
    )
