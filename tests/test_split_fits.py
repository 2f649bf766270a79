"""Fits of Dask arrays and folders of shards, on a cluster or without one."""

import os
import sys
import warnings

import dask.array as da
import distributed
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from clusters import a_client, without_a_client  # noqa: F401
from shard_folders import sharded
from temporalnmf import TemporalNMF, load
from temporalnmf.cluster import block_data
from temporalnmf.cluster import sources as splitting
from temporalnmf.shards import Shards, write_shards
from temporalnmf.timeline import timeline_of

N, F, CHUNK = 24, 50, 13
OPTIONS = {
    "n_components": 3, "likelihood": "poisson", "solver": "mm", "random_state": 0,
    "max_iter": 20, "tol": 0.0,
}  # fmt: skip


def counts(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.7, 2.0, (N, 3)) @ rng.gamma(0.3, 3.0, (3, F))).astype(float)
    X[:, 4] = 0.0
    return X


def with_gaps():
    X = counts()
    X[7] = np.nan
    X[3, 5] = X[9, 30] = np.nan
    return X


def fit(X, mask=None, exposure=None, **options):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return TemporalNMF(**{**OPTIONS, **options}).fit(X, mask=mask, exposure=exposure)


@pytest.fixture(params=["alone", pytest.param("client", marks=pytest.mark.long)])
def anywhere(request, monkeypatch):
    """Without a cluster, and on one."""
    client = request.getfixturevalue("client") if request.param == "client" else None
    monkeypatch.setattr(splitting, "current_client", lambda: client)


def close(found, expected, rtol=1e-12):
    """Two models, up to rounding."""
    scale = np.abs(expected.history_).max()
    assert abs(found.objective_ - expected.objective_) <= rtol * scale
    np.testing.assert_allclose(found.history_, expected.history_, rtol=0.0, atol=rtol * scale)
    np.testing.assert_allclose(
        found.components_, expected.components_, rtol=1e3 * rtol, atol=1e3 * rtol
    )
    np.testing.assert_allclose(
        found.activations_, expected.activations_, rtol=1e3 * rtol,
        atol=1e3 * rtol * expected.activations_.max(),
    )  # fmt: skip
    np.testing.assert_array_equal(found.observed_, expected.observed_)
    assert found.n_features_in_ == expected.n_features_in_


def same(found, expected):
    """Two models, to the last bit."""
    for name in ("components_", "activations_", "history_", "stability_", "objective_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def thin(X, chunks):
    """A Dask array with sparse chunks."""
    return da.from_array(X, chunks=chunks).map_blocks(sparse.csr_array, dtype=X.dtype)


RNG = np.random.default_rng(5)
ENTRIES = RNG.random((N, F)) < 0.9
WEIGHTS = np.where(ENTRIES, RNG.uniform(0.5, 2.0, (N, F)), 0.0)
STEPS = np.arange(N) != 6
EXPOSURE = RNG.uniform(0.5, 2.0, N)
# Data, mask and exposure in blocks; the same in memory.
KINDS = {
    "gaps": lambda X: (da.from_array(with_gaps(), chunks=(N, CHUNK)), None, None, with_gaps()),
    "one chunk of features": lambda X: (da.from_array(X, chunks=(N, F)), None, None, X),
    "chunks in both directions": lambda X: (da.from_array(X, chunks=(7, CHUNK)), None, None, X),
    "chunks in time": lambda X: (da.from_array(X, chunks=(7, F)), None, None, X),
    "a chunk per feature": lambda X: (da.from_array(X, chunks=(N, 1)), None, None, X),
    "integers": lambda X: (da.from_array(X.astype(int), chunks=(N, CHUNK)), None, None, X),
    "sparse": lambda X: (thin(X, (N, CHUNK)), None, None, X),
    "sparse in both directions": lambda X: (thin(X, (7, CHUNK)), None, None, X),
    "steps": lambda X: (da.from_array(X, chunks=(N, CHUNK)), STEPS, None, X),
    "entries": lambda X: (da.from_array(X, chunks=(N, CHUNK)), ENTRIES, None, X),
    "weights": lambda X: (da.from_array(X, chunks=(N, CHUNK)), WEIGHTS, None, X),
    "sparse entries": lambda X: (thin(X, (N, CHUNK)), sparse.csr_array(WEIGHTS), None, X),
    "sparse mask of dense data": lambda X: (
        da.from_array(X, chunks=(N, CHUNK)), sparse.csr_array(WEIGHTS), None, X,
    ),
    "exposure": lambda X: (da.from_array(X, chunks=(N, CHUNK)), STEPS, EXPOSURE, X),
    "dask mask": lambda X: (
        da.from_array(X, chunks=(N, CHUNK)), da.from_array(WEIGHTS, chunks=(5, 11)), None, X,
    ),
    "dask mask of sparse data": lambda X: (
        thin(X, (N, CHUNK)), da.from_array(ENTRIES, chunks=(N, CHUNK)), None, X,
    ),
}  # fmt: skip


def memory_mask(mask):
    return mask.compute() if hasattr(mask, "dask") else mask


@pytest.mark.parametrize("kind", KINDS)
def test_dask_arrays_are_fitted_as_arrays_in_memory(kind, anywhere):
    X, mask, exposure, whole = KINDS[kind](counts())
    if (kind.startswith("sparse") and "dense" not in kind) or kind.endswith("sparse data"):
        whole = sparse.csr_array(whole)
    close(fit(X, mask, exposure), fit(whole, memory_mask(mask), exposure))


@pytest.mark.quick("sparse")
@pytest.mark.parametrize(
    "kind",
    [
        "gaps",
        "sparse",
        *(pytest.param(k, marks=pytest.mark.long) for k in ("weights", "exposure", "dask mask")),
    ],
)
def test_a_cluster_gives_the_same_bits_as_none(kind, client, monkeypatch):
    X, mask, exposure, _ = KINDS[kind](counts())
    models = []
    for found in (None, client):
        monkeypatch.setattr(splitting, "current_client", lambda found=found: found)
        models.append(fit(X, mask, exposure, solver="accelerated", n_init=2))
    same(*models)


def test_the_bits_do_not_depend_on_chunks_in_time(alone):
    X = with_gaps()
    one = fit(da.from_array(X, chunks=(N, CHUNK)), solver="accelerated")
    same(fit(da.from_array(X, chunks=(5, CHUNK)), solver="accelerated"), one)


def test_split_fits_of_single_precision_are_those_in_memory(anywhere):
    X = (1.1 * counts()).astype(np.float32)
    expected = fit(X)
    found = fit(da.from_array(X, chunks=(N, CHUNK)))
    close(found, expected, rtol=1e-6)
    close(fit(thin(X, (N, CHUNK))), fit(sparse.csr_array(X)))


def test_accelerated_ends_where_it_does_in_memory(anywhere):
    X = counts()
    options = {"solver": "accelerated", "max_iter": 2000, "tol": 1e-9, "chain": "rate"}
    expected, found = (fit(x, **options) for x in (X, da.from_array(X, chunks=(N, CHUNK))))
    assert found.converged_
    assert abs(found.objective_ - expected.objective_) <= 1e-6 * abs(expected.objective_)


# Shards


@pytest.mark.parametrize(
    "kind", ["plain", "gaps", "steps", "entries", "sparse entries", "exposure"]
)
def test_shards_are_fitted_as_data_in_memory(kind, anywhere, tmp_path):
    X = with_gaps() if kind == "gaps" else counts()
    mask = {"steps": STEPS, "entries": ENTRIES, "sparse entries": sparse.csr_array(WEIGHTS)}.get(
        kind
    )
    exposure = EXPOSURE if kind == "exposure" else None
    path = sharded(tmp_path / "s", X)
    whole = X if kind == "gaps" else sparse.csr_array(X)
    expected = fit(whole, mask, exposure)
    close(fit(path, mask, exposure), expected)
    model = fit(Shards.open(path), mask, exposure)
    close(model, expected)
    assert model.feature_labels()[:2].tolist() == ["w0", "w1"]


@pytest.mark.parametrize("likelihood", ["negative_binomial_2", "tweedie"])
def test_shards_are_refused_if_zeros_are_not_linear(likelihood, tmp_path):
    X = np.random.default_rng(0).poisson(3.0, size=(6, 5))
    with pytest.raises(ValueError, match=rf"{likelihood}.*Remedy: give a Dask array"):
        TemporalNMF(2, likelihood=likelihood).fit(sharded(tmp_path / "s", X))


def test_positive_values_in_shards_are_refused(tmp_path):
    """Shards are sparse. The formulas of counts would fit something else without a word."""
    X = np.random.default_rng(0).exponential(3.0, size=(6, 5))
    with pytest.raises(ValueError, match="outside the domain of the exponential likelihood"):
        TemporalNMF(2, likelihood="exponential").fit(sharded(tmp_path / "s", X))


def test_a_mask_goes_with_the_steps_that_a_folder_says_are_missing(alone, tmp_path):
    X = with_gaps()
    for mask in (ENTRIES, sparse.csr_array(ENTRIES.astype(float)), STEPS):
        dense = mask.toarray() if sparse.issparse(mask) else mask
        path = sharded(tmp_path / f"s{len(os.listdir(tmp_path))}", X)
        close(fit(path, mask), fit(X, dense))


@pytest.mark.long
@pytest.mark.parametrize("solver", ["mm", "accelerated"])
@pytest.mark.parametrize("gaps", [False, True])
def test_data_that_are_read_for_every_pass_give_the_same_bits(
    gaps, solver, anywhere, tmp_path, monkeypatch
):
    X = with_gaps() if gaps else counts()
    path = sharded(tmp_path / "s", X)
    resident = fit(path, solver=solver)
    loaded = []
    monkeypatch.setattr(splitting, "_SHARE", 0.0)
    sysconf = os.sysconf
    sizes = {"SC_PHYS_PAGES": 0}
    monkeypatch.setattr(
        os, "sysconf", lambda name: sizes.get(name) if name in sizes else sysconf(name)
    )
    read = block_data.Streamed.sums
    monkeypatch.setattr(
        block_data.Streamed, "sums", lambda self, *given: loaded.append(1) or read(self, *given)
    )
    same(fit(path, solver=solver), resident)
    if splitting.current_client() is None:
        assert loaded


# Afterwards


@pytest.mark.parametrize("source", ["dask", "shards"])
def test_a_model_of_split_data_does_what_one_of_an_array_does(source, anywhere, tmp_path):
    X = with_gaps()
    given = da.from_array(X, chunks=(N, CHUNK))
    if source == "shards":
        given = sharded(tmp_path / "s", X)
    options = {"chain": "rate", "intervals": "model"}
    expected, model = fit(X, **options), fit(given, **options)
    one, other = model.forecast(3), expected.forecast(3)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-8)
    for a, b in zip(one.interval(0.9), other.interval(0.9), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    activations = model.transform(given)
    np.testing.assert_allclose(activations, expected.transform(X), rtol=1e-8, atol=1e-9)
    here = X
    if source == "shards":
        here = pd.DataFrame(X, columns=model.feature_names_in_)
    np.testing.assert_allclose(activations, model.transform(here), rtol=1e-8, atol=1e-9)
    following = model.transform(given, continue_chain=True)
    np.testing.assert_allclose(
        following, expected.transform(X, continue_chain=True), rtol=1e-8, atol=1e-9
    )
    path = model.save(tmp_path / "model.npz")
    again = load(path)
    same_forecast = again.forecast(3)
    np.testing.assert_array_equal(same_forecast.values, one.values)
    np.testing.assert_array_equal(again.components_, model.components_)
    np.testing.assert_array_equal(again.transform(here), model.transform(here))


def test_methods_that_need_the_data_in_memory_say_what_to_do(alone):
    X = counts()
    given = da.from_array(X, chunks=(N, CHUNK))
    model = fit(given, chain="rate")
    # What is known of the fitted steps was found out before the data were gone.
    smooth = fit(X, chain="rate").smooth()
    np.testing.assert_allclose(model.smooth().values, smooth.values, rtol=1e-9)
    for call in (lambda: model.append(X[:2]), lambda: model.calibrate(3)):
        with pytest.raises(ValueError, match=r"never in memory \(Dask, shards\)\. Fit again"):
            call()
    for method in (model.append, model.smooth, model.score, model.impute):
        with pytest.raises(ValueError, match=r"not in memory, .*Give the steps you need"):
            method(given)


def test_several_starts_of_split_data_are_those_in_memory(anywhere):
    X = counts()
    expected = fit(X, n_init=3)
    found = fit(da.from_array(X, chunks=(N, CHUNK)), n_init=3)
    close(found, expected)
    np.testing.assert_allclose(found.stability_, expected.stability_, rtol=1e-9)


def test_given_and_warm_starts_of_split_data_are_those_in_memory(anywhere):
    X = counts()
    rng = np.random.default_rng(0)
    init = rng.dirichlet(np.ones(F), size=3), rng.gamma(2.0, 5.0, size=(N, 3))
    given = da.from_array(X, chunks=(N, CHUNK))
    close(fit(given, init=init), fit(X, init=init))
    models = [TemporalNMF(**OPTIONS, warm_start=True) for _ in range(2)]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for _ in range(2):
            models[0].fit(given)
            models[1].fit(X)
    close(*models)


# What is refused


@pytest.mark.parametrize(
    ("kind", "value", "chunks"),
    [("dense", -1.0, (N, CHUNK)), ("dense", np.inf, (5, CHUNK)), ("dense", -1.0, (N, F)),
     ("sparse", -1.0, (N, CHUNK))],
)  # fmt: skip
def test_a_wrong_value_is_named_by_its_place_in_the_whole(value, kind, chunks, anywhere):
    X = counts()
    X[11, 41] = value
    given = thin(X, chunks) if kind == "sparse" else da.from_array(X, chunks=chunks)
    model = TemporalNMF(**OPTIONS)
    with pytest.raises(ValueError, match="row 11, column 41 "):
        model.fit(given)
    assert not hasattr(model, "components_")
    assert not hasattr(model, "n_features_in_")


def test_chunks_of_unknown_size_are_refused(alone):
    X = da.from_array(counts(), chunks=(7, F))
    unknown = X[X[:, 0] >= 0]
    with pytest.raises(ValueError, match=r"unknown size.*compute_chunk_sizes"):
        fit(unknown)
    unknown.compute_chunk_sizes()
    close(fit(unknown), fit(counts()))


def test_collections_of_dask_that_are_no_matrix_are_refused(alone):
    import dask.bag

    dataframe = pytest.importorskip("dask.dataframe")

    for wrong in (
        da.from_array(counts()[0]),
        da.from_array(counts()[None]),
        dask.bag.from_sequence([1, 2]),
        dataframe.from_pandas(pd.DataFrame(counts()), npartitions=2),
    ):
        with pytest.raises(ValueError, match=r"array with two dimensions.*to_dask_array"):
            fit(wrong)


@pytest.mark.parametrize(
    "mask",
    [np.ones((N, F - 1)), np.ones(N + 1), da.ones((N, F + 1)), da.ones(N + 1),
     sparse.csr_array(np.ones((N - 1, F)))],
    ids=["entries", "steps", "dask", "dask steps", "sparse"],
)  # fmt: skip
def test_masks_of_another_shape_are_refused(mask, alone, tmp_path):
    with pytest.raises(ValueError, match=rf"mask has shape .*expected.*\({N}, {F}\)"):
        fit(da.from_array(counts(), chunks=(N, CHUNK)), mask)
    if not hasattr(mask, "dask"):
        with pytest.raises(ValueError, match=rf"mask has shape .*expected.*\({N}, {F}\)"):
            fit(sharded(tmp_path / "s", counts()), mask)


@pytest.mark.parametrize("wrong", [-1.0, np.nan])
def test_masks_with_wrong_values_are_refused(wrong, anywhere):
    mask = np.ones((N, F))
    mask[3, 40] = wrong
    X = da.from_array(counts(), chunks=(N, CHUNK))
    for given in (mask, da.from_array(mask, chunks=(N, CHUNK))):
        with pytest.raises(ValueError, match=f"mask contains {wrong}"):
            fit(X, given)


def test_another_number_of_features_than_in_the_fit_is_refused(anywhere):
    model = fit(da.from_array(counts(), chunks=(N, CHUNK)))
    with pytest.raises(ValueError, match=f"X has {F - 1} features, .* had {F}"):
        model.transform(da.from_array(counts()[:, 1:], chunks=(N, CHUNK)))


@pytest.mark.parametrize("fitted", ["shards", "frame"])
def test_shards_with_other_names_than_those_of_the_fit_are_refused(fitted, alone, tmp_path):
    X, names = counts(), [f"w{i}" for i in range(F)]
    given = sharded(tmp_path / "s", X)
    model = fit(given if fitted == "shards" else pd.DataFrame(X, columns=names))
    moved = [names[1], names[0], *names[2:]]
    line = timeline_of(np.arange(N))
    other = write_shards(tmp_path / "moved", X[:, [1, 0, *range(2, F)]], names=moved, timeline=line)
    with pytest.raises(ValueError, match=r"^X has other .* 'w1' in the place of 'w0'\. Give the"):
        model.transform(other)
    assert model.transform(given).shape == (N, 3)
    assert fit(X).transform(other).shape == (N, 3)  # an array has no names


@pytest.mark.parametrize("X", [np.zeros((N, F)), np.full((N, F), np.nan)], ids=["zeros", "nothing"])
def test_data_without_a_positive_value_are_refused(X, anywhere):
    with pytest.raises(ValueError, match=r"zero wherever|no observed entry"):
        fit(da.from_array(X, chunks=(N, CHUNK)))


def test_costly_chunks_in_time_are_warned_about(alone, monkeypatch):
    X = da.from_array(counts(), chunks=(7, CHUNK))
    fit(X)  # small: no word
    monkeypatch.setattr(splitting, "_COSTLY", X.nbytes - 1)
    with pytest.warns(UserWarning, match=r"4 chunks in time.*rechunk\(\(-1, 13\)\)") as found:
        fit(X)
    assert found[0].filename == __file__
    fit(X.rechunk((-1, CHUNK)))


# Who is asked


def test_the_current_client_is_found(client, monkeypatch):
    assert splitting.current_client() is distributed.default_client()
    with client.as_current():
        assert splitting.current_client() is client

    def none():
        raise ValueError("No clients found")

    with monkeypatch.context() as patch:
        patch.setattr(distributed, "default_client", none)
        assert splitting.current_client() is None
    monkeypatch.delitem(sys.modules, "distributed")
    assert splitting.current_client() is None


@pytest.mark.long
def test_a_fit_asks_the_workers_of_the_current_client(client, monkeypatch):
    asked = []
    from temporalnmf.cluster.dask import DaskExecutor

    ask = DaskExecutor.ask
    monkeypatch.setattr(DaskExecutor, "ask", lambda self, q: asked.append(q.name) or ask(self, q))
    X = da.from_array(counts(), chunks=(N, CHUNK))
    with client.as_current():
        fit(X)
    assert "prepare" in asked
