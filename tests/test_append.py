"""New steps after a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from series import FRAME, X, fitted
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import Rate
from temporalnmf.forecasting import appending
from temporalnmf.summary import step_errors


def one_by_one(model, data, first, **given):
    for n in range(first, data.shape[0]):
        model.append(data[n : n + 1], **{name: each[n : n + 1] for name, each in given.items()})
    return model


def until(data, first, chain="rate", **given):
    """A model of the first steps; `given` are masks or exposures and parameters."""
    known = {name: given.pop(name)[:first] for name in ("mask", "exposure") if name in given}
    given = {"likelihood": "poisson", "random_state": 0, **given}
    return TemporalNMF(2, chain=chain, **given).fit(data[:first], **known)


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, lambda x: x], ids=["array", "csr", "frame"]
)
def test_append_infers_all_steps_at_the_components_of_the_fit(kind):
    data = FRAME if kind(FRAME) is FRAME else X
    model = fitted(data=kind(data[:30]))
    components, chain = model.components_.copy(), model.chain_
    whole = model.transform(kind(data))
    assert model.append(kind(data[30:])) is model
    np.testing.assert_array_equal(model.activations_, whole)
    np.testing.assert_array_equal(model.components_, components)
    assert model.chain_ is chain
    assert len(model.times_) == len(model.observed_) == len(model.exposure_) == 40
    if kind(FRAME) is FRAME:
        np.testing.assert_array_equal(model.times_, fitted(data=FRAME).times_)
    # What follows starts from the new last state.
    np.testing.assert_array_equal(model.forecast(1).activations[0], model.activations_[-1])
    assert model.smooth().interval(of="components")[0].shape == (40, 2)


@pytest.mark.parametrize("chain", registry.CHAINS)
def test_steps_appended_one_by_one_have_the_activations_of_all_at_once(chain):
    """For every chain, with missing steps inside and at the end."""
    data = X.copy()
    data[[12, 33, 38, 39]] = np.nan
    separate = one_by_one(until(data, 30, chain), data, 30)
    together = until(data, 30, chain).append(data[30:])
    np.testing.assert_array_equal(separate.activations_, together.activations_)
    np.testing.assert_array_equal(separate.transform(data), together.activations_)
    ahead = [model.forecast(2, n_samples=50) for model in (separate, together)]
    np.testing.assert_array_equal(ahead[0].values, ahead[1].values)
    if chain != "none":  # it has no law to draw from
        np.testing.assert_array_equal(ahead[0].samples(), ahead[1].samples())


SEEN = np.random.default_rng(1).random(X.shape) < 0.7
SIZE = np.linspace(0.5, 3.0, 40)


@pytest.mark.parametrize(
    ("store", "given"),
    [
        (sparse.csr_array, {"mask": SEEN}),
        (np.asarray, {"mask": SEEN, "exposure": SIZE}),
        (np.asarray, {"chain": Rate(3000.0), "exposure": SIZE}),
        (np.asarray, {"chain": "bgar", "point": "mode", "mask": np.arange(40) < 37}),
        (
            np.asarray,
            {
                "chain": Rate(300.0),
                "likelihood": "exponential",
                "map_scale": "linear",
                "solver": "mm",
                "tol": 1e-5,
            },
        ),
    ],
    ids=["csr, mask", "mask, exposure", "stiff", "mode", "exponential"],
)
def test_steps_appended_one_by_one_are_those_of_all_at_once_for_any_options(store, given):
    data = store(X + 1.0)
    model = until(data, 30, **given)
    new = {name: given[name] for name in ("mask", "exposure") if name in given}
    whole = model.transform(data, **new)
    one_by_one(model, data, 30, **new)
    np.testing.assert_array_equal(model.activations_, whole)


def test_new_data_that_contradict_the_past_change_its_activations():
    """A stiff chain has to share a jump among all steps, those before it included."""
    data = np.vstack([X[:30], 2.0 * X[30:]])
    model = until(data, 30, Rate(3000.0))
    before = model.activations_[:30].sum(axis=1)
    after = one_by_one(model, data, 30).activations_[:30].sum(axis=1)
    assert after[-1] > 1.2 * before[-1]
    # The mode: the gradient in log h vanishes, the data's part of it against the chain's.
    H = model.activations_
    rate = H @ model.components_
    slope = H * ((1.0 - data / rate) @ model.components_.T)
    r = 3000.0 * (H[1:] / H[:-1] - 1.0)
    slope[1:] += r
    slope[:-1] -= r
    assert abs(slope).max() < 1e-6, abs(slope).max()


def test_append_updates_the_reconstruction_error_and_keeps_the_history_of_the_fit():
    model = fitted(data=X[:30] + 1.0, likelihood="exponential")
    told = model.objective_, model.history_, model.n_iter_
    model.append(X[30:] + 1.0)
    found = step_errors(model).error.sum() * X.shape[1]
    assert model.reconstruction_err_ == pytest.approx(found, rel=1e-9)
    assert (model.objective_, model.history_, model.n_iter_) == told


def test_an_append_that_fails_leaves_the_model_unchanged(monkeypatch):
    model = fitted(data=X[:30])
    before = dict(model.__dict__)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(appending, "divergence_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.append(X[30:])
    assert all(model.__dict__[name] is value for name, value in before.items())


def test_append_after_a_break_has_missing_steps_between():
    model = fitted(data=FRAME[:30])
    model.append(FRAME[33:])
    assert len(model.times_) == 40
    assert model.observed_.tolist() == [True] * 30 + [False] * 3 + [True] * 7
    gap = model.activations_[30:33]
    assert np.isfinite(gap).all()
    assert (gap > 0).all()


def test_append_with_update_components_is_a_refit_that_keeps_their_order():
    model = fitted(data=X[:30])
    before = model.components_.copy()
    model.append(X[30:], update_components=True)
    alone = fitted(data=X, init=(before, np.full((40, 2), X.sum() / 80)), tol=1e-9, max_iter=5000)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-4)
    likeness = np.corrcoef(np.vstack([before, model.components_]))[:2, 2:]
    assert (np.diag(likeness) > 0.95).all()
    assert (model.components_ != before).any()


def test_sparse_may_follow_dense_and_dense_sparse():
    late = X[30:].copy()
    late[4] = np.nan
    whole = fitted(data=X[:30]).append(late).activations_
    thin = fitted(data=sparse.csr_array(X[:30])).append(late)
    np.testing.assert_allclose(thin.activations_, whole, rtol=1e-3)
    assert not np.isnan(thin._series.X.data).any()
    thick = fitted(data=X[:30]).append(sparse.csr_array(X[30:]))
    np.testing.assert_array_equal(
        thick.activations_, fitted(data=X[:30]).append(X[30:]).activations_
    )


def test_append_keeps_the_calibration_of_the_components_it_keeps():
    model = fitted(data=X[:30]).calibrate(6)
    found = model.calibration_
    assert model.append(X[30:35]).calibration_ is found
    assert model.append(X[35:], update_components=True).calibration_ is None


def test_a_whole_number_may_follow_times_in_halves():
    halves = FRAME.set_axis(np.arange(40) * 0.5)
    model = fitted(data=halves[:30]).append(halves[30:31])
    assert model.times_[-1] == 15.0


def test_append_to_named_steps_refuses_arrays_and_known_names():
    named = pd.DataFrame(X, index=[f"step {n}" for n in range(40)])
    with pytest.raises(ValueError, match=r"no times.*up to 'step 29' are not evenly spaced"):
        fitted(data=named[:30]).append(X[30:])
    with pytest.raises(ValueError, match=r"time 'step 29', which was fitted already"):
        fitted(data=named[:30]).append(named[29:])


def test_data_that_were_changed_after_the_fit_are_not_used():
    data = X.copy()
    model = fitted(data=data)
    before = model.forecast(1).samples()
    data[:] = 0.0
    np.testing.assert_array_equal(model.forecast(1).samples(), before)  # known already
    fresh = fitted(data=(data := X.copy()))
    data[3, 3] += 1.0
    for ask in (lambda: fresh.forecast(1), lambda: fresh.append(X), fresh.calibrate):
        with pytest.raises(ValueError, match=r"changed after the fit.*X.copy\(\)"):
            ask()


def test_append_refuses_what_does_not_follow_and_stays_as_it_was():
    model = fitted(data=FRAME[:30])
    before = model.activations_.copy()
    with pytest.raises(ValueError, match=r"starts at 2003-06.*end at 2003-06.*later steps only"):
        model.append(FRAME[29:])
    odd = FRAME[30:].set_axis(FRAME.index[30:] + pd.Timedelta(days=14))
    with pytest.raises(ValueError, match=r"not on the grid.*every month"):
        model.append(odd)
    with pytest.raises(ValueError, match="times of one kind"):
        model.append(FRAME[30:].set_axis([f"step {i}" for i in range(10)]))
    np.testing.assert_array_equal(model.activations_, before)
    assert len(model.times_) == 30
