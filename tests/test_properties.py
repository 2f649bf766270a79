"""What has to hold for everything public, and for all trials that once failed."""

import faulthandler
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzzing import fits
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cases import FEW, MANY
from children import HUNG
from temporalnmf import TemporalNMF, registry
from temporalnmf.metrics import is_error, kl_error
from temporalnmf.reading import as_table
from temporalnmf.report import write_report
from temporalnmf.selection import HiddenBlocks, HiddenEntries, HiddenSteps, RollingOrigin, select
from temporalnmf.summary import component_summary, step_errors
from temporalnmf.timeline import timeline_of

CORPUS = sorted((Path(__file__).parent / "corpus" / "fits").glob("*.json"))


def kind(outcome):
    return "refused" if outcome.startswith("refused") else "fitted"


@pytest.fixture
def in_time():
    """Makes an example that hangs end the process, and tell where it was; Hypothesis would not."""

    def begin():
        faulthandler.dump_traceback_later(HUNG, exit=True)

    yield begin
    faulthandler.cancel_dump_traceback_later()


def unless_refused(make, *words):
    """What is made; None if it is refused with one of these words."""
    try:
        return make()
    except ValueError as error:
        if any(word in str(error) for word in words):
            return None
        raise


def some(n_examples):
    return settings(
        max_examples=n_examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


# Fits


@st.composite
def trials(draw):
    """Their numbers of components are those of which other tests compile kernels."""
    return fits.trial_of(
        lambda options: draw(st.sampled_from(options)), longest=(1000,), numbers=(FEW, MANY, 25)
    )


@some(15)
@given(trials())
def test_promises_hold_for_every_fit(in_time, trial):
    in_time()
    fits.run(trial)  # raises where one is broken


def recorded():
    """Trials that compile kernels of their own are long: see `cases.FEW`."""
    for path in CORPUS:
        trial = fits.Trial.read(path)
        shared = trial.sparse or trial.n_components == FEW or trial.n_components >= MANY
        yield pytest.param(path, id=path.stem, marks=() if shared else pytest.mark.long)


@pytest.mark.parametrize("path", list(recorded()))
def test_trials_that_once_failed_end_as_recorded(in_time, path):
    """They end as the file says: one that is fitted must not come to be refused unnoticed."""
    in_time()
    found = json.loads(path.read_text())
    assert "ends" in found, f'{path.name} has no word on how it ends: add "ends" when it is mended'
    assert kind(fits.run(fits.Trial.read(path))) == found["ends"]


@pytest.mark.long
@pytest.mark.parametrize(
    "likelihood", ["poisson", pytest.param("exponential", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("chain", registry.CHAINS)
def test_a_hundred_thousand_steps_are_fitted(in_time, chain, likelihood):
    in_time()
    short = fits.random_trial(0)
    trial = replace(
        short, n_steps=100_000, n_features=2, n_components=2, likelihood=likelihood, chain=chain,
        data="counts" if likelihood == "poisson" else "wide", unit=1.0, span=1e3, sparse=False,
        mask="steps", exposure=False, hyper={}, map_scale="log", solver="accelerated",
        init="random", smoothing=0.1, point="mean", max_iter=3, tol=0.0, seed=3, n_init=1,
        nan=False, single=False, sparse_mask=False,
    )  # fmt: skip
    assert fits.run(trial) == "fitted"


def test_trials_notice_a_promise_that_is_not_kept(monkeypatch):
    """Of the trials themselves: each of these mistakes would be one in the library."""
    trial = fits.Trial.read(CORPUS[0].parent / "vanished_gap.json")
    plain = replace(
        trial, n_steps=8, n_features=5, n_components=2, likelihood="poisson", data="counts",
        sparse=False, mask="entries", chain="rate", hyper={}, map_scale="log", solver="mm",
        unit=1.0, span=1.0, exposure=False, init="random", smoothing=0.1, point="mean", tol=0.0,
        max_iter=12, seed=5,
    )  # fmt: skip
    assert fits.run(plain) == "fitted"
    fit = TemporalNMF.fit

    def with_mistake(change):
        def mistaken(self, X, y=None, **given):
            change(fit(self, X, y, **given), X)
            return self

        return mistaken

    def infinite(model, X):
        model.activations_[0, 0] = np.inf

    def unequal(model, X):
        model.components_ *= 1.0 + 1e-9

    def rising(model, X):
        model.history_ = model.history_[::-1]

    def peeking(model, X):
        model.activations_ *= 1.0 + 1e-12 * np.min(np.nanmax(X, initial=0.0), initial=1e3)

    def refusing(model, X):
        raise ValueError("X has no observed entry")

    told = {
        infinite: "activations_ is finite",
        unequal: "components sum to one",
        rising: "never rises",
        peeking: "whatever is hidden",
        refusing: "refused without a documented reason",
    }
    for change, words in told.items():
        with monkeypatch.context() as patch:
            patch.setattr(TemporalNMF, "fit", with_mistake(change))
            with pytest.raises(fits.PromiseError, match=words):
                fits.run(plain)


# What is asked of a fitted model


@some(8)
@given(trials())
def test_every_model_has_a_report_and_finite_summaries(tmp_path, in_time, trial):
    in_time()
    assume(trial.n_steps <= 100)
    data = fits.data_of(trial)
    with fits._few_warnings():
        model = unless_refused(lambda: fits._fitted(trial, data), *fits.MUST, *fits.MAY)
        if model is None:
            return
        page = write_report(model, tmp_path / "report.html", overwrite=True).read_text()
        for one in component_summary(model):
            assert np.isfinite(one.share)
        errors = step_errors(model)
    assert page.rstrip().endswith("</html>")
    assert np.all(np.isfinite(errors.error[model.observed_]))


# Laws of motion


@st.composite
def laws(draw):
    """A law of motion with hyper-parameters anywhere in its domain, and values to start from."""
    law = registry.create(registry.PROCESSES, draw(st.sampled_from(sorted(registry.PROCESSES))), "")
    shape = draw(st.sampled_from([(), (3,)]))

    def values(lowest, highest):
        numbers = st.floats(np.log(lowest), np.log(highest)).map(np.exp)
        return draw(numbers) if not shape else np.array([draw(numbers) for _ in range(3)])

    given = {}
    for name in law.get_params():
        if name == "rho":
            given[name] = np.clip(values(1e-3, 1.0), 1e-3, 0.999)
        elif name.startswith("alpha"):
            given[name] = values(1e-3, 1e6)
        elif name.startswith("beta"):
            given[name] = values(1e-6, 1e6)
    return law.set_params(**given), values(1e-6, 1e6)


@pytest.mark.long
@some(200)
@given(laws(), st.integers(1, 30), st.integers(0, 2**31))
def test_laws_hold_at_the_edge_of_their_domain(in_time, case, steps, seed):
    in_time()
    law, start = case
    if law.name == "gar" and steps > 1 and np.max(-law.alpha * np.log(law.rho)) > 1e6:
        with pytest.raises(ValueError, match="jumps per step"):
            law.sample(7, steps, seed, start)
        return
    n = np.arange(1, steps + 1)
    paths = law.sample(7, steps, seed, start)
    assert np.all(np.isfinite(paths) & (paths >= 0.0))
    assert np.array_equal(paths, law.sample(7, steps, seed, start))
    mean, var = law.mean(start, n), law.var(start, n)
    assert np.all(mean >= 0.0)  # infinite where the law has none
    assert np.all((var >= 0.0) | np.isinf(mean))
    np.testing.assert_allclose(mean[0], start)
    if law.name != "gar":  # its steps have an atom
        density = law.log_density(start, 1.7 * start)
        assert np.all(density < np.inf)
    regime = law.regime()
    for one in regime if isinstance(regime, list) else [regime]:
        assert str(one).endswith(".")


# Errors, splits, times and tables

positive = st.floats(1e-100, 1e100)


@some(200)
@given(st.lists(st.tuples(st.floats(0.0, 1e100), positive), min_size=1, max_size=9))
def test_errors_are_not_negative_and_zero_for_exact_predictions(pairs):
    v, expected = map(np.array, zip(*pairs, strict=True))
    scale = np.sum(v) + np.sum(expected)
    assert kl_error(v, expected) >= -1e-12 * scale
    assert np.isfinite(kl_error(v, expected))
    assert abs(kl_error(expected, np.maximum(expected, 1e-15))) <= 1e-12 * np.sum(expected) + 1e-12
    assert is_error(expected, expected) == 0.0
    assert is_error(v + 1e-90, expected) >= -1e-9


@st.composite
def splitters(draw):
    seed = draw(st.integers(0, 99))
    n = draw(st.integers(1, 4))
    fraction = draw(st.sampled_from([0.01, 0.2, 0.5, 0.9]))
    return draw(
        st.sampled_from(
            [
                HiddenSteps(n, fraction=fraction, random_state=seed),
                HiddenBlocks(n, n_blocks=2, length=draw(st.integers(1, 5)), random_state=seed),
                HiddenEntries(n, fraction=fraction, random_state=seed),
                RollingOrigin(n, horizon=draw(st.integers(1, 4)), min_train=3),
            ]
        )
    )


@some(200)
@given(splitters(), st.integers(1, 40), st.integers(1, 5), st.floats(0.0, 1.0))
def test_splits_hide_what_is_there_and_nothing_twice(splitter, n_steps, n_features, missing):
    X = np.ones((n_steps, n_features))
    X[np.random.default_rng(n_steps).random(n_steps) < missing] = np.nan
    words = ("no observed entry", "do not fit", "random attempts", "less than one")
    splits = unless_refused(lambda: list(splitter.split(X)), *words)
    if splits is None:
        return
    seen = ~np.isnan(X)
    assert splits
    for split, same in zip(splits, splitter.split(X), strict=True):
        for one, other in zip(split, same, strict=True):
            np.testing.assert_array_equal(one, other)
        parts = [np.broadcast_to(p if p.ndim == 2 else p[:, None], X.shape) for p in split]
        assert np.all(np.sum(parts, axis=0) <= 1)
        train, _, test = parts
        assert (test & seen).any()
        assert (train & seen).any()


@some(150)
@given(
    st.lists(st.integers(-3000, 3000), min_size=1, max_size=25, unique=True),
    st.sampled_from(["datetime64[D]", "datetime64[M]", "datetime64[Y]", "int64", "float64"]),
)
def test_every_label_is_found_on_its_grid(numbers, kind_of_time):
    labels = np.array(numbers).astype(kind_of_time)
    line = timeline_of(labels)
    np.testing.assert_array_equal(line.labels[line.rows], labels)
    assert np.all(line.labels[1:] > line.labels[:-1])
    assert len(line.following(3)) == 3


@some(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from("abc"), st.integers(0, 10**6)),
        min_size=1, max_size=30,
    ),
    st.sampled_from([None, "W", "M", "Y"]),
)  # fmt: skip
def test_totals_of_a_long_table_are_kept(rows, freq):
    day, name, value = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {"day": np.datetime64("2019-03-01") + np.array(day), "name": name, "value": value}
    )
    columns = {"time": "day", "feature": "name", "value": "value", "freq": freq}
    table = unless_refused(lambda: as_table(frame, **columns), "and at least 3 are needed")
    if table is None:
        return
    X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
    assert np.nansum(X) == sum(value)


@pytest.mark.long
@some(8)
@given(st.integers(0, 10**6), st.integers(12, 20), st.integers(1, 4))
def test_a_search_has_an_answer(in_time, seed, n_steps, n_features):
    in_time()
    X = np.random.default_rng(seed).poisson(2.0, (n_steps, n_features)).astype(float)
    splitter = HiddenSteps(1, fraction=0.3, random_state=seed)
    found = select(X, chains=["rate"], n_components=[1], splitter=splitter, random_state=seed)
    assert found.answer.strip().endswith(".")
    assert found.model.components_.shape == (1, n_features)
