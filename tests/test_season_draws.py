"""Models with seasons that were fitted by draws: what follows from them, files, blocks."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import geweke as joint
import test_effect_draws as laws
from cases import FEW, estimator
from hostile import replaced
from stops import StopAfter, StopError
from temporalnmf import load, plotting
from temporalnmf.chains import GaP, Rate
from temporalnmf.data.series import Series
from temporalnmf.effects import Season
from temporalnmf.report import report_content
from temporalnmf.solvers import Checkpoint
from test_gibbs_blocks import BOUNDS, _Held, _InBlocks, split_here

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PATTERN = np.exp(0.6 * np.cos(2.0 * np.pi * np.arange(12) / 12.0))


def months(n_steps=40, gaps=True):
    """Two components, the second in the opposite season; the last month is missing."""
    rng = np.random.default_rng(0)
    factors = np.resize(PATTERN, n_steps)
    level = 80.0 * np.exp(np.cumsum(rng.normal(0.0, 0.05, size=(n_steps, 2)), axis=0))
    W = np.array([[0.5, 0.3, 0.2, 0.0, 0.0], [0.0, 0.0, 0.2, 0.3, 0.5]])
    X = rng.poisson((level * np.column_stack([factors, 1.0 / factors])) @ W).astype(float)
    if gaps:
        X[[7, 8, n_steps - 1]], X[12, 2] = np.nan, np.nan
    index = pd.date_range("2001-01", periods=n_steps, freq="MS")
    return pd.DataFrame(X, index=index, columns=list("abcde"))


def fitted(data=None, **settings):
    given = {"season": "year", "n_draws": 30, "n_tune": 20, "n_chains": 2, "random_state": 0}
    given |= {"likelihood": "negative_binomial", "chain": Rate("learn"), **settings}
    model = estimator(FEW, solver="gibbs", **given)
    return model.fit(months() if data is None else data)


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fitted()


def same(one, other):
    for name in ("components", "activations", "log_posterior"):
        pair = (getattr(model.posterior_, name) for model in (one, other))
        np.testing.assert_array_equal(*pair, err_msg=name)
    for name in ("coefficients", "strengths", "moved"):
        pair = (getattr(model.posterior_.effects, name) for model in (one, other))
        np.testing.assert_array_equal(*pair, err_msg=name)


def test_attributes_are_posterior_means(model):
    draws = model.posterior_
    effects = draws.effects
    assert effects.coefficients.shape == (2, 30, 2, 11)
    assert effects.strengths.shape == (2, 30, 1)
    kept = np.arange(39)
    np.testing.assert_allclose(
        model.activations_[kept], draws.activations.mean(axis=(0, 1)), rtol=1e-10
    )
    np.testing.assert_allclose(model.levels_[kept], draws.levels.mean(axis=(0, 1)), rtol=1e-10)
    # The factors of a cycle begin in January, as the data do.
    columns = effects.design.columns[:12]
    factors = np.exp(effects.coefficients @ columns.T)
    np.testing.assert_allclose(draws.levels[..., :12, :] * np.swapaxes(factors, 2, 3),
                               draws.activations[..., :12, :])  # fmt: skip
    np.testing.assert_allclose(model.season_["year"], factors.mean(axis=(0, 1)))
    found = model.season_["year"][np.argsort(model.components_[:, 0])[::-1]]
    assert np.corrcoef(found[0], PATTERN)[0, 1] > 0.95
    assert np.corrcoef(found[1], 1.0 / PATTERN)[0, 1] > 0.95


def test_forecasts_have_the_factors_of_each_draw(model):
    ahead, draws = model.forecast(13), model.posterior_
    levels = draws.means_ahead(np.arange(60), 14)[:, 1:]  # the last month was not observed
    b = draws.effects.coefficients.reshape(60, 2, 11)
    factors = np.exp(b @ draws.effects.design.columns[4:17].T)  # May, as 40 months later
    expected = levels * np.swapaxes(factors, 1, 2)
    np.testing.assert_allclose(ahead.activations, expected.mean(axis=0))
    values = np.einsum("stk,skf->tf", expected, draws.flat("components").astype(float)) / 60
    np.testing.assert_allclose(ahead.values, values, rtol=1e-5)
    which, futures = draws.pick(len(ahead.futures.activations)), ahead.futures.activations
    assert np.all(which == ahead.futures.mixture.which)
    # July and January: levels have no season.
    apart = np.median(np.log(futures[:, 2] / futures[:, 8]), axis=0)
    assert abs(apart).min() > 0.6
    levels = futures / np.swapaxes(factors, 1, 2)[which]
    assert abs(np.median(np.log(levels[:, 2] / levels[:, 8]), axis=0)).max() < 0.3


def test_smoothed_steps_and_other_data_have_factors(model):
    X = months()
    smooth = model.smooth()
    np.testing.assert_allclose(smooth.activations, model.activations_, rtol=1e-6)
    np.testing.assert_allclose(model.transform(X), model.activations_)
    assert not model.impute(X).isna().any(axis=None)
    first = model.transform(X[:24])
    error = np.abs(np.log(first / model.activations_[:24]))
    assert np.median(error) < 0.1
    assert np.isfinite(model.score(X[:24]))
    assert model.smooth(X[:24]).values.shape == (24, 5)
    later = months(46, gaps=False)[40:]
    continued = model.transform(later, continue_chain=True)
    assert np.abs(np.log(continued.sum(axis=1) / later.sum(axis=1))).max() < 0.3


def test_appended_steps_have_factors(model, tmp_path):
    again = load(model.save(tmp_path / "model.npz"))
    same(model, again)
    for name in ("activations_", "levels_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(again, name))
    np.testing.assert_array_equal(model.season_["year"], again.season_["year"])
    np.testing.assert_array_equal(model.posterior_.levels, again.posterior_.levels)
    np.testing.assert_array_equal(model.forecast(3).samples(), again.forecast(3).samples())
    again.append(months(46, gaps=False)[40:])
    draws = again.posterior_
    assert draws.activations.shape == (2, 30, 46, 2)
    np.testing.assert_array_equal(draws.effects.coefficients, model.posterior_.effects.coefficients)
    np.testing.assert_allclose(draws.activations.mean(axis=(0, 1)), again.activations_)
    totals = months(46, gaps=False).sum(axis=1).to_numpy()[40:]
    assert np.abs(np.log(again.activations_[40:].sum(axis=1) / totals)).max() < 0.25
    assert again.forecast(2).values.shape == (2, 5)
    updated = load(tmp_path / "model.npz")
    updated.append(months(46, gaps=False)[40:], update_components=True)
    assert updated.posterior_.effects.design.columns.shape == (46, 11)


def test_diagnosis_pictures_and_report_include_effects(model):
    names = {quantity.name for quantity in model.posterior_.diagnosis.quantities}
    assert {"effects", "strengths"} <= names
    tree = model.to_arviz()
    effects = model.posterior_.effects
    np.testing.assert_array_equal(tree["posterior"]["effects"], effects.coefficients)
    np.testing.assert_array_equal(tree["posterior"]["strengths"], effects.strengths)
    assert tree["posterior"]["effects"].dims == ("chain", "draw", "component", "column")
    assert tree["posterior"]["column"].values.tolist()[:2] == ["year 1", "year 2"]
    assert tree["posterior"]["term"].values.tolist() == ["year"]
    assert tree["sample_stats"]["moved"].dims == ("chain", "draw", "given")
    assert effects.moved.mean() > 0.6
    plotting.plot_trace(model)
    runs = report_content(model)["runs"]
    assert any("Strength" in panel for panel in runs["panels"])


def test_a_given_strength_is_not_learned():
    model = fitted(season=Season("year", terms=2, strength=0.4), n_draws=8, n_tune=4)
    assert np.all(model.posterior_.effects.strengths == 0.4)
    assert "strengths" not in {q.name for q in model.posterior_.diagnosis.quantities}


@pytest.mark.parametrize("chain", ["gap", "bgar"])
def test_other_chains_have_seasons(chain):
    model = fitted(chain=chain, likelihood="poisson", season=12, n_draws=8, n_tune=4)
    assert model.forecast(2).values.shape == (2, 5)
    assert model.activations_.shape == (40, 2)


@pytest.mark.parametrize("sweep", [13, 37])
def test_a_stopped_fit_resumes_with_the_same_draws(sweep, tmp_path, model):
    file = Checkpoint(tmp_path / "state.npz", every=0.0)
    with pytest.raises(StopError):
        fitted(checkpoint=file, callback=StopAfter(sweep))
    same(fitted(checkpoint=file), model)


def test_a_checkpoint_of_another_season_is_refused(tmp_path):
    file = Checkpoint(tmp_path / "state.npz", every=0.0)
    with pytest.raises(StopError):
        fitted(season=Season("year", terms=2), checkpoint=file, callback=StopAfter(13))
    with pytest.raises(ValueError, match="is of a fit with"):
        fitted(season=Season("year", terms=2, strength=0.3), checkpoint=file)


# Files that no fit has written.


def _with(name, change):
    def apply(path):
        with np.load(path) as arrays:
            file = io.BytesIO()
            np.save(file, change(arrays[name]))
        return replaced(path, **{name: file.getvalue()})

    return apply


def _first(value):
    def change(array):
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("draws_coefficients", _first(1e4)),
        ("draws_coefficients", _first(-1e4)),
        ("draws_coefficients", _first(np.nan)),
        ("draws_coefficients", _first(900.0)),  # factors out of range
        ("draws_coefficients", lambda a: a[..., :-1]),
        ("draws_coefficients", lambda a: a[:, :-1]),
        ("draws_coefficients", lambda a: a.astype("f4")),
        ("draws_strengths", _first(0.0)),
        ("draws_strengths", lambda a: a[..., [0, 0]]),
        ("draws_moved", _first(2.0)),
        ("draws_moved", lambda a: a[..., 0]),
        ("effects_coefficients", lambda a: a[:, :-1]),
    ],
)
def test_draws_of_effects_that_no_fit_has_are_refused(name, change, model, tmp_path):
    path = _with(name, change)(model.save(tmp_path / "model.npz"))
    with pytest.raises(ValueError, match="cannot be read"):
        load(path)


# Blocks.


def in_blocks(name="rate", law="learned"):
    """As `test_effect_draws.simulation`, in blocks of features."""
    parameters = laws.simulation(name, law).run.parameters
    found = _InBlocks(parameters, laws.SEEN, 0)
    series = Series(np.ones((laws.N, joint.F)), laws.SEEN, found.exposure)
    split = split_here(series, BOUNDS)
    start = split.observe(parameters.likelihood.value).hold(found.run.W)
    found.run = _Held(
        split.executor, found.exposure, parameters, start.slot, found.run.H, joint.FIRST_LAW,
        np.random.SeedSequence(0),
    )  # fmt: skip
    found.run.W = found.run.weights()
    return found


@pytest.mark.long
@pytest.mark.parametrize("law", ["poisson", "learned"])
def test_sweeps_in_blocks_leave_the_joint_law_as_it_is(law):
    """Two cases of up to 24 functionals: by chance once in 3000 runs."""
    z = joint.geweke(in_blocks(law=law), n_chains=400, rounds=5)
    assert abs(z).max() < joint.BOUND, z


@pytest.mark.parametrize("law", ["poisson", "learned"])
def test_blocks_and_data_in_memory_have_the_same_density(law):
    alone, split = laws.simulation("rate", law, 3), in_blocks("rate", law)
    alone.draw_prior()
    alone.draw_data()
    series = Series(alone.X, alone.seen.astype(float), alone.exposure)
    value = alone.run.parameters.likelihood.value
    alone.observe(series, value)
    parts = split_here(series, BOUNDS)
    run = parts.sweeps(
        alone.run.parameters, parts.observe(value).hold(alone.run.W), alone.run.H,
        joint.FIRST_LAW, np.random.SeedSequence(0),
    )  # fmt: skip
    run.Z = alone.run.Z
    assert run.log_posterior() == pytest.approx(alone.run.log_posterior(), rel=1e-9)
    assert split.run.activations.shape == alone.run.activations.shape


def test_the_log_posterior_is_the_density_of_all_unknowns():
    """Against densities of SciPy: coefficients and log variances of the terms."""
    season = laws.effects()
    rng = np.random.default_rng(0)

    def density():
        effects = season.value
        variance = effects.strengths**2 / season.design.sizes
        found = stats.norm.logpdf(
            effects.coefficients, scale=np.sqrt(variance[season.design.term_of])
        ).sum()
        return found + stats.invgamma.logpdf(variance[0], 1.0, scale=0.005) + np.log(variance[0])

    found = []
    for _ in range(2):
        joint.draw_effects(season, rng)
        found.append(season.log_prior() - density())
    assert found[0] == pytest.approx(found[1])


def test_steps_that_are_independent_have_seasons_at_observed_steps_only():
    model = fitted(chain=GaP(2.0, 0.02), likelihood="poisson", n_draws=8, n_tune=4)
    assert model.posterior_.effects.design.columns.shape == (37, 11)
    assert model.posterior_.levels.shape == (2, 8, 37, 2)
    assert np.isfinite(model.activations_).all()


def test_covariates_trends_and_events_are_drawn():
    """Activations grow with a covariate; their trend is next to none."""
    rng, X = np.random.default_rng(1), months(gaps=False)
    size = rng.normal(size=46)
    X = pd.DataFrame(rng.poisson(X * np.exp(0.5 * size[:40, None])), X.index, X.columns)
    model = estimator(
        FEW, solver="gibbs", season="year", trend=0.9, likelihood="poisson", random_state=0,
        holidays={"fair": ["2001-05-01", "2003-05-01"]}, n_draws=40, n_tune=40, n_chains=2,
    )  # fmt: skip
    model.fit(X, covariates=size[:40])
    effects = model.posterior_.effects
    assert effects.coefficients.shape == (2, 40, 2, 14)
    assert effects.strengths.shape == (2, 40, 4)
    assert effects.moved.mean() > 0.6
    ((_, found), *_) = ((n, f) for n, f in model.effects_.items() if n != "fair")
    assert np.all(abs(np.log(found[:, 0]) - 0.5) < 0.15), found
    assert np.all((found[:, 1] < found[:, 0]) & (found[:, 0] < found[:, 2]))
    assert np.all(abs(np.log(model.trend_[:, 0])) < 0.05)
    ahead = model.forecast(6, covariates=size[40:])
    assert ahead.values.shape == (6, 5)
    parts = ahead.explain()
    np.testing.assert_allclose(
        parts.groupby("time")["expected"].sum(), ahead.point_of("totals"), rtol=1e-9
    )
    tree = model.to_arviz()
    assert len(set(tree["posterior"]["column"].values)) == 14
