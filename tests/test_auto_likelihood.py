"""likelihood="auto": counts that clump get a negative binomial likelihood, other data Poisson."""

import numpy as np
import pytest
from scipy import sparse

from temporalnmf import TemporalNMF, load
from temporalnmf.likelihoods import NegativeBinomial, Poisson
from temporalnmf.solvers import Gibbs


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


@pytest.mark.parametrize("seed", range(5))  # of seed 3, the first estimate of d is above 0.1
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


def test_new_data_with_fractions_are_refused_by_a_model_of_clumps():
    X, _ = counts(3.0)
    model = TemporalNMF(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"fraction.*negative_binomial"):
        model.transform(X / 4.0)


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
