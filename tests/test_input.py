"""Bad input gets one clear error and leaves no trace; odd but good input is understood."""

import copy
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from cases import estimator
from temporalnmf import TemporalNMF, load, registry
from temporalnmf.chains import BGAR, GaP, HierRate, HierShape, Rate
from temporalnmf.reading import TimeTable
from temporalnmf.timeline import timeline_of

COUNTS = np.random.default_rng(0).poisson(4.0, size=(8, 5)) + 1.0
NAMES = list("abcde")
ONES = np.ones(8)
START = np.full((2, 5), 0.2), np.ones((8, 2))


def changed(array, where, value):
    """A copy with one entry (or row) replaced."""
    copied = np.array(array, dtype=object if isinstance(value, str) else float)
    copied[where] = value
    return copied


def frame(values=COUNTS, index=None):
    return pd.DataFrame(values, index=index, columns=NAMES)


def model(**params):
    # A large tol: quick, and never a ConvergenceWarning.
    return estimator(**{"n_components": 2, "tol": 0.1, "random_state": 0, **params})


class Bad(NamedTuple):
    """A call to fit that is refused with a message that contains three patterns."""

    argument: str
    value: str
    remedy: str
    X: Any
    data: dict[str, Any]
    params: dict[str, Any]


def bad(argument, value, remedy, X=COUNTS, mask=None, exposure=None, **params):
    return Bad(argument, value, remedy, X, {"mask": mask, "exposure": exposure}, params)


def bad_number(name, value):
    whole = name in ("n_components", "n_init", "max_iter")
    remedy = "whole number of at least 1" if whole else "number of at least 0"
    return bad(name, f"={re.escape(repr(value))}:", remedy, **{name: value})


def bad_choice(name, value, *choices):
    return bad(name, re.escape(repr(value)), ".*".join(choices), **{name: value})


def bad_chain(argument, value, remedy, chain, **params):
    name = f"{type(chain).__name__}.*{argument}"
    return bad(name, value, remedy, chain=chain, **params)


NEGATIVE, INFINITE, NAN = (changed(COUNTS, (2, 3), value) for value in (-1.5, np.inf, np.nan))
ZERO = changed(COUNTS, (2, 3), 0.0)
PLACE = r"at row 2, column (3|'d')"
DAYS = pd.date_range("2020-01-01", periods=8)
MASK_WORDS = "1 or True.*observed.*0 or False.*missing"
POSITIVE = "positive and finite"
LOOK = "[Cc]heck|[Gg]ive|at least one"

BAD_FITS = {
    # The values of X.
    "negative": bad("X", f"-1.5 {PLACE}", "set .* to NaN", NEGATIVE),
    "negative in pandas": bad("X", f"-1.5 {PLACE}", "set .* to NaN", frame(NEGATIVE)),
    "negative in polars": bad(
        "X", f"-1.5 {PLACE}", "set .* to NaN", pl.DataFrame(NEGATIVE, schema=NAMES)
    ),
    "negative in sparse": bad("X", f"-1.5 {PLACE}", "[Rr]eplace|mask", sparse.csr_array(NEGATIVE)),
    "infinite": bad("X", f"inf {PLACE}", "replace|set .* to NaN", INFINITE),
    "minus infinity": bad("X", f"-inf {PLACE}", "replace|set .* to NaN", -INFINITE),
    "infinite in sparse": bad("X", f"inf {PLACE}", "replace", sparse.csc_matrix(INFINITE)),
    "NaN in sparse": bad("X", f"nan {PLACE}", "mask=", sparse.csr_array(NAN)),
    "all NaN": bad("X", "NaN", LOOK, np.full((8, 5), np.nan)),
    "all hidden": bad("mask", "hid", LOOK, mask=0 * ONES),
    "all hidden in sparse": bad("mask", "hid", LOOK, sparse.csr_array(COUNTS), mask=0 * ONES),
    "all zero": bad("X", "zero", LOOK, 0 * COUNTS),
    "all zero in sparse": bad("X", "zero", LOOK, sparse.csr_array((8, 5))),
    "all zero where observed": bad(
        "X", "zero", LOOK, changed(0 * COUNTS, 2, 1.0), mask=np.arange(8) != 2
    ),
    "next to zero": bad("X", r"too close to zero.*e-3\d\d", "another unit", 1e-320 * COUNTS),
    "next to zero per exposure": bad(
        "exposure", r"too close to zero.*e-29", "another unit", exposure=np.full(8, 1e30)
    ),
    # The advice has to work next to NaN too, so the floor comes from nanmax.
    "zero for exponential": bad(
        "X.*exponential", rf"0\.0 {PLACE}", r"floor.*np\.maximum.*nanmax.*poisson", ZERO,
        likelihood="exponential",
    ),
    "sparse for exponential": bad(
        "X.*exponential", "sparse", r"floor.*np\.maximum.*poisson", sparse.csr_array(COUNTS),
        likelihood="exponential",
    ),
    # The form of X.
    "one time step": bad("X", "n_samples=1", "at least 3", COUNTS[:1]),
    "two time steps": bad("X", "n_samples=2", "at least 3.*transposed", COUNTS[:2]),
    "text column": bad("X", "'b'.*'May'", "[Dd]rop.*index", frame().assign(b="May")),
    "text column in polars": bad(
        "X", "'b'.*'May'", "[Dd]rop.*index",
        pl.DataFrame(COUNTS, schema=NAMES).with_columns(b=pl.lit("May")),
    ),
    "text in an array": bad("X", "3.*'many'", "[Dd]rop.*index", changed(COUNTS, (2, 3), "many")),
    "category column": bad(
        "X", "'b'.*'May'", "[Dd]rop.*index", frame().assign(b=pd.Categorical(["May"] * 8))
    ),
    "date column": bad("X", "'b'.*2020", "[Dd]rop.*index", frame().assign(b=DAYS)),
    "date column in polars": bad(
        "X", "'b'.*2020", "[Dd]rop.*index",
        pl.DataFrame(COUNTS, schema=NAMES).with_columns(b=pl.Series(DAYS.to_pydatetime().tolist())),
    ),
    "duplicate years": bad(
        "X.*index", "time '1990' in", "groupby", frame(index=[1990, 1990, *range(1991, 1997)])
    ),
    "duplicate times in a column": bad(
        "X.*column 'a'", "time 'May' in", r"groupby\('a'\)", frame().assign(a="May")
    ),
    "duplicate times in polars": bad(
        "X", "time 'May' twice, in row 0 and row 1", "time= and feature=",
        pl.DataFrame(COUNTS, schema=NAMES).with_columns(a=pl.lit("May")),
    ),
    "years beside numbered rows": bad(
        "X.*index", r"\(3, 4, …\), and a column 'year'", r"set_index\('year'\).*rename_axis",
        frame(index=range(3, 11)).rename(columns={"a": "year"}).assign(year=range(1990, 1998)),
    ),
    "a column of totals": bad(
        "X", "feature 'Total' is the sum", "[Rr]emove it.*exposure=",
        frame().assign(Total=COUNTS.sum(axis=1)),
    ),
    "totals in polars": bad(
        "X", "feature 'all' is the sum", "[Rr]emove it.*exposure=",
        pl.DataFrame(COUNTS, schema=NAMES).with_columns(all=pl.Series(COUNTS.sum(axis=1))),
    ),
    "totals by another name": bad(
        "X", "feature 'words' is the sum", "[Rr]emove it", frame().assign(words=COUNTS.sum(axis=1))
    ),
    "duplicate dates": bad(
        "X.*index", "2020-01-02", "groupby", frame(index=[DAYS[1], *DAYS[1:]])
    ),
    "duplicate names": bad("X.*index", "'May'", "groupby", frame(index=[*"abcdef", "May", "May"])),
    "date missing": bad(
        "X.*index", "NaT|missing", "[Dd]rop|[Ff]ill", frame(index=[*DAYS[:3], pd.NaT, *DAYS[4:]])
    ),
    "dates and words": bad(
        "X.*index", "'May'|mixed", "labels|reset_index", frame(index=[0, "May", *range(2, 8)])
    ),
    # What comes with X.
    "mask transposed": bad("mask", r"\(5, 8\)", r"expected.*\(8, 5\)", mask=np.ones((5, 8))),
    "mask of other length": bad("mask", r"\(5,\)", r"expected.*\(8,\)", mask=np.ones(5)),
    "sparse mask transposed": bad(
        "mask", r"\(5, 8\)", r"expected.*\(8, 5\)", mask=sparse.csr_array((5, 8))
    ),
    "ragged mask": bad("mask", "ragged|inhomogeneous", r"expected.*\(8, 5\)", mask=[[1], [1, 2]]),
    "negative mask": bad("mask", "-1.0", MASK_WORDS, mask=changed(ONES, 3, -1.0)),
    "NaN in mask": bad("mask", "nan", MASK_WORDS, mask=changed(ONES, 3, np.nan)),
    "infinity in mask": bad("mask", r"\binf\b", MASK_WORDS, mask=changed(ONES, 3, np.inf)),
    "negative sparse mask": bad(
        "mask", "-1.0", MASK_WORDS, mask=sparse.csr_array(changed(np.ones((8, 5)), (2, 3), -1.0))
    ),
    "mask of words": bad("mask", "'yes'|<U3", "booleans|1 or True", mask=["yes"] * 8),
    "exposure of other length": bad("exposure", r"\(5,\)", r"expected \(8,\)", exposure=np.ones(5)),
    "zero exposure": bad("exposure", r"\b0\.0", "mask=", exposure=changed(ONES, 3, 0.0)),
    "negative exposure": bad("exposure", "-2.0", "positive", exposure=changed(ONES, 3, -2.0)),
    "NaN in exposure": bad("exposure", "nan", "mask=", exposure=changed(ONES, 3, np.nan)),
    "infinite exposure": bad("exposure", r"\binf\b", "finite", exposure=changed(ONES, 3, np.inf)),
    "exposure of words": bad("exposure", "'long'", "positive|number", exposure=["long"] * 8),
    # Parameters of the estimator.
    **{
        f"{name}={value!r}": bad_number(name, value)
        for name, value in [
            ("n_components", 0), ("n_components", -1), ("n_components", 2.0),
            ("n_components", 2.5), ("n_components", "2"), ("n_components", None),
            ("n_components", True), ("n_init", 0), ("max_iter", 0), ("max_iter", 1.5),
            ("smoothing", -1.0), ("smoothing", np.nan), ("smoothing", np.inf), ("smoothing", "a"),
            ("tol", -1e-3), ("tol", np.nan), ("tol", None),
        ]
    },
    **{
        f"n_jobs={value!r}": bad("n_jobs", f"={re.escape(repr(value))}:", "-1", n_jobs=value)
        for value in (0, 1.5, "two", True)
    },
    "chain name": bad_choice("chain", "bgarr", "none", "rate", "bgar"),
    "chain in a list": bad_choice("chain", ["rate"], "none", "rate", "bgar"),
    "likelihood name": bad_choice("likelihood", "normal", "poisson", "gaussian"),
    "map_scale name": bad_choice("map_scale", "cubic", "log", "linear"),
    "point name": bad_choice("point", "median", "mean", "mode"),
    "solver name": bad_choice("solver", "sgd", "accelerated", "mm"),
    "init name": bad_choice("init", "svd", "random", "nndsvda", "components, activations"),
    # Starting values.
    "init as one array": bad("init", r"array|\(2, 5\)", "components, activations", init=START[0]),
    "init of one part": bad("init", r"\b1\b", "components, activations", init=START[:1]),
    "components of wrong shape": bad(
        "init.*components", r"\(3, 5\)", r"expected \(2, 5\)", init=(np.ones((3, 5)), START[1])
    ),
    "activations of wrong shape": bad(
        "init.*activations", r"\(2, 8\)", r"expected \(8, 2\)", init=(START[0], START[1].T)
    ),
    **{
        f"{value} in {name} of init": bad(
            f"init.*{name}", f" {value}", "positive and finite", init=init
        )
        for value in (np.nan, 0.0, -1.0, np.inf)
        for name, init in {
            "components": (changed(START[0], (1, 2), value), START[1]),
            "activations": (START[0], changed(START[1], (2, 1), value)),
        }.items()
    },
    # Hyper-parameters.
    "too many values": bad_chain("alpha", r"\(3,\)", "2 values, one per", Rate([1.0, 2.0, 3.0])),
    "values in a column": bad_chain("alpha", r"\(2, 1\)", "2 values", Rate(np.ones((2, 1)))),
    "negative alpha": bad_chain("alpha", "-1.0", POSITIVE, Rate(alpha=-1.0)),
    "NaN alpha": bad_chain("alpha", "nan", POSITIVE, Rate(alpha=np.nan)),
    "infinite alpha": bad_chain("alpha", "=inf", POSITIVE, Rate(alpha=np.inf)),
    "one negative alpha": bad_chain("alpha", r"-2\.0", POSITIVE, GaP(alpha=[1.0, -2.0])),
    "zero beta": bad_chain("beta", "=0", POSITIVE, GaP(beta=0)),
    "no alpha": bad_chain("alpha", "None", POSITIVE, Rate(alpha=None)),
    "alpha of words": bad_chain("alpha", "'a'", "number", Rate(alpha=["a", "b"])),
    "misspelt word": bad_chain("beta", "'lern'", "'learn'", Rate(beta="lern")),
    "marginal of words": bad_chain("marginal", "'yes'", "True or False", HierRate(marginal="yes")),
    "both rates learned": bad_chain(
        "beta_z", "'learn'.*'learn'", "[Ll]earn one", HierRate(beta_z="learn", beta_h="learn")
    ),
    **{
        f"{type(chain).__name__} has no automatic {name}": bad_chain(
            name, "'auto'", "[Gg]ive|number", chain
        )
        for name, chain in [
            ("alpha", Rate(alpha="auto")), ("alpha", GaP(alpha="auto")),
            ("alpha", HierShape(alpha="auto")), ("alpha", BGAR(alpha="auto")),
            ("rho", BGAR(rho="auto")), ("alpha_z", HierRate(alpha_z="auto")),
            ("alpha_h", HierRate(alpha_h="auto")),
        ]
    },
    "rho of one": bad_chain("rho", "=1.0", "between 0 and 1", BGAR(rho=1.0)),
    "one rho above one": bad_chain("rho", "1.2", "between 0 and 1", BGAR(rho=[0.5, 1.2])),
    "zero rho": bad_chain("rho", "=0.0", f"between 0 and 1|{POSITIVE}", BGAR(rho=0.0)),
    # The domain of the linear scale.
    "BGAR, linear": bad_chain(
        r"alpha=6.0.*rho=0.9.*alpha\*\(1-rho\).*alpha\*rho", r"\b0\.(6|59999).*\b5\.4",
        "map_scale='log'", BGAR(alpha=6.0, rho=0.9), map_scale="linear",
    ),
    "BGAR, linear, small rho": bad_chain(
        r"alpha=4.0.*rho=0.125.*alpha\*\(1-rho\).*alpha\*rho", r"\b3\.5.*\b0\.5",
        "map_scale='log'", BGAR(alpha=4.0, rho=0.125), map_scale="linear",
    ),
    "BGAR, linear, one component": bad_chain(
        "alpha", r"\[0\.5 +5\.?0? *\].*\[0\.5 +5\.?0? *\]", "map_scale='log'",
        BGAR(alpha=[1.0, 10.0], rho=0.5), map_scale="linear",
    ),
    "Rate, linear": bad_chain(
        "alpha", "0.5", "map_scale='log'.*larger alpha", Rate(alpha=0.5), map_scale="linear"
    ),
    "HierRate, linear": bad_chain(
        "alpha_h", "0.5", "map_scale='log'.*larger alpha_h", HierRate(alpha_h=0.5),
        map_scale="linear",
    ),
}  # fmt: skip
bad_fits = pytest.mark.parametrize("case", BAD_FITS.values(), ids=BAD_FITS.keys())


def assert_clear(message, *patterns):
    for pattern in patterns:
        assert re.search(pattern, message, re.DOTALL), f"no {pattern!r} in {message!r}"


def fitted_state(estimator):
    """Everything a fit has learned, down to numbers."""
    state = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    if "chain_" in state:
        for part in ("chain_", "likelihood_"):
            state[part] = state[part].name, state[part].get_params()
        state["timeline_"] = state["timeline_"].to_dict()
    return copy.deepcopy(state)


@bad_fits
def test_bad_fit_is_refused_clearly(case):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the cases hold the patterns
        model(**case.params).fit(case.X, **case.data)
    assert_clear(str(refusal.value), case.argument, case.value, case.remedy)


@bad_fits
def test_refused_fit_leaves_nothing_behind(case):
    estimator = model(**case.params)
    with pytest.raises(ValueError):  # noqa: PT011 - the message is checked above
        estimator.fit(case.X, **case.data)
    assert fitted_state(estimator) == {}


@pytest.fixture(scope="module")
def fitted_to_two():
    return model().fit(frame()[["b", "d"]])


@bad_fits
def test_refused_refit_keeps_the_fitted_model(case, fitted_to_two):
    known = frame()[["b", "d"]]
    estimator = copy.deepcopy(fitted_to_two)
    before, transformed = fitted_state(estimator), estimator.transform(known)
    estimator.set_params(**case.params)
    with pytest.raises(ValueError):  # noqa: PT011 - the message is checked above
        estimator.fit(case.X, **case.data)
    np.testing.assert_equal(fitted_state(estimator), before)
    estimator.set_params(**model().get_params())
    np.testing.assert_array_equal(estimator.transform(known), transformed)


def _stumble(progress):
    raise RuntimeError("the callback stumbled")


def test_error_inside_the_solver_leaves_nothing_behind():
    estimator = model(callback=_stumble)
    with pytest.raises(RuntimeError, match="stumbled"):
        estimator.fit(COUNTS)
    with pytest.raises(NotFittedError):
        estimator.transform(COUNTS)

    estimator = model().fit(COUNTS)
    before = fitted_state(estimator)
    with pytest.raises(RuntimeError, match="stumbled"):
        estimator.set_params(callback=_stumble).fit(frame()[["b", "d"]])
    np.testing.assert_equal(fitted_state(estimator), before)


# What can be wrong after a fit, with patterns for argument, value and remedy.
BAD_CALLS: dict[str, tuple[Callable[[TemporalNMF], Any], str, str, str]] = {
    "forecast of no steps": (lambda m: m.forecast(0), "steps", "=0", "at least 1"),
    "forecast backwards": (lambda m: m.forecast(-2), "steps", "=-2", "at least 1"),
    "forecast of half steps": (lambda m: m.forecast(1.5), "steps", "=1.5", "whole number"),
    "forecast of true": (lambda m: m.forecast(True), "steps", "True", "whole number"),
    "point of the forecast": (
        lambda m: m.forecast(2, point="median"), "point", "'median'", "mean, mode",
    ),
    "future exposure of wrong length": (
        lambda m: m.forecast(2, exposure=[1, 2, 3]), "exposure", r"\(3,\)", r"expected.*\(2,\)",
    ),
    "zero future exposure": (
        lambda m: m.forecast(2, exposure=[1.0, 0.0]), "exposure", r"\b0\.0", "positive",
    ),
    "NaN future exposure": (
        lambda m: m.forecast(2, exposure=np.nan), "exposure", "nan", "positive",
    ),
    "inverse of wrong width": (
        lambda m: m.inverse_transform(np.ones((4, 3))), "X", r"\(4, 3\)", "2 columns",
    ),
    "inverse of a vector": (
        lambda m: m.inverse_transform(np.ones(2)), "X", r"\(2,\)", "2 columns",
    ),
    "too few features": (
        lambda m: m.transform(COUNTS[:, :4]), "X", "4 features", "expecting 5",
    ),
    "negative in transform": (
        lambda m: m.transform(NEGATIVE), "X", f"-1.5 {PLACE}", "set .* to NaN",
    ),
    "nothing to infer from": (
        lambda m: m.transform(NAN * np.nan), "X", "no observed", "continue_chain|forecast",
    ),
    "nothing to impute from": (
        lambda m: m.impute(COUNTS, mask=0 * ONES), "X", "no observed", "continue_chain|forecast",
    ),
    "nothing to score in X": (
        lambda m: m.score(NAN * np.nan), r"^X\b", "no observed", LOOK,
    ),
    "nothing held out": (
        lambda m: m.score(COUNTS, held_out=0 * ONES), "held_out", "nothing", "observed entry",
    ),
    "only missing entries held out": (
        lambda m: m.score(NAN, held_out=np.isnan(NAN)), "held_out", "nothing", "observed entry",
    ),
    "everything held out": (
        lambda m: m.score(COUNTS, held_out=ONES), "held_out", "nothing|everything|no observed",
        "continue_chain",
    ),
    "held_out of wrong shape": (
        lambda m: m.score(COUNTS, held_out=np.ones(3)), "held_out", r"\(3,\)",
        r"expected \(8,\).*True.*(held out|score)",
    ),
    "negative held_out": (
        lambda m: m.score(COUNTS, held_out=-ONES), "held_out", "-1.0", "True.*(held out|score)",
    ),
    "warm start with more components": (
        lambda m: m.set_params(warm_start=True, n_components=3).fit(COUNTS),
        "warm_start", r"\(3, 5\)", "new estimator|warm_start=False",
    ),
    "warm start with other features": (
        lambda m: m.set_params(warm_start=True).fit(COUNTS[:, :4]),
        "warm_start", r"\(2, 4\)", "new estimator|warm_start=False",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "argument", "value", "remedy"), BAD_CALLS.values(), ids=BAD_CALLS.keys()
)
def test_bad_call_after_fit_is_refused_clearly_and_changes_nothing(call, argument, value, remedy):
    estimator = model().fit(COUNTS)
    before = fitted_state(estimator)
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the cases hold the patterns
        call(estimator)
    assert_clear(str(refusal.value), argument, value, remedy)
    np.testing.assert_equal(fitted_state(estimator), before)


@pytest.mark.parametrize("method", ["transform", "impute", "score", "inverse_transform"])
def test_methods_ask_for_a_fit_first(method):
    with pytest.raises(NotFittedError, match="TemporalNMF instance is not fitted"):
        getattr(model(), method)(COUNTS)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_too_many_components_warn_once_where_the_user_called(method):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model(n_components=9, n_init=3), method)(COUNTS)
    (warning,) = caught
    assert_clear(str(warning.message), "n_components=9", r"\(8, 5\)", "copies")
    assert warning.filename == __file__


@pytest.mark.parametrize("n_steps", [8, 3])
def test_more_components_than_features_are_fitted(n_steps):
    """Fewer than steps, and as many."""
    assert model(n_components=3).fit(COUNTS[:n_steps, :2]).components_.shape == (3, 2)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def same_fit(X, reference, *, exact=True, **data):
    """Whether X gives the same fit as another container, to the bit if it is dense."""
    expected = model().fit(reference).activations_
    rtol = 0 if exact else 1e-10
    np.testing.assert_allclose(model().fit(X, **data).activations_, expected, rtol=rtol)


DENSE: dict[str, Callable[[np.ndarray], Any]] = {
    "integers": lambda X: X.astype(int),
    "small integers": lambda X: X.astype(np.uint8),
    "objects": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": read_only,
    "list": np.ndarray.tolist,
    "pandas": frame,
    "pandas integers": lambda X: frame(X).astype("Int64"),
    "pandas arrow": lambda X: frame(X).astype("double[pyarrow]"),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars integers": lambda X: pl.DataFrame(X, schema=NAMES).cast(pl.Int32),
}


@pytest.mark.parametrize("convert", DENSE.values(), ids=DENSE.keys())
def test_dense_containers_give_the_same_bits(convert):
    same_fit(convert(COUNTS), COUNTS)


@pytest.mark.parametrize("convert", [np.asarray, frame])
def test_single_precision_data_are_fitted_as_such_and_agree(convert):
    fitted, plain = model().fit(convert(COUNTS.astype(np.float32))), model().fit(COUNTS)
    assert fitted.activations_.dtype == np.float64
    np.testing.assert_allclose(fitted.activations_, plain.activations_, rtol=1e-4)
    assert not np.array_equal(fitted.activations_, plain.activations_)


@pytest.mark.parametrize("X", [COUNTS > 4, frame(COUNTS > 4), frame(COUNTS > 4).astype("boolean")])
def test_booleans_are_counts_of_zero_and_one(X):
    same_fit(X, (COUNTS > 4).astype(float))


SPARSE = [
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.csr_matrix,
    sparse.csc_matrix,
]


@pytest.mark.parametrize("convert", SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_containers_agree_with_dense(convert):
    same_fit(convert(COUNTS), COUNTS, exact=False)


def test_sparse_entries_may_be_unsorted_split_and_zero():
    # Every row stored from the right, then once more, the two halves adding up; then a zero.
    halves = [
        np.column_stack([half[:, ::-1], 0 * ONES]) for half in (COUNTS - 1.0, 0 * COUNTS + 1.0)
    ]
    columns = np.tile([4, 3, 2, 1, 0, 2], (8, 2))
    stored = (np.hstack(halves).ravel(), columns.ravel(), np.arange(0, 97, 12))
    X = sparse.csr_array(stored, shape=COUNTS.shape)
    same_fit(X, COUNTS, exact=False)
    error = model().fit(COUNTS).reconstruction_err_
    assert model().fit(X).reconstruction_err_ == pytest.approx(error)


MISSING = changed(NAN, 5, np.nan)  # one entry and one whole step
HOLES: dict[str, Any] = {
    "Int64": frame(MISSING).astype("Int64"),
    "Float64": frame(MISSING).astype("Float64"),
    "arrow": frame(MISSING).astype("int64[pyarrow]"),
    "None": np.where(np.isnan(MISSING), None, MISSING.astype(object)),
    "polars null": pl.DataFrame(MISSING, schema=NAMES).fill_nan(None),
    "polars integers": pl.DataFrame(MISSING, schema=NAMES).fill_nan(None).cast(pl.Int64),
}


@pytest.mark.parametrize("X", HOLES.values(), ids=HOLES.keys())
def test_every_kind_of_missing_is_nan(X):
    same_fit(X, MISSING)


OBSERVED = ~np.isnan(MISSING)
MASKS: dict[str, Any] = {
    "booleans": OBSERVED,
    "numbers": OBSERVED.astype(int),
    "list": OBSERVED.tolist(),
    "pandas": frame(OBSERVED),
    "pandas nullable": frame(OBSERVED).astype("boolean"),
    "polars": pl.DataFrame(OBSERVED, schema=NAMES),
    "sparse": sparse.csc_array(OBSERVED),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("garbage", [-5.0, np.inf, -np.inf, np.nan, 1e300])
def test_hidden_entries_may_hold_anything(mask, garbage):
    X = np.where(OBSERVED, COUNTS, garbage)
    same_fit(X, MISSING, mask=mask)
    estimator = model().fit(COUNTS)
    np.testing.assert_array_equal(estimator.transform(X, mask=mask), estimator.transform(MISSING))
    np.testing.assert_array_equal(estimator.impute(X, mask=mask), estimator.impute(MISSING))
    assert estimator.score(X, mask=mask) == estimator.score(MISSING)


def test_hidden_zeros_are_fine_for_the_exponential_likelihood():
    expected = model(likelihood="exponential").fit(NAN).activations_
    fitted = model(likelihood="exponential").fit(ZERO, mask=ZERO > 0)
    np.testing.assert_array_equal(fitted.activations_, expected)


def test_hidden_steps_are_the_same_as_hidden_rows():
    steps = np.arange(8) != 5
    same_fit(COUNTS, changed(COUNTS, 5, np.nan), mask=steps)
    same_fit(sparse.csr_array(COUNTS), changed(COUNTS, 5, np.nan), exact=False, mask=steps)


INDEXES: dict[str, Any] = {
    "months": ["January", "February", "March", "April", "May", "June", "July", "August"],
    "years": range(1990, 1998),
    "dates": DAYS,
    "dates with a time zone": DAYS.tz_localize("UTC"),
    "periods": pd.period_range("2020", periods=8, freq="Q"),
    "time spans": pd.timedelta_range(0, periods=8, freq="h"),
    "years and quarters": pd.MultiIndex.from_product([[2020, 2021], [1, 2, 3, 4]]),
    "ordered categories": pd.CategoricalIndex(list("hgfedcba"), list("hgfedcba"), ordered=True),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
def test_time_indexes_in_order_are_accepted(index):
    X = frame(index=index)
    same_fit(X, COUNTS)
    pd.testing.assert_index_equal(model().fit(X).impute(X).index, X.index)


LATE = DAYS[[0, 1, 2, 3]].append(DAYS[[4, 5, 6, 7]] + pd.Timedelta(days=2))
ABSENT = np.insert(COUNTS, 4, np.full((2, 5), np.nan), axis=0)


def test_absent_periods_are_missing_steps_and_noted():
    X = frame(index=LATE)
    with pytest.warns(UserWarning, match=r"absent periods: 2 \(2020-.*missing steps"):
        fitted = model().fit(X)
    expected = model().fit(ABSENT)
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)
    np.testing.assert_array_equal(fitted.observed_, [True] * 4 + [False] * 2 + [True] * 4)
    with pytest.warns(UserWarning, match="absent"):
        returned = model().fit_transform(X)
    np.testing.assert_array_equal(returned, expected.activations_[fitted.observed_])
    with pytest.warns(UserWarning, match="absent"):
        np.testing.assert_array_equal(fitted.transform(X), returned)
    with pytest.warns(UserWarning, match="absent"):
        held = fitted.score(X, held_out=np.arange(8) == 2)
    assert held == expected.score(ABSENT, held_out=np.arange(10) == 2)


def test_dates_that_are_far_apart_and_uneven_are_taken_as_even_and_noted():
    index = DAYS[[0, 1, 2, 3]].append(DAYS[[4, 5, 6, 7]] + pd.Timedelta(days=90))
    with pytest.warns(UserWarning, match="not evenly spaced"):
        fitted = model().fit(frame(index=index))
    np.testing.assert_array_equal(fitted.activations_, model().fit(COUNTS).activations_)


@pytest.mark.parametrize("index", [range(1997, 1989, -1), DAYS[::-1], DAYS[::-1].to_period("D")])
def test_rows_are_sorted_by_time(index):
    X = frame(index=index)
    fitted, expected = model().fit(X), model().fit(COUNTS[::-1])
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)
    np.testing.assert_array_equal(fitted.transform(X), expected.activations_[::-1])
    hidden = X.copy()
    hidden.iloc[0, 1] = np.nan
    filled = fitted.impute(hidden)
    pd.testing.assert_index_equal(filled.index, X.index)
    assert filled.iloc[0, 1] == expected.impute(hidden.to_numpy()[::-1])[-1, 1]
    pd.testing.assert_frame_equal(filled.iloc[1:], X.iloc[1:].astype(float))


def test_absent_periods_of_a_sparse_table_stay_hidden_under_a_mask():
    """Sparse data have no NaN: a table says what is absent, whatever else the user hides."""
    from temporalnmf.reading import as_table

    days = DAYS.append(DAYS[-1:] + pd.Timedelta(days=3))
    many = pd.DataFrame({"day": days.repeat(30), "word": [f"w{i}" for i in range(270)]})
    table = as_table(
        pd.concat([many, pd.DataFrame({"day": days, "word": "w0"})]), time="day", feature="word"
    )
    assert sparse.issparse(table.X)
    there = np.array([True] * 8 + [False] * 2 + [True])
    np.testing.assert_array_equal(model().fit(table).observed_, there)
    masks = [np.arange(11) != 3, np.ones((11, 270)), sparse.csr_array(np.ones((11, 270)))]
    for mask in masks:
        hidden = there & (np.arange(11) != 3) if mask is masks[0] else there
        np.testing.assert_array_equal(model().fit(table, mask=mask).observed_, hidden)


def test_absent_periods_of_a_table_are_missing_steps():
    from temporalnmf.reading import as_table

    long = frame(index=LATE).rename_axis("day").reset_index().melt("day")
    table = as_table(long, time="day", feature="variable", value="value")
    fitted = model().fit(table)
    assert fitted.observed_.sum() == 8
    assert len(fitted.observed_) == 10
    assert list(fitted.feature_names_in_) == list("abcde")
    np.testing.assert_allclose(
        fitted.activations_, model().fit(frame(index=LATE).asfreq("D")).activations_, rtol=1e-3
    )
    other = as_table(long.replace("a", "z"), time="day", feature="variable", value="value")
    with pytest.raises(ValueError, match=r"'b' in the place of 'a'"):
        fitted.transform(other)


@pytest.mark.parametrize(
    "index",
    [LATE, LATE.to_period("D"), LATE.tz_localize("Europe/Paris"), [*range(4), *range(6, 10)]],
    ids=["dates", "periods", "zone", "numbers"],
)
def test_imputed_frames_have_their_absent_periods(index):
    X = frame(index=pd.Index(index, name="when"))
    with pytest.warns(UserWarning, match="absent"):
        fitted = model().fit(X)
    with pytest.warns(UserWarning, match="absent"):
        filled = fitted.impute(X)
    assert filled.shape == (10, 5)
    assert type(filled.index) is type(X.index)
    assert filled.index.name == "when"
    assert filled.index.dtype.kind == X.index.dtype.kind
    np.testing.assert_array_equal(filled.loc[X.index], COUNTS)
    np.testing.assert_array_equal(filled, model().fit(ABSENT).impute(ABSENT))


def test_paths_and_tables_go_in_as_they_are(tmp_path):
    from temporalnmf.reading import read_table

    path = tmp_path / "counts.csv"
    frame(index=pd.Index(DAYS, name="day")).drop(DAYS[3]).to_csv(path)
    fitted = model().fit(path)
    np.testing.assert_array_equal(fitted.observed_, np.arange(8) != 3)
    np.testing.assert_array_equal(fitted.transform(str(path)), fitted.activations_)
    table = read_table(path)
    filled = fitted.impute(table)
    np.testing.assert_array_equal(filled.X, fitted.impute(path).X)
    assert np.isfinite(filled.X).all()
    np.testing.assert_array_equal(np.delete(filled.X, 3, axis=0), np.delete(COUNTS, 3, axis=0))


def test_xarray_gives_the_results_of_a_frame():
    import xarray as xr

    array = xr.DataArray(
        COUNTS, dims=("time", "word"), coords={"time": DAYS, "word": list("abcde")}
    )
    fitted, expected = model().fit(array), model().fit(frame(index=DAYS))
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)
    assert list(fitted.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(fitted.times_, expected.times_)
    # In any order, on its side, with times lost, as short as one step: as a frame.
    back = array.isel(time=slice(None, None, -1))
    np.testing.assert_array_equal(fitted.transform(back), fitted.activations_[::-1])
    np.testing.assert_array_equal(fitted.impute(back), back)
    np.testing.assert_array_equal(fitted.impute(array.T), array.T)
    end = model().fit(back, mask=np.arange(8) < 6)
    np.testing.assert_array_equal(end.observed_, np.arange(8) >= 2)
    lost = array.isel(time=[0, 1, 2, 5, 6, 7])
    with pytest.warns(UserWarning, match="absent periods: 2"):
        assert fitted.transform(lost).shape == (6, 2)
    assert fitted.transform(array[:1]).shape == (1, 2)
    hidden = array.where(array.time != DAYS[3])
    filled = fitted.impute(hidden)
    assert filled.dims == array.dims
    np.testing.assert_array_equal(
        filled.to_numpy(), expected.impute(frame(changed(COUNTS, 3, np.nan), index=DAYS))
    )


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_single_feature_is_followed_by_the_activations(n_components, smoothing):
    # The fits are tight to see that the one series is followed.
    params = {"chain": "none", "tol": 1e-9, "smoothing": smoothing}
    fitted = model(n_components=n_components, **params).fit(COUNTS[:, :1])
    np.testing.assert_allclose(fitted.components_, np.ones((n_components, 1)), rtol=3e-16)
    np.testing.assert_allclose(fitted.activations_.sum(axis=1), COUNTS[:, 0])


def test_three_time_steps_are_enough():
    assert model().fit(COUNTS[:3]).activations_.shape == (3, 2)


UNTOUCHED: dict[str, Any] = {
    "complete": COUNTS.copy(),
    "complete, Fortran": np.asfortranarray(COUNTS),
    "with holes": MISSING.copy(),
    "pandas": frame(MISSING),
    "csr": sparse.csr_array(COUNTS * (COUNTS > 4)),
    "csc": sparse.csc_array(COUNTS * (COUNTS > 4)),
    "unsorted csr": sparse.csr_array(
        (np.tile(COUNTS[0], 8), np.tile([4, 0, 3, 1, 2], 8), np.arange(0, 41, 5)), shape=(8, 5)
    ),
}


def contents(X):
    """What is stored, and how."""
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (np.asarray(X),)
    return [part.copy() for part in parts]


@pytest.mark.parametrize("X", UNTOUCHED.values(), ids=UNTOUCHED.keys())
@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_data_are_not_modified(X, init):
    before = contents(X)
    estimator = model(init=init).fit(X)
    for method in (estimator.transform, estimator.impute, estimator.score):
        method(X)
    np.testing.assert_equal(contents(X), before)


def test_masks_exposure_starts_and_chains_are_not_modified():
    mask = sparse.csr_array(np.ones((8, 5)))
    mask.data[3] = 0.0
    exposure, init = np.linspace(1.0, 2.0, 8), (START[0].copy(), START[1].copy())
    before = contents(mask), exposure.copy(), (START[0].copy(), START[1].copy())
    chain = Rate(alpha=[3.0, 4.0])
    model(init=init, chain=chain).fit(COUNTS, mask=mask, exposure=exposure)
    np.testing.assert_equal((contents(mask), exposure, init), before)
    assert chain.get_params() == {"alpha": [3.0, 4.0], "beta": "auto"}


@pytest.mark.parametrize("mask", [None, "steps", "entries", "sparse"])
def test_a_table_may_hide_single_entries(mask):
    hidden = np.ones((8, 5), dtype=bool)
    hidden[2, 3] = hidden[6] = False
    given = {
        None: None,
        "steps": np.arange(8) != 4,
        "entries": changed(np.ones((8, 5)), (1, 1), 0.0),
        "sparse": sparse.csr_array(changed(np.ones((8, 5)), (1, 1), 0.0)),
    }[mask]
    line = timeline_of(np.arange(8))
    table = TimeTable(
        sparse.csr_array(COUNTS), line.labels, np.array(NAMES), (), line, observed=hidden
    )
    both = hidden.astype(float)
    if given is not None:
        both *= given[:, None] if mask == "steps" else sparse.csr_array(given).toarray()
    found = model().fit(table, mask=given)
    expected = model().fit(sparse.csr_array(COUNTS), mask=both)
    np.testing.assert_allclose(found.activations_, expected.activations_)
    shown = model().fit(sparse.csr_array(COUNTS), mask=both.any(axis=1))
    assert not np.allclose(found.activations_, shown.activations_)


@pytest.mark.each_value
@pytest.mark.parametrize("keep", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", [*registry.SOLVERS, *registry.SAMPLERS])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hidden_values_of_sparse_data_leave_no_trace(solver, keep):
    """Not even by their number, which would change the order of sums and of random numbers."""
    rng = np.random.default_rng(4)
    X = rng.poisson(1.5, (12, 9)).astype(float)
    seen = rng.random(X.shape) < 0.7
    found = []
    for hidden in (0.0, 7.0, np.nan, X):
        data = sparse.csr_array(np.where(seen, X, hidden))
        model = estimator(
            2, solver=solver, max_iter=60, n_draws=5, n_tune=3, n_chains=2, random_state=0
        )
        found.append(model.fit(data, mask=keep(seen)))
    for other in found[1:]:
        np.testing.assert_array_equal(other.components_, found[0].components_)
        np.testing.assert_array_equal(other.activations_, found[0].activations_)
        np.testing.assert_array_equal(
            other.smooth(n_samples=9).values, found[0].smooth(n_samples=9).values
        )


@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_components_of_single_precision_data_are_doubles(init, tmp_path):
    X = np.random.default_rng(0).poisson(5.0, (9, 7)).astype(np.float32)
    model = estimator(2, init=init, tol=1e-2, random_state=0).fit(X)
    assert model.components_.dtype == model.activations_.dtype == np.float64
    again = load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.components_, model.components_)


# Labels of what comes with X

YEARS = pd.Index(range(1990, 1998), name="year")
ORDER = [3, 0, 7, 5, 1, 2, 6, 4]
SIZES = pd.Series(np.arange(1.0, 9.0), YEARS)
SEEN = pd.DataFrame(np.arange(40).reshape(8, 5) % 7 > 0, YEARS, NAMES)


def as_polars(frame):
    return pl.from_pandas(frame.reset_index())


def as_xarray(data):
    import xarray as xr

    return xr.DataArray(data) if data.ndim == 1 else xr.DataArray(data, dims=("year", "word"))


@pytest.mark.parametrize("make", [lambda data: data, as_xarray], ids=["pandas", "xarray"])
def test_exposure_and_masks_are_aligned_by_their_labels(make):
    X = frame(index=YEARS)
    expected = model().fit(X, exposure=SIZES.to_numpy(), mask=SEEN.to_numpy())
    given = {"exposure": make(SIZES.iloc[ORDER]), "mask": make(SEEN.iloc[ORDER, ::-1])}
    for data in (X, X.iloc[::-1], make(X)):
        fitted = model().fit(data, **given)
        np.testing.assert_array_equal(fitted.exposure_, SIZES)
        np.testing.assert_array_equal(fitted.activations_, expected.activations_)
    rows = {"exposure": SIZES.to_numpy(), "mask": SEEN.to_numpy()}
    np.testing.assert_array_equal(fitted.transform(X, **given), fitted.transform(X, **rows))
    np.testing.assert_array_equal(fitted.impute(X, **given), fitted.impute(X, **rows))
    held = ~SEEN | (SEEN.index.to_numpy()[:, None] == 1993)
    scores = [
        fitted.score(X, exposure=SIZES, held_out=make(held.iloc[ORDER, ::-1])),
        fitted.score(X, exposure=SIZES, held_out=held.to_numpy()),
    ]
    assert scores[0] == scores[1]


def test_polars_masks_and_exposures_have_a_column_of_times():
    X = as_polars(frame(index=YEARS))
    given = {"exposure": as_polars(SIZES.iloc[ORDER]), "mask": as_polars(SEEN.iloc[ORDER, ::-1])}
    with pytest.warns(UserWarning, match="column 'year' is taken as the times"):
        fitted = model().fit(X, **given)
    expected = model().fit(COUNTS, exposure=SIZES.to_numpy(), mask=SEEN.to_numpy())
    np.testing.assert_array_equal(fitted.exposure_, SIZES)
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)


def test_labels_are_aligned_however_they_are_written():
    months = pd.period_range("2001-01", periods=8, freq="M")
    sizes = pd.Series(SIZES.to_numpy(), months.to_timestamp()[ORDER])
    fitted = model().fit(frame(index=months), exposure=sizes)
    np.testing.assert_array_equal(fitted.exposure_[ORDER], SIZES)
    texts = pd.Series(SIZES.to_numpy(), [str(month) for month in months])
    np.testing.assert_array_equal(model().fit(frame(index=months), exposure=texts).exposure_, SIZES)


def test_an_index_that_numbers_rows_is_no_label():
    """Either side may have none; then the order counts."""
    plain = SIZES.reset_index(drop=True)
    for X, sizes in (
        (frame(index=YEARS), plain), (frame(), SIZES), (COUNTS, SIZES[::-1]), (frame(), plain),
    ):  # fmt: skip
        fitted = model().fit(X, exposure=sizes)
        np.testing.assert_array_equal(fitted.exposure_, sizes)
    shuffled = plain.iloc[ORDER]  # numbers of rows that were put into another order
    np.testing.assert_array_equal(model().fit(frame(), exposure=shuffled).exposure_, SIZES)
    positions = pd.DataFrame(SEEN.to_numpy(), YEARS)
    fitted = model().fit(frame(index=YEARS), mask=positions)
    expected = model().fit(COUNTS, mask=SEEN.to_numpy())
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)


WRONG_LABELS = {
    "lacks a time": (
        {"exposure": SIZES.drop(1992)}, "exposure lacks the time '1992' of X.*np.asarray",
    ),
    "other times": ({"exposure": SIZES.set_axis(YEARS + 1)}, "exposure lacks the time '1990'"),
    "has a time more": (
        {"exposure": pd.concat([SIZES, pd.Series({2005: 3.0})])}, "has the time '2005', which X",
    ),
    "a time twice": ({"mask": SEEN.loc[[1990, *YEARS]]}, "mask has the time '1990' twice"),
    "dates": (
        {"exposure": SIZES.set_axis(DAYS)},
        "exposure has dates .* '2020-01-01', and X has numbers, such as '1990'",
    ),
    "lacks a feature": ({"mask": SEEN.drop(columns="b")}, "mask lacks the feature 'b' of X"),
    "has a feature more": (
        {"mask": SEEN.assign(z=True)}, "mask has the feature 'z', which X does not have",
    ),
    "polars": ({"mask": as_polars(SEEN)[1:]}, "mask lacks the time '1990' of X"),
    "xarray": ({"mask": as_xarray(SEEN)[:, 1:]}, "mask lacks the feature 'a' of X"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "pattern"), WRONG_LABELS.values(), ids=WRONG_LABELS.keys())
def test_labels_that_do_not_match_are_refused(given, pattern):
    with pytest.raises(ValueError, match=pattern):
        model().fit(frame(index=YEARS), **given)


def test_held_out_labels_that_do_not_match_are_refused():
    fitted = model().fit(frame(index=YEARS))
    with pytest.raises(ValueError, match="held_out lacks the time '1990' of X"):
        fitted.score(frame(index=YEARS), held_out=~SEEN.iloc[1:])


def test_exposure_of_the_future_is_aligned_by_its_labels():
    fitted = model().fit(frame(index=YEARS))
    sizes = pd.Series([3.0, 2.0], [1999, 1998])
    np.testing.assert_array_equal(fitted.forecast(2, exposure=sizes).exposure, [2.0, 3.0])
    plain = pd.Series([3.0, 2.0])
    np.testing.assert_array_equal(fitted.forecast(2, exposure=plain).exposure, plain)
    with pytest.raises(ValueError, match="exposure lacks the time '1998' of the forecast"):
        fitted.forecast(2, exposure=sizes.set_axis([1999, 2000]))
    numbered = model().fit(COUNTS)  # what follows has no labels
    assert numbered.forecast(2, exposure=sizes).exposure.tolist() == [3.0, 2.0]


def test_append_aligns_exposure_by_its_labels():
    fitted = model().fit(frame(index=YEARS), exposure=SIZES)
    new = frame(index=YEARS + 8).iloc[:2]
    fitted.append(new, exposure=pd.Series([3.0, 2.0], new.index[::-1]))
    np.testing.assert_array_equal(fitted.exposure_[8:], [2.0, 3.0])


# Times in a column of a frame, by the rule of files


@pytest.mark.parametrize("name", ["year", "Unnamed: 0", "Jahr", ""])
@pytest.mark.parametrize("polars", [False, True])
def test_a_column_of_numbers_with_the_name_of_a_time_is_the_times(name, polars):
    X = frame(index=YEARS).reset_index().rename(columns={"year": name})
    X = pl.from_pandas(X) if polars else X
    with pytest.warns(UserWarning, match=f"column '{name}' is taken as the times.*rename"):
        fitted = model().fit(X)
    expected = model().fit(frame(index=YEARS))
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)
    np.testing.assert_array_equal(fitted.times_, YEARS)
    assert list(fitted.feature_names_in_) == list(fitted.feature_labels()) == NAMES
    assert fitted.n_features_in_ == 5
    assert fitted.timeline_.notes[0] == f"times are in column '{name}'"
    with pytest.warns(UserWarning, match="taken as the times"):
        back = fitted.transform(X[::-1])
    np.testing.assert_array_equal(back, fitted.activations_[::-1])
    assert list(X.columns) == [name, *NAMES], "the frame of the user stays as it is"


@pytest.mark.parametrize(
    "labels", [[f"2020-0{m}" for m in range(1, 9)], DAYS, DAYS.date], ids=["text", "dates", "days"]
)
@pytest.mark.parametrize("polars", [False, True])
@pytest.mark.filterwarnings("error")
def test_a_first_column_of_dates_or_text_is_the_times(labels, polars):
    X = frame()
    X.insert(0, "when", labels)
    fitted = model().fit(pl.from_pandas(X) if polars else X)
    expected = model().fit(frame(index=pd.Index(labels)))
    np.testing.assert_array_equal(fitted.times_, expected.times_)
    np.testing.assert_array_equal(fitted.activations_, expected.activations_)


@pytest.mark.filterwarnings("error")
def test_features_that_are_not_first_or_have_an_index_stay_features():
    for X in (
        frame().rename(columns={"b": "year"}), frame(index=YEARS).rename(columns={"a": "day"}),
        frame(index=DAYS).rename(columns={"a": "t"}), frame().astype(object),
        frame().astype({"a": bool}), frame().astype("Int64"), pl.DataFrame(COUNTS, schema=NAMES),
    ):  # fmt: skip
        assert model().fit(X).n_features_in_ == 5


@pytest.mark.parametrize(
    "labels",
    [YEARS, DAYS, [f"2020-0{m}" for m in range(1, 9)], [f"2020-W0{w}" for w in range(1, 9)]],
    ids=["numbers", "dates", "months", "weeks"],
)
@pytest.mark.parametrize("polars", [False, True])
@pytest.mark.filterwarnings("ignore:X")
def test_imputed_frames_keep_their_column_of_times(labels, polars):
    X = frame()
    X.insert(0, "time", labels)
    X = pl.from_pandas(X) if polars else X
    fitted = model().fit(X)
    gap = X[[0, 1, 2, 5, 6, 7]] if polars else X.drop([3, 4]).reset_index(drop=True)
    filled = fitted.impute(gap)
    assert type(filled) is type(X)
    assert list(filled.columns) == ["time", *NAMES]
    assert filled["time"].to_list() == X["time"].to_list()
    assert filled["time"].dtype == X["time"].dtype
    backwards = X[::-1]
    unchanged = fitted.impute(backwards if polars else backwards.reset_index(drop=True))
    assert unchanged["time"].to_list() == X["time"].to_list()[::-1]
    np.testing.assert_array_equal(unchanged[NAMES].to_numpy(), COUNTS[::-1])


def test_identical_features_and_near_sums_are_not_refused_as_totals():
    twins = frame()[["a", "b"]].assign(b=lambda f: f["a"])
    near = frame().assign(words=COUNTS.sum(axis=1) + np.eye(8)[0])
    for X in (twins, near):
        model().fit(X)


@pytest.mark.parametrize(
    ("labels", "later"),
    [
        ([f"2020-W0{w}" for w in range(1, 9)], ["2020-W09", "2020-W10"]),
        ([f"{1995 + n}/{(1996 + n) % 100:02}" for n in range(8)], ["2003/04", "2004/05"]),
    ],
    ids=["weeks", "fiscal years"],
)
@pytest.mark.filterwarnings("ignore:X. absent")
def test_results_keep_the_labels_of_the_user(labels, later, tmp_path):
    """Fit, forecast, frames, files of models, steps that are added one by one, gaps."""
    X = frame(index=pd.Index(labels, name="when"))
    fitted = load(model().fit(X.drop(labels[4])).save(tmp_path / "model.npz"))
    assert fitted.times_.tolist() == labels
    ahead = fitted.forecast(2)
    assert ahead.times.tolist() == later
    assert ahead.to_frame("totals")["time"].tolist() == later
    assert fitted.smooth().times.tolist() == labels
    assert fitted.impute(X.drop(labels[4])).index.tolist() == labels
    fitted.append(X.iloc[:1].set_axis([later[0]]))
    assert fitted.times_.tolist() == [*labels, later[0]]
    assert fitted.forecast(1).times.tolist() == later[1:]


@pytest.mark.filterwarnings("error")
def test_numbers_near_the_largest_are_not_refused_as_totals():
    from temporalnmf.reading.sheet import refuse_total

    for X in (np.full((3, 3), 1e308), np.array([[1.0, 1.0, 1e308]] * 4), np.eye(3) * 1e308):
        refuse_total(X, list("abc"), "X")
