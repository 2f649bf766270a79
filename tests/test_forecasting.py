"""Forecasts with intervals, smoothing, and what comes after: append, calibrate."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import cases
import temporalnmf
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.forecasting import Noise
from temporalnmf.summary import component_summary

rng = np.random.default_rng(0)
LEVELS = np.exp(np.cumsum(0.1 * rng.standard_normal((40, 2)), axis=0)) * [60.0, 90.0]
PARTS = rng.dirichlet(np.full(12, 0.5), size=2)
X = rng.poisson(LEVELS @ PARTS).astype(float)
MONTHS = pd.date_range("2001-01-01", periods=40, freq="MS")
FRAME = pd.DataFrame(X, index=MONTHS, columns=[f"word{f}" for f in range(12)])
# Every chain that has dynamics, with laws that have a variance.
DYNAMIC = [Rate(60.0), HierRate(90.0, alpha_h=90.0), Shape(), HierShape(1.0), BGAR(4.0, rho=0.9)]


def fitted(chain="rate", data=X, **params):
    return TemporalNMF(2, chain=chain, random_state=0, **params).fit(data)


def test_every_dynamic_chain_is_looked_at():
    dynamic = {n for n in registry.CHAINS if registry.create(registry.CHAINS, n, "").dynamic}
    assert {chain.name for chain in DYNAMIC} == dynamic


@pytest.mark.parametrize("chain", DYNAMIC, ids=cases.named)
@pytest.mark.parametrize("lost", [0, 2])
def test_point_forecast_is_the_mean_of_the_simulated_law(chain, lost):
    """Also after trailing steps that are missing, for components, features and totals."""
    data = X.copy()
    data[40 - lost :] = np.nan
    model = fitted(chain, data)
    forecast = model.forecast(3, n_samples=40_000, exposure=[1.0, 2.0, 0.5])
    assert forecast.point == "conditional mean"
    for of in ("components", "features", "totals"):
        samples = forecast.samples(of)
        error = samples.std(axis=0) / np.sqrt(len(samples))
        # 45 means per case, five standard errors: false alarm below 3e-5.
        assert (abs(samples.mean(axis=0) - forecast.mean(of)) < 5.0 * error).all(), of
        np.testing.assert_array_equal(forecast.mean(of), forecast.point_of(of))


@pytest.mark.parametrize("chain", DYNAMIC, ids=cases.named)
def test_smoothed_means_are_those_of_the_draws(chain):
    data = X.copy()
    data[[0, 1, 17, 18, 39]] = np.nan
    bands = fitted(chain, data, tol=1e-9, max_iter=5000).smooth(n_samples=20_000)
    error = bands.draws.std(axis=0) / np.sqrt(len(bands.draws))
    # 80 means, five standard errors: false alarm below 5e-5.
    assert (abs(bands.draws.mean(axis=0) - bands.activations) < 5.0 * error).all()


def test_variance_ahead_is_that_of_the_chain_plus_that_of_the_state():
    """Rate with exact moments: Var[h_{N+1}] = E[Var] + Var[E] = h̄²((1+v)(1+1/α) − 1)."""
    model = fitted(Rate(60.0))
    forecast = model.forecast(1, n_samples=100_000)
    v = np.diag(temporalnmf.predicting.posterior_of(model).covariance[-1])
    expected = model.activations_[-1] ** 2 * ((1.0 + v) * (1.0 + 1.0 / 60.0) - 1.0)
    found = forecast.draws[:, 0].var(axis=0)
    # Beside the chain's 1/60 the state is so uncertain that leaving it out would be seen.
    assert (v > 0.2 / 60.0).all()
    np.testing.assert_allclose(found, expected, rtol=0.04)  # six standard errors of a variance


def test_gaps_are_less_sure_than_their_surroundings_and_the_future_less_and_less():
    data = X.copy()
    data[15:20] = np.nan
    model = fitted("rate", data)
    low, high = model.smooth().interval(of="components")
    relative = np.log(high / low).mean(axis=1)
    assert relative[17] > relative[15] > 1.2 * relative[13]
    assert relative[17] > relative[19] > 1.2 * relative[21]
    low, high = model.forecast(6).interval(of="components")
    assert (np.diff(np.log(high / low).mean(axis=1)) > 0.0).all()


def test_smoothing_knows_more_than_forecasting():
    """Hide a step at the end, or have its neighbours on both sides."""
    data = X.copy()
    data[30] = np.nan
    inside = fitted("rate", data).smooth().interval(of="components")
    ahead = fitted("rate", X[:30]).forecast(1).interval(of="components")
    width = [
        np.log(high / low).mean() for low, high in (np.array(inside)[:, 30], np.array(ahead)[:, 0])
    ]
    assert width[0] < 0.9 * width[1]


def test_counts_are_whole_and_never_negative_and_quantiles_are_among_them():
    forecast = fitted().forecast(4, n_samples=501)
    samples = forecast.samples()
    assert samples.shape == (501, 4, 12)
    assert (samples >= 0).all()
    np.testing.assert_array_equal(samples, np.round(samples))
    levels = [0.05, 0.25, 0.5, 0.9]
    expected = np.quantile(samples, levels, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(forecast.quantile(levels), expected)
    np.testing.assert_array_equal(forecast.median(), forecast.quantile(0.5))
    lower, upper = forecast.interval(0.8)
    np.testing.assert_array_equal([lower, upper], forecast.quantile([0.1, 0.9]))
    totals = forecast.samples("totals")
    np.testing.assert_array_equal(totals, np.round(totals))


def test_totals_have_the_law_of_summed_features():
    forecast = fitted(data=X).forecast(1, n_samples=4000)
    summed = forecast.samples("features")[:, 0].sum(axis=1)
    # False alarm: one seed in a thousand.
    assert stats.ks_2samp(summed, forecast.samples("totals")[:, 0]).pvalue > 1e-3


def test_exponential_data_have_positive_draws():
    power = np.random.default_rng(1).exponential(LEVELS @ PARTS + 0.1)
    forecast = fitted("rate", power, likelihood="exponential").forecast(2, n_samples=400)
    assert (forecast.samples() > 0).all()
    assert forecast.samples("totals").shape == (400, 2)
    low, high = forecast.interval(of="totals")
    assert (low < high).all()


def test_a_step_alone_is_what_it_was_in_company():
    bands = fitted().smooth(n_samples=200)
    chosen = bands.at([3, 7])
    np.testing.assert_array_equal(chosen.samples(), bands.samples()[:, [3, 7]])
    np.testing.assert_array_equal(chosen.values, bands.values[[3, 7]])
    np.testing.assert_array_equal(bands.at(bands.times > 37).times, [38, 39])
    assert len(bands.at(slice(2, 5)).times) == 3


def test_same_seed_same_numbers_another_seed_others():
    model = fitted()
    first = model.forecast(2).samples()
    np.testing.assert_array_equal(model.forecast(2).samples(), first)
    assert (model.forecast(2, random_state=1).samples() != first).any()
    with pytest.raises(ValueError, match=r"random_state=-1.*at least 0"):
        model.forecast(2, random_state=-1)


def test_plain_nmf_has_no_intervals_and_says_why():
    forecast = fitted("none").forecast(3)
    assert not forecast.has_bands
    np.testing.assert_array_equal(forecast.activations, fitted("none").activations_[[-1] * 3])
    with pytest.raises(ValueError, match=r"no intervals.*Plain NMF.*no law.*choose a chain"):
        forecast.interval()
    assert "lower_90" not in forecast.to_frame()
    assert not fitted("none").smooth().has_bands


def test_independent_steps_repeat_the_last_value_with_the_intervals_of_their_law():
    model = fitted(GaP(2.0))
    forecast = model.forecast(2, n_samples=4000)
    np.testing.assert_array_equal(forecast.activations, model.activations_[[-1, -1]])
    assert forecast.point == "last value"
    assert "independent of each other" in forecast.notes[0]
    law = stats.gamma(2.0, scale=1.0 / model.chain_.beta)
    assert stats.kstest(forecast.draws[:, 1, 0], law.cdf).pvalue > 1e-3  # its false-alarm rate
    np.testing.assert_allclose(forecast.mean("components"), law.mean(), rtol=0.1)


@pytest.mark.parametrize(
    ("chain", "steps", "word"),
    [
        (Rate(1.5, 3.0), 8, "collapses"),
        (Rate(20.0, 10.0), 8, "explodes"),
        (Shape(0.5, 1.0), 8, "collapses"),
    ],
    ids=["rate falls", "rate grows", "shape falls"],
)
def test_a_chain_that_explodes_or_collapses_at_the_horizon_says_so(chain, steps, word):
    model = fitted(chain)
    notes = " ".join(model.forecast(steps).notes)
    assert f"Component 1 {word}" in notes
    assert "In the long run:" in notes
    assert word not in " ".join(fitted(Rate(500.0)).forecast(steps).notes)


def test_frames_have_the_times_and_names_of_the_user():
    model = fitted(data=FRAME)
    forecast = model.forecast(2, coverage=(0.5, 0.95))
    frame = forecast.to_frame()
    assert list(frame.columns) == [
        "time", "feature", "mean", "median", "lower_50", "upper_50", "lower_95", "upper_95",
    ]  # fmt: skip
    assert list(frame["time"].astype("datetime64[ns]").unique()) == list(
        pd.date_range("2004-05-01", periods=2, freq="MS")
    )
    assert list(frame["feature"][:12]) == list(FRAME.columns)
    row = frame.iloc[15]
    assert row["mean"] == forecast.values[1, 3]
    assert (row["lower_95"], row["upper_95"]) == tuple(e[1, 3] for e in forecast.interval(0.95))
    wide = forecast.to_frame(wide=True)
    assert wide.shape == (2, 12)
    components = forecast.to_frame("components")
    assert list(components["component"]) == [1, 2, 1, 2]
    assert list(components["name"]) == 2 * [one.name for one in component_summary(model)]
    assert list(forecast.to_frame("totals")) == [c for c in frame if c != "feature"]
    assert "2004-05 to 2004-06" in repr(forecast)
    numbered = fitted(data=pd.DataFrame(X, columns=range(100, 112)))
    assert numbered.forecast(1).to_frame()["feature"].tolist()[:2] == ["100", "101"]
    assert numbered.fit(X).feature_labels()[0] == "x0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, r"steps=0.*at least 1"),
        ({"steps": 2, "coverage": 1.5}, r"coverage=1.5.*between 0 and 1"),
        ({"steps": 2, "coverage": ()}, r"coverage=\(\)"),
        ({"steps": 2, "coverage": "wide"}, r"coverage='wide'.*between 0 and 1"),
        ({"steps": 2, "n_samples": 0}, r"n_samples=0"),
        ({"steps": 2, "point": "best"}, r"point='best'.*mean, mode"),
        ({"steps": 2, "exposure": [1.0]}, r"exposure has shape \(1,\).*\(2,\)"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted().forecast(**arguments)


def test_wrong_questions_are_refused():
    forecast = fitted().forecast(2)
    with pytest.raises(ValueError, match="of='words' is not known"):
        forecast.interval(of="words")
    with pytest.raises(ValueError, match="levels="):
        forecast.quantile(1.0)
    with pytest.raises(ValueError, match=r"samples of 40000 steps.*at\("):
        fitted().smooth(n_samples=600).at(np.repeat(np.arange(40), 1000)).samples()


def test_smoothing_another_series_is_inference_with_bands():
    model = fitted()
    other = X[5:25].copy()
    other[3] = np.nan
    bands = model.smooth(other)
    np.testing.assert_array_equal(bands.activations, model.transform(other))
    np.testing.assert_allclose(bands.values[3], model.impute(other)[3], rtol=1e-14)
    assert not bands.observed[3]
    assert bands.ahead.tolist() == [0, 0, 0, 1] + [0] * 16


def test_on_the_linear_scale_point_and_mean_are_told_apart():
    """Draws are made around the mode of log h; a component may be at the floor otherwise."""
    with pytest.warns(UserWarning, match="reached the floor"):
        model = fitted(Rate(5.0), map_scale="linear")
    forecast = model.forecast(2, n_samples=40_000)
    assert forecast.point == "conditional mean from the mode of h"
    error = forecast.draws.std(axis=0) / 200.0
    assert (abs(forecast.mean("components") - forecast.draws.mean(axis=0)) < 5.0 * error).all()
    assert "point" in forecast.to_frame("totals")
    assert "explodes" not in " ".join(forecast.notes)


def test_linear_scale_has_bands_around_its_own_activations():
    model = fitted(Rate(60.0), map_scale="linear")
    low, high = model.smooth().interval(0.98, of="components")
    inside = (low <= model.activations_) & (model.activations_ <= high)
    assert inside.mean() > 0.9


# Exposure


SIZE = np.linspace(2e5, 3e5, 40)
RATES = FRAME.assign(word0=FRAME["word0"] + 1)


def test_absent_steps_have_the_exposure_of_their_neighbours():
    lost = RATES.drop(RATES.index[[20, 21]])
    with pytest.warns(UserWarning, match="absent periods: 2"):
        model = TemporalNMF(2, random_state=0).fit(lost, exposure=np.delete(SIZE, [20, 21]))
    np.testing.assert_allclose(model.exposure_, SIZE, rtol=2e-4)  # log-linear in between
    gap = model.smooth().at(~model.observed_)
    totals = RATES.to_numpy()[[20, 21]].sum(axis=1)
    np.testing.assert_allclose(gap.values.sum(axis=1), totals, rtol=0.3)
    low, high = gap.interval(0.99, of="totals")
    assert (low > 0.5 * totals).all()
    assert (high < 2.0 * totals).all()


def test_a_model_of_rates_wants_exposure_for_everything_and_assumes_the_last_ahead():
    model = TemporalNMF(2, random_state=0).fit(X[:38], exposure=SIZE[:38])
    for ask in (model.transform, model.impute, model.score, model.smooth, model.append):
        with pytest.raises(
            ValueError, match=r"exposure=None.*fitted with exposure.*Give exposure="
        ):
            ask(X[38:])
    ahead = model.forecast(2)
    np.testing.assert_array_equal(ahead.values, model.forecast(2, exposure=SIZE[37]).values)
    assert "that of the last step" in ahead.notes[0]
    assert not any("last step" in note for note in model.forecast(2, exposure=1.0).notes)
    assert not any("exposure" in note for note in fitted().forecast(2).notes)
    model.append(X[38:], exposure=SIZE[38:])
    np.testing.assert_array_equal(model.exposure_, SIZE)
    with pytest.raises(ValueError, match=r"exposure='people'.*X.pop\('people'\)"):
        model.fit(X, exposure="people")


# What one should know


def test_masks_of_the_fitted_series_are_not_asked_for_again():
    with pytest.raises(ValueError, match=r"mask= and exposure= are for an X of their own"):
        fitted().smooth(exposure=np.ones(40))


def test_steps_without_data_have_the_law_of_independent_steps():
    """Inside the series and after it; each step draws anew."""
    data = X.copy()
    data[[10, 11, 39]] = np.nan
    model = fitted(GaP(2.0), data)
    draws = model.smooth(n_samples=4000).draws
    law = stats.gamma(2.0, scale=1.0 / model.chain_.beta)
    for n in (10, 11, 39):
        assert stats.kstest(draws[:, n, 0], law.cdf).pvalue > 1e-3  # its false-alarm rate
    assert abs(np.corrcoef(draws[:, 10, 0], draws[:, 11, 0])[0, 1]) < 0.08  # five standard errors


def test_seasons_are_spoken_of_where_there_are_some():
    months = np.arange(72)
    season = 1.0 + 0.5 * np.sin(2 * np.pi * months / 12)
    index = pd.date_range("2001-01-01", periods=72, freq="MS")
    counts = np.random.default_rng(0).poisson(np.outer(500 * season, PARTS[0]))
    seasonal = TemporalNMF(1, chain=Rate(20.0)).fit(pd.DataFrame(counts, index=index))
    assert "has seasons" in " ".join(seasonal.forecast(3).notes)
    flat = np.random.default_rng(0).poisson(np.outer(np.full(72, 500.0), PARTS[0]))
    plain = TemporalNMF(1, chain=Rate(20.0)).fit(pd.DataFrame(flat, index=index))
    assert "has seasons" not in " ".join(plain.forecast(3).notes)
    # An array has no months.
    assert "has seasons" not in " ".join(TemporalNMF(1).fit(counts).forecast(3).notes)


def test_steps_beyond_the_calibrated_ones_are_spoken_of():
    model = fitted().calibrate(8, steps=2)
    assert not any("checked" in note for note in model.forecast(2).notes)
    assert "checked 2 step(s) ahead, and this is 3" in " ".join(model.forecast(3).notes)


# Append


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


# Stability and order


def test_components_come_in_the_order_of_their_total_activation():
    for seed in range(6):
        model = TemporalNMF(3, random_state=seed, tol=1e-8, max_iter=4000).fit(X)
        assert (np.diff(model.activations_.sum(axis=0)) <= 0).all(), seed
    starts = np.ones((2, 12)) + PARTS, LEVELS + 1.0
    small_first = fitted(init=(starts[0][::-1], starts[1][:, ::-1]))
    large_first = fitted(init=starts)
    np.testing.assert_allclose(
        small_first.components_[::-1], large_first.components_, rtol=0.05, atol=1e-3
    )


def test_learned_hyper_parameters_move_with_their_components():
    levels = LEVELS * [0.05, 1.0]
    data = np.random.default_rng(3).poisson(levels @ PARTS * 4).astype(float)
    model = fitted(GaP(2.0, beta="learn"), data)
    np.testing.assert_allclose(2.0 / model.chain_.beta, model.activations_.mean(axis=0), rtol=0.02)


def test_stability_tells_a_real_component_from_an_accident():
    """Two components are in the data; the third and fourth share noise and differ by start."""
    model = TemporalNMF(4, chain="none", n_init=8, random_state=0, smoothing=0.0).fit(
        np.random.default_rng(4).poisson(20 * np.kron(LEVELS[:, :1] > 60, [1] * 6 + [0] * 6)
                                         + 20 * np.kron(LEVELS[:, :1] <= 60, [0] * 6 + [1] * 6) + 1)
    )  # fmt: skip
    assert model.stability_.shape == (4,)
    assert ((model.stability_ >= 0) & (model.stability_ <= 1)).all()
    assert TemporalNMF(2, random_state=0).fit(X).stability_ is None
    sure = TemporalNMF(1, n_init=3, random_state=0).fit(X)
    np.testing.assert_allclose(sure.stability_, 1.0, atol=1e-4)
    assert model.stability_.min() < 0.95 < sure.stability_.min()


def test_stability_is_the_mean_cosine_of_the_best_matching():
    """Against a search over all matchings."""
    from itertools import permutations

    from temporalnmf.fitting import _stability

    rng = np.random.default_rng(5)
    W, *others = rng.gamma(0.5, size=(4, 9, 3))

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    expected = np.zeros(3)
    for other in others:
        best = max(
            permutations(range(3)),
            key=lambda p: sum(cosine(W[:, k], other[:, p[k]]) for k in range(3)),
        )
        expected += [cosine(W[:, k], other[:, best[k]]) / 3 for k in range(3)]
    np.testing.assert_allclose(_stability(W, others), expected, rtol=1e-12)


# Calibration


def overdispersed(seed, n=70, spread=0.3, dispersion=3.0):
    """Poisson with a common factor per step and extra noise per entry, constant components."""
    rng = np.random.default_rng(seed)
    rates = np.full((n, 1), 300.0) * rng.gamma(1 / spread**2, spread**2, size=(n, 1))
    rates = rates * rng.dirichlet(np.full(30, 2.0))
    return rng.poisson(rng.gamma(rates / (dispersion - 1)) * (dispersion - 1)).astype(float)


def test_calibration_finds_what_the_model_misses():
    data = overdispersed(0)
    model = TemporalNMF(1, chain=Rate(300.0), random_state=0).fit(data)
    narrow = model.forecast(1)
    model.calibrate(40)
    found = model.calibration_
    assert found.n_origins == 40
    assert found.inside < 30  # of 40: intervals that take the model at its word are too narrow
    assert found.entries < 0.8
    assert found._excess(10.0) == pytest.approx(3.0, rel=0.25)
    assert np.sqrt(found.noise.level[0]) == pytest.approx(0.3, rel=0.5)
    wide = model.forecast(1)
    for of in ("totals", "features"):
        widths = [np.subtract(*f.interval(of=of)[::-1]).mean() for f in (narrow, wide)]
        assert widths[1] > 1.3 * widths[0]
        np.testing.assert_array_equal(narrow.mean(of), wide.mean(of))
    assert "too few" in str(found)
    assert found.widened_inside >= 37  # ⌈41 · 0.9⌉
    assert "at its word" in " ".join(narrow.notes)
    assert "at its word" not in " ".join(wide.notes)
    model.fit(data)
    assert model.calibration_ is None


def test_calibrated_intervals_hold_new_data():
    """90 % of the entries and totals of series that nobody has seen; 30 series."""
    entries, totals = [], []
    for seed in range(30):
        data = overdispersed(seed, n=41)
        model = TemporalNMF(1, chain=Rate(300.0), random_state=0).fit(data[:40]).calibrate(12)
        forecast = model.forecast(1)
        low, high = forecast.interval(0.9, of="totals")
        totals.append(low[0] <= data[40].sum() <= high[0])
        low, high = forecast.interval(0.9)
        entries.append(((low[0] <= data[40]) & (data[40] <= high[0])).mean())
    # Binomial with n = 30 and p = 0.9 (totals are conservative: up to 0.95): 0.74 is 3 standard
    # errors below. Entries are counts, whose intervals hold somewhat more than they promise.
    assert np.mean(totals) > 0.74
    assert 0.87 < np.mean(entries) < 0.97


def test_calibration_leaves_a_correct_model_alone():
    """Data that are Poisson with constant rates, and a chain that hardly moves."""
    data = np.random.default_rng(6).poisson(np.full((60, 25), 12.0)).astype(float)
    model = TemporalNMF(1, chain=Rate(1e4), random_state=0).fit(data).calibrate(40)
    assert model.calibration_._excess(12.0) < 1.15
    assert np.sqrt(model.calibration_.noise.level[0]) < 0.05
    low, high = model.calibration_.band
    assert low <= 0.9 <= high
    assert "as it should be" in str(model.calibration_)


def test_calibration_looks_at_nothing_that_came_after():
    """Changing the last steps changes no earlier forecast: the first looks are the same."""
    from temporalnmf import calibration

    seen = []
    original = calibration._looks

    def spy(past, series, origin, steps):
        found = list(original(past, series, origin, steps))
        seen.append((origin, found[0].mean.copy()))
        return found

    changed = X.copy()
    changed[-1] *= 5.0
    runs = []
    for data in (X, changed):
        seen.clear()
        calibration._looks = spy
        try:
            fitted(data=data).calibrate(6)
        finally:
            calibration._looks = original
        runs.append(list(seen))
    assert [origin for origin, _ in runs[0]] == list(range(34, 40))
    for (_, one), (_, other) in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def look(total, rates, ahead=1):
    from temporalnmf.calibration import _Look

    return _Look(True, ahead, np.array([float(total)]), np.array([1.0]), rates)


def test_the_level_holds_as_many_totals_as_conformal_prediction_asks_for():
    """19 looks of which k are far out: ⌈20 · 0.9⌉ = 18 have to be held, so one may be out."""
    from temporalnmf.calibration import _held, _level_variance

    rates = np.full(1000, 400.0)
    near = [look(400, rates) for _ in range(17)]
    far, farther = look(560, rates), look(1000, rates)
    assert _level_variance([*near, near[0], near[0]], 0.9) == 0.0
    one_out = _level_variance([*near, near[0], farther], 0.9)
    assert one_out == 0.0
    two_out = _level_variance([*near, far, farther], 0.9)
    # 1.4 at the 95th percentile of a Gamma factor: a variance of about 0.05.
    assert 0.03 < two_out < 0.08
    assert _held([*near, far, farther], np.array([two_out]), 0.9) == 18
    assert _held([*near, far, farther], np.array([0.9 * two_out]), 0.9) == 17


def test_the_level_of_small_totals_is_what_their_intervals_need():
    """Counts with mean 3 and a factor of variance 0.5, zeros among them: 37 of 40 are held."""
    from temporalnmf.calibration import _held, _level_variance

    for seed in range(12):
        rng = np.random.default_rng(seed)
        totals = rng.poisson(3.0 * rng.standard_gamma(2.0, size=40) * 0.5)
        looks = [look(t, np.full(1000, 3.0)) for t in totals]
        level = _level_variance(looks, 0.9)
        assert level < 1.5  # intervals of small counts hold more than they promise
        assert _held(looks, np.array([level]), 0.9) >= 37


def test_a_forecast_does_not_collapse_where_the_past_was_wild():
    """A quarter of the steps is fifty times the others: no factor with mean one holds them all."""
    rng = np.random.default_rng(3)
    wild = rng.poisson(np.where(rng.random(60) < 0.25, 1000.0, 20.0)[:, None] * np.full(10, 0.1))
    model = TemporalNMF(1, chain=Rate(100.0), random_state=0).fit(wild.astype(float)).calibrate(30)
    assert model.calibration_.noise.level[0] <= 2.0
    assert model.forecast(1).median("totals")[0] > 0.2 * model.forecast(1).values.sum()


def test_levels_go_by_steps_since_the_last_observed_one():
    """Every other step is missing: nothing is ever one step ahead."""
    data = X.copy()
    data[1:-1:2] = np.nan
    data[:, 0] += 1.0
    level = fitted(data=data).calibrate(10, steps=3).calibration_.noise.level
    assert len(level) == 4
    assert level[0] == 0.0  # never seen
    done = []
    model = fitted().calibrate(10, steps=3, progress=lambda *n: done.append(n))
    level = model.calibration_.noise.level
    assert level.shape == (3,)
    assert (np.diff(level) >= 0.0).all()
    assert done == [(i + 1, 10) for i in range(10)]


def test_forecasts_take_the_level_of_their_horizon():
    from dataclasses import replace

    data = X.copy()
    data[38:] = np.nan
    model = fitted(Rate(1e5), data)
    ahead = replace(
        model.forecast(3, n_samples=20_000),
        noise=Noise(np.array([0.0, 0.0, 0.0, 0.25, 0.5]), 0.0, 0.0),
    )
    assert ahead.ahead.tolist() == [3, 4, 5]
    relative = ahead.samples("totals").std(axis=0) / ahead.mean("totals")
    # Beside the Poisson's own spread and that of the state, 0.5 and 0.7 from the noise.
    assert relative[0] < 0.3
    np.testing.assert_allclose(relative[1:], np.sqrt([0.25, 0.5]), rtol=0.15)


def test_calibration_counts_what_was_observed_only_and_the_exposure_of_the_future():
    """Half of the features hidden in the tested steps, and sizes that jump: same finding."""
    rng = np.random.default_rng(0)
    size = np.where(np.arange(50) % 3 == 0, 5.0, 1.0)
    counts = rng.poisson(size[:, None] * np.full(20, 15.0)).astype(float)
    counts[30:, :10] = np.nan
    model = TemporalNMF(1, chain=Rate(1e4), random_state=0).fit(counts, exposure=size)
    found = model.calibrate(20).calibration_
    assert found.inside >= 15  # binomial, n = 20, p = 0.9: below 15 once in 250
    assert found._excess(15.0) < 1.2
    assert np.sqrt(found.noise.level[0]) < 0.1


@pytest.mark.parametrize("n_features", [2, 3, 5, 20])
def test_entries_are_measured_by_the_others(n_features):
    """A correct model has 0.9 of its entries inside, whatever the number of features."""
    from temporalnmf.calibration import _entries_given_others, _Look, _share_inside

    rng = np.random.default_rng(1)
    mean = np.full(n_features, 300.0)
    looks = [
        _Look(True, 1, rng.poisson(mean).astype(float), mean, np.full(9, mean.sum()))
        for _ in range(4000 // n_features)
    ]
    found = _share_inside(*_entries_given_others(looks), 0.9)
    # The others' noise adds 1/(F−1) to the variance: 0.76 inside for F = 2, 0.89 for F = 20.
    expected = 2 * stats.norm.cdf(1.645 / np.sqrt(1 + 1 / (n_features - 1))) - 1
    assert found == pytest.approx(expected, abs=0.025)


def test_calibration_after_given_starts_and_leading_zeros():
    model = fitted(init=(PARTS + 0.01, LEVELS + 1.0)).calibrate(6)
    assert model.calibration_.n_origins == 6
    late = X.copy()
    late[:12] = 0.0
    assert fitted(data=late).calibrate(40).calibration_.n_origins == 27
    few = X[:14].copy()
    few[1:8] = np.nan
    with pytest.raises(ValueError, match=r"7 observed steps.*at least 13"):
        fitted(data=few).calibrate(6)
    assert "at the most" in str(fitted(data=X[:14]).calibrate(5).calibration_)


def test_noise_has_mean_one_and_the_variance_it_says():
    rates = np.full((200_000, 1), 50.0)
    noise = Noise(np.array([0.04]), 3.0, 0.02)
    widened = noise.widen(rates, 1, np.random.default_rng(0))
    assert widened.mean() == pytest.approx(50.0, rel=0.005)
    # E[d μ′ + c μ′²] + Var μ′ with the factor in μ′; standard error of a variance below 1 %.
    expected = 3.0 * 50.0 + 0.02 * 50.0**2 * 1.04 + 0.04 * 50.0**2
    assert widened.var() == pytest.approx(expected, rel=0.03)
    totals = noise.widen(rates, 1, np.random.default_rng(0), entries=False)
    assert totals.var() == pytest.approx(0.04 * 50.0**2, rel=0.03)
    observed = noise.widen(rates, 0, np.random.default_rng(0), entries=False)
    np.testing.assert_array_equal(observed, rates)


@pytest.mark.parametrize(("dispersion", "clumping"), [(2.0, 0.1), (0.5, 0.5), (4.0, 0.02)])
def test_dispersion_and_clumping_are_found_again(dispersion, clumping):
    from temporalnmf.calibration import _dispersion

    rng = np.random.default_rng(0)
    mean = rng.gamma(1.0, 20.0, size=40_000)
    scale = dispersion + clumping * mean
    x = rng.poisson(rng.gamma(mean / scale) * scale).astype(float)
    found = np.array(_dispersion(x, mean))

    def likelihood(numbers):
        size = mean / (numbers[0] + numbers[1] * mean)
        return stats.nbinom.logpmf(x, size, size / (size + mean)).sum()

    # No worse than the truth, better by a few units at the most (a χ² with two degrees of freedom).
    gain = likelihood(found) - likelihood([dispersion, clumping])
    assert 0.0 <= gain < 7.0
    assert _dispersion(rng.poisson(mean).astype(float), mean)[0] < 0.02


def test_calibration_of_amounts_that_are_no_whole_numbers():
    """The same dispersion, in the limit, as of counts."""
    data = overdispersed(0)
    amounts = data + np.random.default_rng(1).uniform(-0.4, 0.4, data.shape) * (data > 0)
    excess = [
        TemporalNMF(1, chain=Rate(300.0), random_state=0)
        .fit(d)
        .calibrate(20)
        .calibration_._excess(10)
        for d in (data, amounts)
    ]
    assert excess[1] == pytest.approx(excess[0], rel=0.1)


def test_calibration_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="Plain NMF"):
        fitted("none").calibrate()
    with pytest.raises(ValueError, match=r"10 observed steps.*at least 13"):
        fitted(data=X[:10]).calibrate()
    power = np.random.default_rng(1).exponential(LEVELS @ PARTS + 0.1)
    with pytest.raises(ValueError, match=r"for counts.*'exponential'"):
        fitted(data=power, likelihood="exponential").calibrate()


# Peers


def test_librosa_decomposes_with_it():
    librosa = pytest.importorskip("librosa")
    power = np.random.default_rng(8).exponential(PARTS.T @ LEVELS.T + 1e-3)
    model = TemporalNMF(2, likelihood="exponential", random_state=0)
    components, activations = librosa.decompose.decompose(power, transformer=model, fit=True)
    assert components.shape == (12, 2)
    assert activations.shape == (2, 40)
    np.testing.assert_array_equal(activations.T, model.activations_)
    np.testing.assert_array_equal(components.T, model.components_)
    sorted_components, _ = librosa.decompose.decompose(power, transformer=model, sort=True)
    assert (np.diff(np.argmax(sorted_components, axis=0)) >= 0).all()
