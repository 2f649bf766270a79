"""What TemporalNMF promises: equivalent inputs, filled gaps, forecasts, scores."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone

from cases import likelihoods, random_data
from oracle import log_density
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import ARG, BGAR, HierRate, HierShape, Rate, Shape
from temporalnmf.solvers import Checkpoint, Gibbs
from temporalnmf.solvers.options import flattened

CHAINS = list(registry.CHAINS)
DYNAMIC = [n for n in CHAINS if registry.create(registry.CHAINS, n, "").dynamic]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _counts(seed=0, n_steps=20, n_features=6):
    return random_data(np.random.default_rng(seed), likelihoods()[0], n_steps, n_features)


def _model(chain="rate", **params):
    """MM is a fixed sequence of sums: equivalent inputs give equal results up to rounding, which
    a quasi-Newton method would magnify."""
    options = {"likelihood": "poisson", "solver": "mm", "max_iter": 30, **params}
    return TemporalNMF(2, chain=chain, random_state=0, **options)


def _same(a, b, rtol=1e-9):
    np.testing.assert_allclose(a.components_, b.components_, rtol=rtol, atol=1e-14)
    np.testing.assert_allclose(a.activations_, b.activations_, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(a.history_, b.history_, rtol=rtol)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_mask_of_ones_changes_nothing(chain):
    X = _counts()
    plain = _model(chain).fit(X)
    for mask in (np.ones(len(X)), np.ones(X.shape, dtype=bool), sparse.csr_array(np.ones(X.shape))):
        _same(_model(chain).fit(X, mask=mask), plain)


@pytest.mark.parametrize("chain", CHAINS)
def test_nan_and_masks_and_zero_weights_give_the_same_fit(chain):
    X = _counts()
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    with_nan = _model(chain).fit(np.where(hidden, np.nan, X))
    _same(_model(chain).fit(X, mask=~hidden), with_nan)
    _same(_model(chain).fit(np.where(hidden, 7.0, X), mask=np.where(hidden, 0.0, 1.0)), with_nan)
    _same(_model(chain).fit(sparse.csr_array(X), mask=~hidden), with_nan, rtol=1e-7)
    _same(_model(chain).fit(sparse.csr_array(X), mask=sparse.csr_array(~hidden)), with_nan, 1e-7)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_row_of_nan_is_a_masked_step(chain):
    X = _counts()
    steps = np.ones(len(X), dtype=bool)
    steps[[0, 4, 5, -1]] = False
    with_nan = _model(chain).fit(np.where(steps[:, None], X, np.nan))
    _same(_model(chain).fit(X, mask=steps), with_nan)
    _same(_model(chain).fit(sparse.csc_array(X), mask=steps), with_nan, rtol=1e-7)


@pytest.mark.parametrize("likelihood", list(registry.LIKELIHOODS))
def test_equal_weights_only_scale_the_likelihood(likelihood):
    X = _counts() + 1.0
    params = {"likelihood": likelihood, "smoothing": 0.0, "tol": 0.0}
    plain = _model("none", **params).fit(X)
    heavy = _model("none", **params).fit(X, mask=np.full(X.shape, 3.0))
    np.testing.assert_allclose(heavy.components_, plain.components_, rtol=1e-9)
    np.testing.assert_allclose(heavy.activations_, plain.activations_, rtol=1e-9)
    np.testing.assert_allclose(heavy.history_, 3.0 * plain.history_, rtol=1e-9)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("likelihood", list(registry.LIKELIHOODS))
def test_permuting_features_permutes_components(chain, likelihood):
    X = _counts() + 1.0
    order = np.random.default_rng(2).permutation(X.shape[1])
    rng = np.random.default_rng(3)
    W, H = rng.gamma(2.0, size=(2, X.shape[1])), rng.gamma(2.0, 5.0, size=(len(X), 2))
    a = _model(chain, likelihood=likelihood, init=(W, H)).fit(X)
    b = _model(chain, likelihood=likelihood, init=(W[:, order], H)).fit(X[:, order])
    np.testing.assert_allclose(b.components_, a.components_[:, order], rtol=1e-8)
    np.testing.assert_allclose(b.activations_, a.activations_, rtol=1e-8)


@pytest.mark.parametrize("likelihood", list(registry.LIKELIHOODS))
def test_activations_are_per_unit_of_exposure(likelihood):
    X = _counts() + 1.0
    params = {"likelihood": likelihood, "tol": 0.0}
    plain = _model(Rate(5.0), **params).fit(X)
    exposed = _model(Rate(5.0), **params).fit(X, exposure=np.full(len(X), 4.0))
    np.testing.assert_allclose(exposed.components_, plain.components_, rtol=1e-9)
    np.testing.assert_allclose(4.0 * exposed.activations_, plain.activations_, rtol=1e-9)


def test_the_exponential_law_only_sees_data_over_exposure():
    X, exposure = _counts() + 0.5, np.linspace(0.5, 2.0, 20)
    start = np.random.default_rng(0)
    init = start.gamma(2.0, size=(2, 6)), start.gamma(2.0, 5.0, size=(20, 2))
    params = {"likelihood": "exponential", "init": init}
    plain = _model(**params).fit(X)
    _same(_model(**params).fit(X * exposure[:, None], exposure=exposure), plain)


@pytest.mark.parametrize("chain", CHAINS)
def test_missing_steps_are_filled_by_the_chain_or_by_interpolation(chain):
    X = _counts(n_steps=24)
    X[[0, 1, 9, 10, 22, 23]] = np.nan
    model = _model(chain, max_iter=200).fit(X)
    H = model.activations_
    assert np.all(np.isfinite(H))
    assert np.all(H > 0)
    if not model.chain_.dynamic:
        np.testing.assert_allclose(H[9], H[8] + (H[11] - H[8]) / 3, rtol=1e-12)
        np.testing.assert_allclose(H[10], H[8] + 2 * (H[11] - H[8]) / 3, rtol=1e-12)
        np.testing.assert_array_equal(H[[22, 23]], H[[21, 21]])
    else:
        np.testing.assert_allclose(H[22], model.chain_.conditional_mean(H[21]), rtol=1e-12)
        np.testing.assert_allclose(H[23], model.chain_.conditional_mean(H[22]), rtol=1e-12)
    if chain in ("bgar", "arg"):
        rho, mean = model.chain_.rho, model.chain_.alpha / model.chain_.beta
        np.testing.assert_allclose(H[0], rho**2 * H[2] + (1 - rho**2) * mean, rtol=1e-12)
    else:
        np.testing.assert_array_equal(H[[0, 1]], H[[2, 2]])


@pytest.mark.parametrize("chain", DYNAMIC)
def test_trailing_missing_steps_do_not_touch_the_fit(chain):
    X = _counts()
    padded = np.vstack([X, np.full((3, X.shape[1]), np.nan)])
    a, b = _model(chain).fit(X), _model(chain).fit(padded)
    np.testing.assert_array_equal(a.components_, b.components_)
    np.testing.assert_array_equal(a.activations_, b.activations_[:-3])
    np.testing.assert_allclose(a.forecast(3).activations, b.activations_[-3:], rtol=1e-12)


MODES = [
    # One step ahead on the linear and the log scale, from the updates with nothing observed.
    (Rate(3.0, 1.5), lambda h: (3.0 - 1) / 1.5 * h, lambda h: 3.0 / 1.5 * h),
    (
        HierRate(3.0, 2.0, 4.0, 5.0),
        lambda h: (4.0 - 1) * 2.0 / (5.0 * 3.0) * h,
        lambda h: 4.0 * 2.0 / (5.0 * 3.0) * h,
    ),
    (
        HierRate(3.0, 2.0, 4.0, 5.0, marginal=True),
        lambda h: (4.0 - 1) / (3.0 + 1) * 2.0 / 5.0 * h,  # mode of the scaled Beta-prime law
        lambda h: 4.0 / 3.0 * 2.0 / 5.0 * h,
    ),
    (Shape(2.0, 1.5), lambda h: (2.0 * h - 1) / 1.5, lambda h: 2.0 * h / 1.5),
    (
        BGAR(20.0, 2.0, 0.8),
        lambda h: 15.0 / 18.0 * h + 3.0 / 2.0,  # b = (η−1)/(η+γ−2), ε = (γ−1)/β
        lambda h: 0.8 * h + 4.0 / 2.0,
    ),
]


@pytest.mark.parametrize(("chain", "linear", "log"), MODES, ids=lambda x: str(x)[:24])
def test_modes_one_step_ahead_have_their_closed_forms(chain, linear, log):
    h = np.array([2.0, 30.0, 900.0])
    np.testing.assert_allclose(chain.conditional_mode(h, "linear"), linear(h), rtol=1e-9)
    np.testing.assert_allclose(chain.conditional_mode(h, "log"), log(h), rtol=1e-9)


@pytest.mark.parametrize(
    ("chain", "tau", "rho"), [(HierShape(1.5, 2.0), 2.0, 1.0), (ARG(1.5, 2.0, 0.8), 10.0, 0.8)]
)
def test_mode_of_steps_with_counts_is_the_top_of_their_density(chain, tau, rho):
    h = 3.0
    law = stats.ncx2(2 * 1.5, 2 * tau * rho * h, scale=1 / (2 * tau))  # 2τh′ is non-central χ²
    mode = chain.conditional_mode(np.array([h]), "linear")[0]
    assert law.pdf(mode) > max(law.pdf(mode * 1.001), law.pdf(mode * 0.999))


def test_paper_mode_keeps_the_last_missing_step_in_the_chain():
    X = _counts()
    X[-1] = np.nan
    # One component: of several, the linear scale would let one slide to the floor.
    model = TemporalNMF(
        1, chain=Rate(5.0, 5.0), map_scale="linear", point="mode", max_iter=3000, tol=1e-13
    ).fit(X)
    H = model.activations_
    np.testing.assert_allclose(H[-1], 4.0 / 5.0 * H[-2], rtol=1e-6)


def test_forecasts_name_their_point_and_take_medians_where_there_is_no_mean():
    X = _counts()
    assert _model("none").fit(X).forecast(2).point == "last value"
    assert _model("rate").fit(X).forecast(2).point == "conditional mean"
    heavy = _model(HierRate(alpha_z=0.8, alpha_h=2.0)).fit(X)
    forecast = heavy.forecast(3)
    assert "median" in forecast.point
    ratio = forecast.activations[0] / heavy.activations_[-1]
    factor = heavy.chain_.beta_z / heavy.chain_.beta_h * stats.betaprime.median(2.0, 0.8)
    # 20001 paths: the median's standard error is about one percent; five of them.
    np.testing.assert_allclose(ratio, factor, rtol=0.06)


def test_forecast_values_are_activations_times_components_times_exposure():
    model = _model().fit(_counts())
    forecast = model.forecast(2, exposure=[1.0, 3.0])
    expected = forecast.activations @ model.components_ * [[1.0], [3.0]]
    np.testing.assert_allclose(np.asarray(forecast), expected, rtol=1e-14)
    frame = forecast.to_frame(wide=True)
    assert frame.shape == (2, 6)
    assert list(frame.index) == [len(_counts()), len(_counts()) + 1]


def test_transform_continues_the_chain_from_the_last_step():
    """An anchor far away pulls the next activations towards it."""
    X = _counts(n_steps=30)
    model = _model(Rate(1000.0), max_iter=300).fit(X)
    alone = model.transform(X[:2])
    continued = model.transform(X[:2], continue_chain=True)
    last = model.activations_[-1]
    assert np.all(np.abs(continued[0] - last) < 0.2 * np.abs(alone[0] - last) + 1e-3 * last)
    nothing = np.full((3, X.shape[1]), np.nan)
    np.testing.assert_allclose(
        model.transform(nothing, continue_chain=True), model.forecast(3).activations, rtol=1e-12
    )


def test_transform_continues_with_a_gap_and_sparse_data():
    X = _counts(n_steps=30)
    model = _model(Rate(20.0), max_iter=300, tol=1e-7).fit(X[:25])
    later = X[25:].copy()
    later[0] = np.nan
    filled = model.transform(later, continue_chain=True)
    by_mask = model.transform(sparse.csr_array(X[25:]), mask=[0, 1, 1, 1, 1], continue_chain=True)
    np.testing.assert_allclose(filled, by_mask, rtol=1e-9)
    # The gap lies between the last fitted step and the first observed one.
    ends = np.sort([model.activations_[-1], filled[1]], axis=0)
    assert np.all((filled[0] >= ends[0] * 0.999) & (filled[0] <= ends[1] * 1.001))


@pytest.mark.parametrize("chain", CHAINS)
def test_transform_takes_a_single_step(chain):
    model = _model(chain).fit(_counts())
    h = model.transform(_counts(seed=5)[:1])
    assert h.shape == (1, 2)
    assert np.all(h > 0)


def test_impute_keeps_what_was_observed_and_fills_the_rest():
    X = _counts()
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    model = _model().fit(X)
    filled = model.impute(np.where(hidden, np.nan, X))
    np.testing.assert_array_equal(filled[~hidden], X[~hidden])
    H = model.transform(X, mask=~hidden)
    np.testing.assert_allclose(filled[hidden], (H @ model.components_)[hidden], rtol=1e-12)
    from_sparse = model.impute(sparse.csr_matrix(X), mask=~hidden)
    assert isinstance(from_sparse, sparse.csr_matrix)
    np.testing.assert_allclose(from_sparse.toarray(), filled, rtol=1e-6)


@pytest.mark.parametrize("likelihood", list(registry.LIKELIHOODS))
def test_score_is_the_mean_log_density_of_what_was_held_out(likelihood):
    X = np.round(_counts()) + (likelihood in ("exponential", "gamma"))
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    exposure = np.linspace(1.0, 2.0, len(X))
    model = _model(likelihood=likelihood).fit(X, mask=~hidden, exposure=exposure)
    H = model.transform(X, mask=~hidden, exposure=exposure)
    rates = exposure[:, None] * (H @ model.components_)
    expected = log_density(model.likelihood_, X, rates)[hidden].mean()
    score = model.score(X, held_out=hidden, exposure=exposure)
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    every = np.ones(len(X), dtype=bool)
    forecast = model.forecast(len(X), exposure=exposure).values
    ahead = model.score(X, held_out=every, exposure=exposure, continue_chain=True)
    law = log_density(model.likelihood_, X, forecast)
    np.testing.assert_allclose(ahead, law.mean(), rtol=1e-12)


def test_reconstruction_error_is_the_divergence_of_what_was_observed():
    X = _counts()
    X[3] = np.nan
    model = _model().fit(X)
    fitted = model.activations_ @ model.components_
    seen = ~np.isnan(X)
    v, rate = X[seen], fitted[seen]
    log_ratio = np.log(np.where(v > 0, v / rate, 1.0))
    expected = np.sum(v * log_ratio - v + rate)
    np.testing.assert_allclose(model.reconstruction_err_, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_smooth_truth_is_recovered_better_with_the_chain_than_without(seed):
    """Few counts per step: the chain's activations are closer to the truth than plain NMF's."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, 60)
    H = np.column_stack([8.0 * np.exp(-8.0 * (time - 0.3) ** 2), 1.0 + 6.0 * time])
    W = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    X = rng.poisson(H @ W).astype(float)
    errors = {}
    for chain in ("none", "rate"):
        model = TemporalNMF(2, chain=chain, n_init=3, random_state=seed).fit(X)
        errors[chain] = np.abs(model.inverse_transform(model.activations_) - H @ W).mean()
    assert errors["rate"] < 0.8 * errors["none"]


@pytest.mark.parametrize("likelihood", likelihoods(), ids=lambda x: x.name)
@pytest.mark.parametrize("level", [1e-6, 1e9])
def test_fits_of_data_at_extreme_levels_stay_finite_and_descend(likelihood, level):
    X = (_counts() + 0.5) * level
    if likelihood.whole:
        X = np.ceil(X)
    for chain in CHAINS:
        model = _model(chain, likelihood=likelihood, max_iter=20, smoothing=0.0).fit(X)
        assert np.all(np.isfinite(model.history_))
        assert np.all(np.diff(model.history_) <= 1e-10 * np.abs(model.history_[1:]))


@pytest.mark.parametrize("chain", CHAINS)
def test_tiny_data_keep_their_level(chain):
    X = (_counts() + 0.5) * 1e-11
    model = _model(chain, likelihood="exponential", max_iter=300).fit(X)
    assert 0.5 < model.activations_.sum() / X.sum() < 2.0


def test_a_step_of_zeros_is_a_low_step_not_a_missing_one():
    X = _counts()
    X[7] = 0.0
    model = _model(Rate(2.0), max_iter=300).fit(X)
    assert np.all(model.activations_[7] < 0.5 * model.activations_[[6, 8]].mean(axis=0))


def test_hyper_parameters_of_a_chain_given_by_name_can_be_set():
    model = TemporalNMF(chain="bgar").set_params(chain__rho=0.5, n_components=3)
    assert (model.chain.name, model.chain.rho, model.n_components) == ("bgar", 0.5, 3)
    model.set_params(chain="shape", chain__alpha=2.0)
    assert (model.chain.name, model.chain.alpha) == ("shape", 2.0)


def test_the_linear_scale_warns_once_when_it_reaches_the_floor():
    X = _counts()
    X[:, 0] = 0.0
    from temporalnmf.chains import GaP

    with pytest.warns(UserWarning, match="map_scale='log'") as caught:
        _model(GaP(0.05, 1.0), map_scale="linear", max_iter=300).fit(X)
    assert len([w for w in caught if "floor" in str(w.message)]) == 1


@pytest.mark.filterwarnings("error")
def test_the_linear_scale_is_silent_when_nothing_reached_the_floor():
    _model(BGAR(30.0, "auto", 0.5), map_scale="linear", max_iter=5000, tol=1e-4).fit(_counts())


@pytest.mark.parametrize("chain", registry.CHAINS)
@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_transform_of_counts_next_to_zero_is_next_to_zero(solver, chain):
    """They start below the floor, where quotients of activations are infinite."""
    X = np.random.default_rng(0).poisson(5.0, (12, 4)).astype(float)
    model = TemporalNMF(2, chain=chain, solver=solver, random_state=0, max_iter=20, tol=1e-2).fit(X)
    found = model.transform(1e-320 * X)
    assert np.all(np.isfinite(found) & (found >= 0.0))
    if chain in ("none", "rate", "hier_rate"):  # which know of no level
        assert found.max() < 1e-20


@pytest.mark.parametrize(
    "call",
    [
        lambda: TemporalNMF(2, max_iter=2, random_state=0).fit(_counts()),
        lambda: TemporalNMF(2, max_iter=2, random_state=0).fit_transform(_counts()),
        lambda: TemporalNMF(9, random_state=0).fit(_counts(n_steps=8, n_features=3)),
        lambda: TemporalNMF(1, random_state=0).fit(pd.DataFrame(_counts(), index=[*range(19), 99])),
        lambda: (
            TemporalNMF(1, random_state=0).fit(_counts()).forecast(1, n_samples=20).interval(0.99)
        ),
    ],
    ids=["fit", "fit_transform", "too many components", "missing times", "interval"],
)
def test_warnings_point_at_the_line_that_called(call):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call()
    assert told
    assert {warning.filename for warning in told} == {__file__}


# Options of a solver and of a checkpoint.


def options(model):
    given = flattened(model.get_params(deep=False))
    names = ("solver", "n_draws", "n_tune", "n_chains", "thin", "checkpoint", "checkpoint_every")
    return {name: given[name] for name in names}


def test_options_of_a_solver_and_names_mean_the_same():
    by_name, by_object = TemporalNMF(solver="gibbs"), TemporalNMF(solver=Gibbs())
    assert options(by_name) == options(by_object)
    given = options(TemporalNMF(solver=Gibbs(7, n_tune=3, n_chains=2, thin=5)))
    numbers = {"n_draws": 7, "n_tune": 3, "n_chains": 2, "thin": 5}
    assert given == {**options(by_name), **numbers}
    by_parts = TemporalNMF(solver="gibbs").set_params(solver__n_draws=7, solver__thin=5)
    assert by_parts.solver.get_params() == Gibbs(7, thin=5).get_params()
    again = clone(by_parts)
    assert again.solver is not by_parts.solver
    assert options(again) == options(by_parts)


def test_a_checkpoint_is_a_path_or_one_with_a_number_of_seconds():
    paths = [None, "fit.npz", Checkpoint("fit.npz"), Checkpoint("fit.npz", every=7)]
    given = [options(TemporalNMF(checkpoint=path)) for path in paths]
    found = [(one["checkpoint"], one["checkpoint_every"]) for one in given]
    assert found == [(None, 30.0), ("fit.npz", 30.0), ("fit.npz", 30.0), ("fit.npz", 7)]


def test_keywords_of_the_version_before_are_taken_with_a_warning():
    with pytest.warns(FutureWarning, match=r"n_draws=, thin= of .*solver=Gibbs\(n_draws=…, thin=…"):
        old = TemporalNMF(solver="gibbs", n_draws=7, thin=5)
    assert options(old) == options(TemporalNMF(solver=Gibbs(7, thin=5)))
    with pytest.warns(FutureWarning, match=r"checkpoint_every= of .*Checkpoint\(path, every=…\)"):
        old = TemporalNMF(checkpoint="fit.npz", checkpoint_every=7)
    assert options(old) == options(TemporalNMF(checkpoint=Checkpoint("fit.npz", 7)))
    with pytest.warns(FutureWarning, match="n_tune="):
        old = TemporalNMF(solver=Gibbs(7)).set_params(n_tune=3)
    assert options(old) == options(TemporalNMF(solver=Gibbs(7, 3)))
    with pytest.warns(FutureWarning, match="n_draws="):
        assert TemporalNMF(n_draws=7).solver == "accelerated"  # as before, it had no effect


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_drawz'"):
        TemporalNMF(n_drawz=3)
