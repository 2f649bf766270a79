"""Fits by draws: the estimator with solver="gibbs"."""

import copy
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cases import estimator
from stops import StopAfter, StopError
from temporalnmf import load
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.sampling import run
from temporalnmf.solvers import Gibbs
from temporalnmf.summary import step_errors

CHAINS = [
    GaP("learn", "learn"), Rate("learn", "learn"), HierRate("learn", "auto", "learn"),
    Shape("learn"), HierShape("learn", "learn"), BGAR("learn", "learn", "learn"),
    ARG("learn", "learn", "learn"),
]  # fmt: skip


def counts(n_steps=24, seed=0):
    """Two components that take turns, and a third feature in both."""
    rng = np.random.default_rng(seed)
    level = np.linspace(1.0, 9.0, n_steps)
    shares = [[8.0, 1.0, 0.0, 2.0, 4.0], [0.0, 9.0, 4.0, 2.0, 0.0]]
    return rng.poisson(np.column_stack([level, 10.0 - level]) @ shares).astype(float)


X = counts()
GAPPY = X.copy()
GAPPY[0] = GAPPY[9:11] = GAPPY[-1] = np.nan
GAPPY[15, 2] = np.nan


def fitted(data=X, chain="rate", **settings):
    settings = {
        "likelihood": "poisson",
        "n_draws": 40,
        "n_tune": 20,
        "n_chains": 2,
        "random_state": 0,
        **settings,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few draws never settle
        return estimator(2, chain=chain, solver="gibbs", **settings).fit(data)


def same(one, other):
    for name in ("components", "activations", "smoothing", "log_posterior"):
        np.testing.assert_array_equal(
            getattr(one.posterior_, name), getattr(other.posterior_, name), err_msg=name
        )
    assert one.posterior_.parameters.keys() == other.posterior_.parameters.keys()
    for name, values in one.posterior_.parameters.items():
        np.testing.assert_array_equal(values, other.posterior_.parameters[name], err_msg=name)


@pytest.mark.quick("hier_rate")
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_everything_that_a_model_does_works_from_draws(chain):
    model = fitted(GAPPY, chain, smoothing="learn")
    draws = model.posterior_
    steps = np.flatnonzero(~np.isnan(GAPPY).all(axis=1)) if chain.name == "gap" else np.arange(23)
    assert draws.components.shape == (2, 40, 2, 5)
    assert draws.activations.shape == (2, 40, len(steps), 2)
    # Results are means of the draws.
    np.testing.assert_allclose(
        model.components_, draws.components.mean(axis=(0, 1), dtype=float), rtol=1e-6
    )
    np.testing.assert_allclose(model.activations_[steps], draws.activations.mean(axis=(0, 1)))
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0, rtol=1e-6)
    assert model.smoothing_ == draws.smoothing.mean()
    assert np.ptp(draws.smoothing) > 0.0
    for name in draws.parameters:
        np.testing.assert_allclose(
            getattr(model.chain_, name), draws.parameters[name].mean(axis=(0, 1))
        )
    ahead = model.forecast(3)
    assert ahead.values.shape == (3, 5)
    repeated = "last value (posterior mean of the last observed step)"
    assert ahead.point == (repeated if chain.name == "gap" else "posterior mean")
    assert np.isfinite(ahead.values).all()
    low, high = ahead.interval(0.9)
    assert np.all((low >= 0.0) & (low <= high))
    smooth = model.smooth()
    np.testing.assert_allclose(smooth.activations, model.activations_, rtol=1e-6)
    filled = model.impute(GAPPY)
    seen = ~np.isnan(GAPPY)
    np.testing.assert_array_equal(filled[seen], GAPPY[seen])
    assert np.all(filled[~seen] >= 0.0)
    assert model.transform(X[:5]).shape == (5, 2)


def test_points_are_means_over_draws_of_components_and_activations_together():
    """E[h w] of each draw, averaged: not the product of the averages."""
    model = fitted(GAPPY)
    draws = model.posterior_
    W, H = draws.flat("components"), draws.flat("activations")
    expected = np.mean([h @ w for h, w in zip(H, W, strict=True)], axis=0)
    np.testing.assert_allclose(model.smooth(n_samples=80).values[:23], expected, rtol=1e-5)
    product = model.activations_ @ model.components_
    assert abs(product[:23] / expected - 1.0).max() > 1e-4
    # Rate keeps the mean: the next step is expected where the last one was drawn.
    np.testing.assert_allclose(model.forecast(1).values[0], expected[-1], rtol=1e-5)


def test_a_point_is_called_a_mean_only_where_it_is_the_mean_of_the_law():
    """Of independent steps the point repeats the last one; the mean is the long-run level."""
    data = X.copy()
    data[-1, :] *= 4.0
    model = fitted(data, GaP(5.0), n_chains=1)
    ahead = model.forecast(2, n_samples=4000)
    assert "point" in ahead.to_frame(of="totals").columns
    np.testing.assert_allclose(ahead.values[0], model.smooth().values[-1], rtol=1e-6)
    rates = ahead.samples(of="totals")
    error = rates.std(axis=0) / np.sqrt(4000)
    assert np.all(abs(ahead.mean("totals") - rates.mean(axis=0)) < 5.0 * error)  # 1e-6 each
    assert np.all(ahead.mean("totals") < 0.5 * ahead.values.sum(axis=1))
    assert model.smooth().point == "posterior mean"
    gappy = fitted(GAPPY, GaP(5.0), n_chains=1).smooth()
    assert gappy.point == "posterior mean; missing steps interpolated"
    assert "point" in gappy.to_frame(of="totals").columns


@pytest.mark.parametrize("solver", ["gibbs", "accelerated"])
def test_missing_last_steps_without_a_mean_are_called_medians(solver):
    """Of HierRate(alpha_z <= 1): the median of what may come is shown, as in forecasts."""
    medians = "posterior mean; of the missing last steps the median (the mean is infinite)"

    def point_of(data, alpha_z):
        chain = HierRate(alpha_z=alpha_z, alpha_h=30.0)
        if solver == "gibbs":
            model = fitted(data, chain, n_chains=1)
        else:
            model = estimator(2, chain=chain, gaps="mode", random_state=0).fit(data)
        again = model.smooth(data * 1.0).point
        assert model.smooth().point == again
        return again

    assert point_of(GAPPY, 0.9) == medians
    assert point_of(GAPPY, 30.0) == point_of(X, 0.9) == "posterior mean"


def test_simulated_rates_have_components_of_the_same_draw():
    model = fitted(X)
    ahead = model.forecast(2, n_samples=50)
    which = model.posterior_.pick(50)
    W = model.posterior_.flat("components")[which]
    rates = np.einsum("sk,skf->sf", ahead.draws[:, 1], W)
    np.testing.assert_allclose(ahead.futures.rates(1, slice(None)), rates)
    np.testing.assert_allclose(ahead.at([1]).values[0], ahead.values[1])


@pytest.mark.long
def test_forecasts_spread_by_the_hyper_parameters_of_each_draw():
    """Learned hyper-parameters reach the forecast: its spread is that of each draw's chain."""
    model = fitted(X, Rate("learn"), n_draws=200)
    alpha = model.posterior_.parameters["alpha"].reshape(-1, 2)
    paths = model.forecast(1, n_samples=20 * len(alpha)).draws[:, 0]
    last = model.posterior_.flat("activations")[:, -1]
    deviations = (paths.reshape(20, len(alpha), 2) / last - 1.0) * np.sqrt(alpha)
    # Each has mean 0 and variance 1 given its draw; 8000 of them: 5 standard errors.
    assert abs(deviations.mean()) < 5.0 / np.sqrt(8000)
    assert abs(deviations.var() - 1.0) < 5.0 * np.sqrt(8.0 / 8000)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_draws_depend_on_the_seed_and_not_on_the_number_of_threads(storage):
    rng = np.random.default_rng(3)
    data = storage(rng.poisson(rng.gamma(0.5, 3.0, size=(20, 900))).astype(float))
    settings = {"n_draws": 6, "n_tune": 3, "smoothing": "learn", "chain": Rate("learn")}
    one = fitted(data, n_jobs=1, **settings)
    same(one, fitted(data, n_jobs=2, **settings))
    other = fitted(data, random_state=1, **settings)
    assert np.any(other.posterior_.activations != one.posterior_.activations)


@pytest.mark.long
@pytest.mark.parametrize(
    "when",
    [
        pytest.param(12, id="tuning"),
        pytest.param(45, id="first"),
        pytest.param(75, id="drawing"),
        pytest.param(110, id="second"),
    ],
)
def test_a_run_that_was_stopped_goes_on_with_the_same_draws(when, tmp_path):
    settings = {"chain": BGAR("learn", "learn", "learn"), "smoothing": "learn", "data": GAPPY}
    path = tmp_path / "state.npz"
    with pytest.raises(StopError):
        fitted(**settings, checkpoint=path, checkpoint_every=0, callback=StopAfter(when))
    assert path.exists()
    left = []
    again = fitted(**settings, checkpoint=path, callback=lambda p: left.append(p.iteration))
    assert left[0] >= when  # what was done is not done again
    same(again, fitted(**settings))
    assert not path.exists()


def test_control_c_waits_for_the_end_of_a_sweep(tmp_path):
    """It leaves a checkpoint of that very sweep, and the handler as it was."""
    path, told = tmp_path / "state.npz", []

    def press(progress):
        told.append(progress.iteration)
        if progress.iteration == 25:
            os.kill(os.getpid(), signal.SIGINT)

    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            fitted(checkpoint=path, callback=press)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert told[-1] == 25
    with np.load(path) as file:
        assert file["done"] == 25
    same(fitted(checkpoint=path), fitted())


@pytest.mark.long
def test_a_process_that_was_killed_goes_on(tmp_path):
    path, script = tmp_path / "state.npz", tmp_path / "fit.py"
    script.write_text(
        "import os, signal, sys\n"
        "import numpy as np\n"
        "from temporalnmf import TemporalNMF\n"
        "from temporalnmf.solvers import Checkpoint, Gibbs\n"
        "def die(progress):\n"
        "    if progress.iteration >= 40:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "TemporalNMF(2, likelihood='poisson', solver=Gibbs(40, 20, 2), random_state=0,\n"
        "            checkpoint=Checkpoint(sys.argv[1], 0),\n"
        "            callback=die).fit(np.load(sys.argv[2]))\n"
    )
    np.save(tmp_path / "x.npy", X)
    ended = subprocess.run(
        [sys.executable, script, path, tmp_path / "x.npy"], check=False, env=dict(os.environ)
    )
    assert ended.returncode == -signal.SIGKILL
    assert path.exists()
    same(fitted(checkpoint=path), fitted())


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(StopError):
        fitted(checkpoint=path, checkpoint_every=0, callback=StopAfter(30))
    before = path.read_bytes()
    for changes, words in (
        ({"n_tune": 21}, "n_tune=20, and this one has 21"),
        ({"chain": "gap"}, "chain=rate"),
        ({"data": GAPPY}, "to other data"),
        ({"random_state": 1}, "random_state="),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(**{**changes, "checkpoint": path})
    assert path.read_bytes() == before
    for changes in ({"exposure": np.full(len(X), 2.0)}, {"mask": np.arange(len(X)) != 5}):
        given = {"likelihood": "poisson", "n_draws": 40, "n_tune": 20, "n_chains": 2}
        model = estimator(2, solver="gibbs", random_state=0, **given)
        with pytest.raises(ValueError, match=r"other data .or another mask or exposure."):
            model.set_params(checkpoint=path).fit(X, **changes)
    path.write_bytes(before[:1000])
    with pytest.raises(ValueError, match="not a checkpoint of a fit"):
        fitted(checkpoint=path)


def test_draws_refuse_an_invalid_checkpoint_path(tmp_path):
    (tmp_path / "file").write_text("")
    for path, words in (
        (tmp_path / "absent" / "state.npz", "folder that does not exist"),
        (tmp_path / "file" / "state.npz", "folder that does not exist"),
        (tmp_path, "is not a file"),
        (3, "checkpoint=3"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(checkpoint=path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.long
def test_a_checkpoint_stays_until_there_is_a_result(tmp_path, monkeypatch):
    """The end of a run is written down, and what fails afterwards does not lose it."""

    def fails(*arguments):
        raise MemoryError

    path = tmp_path / "state.npz"
    with monkeypatch.context() as patch:
        patch.setattr(run, "_side_by_side", fails)
        with pytest.raises(MemoryError):
            fitted(checkpoint=path)
    told = []
    same(fitted(checkpoint=path, callback=lambda p: told.append(p)), fitted())
    assert not told  # nothing was left to draw


@pytest.mark.long
def test_a_callback_may_end_the_draws():
    first = fitted(callback=lambda progress: progress.iteration >= 50)
    assert first.posterior_.smoothing.shape == (1, 30)
    second = fitted(callback=lambda progress: progress.iteration >= 100)
    assert second.posterior_.smoothing.shape == (1, 40)
    np.testing.assert_array_equal(
        first.posterior_.log_posterior, second.posterior_.log_posterior[:, :30]
    )
    with pytest.raises(ValueError, match="before the first draw"):
        fitted(callback=lambda progress: True)


@pytest.mark.long
def test_thinning_keeps_every_so_many_and_bounds_memory(monkeypatch):
    every, third = fitted(n_draws=30), fitted(n_draws=30, thin=3)
    np.testing.assert_array_equal(
        third.posterior_.log_posterior, every.posterior_.log_posterior[:, 2::3]
    )
    np.testing.assert_array_equal(third.history_iterations_, 20 + 3 * np.arange(1, 11))
    assert run.thinning(500, 4 * 3 * 11463 * 4) == 2  # NIPS, four runs: 275 MB would be too much
    assert run.thinning(500, 10**9) == 500 // 8
    monkeypatch.setattr(run, "MEMORY", 30 * 2 * 2 * 5 * 4 // 2)
    bounded = fitted(n_draws=30)
    assert bounded.posterior_.thin == 2
    assert bounded.posterior_.components.nbytes <= run.MEMORY


def test_runs_are_matched_component_by_component():
    """Each run ends up in an order of its own; what is reported has one order."""
    model = fitted(counts(60), "gap", n_chains=4, n_draws=60, n_tune=60)
    for mean in model.posterior_.components.mean(axis=1):
        assert mean[:, 0].argmax() == model.components_[:, 0].argmax()
    totals = model.activations_.sum(axis=0)
    assert totals[0] >= totals[1]
    assert model.stability_.min() > 0.9


@pytest.mark.long
def test_components_with_hyper_parameters_of_their_own_keep_their_places():
    """Runs are not matched then: the first component is the one that moves, in every run."""
    rng = np.random.default_rng(1)
    t = np.arange(60)
    levels = np.column_stack([50 + 20 * np.sin(t / 6), 50 + 20 * np.cos(t / 6)])
    data = rng.poisson(levels @ [[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]]).astype(float)
    model = fitted(data, Rate(alpha=[20.0, 2000.0]), n_chains=4, n_draws=100, n_tune=100)
    movement = np.abs(np.diff(np.log(model.posterior_.activations), axis=2)).mean(axis=(1, 2))
    assert np.all(movement[:, 0] > 3.0 * movement[:, 1]), movement


def test_runs_with_given_starts_begin_apart():
    model = fitted(init=(np.full((2, 5), 0.2), np.full((len(X), 2), 50.0)), n_tune=0, n_draws=1)
    one, other = model.posterior_.activations[:, 0]
    assert abs(one / other - 1.0).max() > 0.05


JUMP = counts(30)
JUMP[25:] *= 2.0


def levels(draws):
    """Logs (draws, 12) of totals and of one component at some steps, and squares of them."""
    some = draws[:, [0, 24, 29]]
    found = np.log(np.concatenate([some.sum(axis=2), some[..., 0]], axis=1))
    return np.concatenate([found, (found - [5.1, 5.35, 5.7, 4.8, 4.1, 4.1]) ** 2], axis=1)


def batches(x, size=10):
    """Means of successive draws, next to independent of each other."""
    return x.reshape(-1, size, x.shape[-1]).mean(axis=1)


@pytest.mark.long
def test_draws_appended_one_by_one_have_the_law_of_all_at_once():
    """Of past and new activations, by means and spreads, where new data contradict the past.

    Twice 12 t-tests at 1e-3 together. The false-alarm rate of their family is below 2e-3.
    """
    model = fitted(JUMP[:25], Rate(1000.0), n_draws=100, n_tune=50)
    before = levels(model.posterior_.flat("activations")[:, [0, *range(1, 25), *[24] * 5]])
    alone = levels(model.smooth(JUMP, n_samples=100).draws)
    together = copy.deepcopy(model).append(JUMP[25:])
    for n in range(25, 30):
        model.append(JUMP[n : n + 1])
    found = [levels(m.posterior_.flat("activations")) for m in (model, together)]
    assert stats.ttest_1samp(batches(found[0] - found[1]), 0.0).pvalue.min() > 1e-3 / 12
    # `smooth` draws the whole series from a start that knows nothing of the fit's activations.
    apart = stats.ttest_ind(batches(found[1]), batches(alone), equal_var=False)
    assert apart.pvalue.min() > 1e-3 / 12
    # The jump at the end moves what was known of the step before it.
    moved = (found[1] - before)[:, 1]
    assert moved.mean() > 5.0 * before[:, 1].std()


def test_new_steps_are_appended_draw_by_draw():
    whole = counts(30)
    model = fitted(whole[:25])
    components = model.posterior_.components
    model.append(whole[25:])
    draws = model.posterior_
    assert draws.components is components
    assert draws.activations.shape == (2, 40, 30, 2)
    assert len(model.activations_) == 30
    np.testing.assert_allclose(model.activations_, draws.activations.mean(axis=(0, 1)))
    np.testing.assert_allclose(model.transform(whole), model.activations_)
    totals = model.activations_[25:].sum(axis=1)
    assert abs(totals / whole[25:].sum(axis=1) - 1.0).max() < 0.2
    assert model.forecast(2).times.tolist() == [30, 31]
    found = step_errors(model).error.sum() * whole.shape[1]
    assert model.reconstruction_err_ == pytest.approx(found, rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.append(counts(32)[30:], update_components=True)
    assert model.posterior_.activations.shape == (2, 40, 32, 2)


def test_appended_steps_without_data_leave_the_draws_alone():
    model = fitted(X)
    before = model.posterior_
    expected = model.forecast(2).activations
    model.append(np.full((2, 5), np.nan))
    assert model.posterior_ is before
    np.testing.assert_array_equal(model.activations_[-2:], expected)


def test_steps_after_a_trailing_gap_are_appended():
    data = X.copy()
    data[-2:] = np.nan
    model = fitted(data)
    assert model.posterior_.activations.shape[2] == 22
    model.append(X[-3:])
    assert model.posterior_.activations.shape[2] == 27
    assert len(model.activations_) == 27


def test_a_continued_chain_goes_on_from_the_last_step():
    """Without data, continued activations are the forecast; with faint data near the last value."""
    model = fitted(X, Rate(1e4))
    nothing = np.full((3, 5), np.nan)
    np.testing.assert_allclose(
        model.transform(nothing, continue_chain=True), model.forecast(3).activations
    )
    faint = np.full((1, 5), np.nan)
    faint[0, 3] = 40.0  # as good as nothing against a chain that moves by 1 %
    continued = model.transform(faint, continue_chain=True)[0]
    assert abs(continued / model.activations_[-1] - 1.0).max() < 0.05
    alone = model.transform(faint)[0]
    assert abs(alone / model.activations_[-1] - 1.0).max() > 0.2


def test_the_data_of_the_fit_have_the_activations_of_the_fit():
    model = fitted(GAPPY)
    np.testing.assert_allclose(model.transform(GAPPY), model.activations_, rtol=1e-12)
    np.testing.assert_array_equal(model.smooth(GAPPY).draws, model.smooth(n_samples=80).draws)


@pytest.mark.long
@pytest.mark.parametrize("chain", [Rate(1e4), BGAR(3.0, "auto", 0.9)], ids=["rate", "bgar"])
def test_activations_of_other_data_are_as_well_known_as_those_of_the_fit(chain):
    """The same counts but for one, so that they are drawn anew: totals spread as much."""
    data = counts(40)
    model = fitted(data, chain, n_draws=300, n_tune=100)
    other = data.copy()
    other[0, 0] += 1.0
    spread = [found.draws.sum(axis=2).std(axis=0).mean() for found in
              (model.smooth(other), model.smooth())]  # fmt: skip
    assert 0.8 < spread[0] / spread[1] < 1.25, spread


def test_a_law_without_a_mean_has_a_median():
    """HierRate with α_z ≤ 1: trailing steps, forecasts and files stay finite."""
    data = X.copy()
    data[-2:] = np.nan
    model = fitted(data, HierRate(0.8, "auto", 0.8))
    assert np.isfinite(model.activations_).all()
    assert np.isfinite(model.smooth().values).all()
    ahead = model.forecast(2)
    assert ahead.point.startswith("median")
    low, high = ahead.interval(0.5, of="components")
    assert np.all((low <= ahead.activations) & (ahead.activations <= high))


def test_data_without_an_observed_entry_are_refused():
    model, nothing = fitted(), np.full((2, 5), np.nan)
    for method in (model.transform, model.impute, model.smooth):
        with pytest.raises(ValueError, match="no observed entry"):
            method(nothing)


@pytest.mark.long
def test_a_feature_that_was_never_observed_tells_nothing_later():
    data, later = X.copy(), X[:4].copy()
    data[:, 1] = np.nan
    model = fitted(data)
    later[:, 1] = 1000.0
    assert model.components_[:, 1].max() == 0.0
    totals = [model.transform(x).sum() for x in (later, X[:4])]
    assert totals[0] == pytest.approx(totals[1], rel=1e-9)
    longer = [copy.deepcopy(model).append(x).activations_ for x in (later, X[:4])]
    np.testing.assert_allclose(*longer, rtol=1e-9)


def test_scores_from_draws_are_those_of_the_mean_over_draws():
    from scipy.stats import poisson

    model = fitted(X)
    expected = poisson.logpmf(X, model.smooth(n_samples=80).values).mean()
    assert model.score(X) == pytest.approx(expected, rel=1e-6)


@pytest.mark.long
def test_select_has_plain_nmf_as_a_rival_of_draws():
    from temporalnmf.selection import HiddenSteps, select

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = select(
            X, chains=["gap"], n_components=[1, 2], splitter=HiddenSteps(2, random_state=0),
            random_state=0, solver=Gibbs(n_draws=10, n_tune=5, n_chains=1), smoothing="learn",
        )  # fmt: skip
    assert {candidate.chain for candidate in found.candidates} == {"last_value", "none", "gap"}


def test_a_file_holds_the_smoothing_of_the_fit_not_one_set_later(tmp_path):
    model = fitted(smoothing="learn")
    used = model.smoothing_
    again = load(model.set_params(smoothing=0.1).save(tmp_path / "model.npz"))
    assert again.smoothing_ == used
    mode = estimator(2, random_state=0).fit(X).set_params(solver="gibbs", smoothing="learn")
    assert load(mode.save(tmp_path / "mode.npz")).smoothing_ == 0.1


@pytest.mark.long
def test_a_model_of_draws_survives_a_round_trip_through_a_file(tmp_path):
    model = fitted(GAPPY, BGAR("learn", "learn", "learn"), smoothing="learn")
    again = load(model.save(tmp_path / "model.npz"))
    same(model, again)
    assert repr(again.posterior_) == repr(model.posterior_)
    assert again.smoothing_ == model.smoothing_
    assert again.posterior_.diagnosis == model.posterior_.diagnosis
    np.testing.assert_array_equal(again.forecast(2).samples(), model.forecast(2).samples())
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_models_of_draws_are_calibrated():
    model = fitted(X, n_draws=10, n_tune=5, n_chains=1).calibrate(5)
    assert model.calibration_.n_origins == 5
    assert {check.of for check in model.calibration_.checks} >= {"totals", "components", "entries"}
    ahead = model.forecast(1)
    assert ahead.checked.tolist() == [True]
    np.testing.assert_array_equal(ahead.samples().sum(axis=2), ahead.samples("totals"))


def test_a_clone_of_a_fitted_model_has_the_parameters_as_given():
    model = fitted(X, Rate("learn"))
    copy = clone(model)
    assert copy.chain.alpha == "learn"
    assert copy.get_params()["solver__n_draws"] == 40


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"likelihood": "exponential"},
            "likelihood='exponential'.*'negative_binomial' only.*accelerated",
        ),
        ({"chain": "none"}, "chain='none' is not a prior.*'gap'"),
        ({"smoothing": 0.0}, "smoothing=0.0.*positive number, or 'learn'"),
        ({"smoothing": "guess"}, "smoothing='guess'.*or 'learn'"),
        ({"point": "mode"}, "point='mode'"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"n_tune": -1}, "n_tune=-1"),
        ({"n_chains": 1.5}, "n_chains=1.5"),
        ({"thin": 41}, "thin=41 is larger than n_draws=40"),
        ({"chain": Rate(alpha="guess")}, "alpha='guess'.*'learn'"),
        ({"chain": HierRate(beta_z="learn", beta_h="learn")}, "only their ratio matters"),
    ],
)
def test_settings_that_draws_cannot_have_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        fitted(**settings)


def test_a_chain_without_conditional_laws_is_refused():
    class Mine(Rate):
        name = "mine"
        _kernels = Rate._kernels._replace(draw=None)

    with pytest.raises(ValueError, match=r"Mine\(\).*has no draws.*rate"):
        fitted(chain=Mine())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (X + 0.5, r"X has \d\.5,.*whole numbers.*exposure="),
        (np.zeros_like(X), "zero wherever it is observed"),
    ],
)
def test_data_that_are_no_counts_are_refused(data, words):
    with pytest.raises(ValueError, match=words):
        fitted(data)


def test_draws_refuse_weights_between_zero_and_one():
    with pytest.raises(ValueError, match=r"mask has the weight 0\.5.*observed or not"):
        estimator(2, solver="gibbs", n_draws=2).fit(X, mask=np.full(len(X), 0.5))


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match=r"solver='hmc'.*gibbs"):
        estimator(2, solver="hmc").fit(X)


def test_draws_that_are_not_settled_warn_and_are_not_called_converged():
    with pytest.warns(ConvergenceWarning, match="Not settled|different components") as caught:
        model = estimator(2, solver="gibbs", n_draws=20, n_tune=5, n_chains=2).fit(X)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.posterior_.diagnosis.verdict in model.stop_reason_
    assert any(model.posterior_.diagnosis.verdict in note for note in model.forecast(1).notes)


def test_a_smoothing_that_was_given_is_the_one_used():
    assert fitted(smoothing=0.1).smoothing_ == 0.1


def test_rates_from_draws_are_per_unit_of_exposure():
    """Counts in proportion to their exposure have the same rates."""
    exposure = np.linspace(1.0, 3.0, len(X))
    rng = np.random.default_rng(1)
    data = rng.poisson(exposure[:, None] * np.full((1, 5), 20.0)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = estimator(1, solver="gibbs", n_draws=50, n_tune=20, random_state=0)
        model.fit(data, exposure=exposure)
    assert abs(model.activations_.sum(axis=1) / 100.0 - 1.0).max() < 0.2
    assert abs(model.forecast(1, exposure=10.0).values.sum() / 1000.0 - 1.0) < 0.2
