"""New steps after a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from series import FRAME, X, fitted


@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, lambda x: x], ids=["array", "csr", "frame"]
)
def test_append_continues_the_chain_and_leaves_the_past_alone(kind):
    data = FRAME if kind(FRAME) is FRAME else X
    model = fitted(data=kind(data[:30]))
    before, components = model.activations_.copy(), model.components_.copy()
    new = model.transform(kind(data[30:]), continue_chain=True)
    assert model.append(kind(data[30:])) is model
    np.testing.assert_array_equal(model.activations_[:30], before)
    np.testing.assert_array_equal(model.activations_[30:], new)
    np.testing.assert_array_equal(model.components_, components)
    assert len(model.times_) == len(model.observed_) == len(model.exposure_) == 40
    if kind(FRAME) is FRAME:
        np.testing.assert_array_equal(model.times_, fitted(data=FRAME).times_)
    # What follows starts from the new last state.
    np.testing.assert_array_equal(model.forecast(1).activations[0], model.activations_[-1])
    assert model.smooth().interval(of="components")[0].shape == (40, 2)


def test_append_after_a_break_has_missing_steps_between():
    model = fitted(data=FRAME[:30])
    model.append(FRAME[33:])
    assert len(model.times_) == 40
    assert model.observed_.tolist() == [True] * 30 + [False] * 3 + [True] * 7
    gap = model.activations_[30:33]
    assert np.isfinite(gap).all()
    assert (gap > 0).all()


def test_append_with_update_is_a_refit_that_keeps_the_places_of_components():
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


def test_numbers_that_happen_to_be_whole_follow_halves():
    halves = FRAME.set_axis(np.arange(40) * 0.5)
    model = fitted(data=halves[:30]).append(halves[30:31])
    assert model.times_[-1] == 15.0


def test_append_of_an_array_needs_to_know_what_follows():
    named = pd.DataFrame(X, index=[f"step {n}" for n in range(40)])
    with pytest.raises(ValueError, match=r"no times.*what follows 'step 29' is not known"):
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
    with pytest.raises(ValueError, match=r"starts at 2003-06.*go on to 2003-06.*later steps only"):
        model.append(FRAME[29:])
    odd = FRAME[30:].set_axis(FRAME.index[30:] + pd.Timedelta(days=14))
    with pytest.raises(ValueError, match=r"not on the grid.*every month"):
        model.append(odd)
    with pytest.raises(ValueError, match="times of one kind"):
        model.append(FRAME[30:].set_axis([f"step {i}" for i in range(10)]))
    np.testing.assert_array_equal(model.activations_, before)
    assert len(model.times_) == 30
