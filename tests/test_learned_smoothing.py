"""The smoothing that posterior modes learn: evidence, parts of components, and results."""

import numpy as np
import pytest
from scipy import sparse

from cases import Case, chains, random_problem, random_series
from commands import done, refused
from stops import StopAt, StopError
from temporalnmf import TemporalNMF, load
from temporalnmf.chains import Rate
from temporalnmf.inference.smoothing import best_smoothing, log_evidence
from temporalnmf.likelihoods import Exponential, NegativeBinomial, Poisson
from temporalnmf.metrics import kl_error
from temporalnmf.observations.parts import EDGES, Parts, parts_of
from temporalnmf.report.made import how_it_was_made
from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of

K = 3


def simulated(s, n_features=200, n_steps=60, level=100.0, seed=0):
    """Counts of components that take turns, with weights from Dirichlet(s)."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(n_features, s), size=K)
    eras = np.arange(n_steps)[:, None] * K // n_steps == np.arange(K)
    moves = np.cumsum(rng.normal(0.0, 0.15, size=(n_steps, K)), axis=0)
    return rng.poisson(level * np.exp(moves) * (0.02 + eras) @ W).astype(float)


def fitted(X, **given):
    return TemporalNMF(K, **{"smoothing": "learn", "random_state": 0, "n_init": 2, **given}).fit(X)


# Evidence


def test_the_evidence_of_whole_counts_is_dirichlet_multinomial():
    """One factor per count; large counts in ranges."""
    counts = np.array([[0, 1, 255], [3, 0, 256], [0, 0, 64], [7000, 2, 0], [1, 0, 63]], dtype=float)

    def oracle(s):
        value = 0.0
        for column in counts.T:
            value += sum(np.log(s + i) for y in column for i in range(int(y)))
            value -= sum(np.log(len(counts) * s + i) for i in range(int(column.sum())))
        return value

    at = np.array([0.003, 0.1, 0.9, 20.0])
    found = [log_evidence(s, parts_of(counts, 5)) for s in at]
    np.testing.assert_allclose(np.diff(found), np.diff([oracle(s) for s in at]), rtol=1e-4)


def test_ranges_of_large_counts_have_the_mean_of_their_logarithms():
    at, y = np.array([0.1, 30.0, 2000.0]), np.array([[EDGES[400]]])
    found = [log_evidence(s, parts_of(y, 1)) for s in at]  # a single feature: no evidence
    np.testing.assert_allclose(found, 0.0 * at + found[0], atol=4e-3)


def test_parts_are_the_least_varied_counts_with_their_means():
    """A part of 2.3 is 2 with probability 0.7, else 3; tails of counts give it back."""
    y = np.array([[0.3, 2.3], [0.0, 1e7 + 0.5]])
    assert parts_of(y, 2).tails.sum() == pytest.approx(y.sum())
    ends = [log_evidence(0.4, parts_of(np.array([[end]]), 4)) for end in (2.0, 3.0)]
    none = np.zeros(len(EDGES) - 1)
    columns = [log_evidence(0.4, Parts(np.array(4.0), np.array([n]), none)) for n in (2, 3, 2.3)]
    between = log_evidence(0.4, parts_of(np.array([[2.3]]), 4)) - columns[2]
    assert between == pytest.approx(0.7 * (ends[0] - columns[0]) + 0.3 * (ends[1] - columns[1]))


def test_a_word_that_two_components_share_counts_once():
    """Half of a word each is one component or the other, not half a word of both."""
    shared = np.full((40, 2), 0.5)
    own = np.kron(np.eye(2), np.ones((20, 1)))
    empty = np.zeros((60, 2))
    found = [best_smoothing(parts_of(np.vstack([y, empty]), 100)) for y in (shared, own)]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_the_best_smoothing_balances_evidence_and_prior():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(500, rng.dirichlet(np.full(80, 0.3), size=4)).T.astype(float)
    parts = parts_of(counts, 80)
    s = best_smoothing(parts)
    assert 0.2 < s < 0.45
    step = 1e-3
    slope = (log_evidence(s * np.exp(step), parts) - log_evidence(s * np.exp(-step), parts)) / (
        2.0 * step
    )
    assert slope == pytest.approx(np.log(s / 0.1) / 2.0**2, abs=0.05)  # of a prior with spread 2
    nothing = parts_of(np.zeros((80, 4)), 80)
    assert best_smoothing(nothing) == pytest.approx(0.1, rel=1e-3)
    alike = best_smoothing(parts_of(np.full((80, 4), 1e9), 80))
    assert 1e2 < alike <= 0.1 * np.exp(10.0) * 1.001  # all features equal: no evidence against


@pytest.mark.parametrize(
    ("likelihood", "mask", "storage"),
    [
        (Poisson(), "none", "dense"), (Poisson(), "weights", "sparse mask"),
        (NegativeBinomial(0.7), "entries", "dense"), (NegativeBinomial(0.7), "none", "csr"),
    ],
    ids=["dense", "weights", "clumps, entries", "clumps, sparse"],
)  # fmt: skip
def test_parts_are_expected_counts_of_components(likelihood, mask, storage, place):
    """Σ_n m w h v*/λ, with clumps v* for a negative binomial law; wherever the data are."""
    case = Case(likelihood, chains("log")[0], "log", mask, storage)
    problem, W, H = random_problem(case, 2, place=place)
    series = random_series(np.random.default_rng(2), case)
    X, weights = (np.asarray(a.todense()) if sparse.issparse(a) else a
                  for a in (series.X, series.weights))  # fmt: skip
    expected = np.zeros(W.shape)
    for n, f in np.ndindex(X.shape):
        rates = series.exposure[n] * W[f] * H[:, n]
        count = X[n, f]
        if likelihood.name == "negative_binomial" and rates.any():
            size = rates.sum() / 0.7
            count = sum(size / (size + j) for j in range(int(count)))
        if count and rates.any():
            expected[f] += np.broadcast_to(weights, X.shape)[n, f] * count * rates / rates.sum()
    found = problem.observations.hold(W).parts(H)
    seen = np.broadcast_to(weights, X.shape).any(axis=0)
    assert found.n_features == seen.sum()
    np.testing.assert_allclose(found.totals, expected.sum(axis=0), rtol=1e-10)
    tails = np.array([np.clip(expected - j, 0.0, 1.0).sum() for j in range(5)])
    np.testing.assert_allclose(found.tails[:5], tails, rtol=1e-10)


# Fits


@pytest.mark.parametrize("s", [0.05, 0.4, 2.0])
def test_the_smoothing_is_near_the_truth_where_components_take_turns(s):
    found = [fitted(simulated(s, seed=seed), n_init=1).smoothing_ for seed in range(2)]
    assert 0.6 < np.exp(np.mean(np.log(found))) / s < 1.8, found


def test_hidden_entries_are_predicted_as_well_as_with_the_default_or_better():
    for s, best in ((0.1, 1.01), (2.0, 0.99)):
        X = simulated(s, level=30.0)
        seen = np.random.default_rng(1).random(X.shape) > 0.1
        errors = []
        for smoothing in ("learn", 0.1):
            model = TemporalNMF(K, smoothing=smoothing, random_state=0).fit(X, mask=seen)
            predicted = model.activations_ @ model.components_
            errors.append(kl_error(X[~seen], predicted[~seen]))
        assert errors[0] < best * errors[1]


def test_both_solvers_and_any_start_learn_the_same():
    X = simulated(0.3, level=400.0)
    found = [fitted(X).smoothing_, fitted(X, random_state=5).smoothing_]
    found.append(fitted(X, solver="mm", tol=1e-7, max_iter=3000).smoothing_)
    np.testing.assert_allclose(found, found[0], rtol=0.05)


def test_the_fit_is_a_mode_with_the_learned_smoothing():
    """A fit with this number, from there, stays; and EM is at its end."""
    X = simulated(0.3)
    model = fitted(X)
    given = (model.components_, model.activations_)
    again = TemporalNMF(K, smoothing=model.smoothing_, init=given, likelihood="poisson").fit(X)
    np.testing.assert_allclose(again.components_, model.components_, atol=2e-4)
    expected = model.activations_.T @ (X / (model.activations_ @ model.components_))
    parts = parts_of((model.components_ * expected).T, X.shape[1])
    assert best_smoothing(parts) == pytest.approx(model.smoothing_, rel=0.02)


def test_it_is_learned_together_with_the_chain():
    X = simulated(0.3)
    model = fitted(X, chain=Rate("learn"))
    assert model.smoothing_ == pytest.approx(fitted(X).smoothing_, rel=0.1)
    assert model.learned_["alpha"].shape == (K, 3)


def test_clumps_count_once():
    """Whole pages of the same words are no evidence for a flat component."""
    X = simulated(0.2)
    model = fitted(5.0 * X, likelihood="negative_binomial")
    assert model.likelihood_.dispersion > 2.0
    assert model.smoothing_ == pytest.approx(fitted(X).smoothing_, rel=0.3)


def test_a_feature_that_was_never_observed_is_no_evidence():
    X = simulated(0.3)
    more = np.column_stack([X, np.zeros((len(X), 300))])
    seen = np.ones(more.shape)
    seen[:, X.shape[1] :] = 0.0
    model = TemporalNMF(K, smoothing="learn", random_state=0, n_init=2).fit(more, mask=seen)
    assert model.smoothing_ == pytest.approx(fitted(X).smoothing_, rel=0.1)
    assert fitted(more).smoothing_ < 0.6 * model.smoothing_


def test_data_on_disk_learn_the_same(tmp_path):
    X = simulated(0.3)
    names = [f"f{i}" for i in range(X.shape[1])]
    write_shards(
        tmp_path / "data", X, names=names, timeline=timeline_of(np.arange(len(X))), n_shards=3
    )
    there = fitted(tmp_path / "data", tol=1e-8)
    assert there.smoothing_ == pytest.approx(
        fitted(X, likelihood="poisson", tol=1e-8).smoothing_, rel=0.01
    )


def test_a_callback_that_stops_the_fit_leaves_the_smoothing_of_the_start():
    assert fitted(simulated(2.0), callback=lambda progress: progress.iteration > 2,
                  n_init=1).smoothing_ == 0.1  # fmt: skip


def test_without_counts_of_components_it_is_refused():
    X = np.ones((9, 3))
    for likelihood in ("exponential", "gamma", "tweedie", "negative_binomial_2"):
        words = f"smoothing='learn' is learned from.*likelihood='{likelihood}'.*Give a number"
        with pytest.raises(ValueError, match=words):
            TemporalNMF(2, smoothing="learn", likelihood=likelihood).fit(X)
    TemporalNMF(2, smoothing=0.2, likelihood=Exponential()).fit(X)


def test_it_is_kept_in_a_file_and_shown(tmp_path):
    model = fitted(simulated(1.0), n_init=1)
    path = model.save(tmp_path / "model.npz")
    again = load(path)
    assert (again.smoothing, again.smoothing_) == ("learn", model.smoothing_)
    shown = f"{model.smoothing_:.3g}"
    assert f"{shown}, learned" in done("info", path).output
    assert how_it_was_made(model, None, None)["parameters"]["smoothing"].endswith(shown)


def test_the_command_line_learns_it_of_counts(tmp_path):
    X, table, out = simulated(1.0, n_features=6), tmp_path / "t.csv", tmp_path / "m.npz"
    np.savetxt(table, np.column_stack([np.arange(len(X)), X]), delimiter=",", fmt="%d",
               header="t,a,b,c,d,e,f", comments="")  # fmt: skip
    words = ("fit", table, "--components", 2, "--starts", 1, "--tol", 1e-4, "--out", out)
    done(*words, "--learn", "alpha,smoothing")
    model = load(out)
    assert model.smoothing_ != 0.1
    assert list(model.learned_) == ["alpha"]
    said = refused(*words, "--force", "--learn", "smoothing", "--likelihood", "tweedie")
    assert "--learn smoothing" in said
    assert "smoothing with --likelihood poisson or negative_binomial only" in said


@pytest.mark.parametrize("case", ["short", "one feature", "huge", "fractions", "one count"])
def test_a_learned_smoothing_is_finite_and_bounded(case):
    """With almost no data, no choice between features, sums beyond 2^53, and pseudo-counts."""
    rng = np.random.default_rng(0)
    X = {
        "short": rng.poisson(4.0, size=(3, 4)),
        "one feature": rng.poisson(20.0, size=(12, 1)),
        "huge": rng.poisson(50.0, size=(12, 6)) * 1e15,
        "fractions": rng.dirichlet(np.full(6, 0.5), size=12),
        "one count": np.eye(12, 4),
    }[case].astype(float)
    model = TemporalNMF(2, smoothing="learn", random_state=0).fit(X)
    assert 0.1 * np.exp(-10.0) <= model.smoothing_ <= 0.1 * np.exp(10.0)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.forecast(2, n_samples=20).values).all()
    if case == "one feature":
        assert model.smoothing_ == pytest.approx(0.1, rel=1e-2)


def test_a_fit_that_learns_resumes_with_the_same_bits(tmp_path):
    X, given = simulated(0.3, n_features=30), {"n_init": 1}
    whole = fitted(X, **given)
    given["checkpoint"] = tmp_path / "state.npz"
    with pytest.raises(StopError):
        fitted(X, **given, callback=StopAt(3))
    again = fitted(X, **given)
    assert again.smoothing_ == whole.smoothing_
    np.testing.assert_array_equal(again.components_, whole.components_)
