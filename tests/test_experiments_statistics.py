"""Intervals and p-values of paired differences."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from temporalnmf.metrics import kl_error
from temporalnmf.selection.statistics import (
    FEWEST,
    effective_number,
    holm,
    over_origins,
    over_splits,
    resampled_error,
)

DOCS = Path(__file__).parents[1] / "docs"
N_DRAWS = 1000
# Of a count with expectation 0.9 N_DRAWS or more, the chance to fall below is under 1e-6.
LEAST = (0.9 - 4.8 * np.sqrt(0.9 * 0.1 / N_DRAWS)) * N_DRAWS


def covered(found):
    return sum(one.low <= 0.0 <= one.high for one in found)


def test_the_corrected_t_covers_overlapping_splits_and_the_naive_one_does_not():
    """Ten splits with the correlation that the method supposes, n_test/(n_train + n_test)."""
    rng, ratio = np.random.default_rng(0), 0.25
    rho = ratio / (1.0 + ratio)
    shared = np.sqrt(rho) * rng.normal(size=(N_DRAWS, 1))
    d = shared + np.sqrt(1.0 - rho) * rng.normal(size=(N_DRAWS, 10))
    assert covered(over_splits(one, ratio) for one in d) == pytest.approx(
        0.95 * N_DRAWS, abs=4.9 * np.sqrt(0.95 * 0.05 * N_DRAWS)
    )
    assert covered(over_splits(one, 0.0) for one in d) < LEAST


def autoregressive(phi, n, rng):
    d = np.empty((N_DRAWS, n))
    d[:, 0] = rng.normal(size=N_DRAWS)
    for i in range(1, n):
        d[:, i] = phi * d[:, i - 1] + np.sqrt(1.0 - phi**2) * rng.normal(size=N_DRAWS)
    return d


@pytest.mark.parametrize("phi", [0.0, 0.2, 0.4])
def test_intervals_over_dependent_origins_cover_the_mean(phi):
    d = autoregressive(phi, 20, np.random.default_rng(1))
    found = [one for one in (over_origins(row, 1 / 45) for row in d) if not np.isnan(one.low)]
    assert len(found) > 0.7 * N_DRAWS
    assert covered(found) >= LEAST * len(found) / N_DRAWS
    if phi == 0.4:
        assert covered(over_splits(one, 0.0) for one in d) < LEAST


def test_origins_that_hardly_tell_anything_new_have_no_interval():
    """A walk has no mean to estimate: nearly always fewer than five origins count."""
    walks = np.cumsum(np.random.default_rng(2).normal(size=(N_DRAWS, 20)), axis=1)
    silent = sum(np.isnan(over_origins(walk, 0.0).low) for walk in walks)
    assert silent > 0.8 * N_DRAWS


def test_effective_numbers_are_those_of_autoregressive_series():
    rng = np.random.default_rng(3)
    alternating = np.tile([1.0, -1.0], 10) + 0.01 * rng.normal(size=20)
    assert effective_number(alternating) == 20.0  # never more than there are
    assert effective_number(np.full(20, 3.0)) == 20.0
    for phi in (0.3, 0.6):
        d = autoregressive(phi, 400, rng)[:300]
        mean = np.mean([effective_number(row) for row in d]) / 400
        assert mean == pytest.approx((1 - phi) / (1 + phi), rel=0.05)


def test_intervals_are_those_computed_by_hand():
    d = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    error = np.sqrt(2.5 * (1 / 5 + 0.25))
    assert resampled_error(d, 0.25) == pytest.approx(error, rel=1e-15)
    found = over_splits(d, 0.25)
    reach = error * stats.t(4).ppf(0.975)
    assert found[:3] == pytest.approx((3.0, 3.0 - reach, 3.0 + reach), rel=1e-14)
    assert found.p == pytest.approx(2 * stats.t(4).sf(3.0 / error), rel=1e-12)
    # Without overlap, the t test of the textbook.
    assert over_splits(d, 0.0).p == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue, rel=1e-12)


@pytest.mark.parametrize(
    "d",
    [np.arange(FEWEST - 1.0), np.full(9, -2.5), np.full(9, 0.1 + 0.2), np.array([]),
     np.r_[np.arange(9.0), np.nan]],
    ids=["few", "equal", "rounding", "none", "nan"],
)  # fmt: skip
def test_differences_that_no_method_is_valid_for_have_no_interval(d):
    for found in (over_splits(d, 0.1), over_origins(d, 0.1)):
        assert np.isnan([found.low, found.high, found.p]).all()


def by_definition(p):
    """Step-down, as a textbook has it: reject the smallest while p ≤ α/(m − i)."""
    adjusted = []
    for value in p:
        alphas = np.linspace(0.0, 1.0, 20_001)[1:]
        order = sorted(p)
        least = 1.0
        for alpha in alphas:
            n_rejected = 0
            while n_rejected < len(p) and order[n_rejected] <= alpha / (len(p) - n_rejected):
                n_rejected += 1
            if n_rejected and value <= order[n_rejected - 1]:
                least = alpha
                break
        adjusted.append(least)
    return adjusted


def test_holm_agrees_with_its_definition():
    rng = np.random.default_rng(4)
    for m in (1, 2, 5):
        p = rng.uniform(size=m) ** 3
        np.testing.assert_allclose(holm(p), by_definition(p), atol=5.1e-5)
    with_nan = holm(np.array([0.02, np.nan, 0.03]))
    np.testing.assert_array_equal(with_nan, [0.04, np.nan, 0.04])
    assert holm(np.array([])).size == 0


def test_holm_controls_the_family_wise_error_rate():
    """Ten comparisons without a difference: any is named in at most 5 % of the families."""
    rng = np.random.default_rng(5)
    named = sum(holm(rng.uniform(size=10)).min() < 0.05 for _ in range(N_DRAWS))
    assert named <= 0.05 * N_DRAWS + 4.9 * np.sqrt(0.05 * 0.95 * N_DRAWS)


def test_the_compare_page_shows_the_simulation_whose_figures_keep_their_bounds():
    """At least 90 % cover, at most 5 % of runs with a false verdict (binomial error), power."""
    from compare_simulation import KINDS, rendered

    page = DOCS / "compare.md"
    found = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    assert rendered(text, found) == text
    assert list(found) == list(KINDS)
    for of_kind in found.values():
        n = of_kind["datasets"]
        assert n >= 200
        assert f"of {n} runs" in text
        assert of_kind["covered"] >= 0.9 * of_kind["intervals"]
        assert of_kind["false_runs"] <= stats.binom(n, 0.05).ppf(0.95)
        assert of_kind["planted_named"] >= 0.8 * n
        for row in of_kind["comparisons"]:
            assert row["covered"] >= stats.binom(row["intervals"], 0.9).ppf(0.001), row


@pytest.mark.long
def test_a_small_simulation_counts_its_intervals_and_names_nothing(tmp_path, monkeypatch):
    """Two data sets of twelve steps tell too little for a verdict."""
    import compare_simulation as simulation

    monkeypatch.setattr(simulation, "N", 12)
    monkeypatch.setattr(simulation, "STARTS", 1)
    few = {name: simulation.GRIDS[name] for name in ("last_value", "none", "rate")}
    monkeypatch.setattr(simulation, "GRIDS", few)
    for seed in range(2):
        simulation.fits(seed, "same", tmp_path)
    records = [json.loads(path.read_text())["records"] for path in sorted(tmp_path.iterdir())]
    found = simulation.judged(records, "same")
    rows = found["comparisons"]
    assert found["datasets"] == 2
    assert [row["error"] for row in rows] == ["gap error"] * 3 + ["forecast error"] * 3
    assert [row["intervals"] for row in rows[:3]] == [2, 2, 2]
    assert min(row["intervals"] for row in rows[3:]) < 2  # four origins have none
    assert found["intervals"] == sum(row["intervals"] for row in rows)
    assert [row["named"] for row in rows] == [0] * 6
    assert found["false_runs"] == 0


def test_the_planted_error_is_a_fifth_larger():
    """Over data sets that it was not made from, within 4.9 standard errors."""
    import compare_simulation as simulation

    size, errors = simulation.disturbance("same", 100), []
    for seed in range(300):
        X, expected = simulation.drawn(seed, "same")
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=X.shape)
        worse = expected * np.exp(size * signs)
        errors.append([kl_error(X[-20:], rate[-20:]) for rate in (expected, worse)])
    true, planted = np.array(errors).T
    excess = planted - 1.2 * true
    assert abs(excess.mean()) < 4.9 * excess.std(ddof=1) / np.sqrt(len(excess)) + 0.01 * true.mean()
