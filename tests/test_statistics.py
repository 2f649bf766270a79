"""Kernels and objective against the written-out sums and densities."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from bounds import bound_in_h, bound_in_w, minimisers, with_chain
from cases import (
    FEW,
    MANY,
    MASKS,
    SCALES,
    all_cases,
    chains,
    likelihoods,
    random_data,
    random_weights,
)
from oracle import chain_value, likelihood_value, statistics
from temporalnmf.kernels import dense
from temporalnmf.likelihoods import Majorizer
from temporalnmf.likelihoods.local import LocalBound
from temporalnmf.observations import observe


def _data(likelihood, mask, seed, n_features=7, n_components=FEW):
    rng = np.random.default_rng(seed)
    X = random_data(rng, likelihood, 9, n_features)
    weights = random_weights(rng, mask, X.shape)
    exposure = rng.uniform(0.5, 2.0, size=len(X))
    W = rng.dirichlet(np.ones(n_features), size=n_components).T
    H = rng.gamma(1.0, 10.0, size=(n_components, len(X)))
    return X, weights, exposure, W, H


SHARED = [(7, FEW), (dense.BLOCK + 3, FEW), (7, MANY), (2 * dense.BLOCK, 13)]
OTHER = [(7, 1), (7, 3), (7, 4), (7, dense.UNROLLED), (dense.CACHED // 8 + 5, dense.UNROLLED)]
# Kernels are generated alike for all likelihoods: of other sizes, one of each likelihood is long.
QUICK_OTHER = {("none", OTHER[0]), ("steps", OTHER[1]), ("weights", OTHER[-1])}


def _sizes():
    for likelihood, mask, size in product(likelihoods(), MASKS, SHARED + OTHER):
        quick = size in SHARED or (likelihood.name == "poisson" and (mask, size) in QUICK_OTHER)
        name = f"{likelihood.name}-{mask}-{size[0]}-{size[1]}"
        marks = () if quick else pytest.mark.long
        yield pytest.param(likelihood, mask, *size, id=name, marks=marks)


@pytest.mark.pairwise
@pytest.mark.parametrize(("likelihood", "mask", "n_features", "n_components"), list(_sizes()))
def test_statistics_are_the_sums_they_stand_for(likelihood, mask, n_features, n_components):
    """Kernels written out for few components, and the one for many; blocks of features."""
    for seed in range(5):
        X, weights, exposure, W, H = _data(likelihood, mask, seed, n_features, n_components)
        observations = observe(X, weights, exposure, likelihood)
        expected_h, expected_w = statistics(likelihood, X, weights, exposure, W, H)
        for ours, theirs in zip(bound_in_h(observations, W, H), expected_h, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        for ours, theirs in zip(bound_in_w(observations, W, H), expected_w, strict=True):
            np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-12)
        value = likelihood_value(likelihood, X, weights, exposure, W, H)
        np.testing.assert_allclose(observations.value(W, H), value, rtol=1e-12)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    ("likelihood", "storage"),
    [
        (likelihood, storage)
        for likelihood in likelihoods()
        for storage in (np.asarray, sparse.csr_array)
        if storage is np.asarray or likelihood.takes_sparse
    ],
)
def test_one_pass_for_w_and_h_gives_the_sums_of_two_passes(likelihood, mask, storage):
    for n_components in (FEW, MANY):
        X, weights, exposure, W, H = _data(likelihood, mask, 0, 40, n_components)
        observations = observe(storage(X), weights, exposure, likelihood)
        (for_w,) = observations.sums(W, H, "w")
        for_w = [x.copy() for x in for_w]
        (for_h,) = observations.sums(W, H, "h")
        both = observations.sums(W, H, "wh")
        for ours, theirs in zip((*both[0], *both[1]), (*for_w, *for_h), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_the_sums_are_the_gradient_of_the_value():
    for case in {(c.likelihood, c.mask): c for c in all_cases() if c.storage == "dense"}.values():
        X, weights, exposure, W, H = _data(case.likelihood, case.mask, seed=4)
        observations = observe(X, weights, exposure, case.likelihood)
        for_w, for_h = observations.sums(W, H, "wh")
        slope_w = np.broadcast_to(for_w.B - for_w.A, W.shape).copy()
        rng = np.random.default_rng(0)
        for _ in range(5):
            way_w, way_h = W * rng.standard_normal(W.shape), H * rng.standard_normal(H.shape)

            def moved(t, way_w=way_w, way_h=way_h, observations=observations, W=W, H=H):
                return observations.value(W + t * way_w, H + t * way_h)

            t = 1e-3
            found = 8.0 * (moved(t) - moved(-t)) - (moved(2 * t) - moved(-2 * t))
            expected = np.sum(slope_w * way_w) + np.sum((for_h.B - for_h.A) * way_h)
            np.testing.assert_allclose(found / (12.0 * t), expected, rtol=1e-7, atol=1e-7)


def test_single_precision_data_give_nearly_the_same_sums_and_the_same_value():
    likelihood = next(x for x in likelihoods() if x.takes_zeros)
    for mask in MASKS:
        for n_components in (FEW, MANY):
            X, weights, exposure, W, H = _data(likelihood, mask, 1, 3 * dense.BLOCK, n_components)
            double = observe(X, weights, exposure, likelihood)
            single = observe(X.astype(np.float32), weights, exposure, likelihood)
            for a, b in zip(single.sums(W, H, "wh"), double.sums(W, H, "wh"), strict=True):
                np.testing.assert_allclose(a.A, b.A, rtol=3e-6, atol=1e-6 * np.abs(b.A).max())
                assert a.A.dtype == np.float64
            # Weights of entries are kept in single precision.
            rtol = 1e-12 if mask in ("none", "steps") else 1e-6
            np.testing.assert_allclose(single.value(W, H), double.value(W, H), rtol=rtol)


@pytest.mark.parametrize("n_components", [2, 5, 9])
def test_sparse_statistics_do_not_depend_on_the_type_of_the_indices(n_components):
    """To the bit; files keep indices in the smallest type."""
    likelihood = next(x for x in likelihoods() if x.takes_zeros)
    X, weights, exposure, W, H = _data(likelihood, "none", 0, 40, n_components)
    rows = sparse.csr_array(X)
    found = []
    for kind in (np.int32, np.int64):
        parts = rows.data, rows.indices.astype(kind), rows.indptr.astype(kind)
        observations = observe(
            sparse.csr_array(parts, shape=rows.shape), weights, exposure, likelihood
        )
        sums = [part.copy() for one in observations.sums(W, H, "wh") for part in one]
        found.append([*sums, observations.value(W, H)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("mask", MASKS)
def test_sparse_statistics_equal_dense_ones(mask, make):
    likelihood = next(x for x in likelihoods() if x.takes_zeros)
    for seed in range(20):
        X, weights, exposure, W, H = _data(likelihood, mask, seed, 7, (FEW, MANY)[seed % 2])
        ours = observe(make(X), weights, exposure, likelihood)
        by_mask = [ours]
        if weights.shape[1] > 1:
            by_mask.append(observe(make(X), sparse.csr_array(weights), exposure, likelihood))
        full = observe(X, weights, exposure, likelihood)
        for observations in by_mask:
            for bound in (bound_in_h, bound_in_w):
                for a, b in zip(bound(observations, W, H), bound(full, W, H), strict=True):
                    scale = 1e-12 * np.abs(b).max()
                    np.testing.assert_allclose(np.broadcast_to(a, b.shape), b, 1e-12, scale)
            for name in ("level", "saturated"):
                np.testing.assert_allclose(
                    getattr(observations, name), getattr(full, name), rtol=1e-12
                )
            np.testing.assert_allclose(observations.value(W, H), full.value(W, H), rtol=1e-12)
            np.testing.assert_array_equal(observations.seen, full.seen)
            np.testing.assert_array_equal(observations.counted, full.counted)


def test_the_majorizer_touches_the_objective_and_lies_above_it():
    for case in {(c.likelihood, c.mask): c for c in all_cases() if c.storage == "dense"}.values():
        X, weights, exposure, W, H = _data(case.likelihood, case.mask, seed=3)
        observations = observe(X, weights, exposure, case.likelihood)
        p, q, r = bound_in_h(observations, W, H)

        def bound(x, p=p, q=q, r=r):
            return np.sum(-p * np.log(x) + q * x + r / x)

        offset = observations.value(W, H) - bound(H)
        rng = np.random.default_rng(0)
        for spread in (0.01, 0.3, 2.0):
            other = H * np.exp(spread * rng.standard_normal(H.shape))
            if case.likelihood.local:
                (sums,) = observations.sums(W, H, "h")
                other = np.where(LocalBound(*sums, H).beyond(other), H, other)
            excess = bound(other) + offset - observations.value(W, other)
            assert excess > 0.0
            if spread == 0.01:  # tight to second order, with the curvature qh + r/h in log h
                assert excess < spread**2 * np.sum(q * H + r / H)


@pytest.mark.parametrize(
    ("chain", "scale"), [(c, s) for s in SCALES for c in chains(s)], ids=lambda x: str(x)
)
def test_chain_value_is_minus_the_log_density(chain, scale):
    for seed in range(5):
        H = np.random.default_rng(seed).gamma(1.5, 4.0, size=(2, 6))
        aux = chain.auxiliary(H, scale)
        expected = chain_value(chain, H, aux, scale)
        np.testing.assert_allclose(chain.value(H, aux, scale), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("chain", "scale"), [(c, s) for s in SCALES for c in chains(s)], ids=lambda x: str(x)
)
def test_minimisers_balance_the_gradient_of_the_value(chain, scale):
    """With a likelihood whose slope at H is minus the chain's, every update stays where it is."""
    H = np.random.default_rng(1).gamma(1.5, 4.0, size=(2, 6))
    gradient = _numerical_gradient(chain, H, scale)
    q = 1.0 + np.abs(gradient)
    likelihood = Majorizer(p=H * (gradient + q), q=q, r=np.zeros_like(H))
    aux = chain.auxiliary(H, scale)
    total = with_chain(likelihood, chain, H, aux, scale)
    found = minimisers(chain, H, aux, total, slice(None), scale)
    np.testing.assert_allclose(found, H, rtol=1e-7)


def _numerical_gradient(chain, H, scale):
    """Fourth-order central differences of the value, auxiliary variables minimised out."""
    gradient = np.empty_like(H)
    for index in np.ndindex(H.shape):
        values = []
        step = 1e-4 * H[index]
        for factor in (-2, -1, 1, 2):
            moved = H.copy()
            moved[index] += factor * step
            values.append(chain.value(moved, chain.auxiliary(moved, scale), scale))
        low2, low1, high1, high2 = values
        gradient[index] = (8.0 * (high1 - low1) - (high2 - low2)) / (12.0 * step)
    return gradient


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_counts_are_not_copied_where_whole_steps_are_missing(dtype):
    likelihood = next(x for x in likelihoods() if x.takes_zeros)
    X = np.random.default_rng(0).poisson(3.0, (9, 7)).astype(dtype)
    X[4] = np.nan  # never looked at
    weights = np.ones((9, 1))
    weights[4] = 0.0
    observations = observe(X, weights, np.arange(1.0, 10.0), likelihood)
    assert np.shares_memory(observations._V, X)
    W, H = np.full((7, 2), 1 / 7), np.full((2, 9), 3.0)
    seen = np.delete(np.arange(9), 4)
    part = observe(X[seen], weights[seen], np.arange(1.0, 10.0)[seen], likelihood)
    assert observations.value(W, H) == pytest.approx(part.value(W, H[:, seen]), rel=1e-12)
    assert observations.saturated == pytest.approx(part.saturated, rel=1e-12)


def test_sparse_counts_are_not_copied_where_nothing_is_missing():
    likelihood = next(x for x in likelihoods() if x.takes_zeros)
    X = sparse.csr_array(np.random.default_rng(0).poisson(0.5, (9, 7)).astype(float))
    observations = observe(X, np.ones((9, 1)), np.ones(9), likelihood)
    assert np.shares_memory(observations._by_step.counts, X.data)
