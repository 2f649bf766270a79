"""Fits at the edge of what is admissible, and what has to hold for every one of them.

A `Trial` says in plain numbers what is fitted; `trial_of` makes one from any source of choices: a
random generator (`tools/fuzz.py`) or hypothesis (`tests/test_properties.py`). `run` fits it and
raises `PromiseError` where a promise does not hold.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import temporalnmf
from temporalnmf import TemporalNMF, registry
from temporalnmf.effects import Season, Trend
from temporalnmf.likelihoods.base import Likelihood
from temporalnmf.observations import dense
from temporalnmf.observations import sparse as sparse_data
from temporalnmf.persistence.models import CappedWarning
from temporalnmf.solvers import Gibbs

# What hidden entries may hold.
JUNK = (0.0, 1.0, 1e300, -3.0, np.nan, np.inf)

# Refusals that are documented, by what their messages say: those that must come just where a
# condition holds, and those that may come there.
Condition = Callable[["Trial", "Data"], bool]
MUST: dict[str, Condition] = {
    "time step(s), and a series needs": lambda trial, data: trial.n_steps < 3,
    "X has no observed entry": lambda trial, data: bool(data.hidden.all()),
    "X is zero wherever it is observed": lambda trial, data: data.level == 0.0,
    "X is too close to zero": lambda trial, data: (
        _law(trial).own_unit and 0.0 < data.level < _law(trial).levels[0]
    ),
    "X is too large for": lambda trial, data: data.level > _law(trial).levels[1],
    "has no mode on the linear scale": lambda trial, data: _no_mode(trial),
    "mask has the weight": lambda trial, data: _weighted_draws(trial, data),
    "X has a fraction": lambda trial, data: _law(trial).whole and bool(np.any(data.seen % 1.0)),
    "need counts, whole numbers": lambda trial, data: (
        trial.solver in registry.SAMPLERS and bool(np.any(data.seen % 1.0))
    ),
    "values are missing for the steps": lambda trial, data: trial.covariates == "nan",
    "is inf at": lambda trial, data: trial.covariates == "inf",
    "has free activations at every step": lambda trial, data: (
        trial.chain == "none"
        and bool(trial.covariates or trial.holidays or trial.trend not in (None, "auto"))
    ),
}
MAY: dict[str, Condition] = {
    "more than init='nndsvda' has singular vectors for": lambda trial, data: (
        trial.init == "nndsvda" and bool(data.hidden.any())
    ),
    "leaves no room to move": lambda trial, data: bool(trial.hyper) and data.dense.max() > 1e5,
    "is far from the data": lambda trial, data: bool(trial.hyper) and abs(_digits(trial)) > 90,
} | dict.fromkeys(
    (
        "at least two cycles are needed", "is no longer than a step", "are the same season",
        "harmonics.", "has free activations",
    ),
    lambda trial, data: trial.season not in ("auto", None),
) | dict.fromkeys(
    (
        "none of its holidays is in the series", "none of its days is in the series",
    ),
    lambda trial, data: trial.holidays is not None,
) | dict.fromkeys(
    ("needs steps with dates, evenly spaced",),
    lambda trial, data: trial.holidays is not None or trial.season not in ("auto", None),
) | dict.fromkeys(
    ("so it explains nothing", "determine each other", "are too many for", "in another unit"),
    lambda trial, data: bool(trial.covariates),
)  # fmt: skip


def _law(trial: Trial) -> type[Likelihood]:
    law: type[Likelihood] = registry.load(registry.LIKELIHOODS[trial.likelihood])
    return law


def _no_mode(trial: Trial) -> bool:
    """Whether the density of h, or of an auxiliary variable, is largest at an end."""
    if trial.map_scale == "log" or trial.solver in registry.SAMPLERS:
        return False
    chain = chain_of(trial)
    if trial.chain == "bgar":
        alpha, rho = np.asarray(chain.alpha), np.asarray(chain.rho)
        return bool(np.any(alpha * np.minimum(rho, 1.0 - rho) <= 1.0))
    shape = {"rate": "alpha", "hier_rate": "alpha_h"}.get(trial.chain)
    return shape is not None and bool(np.any(np.asarray(getattr(chain, shape)) < 1.0))


def _weighted_draws(trial: Trial, data: Data) -> bool:
    weighted = trial.mask == "weights" and np.any((data.weights != 0.0) & (data.weights != 1.0))
    return trial.solver in registry.SAMPLERS and bool(weighted)


def _digits(trial: Trial) -> float:
    return float(np.log10(trial.unit))


class PromiseError(Exception):
    """A promise that does not hold."""


@dataclass(frozen=True)
class Trial:
    """One fit, in numbers and words that JSON can hold."""

    n_steps: int
    n_features: int
    n_components: int
    likelihood: str
    data: str
    unit: float
    span: float
    sparse: bool
    mask: str
    exposure: bool
    chain: str
    hyper: dict[str, Any]
    map_scale: str
    solver: str
    smoothing: float
    point: str
    init: str
    max_iter: int
    tol: float
    seed: int
    n_init: int = 1
    nan: bool = False  # what is hidden is NaN, and there is no mask
    single: bool = False  # precision
    sparse_mask: bool = False
    dates: str = ""  # frequency of the dates of the steps, if they have some
    season: Any = "auto"  # a dict is a `Season`
    trend: Any = None  # a dict is a `Trend`
    holidays: Any = None
    covariates: str = ""  # of which kind

    @property
    def affected(self) -> bool:
        """Whether it asks for effects, or may get some."""
        given = self.trend, self.holidays, self.covariates or None
        return (
            bool(self.dates)
            or self.season not in ("auto", None)
            or any(x is not None for x in given)
        )

    @classmethod
    def read(cls, path: Path) -> Trial:
        """What `write` wrote."""
        return cls(**json.loads(path.read_text())["trial"])

    def write(self, path: Path, reason: str) -> Path:
        """Keep it, with a word on what was wrong."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"reason": reason, "trial": asdict(self)}, indent=1) + "\n")
        return path


Choose = Callable[[Sequence[Any]], Any]

# Sizes are small as a rule: what is at the edge shows there. Long series are rare, they take long.
_SIZES = (1, 1, 2, 3, 4, 5, 8, 13, 20)
_COUNTS = ("counts", "rare", "huge", "constant", "one", "tiny")
_ALPHAS = (1e-3, 0.1, 0.5, 1.0, 1.0 + 1e-6, 1.5, 10.0, 1e3, 1e6)


def trial_of(
    choose: Choose,
    longest: Sequence[int] = (1_000, 30_000, 100_000),
    numbers: Sequence[int] = (1, 1, 2, 3, 5, 9, 25),
) -> Trial:
    """A trial whose every part is chosen from a list, `numbers` of components among them."""
    n_steps = choose((1, 2, 3, 3, 4, 4, 5, 5, 6, 8, 8, 13, 13, 21, 30, 60))
    n_features, n_components = choose(_SIZES), choose(numbers)
    long = choose(range(300)) == 299
    if long:
        n_steps, n_features, n_components = choose(longest), choose((1, 3)), choose((1, 2))
    small = n_components <= min(n_steps, n_features)
    likelihood = choose(tuple(registry.LIKELIHOODS))
    law = registry.load(registry.LIKELIHOODS[likelihood])
    counts = law.counts
    map_scale = choose(("log", "linear"))
    chain = choose(tuple(registry.CHAINS))
    draws = law.has_draws and chain != "none" and not long and choose(range(8)) == 7
    solver = choose(tuple(registry.SAMPLERS if draws else registry.SOLVERS))
    kept_sparse = law().takes_sparse and choose((False, True))
    mask = choose(("none", "none", "steps", "entries", "weights", "rows", "columns", "one"))
    trial = Trial(
        n_steps=n_steps,
        n_features=n_features,
        n_components=n_components,
        likelihood=likelihood,
        data=choose(_COUNTS if counts else ("wide", "flat")),
        unit=1.0 if counts else choose((1e-150, 1e-100, 1e-30, 1.0, 1e6, 1e30, 1e100, 1e138)),
        span=1.0 if counts else choose((1.0, 1e3, 1e12)),
        sparse=kept_sparse,
        mask=mask,
        exposure=choose((False, False, True)),
        chain=chain,
        hyper=_hyper(choose, chain, map_scale, n_components),
        map_scale=map_scale,
        solver=solver,
        smoothing=choose((1e-3, 0.1, 1.0, 100.0) if draws else (0.0, 0.0, 1e-3, 0.1, 1.0, 100.0)),
        point=choose(("mean",) if draws else ("mean", "mode")),
        init=choose(("random", "random", "nndsvda") if small else ("random",)),
        max_iter=choose((1, 7, 40) if long else (1, 3, 12, 12, 40, 40, 90)),
        tol=choose((0.0, 1e-5, 1e-2)),
        seed=choose(range(2**16)),
        n_init=1 if long else choose((1, 1, 1, 2)),
        nan=not kept_sparse and mask not in ("none", "weights") and choose((False, False, True)),
        single=counts and choose((False, False, False, True)),
        sparse_mask=kept_sparse and mask not in ("none", "steps") and choose((False, True)),
    )
    return replace(trial, **_effects(choose, trial)) if choose(range(5)) < 2 else trial


_STRENGTHS = ("learn", 1e-6, 0.1, 1.0, 50.0)
# An event on the first day, one in the future, one on the first three days.
_EVENTS = {
    "opening": ["2001-01-01"], "fair": ["2090-01-01"],
    "strike": ["2001-01-01", "2001-01-02", "2001-01-03"],
}  # fmt: skip


def _effects(choose: Choose, trial: Trial) -> dict[str, Any]:
    """Dates and effects, for the data of a trial."""
    if trial.n_steps > 1_000:
        return {"season": choose((2, 7, 24)), "trend": choose((None, 0.8))}
    dates = choose(("", "D", "D", "D", "h", "W-MON", "MS", "ME", "QS", "YS"))
    season = choose(("auto", "auto", "auto", None, "one", "one", "own", "two"))
    if season in ("one", "own", "two"):
        named = (2, 3, 7, "day", "week", "year") if dates else (2, 3, 4, 7, 12)
        strength, terms = choose(_STRENGTHS), choose((None, None, 1, 2))
        season = {
            "one": choose(named),
            "own": {"period": choose(named), "terms": terms, "strength": strength},
            "two": [choose(named), choose(named)],
        }[season]
    ends = {"damping": choose((0.5, 0.8, 1.0)), "strength": choose((*_STRENGTHS, 0.02))}
    return {
        "dates": dates,
        "season": season,
        "trend": choose((None, None, "auto", 0.5, 0.9, 1.0, ends)),
        "holidays": choose((None, None, "US", _EVENTS, {"opening": ["2001-01-01"]}))
        if dates
        else None,
        "covariates": choose(("", "", "noise", "noise", "binary", "large", "spike", "dependent",
                              "constant", "nan", "inf", "many")),
    }  # fmt: skip


def random_trial(seed: int) -> Trial:
    rng = np.random.default_rng(seed)
    return trial_of(lambda options: options[int(rng.integers(len(options)))])


def _hyper(choose: Choose, chain: str, scale: str, n_components: int) -> dict[str, Any]:
    """Hyper-parameters of a chain: its own, one number for all, or one per component."""
    kind = choose(("default", "one", "each", "learn"))
    made = registry.create(registry.CHAINS, chain, "chain")
    if kind == "learn":
        own = [name for name in made.get_params() if name != "marginal"]
        return {choose(own): "learn"} if own and scale == "log" else {}
    if kind == "default":
        return {}

    def values(options: Sequence[float]) -> Any:
        return [choose(options) for _ in range(n_components)] if kind == "each" else choose(options)

    if chain in ("bgar", "arg"):
        rho = values((1e-3, 0.3, 0.5, 0.9, 0.999))
        if scale == "log" or chain == "arg":
            alpha = values([a for a in _ALPHAS if scale == "log" or a >= 1.0])
        else:  # at the edge: the smaller of α(1−ρ) and αρ is just above one
            just = choose((1e-6, 0.1, 10.0))
            alpha = (1.0 + just) / np.minimum(rho, 1.0 - np.asarray(rho))
            alpha = np.nextafter(alpha, np.inf).tolist()
        return {"alpha": alpha, "rho": rho}
    shapes = [a for a in _ALPHAS if scale == "log" or a >= 1.0]
    return {
        name: values(shapes)
        for name in made.get_params()
        if name.startswith("alpha") or (name.startswith("beta") and choose((False, True)))
    }


def chain_of(trial: Trial) -> Any:
    chain = registry.create(registry.CHAINS, trial.chain, "chain")
    return chain.set_params(
        **{k: np.array(v) if isinstance(v, list) else v for k, v in trial.hyper.items()}
    )


def model_of(trial: Trial, **others: Any) -> TemporalNMF:
    """The estimator of a trial."""
    solver = Gibbs(n_draws=3, n_tune=2, n_chains=2) if trial.solver == "gibbs" else trial.solver
    return TemporalNMF(
        trial.n_components, chain=chain_of(trial), likelihood=trial.likelihood,
        map_scale=trial.map_scale, solver=solver, smoothing=trial.smoothing,
        season=_season(trial.season), holidays=trial.holidays,
        trend=Trend(**trial.trend) if isinstance(trial.trend, dict) else trial.trend,
        point=trial.point, init=trial.init,
        max_iter=trial.max_iter, tol=trial.tol, random_state=trial.seed, n_init=trial.n_init,
    ).set_params(**others)  # fmt: skip


def _season(given: Any) -> Any:
    return Season(**given) if isinstance(given, dict) else given


@dataclass(frozen=True)
class Data:
    """X (N, F), a mask or None, exposures or None, and what is known of each step.

    `covariates` are those of the steps and of two more; `dates` the frequency of the dates.
    """

    X: Any
    mask: Any
    exposure: Any
    covariates: Any = None
    dates: str = ""

    @property
    def given(self) -> dict[str, Any]:
        known = None if self.covariates is None else self.labelled(self.covariates[:-2])
        return {"mask": self.mask, "exposure": self.exposure, "covariates": known}

    @property
    def ahead(self) -> Any:
        """The covariates of the two steps after the last."""
        if self.covariates is None:
            return None
        return self.labelled(self.covariates[-2:], len(self.weights))

    def labelled(self, X: Any, first: int = 0) -> Any:
        """An array as a frame, if there are dates; the first row is of the step `first`."""
        if not self.dates or sparse.issparse(X):
            return X
        start, n = "2001-01-01", first + len(X)
        return pd.DataFrame(X, index=pd.date_range(start, periods=n, freq=self.dates)[first:])

    @property
    def dense(self) -> np.ndarray:
        return self.X.toarray() if sparse.issparse(self.X) else self.X

    @property
    def weights(self) -> np.ndarray:
        if self.mask is None:
            return np.ones(self.X.shape)
        mask = self.mask.toarray() if sparse.issparse(self.mask) else self.mask
        return np.broadcast_to(mask if mask.ndim == 2 else mask[:, None], self.X.shape)

    @property
    def hidden(self) -> np.ndarray:
        """Entries that nobody may look at."""
        return self.weights == 0

    @property
    def seen(self) -> np.ndarray:
        """Entries that are observed."""
        return self.dense[~self.hidden]

    @property
    def level(self) -> float:
        """Mean total of a step, per unit of exposure; zero without data."""
        exposure = np.ones(len(self.weights)) if self.exposure is None else self.exposure
        totals = (self.weights * np.where(self.hidden, 0.0, self.dense)).sum(axis=0, dtype=float)
        exposed = exposure @ self.weights
        return float((totals[exposed > 0.0] / exposed[exposed > 0.0]).sum())

    def with_hidden(self, values: Any) -> Any:
        """X with other values where nobody may look."""
        X = self.dense.copy()
        X[self.hidden] = values
        return sparse.csr_array(X) if sparse.issparse(self.X) else X


def data_of(trial: Trial) -> Data:
    rng = np.random.default_rng(trial.seed)
    shape = trial.n_steps, trial.n_features
    if _law(trial).counts:
        X = _counts(trial.data, rng, shape)
    else:
        X = np.full(shape, np.sqrt(trial.span))
        if trial.data == "wide":
            X = trial.span ** rng.random(shape)
        X = X * trial.unit
    exposure = np.exp(rng.normal(size=trial.n_steps)) if trial.exposure else None
    mask = _mask(trial.mask, rng, shape)
    if trial.single:
        X = X.astype(np.float32)
    return Data(
        sparse.csr_array(X) if trial.sparse else X,
        sparse.csr_array(mask.astype(float)) if trial.sparse_mask else mask,
        exposure,
        _covariates(trial),
        "" if trial.sparse else trial.dates,
    )


def _covariates(trial: Trial) -> Any:
    """The covariates of the steps and of two more, (N + 2, C)."""
    kind, rng = trial.covariates, np.random.default_rng(trial.seed + 4)
    if not kind:
        return None
    x = rng.normal(size=(trial.n_steps + 2, 25 if kind == "many" else 2))
    if kind == "binary":
        return (x > 0.7).astype(float)
    if kind == "large":
        return x * [1e6, 1e-6] + [1e9, 0.0]
    if kind == "spike":
        x[:, 0], x[trial.n_steps // 2, 0] = 0.0, 1e6
    if kind == "dependent":
        x[:, 1] = 3.0 * x[:, 0] - 1.0
    if kind == "constant":
        x[:, 1] = 4.0
    if kind in ("nan", "inf"):
        x[0, 1] = float(kind)
    return x


def _counts(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if kind == "constant":
        return np.full(shape, 3.0)
    X = rng.poisson(20.0 if kind in ("counts", "tiny") else 0.2, shape).astype(float)
    X[rng.random(shape[0]) < 0.2] = 0.0
    X[:, rng.random(shape[1]) < 0.2] = 0.0
    if kind == "one":
        X[...] = 0.0
    if kind in ("one", "huge"):
        X[rng.integers(shape[0]), rng.integers(shape[1])] = 1e9
    return X * rng.choice((1e-320, 1e-40, 1e-18)) if kind == "tiny" else X


def _mask(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    if kind == "none":
        return None
    if kind == "steps":
        return rng.random(shape[0]) < 0.6
    if kind == "one":
        mask = np.zeros(shape, dtype=bool)
        mask[rng.integers(shape[0]), rng.integers(shape[1])] = True
        return mask
    seen = rng.random(shape) < 0.6
    if kind == "rows":
        seen = np.broadcast_to(rng.random((shape[0], 1)) < 0.5, shape)
    elif kind == "columns":
        seen = np.broadcast_to(rng.random((1, shape[1])) < 0.5, shape)
    return seen * rng.choice([0.01, 1.0, 3.0], shape) if kind == "weights" else np.array(seen)


def run(trial: Trial) -> str:
    """Fit a trial and check all promises; what became of it in a word."""
    data = data_of(trial)
    with _few_warnings(), _small_shards(trial):
        try:
            model = _fitted(trial, data)
        except ValueError as error:
            return _refused(trial, data, error)
        for words, holds in MUST.items():
            _expect(not holds(trial, data), f"this is refused: {words}")
        _check_result(trial, model)
        _check_again(trial, data, model)
        _check_use(trial, data, model)
        plain = trial.init == "random" and trial.n_steps <= 100 and not trial.affected
        if trial.solver == "mm" and plain:
            _check_permuted(trial, data)
            _check_scaled(trial, data)
    return "converged" if model.converged_ else "fitted"


def _fitted(trial: Trial, data: Data) -> TemporalNMF:
    if trial.nan:
        X = data.labelled(data.with_hidden(np.nan))
        return model_of(trial).fit(X, **{**data.given, "mask": None})
    return model_of(trial).fit(data.labelled(data.X), **data.given)


@contextmanager
def _small_shards(trial: Trial) -> Iterator[None]:
    """Every other trial in several shards, so that threads have something to share."""
    with ExitStack() as stack:
        for module in (dense, sparse_data) if trial.seed % 2 else ():
            stack.enter_context(patch.object(module, "_RANGE", 4))
        yield


def _refused(trial: Trial, data: Data, error: ValueError) -> str:
    for words, expected in (MUST | MAY).items():
        if words in str(error) and expected(trial, data):
            return f"refused: {words}"
    raise PromiseError(f"refused without a documented reason: {error}") from error


OURS = (CappedWarning, ConvergenceWarning, UserWarning)


@contextmanager
def _few_warnings() -> Iterator[None]:
    """Ours are allowed, a few of them; any other is an error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", category=RuntimeWarning)
        warnings.filterwarnings("error", category=DeprecationWarning)
        yield
    others = [w for w in told if w.category not in OURS]
    if others:
        raise PromiseError(f"a warning that is not ours: {others[0].message}")
    if len(told) > 20:
        raise PromiseError(f"a flood of {len(told)} warnings, such as: {told[-1].message}")


def _expect(holds: Any, promise: str) -> None:
    if not np.all(holds):
        raise PromiseError(promise)


def _sound(name: str, array: Any) -> None:
    _expect(np.isfinite(array), f"{name} is finite")
    _expect(np.asarray(array) >= 0.0, f"{name} is not negative")


def _check_result(trial: Trial, model: TemporalNMF) -> None:
    _sound("components_", model.components_)
    _sound("activations_", model.activations_)
    for name in ("objective_", "history_"):
        _expect(np.isfinite(getattr(model, name)), f"{name} is finite")
    _sound("reconstruction_err_", model.reconstruction_err_)
    sums = model.components_.sum(axis=1)
    _expect(np.abs(sums - 1.0) <= 1e-10, f"components sum to one: {sums}")
    if trial.solver in registry.SAMPLERS:
        sums = model.posterior_.components.sum(axis=-1, dtype=float)
        _expect(np.abs(sums - 1.0) <= 1e-5, "components of every draw sum to one")
        return  # draws go up and down
    history = model.history_
    rises = np.diff(history) / np.maximum(np.abs(history[:-1]), 1.0)
    _expect(rises <= 1e-10, f"the objective never rises: by {rises.max(initial=0.0):.2e}")


def _same(first: TemporalNMF, second: TemporalNMF, promise: str) -> None:
    for name in ("components_", "activations_", "history_", "objective_"):
        _expect(np.array_equal(getattr(first, name), getattr(second, name)), f"{promise}: {name}")


def _check_again(trial: Trial, data: Data, model: TemporalNMF) -> None:
    """Same bits for the same seed, two threads, and other values where nobody looks."""
    junk = np.random.default_rng(trial.seed + 1).choice(JUNK, int(data.hidden.sum()))
    junk = np.minimum(junk, np.finfo(data.X.dtype).max)
    X = data.labelled(data.with_hidden(junk))
    again = model_of(trial, n_jobs=2).fit(X, **data.given)
    _same(model, again, "same seed, same bits, whatever is hidden and with two threads")


def _check_use(trial: Trial, data: Data, model: TemporalNMF) -> None:
    """What a user does with a model."""
    X = data.labelled(data.X)
    inferred = model.transform(X, **data.given)
    _sound("transform", inferred)
    if trial.point == "mean" and trial.n_steps <= 100 and trial.solver in registry.SOLVERS:
        seen = model.observed_[model.timeline_.rows]
        kept = np.isin(np.arange(trial.n_steps), model._kept) & seen
        _expect(
            np.array_equal(inferred[kept], model.activations_[kept]),
            "transform of the fitted data is what the fit said, to the bit",
        )
    _expect(np.isfinite(model.score(X, **data.given)), "score is finite")
    _sound("inverse_transform", model.inverse_transform(model.activations_[-3:]))
    if trial.n_steps > 100:
        return
    rows = np.arange(trial.n_steps) % 2 == 0
    if (~data.hidden[~rows]).any() and (~data.hidden[rows]).any():
        held = model.score(X, held_out=rows, **data.given)
        _expect(np.isfinite(held), "score of what was held out is finite")
    whole = model.impute(X, **data.given)
    whole = whole.toarray() if sparse.issparse(whole) else np.asarray(whole)
    _sound("impute", whole)
    _expect((whole == data.dense) | data.hidden, "what was observed stays as it is")
    smooth = model.smooth(n_samples=20)
    _sound("smooth", smooth.values)
    forecast = model.forecast(2, n_samples=20, covariates=data.ahead)
    _sound("forecast", forecast.values)
    _check_parts(trial, model, forecast)
    if trial.chain != "none":
        lower, upper = forecast.interval(0.9)
        _expect(np.isfinite(lower), "lower bounds are finite")
        _expect((lower >= 0.0) | (trial.likelihood == "gaussian"), "lower bounds are not negative")
        _expect(lower <= upper, "intervals are in order")
    with TemporaryDirectory() as folder:
        again = temporalnmf.load(model.save(Path(folder, "model.npz")))
    _same(model, again, "a model that was saved is the same")
    same = np.array_equal(
        again.forecast(2, n_samples=20, covariates=data.ahead).values, forecast.values
    )
    _expect(same, "a model that was saved has the same forecasts")
    if trial.init == "random" and trial.n_steps <= 30:
        part = {name: None if value is None else value[:1] for name, value in data.given.items()}
        if data.covariates is not None:
            part["covariates"] = data.ahead[:1]
        again.append(data.labelled(data.X[:1], trial.n_steps), **part)
        _sound("activations_ after append", again.activations_)
        _expect(len(again.activations_) == trial.n_steps + 1, "append adds a step")


def _check_parts(trial: Trial, model: TemporalNMF, forecast: Any) -> None:
    """Levels and factors, and their products."""
    _sound("levels_", model.levels_)
    for name, factors in (*model.season_.items(), *model.effects_.items()):
        _sound(f"factors of {name}", factors)
    parts = forecast.explain()
    numbers = parts.drop(columns=["time", "component", "name"])
    _sound("parts of a forecast", numbers.to_numpy())
    if trial.solver in registry.SAMPLERS:
        return
    sums = parts["expected"].to_numpy().reshape(len(forecast.times), -1).sum(axis=1)
    totals = forecast.values.sum(axis=1)
    _expect(np.abs(sums - totals) <= 1e-6 * totals, "expected parts add up to the totals")
    products = numbers.drop(columns="expected").prod(axis=1)
    off = np.abs(products - parts["expected"])
    _expect(off <= 1e-6 * parts["expected"] + 1e-290, "level times factors is what is expected")


def _start(trial: Trial, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Components and activations to start from, at the level of the data."""
    rng = np.random.default_rng(trial.seed + 2)
    W = rng.gamma(2.0, size=(trial.n_components, trial.n_features)) + 1e-3
    level = np.mean(data.dense, where=~data.hidden, dtype=float)
    return W, level * (0.5 + rng.random((trial.n_steps, trial.n_components)))


def _one_step(trial: Trial, data: Data, W: np.ndarray, H: np.ndarray) -> TemporalNMF:
    """One iteration of MM from given values.

    More of them multiply rounding, without bounds for BGAR at the edge of its domain.
    """
    model = model_of(trial, init=(W, H), max_iter=1, tol=0.0, n_init=1)
    return model.fit(data.X, **data.given)


def _check_permuted(trial: Trial, data: Data) -> None:
    """Features in another order: the same model in that order, up to rounding."""
    order = np.roll(np.random.default_rng(trial.seed + 3).permutation(trial.n_features), 1)
    mask = data.mask if data.mask is None or data.mask.ndim == 1 else data.mask[:, order]
    W, H = _start(trial, data)
    first = _one_step(trial, data, W, H)
    second = _one_step(trial, replace(data, X=data.X[:, order], mask=mask), W[:, order], H)
    _close(trial, "permuted", first.components_[:, order], second.components_)
    # Activations of more components than there are features have directions in which rounding
    # grows; what they add up to has not.
    seen = ~data.hidden[:, order]
    rates = (
        first.activations_ @ first.components_[:, order],
        second.activations_ @ second.components_,
    )
    _close(trial, "permuted", *(np.where(seen, rate, 0.0) for rate in rates))


def _check_scaled(trial: Trial, data: Data) -> None:
    """Data in another unit: activations in that unit, where no prior knows of units.

    Positive values have none of their own, and neither have chains of ratios, nor those whose
    level is matched to the data. Without a chain counts have none, either, unless W has a prior.
    """
    free = trial.chain == "none" and not trial.smoothing and trial.likelihood == "poisson"
    if trial.likelihood in ("exponential", "gamma"):
        matched = trial.chain in ("gap", "bgar", "arg") and "beta" not in trial.hyper
        free = trial.chain in ("none", "rate", "hier_rate") or matched
    if not free:
        return
    W, H = _start(trial, data)
    first = _one_step(trial, data, W, H)
    second = _one_step(trial, replace(data, X=10.0 * data.X), W, 10.0 * H)
    _close(trial, "scaled", first.components_, second.components_)
    inside = second.activations_ < 1e250  # gaps that are filled by a chain that explodes are not
    scaled = (10.0 * first.activations_, second.activations_)
    _close(trial, "scaled", *(np.where(inside, activations, 0.0) for activations in scaled))


def _close(trial: Trial, what: str, first: np.ndarray, second: np.ndarray) -> None:
    error = np.abs(first - second).max() / max(np.abs(first).max(), np.finfo(float).tiny)
    loose = trial.single or any(
        value == "learn" for value in trial.hyper.values() if isinstance(value, str)
    )  # differences magnify rounding
    _expect(
        error <= (1e-5 if loose else 1e-8),
        f"{what} data give the same result: off by {error:.1e}",
    )
