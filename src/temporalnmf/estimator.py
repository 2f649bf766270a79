"""TemporalNMF: the scikit-learn estimator, and the only place that transposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from os import PathLike
from types import MappingProxyType
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import registry
from ._typing import Array
from .chains.base import Chain, Point, Scale
from .cluster.sources import is_split, split_data, split_series
from .data.covariates import Wanted, covariates_at
from .data.imputing import filled
from .data.modulation import Exposure
from .data.series import AnySeries, Series
from .data.validation import check_features, check_held_out, check_series
from .effects.covariates import Covariates
from .effects.design import Design, SeasonsLike, TrendLike
from .effects.effects import Effects
from .effects.reasons import Reason
from .forecasting.appending import fit_again, infer_again, whole_series
from .forecasting.calibrating import Calibration, calibrate
from .forecasting.forecast import Forecast
from .forecasting.posterior import posterior_of
from .forecasting.predicting import forecast, smooth
from .forecasting.sequential import check_of
from .forecasting.state import State, feature_labels
from .inference.config import AUTO, Config, Factors, Gaps, Intervals, likelihood_of
from .inference.fitting import Fitted, fit_factors
from .inference.laplace import Posterior
from .inference.terms import choose_terms
from .likelihoods.base import Likelihood
from .messages.arguments import check_count
from .messages.warning import warn
from .persistence.models import read_model, save_model
from .reading import read_table
from .sampling.draws import PosteriorDraws, cycles_of
from .sampling.traces import required_draws
from .solvers.monitor import Callback
from .solvers.options import OPTIONS, Checkpoint, Gibbs, nested
from .timeline.clock import Clock

_GIBBS = "temporalnmf.solvers.options:Gibbs"

Init = TypeVar("Init", bound=Callable[..., None])


def _takes_old_keywords(init: Init) -> Init:
    """Let `__init__` take deprecated keyword arguments, which are not in its signature."""

    @wraps(init)
    def with_old_keywords(self: TemporalNMF, *given: object, **named: object) -> None:
        old = {name: named.pop(name) for name in OPTIONS if name in named}
        init(self, *given, **named)
        self.set_params(**old)

    return cast(Init, with_old_keywords)


def _warn_deprecated(names: list[str]) -> None:
    for argument, new in (("solver", "Gibbs({}=…)"), ("checkpoint", "Checkpoint(path, every=…)")):
        if moved := [name for name in names if OPTIONS[name] == argument]:
            warn(
                f"{', '.join(f'{name}=' for name in moved)} of TemporalNMF will be removed in the "
                f"next version. Use {argument}={new.format('=…, '.join(moved))}, from "
                f"temporalnmf.solvers.",
                FutureWarning,
            )


class TemporalNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Non-negative matrix factorization with components that change smoothly over time.

    Factorizes X (n_times, n_features) into activations (n_times, n_components) times components
    (n_components, n_features), with a Gamma-type Markov chain as prior on the activations. Rows
    of X are time steps in order. NaN is missing; every component sums to one, so an activation
    is the amount a component contributes to the total of its step.

    Parameters
    ----------
    n_components : int, default=5
    chain : str or Chain, default="rate"
        Prior on how activations change: "none" (plain NMF), "gap", "rate", "hier_rate", "shape",
        "hier_shape", "bgar", "arg", or an object from `temporalnmf.chains` with its
        hyper-parameters.
    likelihood : str or Likelihood, default="auto"
        "auto": whole numbers that vary more than Poisson counts get "negative_binomial", all other
        data "poisson" (so do data that are not in memory); see `likelihood_`.
        "poisson" for counts (Kullback–Leibler), "negative_binomial" for counts that clump, with a
        variance that is a learned multiple of the mean, "negative_binomial_2" for counts with a
        learned relative spread (dense data), "exponential" for positive values such as power
        spectra (Itakura–Saito), "gamma" for positive values with a learned relative error,
        "tweedie" for amounts with exact zeros (dense data), "gaussian" for values with a constant
        absolute error (Frobenius, dense data), or an object from `temporalnmf.likelihoods`.
    map_scale : {"log", "linear"}, default="log"
        Scale on which the posterior mode is taken. "log" is well-posed for every
        hyper-parameter; "linear" is the paper's.
    solver : {"accelerated", "mm", "gibbs"} or Gibbs, default="accelerated"
        "accelerated" starts with majorize–minimize and continues with a quasi-Newton method;
        "mm" uses the paper's majorize–minimize only, which is much slower and less exact at the
        same `tol`. Both have the same fixed points. "gibbs" draws from the whole posterior, for
        counts ("poisson" or "negative_binomial"): forecasts then integrate over components,
        activations and learned parameters, and results are posterior means;
        `temporalnmf.solvers.Gibbs` has its options.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop when the objective's relative decrease per iteration falls below it.
    n_init : int, default=1
        Number of random starts; the best is kept, and the others show how stable its components
        are, see `stability_`.
    init : {"random", "nndsvda"} or (components, activations), default="random"
    smoothing : float or "learn", default=0.1
        Pseudo-count on every entry of the components, so that unseen features keep a small
        weight. With solver="gibbs", the parameter of a Dirichlet prior; "learn" draws it. Modes
        of counts ("poisson" or "negative_binomial") learn it by marginal likelihood.
    season : {"auto", "day", "week", "year"}, int, Season, list of these, or None, default="auto"
        A pattern that repeats, with a factor for each component and position in the cycle, see
        `temporalnmf.effects.Season`. By the calendar, if steps have dates; an int is a number of
        steps. "auto" tries the seasons of which the series has two cycles or more, and takes those
        with which held-out steps are predicted better; `season_reason_` says why. It takes up to
        two more short fits per season. Data that are not in memory are not searched.
    trend : {"auto"}, float, Trend or None, default=None
        Growth of each component at the end of the series, which continues and fades out, see
        `temporalnmf.effects.Trend`; a number is its damping per step. "auto" takes it if it makes
        forecasts from past steps better; `trend_reason_` says so.
    holidays : str, Holidays, dict, list of these, or None, default=None
        Public holidays of a country such as "US" or "DE-BY" (extra "holidays"), or events as a
        dict of names and their dates, future ones included.
    point : {"mean", "mode"}, default="mean"
        Value of missing trailing steps and of forecasts. "mode" keeps trailing missing steps in
        the fit, as the paper does.
    gaps : {"interpolate", "mode"}, default="interpolate"
        Activations of missing steps between observed ones. "interpolate": from the observed steps
        on both sides, shares of components linearly and totals on the log scale (towards the
        mean, if the chain has one). "mode": the posterior mode, as in the paper, which may be far
        below both sides if components replace each other there.
    intervals : {"checked", "model"}, default="checked"
        "checked": at the first forecast, forecasts of past steps at the fitted components are
        compared with the data, and intervals are widened where they were too narrow. For counts
        in memory; draws, and series too short to compare, keep the intervals of the model.
        "model": intervals assume the model is correct.
    checkpoint : path, Checkpoint or None, default=None
        A file for the state of the fit, written every 30 seconds and at Ctrl-C; or a
        `temporalnmf.solvers.Checkpoint(path, every=30)`. An interrupted fit resumes from it if
        it has the same parameters and data, and ends with the same bits, even with
        random_state=None; a RandomState must be in its original state. The file is removed at the
        end. For data that are not in memory, and solvers other than "gibbs", it is a folder.
    warm_start : bool, default=False
        Start `fit` from the last solution.
    callback : callable or None, default=None
        Called with a `temporalnmf.solvers.Progress` at each evaluation of the objective, see
        `history_iterations_`; returning true stops the fit. If the data are not in memory,
        `progress.components.array()` gathers the components.
    n_jobs : int or None, default=None
        Threads for the passes over the data; None is 1 (or the value of `joblib.parallel_config`),
        −1 all cores. The result has the same bits for any number.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        Print the first evaluation of the objective from every `verbose`-th iteration on.

    Attributes
    ----------
    components_ : array, (n_components, n_features)
        Rows sum to one. The component with the largest total activation comes first, unless
        starting values or hyper-parameters were given per component.
    activations_ : array, (n_times, n_components)
        Missing steps are filled.
    levels_ : array, (n_times, n_components)
        The activations without seasons, which the chain describes: `activations_` are these times
        the factors of the seasons; of draws, means of the products. Without seasons, both are the
        same.
    season_ : dict of arrays, (n_components, positions)
        The factors of each season, by its name and from the start of its cycle: of a week, from
        Monday; of draws, the means of the factors. Empty without seasons.
    season_reason_, trend_reason_ : str
        Why the model has these seasons, and this trend, or none.
    effects_ : dict of arrays, (n_components, 3)
        The factors of covariates (per unit), holidays and events by name, with the ends of their
        90 % intervals. Empty without them.
    trend_ : array, (n_components, 3), or None
        The factor by which each component grows per step at the end of the series, with the ends
        of its 90 % interval.
    chain_ : Chain
        The chain with the hyper-parameters that were used.
    learned_ : dict of arrays, (n_components, 3)
        For each hyper-parameter of the chain that is set to "learn", by its name: the value of
        each component, and the ends of its 90 % interval. Empty if there are none, and with
        solver="gibbs", which has draws of them in `posterior_`.
    likelihood_ : Likelihood
        The likelihood with the parameters that were used; of draws, with posterior means.
    history_ : array
        Objective of the best start, after the iterations listed in `history_iterations_`, before
        the smoothing and hyper-parameters of the chain are learned. If likelihood="auto" chose
        "negative_binomial", that of the second fit, which continues from the best start.
    history_iterations_ : array
        It is evaluated in the first two iterations, then once in up to ten.
    stop_reason_ : str
    converged_ : bool
    n_iter_ : int
    objective_ : float
        The objective at the result, up to a constant that depends on the unit of X. It differs
        slightly from the end of `history_`, since the activations are solved once more at the
        final components, as in `transform`.
    reconstruction_err_ : float
        Divergence (Kullback–Leibler, Itakura–Saito, or that of the likelihood) of the observed
        entries from the fit, the product of `activations_` and `components_`; of draws, from the
        product of means. For "gaussian" half the squared error, divided by the variance.
    stability_ : array, (n_components,), or None
        Similarity of each component to its match in the other starts, from 0 to 1 (cosine,
        averaged over starts). From 0.9 on it is found again, below 0.7 it is not; see
        `temporalnmf.summary.stability_words`. None with n_init=1.
    times_ : array, (n_times,)
        Labels of the steps, from the index of X; 0, 1, … if it has none.
    timeline_ : Timeline
        The grid of the steps. Periods that are absent from the index are separate steps here and
        in `activations_`.
    observed_ : array of bool, (n_times,)
        Steps with any observed entry.
    exposure_ : array, (n_times,)
    calibration_ : Calibration or None
        The result of `calibrate`, or of the check that the first forecast makes.
    posterior_ : PosteriorDraws or None
        With solver="gibbs", the draws, and in `posterior_.diagnosis` whether they are settled;
        `components_` and `activations_` are their means.
    smoothing_ : float
        The smoothing that was used; of draws that learned it, the posterior mean.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from temporalnmf import TemporalNMF
    >>> rng = np.random.default_rng(0)
    >>> level = np.linspace(1, 9, 30)
    >>> X = rng.poisson(np.outer(level, [4, 1, 0]) + np.outer(10 - level, [0, 1, 5])).astype(float)
    >>> X[12] = np.nan
    >>> model = TemporalNMF(2, random_state=0).fit(X)
    >>> model.components_.shape, model.activations_.shape
    ((2, 3), (30, 2))
    >>> model.forecast(3).values.shape
    (3, 3)
    """

    likelihood_: Likelihood
    calibration_: Calibration | None
    stability_: Array | None
    posterior_: PosteriorDraws | None
    # Column labels that scikit-learn does not accept as names, such as numbers.
    _columns: list[Any] | None = None
    # The data of the fit, not copied if possible, their checksum, the steps that were fitted, and
    # the posterior of their activations once it has been computed.
    _series: Series | None
    _fingerprint: int
    _kept: Array
    _posterior: Posterior | None
    # Whether the exposure is the days in each step.
    _days: bool = False
    # The effects at the steps of the fit, and why it has them.
    _effects: Effects | None = None
    _reasons: Mapping[str, Reason]
    # Parameters of the fit that were lowered when the model was loaded.
    _capped: Mapping[str, int] = MappingProxyType({})

    @_takes_old_keywords
    def __init__(
        self,
        n_components: int = 5,
        *,
        chain: str | Chain = "rate",
        likelihood: str | Likelihood = "auto",
        map_scale: Scale = "log",
        solver: str | Gibbs = "accelerated",
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_init: int = 1,
        init: str | tuple[Any, Any] = "random",
        smoothing: float | str = 0.1,
        season: SeasonsLike = "auto",
        trend: TrendLike = None,
        holidays: Any = None,
        point: Point = "mean",
        gaps: Gaps = "interpolate",
        intervals: Intervals = "checked",
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.chain = chain
        self.likelihood = likelihood
        self.map_scale = map_scale
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.smoothing = smoothing
        self.season = season
        self.trend = trend
        self.holidays = holidays
        self.point = point
        self.gaps = gaps
        self.intervals = intervals
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        exposure: Any = None,
        covariates: Any = None,
    ) -> Self:
        """Learn components and activations.

        Parameters
        ----------
        X : array, pandas or polars frame, xarray array, sparse matrix, TimeTable, or a path
            (n_times, n_features), non-negative, rows in time order; a path is read with
            `temporalnmf.reading.read_table`. NaN is missing in dense data;
            in sparse data an absent entry is a zero. Rows with dates or numbers as labels are
            sorted and put on their regular grid; absent periods become missing steps.

            Data larger than memory: a `dask.array`, a `temporalnmf.shards.Shards`, or the path of
            a folder of shards. With a Dask client (the last that was made) blocks of features go
            to its workers; without one they stay in this process, and shards that take more than
            half of the memory are read from disk for every pass.
        y : ignored
        mask : array, (n_times,) or (n_times, n_features), default=None
            1 or True: observed, 0 or False: missing, other positive numbers: weights.
        exposure : array, (n_times,), or "days", default=None
            Size behind each step (documents, days): X is then modelled as exposure times rate.
            "days" is the number of days in each step, if steps have dates: months, for instance,
            differ in length. Activations are rates per day then, and forecasts continue with the
            days of the future steps.
        covariates : array, frame or series, (n_times,) or (n_times, n_covariates), default=None
            Known influences, without gaps: each component has a factor exp(b x) for each of them,
            see `effects_`. With times as its index, rows are found by their time, and may include
            other times, such as those of the future. Forecasts need them, too.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            config = self._config().check()
            self._columns = None
            with self._checked(X, mask, exposure, reset=True) as series:
                assert series.timeline is not None
                known = covariates_at(covariates, Wanted.of(series.timeline))
                choice = choose_terms(config, series, known)
                series = series.designed(choice.design)
                self._take(fit_factors(config, series), series)
                self._give_reasons(choice.season, choice.trend)
        return self

    def _give_reasons(self, season: Reason, trend: Reason) -> None:
        """Keep why the model has its seasons, and its trend."""
        self._reasons = {"season": season, "trend": trend}
        self.season_reason_, self.trend_reason_ = str(season), str(trend)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        exposure: Any = None,
        covariates: Any = None,
    ) -> Array:
        """Fit, and return the activations (n_times, n_components)."""
        self.fit(X, mask=mask, exposure=exposure, covariates=covariates)
        return self.activations_[self.timeline_.rows]

    def transform(
        self,
        X: Any,
        *,
        mask: Any = None,
        exposure: Any = None,
        covariates: Any = None,
        continue_chain: bool = False,
    ) -> Array:
        """Activations of new steps for the fitted components, under the fitted chain.

        Parameters
        ----------
        X, mask, exposure, covariates
            As in `fit`.
        continue_chain : bool, default=False
            True: the first row of X follows the last fitted step, whose activations stay as they
            are; `append` infers these again, too. False: X is a new series.

        Returns
        -------
        array, (n_times, n_components)
        """
        check_is_fitted(self)
        self._check_exposure_given(X, exposure)
        with self._checked(X, mask, exposure, reset=False) as series:
            series = self._designed(series, covariates, continue_chain)
            posterior = posterior_of(self._state(series))
            return posterior.activations(series, continue_chain=continue_chain)[series.rows]

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn; `chain__alpha=…` also for a chain given by name."""
        if old := [name for name in params if name in OPTIONS]:
            _warn_deprecated(old)
            present = {name: getattr(self, name) for name in ("solver", "checkpoint")}
            params = nested({**present, **params})
        for argument, table in (("chain", registry.CHAINS), ("solver", {Gibbs.name: _GIBBS})):
            found = params.get(argument, getattr(self, argument))
            inside = any(name.startswith(f"{argument}__") for name in params)
            if inside and isinstance(found, str):
                params[argument] = registry.create(table, found, argument)
        return super().set_params(**params)

    def inverse_transform(self, X: Any) -> Array:
        """Rates (n_times, n_features) of activations (n_times, n_components), per exposure."""
        check_is_fitted(self)
        activations = np.asarray(X, dtype=float)
        if activations.ndim != 2 or activations.shape[1] != len(self.components_):
            raise ValueError(
                f"X has shape {activations.shape}: expected activations with "
                f"{len(self.components_)} columns, one per component."
            )
        return activations @ self.components_

    def impute(
        self, X: Any, *, mask: Any = None, exposure: Any = None, covariates: Any = None
    ) -> Any:
        """X with its missing entries replaced by what the model expects there.

        Activations are inferred from the observed entries at fixed components; what was observed
        is returned unchanged, in a container of the same type. A pandas frame or a table is
        returned with a row for every step, including absent periods.
        """
        check_is_fitted(self)
        if isinstance(X, str | PathLike) and not is_split(X):
            X = read_table(X)
        series = self._designed(self._series_of(X, mask, exposure), covariates)
        return filled(X, series, posterior_of(self._state(series)).expected_rows(series))

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        held_out: Any = None,
        exposure: Any = None,
        covariates: Any = None,
        continue_chain: bool = False,
    ) -> float:
        """Mean log-likelihood per entry, at fixed components.

        Parameters
        ----------
        X, mask, exposure, covariates
            As in `fit`.
        held_out : array, (n_times,) or (n_times, n_features), default=None
            True for the entries to score: activations are inferred from all the others. Without
            it every observed entry is used for both.
        continue_chain : bool, default=False
            True: the first row of X follows the last fitted step. With everything held out this
            scores the forecast.
        """
        check_is_fitted(self)
        series = self._designed(self._series_of(X, mask, exposure), covariates, continue_chain)
        known, scored = series, series
        if held_out is not None:
            known, scored = series.split(check_held_out(held_out, series))
        self.likelihood_.check_law("score")
        if not series.observed.any():
            raise ValueError("X has no observed entry: give at least one to score.")
        if not scored.observed.any():
            raise ValueError("held_out leaves nothing to score: no observed entry of X is in it.")
        if not known.observed.any() and not continue_chain:
            raise ValueError(
                "held_out leaves no observed entry to infer activations from. Hold out less, or "
                "score a forecast with continue_chain=True."
            )
        state = self._state(series)
        posterior, likelihood = posterior_of(state), state.likelihood
        expected = posterior.expected_rows(known, continue_chain=continue_chain)
        total, weight_sum = 0.0, 0.0
        for n in map(int, np.flatnonzero(scored.observed)):
            x, weight = scored.row(n)
            seen = weight > 0.0
            total += float(weight[seen] @ likelihood.log_density(x[seen], expected(n)[seen]))
            weight_sum += float(weight.sum())
        return total / weight_sum

    def forecast(
        self,
        steps: int,
        *,
        coverage: Any = (0.5, 0.9),
        exposure: Any = None,
        covariates: Any = None,
        point: Point | None = None,
        n_samples: int | None = None,
        random_state: int = 0,
    ) -> Forecast:
        """The steps after the last one, with intervals.

        Simulated from the chain and the likelihood, starting from the posterior of the last state.
        The components are taken as known. Intervals contain the stated share of the simulated
        futures. Real data usually vary more than a model: unless `intervals="model"`, the first
        forecast is preceded by a comparison of past forecasts with the data, whose errors are
        included, see `calibration_`. `calibrate` makes it more thorough.

        Parameters
        ----------
        steps : int
        coverage : float or sequence, default=(0.5, 0.9)
            Shares of the simulated futures that intervals hold.
        exposure : float or array, (steps,), or "days", default=None
            Exposure of the future steps; that of the last step if not given, or their days if the
            model was fitted with these.
        covariates : array, frame or series, (steps,) or (steps, n_covariates), default=None
            Covariates of the future steps, if the model was fitted with covariates.
        point : {"mean", "mode"}, default=None
            Overrides the parameter of the same name.
        n_samples : int, default=None
            Simulated futures; 1000, or more if the ends of the widest interval need them.
        random_state : int, default=0
            The same number gives the same futures.

        Returns
        -------
        Forecast
        """
        check_is_fitted(self)
        design = self._design_ahead(check_count("steps", steps), covariates)
        return forecast(
            self._checked_state(), steps, coverage, exposure, point, n_samples, random_state, design
        )

    def smooth(
        self,
        X: Any = None,
        *,
        mask: Any = None,
        exposure: Any = None,
        covariates: Any = None,
        coverage: Any = (0.5, 0.9),
        n_samples: int | None = None,
        random_state: int = 0,
    ) -> Forecast:
        """Every step as the model sees it, observed or missing, with intervals.

        Parameters
        ----------
        X, mask, exposure, covariates : default=None
            As in `fit`: a new series. Without X, the fitted series.
        coverage, n_samples, random_state
            As in `forecast`. Fewer samples are drawn if memory would run out.

        Returns
        -------
        Forecast
            Intervals of an observed step are for what a second observation of it would be, if
            the model is correct.
        """
        check_is_fitted(self)
        if X is None and any(given is not None for given in (mask, exposure, covariates)):
            raise ValueError(
                "mask=, exposure= and covariates= apply to a new X only: give X as well."
            )
        series = None
        if X is not None:
            series = self._designed(self._series_of(X, mask, exposure), covariates)
        return smooth(self._checked_state(series), series, coverage, n_samples, random_state)

    def calibrate(
        self,
        n_origins: int | None = None,
        *,
        steps: int = 1,
        coverage: float = 0.9,
        refit: bool = True,
        progress: Any = None,
    ) -> Self:
        """Compare past forecasts with the data, and widen intervals that were too narrow.

        Makes forecasts from each of the last `n_origins` steps, with components and activations
        fitted to earlier steps only (see `refit`), and compares the intervals of totals,
        activations and entries with the data. Variation beyond the model is then included in all
        intervals: errors of the level of a step, of each component, and of entries.
        `print(model.calibration_)` reports which intervals hold; a new fit discards the
        calibration.

        Parameters
        ----------
        n_origins : int, default=None
            Number of past forecasts: by default 20, and up to 100 without refits.
        steps : int, default=1
            Horizon of each forecast. If it is greater than 1, the correlation of errors between
            steps is estimated; otherwise errors are assumed to persist, which is the cautious
            choice for sums over steps.
        coverage : float, default=0.9
            Coverage of the intervals that are compared.
        refit : bool, default=True
            Whether to fit components again for each origin. False keeps those of the fit and
            infers activations alone from the steps before each origin, which takes a fraction of
            the time; the components have then seen the steps that are forecast. Not for draws.
        progress : callable, default=None
            Called with the number of finished origins and the number of all origins.
        """
        check_is_fitted(self)
        self.calibration_ = calibrate(self._state(), n_origins, steps, coverage, refit, progress)
        return self

    def append(
        self,
        X: Any,
        *,
        mask: Any = None,
        exposure: Any = None,
        covariates: Any = None,
        update_components: bool = False,
    ) -> Self:
        """Add new steps after the last.

        Appending steps one by one or all at once gives the same result: up to rounding for a
        posterior mode, and in distribution for draws.

        Parameters
        ----------
        X, mask, exposure, covariates
            The steps after the last, as in `fit`. If X has labels, times between the last step
            and the first new one become missing steps.
        update_components : bool, default=False
            False: components and the chain stay as they are, and the activations of all steps,
            old and new, are inferred again from the whole series, as `transform` does. With
            solver="gibbs" they are redrawn for every draw of components and hyper-parameters,
            five sweeps each. `reconstruction_err_` becomes that of the whole series;
            `calibration_`, `stability_` and attributes of the fit (`objective_`, `history_`,
            `n_iter_`, `stop_reason_`, `converged_`) do not change. True: everything is fitted
            again, starting from the current components, which keep their order.

        Returns
        -------
        self

        Notes
        -----
        Needs the data of the fit: a model of data that are not in memory (Dask, shards), or
        loaded from a file without data, raises an error. After an error the model is unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from temporalnmf import TemporalNMF
        >>> X = np.random.default_rng(0).poisson(5.0, size=(20, 4))
        >>> model = TemporalNMF(1, random_state=0).fit(X[:15]).append(X[15:16]).append(X[16:])
        >>> np.array_equal(model.activations_, model.transform(X))
        True
        """
        check_is_fitted(self)
        state = self._state()
        whole = whole_series(state, self._series_of(X, mask, exposure))
        whole = self._designed_on(whole, covariates, ending=update_components)
        state = self._state(whole)
        with self._all_or_nothing():
            if update_components:
                stability = self.stability_
                self._take(fit_again(state, whole), whole)
                if self.posterior_ is None:  # one start says nothing about it; runs of draws do
                    self.stability_ = stability
                return self
            found = infer_again(state, whole)
            self.levels_, self.posterior_ = found.levels, found.draws
            if self._effects is not None and whole.design is not None:
                self._effects = self._effects.at(whole.design)
            self.activations_ = found.activations
            self.likelihood_ = state.likelihood
            self.reconstruction_err_ = found.divergence
            self._remember(whole, found.kept)
            found_before = state.calibration
            if found_before is not None and (found_before.refitted or self.intervals == "model"):
                # It is of the components, which stay; the default check is made again.
                self.calibration_ = found_before
        return self

    def save(self, path: str | PathLike[str], *, overwrite: bool = False, data: bool = True) -> Any:
        """Write the fitted model to one file, without pickle; `temporalnmf.load` reads it.

        Parameters
        ----------
        path : path
            Usually with the suffix .npz.
        overwrite : bool, default=False
            Whether a file of this name may be replaced.
        data : bool, default=True
            Keep the data in the file too. Without them a model that was read can forecast, but
            not be appended to or calibrated.

        Returns
        -------
        pathlib.Path
        """
        check_is_fitted(self)
        self._checked_state()  # the file may be without the data that it needs
        return save_model(self, path, overwrite=overwrite, data=data)

    def to_arviz(self) -> Any:
        """The draws of a fit with solver="gibbs" as an ArviZ DataTree, for its plots.

        Needs the extra "bayes".

        Returns
        -------
        xarray.DataTree
            In the group "posterior" `components` (chain, draw, component, feature), `activations`
            (chain, draw, time, component), hyper-parameters if any was learned, `smoothing` if it
            was, and with seasons the coefficients `effects` (chain, draw, component, column) and
            `strengths` (chain, draw, term). In "sample_stats" the log posterior `lp` and the shares
            of components with `moved` coefficients, in "observed_data" the data and in
            "constant_data" the exposure. Times are those of the steps that were drawn, up to the
            last observed one, features have their names, components their numbers from 1.

        Examples
        --------
        >>> import numpy as np
        >>> from temporalnmf import TemporalNMF
        >>> from temporalnmf.solvers import Gibbs
        >>> X = np.random.default_rng(0).poisson(5.0, size=(20, 4))
        >>> model = TemporalNMF(1, solver=Gibbs(300, n_tune=100), random_state=0).fit(X)
        >>> dict(model.to_arviz().posterior["activations"].sizes)
        {'chain': 4, 'draw': 300, 'time': 20, 'component': 1}
        """
        from .sampling.arviz import to_datatree

        check_is_fitted(self)
        draws = required_draws(self.posterior_, self.solver, "to_arviz")
        labels = self.feature_labels(), self.times_
        return to_datatree(draws, self._kept, *labels, self.exposure_, self._series)

    def feature_labels(self) -> Array:
        """Names of the features: those of the data, or x0, x1, …"""
        check_is_fitted(self)
        return feature_labels(self._names(), self.components_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _config(self) -> Config:
        """The parameters for a fit, not checked yet, with the last solution for a warm start."""
        previous = None
        if self.warm_start and hasattr(self, "components_"):
            previous = self._factors()
        return Config.of(self.get_params(deep=False), previous)

    def _factors(self) -> Factors:
        return Factors(self.components_, self.levels_, self.chain_, self.likelihood_, self._effects)

    @property
    def _covariate_names(self) -> tuple[str, ...]:
        """The covariates of the fit."""
        effects = self._effects
        known = None if effects is None else effects.design.covariates
        return () if known is None else known.names

    def _designed(self, series: AnySeries, covariates: Any, continue_chain: bool = False) -> Any:
        """A series with the columns of the effects of the model."""
        assert series.timeline is not None
        clock, wanted = series.timeline.clock, Wanted.of(series.timeline)
        if self._effects is not None:
            self._check_spacing(clock)
        if continue_chain and series.timeline.numbered:
            clock = self.timeline_.clock_after(series.n_steps)
            wanted = Wanted.ahead(self.timeline_, series.n_steps)
        known = covariates_at(covariates, wanted, self._covariate_names)
        return series.designed(self._design_at(clock, known, wanted.texts))

    def _check_spacing(self, clock: Clock) -> None:
        """Refuse dated steps of another length than those that the effects were fitted to."""
        fitted = self.timeline_.clock
        if clock.dated and fitted.dated and clock.every != fitted.every:
            raise ValueError(
                f"X has steps of one {clock.every}, and the seasons and other effects of the model "
                f"are those of one {fitted.every}. Give X in steps of the fit."
            )

    def _design_at(self, clock: Clock, known: Covariates | None, texts: list[str]) -> Design | None:
        """The design of the effects at other steps, None without effects."""
        if self._effects is None:
            return None
        design = self._effects.design.at(clock, known)
        self._effects.check_reach(design, texts)
        return design

    def _designed_on(self, whole: Series, covariates: Any, *, ending: bool) -> Series:
        """The fitted series with appended steps, with the columns of the effects.

        `ending`: trends end where it ends.
        """
        assert whole.timeline is not None
        clock, before = whole.timeline.clock, len(self.times_)
        wanted = Wanted.of(whole.timeline, before)
        known = covariates_at(covariates, wanted, self._covariate_names)
        if self._effects is None:
            return whole
        design = self._effects.design
        if known is not None and design.covariates is not None:
            known = design.covariates.followed_by(known)
        design = design.at(clock, known)
        self._effects.check_reach(design.take(np.arange(before, whole.n_steps)), wanted.texts)
        return whole.designed(design.ending(clock, whole.n_steps) if ending else design)

    def _design_ahead(self, steps: int, covariates: Any) -> Design | None:
        """The columns of the effects at the steps after the last."""
        wanted = Wanted.ahead(self.timeline_, steps)
        known = covariates_at(covariates, wanted, self._covariate_names)
        return self._design_at(self.timeline_.clock_after(steps), known, wanted.texts)

    def _names(self) -> Any:
        """Names of the features, or None."""
        return getattr(self, "feature_names_in_", self._columns)

    def _state(self, series: AnySeries | None = None) -> State:
        """The result of the last fit, for forecasts, or to infer the activations of a series.

        As in a fit, "auto" takes a series with fractions, such as one with gaps filled, for
        Poisson counts.
        """
        factors = self._factors()
        if isinstance(series, Series) and self.likelihood_.whole and not series.whole:
            factors = factors._replace(likelihood=likelihood_of(AUTO))
        return State(
            config=self._config(),
            factors=factors,
            timeline=self.timeline_,
            observed=self.observed_,
            exposure=self.exposure_,
            days=self._days,
            kept=self._kept,
            series=self._series,
            fingerprint=self._fingerprint,
            draws=self.posterior_,
            calibration=self.calibration_,
            names=self._names(),
            posterior=self._posterior,
            keep=self._keep,
        )

    def _checked_state(self, series: Series | None = None) -> State:
        """The state, with intervals compared with the past if that is wanted and can be done."""
        if self.calibration_ is None and self.intervals == "checked":
            self.calibration_ = check_of(self._state())
        return self._state(series)

    def _keep(self, posterior: Posterior) -> None:
        """Cache the posterior, which is slow to compute."""
        self._posterior = posterior

    def _series_of(self, X: Any, mask: Any, exposure: Any) -> Series:
        """Checked data with the features of the fit."""
        if is_split(X):
            raise ValueError(
                f"X is {type(X).__name__}, data that are not in memory, which only fit and "
                f"transform accept. Give the steps you need as an array."
            )
        self._check_exposure_given(X, exposure)
        return self._check_series(X, mask, exposure, reset=False)

    def _check_exposure_given(self, X: Any, exposure: Any) -> None:
        given = exposure is not None or getattr(X, "exposure", None) is not None
        if not given and not Exposure(self.exposure_).trivial:
            wanted = "exposure='days'" if self._days else "exposure="
            raise ValueError(
                "exposure=None, and the model was fitted with exposure: its activations are rates. "
                f"Give {wanted} for these steps, too."
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A block that changes the estimator, or leaves it as it was if it fails."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _checked(
        self, X: Any, mask: Any, exposure: Any, *, reset: bool
    ) -> AbstractContextManager[Any]:
        """Checked data, in memory or in blocks, which are freed at the end."""
        if not is_split(X):
            return nullcontext(self._check_series(X, mask, exposure, reset=reset))
        data = split_data(X, mask, exposure, self._likelihood(reset))
        names = None if data.names is None else np.array(data.names, dtype=object)
        if reset:
            self._set_features(data.shape[1], names)
        else:
            self._check_features(data.shape[1], names)
        return split_series(data, self._config())

    def _check_series(self, X: Any, mask: Any, exposure: Any, *, reset: bool) -> Series:
        """Check data in memory; store their features if `reset`, or compare them with the fit."""
        like = None if reset else self.timeline_
        series, cells, names = check_series(X, mask, exposure, self._likelihood(reset), like=like)
        if names is None:
            validate_data(self, cells, reset=reset, skip_check_array=True)
            if reset:
                self._columns = list(cells.columns) if hasattr(cells, "columns") else None
        elif reset:
            self._set_features(len(names), names)
        else:
            self._check_features(len(names), names)
        return series

    def _likelihood(self, reset: bool) -> Likelihood:
        """The likelihood for which data are checked: in a fit, or the fitted one.

        "auto" accepts fractions, whatever it chose.
        """
        auto = isinstance(self.likelihood, str) and self.likelihood == AUTO
        return likelihood_of(self.likelihood) if reset or auto else self.likelihood_

    def _check_features(self, n_features: int, names: Array | None) -> None:
        known = getattr(self, "feature_names_in_", None)
        check_features(names, n_features, known, self.n_features_in_)

    def _set_features(self, n_features: int, names: Array | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _take(self, fitted: Fitted, series: Series) -> None:
        """Set the attributes of a fitted estimator."""
        self._capped = {}
        monitor = fitted.monitor
        factors = fitted.factors
        self.components_, self.levels_, self.chain_, self.likelihood_, self._effects = factors
        effects = self._effects
        self.activations_ = fitted.activations(self.levels_)
        self.season_ = cycles_of(effects, fitted.draws)
        self.effects_ = {} if effects is None else effects.influences()
        self.trend_ = None if effects is None else effects.trend()
        self.history_ = np.array(monitor.history)
        self.history_iterations_ = np.array(monitor.iterations)
        self.stop_reason_ = monitor.reason
        self.converged_ = monitor.converged
        self.n_iter_ = monitor.iteration
        self.objective_ = fitted.objective
        self.reconstruction_err_ = fitted.divergence
        self.stability_ = fitted.stability
        self.posterior_ = fitted.draws
        self.learned_ = fitted.learned
        self.smoothing_ = fitted.smoothing
        self._remember(series, fitted.kept)
        self._posterior = fitted.posterior

    def _remember(self, series: Series, kept: Array) -> None:
        """Keep what forecasts need of the data."""
        assert series.timeline is not None
        self.timeline_ = series.timeline
        self.times_ = series.timeline.times
        self.observed_ = series.observed
        self.exposure_, self._days = series.exposure, series.days
        self.calibration_ = None
        self._series = series if isinstance(series, Series) else None
        self._fingerprint = series.fingerprint()
        self._kept = kept
        self._posterior = None


def load(path: str | PathLike[str]) -> TemporalNMF:
    """Read a fitted model from a file that `TemporalNMF.save` wrote.

    Loading never runs code from the file. A damaged file, a file of another kind, or one from a
    later version of the program raises one clear error.

    The model has the parameters of the file, with two exceptions. `callback`, `warm_start`,
    `checkpoint`, `n_jobs` and `verbose` have their defaults. `max_iter`, `n_init` and the numbers
    of `Gibbs` are at most their defaults, and a warning names those that were lowered;
    `model.set_params(max_iter=5000)` restores one. Fitted attributes are unchanged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from temporalnmf import TemporalNMF, load
    >>> model = TemporalNMF(1).fit(np.outer(np.arange(1, 9), [6, 3, 1]))
    >>> with TemporaryDirectory() as folder:
    ...     again = load(model.save(Path(folder, "model.npz")))
    >>> bool(np.all(again.forecast(2).samples() == model.forecast(2).samples()))
    True
    """
    stored = read_model(path, TemporalNMF().get_params(deep=False))
    model = TemporalNMF().set_params(**stored.parameters)
    for name, value in stored.attributes.items():
        setattr(model, name, value)
    return model
