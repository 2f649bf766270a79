"""Forecasts of the past, and what intervals are widened by."""

import numpy as np
import pytest
from scipy import stats

from series import LEVELS, PARTS, X, fitted
from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate
from temporalnmf.forecasting import Noise


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
    original = calibration.looks

    def spy(past, series, origin, steps):
        found = list(original(past, series, origin, steps))
        seen.append((origin, found[0].mean.copy()))
        return found

    changed = X.copy()
    changed[-1] *= 5.0
    runs = []
    for data in (X, changed):
        seen.clear()
        calibration.looks = spy
        try:
            fitted(data=data).calibrate(6)
        finally:
            calibration.looks = original
        runs.append(list(seen))
    assert [origin for origin, _ in runs[0]] == list(range(34, 40))
    for (_, one), (_, other) in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def look(total, rates, ahead=1):
    from temporalnmf.calibration import Look

    return Look(True, ahead, np.array([float(total)]), np.array([1.0]), rates)


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
    assert level[0] == level[1] > 0.0  # never seen: rather too wide than too narrow
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
    from temporalnmf.calibration import Look, _entries_given_others, _share_inside

    rng = np.random.default_rng(1)
    mean = np.full(n_features, 300.0)
    looks = [
        Look(True, 1, rng.poisson(mean).astype(float), mean, np.full(9, mean.sum()))
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
