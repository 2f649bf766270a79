"""Forecasts with intervals, and the past as the model sees it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import cases
from series import FRAME, LEVELS, PARTS, X, fitted
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.cli import notes as cli_notes
from temporalnmf.forecasting import futures
from temporalnmf.forecasting.checks import Noise, Unseen
from temporalnmf.forecasting.futures import Futures, Mixture
from temporalnmf.likelihoods import Gamma, NegativeBinomial, NegativeBinomial2, Poisson, Tweedie
from temporalnmf.likelihoods.negative_binomial import dispersed
from temporalnmf.report import notes as report_notes
from temporalnmf.summary import component_summary

# Every chain that has dynamics, with laws that have a variance.
DYNAMIC = [
    Rate(60.0), HierRate(90.0, alpha_h=90.0), Shape(), HierShape(1.0), BGAR(4.0, rho=0.9),
    ARG(4.0, rho=0.9),
]  # fmt: skip


def test_every_dynamic_chain_is_tested_here():
    dynamic = {n for n in registry.CHAINS if registry.create(registry.CHAINS, n, "").dynamic}
    assert {chain.name for chain in DYNAMIC} == dynamic


@pytest.mark.quick("0-rate(60.0,auto)", "2-bgar(4.0,auto,0.9)")
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


@pytest.mark.long
@pytest.mark.parametrize(
    "chain",
    [*DYNAMIC[:2], *(pytest.param(chain, marks=pytest.mark.long) for chain in DYNAMIC[2:])],
    ids=cases.named,
)
def test_smoothed_means_are_those_of_the_draws(chain):
    data = X.copy()
    data[[0, 1, 17, 18, 39]] = np.nan
    bands = fitted(chain, data, tol=1e-9, max_iter=5000).smooth(n_samples=20_000)
    error = bands.draws.std(axis=0) / np.sqrt(len(bands.draws))
    # 80 means, five standard errors: false alarm below 5e-5.
    assert (abs(bands.draws.mean(axis=0) - bands.activations) < 5.0 * error).all()


def test_variance_ahead_is_that_of_the_chain_plus_that_of_the_state():
    """Rate with exact moments: Var[h_{N+1}] = E[Var] + Var[E] = h̄²((1+v)(1+1/α) − 1)."""
    model = fitted(Rate(60.0), intervals="model")
    forecast = model.forecast(1, n_samples=100_000)
    v = np.diag(model._state().laplace().covariance[-1])
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
    model.set_params(intervals="model").fit(data)
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


# One sample is one future


def test_features_add_up_to_totals_whatever_is_asked_first():
    """To the bit, for any steps, before and after calibration."""
    for model in (fitted(), fitted().calibrate(8)):
        first = model.forecast(4).samples("totals")
        forecast = model.forecast(4)
        features = forecast.samples()
        np.testing.assert_array_equal(features.sum(axis=2), forecast.samples("totals"))
        np.testing.assert_array_equal(forecast.samples("totals"), first)
        late = forecast.at([3, 1])
        np.testing.assert_array_equal(late.samples(), features[:, [3, 1]])
        np.testing.assert_array_equal(late.samples("totals"), first[:, [3, 1]])


@pytest.mark.quick("5")
@pytest.mark.parametrize("width", [1, 5])
def test_blocks_of_features_add_up_to_the_same_totals(width, monkeypatch):
    whole = fitted().calibrate(8).forecast(2)
    totals = whole.samples("totals")
    monkeypatch.setattr(futures, "_IN_A_BLOCK", 1000 * width)
    forecast = fitted().calibrate(8).forecast(2)
    assert len(forecast.futures.mixture.blocks) == -(-12 // width)
    np.testing.assert_array_equal(forecast.samples("totals"), totals)
    features = forecast.samples()
    np.testing.assert_array_equal(features.sum(axis=2), totals)
    expected = np.quantile(features, 0.9, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(forecast.quantile(0.9), expected)
    summed = forecast.sum(over="steps", groups={"some": ["x0", "x6", "x11"]})
    chosen = features[:, :, [0, 6, 11]].sum(axis=(1, 2))
    np.testing.assert_array_equal(summed.samples()[:, 0, 0], chosen)


@pytest.mark.parametrize("dispersion", [0.0, 3.0])
def test_entries_split_from_the_top_are_independent_negative_binomials(dispersion, monkeypatch):
    """Rates known: mean μ, variance (1 + d)μ and no covariance, in one block or in several."""
    monkeypatch.setattr(futures, "_IN_A_BLOCK", 3 * 50_000)
    W = np.array([[0.5, 0.3, 0.15, 0.04, 0.01]])
    draws = Futures(
        activations=np.full((50_000, 1, 1), 40.0),
        exposure=np.array([0.5]),
        mixture=Mixture(W, 50_000),
        likelihood=dispersed(Poisson(), dispersion),
        streams=np.array([[0, 0]]),
    )
    x = np.concatenate([block for _, block in draws.features(0)], axis=1)
    mean, variance = 20.0 * W[0], (1.0 + dispersion) * 20.0 * W[0]
    scale = np.sqrt(variance / 50_000)
    # 5 means, 10 covariances: five standard errors, false alarm below 1e-5.
    assert (abs(x.mean(axis=0) - mean) < 5.0 * scale).all()
    found = np.cov(x.T)
    error = np.sqrt(np.outer(variance, variance) / 50_000)
    assert (abs(found - np.diag(np.diag(found))) < 5.0 * error).all()
    # The kurtosis of a count with mean 0.2 and dispersion 3 is large: its variance to 15 %.
    np.testing.assert_allclose(np.diag(found), variance, rtol=0.15)
    law = stats.poisson(mean[2]) if dispersion == 0.0 else stats.nbinom(mean[2] / 3.0, 0.25)
    share = np.mean(x[:, 2] == 0.0)
    assert share == pytest.approx(law.pmf(0), abs=5.0 * np.sqrt(0.25 / 50_000))


@pytest.mark.parametrize("law", [NegativeBinomial2(2.0), Gamma(3.0), Tweedie(0.6, 1.5)])
def test_totals_of_laws_that_are_not_additive_are_sums_of_entries(law):
    """Rates known: the variance of the total is the sum of those of the entries."""
    n, mean = 50_000, 20.0 * np.array([0.5, 0.3, 0.15, 0.04, 0.01])
    draws = Futures(
        activations=np.full((n, 1, 1), 40.0),
        exposure=np.array([0.5]),
        mixture=Mixture(mean[None] / 20.0, n),
        likelihood=law,
        streams=np.array([[0, 0]]),
    )
    variances = {
        "negative_binomial_2": mean + mean**2 / 2.0,
        "gamma": mean**2 / 3.0,
        "tweedie": 1.5 * mean**1.4,
    }
    totals = draws.totals(0)
    # Over four standard errors of the variance; a total with the law of an entry has more.
    assert totals.var() == pytest.approx(variances[law.name].sum(), rel=0.06)
    assert totals.mean() == pytest.approx(20.0, rel=0.015)


@pytest.mark.parametrize("law", [NegativeBinomial(2.0), Gamma(3.0)], ids=["counts", "amounts"])
def test_log_density_is_that_of_the_mixture_over_the_draws(law):
    """Summed over all counts, or integrated over all amounts, it is one; its mean is that of the
    forecast. Missing values have none."""
    h, W = (
        np.exp(np.random.default_rng(0).normal(size=(5, 1, 2))),
        np.array([[0.3, 0.7], [0.9, 0.1]]),
    )
    exposure, streams = np.array([2.0]), np.array([[1, 0]])
    futures = Futures(h, exposure, Mixture(W, 5), law, streams)
    grid = np.arange(400.0) if law.counts else np.geomspace(1e-4, 120.0, 3000)
    steps = np.gradient(grid)
    mass = np.exp([futures.log_density(0, np.array([x, x])) for x in grid])
    np.testing.assert_allclose(steps @ mass, 1.0, rtol=2e-3)
    mean = (steps * grid) @ mass
    np.testing.assert_allclose(mean, 2.0 * (h[:, 0] @ W).mean(axis=0), rtol=2e-3)


def test_log_density_of_a_forecast_is_defined_where_there_are_values():
    ahead = fitted(Rate(60.0), X).forecast(2)
    truth = ahead.mean().round()
    truth[0, 1] = np.nan
    found = ahead.log_density(truth)
    assert np.isnan(found[0, 1])
    assert np.isfinite(np.delete(found.ravel(), 1)).all()
    assert (found[1] > ahead.log_density(truth + 100.0)[1]).all()
    with pytest.raises(ValueError, match="a row per step"):
        ahead.log_density(truth[:1])
    frame = pd.DataFrame(truth, columns=ahead.feature_names)
    np.testing.assert_array_equal(ahead.log_density(frame), found)
    with pytest.raises(ValueError, match="in another order"):
        ahead.log_density(frame.iloc[:, ::-1])
    with pytest.raises(ValueError, match="not for sums"):
        ahead.sum(over="steps").log_density(truth)


def test_sums_over_steps_have_the_variance_of_the_chain():
    """One component, Rate: Cov[h_s, h_t] = h̄²((1+v)(1+1/α)^min(s,t) − 1), and Poisson noise."""
    options = {"likelihood": "poisson", "intervals": "model", "random_state": 0}
    model = TemporalNMF(1, chain=Rate(60.0), **options).fit(X)
    forecast = model.forecast(5, n_samples=60_000)
    h, v = model.activations_[-1, 0], model._state().laplace().covariance[-1, 0, 0]
    steps = np.arange(1, 6)
    of_rates = h**2 * ((1 + v) * (1 + 1 / 60) ** np.minimum.outer(steps, steps) - 1)
    summed = forecast.sum(over="steps").samples("totals")[:, 0]
    # Eight standard errors of a variance; without the covariances it would be a third of it.
    assert summed.var() == pytest.approx(of_rates.sum() + 5 * h, rel=0.05)
    total, feature = forecast.samples("totals")[:, 4], forecast.samples()[:, 4, 0]
    w, V = model.components_[0, 0], of_rates[4, 4]
    expected = (w * h + w * V) / np.sqrt((h + V) * (w * h + w**2 * V))
    assert np.corrcoef(total, feature)[0, 1] == pytest.approx(expected, abs=0.02)


def test_level_noise_lasts_and_reaches_the_components():
    """A log-normal factor in common, E[f_s f_t] = exp(φ^|s−t| σ_s σ_t), and one of each component,
    which leaves the total as it is."""
    level, own, ahead = np.array([0.04, 0.09]), np.array([0.01]), np.array([0, 1, 2, 0, 1])
    draws = np.ones((200_000, 5, 2))
    noise = Noise(level, own, persistence=0.7)
    widened = noise.widen(draws, Unseen(ahead, 0 * ahead), np.random.default_rng(0))
    np.testing.assert_array_equal(widened[:, [0, 3]], 1.0)  # observed
    np.testing.assert_allclose(widened.mean(axis=0), 1.0, atol=0.004)  # five standard errors
    s, o = np.sqrt(np.log1p(level)), np.sqrt(np.log1p(own[0]))

    def covariance(common, alone):
        return np.exp(common) * (1.0 + alone) - 1.0

    # Two equal components exchange amounts: 1 ± tanh((f₀ − f₁)/2), of variance o²/2.
    expected = {
        ((1, 0), (1, 0)): covariance(s[0] ** 2, 0.5 * o**2),
        ((1, 0), (1, 1)): covariance(s[0] ** 2, -0.5 * o**2),
        ((2, 0), (2, 0)): covariance(s[1] ** 2, 0.5 * o**2),
        ((1, 0), (2, 0)): covariance(0.7 * s[0] * s[1], 0.35 * o**2),
        ((1, 0), (2, 1)): covariance(0.7 * s[0] * s[1], -0.35 * o**2),
        ((2, 0), (4, 0)): 0.0,  # an observed step lies between
    }
    for ((t, j), (u, k)), value in expected.items():
        found = np.cov(widened[:, t, j], widened[:, u, k])[0, 1]
        assert found == pytest.approx(value, abs=0.002), (t, j, u, k)
    alone = Noise(0.0 * level, own).widen(draws, Unseen(ahead, 0 * ahead), np.random.default_rng(0))
    np.testing.assert_allclose(alone.sum(axis=2), 2.0, rtol=1e-3)


def test_sums_of_a_forecast_are_the_sums_of_its_samples():
    model = fitted(data=FRAME)
    forecast = model.forecast(6, exposure=[1.0, 2.0, 1.0, 1.0, 1.0, 0.5])
    features = forecast.samples()
    both = {"a": ["word0", "word1"], "b": ["word1", "word5"]}
    steps, groups = forecast.sum(over="steps"), forecast.sum(groups=both)
    grouped = np.stack([features[:, :, [0, 1]].sum(axis=2), features[:, :, [1, 5]].sum(axis=2)], 2)
    np.testing.assert_array_equal(groups.samples(), grouped)
    np.testing.assert_array_equal(steps.samples()[:, 0], features.sum(axis=1))
    np.testing.assert_array_equal(steps.samples("totals")[:, 0], features.sum(axis=(1, 2)))
    amounts = np.einsum("stk,t->sk", forecast.draws, forecast.exposure)
    np.testing.assert_allclose(steps.samples("components")[:, 0], amounts, rtol=1e-12)
    for one in (
        forecast.sum(over="steps", groups=both), steps.sum(groups=both), groups.sum(over="steps"),
        steps.sum(over="steps", groups=both),
    ):  # fmt: skip
        np.testing.assert_array_equal(one.samples()[:, 0], grouped.sum(axis=1))
        np.testing.assert_allclose(one.values[0], [
            forecast.values[:, [0, 1]].sum(), forecast.values[:, [1, 5]].sum()])  # fmt: skip
        assert one.times.tolist() == ["2004-05 to 2004-10"]
        low, high = one.interval(0.8)
        expected = np.quantile(one.samples(), [0.1, 0.9], axis=0, method="inverted_cdf")
        np.testing.assert_array_equal([low, high], expected)
        frame = one.to_frame()
        assert frame["group"].tolist() == ["a", "b"]
        assert frame["time"].unique().tolist() == ["2004-05 to 2004-10"]
        assert "2 groups" in repr(one)
    np.testing.assert_allclose(steps.point_of("totals"), forecast.point_of("totals").sum())
    np.testing.assert_array_equal(groups.at([2, 4]).samples(), grouped[:, [2, 4]])
    np.testing.assert_array_equal(groups.samples("totals"), forecast.samples("totals"))
    past = model.smooth(n_samples=200)
    np.testing.assert_array_equal(
        past.sum(over="steps").samples("totals")[:, 0], past.samples("totals").sum(axis=1)
    )
    plain = fitted("none").forecast(3).sum(over="steps")
    assert not plain.has_bands
    np.testing.assert_allclose(plain.values[0], fitted("none").forecast(3).values.sum(axis=0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"nothing to add up.*over='steps'"),
        ({"over": "features"}, r"over='features' is not known.*steps"),
        ({"groups": {}}, r"groups=\{\}.*at least one group"),
        ({"groups": ["x0"]}, r"groups=\['x0'\].*expected a dict"),
        ({"groups": {"a": []}}, r"'a' has no features.*leave the group out"),
        ({"groups": {"a": ["x0", "x111"]}}, r"'a' has 'x111'.*12 features.*such as 'x11'"),
    ],
)
def test_invalid_sums_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted().forecast(2).sum(**arguments)


def test_wide_intervals_have_as_many_samples_as_they_need():
    model = fitted()
    forecast = model.forecast(1, coverage=0.9999)
    assert forecast.n_samples == 100_000  # five beyond each end
    assert not any("uncertain" in note for note in forecast.notes)
    few = model.forecast(1, coverage=0.9999, n_samples=1000)
    assert "found from 1,000 samples. Ask for more, n_samples=100000." in few.notes[-1]
    assert few.notes[-1].code == "few_samples"
    with pytest.warns(UserWarning, match=r"quantile at 5e-05.*1,000 samples.*n_samples=100000"):
        model.forecast(1).interval(0.9999, of="totals")
    assert model.forecast(1).n_samples == 1000
    model.forecast(1).interval(0.99)


def test_counts_beyond_whole_numbers_are_not_clipped():
    """Counts of 1e20: samples, quantiles and means agree, and features add up to rounding."""
    data = np.random.default_rng(0).poisson(30.0, size=(20, 4)) * 1e20
    model = TemporalNMF(1, chain=Rate(1e4), intervals="model", random_state=0).fit(data)
    forecast = model.forecast(1)
    totals, features = forecast.samples("totals"), forecast.samples()
    np.testing.assert_allclose(features.sum(axis=2), totals, rtol=1e-15)
    np.testing.assert_allclose(totals.mean(), forecast.values.sum(), rtol=0.002)
    np.testing.assert_allclose(forecast.median("totals"), forecast.values.sum(), rtol=0.002)
    np.testing.assert_allclose(features.mean(axis=0), forecast.values, rtol=0.002)
    assert (features >= 0).all()
    np.testing.assert_array_equal(features, np.rint(features))


@pytest.mark.long
def test_large_counts_are_split_as_small_ones_are():
    """Beside a count of 1e20, one with mean 3 stays a Poisson count."""
    rates = np.tile([1e20, 2e20, 3.0], (20_000, 1))
    x = Poisson().split(rates.sum(axis=1), rates, np.random.default_rng(0))
    np.testing.assert_array_equal(x.sum(axis=1), rates.sum(axis=1))
    assert x[:, 2].mean() == pytest.approx(3.0, abs=0.06)  # five standard errors
    assert x[:, 2].var() == pytest.approx(3.0, abs=0.17)
    share = 1.0 / 3.0
    assert x[:, 0].std() == pytest.approx(np.sqrt(3e20 * share * (1 - share)), rel=0.03)


def test_random_numbers_serve_one_purpose_each():
    """NumPy takes [seed, step] and [seed, step, 0] as one seed."""
    draws = fitted().forecast(1).futures
    numbers = [np.random.default_rng([0, 40]).random()]
    numbers += [draws._rng(0, purpose).random() for purpose in (1, 2, 3, 4, 5)]
    assert len(set(numbers)) == 6


def test_forecasts_say_whether_their_intervals_were_checked():
    model = fitted(data=FRAME, intervals="model")
    forecast = model.forecast(3)
    assert forecast.checked.tolist() == [False] * 3
    words = "90 % intervals not checked against past forecasts; model.calibrate() checks them"
    assert repr(forecast).endswith(words)
    unchecked = {"intervals": "not checked", "check": "model.calibrate()"}
    assert forecast.to_frame().attrs == forecast.to_frame("totals", wide=True).attrs == unchecked
    model.calibrate(8, steps=2)
    forecast = model.forecast(3)
    assert forecast.checked.tolist() == [True, True, False]
    first, second = model.calibration_.of("totals")
    words = f"inside: totals 1 step ahead {first.share(first.after)}, totals 2 steps ahead "
    assert words in repr(forecast)
    assert repr(forecast).endswith("other steps were not checked")
    attributes = forecast.to_frame("totals").attrs
    assert attributes["intervals"] == "checked in part"
    assert attributes["inside"]["totals 2 steps ahead"] == second.share(second.after)
    assert forecast.at([0, 1]).to_frame("components").attrs["intervals"] == "checked"
    both = model.forecast(2).sum(over="steps")
    assert both.checked.tolist() == [True]
    assert "sums of totals over 2 steps" in repr(both)
    assert model.forecast(3).sum(over="steps").checked.tolist() == [False]
    assert not model.smooth().checked.any()
    assert "no intervals" in repr(fitted("none").forecast(1))
    assert fitted("none").forecast(1).to_frame().attrs == {}


def test_exponential_data_have_positive_draws():
    power = np.random.default_rng(1).exponential(LEVELS @ PARTS + 0.1)
    forecast = fitted("rate", power, likelihood="exponential").forecast(2, n_samples=400)
    assert (forecast.samples() > 0).all()
    assert forecast.samples("totals").shape == (400, 2)
    np.testing.assert_allclose(forecast.samples("totals"), forecast.samples().sum(axis=2))
    low, high = forecast.interval(of="totals")
    assert (low < high).all()


def test_chosen_steps_are_those_of_the_whole_forecast():
    bands = fitted().smooth(n_samples=200)
    chosen = bands.at([3, 7])
    np.testing.assert_array_equal(chosen.samples(), bands.samples()[:, [3, 7]])
    np.testing.assert_array_equal(chosen.values, bands.values[[3, 7]])
    np.testing.assert_array_equal(bands.at(bands.times > 37).times, [38, 39])
    assert len(bands.at(slice(2, 5)).times) == 3


def test_forecasts_repeat_with_the_same_seed_and_differ_with_another():
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
    with pytest.raises(
        ValueError, match=r"no intervals.*Plain NMF.*does not model.*choose a chain"
    ):
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
        (Rate(1.5, 3.0), 8, "fades out"),
        (Rate(20.0, 10.0), 8, "explodes"),
        (Shape(0.5, 1.0), 8, "fades out"),
    ],
    ids=["rate falls", "rate grows", "shape falls"],
)
def test_a_chain_that_explodes_or_fades_out_at_the_horizon_says_so(chain, steps, word):
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


def test_wrong_questions_to_a_forecast_are_refused():
    forecast = fitted().forecast(2)
    with pytest.raises(ValueError, match="of='words' is not known"):
        forecast.interval(of="words")
    with pytest.raises(ValueError, match="levels="):
        forecast.quantile(1.0)
    with pytest.raises(ValueError, match=r"samples of 40000 steps.*at\("):
        fitted().smooth(n_samples=600).at(np.repeat(np.arange(40), 1000)).samples()


def test_smoothing_another_series_gives_the_results_of_transform_and_impute():
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
    model = fitted(Rate(60.0), map_scale="linear", tol=1e-5)
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


def test_smoothing_the_fitted_series_refuses_exposure():
    with pytest.raises(ValueError, match=r"mask=, exposure= and covariates= apply to a new X only"):
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


def test_forecasts_note_seasons_where_there_are_some():
    months = np.arange(72)
    season = 1.0 + 0.5 * np.sin(2 * np.pi * months / 12)
    index = pd.date_range("2001-01-01", periods=72, freq="MS")
    counts = np.random.default_rng(0).poisson(np.outer(500 * season, PARTS[0]))
    plain = TemporalNMF(1, chain=Rate(20.0), season=None)
    seasonal = clone(plain).fit(pd.DataFrame(counts, index=index))
    (note,) = (note for note in seasonal.forecast(3).notes if "has seasons" in note)
    assert "repeat after 12 steps of one month" in note
    # As it is: a series that ends at its peak is forecast higher than one that ends low.
    assert "continues from the level of the last step (2006-12), whatever its season" in note
    assert "fit with season='year'" in note
    assert "To avoid" not in note.render(report_notes.WORDS)
    peak = clone(plain).fit(pd.DataFrame(counts[:64], index=index[:64]))
    assert peak.forecast(3).values[2].sum() > 1.2 * seasonal.forecast(3).values[2].sum()
    flat = np.random.default_rng(0).poisson(np.outer(np.full(72, 500.0), PARTS[0]))
    level = clone(plain).fit(pd.DataFrame(flat, index=index))
    assert "has seasons" not in " ".join(level.forecast(3).notes)
    # An array has no months.
    assert "has seasons" not in " ".join(TemporalNMF(1).fit(counts).forecast(3).notes)


@pytest.mark.parametrize("chain", ["none", "gap", "rate"])
@pytest.mark.parametrize("last", [4.0, 9.0], ids=["constant", "constant but for the last"])
def test_data_that_do_not_move_have_no_seasons_and_no_warning(chain, last):
    counts = np.full((48, 3), 4.0)
    counts[-1] = last
    months = pd.date_range("2001-01-01", periods=48, freq="MS")
    model = TemporalNMF(1, chain=chain, random_state=0).fit(pd.DataFrame(counts, index=months))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "has seasons" not in " ".join(model.forecast(2).notes)


def test_forecasts_note_steps_beyond_the_calibrated_ones():
    model = fitted().calibrate(8, steps=2)
    assert not any("were checked" in note for note in model.forecast(2).notes)
    (note,) = (note for note in model.forecast(3).notes if "were checked" in note)
    assert "checked 2 steps ahead, and this forecast has 3" in note
    assert "model.calibrate(steps=3)" in note
    command = note.render(cli_notes.WORDS)
    assert command.endswith("fit --calibrate 20 --calibrate-steps 3 checks them all.")
    assert note.render(report_notes.WORDS).endswith("may be too narrow.")
