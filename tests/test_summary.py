"""A fitted model in a few words and numbers."""

import numpy as np
import pytest

from temporalnmf import TemporalNMF
from temporalnmf.datasets import load_sotu
from temporalnmf.metrics import is_error, kl_error
from temporalnmf.summary import Alike, alike, component_summary, step_errors

rng = np.random.default_rng(0)
X = rng.poisson(rng.gamma(2.0, 4.0, size=(20, 5))).astype(float)


def test_characteristic_features_are_those_the_others_have_less_of():
    """By hand: 'the' has the most weight everywhere, 'war' and 'peace' are told by it."""
    model = TemporalNMF(2, random_state=0).fit(X)
    model.components_ = np.array([[0.3, 0.25, 0.0, 0.24, 0.21], [0.3, 0.0, 0.25, 0.24, 0.21]])
    model.activations_ = np.column_stack([np.linspace(9, 1, 20), np.linspace(1, 6, 20)])
    model.feature_names_in_ = np.array(["the", "war", "peace", "of", "and"], dtype=object)
    first, second = component_summary(model, n_features=5)
    assert first.top[0] == ("war", 0.25)
    assert second.top[0] == ("peace", 0.25)
    assert first.name == "war, the, of"
    assert [name for name, _ in first.top][-1] == "peace"  # not at all in it, so last
    assert (first.peak, second.peak) == ("0", "19")
    model.observed_ = np.arange(20) < 19
    assert component_summary(model)[1].peak == "18"  # what was filled in is no peak
    assert first.share == pytest.approx(100 / 170)
    assert first.stability is None


def test_components_that_are_nearly_the_same_are_named():
    model = TemporalNMF(3, random_state=0).fit(X)
    model.components_ = np.array(
        [[0.5, 0.5, 0.0, 0.0, 0.0], [0.0, 0.2, 0.8, 0.0, 0.0], [0.5, 0.45, 0.05, 0.0, 0.0]]
    )
    (pair,) = alike(model)
    cosine = 0.475 / np.sqrt(0.5 * 0.455)
    assert pair == Alike(1, 3, pytest.approx(cosine))
    assert "Components 1 and 3 are nearly the same (cosine 1.00)" in str(pair)
    model.components_ = np.eye(3, 5)
    assert alike(model) == []


def test_one_component_is_described_by_its_weights():
    one = component_summary(TemporalNMF(1, random_state=0).fit(X), n_features=5)[0]
    weights = [weight for _, weight in one.top]
    assert weights == sorted(weights, reverse=True)
    assert one.share == 1.0


@pytest.mark.long
def test_components_of_the_state_of_the_union_are_periods_of_history():
    """What the demonstration shows: early republic, Mexico, departments, cold war, today."""
    model = TemporalNMF(8, random_state=0, n_init=2).fit(load_sotu(as_frame=True).data)
    found = component_summary(model)
    peak = {word: int(one.peak) for one in found for word, _ in one.top}
    assert 1800 < peak["tribes"] < 1840
    assert 1840 < peak["mexico"] < 1860
    assert 1875 < peak["department"] < 1900
    assert 1945 < peak["soviet"] < 1990
    assert peak["tonight"] > 1990


@pytest.mark.parametrize(
    ("likelihood", "divergence"), [("poisson", kl_error), ("exponential", is_error)]
)
def test_errors_of_steps_add_up_to_the_divergence_of_the_fit(likelihood, divergence):
    data = X + 1.0
    data[3] = np.nan
    data[5, :2] = np.nan
    exposure = np.linspace(1.0, 2.0, 20)
    model = TemporalNMF(2, likelihood=likelihood, random_state=0).fit(data, exposure=exposure)
    errors = step_errors(model)
    n_seen = (~np.isnan(data)).sum(axis=1)
    assert np.nansum(errors.error * n_seen) == pytest.approx(model.reconstruction_err_, rel=1e-9)
    assert np.isnan(errors.error[3])
    fit = exposure[5] * (model.activations_[5] @ model.components_)
    assert errors.expected[5] == pytest.approx(fit[2:].sum())
    assert errors.observed[5] == np.nansum(data[5])
    assert errors.error[5] == pytest.approx(divergence(data[5, 2:], fit[2:]) / 3)


def test_a_model_saved_without_data_has_no_step_errors(tmp_path):
    from temporalnmf import load

    model = TemporalNMF(2, random_state=0).fit(X)
    assert step_errors(load(model.save(tmp_path / "m.npz", data=False))) is None
