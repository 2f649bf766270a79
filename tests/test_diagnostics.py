"""R-hat and effective sample sizes, and what is said about them."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from temporalnmf.chains import GaP
from temporalnmf.sampling.diagnostics import Diagnosis, Quantity, ess_bulk, ess_tail, rhat
from temporalnmf.sampling.draws import PosteriorDraws


def autoregressive(runs, draws, strength, seed):
    """Runs of an AR(1) process with spread one."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(runs, draws)) * np.sqrt(1.0 - strength**2)
    x = np.empty((runs, draws))
    x[:, 0] = rng.normal(size=runs)
    for i in range(1, draws):
        x[:, i] = strength * x[:, i - 1] + noise[:, i]
    return x


def examples():
    """Draws of many kinds: slow and fast, odd lengths, runs apart, in place or in spread."""
    lengths = [(4, 500), (4, 501), (3, 77), (2, 20), (4, 4), (4, 5), (4, 9)]
    strengths = (-0.6, 0.0, 0.5, 0.95)
    found = {
        f"{runs}x{draws}, {strength}": autoregressive(runs, draws, strength, seed)
        for seed, (runs, draws) in enumerate(lengths)
        for strength in strengths
    }
    found["apart"] = autoregressive(4, 300, 0.3, 90) + np.arange(4.0)[:, None]
    found["spread"] = autoregressive(4, 300, 0.3, 91) * np.array([1.0, 1.0, 1.0, 4.0])[:, None]
    found["skewed"] = np.exp(3.0 * autoregressive(4, 301, 0.7, 92))
    found["drift"] = autoregressive(4, 300, 0.3, 93) + np.linspace(0.0, 2.0, 300)
    found["ties"] = np.round(autoregressive(4, 301, 0.5, 94))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_numbers_are_those_of_arviz(example):
    x = EXAMPLES[example]
    along = {"chain_axis": 0, "draw_axis": 1}
    assert rhat(x) == pytest.approx(array_stats.rhat(x, **along), rel=1e-10)
    assert ess_bulk(x) == pytest.approx(array_stats.ess(x, **along, method="bulk"), rel=0.01)
    tail = array_stats.ess(x, **along, method="tail", prob=(0.05, 0.95))
    assert ess_tail(x) == pytest.approx(tail, rel=0.01)


def test_the_halves_of_one_run_are_compared():
    """A run that drifts disagrees with itself. (arviz has no R-hat of one run.)"""
    x = autoregressive(1, 334, 0.5, 11)
    along = {"chain_axis": 0, "draw_axis": 1}
    assert rhat(x) < 1.05
    assert ess_bulk(x) == pytest.approx(array_stats.ess(x, **along, method="bulk"), rel=0.01)
    tail = array_stats.ess(x, **along, method="tail", prob=(0.05, 0.95))
    assert ess_tail(x) == pytest.approx(tail, rel=0.01)
    assert rhat(x + np.linspace(0.0, 4.0, 334)) > 1.5


def test_diagnostics_of_many_quantities_are_those_of_each_alone():
    x = np.stack([autoregressive(4, 100, s, 7) for s in (0.0, 0.3, 0.6, 0.9)], axis=2)
    x = x.reshape(4, 100, 2, 2)
    for number in (rhat, ess_bulk, ess_tail):
        found = number(x)
        assert found.shape == (2, 2)
        one_by_one = [number(x[..., i, j]) for i in range(2) for j in range(2)]
        np.testing.assert_allclose(found.ravel(), one_by_one, rtol=1e-12)


def test_rhat_of_constant_draws_is_one_or_infinite():
    """One value: nothing to disagree about. A value per run: as far apart as can be."""
    x = np.full((4, 50), 3.7)
    assert rhat(x) == 1.0
    assert ess_bulk(x) == ess_tail(x) == 200.0
    apart = np.repeat(np.arange(4.0)[:, None], 50, axis=1)
    assert rhat(apart) == np.inf
    assert ess_bulk(apart) < 10.0


def draws_of(
    activations,
    *,
    log_posterior=None,
    smoothing=None,
    parameters=None,
    learned=(),
    other_runs=None,
    other=(),
):
    """Posterior draws by hand, activations (runs, draws, steps, components).

    Components `other` consist of something else in `other_runs`.
    """
    C, D, _, K = activations.shape
    components = np.tile(np.array([0.9, 0.1], dtype=np.float32), (C, D, K, 1))
    for k in other:
        components[other_runs, :, k] = 0.1, 0.9
    if log_posterior is None:
        log_posterior = autoregressive(C, D, 0.0, 77)
    return PosteriorDraws(
        components=components,
        activations=activations,
        parameters=parameters or {},
        smoothing=np.full((C, D), 0.1) if smoothing is None else smoothing,
        log_posterior=log_posterior,
        chain=GaP(2.0, 1.0),
        level=1.0,
        learned=learned,
    )


def independent(runs=4, draws=400, steps=3, components=2, seed=5):
    return np.random.default_rng(seed).gamma(20.0, 0.1, size=(runs, draws, steps, components))


def swapped(runs=4):
    """Half of the runs have the components the other way round; totals are the same."""
    H = independent(runs)
    H[..., 0] += 5.0
    H[::2] = H[::2, ..., ::-1]
    return H


def test_the_verdict_on_runs_that_agree_tells_what_their_draws_are_worth():
    diagnosis = draws_of(independent()).diagnosis
    assert diagnosis.ok
    least = min(min(q.ess_bulk, q.ess_tail) for q in diagnosis.quantities)
    worst = max(q.rhat for q in diagnosis.quantities)
    assert 400.0 < least < 1600.0
    assert worst < 1.02
    assert diagnosis.verdict == (
        f"The 4 runs agree (R-hat at most {worst:.2f}), and their draws are worth at least "
        f"{least:.0f} independent ones."
    )


def test_the_diagnosis_covers_all_quantities_that_move():
    """Log posterior, totals, forecasts, activations, and what moves besides."""
    names = [q.name for q in draws_of(independent()).diagnosis.quantities]
    assert names == ["log posterior", "totals", "forecasts", "activations"]
    moving = draws_of(
        independent(),
        smoothing=np.exp(autoregressive(4, 400, 0.9, 3)),
        parameters={name: np.exp(independent(steps=1)[:, :, 0]) for name in ("alpha", "beta")},
        learned=("alpha",),  # beta goes along with it
    )
    by_name = {q.name: q for q in moving.diagnosis.quantities}
    assert list(by_name) == [*names, "alpha", "smoothing"]
    # The worst of several: each number is that of the quantity it belongs to.
    assert by_name["smoothing"].ess_bulk == pytest.approx(float(ess_bulk(moving.smoothing)))
    assert by_name["activations"].rhat == pytest.approx(float(rhat(moving.activations).max()))
    totals = moving.activations.sum(axis=3)
    assert by_name["totals"].ess_tail == pytest.approx(float(ess_tail(totals).min()))


def test_the_verdict_on_one_run_asks_for_more_runs():
    diagnosis = draws_of(independent(runs=1)).diagnosis
    assert diagnosis.verdict == (
        "The run has settled, but a single run cannot show whether others agree: use n_chains=4."
    )


def test_the_verdict_on_runs_with_other_components_but_the_same_totals_trusts_predictions():
    diagnosis = draws_of(swapped(), other_runs=slice(0, 4, 2), other=(0, 1)).diagnosis
    assert not diagnosis.ok
    assert min(diagnosis.rhat_of_components) > 1.5
    assert diagnosis.verdict == (
        "The runs found different components (1, 2), but agree on totals and forecasts: rely on "
        "predictions, not on what these components mean. The data may support fewer "
        "components only."
    )


def test_only_the_components_that_differ_are_named():
    """Two of three components are swapped in some runs."""
    H = np.concatenate([independent(components=1, seed=8), swapped()], axis=3)
    verdict = draws_of(H, other_runs=slice(0, 4, 2), other=(1, 2)).diagnosis.verdict
    assert "different components (2, 3)," in verdict


def test_the_verdict_on_runs_that_are_not_settled_asks_for_more_sweeps():
    """Totals are apart, so more sweeps are asked for, by name and with numbers."""
    H = independent()
    H[0, ..., 0] += 1.5
    diagnosis = draws_of(H, other_runs=0, other=(0,)).diagnosis
    assert not diagnosis.ok
    unsettled = [q for q in diagnosis.quantities if not q.settled(4)]
    assert [q.name for q in unsettled] == ["totals", "forecasts", "activations"]
    worst = max(q.rhat for q in unsettled)
    least = min(min(q.ess_bulk, q.ess_tail) for q in unsettled)
    assert diagnosis.verdict == (
        f"Not settled: totals, forecasts, activations (R-hat up to {worst:.2f}, should be at most "
        f"1.05; worth {least:.0f} independent draws, should be 200). Use more sweeps: n_tune= and "
        f"n_draws= 27 times as large; components 1 differ most."
    )


def test_components_that_are_alike_are_not_called_different():
    """Activations are apart, but the components consist of the same: the runs are slow."""
    diagnosis = draws_of(swapped()).diagnosis
    assert min(diagnosis.likeness) == pytest.approx(1.0)
    assert diagnosis.verdict.startswith("Not settled: activations (")
    assert "component" not in diagnosis.verdict


def test_the_verdict_on_runs_that_agree_but_are_slow_only_asks_for_more_sweeps():
    """R-hat is fine and no component is elsewhere: too few draws, and nothing else is said."""
    diagnosis = Diagnosis(
        (Quantity("log posterior", 1.01, 150.0, 900.0), Quantity("totals", 1.0, 900.0, 900.0)),
        n_runs=4,
        n_draws=500,
        rhat_of_components=(1.0, 1.01),
        likeness=(1.0, 0.99),
    )
    assert not diagnosis.ok
    assert diagnosis.verdict == (
        "Not settled: log posterior (R-hat up to 1.01, should be at most 1.05; worth 150 "
        "independent draws, should be 200). Use more sweeps: n_tune= and n_draws= 2 times "
        "as large."
    )


@pytest.mark.parametrize("draws", [1, 3])
def test_fewer_than_four_draws_settle_nothing(draws):
    diagnosis = draws_of(independent(draws=draws)).diagnosis
    assert not diagnosis.ok
    assert diagnosis.n_draws == draws
    assert all(q.rhat == np.inf and q.ess_bulk == 0.0 for q in diagnosis.quantities)
    assert diagnosis.verdict.startswith(f"Too few draws for a verdict, {draws} per run")


def test_four_draws_have_finite_diagnostics():
    diagnosis = draws_of(independent(draws=4)).diagnosis
    assert all(np.isfinite(q.rhat) and q.ess_bulk > 0.0 for q in diagnosis.quantities)


def test_a_printed_diagnosis_is_a_table_and_the_verdict():
    diagnosis = draws_of(independent()).diagnosis
    head, *rows, verdict = str(diagnosis).splitlines()
    assert head.split() == ["R-hat", "bulk", "ESS", "tail", "ESS"]
    assert [row.split("  ")[0] for row in rows] == [q.name for q in diagnosis.quantities]
    assert f"{diagnosis.quantities[1].ess_bulk:.0f}" in rows[1].split()
    assert verdict == diagnosis.verdict
