"""TemporalNMF among other scikit-learn estimators, and the way a fit runs."""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import Rate

CHAINS = list(registry.CHAINS)
NAMES = list("abcdef")
DAYS = pd.date_range("2020-01-01", periods=24, name="day")

# Checks that contradict what a chain is, with the reason.
AGAINST_TIME_ORDER = {
    "check_methods_subset_invariance": "a row is inferred from its neighbours in time too",
    "check_methods_sample_order_invariance": "rows in another order are another series",
}
TIMELESS = ("none", "gap")
# Runs in a process of its own, below: it needs a variable that SciPy reads when it is imported.
ARRAY_API = "check_array_api_input"


def check_name(check):
    while hasattr(check, "func"):
        check = check.func
    return check.__name__


def all_checks():
    for chain in ("rate", "none", "gap", "bgar"):
        # Like scikit-learn, which limits the iterations of its own estimators here.
        model = TemporalNMF(2, chain=chain, max_iter=10)
        for estimator, check in estimator_checks_generator(model):
            if check_name(check) != ARRAY_API:
                marks = () if chain == "rate" else pytest.mark.long
                yield pytest.param(estimator, check, id=f"{chain}-{check_name(check)}", marks=marks)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:n_components=2 is larger than both dimensions:UserWarning")
@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_scikit_learn_checks_pass_unless_they_contradict_time_order(estimator, check):
    if check_name(check) in AGAINST_TIME_ORDER and estimator.chain not in TIMELESS:
        with pytest.raises(AssertionError, match="transform of TemporalNMF is not invariant"):
            check(estimator)
    else:
        check(estimator)


def test_every_check_against_time_order_exists():
    checks = {check_name(check) for _, check in estimator_checks_generator(TemporalNMF())}
    assert checks >= set(AGAINST_TIME_ORDER)


@pytest.mark.long
def test_the_scikit_learn_check_of_the_array_api_passes():
    script = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from temporalnmf import TemporalNMF
checks = estimator_checks_generator(TemporalNMF(max_iter=10))
((estimator, check),) = (pair for pair in checks if {ARRAY_API!r} in str(pair[1]))
check(estimator)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def _counts():
    """Two bumps in time, (24, 6), with sharply different components."""
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, len(DAYS))
    H = 60.0 * np.column_stack([np.exp(-8.0 * (time - 0.2) ** 2), 0.2 + time**2])
    W = np.array([[4, 3, 2, 1, 0, 0], [0, 0, 1, 2, 3, 4]]) / 10
    return rng.poisson(H @ W).astype(float)


X = _counts()
HOLES = X.copy()
HOLES[4, 2] = HOLES[9] = np.nan


def frame(values=HOLES):
    return pd.DataFrame(values, index=DAYS, columns=NAMES)


def model(chain="rate", **params):
    return TemporalNMF(2, chain=chain, **{"likelihood": "poisson", "random_state": 0, **params})


def assert_same_fit(a, b):
    np.testing.assert_array_equal(a.components_, b.components_)
    np.testing.assert_array_equal(a.activations_, b.activations_)
    np.testing.assert_array_equal(a.history_, b.history_)


# Parameters and composition.


def test_clone_keeps_parameters_and_drops_the_fit():
    fitted = model(chain=Rate(alpha=3.0)).fit(X)
    copied = clone(fitted)
    assert copied.chain is not fitted.chain
    assert copied.get_params()["chain__alpha"] == 3.0
    assert not [name for name in vars(copied) if name.endswith("_")]
    assert_same_fit(copied.fit(X), fitted)


def test_fit_leaves_the_parameters_alone():
    fitted = model(chain=Rate(alpha=3.0)).fit(X)
    assert fitted.chain.get_params() == {"alpha": 3.0, "beta": "auto"}
    assert fitted.chain_.get_params() == {"alpha": 3.0, "beta": 3.0}


def test_hyper_parameters_are_set_through_the_estimator():
    changed = model(chain=Rate(alpha=3.0)).set_params(chain__alpha=500.0)
    assert_same_fit(changed.fit(X), model(chain=Rate(alpha=500.0)).fit(X))
    rough = model(chain=Rate(alpha=3.0)).fit(X)
    jumps = [np.abs(np.diff(np.log(m.activations_), axis=0)).mean() for m in (changed, rough)]
    assert jumps[0] < 0.8 * jumps[1]


def test_pipeline_passes_the_mask_on():
    mask = np.ones(X.shape)
    mask[3:6, 2] = 0.0
    steps = [("halve", FunctionTransformer(lambda X: X / 2)), ("nmf", model())]
    pipeline = Pipeline(steps).fit(X, nmf__mask=mask)
    assert_same_fit(pipeline["nmf"], model().fit(X / 2, mask=mask))
    activations = Pipeline(steps).fit_transform(X, nmf__mask=mask)
    np.testing.assert_array_equal(activations, pipeline["nmf"].activations_)
    assert not np.array_equal(activations, model().fit(X / 2).activations_)


# Names and containers.


@pytest.mark.parametrize("convert", [frame, lambda: pl.DataFrame(HOLES, schema=NAMES)])
def test_feature_names_are_kept_and_checked(convert):
    fitted = model().fit(convert())
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.get_feature_names_out().tolist() == ["temporalnmf0", "temporalnmf1"]
    assert fitted.forecast(2).feature_names.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame()[NAMES[::-1]])


@pytest.mark.parametrize("method", ["transform", "fit_transform"])
def test_output_as_pandas_keeps_the_time_index(method):
    estimator = model().set_output(transform="pandas").fit(frame())
    output = getattr(estimator, method)(frame())
    assert isinstance(output, pd.DataFrame)
    pd.testing.assert_index_equal(output.index, DAYS)
    assert output.columns.tolist() == ["temporalnmf0", "temporalnmf1"]
    expected = getattr(model().fit(HOLES), method)(HOLES)
    np.testing.assert_array_equal(output.to_numpy(), expected)


@pytest.mark.parametrize("method", ["transform", "fit_transform"])
def test_output_as_polars_has_the_numbers_of_the_array(method):
    data = pl.DataFrame(HOLES, schema=NAMES)
    estimator = model().set_output(transform="polars").fit(data)
    output = getattr(estimator, method)(data)
    assert isinstance(output, pl.DataFrame)
    assert output.columns == ["temporalnmf0", "temporalnmf1"]
    np.testing.assert_array_equal(output.to_numpy(), getattr(model().fit(HOLES), method)(HOLES))


def test_impute_returns_a_frame_as_it_came():
    fitted = model().fit(HOLES)
    expected = fitted.impute(HOLES)
    assert isinstance(expected, np.ndarray)
    fitted = model().fit(frame())
    pd.testing.assert_frame_equal(fitted.impute(frame()), frame(expected))
    data = pl.DataFrame(HOLES, schema=NAMES)
    imputed = fitted.impute(data)
    assert isinstance(imputed, pl.DataFrame)
    assert imputed.columns == NAMES
    np.testing.assert_array_equal(imputed.to_numpy(), expected)


SPARSE = [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix]


@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_impute_returns_a_sparse_matrix_as_it_came(kind):
    mask = ~np.isnan(HOLES)
    fitted = model().fit(X)
    imputed = fitted.impute(kind(X), mask=mask)
    assert type(imputed) is kind
    np.testing.assert_allclose(imputed.toarray(), fitted.impute(X, mask=mask), rtol=1e-6)


def test_pickle_gives_the_same_model():
    fitted = model("bgar").fit(frame())
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.transform(frame()), fitted.transform(frame()))
    np.testing.assert_array_equal(restored.forecast(3).values, fitted.forecast(3).values)


# Fit and transform.


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("data", ["complete", "holes", "sparse", "exposure"])
def test_fit_then_transform_is_fit_transform_to_the_bit(chain, data):
    series = {"holes": HOLES, "sparse": sparse.csr_array(X)}.get(data, X)
    extra = {"exposure": np.linspace(1.0, 3.0, len(X))} if data == "exposure" else {}
    together = model(chain, tol=1e-3).fit_transform(series, **extra)
    apart = model(chain, tol=1e-3).fit(series, **extra).transform(series, **extra)
    np.testing.assert_array_equal(apart, together)


def test_returned_activations_belong_to_the_user():
    fitted = model()
    activations = fitted.fit_transform(X)
    kept = activations.copy()
    activations[:] = -1.0
    np.testing.assert_array_equal(fitted.activations_, kept)


# Starts.


@pytest.mark.parametrize("seed", [lambda: 7, lambda: np.random.RandomState(7)])
def test_fits_of_the_same_seed_have_the_same_bits(seed):
    first, second = (model(random_state=seed(), n_init=2).fit(X) for _ in range(2))
    assert_same_fit(first, second)


def test_fits_of_different_seeds_differ():
    first, second = (model(random_state=seed).fit(X) for seed in (0, 1))
    assert first.history_[0] != second.history_[0]
    states = np.random.RandomState(7)
    first, second = (model(random_state=states).fit(X) for _ in range(2))
    assert first.history_[0] != second.history_[0]


def test_n_init_keeps_the_best_start():
    ends = []

    def note(progress):
        if progress.iteration == 1:
            ends.append(None)
        ends[-1] = progress.objective

    fitted = TemporalNMF(3, chain="none", n_init=5, tol=1e-4, random_state=3, callback=note).fit(X)
    assert len(ends) == 5
    assert fitted.history_[-1] == min(ends)
    # Neither the first nor the last, nor a tie.
    assert sorted(ends)[0] < sorted(ends)[1]
    assert 0 < np.argmin(ends) < 4


@pytest.mark.parametrize("data", [X, HOLES, sparse.csr_array(X)], ids=["dense", "NaN", "sparse"])
def test_nndsvda_starts_closer_than_random(data):
    # In the data's part: a chain would rather have the activations smooth than right.
    params = {"chain": "none", "max_iter": 2, "tol": 0}
    first = {init: model(init=init, **params).fit for init in ("nndsvda", "random")}
    with pytest.warns(ConvergenceWarning):
        started = {init: fit(data).history_[0] for init, fit in first.items()}
    assert started["nndsvda"] < started["random"]
    fitted = model(init="nndsvda", tol=1e-8).fit(data)
    assert fitted.converged_
    assert fitted.history_[-1] <= model(tol=1e-8).fit(data).history_[-1] + 1.0


def test_given_start_is_honoured():
    fitted = model(tol=1e-8, gaps="mode").fit(HOLES)
    swapped = fitted.components_[::-1], fitted.activations_[:, ::-1]
    again = model(tol=1e-8, gaps="mode", init=swapped).fit(HOLES)
    assert again.history_[0] <= fitted.history_[-1] + 1e-9 * abs(fitted.history_[-1])
    assert again.n_iter_ < 0.2 * fitted.n_iter_
    np.testing.assert_allclose(again.components_, swapped[0], atol=1e-3)
    np.testing.assert_allclose(again.activations_, swapped[1], rtol=1e-2)


def test_scale_of_the_given_components_does_not_matter():
    components, activations = np.full((2, 6), 1.0), np.full((24, 2), 10.0)
    components[0, :3] = 2.0
    plain = model(init=(components, activations)).fit(X)
    scaled = model(init=(3.0 * components, activations / 3.0)).fit(X)
    np.testing.assert_allclose(scaled.history_, plain.history_, rtol=1e-12)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_warm_start_continues_from_the_last_fit(chain):
    estimator = model(chain, max_iter=5, tol=1e-6, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(HOLES)
    before = estimator.objective_
    estimator.set_params(max_iter=1000).fit(HOLES)
    assert estimator.history_[0] <= before
    assert estimator.objective_ <= before
    cold = model(chain, tol=1e-6).fit(HOLES)
    assert estimator.history_[0] < cold.history_[0]


def test_a_warm_start_takes_more_time_steps():
    estimator = model(warm_start=True).fit(X[:16])
    estimator.fit(X)
    assert estimator.activations_.shape == (24, 2)
    assert estimator.history_[0] < model().fit(X).history_[0]


# The run.


@pytest.mark.filterwarnings("ignore:Activations of component.* reached the floor:UserWarning")
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("scale", ["log", "linear"])
def test_history_never_rises(chain, scale):
    if chain == "bgar":  # its default has no mode on the linear scale
        chain = registry.create(registry.CHAINS, chain, "chain").set_params(alpha=5.0, rho=0.6)
    fitted = model(chain, map_scale=scale, tol=1e-6, smoothing=0.3).fit(HOLES)
    assert len(fitted.history_) == len(fitted.history_iterations_) > 5
    assert fitted.n_iter_ == fitted.history_iterations_[-1]
    assert np.all(np.diff(fitted.history_) <= 1e-12 * np.abs(fitted.history_).max())


def test_plain_nmf_is_the_same_on_both_scales():
    log, linear = (
        model("none", map_scale=scale, tol=1e-7).fit(HOLES) for scale in ("log", "linear")
    )
    assert_same_fit(linear, log)


def test_callback_sees_the_run_and_stops_it():
    seen = []

    def stop_at_the_third_look(progress):
        seen.append(progress)
        return len(seen) == 3

    fitted = model(callback=stop_at_the_third_look).fit(X)
    assert [progress.iteration for progress in seen] == fitted.history_iterations_.tolist()
    assert [progress.objective for progress in seen] == fitted.history_.tolist()
    assert seen[-1].components.shape == (2, 6)
    assert seen[-1].activations.shape == (24, 2)
    np.testing.assert_array_equal(seen[-1].components, fitted.components_)
    assert fitted.n_iter_ == seen[-1].iteration
    assert fitted.stop_reason_ == f"stopped by the callback after {fitted.n_iter_} iterations"
    assert not fitted.converged_


@pytest.mark.parametrize("solver", ["mm", "accelerated"])
def test_watching_a_fit_does_not_change_it(solver, capsys):
    alone = model(solver=solver, tol=1e-7).fit(HOLES)
    for watch in ({"callback": lambda progress: None}, {"verbose": 1}, {"verbose": 7}):
        watched = model(solver=solver, tol=1e-7, **watch).fit(HOLES)
        np.testing.assert_array_equal(watched.components_, alone.components_)
        np.testing.assert_array_equal(watched.history_, alone.history_)
    assert "iteration" in capsys.readouterr().out


def test_callback_cannot_change_the_fit():
    def meddle(progress):
        progress.activations[:] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        model(callback=meddle).fit(X)


def test_verbose_prints_progress(capsys):
    fitted = model(verbose=4).fit(X)
    *progress, last = capsys.readouterr().out.splitlines()
    printed = [int(re.match(r"iteration +(\d+)  objective \S+e", line)[1]) for line in progress]
    looks = fitted.history_iterations_
    passed = [n for before, n in zip([0, *looks], looks, strict=False) if n // 4 > before // 4]
    assert printed == sorted({*passed, fitted.n_iter_})
    assert len(printed) > 2
    assert f"{fitted.history_[-1]:.8e}" in progress[-1]
    assert last == fitted.stop_reason_


def test_verbose_numbers_the_starts(capsys):
    model(verbose=1000, n_init=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:9] for line in lines] == ["start 1/2"] * 2 + ["start 2/2"] * 2


def test_fits_are_silent_by_default(capsys):
    model().fit(X).transform(X)
    assert capsys.readouterr() == ("", "")


def test_reaching_tol_is_convergence():
    fitted = model(tol=1e-4).fit(X)
    assert fitted.converged_
    assert re.fullmatch(
        rf"converged: .* below tol=0.0001 after {fitted.n_iter_} iterations", fitted.stop_reason_
    )
    decreases = -np.diff(fitted.history_) / np.abs(fitted.history_[1:])
    decreases /= np.diff(fitted.history_iterations_)
    assert decreases[-1] < 1e-4 <= decreases[:-1].min()


def test_reaching_max_iter_warns_and_says_what_to_change():
    expected = r"max_iter=7 reached.*Increase max_iter.*larger tol \(now 1e-07\)"
    with pytest.warns(ConvergenceWarning, match=expected) as caught:
        fitted = model(max_iter=7, tol=1e-7).fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert fitted.n_iter_ == 7
    assert not fitted.converged_
    assert fitted.stop_reason_.startswith("max_iter=7 reached")
