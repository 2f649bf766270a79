"""Posterior draws of negative binomial counts: their law, and what follows from a fit."""

import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

import geweke as joint
from cases import estimator
from stops import StopAfter, StopError
from temporalnmf import load
from temporalnmf.chains import GaP, Rate
from temporalnmf.chains.base import Chain
from temporalnmf.data.series import Series
from temporalnmf.likelihoods import Gamma, NegativeBinomial, Poisson
from temporalnmf.report.content import report_content
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling import gibbs as sampler
from temporalnmf.sampling import learning
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.solvers import Checkpoint
from test_posterior_laws import LEAST, SEEN, calibrated, means_of_run

GIVEN, LEARNED = NegativeBinomial(1.5), NegativeBinomial()


def simulation(likelihood, name="rate", seen=joint.MASKS["entries"], seed=0):
    chain = joint.SETTINGS[name]
    known = joint.known_parameters(chain, joint.SMOOTHING, 2, likelihood=likelihood)
    return joint.Simulation(known, seen, seed)


# Ways to break a sweep.


def _arguments_off(at, change):
    """Another argument of the allocation: the exposure of clumps (9) or the sizes (10)."""

    def apply(monkeypatch):
        right = sampler.allocate_rows

        def allocate_rows(*args):
            right(*args[:at], change(args[at]), *args[at + 1 :])

        monkeypatch.setattr(sampler, "allocate_rows", allocate_rows)

    return apply


def _exposure_of_counts(monkeypatch):
    """In place of that of clumps, for the activations."""
    right = Chain.draw

    def draw(chain, H, Z, Y, q, rng, first, *, held):
        known = np.where(
            q > 0.0, np.resize(EXPOSURE if len(q) == 2 else joint.EXPOSURE, len(q)), 0.0
        )
        right(chain, H, Z, Y, known, rng, first, held=held)

    monkeypatch.setattr(Chain, "draw", draw)


def _stale_clumps(monkeypatch):
    """The dispersion is drawn between clumps and what is drawn given them."""

    def sweep(run):
        parameters = run.parameters
        of_steps = run._allocate()
        parameters.likelihood.draw(run._value, run.count_positive(), run._rng)
        run._draw_components()
        exposure = run.exposure * parameters.likelihood.value.cost
        run.chain.draw(run.H, run.Z, of_steps, exposure, run._rng, run.first, held=0)

    monkeypatch.setattr(Gibbs, "sweep", sweep)


def _jacobian_dropped(monkeypatch):
    """The prior is taken for a density of log(1 + d)."""
    right = learning.slice_step

    def slice_step(rng, log_density, x, width):
        def wrong(x):
            return log_density(x) - x + np.log(np.expm1(x)) if x > 0.0 else -np.inf

        return right(rng, wrong, x, width)

    monkeypatch.setattr(learning, "slice_step", slice_step)


COUNTS_FOR_CLUMPS = _arguments_off(10, lambda size: np.full_like(size, np.inf))


# Geweke's test: six cases of up to 17 functionals; |z| beyond 4.5 by chance once in 1400 runs.


@pytest.mark.quick("rate-learned")
@pytest.mark.parametrize("law", [GIVEN, LEARNED], ids=["given", "learned"])
@pytest.mark.parametrize("name", ["rate", "shape", "bgar"])
def test_sweeps_leave_the_joint_law_as_it_is(name, law):
    """With a missing step, missing entries, and a feature that was never observed."""
    z = joint.geweke(simulation(law, name), n_chains=400, rounds=5)
    assert abs(z).max() < joint.BOUND, z


@pytest.mark.long
@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(_exposure_of_counts, id="exposure of activations"),
        pytest.param(_arguments_off(9, lambda q: q / GIVEN.cost), id="exposure of missing clumps"),
        pytest.param(COUNTS_FOR_CLUMPS, id="counts for clumps"),
        pytest.param(_arguments_off(10, lambda size: 0.4 * size), id="size"),
    ],
)
def test_gewekes_test_finds_a_wrong_conditional(breaks, monkeypatch):
    breaks(monkeypatch)
    z = joint.geweke(simulation(GIVEN, "gap"), n_chains=600, rounds=5)
    assert abs(z).max() > 1.5 * joint.BOUND, z


# Simulation-based calibration.


def _ranked(run):
    """The dispersion, two rates and a total."""
    rates = run.W @ run.H
    d = run.parameters.likelihood.value.dispersion
    return [d, rates[0, 0], rates[3, -1], run.H[:, 2].sum()]


@pytest.mark.quick("32")
@pytest.mark.parametrize("replicates", [32, 128], ids=str)
def test_ranks_of_the_truth_among_draws_are_uniform(replicates):
    """Four p-values: one is below 1e-4 by chance once in 2500 runs."""
    thin = 3 if replicates == 32 else 6
    found = calibrated(simulation(LEARNED, seen=SEEN, seed=1), replicates, 25, thin, _ranked)
    assert found.min() > LEAST, found


@pytest.mark.long
def test_ranks_find_counts_that_are_taken_for_clumps(monkeypatch):
    COUNTS_FOR_CLUMPS(monkeypatch)
    found = calibrated(simulation(LEARNED, seen=SEEN, seed=1), 128, 25, 6, _ranked)
    assert found.min() < 0.1 * LEAST, found


# Quadrature: one component, two steps, two features.

COUNTS, EXPOSURE = np.array([[7.0, 1.0], [0.0, 2.0]]), np.array([1.5, 0.8])
GAP, SMOOTHING = GaP(2.0, 0.4), 0.7


def _numbers(h1, h2, w, log_d):
    return np.array([h1, h2, h1**2, h2**2, w, w**2, log_d, log_d**2, h1 * log_d])


def by_quadrature(n):
    """Posterior means on grids of logit w, log d and log h, n points each."""
    x, log_d = np.linspace(-22.0, 22.0, n), np.linspace(-11.0, 10.0, n)
    w, d, h = 1.0 / (1.0 + np.exp(-x)), np.exp(log_d), np.exp(np.linspace(-14.0, 4.5, n))
    prior = SMOOTHING * (np.log(w) + np.log1p(-w))[:, None]  # of x: w^s (1 − w)^s
    log_mass = prior - 0.5 * (log_d / 2.0) ** 2
    moments = []
    for v, e in zip(COUNTS, EXPOSURE, strict=True):
        law = stats.gamma.logpdf(h, GAP.alpha, scale=1.0 / GAP.beta) + np.log(h)
        value = np.broadcast_to(law, (n, n, n)).copy()
        for count, weight in ((v[0], w), (v[1], 1.0 - w)):
            size = e * weight[:, None, None] * h / d[:, None]
            value += stats.nbinom.logpmf(count, size, 1.0 / (1.0 + d[:, None]))
        top = value.max()
        mass = np.exp(value - top)
        log_mass = log_mass + top + np.log(mass.sum(axis=2))
        moments.append([mass @ h**power / mass.sum(axis=2) for power in (1, 2)])
    mass = np.exp(log_mass - log_mass.max())
    (h1, s1), (h2, s2) = moments
    W, D = w[:, None] + 0.0 * h1, log_d + 0.0 * h1
    found = np.array([h1, h2, s1, s2, W, W**2, D, D**2, h1 * D])
    return (found * mass).sum(axis=(1, 2)) / mass.sum()


def of_draws(n_sweeps):
    """Means of draws, and their standard errors."""
    series = Series(COUNTS, np.ones((2, 1)), EXPOSURE)
    run = Gibbs(
        series,
        joint.known_parameters(GAP, SMOOTHING, 1, likelihood=LEARNED),
        np.full((2, 1), 0.5),
        np.ones((1, 2)),
        joint.FIRST_LAW,
        np.random.SeedSequence(3),
        Threads(1),
        series.observe(LEARNED.resolve(), Threads(1)),
    )

    def numbers(run):
        log_d = np.log(run.parameters.likelihood.value.dispersion)
        return _numbers(*run.H[0], run.W[0, 0], log_d)

    return means_of_run(run, numbers, n_sweeps)


@pytest.mark.quick("1200")
@pytest.mark.parametrize("n_sweeps", [1200, 24000], ids=str)
def test_draws_have_the_means_and_variances_of_quadrature(n_sweeps):
    """Nine means, errors from 40 batches: |t| > 6 by chance once in 200,000 runs."""
    expected = by_quadrature(81)
    np.testing.assert_allclose(by_quadrature(61), expected, rtol=2e-3, atol=1e-4)
    found, error = of_draws(n_sweeps)
    if n_sweeps > 10_000:
        assert np.all(error < 0.1 * np.maximum(abs(expected), 1.0)), error / expected
    assert np.all(abs(found - expected) < 6.0 * error), (found - expected) / error


@pytest.mark.long
@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(_exposure_of_counts, id="exposure"),
        pytest.param(COUNTS_FOR_CLUMPS, id="counts for clumps"),
        pytest.param(_arguments_off(10, lambda size: EXPOSURE), id="size λ"),
        pytest.param(_stale_clumps, id="stale clumps"),
        pytest.param(_jacobian_dropped, id="Jacobian"),
        pytest.param(lambda patch: patch.setattr(learning, "_WIDE", 3.0), id="prior"),
    ],
)
def test_quadrature_finds_a_wrong_conditional(breaks, monkeypatch):
    expected = by_quadrature(61)
    breaks(monkeypatch)
    found, error = of_draws(12_000)
    assert np.any(abs(found - expected) > 9.0 * error), (found - expected) / error


# Limits.


def test_without_dispersion_every_count_is_a_clump():
    """d → 0: the parts are those of Poisson counts."""
    X = np.random.default_rng(0).poisson(30.0, size=(4, 5)).astype(float)
    start, rest = (np.full((5, 1), 0.2), np.full((1, 4), 150.0)), (joint.FIRST_LAW,)
    for law in (Poisson(), NegativeBinomial(1e-8)):
        known = joint.known_parameters(GaP(2.0, 0.7), 0.7, 1, likelihood=law)
        series = Series(X, np.ones((4, 1)), np.ones(4))
        run = Gibbs(series, known, *start, *rest, np.random.SeedSequence(0), Threads(1))
        np.testing.assert_array_equal(run._allocate(), X.sum(axis=1)[None])
        assert law.cost == pytest.approx(1.0, abs=1e-8)


def counts(d=3.0, n_steps=24, seed=0):
    """Two components that take turns, and features in both."""
    rng, law = np.random.default_rng(seed), NegativeBinomial(d) if d else Poisson()
    level = np.linspace(1.0, 9.0, n_steps)
    shares = [[8.0, 1.0, 0.2, 2.0, 4.0, 1.0], [0.2, 9.0, 4.0, 2.0, 0.2, 1.0]]
    return law.sample(np.column_stack([level, 10.0 - level]) @ shares, rng)


X = counts()
GAPPY = X.copy()
GAPPY[0] = GAPPY[9:11] = GAPPY[-1] = np.nan
GAPPY[15, 2] = np.nan


def fitted(data=X, likelihood="negative_binomial", **settings):
    settings = {"n_draws": 40, "n_tune": 20, "n_chains": 2, "random_state": 0, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few draws never settle
        return estimator(2, likelihood=likelihood, solver="gibbs", **settings).fit(data)


def same(one, other):
    for name in ("components", "activations", "log_posterior"):
        np.testing.assert_array_equal(
            getattr(one.posterior_, name), getattr(other.posterior_, name), err_msg=name
        )
    np.testing.assert_array_equal(dispersions(one), dispersions(other))


def dispersions(model):
    return model.posterior_.of_likelihood["dispersion"]


def test_a_small_dispersion_gives_the_posterior_of_poisson_counts():
    """Means of 2 × 300 draws agree within five standard errors, errors by runs of 30."""
    plain = fitted(likelihood="poisson", n_draws=300, n_tune=100)
    clumped = fitted(likelihood=NegativeBinomial(1e-6), n_draws=300, n_tune=100)
    totals = [model.posterior_.activations.sum(axis=3) for model in (plain, clumped)]
    batches = [total.reshape(20, 30, -1).mean(axis=1) for total in totals]
    error = np.hypot(*(batch.std(axis=0, ddof=1) / np.sqrt(20) for batch in batches))
    difference = batches[0].mean(axis=0) - batches[1].mean(axis=0)
    assert np.all(abs(difference) < 6.0 * error), difference / error
    assert clumped.posterior_.of_likelihood == {}
    assert clumped.likelihood_.dispersion == 1e-6


@pytest.mark.parametrize("d", [0.0, 3.0])
def test_the_dispersion_is_recovered(d):
    found = np.sort(dispersions(fitted(counts(d, 60), n_draws=150, n_tune=50)).ravel())
    assert found[int(0.01 * len(found))] <= max(d, 0.05)
    assert d <= found[int(0.99 * len(found))] < max(2.0 * d, 0.4)


# A fit, and what follows.


def test_everything_that_a_model_does_works_from_draws(tmp_path):
    model = fitted(GAPPY, chain=Rate("learn"), smoothing="learn")
    drawn = dispersions(model)
    assert drawn.shape == (2, 40)
    assert len(np.unique(drawn)) == 80
    assert model.likelihood_.dispersion == drawn.mean()
    assert "dispersion" in {quantity.name for quantity in model.posterior_.diagnosis.quantities}
    assert model.impute(GAPPY).shape == GAPPY.shape
    assert model.transform(X[:5]).shape == (5, 2)
    assert np.isfinite(model.score(X[:5]))
    learned = report_content(model)["runs"]["learned"]
    assert list(learned["of_counts"]) == ["dispersion"]
    again = load(model.save(tmp_path / "model.npz"))
    same(model, again)
    assert again.likelihood_.dispersion == model.likelihood_.dispersion
    np.testing.assert_array_equal(again.forecast(2).samples(), model.forecast(2).samples())
    np.testing.assert_array_equal(again.transform(X[:5]), model.transform(X[:5]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        longer = again.append(counts(3.0, 27)[24:])
    assert longer.posterior_.activations.shape == (2, 40, 27, 2)
    np.testing.assert_array_equal(dispersions(longer), drawn)


def test_futures_have_the_dispersion_of_their_draw():
    model = fitted(n_draws=60)
    ahead = model.forecast(1, n_samples=120)
    which = model.posterior_.pick(120)
    np.testing.assert_array_equal(
        ahead.futures.likelihood.dispersion, dispersions(model).reshape(-1)[which]
    )
    totals = ahead.samples(of="totals")[:, 0]
    np.testing.assert_array_equal(ahead.samples()[:, 0].sum(axis=1), totals)
    model.calibrate(5)
    assert model.forecast(1).interval(0.9)[0].shape == (1, 6)


def test_samples_with_a_dispersion_per_row_have_their_variances():
    d, lam = np.repeat([0.5, 8.0], 20_000), np.full((40_000, 3), 20.0)
    law, rng = NegativeBinomial(d), np.random.default_rng(0)
    entries, totals = law.sample(lam, rng), law.sample(lam.sum(axis=1), rng)
    parts = law.split(totals, lam, rng)
    np.testing.assert_array_equal(parts.sum(axis=1), totals)
    for rows, excess in ((slice(0, 20_000), 0.5), (slice(20_000, None), 8.0)):
        for x, mean in ((entries[rows, 0], 20.0), (parts[rows, 2], 20.0), (totals[rows], 60.0)):
            assert x.mean() == pytest.approx(mean, rel=0.02)
            assert x.var() == pytest.approx(mean * (1.0 + excess), rel=0.08)
    few = law.sample(lam[:5], np.random.default_rng(1))
    assert few.shape == (5, 3)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_draws_do_not_depend_on_the_number_of_threads(storage):
    rng = np.random.default_rng(3)
    data = storage(rng.negative_binomial(rng.gamma(0.5, 1.0, size=(12, 900)), 0.3).astype(float))
    one, two = (fitted(data, n_jobs=n, n_draws=5, n_tune=5) for n in (1, 2))
    same(one, two)


def test_draws_of_both_storages_agree():
    """They have the same random numbers; values of the density differ by rounding."""
    one, other = (
        fitted(storage(X), n_draws=5, n_tune=0) for storage in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(dispersions(one), dispersions(other), rtol=1e-6)


@pytest.mark.parametrize("sweep", [13, 67])
def test_a_stopped_fit_resumes_with_the_same_draws(sweep, tmp_path):
    file = Checkpoint(tmp_path / "state.npz", every=0.0)
    with pytest.raises(StopError):
        fitted(GAPPY, checkpoint=file, callback=StopAfter(sweep))
    same(fitted(GAPPY, checkpoint=file), fitted(GAPPY))


def test_a_checkpoint_of_another_dispersion_is_refused(tmp_path):
    file = Checkpoint(tmp_path / "state.npz", every=0.0)
    with pytest.raises(StopError):
        fitted(likelihood=NegativeBinomial(2.0), checkpoint=file, callback=StopAfter(13))
    with pytest.raises(ValueError, match=r"is of a fit with .*2\.0.*3\.0"):
        fitted(likelihood=NegativeBinomial(3.0), checkpoint=file)


@pytest.mark.parametrize("law", ["exponential", "gamma", Gamma(2.0)])
def test_other_likelihoods_are_refused_with_a_remedy(law):
    words = "'poisson' and likelihood='negative_binomial' only.*solver='accelerated'"
    with pytest.raises(ValueError, match=words):
        fitted(X + 1.0, likelihood=law)


def test_fractions_are_refused():
    with pytest.raises(ValueError, match="fraction"):
        fitted(X + 0.5)
