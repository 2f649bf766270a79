"""Arguments for effects: what is refused, what is chosen, and that results keep them."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from hostile import replaced, zipped
from stops import StopAfter, StopError
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import Rate
from temporalnmf.effects import Events, Holidays, Season, Trend
from temporalnmf.messages.errors import ArgumentError
from temporalnmf.shards import write_shards
from temporalnmf.solvers import Checkpoint
from temporalnmf.timeline import timeline_of

N = 84
WEEK = np.exp([0.1, 0.2, 0.15, 0.1, 0.0, -0.5, -0.3])
DAYS = pd.date_range("2001-01-01", periods=N)


def daily(n=N, seed=0, week=WEEK, features=8, level=40.0, alpha=150.0):
    """Counts with a weekly season and two components, dated."""
    rng = np.random.default_rng(seed)
    H = level * np.cumprod(rng.gamma(alpha, 1.0 / alpha, (2, n)), axis=1)
    W = rng.dirichlet(np.ones(features), 2) * features
    X = rng.poisson((H * np.resize(week, n)).T @ W)
    return pd.DataFrame(X, index=pd.date_range("2001-01-01", periods=n))


def known(n=N + 30, seed=1):
    """Covariates of the steps and of the next month."""
    rng = np.random.default_rng(seed)
    values = {"rain": rng.gamma(2.0, 1.0, n), "sale": (rng.random(n) < 0.2).astype(float)}
    return pd.DataFrame(values, index=pd.date_range("2001-01-01", periods=n))


def model(**options):
    return TemporalNMF(2, random_state=0, intervals="model", **options)


LONGER = daily(N + 6)
X = LONGER.iloc[:N]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"season": "month"}, "season='month' is not known"),
        ({"season": 1}, "season=1: expected a period of at least 2 steps"),
        ({"season": 0.5}, "season=0.5 is not a season"),
        ({"season": True}, "season=True is not a season"),
        ({"season": 60}, "at least two cycles are needed"),
        ({"season": "year"}, "a cycle has 365.2 steps, and the series has 84"),
        ({"season": "day"}, "is no longer than a step"),
        ({"season": [7, "week"]}, "7 steps and week are the same season"),
        ({"season": Season("week", terms=4)}, "at most 3 harmonics"),
        ({"trend": 0.2}, "damping=0.2: expected a number from 0.5 to 1"),
        ({"trend": "linear"}, "trend='linear' is not a trend"),
        ({"holidays": 3}, "holidays=3 is of no known kind"),
        ({"holidays": "XX"}, "holidays='XX' is not a country .* Give an ISO code"),
        ({"holidays": "us"}, "holidays='us' is not a country .* Did you mean 'US'?"),
        ({"holidays": ["US", "US"]}, "two of them have the name 'holidays US'"),
        ({"holidays": [{"a": ["2001-01-03"]}, {"a": ["2001-01-04"]}]}, "have the name 'a'"),
        ({"holidays": "DE-XX"}, "DE has the subdivisions"),
        ({"holidays": {"strike": ["2003-01-01"]}}, "none of its days is in the series"),
        ({"holidays": {"strike": ["soon"]}}, "the days of 'strike' are not dates"),
        ({"holidays": {"strike": []}}, "'strike' has no dates"),
        ({"season": "week", "chain": "none"}, "chain='none' has free activations at every step"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(options, message):
    with pytest.raises(ArgumentError, match=message.replace("(", r"\(")):
        model(**options).fit(X)


def test_the_calendar_needs_dates():
    for options in ({"season": "week"}, {"holidays": "US"}, {"holidays": {"a": ["2001-01-01"]}}):
        with pytest.raises(ArgumentError, match="needs steps with dates"):
            model(**options).fit(X.to_numpy())
    fitted = model(season="week").fit(X)
    for use in (fitted.transform, fitted.score, fitted.impute, fitted.smooth):
        with pytest.raises(ArgumentError, match="needs steps with dates"):
            use(X.to_numpy())
    assert model(season=7).fit(X.to_numpy()).season_.keys() == {"7 steps"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.iloc[: N - 2], "values are missing for the steps 2001-03-24, 2001-03-25"),
        (
            lambda c: c.assign(rain=c["rain"].where(c.index != "2001-01-05")),
            "values are missing for the steps 2001-01-05",
        ),
        (lambda c: c.assign(sale=1.0), "'sale' is 1 at all observed steps"),
        (lambda c: c.assign(snow=3.0 - c["rain"]), "'rain', 'snow' determine each other"),
        (lambda c: c.assign(sale="no"), "text or dates among its values"),
        (lambda c: c.to_numpy()[:10], "covariates has 10 rows, and 84 are needed for the steps"),
        (lambda c: c.set_axis(np.arange(len(c)) + 1900), "has times such as '1900'"),
        (lambda c: c.set_axis(["a", "a"], axis=1), "two columns 'a'"),
        (lambda c: c.replace({"sale": {1.0: np.inf}}), "'sale' is inf at 2001-01-.*Give a finite"),
        (lambda c: c * 1e300, "'rain' is .*e.300 at 2001-01-01. Give it in another unit"),
        (lambda c: c * 1e-300, "'rain' has no value larger than .*e-300. Give it in another unit"),
        (lambda c: c + 1j, "complex numbers"),
        (lambda c: {"rain": c["rain"].to_numpy()}, "covariates is of type dict: expected a frame"),
        (lambda c: "rain.csv", "covariates is of type str: expected a frame"),
        (
            lambda c: c.assign(sale=pd.array([None, *(c["sale"][1:] > 0)], dtype="boolean")),
            "values are missing for the steps 2001-01-01",
        ),
        (
            lambda c: pd.DataFrame(np.random.default_rng(0).random((len(c), 90)), index=c.index),
            "covariate 8 and 82 more]: 90 covariates are too many for 84 observed steps",
        ),
    ],
)
def test_covariates_that_cannot_be_used_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, covariates=change(known()))


def test_an_event_may_not_have_the_name_of_a_covariate():
    with pytest.raises(ArgumentError, match="a covariate and an event have the name 'rain'"):
        model(holidays={"rain": ["2001-01-03"]}).fit(X, covariates=known())


def test_holidays_of_two_countries_with_the_same_name_have_factors_of_their_own():
    holidays = {"New Year's Day": ["2001-03-01"]}
    found = model(holidays=["US", "DE-BY", holidays]).fit(X).effects_
    names = [name for name in found if name.startswith("New Year's Day")]
    others = [f"New Year's Day ({of})" for of in ("holidays DE-BY", "event")]
    assert names == ["New Year's Day", *others]


def test_covariates_are_needed_wherever_the_model_is_used():
    fitted = model().fit(X, covariates=known())
    for call in (
        lambda: fitted.forecast(2),
        lambda: fitted.transform(X),
        lambda: fitted.impute(X),
        lambda: fitted.score(X),
        lambda: fitted.smooth(X),
        lambda: fitted.append(LONGER.iloc[N:]),
    ):
        with pytest.raises(ArgumentError, match=r"covariates=\[rain, sale\]: values are missing"):
            call()
    with pytest.raises(ArgumentError, match="values are missing for the forecast of 2001-04-25"):
        fitted.forecast(38, covariates=known())
    with pytest.raises(ValueError, match="lacks the column 'sale'"):
        fitted.forecast(2, covariates=known()[["rain"]])
    with pytest.raises(ArgumentError, match="was fitted without covariates"):
        model().fit(X).forecast(2, covariates=known())


def test_covariates_are_found_by_their_time_and_name():
    fitted = model().fit(X, covariates=known())
    shuffled = known().sample(frac=1.0, random_state=0)[["sale", "rain"]]
    again = model().fit(X, covariates=shuffled[["rain", "sale"]])
    np.testing.assert_array_equal(fitted.activations_, again.activations_)
    ahead = fitted.forecast(3, covariates=known()).values
    np.testing.assert_array_equal(fitted.forecast(3, covariates=shuffled).values, ahead)
    plain = known().to_numpy()[N : N + 3]
    np.testing.assert_array_equal(fitted.forecast(3, covariates=plain).values, ahead)


def test_absent_periods_need_covariates_with_times():
    holes = X.drop(X.index[[10, 11]])
    few = known().drop(X.index[[10, 11]])
    dates = "2001-01-11, 2001-01-12"
    with pytest.warns(UserWarning, match="missing"), pytest.raises(ArgumentError, match=dates):
        model().fit(holes, covariates=few)
    with pytest.warns(UserWarning, match="missing"):
        fitted = model(season="week").fit(holes, covariates=known())
    assert fitted.activations_.shape == (N, 2)


ALL = {
    "season": ["week", Season(10, terms=2)],
    "trend": 0.9,
    "holidays": ["US", {"fair": ["2001-02-03"]}],
}


@pytest.fixture(scope="module")
def full():
    return model(**ALL).fit(X, covariates=known())


def test_transform_of_the_data_gives_the_activations_of_the_fit(full):
    np.testing.assert_array_equal(full.transform(X, covariates=known()), full.activations_)


def test_activations_are_levels_times_factors(full):
    week = full.season_["week"][:, np.arange(N) % 7]
    plain = model(season="week").fit(X)
    np.testing.assert_allclose(
        plain.activations_, plain.levels_ * plain.season_["week"][:, np.arange(N) % 7].T, rtol=1e-12
    )
    assert week.shape == (2, N)
    assert np.any(full.activations_ != full.levels_)


def test_files_keep_effects(full, tmp_path):
    again = load(full.save(tmp_path / "model.npz"))
    for name in ("activations_", "levels_", "trend_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(full, name))
    for name in ("season_", "effects_"):
        mine, other = getattr(again, name), getattr(full, name)
        assert mine.keys() == other.keys()
        for key in other:
            np.testing.assert_array_equal(mine[key], other[key])
    assert again.season_reason_ == full.season_reason_ == "as given"
    a, b = (m.forecast(9, covariates=known()).samples() for m in (again, full))
    np.testing.assert_array_equal(a, b)
    refitted = again.fit(X, covariates=known())
    np.testing.assert_array_equal(refitted.activations_, full.activations_)


def test_appending_steps_one_by_one_or_all_at_once_gives_the_same():
    few = model(**ALL).fit(X, covariates=known())
    many = model(**ALL).fit(X, covariates=known())
    for n in range(N, N + 6):
        few.append(LONGER.iloc[n : n + 1], covariates=known())
    many.append(LONGER.iloc[N:], covariates=known())
    np.testing.assert_array_equal(few.activations_, many.activations_)
    whole = many.transform(LONGER, covariates=known())
    np.testing.assert_array_equal(many.activations_, whole)


def test_a_refit_with_appended_steps_moves_the_end_of_the_trend():
    fitted = model(**ALL).fit(X, covariates=known())
    fitted.append(LONGER.iloc[N:], covariates=known(), update_components=True)
    design = fitted._effects.design
    ended = {term.name: term for term in design.terms}["trend"].end
    assert ended == fitted.timeline_.clock.positions[-1]


def test_weeks_are_found_and_quiet_data_have_none():
    assert list(model().fit(X).season_) == ["week"]
    quiet = model().fit(daily(week=np.ones(7)))
    assert quiet.season_ == {}
    assert "no week" in quiet.season_reason_
    assert model().fit(X.to_numpy()).season_reason_ == "times are not dates"
    assert "fewer than two cycles" in model().fit(X.iloc[:13]).season_reason_


def test_a_trend_is_found_where_there_is_one():
    rates = np.outer(np.exp(2.0 + 0.05 * np.arange(60)), [5.0, 3.0, 1.0])
    growing = np.random.default_rng(0).poisson(rates)
    found = TemporalNMF(1, trend="auto", random_state=0, chain=Rate(300.0)).fit(growing)
    assert found.trend_ is not None
    assert found.trend_reason_.startswith("trend: errors of held-out steps are")
    level = np.random.default_rng(0).poisson(np.outer(np.full(60, 50.0), [5.0, 3.0, 1.0]))
    assert TemporalNMF(1, trend="auto", random_state=0).fit(level).trend_ is None


def test_without_effects_results_do_not_depend_on_the_calendar():
    plain = model(season=None).fit(X.to_numpy())
    dated = model(season=None).fit(X)
    np.testing.assert_array_equal(plain.activations_, dated.activations_)
    assert plain.levels_ is plain.activations_
    assert plain.season_ == plain.effects_ == {}
    assert plain.trend_ is None


def test_shards_are_fitted_as_data_in_memory(tmp_path):
    names, timeline = [str(name) for name in X.columns], timeline_of(X.index)
    shards = write_shards(tmp_path / "shards", X.to_numpy(), names=names, timeline=timeline)
    split = model(season=["week"], trend=0.9, tol=1e-9, likelihood="poisson").fit(shards)
    memory = model(season=["week"], trend=0.9, tol=1e-9, likelihood="poisson").fit(X)
    np.testing.assert_allclose(split.season_["week"], memory.season_["week"], rtol=1e-4)
    np.testing.assert_allclose(split.activations_, memory.activations_, rtol=1e-3)
    assert "not searched" in model().fit(shards).season_reason_


def test_an_interrupted_fit_with_effects_goes_on_with_the_same_bits(tmp_path):
    options = {**ALL, "checkpoint": Checkpoint(tmp_path / "fit.npz", every=0)}
    with pytest.raises(StopError):
        model(**options, callback=StopAfter(40)).fit(X, covariates=known())
    assert (tmp_path / "fit.npz").exists()
    resumed = model(**options).fit(X, covariates=known())
    straight = model(**ALL).fit(X, covariates=known())
    np.testing.assert_array_equal(resumed.activations_, straight.activations_)
    np.testing.assert_array_equal(resumed.history_, straight.history_)


def test_a_checkpoint_of_other_effects_is_refused(tmp_path):
    options = {"checkpoint": Checkpoint(tmp_path / "fit.npz", every=0)}
    with pytest.raises(StopError):
        model(season="week", **options, callback=StopAfter(40)).fit(X)
    with pytest.raises(ValueError, match="is of a fit with effects="):
        model(season=7, **options).fit(X)


def test_parameters_are_shown_and_cloned():
    from sklearn.base import clone

    made = clone(model(season=Season("week"), trend=Trend(), holidays=[Holidays("US")]))
    assert "Season(period='week'" in repr(made)
    assert made.holidays == [Holidays("US")]
    assert Events("a", "2001-01-01").days == ("2001-01-01",)


def test_data_without_an_observed_entry_are_refused_before_covariates():
    with pytest.raises(ValueError, match="X has no observed entry"):
        model().fit(X * np.nan, covariates=known())


def test_covariates_in_another_unit_are_refused():
    fitted = model(trend=1.0).fit(X, covariates=known())
    message = "'rain' of .* at 2001-.* would change activations .* in the unit of the fit"
    far = known().assign(rain=known()["rain"] * 1e7)
    for use in (fitted.transform, fitted.score, fitted.impute, fitted.smooth):
        with pytest.raises(ArgumentError, match=message):
            use(X, covariates=far)
    with pytest.raises(ArgumentError, match=message):
        fitted.forecast(3, covariates=far)
    with pytest.raises(ArgumentError, match=message):
        fitted.append(LONGER.iloc[N:], covariates=far)
    assert np.isfinite(fitted.forecast(3, covariates=known()).values).all()


def test_growth_that_lasts_ends_before_numbers_do():
    grows = (X.mul(np.exp(0.05 * np.arange(N)), axis=0)).round()
    fitted = model(trend=1.0, season=None).fit(grows)
    with pytest.raises(ValueError, match=r"The trend at 20.* beyond 1e43. Use fewer steps"):
        fitted.forecast(20_000, n_samples=2)


def test_factors_per_unit_are_numbers():
    """A unit may be much more than a covariate ever changes by."""
    small = known().assign(rain=known()["rain"] * 1e-6)
    fitted = model().fit(X, covariates=small)
    assert np.isfinite(fitted.effects_["rain"]).all()


def _first(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("effects_coefficients", _first(900.0)),  # factors out of range
        ("effects_strengths", _first(1e-320)),
        ("effects_strengths", _first(1e150)),
        ("effects_covariances", _first(-1.0)),
        ("effects_covariances", _first(1e250)),
    ],
)
def test_effects_that_no_fit_has_are_refused(name, change, tmp_path):
    path = model(**ALL).fit(X, covariates=known()).save(tmp_path / "model.npz")
    with np.load(path) as file:
        content = io.BytesIO()
        np.save(content, change(file[name]))
    with pytest.raises(ValueError, match=r"cannot be read.*out(side| of range)"):
        load(replaced(path, **{name: content.getvalue()}))


@pytest.mark.parametrize("name", ["x" * 9 + "\ud800", 3, None])
def test_names_of_covariates_in_files_are_text(name, tmp_path):
    path = model().fit(X, covariates=known()).save(tmp_path / "model.npz")
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = json.loads(members["header.json"])
    header["effects"][0]["covariate"] = name
    path.write_bytes(zipped(members | {"header.json": json.dumps(header).encode()}))
    with pytest.raises(ValueError, match="cannot be read"):
        load(path)


def test_steps_of_no_length_have_no_positions():
    for every in ("step of 0", "step of 1e-320"):
        clock = timeline_of([1.5, 3.0, 4.5]).clock._replace(every=every)
        with pytest.raises(ValueError, match="not evenly spaced"):
            _ = clock.positions


def test_a_trend_of_level_data_leaves_forecasts_where_they_are():
    """Priors that refer to the level may not gain from moving it by a trend."""
    level = daily(N, seed=3, alpha=3000.0)
    for chain in ("shape", "hier_shape", "arg", "bgar"):
        plain, trending = (
            model(chain=chain, season="week", trend=t).fit(level).forecast(20).values.sum()
            for t in (None, 0.9)
        )
        assert 0.8 < trending / plain < 1.25, chain


def test_steps_of_another_length_are_refused():
    fitted = model(season="week").fit(X)
    monthly = X.iloc[:20].set_axis(pd.date_range("2005-01-31", periods=20, freq="ME"))
    for use in (fitted.transform, fitted.smooth, fitted.impute):
        with pytest.raises(ValueError, match="X has steps of one month, and the seasons"):
            use(monthly)
