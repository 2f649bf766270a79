"""likelihood="auto": counts that clump get a negative binomial likelihood, other data Poisson."""

import numpy as np
import pytest
from scipy import sparse

from stops import StopAt, StopError
from temporalnmf import TemporalNMF, load
from temporalnmf.likelihoods import NegativeBinomial, Poisson
from temporalnmf.solvers import Checkpoint, Gibbs


def counts(dispersion, n_steps=60, n_features=25, level=500.0, seed=0):
    """Counts of three components that wander, with variance (1 + dispersion) times the mean."""
    rng = np.random.default_rng(seed)
    H = level * np.exp(np.cumsum(rng.normal(0.0, 0.06, (n_steps, 3)), axis=0))
    means = H @ rng.dirichlet(np.full(n_features, 0.3), 3)
    law = Poisson() if dispersion == 0.0 else NegativeBinomial(dispersion)
    return law.sample(means, rng).astype(float), means


def divergence(X, means):
    means = np.maximum(means, 1e-9)
    return np.sum(X * np.log(np.maximum(X, 1e-300) / means) - X + means)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])  # of seed 3, the estimate of d is above 0.1
def test_poisson_counts_have_the_bits_of_the_poisson_fit(seed):
    X, _ = counts(0.0, seed=seed)
    auto, poisson = (
        TemporalNMF(3, likelihood=law, random_state=0).fit(X) for law in ("auto", "poisson")
    )
    assert auto.likelihood_.name == "poisson"
    np.testing.assert_array_equal(auto.components_, poisson.components_)
    np.testing.assert_array_equal(auto.activations_, poisson.activations_)
    assert auto.objective_ == poisson.objective_


@pytest.mark.parametrize("dispersion", [0.5, 3.0, 20.0])
def test_the_dispersion_of_counts_that_clump_is_found(dispersion):
    """Within 15 %: 1,500 entries determine it to about 6 %, less a few for the fitted means."""
    X, means = counts(dispersion)
    model = TemporalNMF(3, random_state=0).fit(X)
    assert model.likelihood_.name == "negative_binomial"
    assert model.likelihood_.dispersion == pytest.approx(dispersion, rel=0.15)
    fitted = model.activations_ @ model.components_
    poisson = TemporalNMF(3, likelihood="poisson", random_state=0).fit(X)
    of_poisson = divergence(means, poisson.activations_ @ poisson.components_)
    assert divergence(means, fitted) < 1.02 * of_poisson


def test_it_is_a_fixed_point_of_the_negative_binomial_fit():
    X, _ = counts(3.0)
    auto = TemporalNMF(3, tol=1e-9, random_state=0).fit(X)
    start = auto.components_, auto.activations_
    given = TemporalNMF(3, likelihood="negative_binomial", tol=1e-9, init=start).fit(X)
    assert given.objective_ == pytest.approx(auto.objective_, rel=1e-6)
    assert given.likelihood_.dispersion == pytest.approx(auto.likelihood_.dispersion, rel=1e-2)


def test_fractions_are_poisson_with_a_note():
    X, _ = counts(3.0)
    model = TemporalNMF(3, random_state=0).fit(X / 4.0)
    assert model.likelihood_.name == "poisson"
    assert [note for note in model.forecast(1).notes if note.code == "fractions"]
    named = TemporalNMF(3, likelihood="poisson", random_state=0).fit(X / 4.0)
    assert not [note for note in named.forecast(1).notes if note.code == "fractions"]


def test_hidden_fractions_do_not_matter():
    X, _ = counts(3.0)
    hidden, with_nan = X.copy(), X.copy()
    mask = np.ones_like(X)
    hidden[3, 4], with_nan[3, 4], mask[3, 4] = 0.5, np.nan, 0.0
    one = TemporalNMF(3, random_state=0).fit(hidden, mask=mask)
    other = TemporalNMF(3, random_state=0).fit(with_nan)
    assert one.likelihood_.name == "negative_binomial"
    np.testing.assert_array_equal(one.activations_, other.activations_)


def test_sparse_data_have_the_likelihood_of_dense_data():
    X, _ = counts(3.0, level=30.0)
    dense, compressed = (
        TemporalNMF(3, tol=1e-10, random_state=0).fit(data) for data in (X, sparse.csr_array(X))
    )
    assert compressed.likelihood_.name == "negative_binomial"
    wanted = dense.likelihood_.dispersion
    assert compressed.likelihood_.dispersion == pytest.approx(wanted, rel=1e-3)


def test_a_file_keeps_the_choice(tmp_path):
    X, _ = counts(3.0)
    model = TemporalNMF(3, random_state=0).fit(X)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.likelihood == "auto"
    assert again.likelihood_.dispersion == model.likelihood_.dispersion
    np.testing.assert_array_equal(again.forecast(2).samples(), model.forecast(2).samples())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_draws_of_counts_learn_the_dispersion():
    X, _ = counts(3.0)
    solver = Gibbs(30, n_tune=30, n_chains=1)
    model = TemporalNMF(3, solver=solver, random_state=0).fit(X)
    assert model.likelihood_.name == "negative_binomial"
    assert np.all(model.posterior_.of_likelihood["dispersion"] > 1.0)


def test_stopping_the_first_fit_ends_it():
    X, _ = counts(3.0)
    model = TemporalNMF(3, callback=lambda progress: True, random_state=0).fit(X)
    assert model.likelihood_.name == "poisson"
    assert model.n_iter_ == 1


def test_a_warm_start_continues_with_the_likelihood_of_the_fit_before():
    X, _ = counts(3.0)
    model = TemporalNMF(3, tol=1e-8, warm_start=True, random_state=0).fit(X)
    before = model.objective_, model.likelihood_.dispersion
    model.fit(X)
    assert model.likelihood_.name == "negative_binomial"
    assert model.n_iter_ <= 50
    assert model.objective_ == pytest.approx(before[0], rel=1e-7)
    assert model.likelihood_.dispersion == pytest.approx(before[1], rel=1e-3)
    assert model.fit(X + 0.5).likelihood_.name == "poisson"


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_a_fit_that_was_cut_short_resumes_in_either_part(solver, tmp_path):
    """After the first evaluation, at the end of the Poisson fit, and after it."""
    X, _ = counts(3.0)
    given = {"solver": solver, "max_iter": 50, "tol": 0.0, "random_state": 0}
    evaluations = []
    with pytest.warns(UserWarning, match="did not converge"):
        whole = TemporalNMF(3, callback=evaluations.append, **given).fit(X)
    ends = [i for i, progress in enumerate(evaluations) if progress.iteration == 1]
    assert len(ends) == 2
    for last in (1, ends[1] - 1, ends[1], ends[1] + 2):
        kept = Checkpoint(tmp_path / "fit.ckpt", every=0)
        model = TemporalNMF(3, checkpoint=kept, callback=StopAt(last + 1), **given)
        with pytest.raises(StopError):
            model.fit(X)
        left = []
        with pytest.warns(UserWarning, match="did not converge"):
            model.set_params(callback=left.append).fit(X)
        assert len(left) == len(evaluations) - last
        np.testing.assert_array_equal(model.components_, whole.components_)
        np.testing.assert_array_equal(model.activations_, whole.activations_)
        assert model.likelihood_.dispersion == whole.likelihood_.dispersion


def test_new_data_may_have_fractions_where_the_model_chose_its_likelihood():
    """Filled gaps are pseudo-counts: the mean of a step changes little by filling."""
    X, _ = counts(3.0)
    X[5, :10] = np.nan
    model = TemporalNMF(3, random_state=0).fit(X)
    filled = model.impute(X)
    assert not np.array_equal(filled[5], filled[5].round())
    np.testing.assert_allclose(model.transform(filled)[5], model.activations_[5], rtol=0.05)
    assert np.isfinite(model.score(filled))
    given = TemporalNMF(3, likelihood="negative_binomial", random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has a fraction"):
        given.transform(filled)
    assert model.append(filled[5:6]).likelihood_.name == "poisson"
    np.testing.assert_allclose(model.activations_[-1:].sum(), filled[5].sum(), rtol=0.2)


@pytest.mark.parametrize("outlier", [1e4, 1e6])
def test_a_single_wrong_entry_does_not_make_all_counts_clump(outlier):
    """A dispersion of thousands would flatten everything else: fitted totals keep to the data."""
    X, _ = counts(0.0)
    X[33, 4] = outlier
    model = TemporalNMF(3, random_state=0).fit(X)
    ratio = model.activations_.sum(axis=1) / X.sum(axis=1)
    assert np.median(np.abs(np.log(ratio))) < 0.15
