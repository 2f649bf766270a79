"""The check of past forecasts at fixed components that forecasts make by default."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from series import X, fitted
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import ARG, BGAR, GaP, Rate, Shape
from temporalnmf.data.series import Series
from temporalnmf.forecasting.checks import Noise
from temporalnmf.forecasting.learned_noise import level_of, own_of, scale_of
from temporalnmf.forecasting.past_errors import Parts, Totals, parts_of
from temporalnmf.forecasting.predicting import unseen_of
from temporalnmf.inference.filtering import filtered, predicted
from temporalnmf.likelihoods import NegativeBinomial, Poisson
from temporalnmf.messages.warning import without
from temporalnmf.solvers import Gibbs


def series_of(data, exposure=None):
    N = len(data)
    exposure = np.ones(N) if exposure is None else exposure
    weights = (~np.isnan(data)).astype(float)
    return Series(np.nan_to_num(data), weights, exposure)


def by_quadrature(counts, alpha, start, spread):
    """Filtered mode and standard deviation of log h for v_n ~ Poisson(h_n) under Rate(α)."""
    u = np.linspace(np.log(start) - 6.0, np.log(start) + 6.0, 4001)
    density = stats.norm(np.log(start), spread).pdf(u)
    ratio = np.subtract.outer(u, u)  # (now, before)
    # log h_n − log h_{n−1} for a Gamma(α, α) ratio
    kernel = np.exp(alpha * ratio - alpha * np.exp(ratio))
    kernel /= kernel.sum(axis=0)
    found = []
    for n, count in enumerate(counts):
        if n > 0:
            density = kernel @ density
        if not np.isnan(count):
            log_likelihood = count * u - np.exp(u)
            density = density * np.exp(log_likelihood - log_likelihood.max())
        density = density / density.sum()
        mean = density @ u
        found.append((u[density.argmax()], np.sqrt(density @ (u - mean) ** 2)))
    return np.array(found).T


def test_the_filter_agrees_with_quadrature():
    """One component, missing steps included; Laplace's approximation is off by 1/count."""
    counts = np.array([220.0, 260.0, np.nan, np.nan, 180.0, 400.0])
    alpha = 30.0
    modes, spreads = by_quadrature(counts, alpha, 220.0, 2.0)
    found = filtered(
        series_of(counts[:, None]),
        np.ones((1, 1)),
        Poisson(),
        Rate(alpha, alpha),
        np.array([220.0]),
    )
    np.testing.assert_allclose(found.means[:, 0], modes, atol=0.02)
    np.testing.assert_allclose(np.sqrt(found.covariances[:, 0, 0]), spreads, rtol=0.06)


@pytest.mark.parametrize(
    "chain",
    [Rate(50.0, 48.0), Shape(2.0, 2.0), BGAR(3.0, 0.1, 0.7), ARG(3.0, 0.1, 0.7), GaP(4.0, 0.2)],
)
def test_predictions_have_the_moments_of_simulated_paths(chain):
    """200,000 paths; means within 5 standard errors, variances of logs within 6 %."""
    rng = np.random.default_rng(0)
    h, covariance = np.array([[30.0]]), np.array([[[0.01]]])
    starts = h * np.exp(0.1 * rng.standard_normal(200_000)[:, None] - 0.005)
    paths = chain.sample_ahead(starts, 3, rng)[:, :, 0]
    found = predicted(chain, h, covariance, 3)
    errors = 5.0 * paths.std(axis=0) / np.sqrt(len(paths))
    assert np.all(np.abs(found.means[:, 0, 0] - paths.mean(axis=0)) < errors)
    relative = paths.var(axis=0) / paths.mean(axis=0) ** 2
    np.testing.assert_allclose(found.covariances[:, 0, 0, 0], np.log1p(relative), rtol=0.06)


def test_the_filter_sees_nothing_that_came_after():
    model = fitted()
    W, start = np.ascontiguousarray(model.components_.T), model.activations_[0]
    changed = X.copy()
    changed[30:] *= 5.0
    one, other = (
        filtered(series_of(data), W, Poisson(), model.chain_, start) for data in (X, changed)
    )
    np.testing.assert_array_equal(one.means[:30], other.means[:30])
    np.testing.assert_array_equal(one.covariances[:30], other.covariances[:30])
    assert np.all(one.means[30] != other.means[30])


def totals_with(level, n, rng):
    """Forecasts of 1000 whose data have a log-normal level with this variance."""
    normal = np.sqrt(np.log1p(level)) * rng.standard_normal(n) - 0.5 * np.log1p(level)
    observed = rng.poisson(1000.0 * np.exp(normal)).astype(float)
    ahead, known, none = np.ones(n, dtype=int), np.full(n, 1e3), np.zeros(n)
    return Totals(np.arange(n), ahead, observed, known, none, known)


NONE = Noise(np.zeros(1), np.zeros(1))


def test_the_level_is_that_of_the_data():
    """Bias of the standard deviation below 10 % with 100 forecasts, 200 series."""
    rng = np.random.default_rng(1)
    for level in (0.01, 0.1):
        found = [level_of(totals_with(level, 100, rng), NONE, 0.9)[0] for _ in range(200)]
        assert np.mean(np.sqrt(found)) == pytest.approx(np.sqrt(level), rel=0.1)


@pytest.mark.parametrize("n", [5, 20])
def test_intervals_with_the_learned_level_contain_new_totals(n):
    """1000 series with n past forecasts each: the binomial standard error is 1 %."""
    rng, inside = np.random.default_rng(2), []
    for _ in range(1000):
        level = level_of(totals_with(0.02, n, rng), NONE, 0.9)
        new = totals_with(0.02, 1, rng)
        variance = new.variance(Noise(level, np.zeros(1)))
        inside.append(abs(new.error + 0.5 * variance) <= 1.645 * np.sqrt(variance))
    assert 0.86 < np.mean(inside) < 0.95


def overdispersed(seed, n, spread=0.25, dispersion=3.0):
    """A common factor per step and clumping entries around constant components."""
    rng = np.random.default_rng(seed)
    factor = rng.gamma(1 / spread**2, spread**2, size=(n, 1))
    rates = 400.0 * factor * rng.dirichlet(np.full(30, 2.0))
    d = dispersion - 1.0
    return rng.poisson(d * rng.standard_gamma(rates / d)).astype(float)


@pytest.mark.quick("poisson")
@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_default_intervals_contain_data_that_vary_more_than_the_model(likelihood):
    """25 series, 3 steps each: with 90 %, a share of totals below 0.78 or above 0.99 has
    probability below 1 % (75 trials); "model" intervals contain less than half."""
    n, shares, entries = 43, {"checked": [], "model": []}, []
    for seed in range(25):
        data = overdispersed(seed, n)
        for intervals, found in shares.items():
            model = TemporalNMF(
                1, chain=Rate(300.0), likelihood=likelihood, intervals=intervals, random_state=0
            )
            ahead = model.fit(data[: n - 3]).forecast(3)
            low, high = ahead.interval(0.9, of="totals")
            total = data[n - 3 :].sum(axis=1)
            found.append((low <= total) & (total <= high))
            if intervals == "checked":
                low, high = ahead.interval(0.9)
                entries.append(((low <= data[n - 3 :]) & (data[n - 3 :] <= high)).mean())
    assert 0.78 < np.mean(shares["checked"]) < 0.99
    assert np.mean(shares["model"]) < 0.6
    assert 0.87 < np.mean(entries) < 0.98


def test_default_intervals_of_a_correct_model_are_hardly_wider():
    """Data of the chain itself: totals at most 30 % wider on average over 10 series."""
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        h = Rate(300.0, 300.0).sample(1, 60, rng, 200.0)[0]
        data = rng.poisson(np.outer(h, np.full(10, 0.1))).astype(float)
        widths = []
        for intervals in ("checked", "model"):
            model = TemporalNMF(1, chain=Rate(300.0), intervals=intervals, random_state=0)
            widths.append(np.subtract(*model.fit(data).forecast(2).interval(of="totals")[::-1]))
        ratios.append(np.mean(widths[0] / widths[1]))
    assert 1.0 <= np.mean(ratios) < 1.3


def test_the_check_agrees_with_refits():
    data = overdispersed(0, 80)
    options = {"chain": Rate(300.0), "likelihood": "poisson", "random_state": 0}
    model = TemporalNMF(1, **options).fit(data)
    fast = model.calibrate(40, refit=False).calibration_.noise
    thorough = model.calibrate(40).calibration_.noise
    assert np.sqrt(fast.level[0]) == pytest.approx(np.sqrt(thorough.level[0]), rel=0.3)
    assert fast.dispersion == pytest.approx(thorough.dispersion, rel=0.3)


def test_the_dispersion_of_the_likelihood_is_not_counted_twice():
    data = overdispersed(1, 80, spread=0.05)
    own = TemporalNMF(1, likelihood=NegativeBinomial(2.0), random_state=0).fit(data)
    plain = TemporalNMF(1, likelihood="poisson", random_state=0).fit(data)
    found = [m.calibrate(refit=False).calibration_.noise.dispersion for m in (own, plain)]
    assert found[0] < 0.4
    assert found[1] == pytest.approx(2.0, rel=0.2)


def test_missing_entries_and_exposures_do_not_change_what_is_found():
    rng = np.random.default_rng(0)
    size = np.where(np.arange(70) % 3 == 0, 5.0, 1.0)
    data = rng.poisson(size[:, None] * np.full(20, 15.0)).astype(float)
    data[30:, :10] = np.nan
    data[40:42] = np.nan
    model = TemporalNMF(1, chain=Rate(1e4), random_state=0).fit(data, exposure=size)
    found = model.calibrate(refit=False).calibration_
    assert found.noise.dispersion < 0.2
    assert np.sqrt(found.noise.level[0]) < 0.05
    assert found.of("totals")[0].before.inside > 0.8


def test_forecasts_are_checked_once_and_files_keep_the_result(tmp_path):
    model = fitted()
    assert model.calibration_ is None
    first = model.forecast(3)
    found = model.calibration_
    assert not found.refitted
    assert first.checked.all()
    model.smooth()
    assert model.calibration_ is found
    loaded = load(fitted().save(tmp_path / "model.npz", data=False))
    np.testing.assert_array_equal(loaded.forecast(3).samples(), first.samples())


def test_models_that_cannot_be_checked_say_so():
    with without(ConvergenceWarning):
        unchecked = [
            fitted(data=X[:12]),
            TemporalNMF(2, likelihood="exponential", random_state=0).fit(X + 1.0),
            TemporalNMF(2, solver=Gibbs(20, n_tune=10, n_chains=1), random_state=0).fit(X),
            fitted(intervals="model"),
        ]
    for model in unchecked:
        assert "not checked" in repr(model.forecast(1))
        assert model.calibration_ is None


def test_a_horizon_that_was_never_observed_has_the_level_of_the_nearest_one():
    """Every other step is missing: no forecast is one, or three, steps ahead."""
    data = overdispersed(2, 90)
    data[1::2] = np.nan
    model = TemporalNMF(1, random_state=0).fit(data).calibrate(steps=4, refit=False)
    level = model.calibration_.noise.level
    assert level[0] == level[1] == level[2] > 0.0
    assert level[3] >= level[2]


def test_few_forecasts_that_can_be_compared_are_no_error():
    """Observed steps are farther apart than forecasts look ahead."""
    data = np.full((400, 15), np.nan)
    data[::30] = np.random.default_rng(0).poisson(9.0, (14, 15))
    model = TemporalNMF(2, random_state=0).fit(data)
    assert "not checked" in repr(model.forecast(3))
    with pytest.raises(ValueError, match=r"only 0 observed steps follow.*Give a larger number"):
        model.calibrate(steps=12, refit=False)
    assert model.calibrate(steps=30, refit=False).calibration_ is not None


def test_what_was_not_compared_is_not_called_checked():
    ahead = fitted().forecast(3)
    assert ahead.to_frame("totals").attrs["intervals"] == "checked"
    assert ahead.to_frame("components").attrs["intervals"] == "checked"
    alone = TemporalNMF(1, random_state=0).fit(X).forecast(3)
    assert alone.to_frame("components").attrs["intervals"] == "not checked"
    assert ahead.sum(over="steps").checked.tolist() == [False]


def test_the_default_check_is_made_again_after_append():
    model = fitted(data=X[:25])
    model.forecast(1)
    model.append(X[25:])
    assert model.calibration_ is None
    model.forecast(1)
    whole = model.calibration_.n_origins
    assert whole == 32
    kept = fitted(data=X[:30]).calibrate(6).append(X[30:]).calibration_
    assert kept.refitted


def test_a_long_series_is_filtered_from_shortly_before_the_first_origin():
    """The first 50 steps of the filter make up for its uncertain start."""
    rng = np.random.default_rng(0)
    h = Rate(300.0, 300.0).sample(1, 300, rng, 200.0)[0]
    data = series_of(rng.poisson(np.outer(h, np.full(5, 0.2))).astype(float))
    given = np.full((5, 1), 0.2), Poisson(), Rate(300.0, 300.0)
    whole = filtered(data, *given, h[:1])
    late = filtered(data, *given, h[150:151], 150)
    assert np.isnan(late.means[:150]).all()
    np.testing.assert_allclose(late.means[200:], whole.means[200:], atol=1e-3)


def test_unknown_intervals_are_refused():
    with pytest.raises(ValueError, match=r"intervals='narrow'.*checked"):
        TemporalNMF(2, intervals="narrow").fit(X)


def parts_with(own, n, rng, K=4, known=0.01, gain=0.8):
    """Errors of K equal components with a known variance, a common factor of the step, and own
    factors that reach the filtered activations in proportion to the gain."""
    factors = np.sqrt(np.log1p(own)) * rng.standard_normal((n, K))
    errors = np.sqrt(known) * rng.standard_normal((n, K)) + gain * factors
    errors += 0.5 * rng.standard_normal((n, 1))
    contrast, ones = errors - errors.mean(axis=1, keepdims=True), np.ones((n, K))
    left = 1.0 - 1.0 / K
    columns = (
        np.arange(n)[:, None] * ones, ones, np.exp(errors), ones, known * ones, contrast,
        left * known * ones, left * gain**2 * ones,
    )  # fmt: skip
    origin, ahead, *rest = (column.ravel() for column in columns)
    return Parts(origin.astype(int), ahead.astype(int), *rest)


@pytest.mark.parametrize("own", [0.0, 0.02, 0.2])
def test_own_factors_of_components_are_found_whatever_the_level_does(own):
    """Standard deviations within 10 % with 80 steps, 50 series; without one, below 0.05."""
    rng = np.random.default_rng(0)
    found = [np.sqrt(own_of(parts_with(own, 80, rng), 1, 0.9)[0]) for _ in range(50)]
    if own == 0.0:
        assert np.mean(found) < 0.05
    else:
        assert np.mean(found) == pytest.approx(np.sqrt(own), rel=0.1)


@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0])
def test_activations_that_vary_less_than_the_model_expects_have_narrower_intervals(scale):
    """Never below the truth by more than 20 % on average, nor above by more than half: errors of
    100 steps and a prior of 10 %, counted as one, speak for it."""
    rng, found = np.random.default_rng(0), []
    for _ in range(30):
        n, ones = 100, np.ones(100)
        observed = 1e6 * np.exp(np.sqrt(0.09 * scale) * rng.standard_normal(n))
        totals = Totals(
            np.arange(n), ones.astype(int), observed, 1e6 * ones, 0.09 * ones, 1e6 * ones
        )
        found.append(scale_of(totals, NONE, 0.9))
    assert 0.8 * scale < np.mean(found) < 1.5 * scale or scale == 1.0
    assert max(found) <= 1.0


def schedule(seed, n=60, share=0.9):
    """Binomial counts with constant means: their variance is a tenth of the mean."""
    rng = np.random.default_rng(seed)
    means = 4000.0 * rng.dirichlet(np.full(20, 2.0))
    return rng.binomial((means / share + rng.random((n, 20))).astype(int), share).astype(float)


def test_schedules_have_intervals_that_are_not_far_too_wide():
    """15 series, 3 steps each. Coverage of 45 totals below 0.78 has probability below 1 %; the
    standard deviation of a total is 20, and the interval of the model is wider than 500."""
    inside, widths, entries, of_model = [], [], [], []
    for seed in range(15):
        data = schedule(seed)
        model = TemporalNMF(1, random_state=0).fit(data[:57])
        low, high = model.forecast(3).interval(0.9, of="totals")
        total = data[57:].sum(axis=1)
        inside.append((low <= total) & (total <= high))
        widths.append(high - low)
        low, high = model.forecast(3).interval(0.9)
        entries.append(((low <= data[57:]) & (data[57:] <= high)).mean())
        model.set_params(intervals="model").fit(data[:57])
        of_model.append(np.subtract(*model.forecast(3).interval(0.9, of="totals")[::-1]))
    assert np.mean(inside) > 0.78
    assert 0.87 < np.mean(entries) < 0.985
    assert np.mean(widths) < 0.35 * np.mean(of_model)
    words = str(model.set_params(intervals="checked").fit(data).calibrate(refit=False).calibration_)
    assert "of what it expects" in words
    assert "times the variance of a Poisson count" in words


def test_constant_counts_have_narrow_intervals_from_about_forty_steps_on():
    """The horizons with few forecasts, which have a level from the prior, do not prevent it."""
    for n_steps in (36, 40, 60):
        model = TemporalNMF(1, random_state=0).fit(np.full((n_steps, 12), 5.0))
        low, high = (float(end[0]) for end in model.forecast(1).interval(0.9, of="totals"))
        assert 54 <= low <= 60 <= high <= 66


def test_poisson_counts_are_not_taken_for_schedules():
    """Of 40 series none, with as many factors as there are for 12 steps of data."""
    for seed in range(40):
        data = np.random.default_rng(seed).poisson(9.0, (45, 12)).astype(float)
        model = TemporalNMF(3, intervals="model", random_state=seed).fit(data)
        assert model.calibrate(refit=False).calibration_.noise.dispersion >= 0.0


def test_the_level_of_a_gap_is_that_of_white_noise_plus_a_bridge():
    """Errors w_n + z_n with Var w = c and a random walk z, Var z_s = g s: with both neighbours
    known, w + a b/(a+b) g."""
    c, g, s = 0.02, 0.01, np.arange(1.0, 9.0)
    level = np.expm1(c + g * s)
    persistence = g / np.sqrt((c + g) * (c + 2.0 * g))
    noise = Noise(level, np.zeros(8), persistence)
    for a in range(1, 5):
        assert noise.log_variance(level, a) == pytest.approx(c + g * a)
        for b in range(1, 5):
            assert noise.log_variance(level, a, b) == pytest.approx(c + g * a * b / (a + b))
    white = Noise(np.full(8, np.expm1(c)), np.zeros(8), 0.0)
    assert white.log_variance(white.level, 2, 3) == pytest.approx(c)


@pytest.mark.parametrize("kind", ["walk", "white"])
def test_bands_of_hidden_steps_contain_them(kind):
    """Levels that the model does not know, single hidden steps and runs: 20 series with 6 hidden
    steps each. They depend on each other within a run; with 80 trials a share below 0.8 or above
    0.99 has probability below 1 %."""
    hidden, inside, entries = np.array([20, 30, 31, 32, 44, 50]), [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((64, 1))
        level = 0.1 * np.cumsum(z, axis=0) if kind == "walk" else 0.2 * z
        rates = 800.0 * np.exp(level) * rng.dirichlet(np.full(15, 2.0))
        data = rng.poisson(rates).astype(float)
        known = data.copy()
        known[hidden] = np.nan
        smooth = TemporalNMF(1, chain=Rate(1e4), random_state=0).fit(known).smooth()
        for of, truth, found in (
            ("totals", data.sum(axis=1)[hidden], inside), ("features", data[hidden], entries)
        ):  # fmt: skip
            low, high = (np.asarray(end)[hidden] for end in smooth.interval(0.9, of=of))
            found.append(((low <= truth) & (truth <= high)).mean())
    assert 0.8 < np.mean(inside) < 0.99
    assert 0.82 < np.mean(entries) < 0.98


def test_distances_of_unseen_steps():
    found = unseen_of(np.array([0, 0, 1, 0, 0, 0, 1, 1, 0, 0], dtype=bool))
    assert found.since.tolist() == [2, 1, 0, 1, 2, 3, 0, 0, 1, 2]
    assert found.until.tolist() == [0, 0, 0, 3, 2, 1, 0, 0, 0, 0]
    assert found.nearest.tolist() == [2, 1, 0, 1, 2, 1, 0, 0, 1, 2]


def test_own_factors_reach_filtered_activations_in_proportion_to_their_gain():
    """A Kalman filter with diagonal covariances: 200,000 updates, five standard errors."""
    rng, n, own = np.random.default_rng(0), 200_000, 0.05
    h = np.array([300.0, 100.0])
    predicted, of_data = np.array([0.04, 0.02]), np.array([0.01, 0.03])
    gain = predicted / (predicted + of_data)
    known = predicted * (1.0 - gain)
    moved = np.sqrt(predicted + own + of_data) * rng.standard_normal((n, 2))
    u = np.log(h) + gain * moved
    share = h / h.sum()
    contrasts = (u - np.log(h)) @ (np.eye(2) - share).T
    rows, whose = parts_of(h[None], np.diag(predicted)[None], u[0], np.diag(known))
    _, _, of_model, contrast, of_contrast, multiple = rows
    assert whose.tolist() == [0, 0]
    np.testing.assert_allclose(contrast, contrasts[0])
    np.testing.assert_allclose(of_model, predicted * gain)
    np.testing.assert_allclose(contrasts.var(axis=0), of_contrast + own * multiple, rtol=0.016)


def test_components_that_move_more_than_the_model_expects_are_contained():
    """Separate components with Rate(30), and a model of Rate(300): 16 series, 3 steps, which
    depend on each other. With 48 trials a share below 0.75 has probability below 1 %."""
    inside, own = {"checked": [], "model": []}, []
    n_steps, W = 60, np.kron(np.eye(2), np.full(8, 1.0 / 8))
    for seed in range(16):
        rng = np.random.default_rng(seed)
        h = Rate(30.0, 30.0).sample(2, n_steps, rng, 400.0)[:, :n_steps].T
        data = rng.poisson(h @ W).astype(float)
        for intervals, found in inside.items():
            model = TemporalNMF(
                2, chain=Rate(300.0), intervals=intervals, init=(W + 1e-9, h[:-3]), random_state=0
            ).fit(data[: n_steps - 3])
            ahead = model.forecast(3)
            low, high = ahead.interval(0.9, of="components")
            found.append(((low <= h[-3:]) & (h[-3:] <= high)).mean())
            if intervals == "checked":
                own.append(ahead.calibration.noise.own[0])
    assert np.mean(inside["checked"]) > 0.75
    assert np.mean(inside["model"]) < 0.6
    # The model expects a variance of 1/300 per step.
    assert np.mean(np.sqrt(own)) == pytest.approx(np.sqrt(1 / 30 - 1 / 300), rel=0.35)
    (check, *_) = model.calibrate(refit=False).calibration_.of("components")
    assert check.before.inside < 0.7 < 0.85 < check.after.inside


def test_activations_that_noise_hides_keep_the_variance_of_the_model():
    """Rare counts say nothing of a movement by a few percent, in totals or components."""
    for seed in range(5):
        data = np.random.default_rng(seed).poisson(0.01, (100, 6)).astype(float)
        model = TemporalNMF(2, random_state=0).fit(data).calibrate(refit=False)
        assert model.calibration_.noise.scale == 1.0


def test_steady_totals_have_narrow_intervals_though_components_exchange_amounts():
    """Totals vary by 1 %, shares of the components by 20 %; a model of Rate(150) expects 8 % of
    each. 16 series, 3 steps: of 48 totals fewer than 36 inside have probability below 1 %."""
    inside, widths, of_model, noises = [], [], [], []
    n_steps, W = 80, np.kron(np.eye(2), np.full(8, 1.0 / 8))
    for seed in range(16):
        rng = np.random.default_rng(seed)
        share = 1.0 / (1.0 + np.exp(-0.2 * np.cumsum(rng.standard_normal(n_steps))))
        total = 40_000.0 * np.exp(0.01 * rng.standard_normal(n_steps))
        h = total * np.array([share, 1.0 - share])
        data = rng.poisson(h.T @ W).astype(float)
        start = (W + 1e-9, h.T[:-3] + 1.0)
        for intervals, found in (("checked", widths), ("model", of_model)):
            ahead = (
                TemporalNMF(2, likelihood="poisson", intervals=intervals, init=start)
                .fit(data[:-3])
                .forecast(3)
            )
            low, high = ahead.interval(0.9, of="totals")
            found.append(np.mean(high - low))
            if intervals == "checked":
                truth = data[-3:].sum(axis=1)
                inside += ((low <= truth) & (truth <= high)).tolist()
                noises.append(ahead.calibration.noise)
    assert sum(inside) >= 36
    assert np.mean([noise.own.any() and noise.scale < 1.0 for noise in noises]) > 0.7
    assert np.mean(widths) < 0.6 * np.mean(of_model)
