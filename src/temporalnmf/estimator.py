"""TemporalNMF: the scikit-learn face, and the only place that transposes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import registry
from .chains.base import Chain, Point, Scale
from .compilation import announced
from .forecasting import Forecast
from .gaps import fill_gaps, fitted_steps
from .initialisation import start_activations, start_factors
from .kernels.floor import FLOOR
from .likelihoods.base import Array, Likelihood
from .objective import Problem
from .observations import observe
from .parallel import Workers
from .solvers.mm import FitResult
from .solvers.monitor import Callback, Monitor
from .validation import Series, check_choice, check_count, check_exposure, check_series

# Fewer steps say nothing about movement in time.
_FEWEST_STEPS = 3


class TemporalNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Non-negative matrix factorization whose components move smoothly in time.

    Factorizes X (n_times, n_features) into activations (n_times, n_components) times components
    (n_components, n_features), with a Gamma-type Markov chain as prior on the activations. Rows
    of X are time steps in order. NaN is missing; every component sums to one, so an activation
    is the amount a component contributes to the total of its step.

    Parameters
    ----------
    n_components : int, default=5
    chain : str or Chain, default="rate"
        How activations move: "none" (plain NMF), "gap", "rate", "hier_rate", "shape",
        "hier_shape", "bgar", or an object from `temporalnmf.chains` with its hyper-parameters.
    likelihood : {"poisson", "exponential"}, default="poisson"
        Counts (Kullback–Leibler), or positive values such as power spectra (Itakura–Saito).
    map_scale : {"log", "linear"}, default="log"
        Scale on which the posterior mode is taken. "log" is well-posed for every
        hyper-parameter; "linear" is the paper's.
    solver : {"accelerated", "mm"}, default="accelerated"
        "accelerated" finds a basin by majorize–minimize and its bottom by a quasi-Newton method;
        "mm" is the paper's majorize–minimize all the way, slower by far and with a less exact
        end at the same `tol`. Their fixed points are the same.
    max_iter : int, default=1000
    tol : float, default=1e-5
        Stop when the objective's relative decrease per iteration falls below it.
    n_init : int, default=1
        Number of random starts; the best is kept.
    init : {"random", "nndsvda"} or (components, activations), default="random"
    smoothing : float, default=0.1
        Pseudo-count on every entry of the components: features never seen keep a little mass.
    point : {"mean", "mode"}, default="mean"
        What missing trailing steps and forecasts are. "mode" keeps trailing missing steps in
        the fit, as the paper does.
    warm_start : bool, default=False
        Start `fit` from the last solution.
    callback : callable or None, default=None
        Called with a `temporalnmf.solvers.Progress` at each look at the objective, see
        `history_iterations_`; returning true stops the fit.
    n_jobs : int or None, default=None
        Threads for the passes over the data; None is 1 (or what a `joblib.parallel_config` says),
        −1 all cores. The result is the same to the bit for any number.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        Print the first look at the objective from every `verbose`-th iteration on.

    Attributes
    ----------
    components_ : array, (n_components, n_features)
        Rows sum to one.
    activations_ : array, (n_times, n_components)
        Missing steps are filled.
    chain_ : Chain
        The chain with the hyper-parameters that were used.
    history_ : array
        Objective of the best start, after the iterations listed in `history_iterations_`.
    history_iterations_ : array
        It is looked at in the first two iterations, then once in up to ten.
    stop_reason_ : str
    converged_ : bool
    n_iter_ : int
    objective_ : float
        The objective at the result. Not quite the end of `history_`, since the activations are
        solved once more at the final components, as `transform` does.
    reconstruction_err_ : float
        Divergence (Kullback–Leibler or Itakura–Saito) of the observed entries from the fit.
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

    def __init__(
        self,
        n_components: int = 5,
        *,
        chain: str | Chain = "rate",
        likelihood: str | Likelihood = "poisson",
        map_scale: Scale = "log",
        solver: str = "accelerated",
        max_iter: int = 1000,
        tol: float = 1e-5,
        n_init: int = 1,
        init: str | tuple[Any, Any] = "random",
        smoothing: float = 0.1,
        point: Point = "mean",
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
        self.point = point
        self.warm_start = warm_start
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, mask: Any = None, exposure: Any = None) -> Self:
        """Learn components and activations.

        Parameters
        ----------
        X : array, pandas or polars frame, or sparse matrix, (n_times, n_features)
            Non-negative, rows in time order. NaN is missing in dense data; in sparse data an
            absent entry is a zero.
        y : ignored
        mask : array, (n_times,) or (n_times, n_features), default=None
            1 or True: observed, 0 or False: missing, other positive numbers: weights.
        exposure : array, (n_times,), default=None
            Size behind each step (documents, days): X is then modelled as exposure times rate.

        Returns
        -------
        self
        """
        self._fit(X, mask, exposure)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, mask: Any = None, exposure: Any = None
    ) -> Array:
        """Fit, and return the activations (n_times, n_components)."""
        self._fit(X, mask, exposure)
        return self.activations_.copy()

    def transform(
        self, X: Any, *, mask: Any = None, exposure: Any = None, continue_chain: bool = False
    ) -> Array:
        """Activations of new steps for the fitted components, under the fitted chain.

        Parameters
        ----------
        X, mask, exposure
            As in `fit`.
        continue_chain : bool, default=False
            True: the first row of X follows the last fitted step. False: X is a series of its
            own.

        Returns
        -------
        array, (n_times, n_components)
        """
        check_is_fitted(self)
        series = check_series(self, X, mask, exposure, self._likelihood(), reset=False)
        return self._infer(series, continue_chain=continue_chain).T

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn; `chain__alpha=…` also for a chain given by name."""
        nested = any(name.startswith("chain__") for name in params)
        chain = params.get("chain", self.chain)
        if nested and isinstance(chain, str):
            params["chain"] = registry.create(registry.CHAINS, chain, "chain")
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

    def impute(self, X: Any, *, mask: Any = None, exposure: Any = None) -> Any:
        """X with its missing entries replaced by what the model expects there.

        Activations are inferred from the observed entries at fixed components; what was observed
        is returned unchanged, in the container it came in.
        """
        check_is_fitted(self)
        series = check_series(self, X, mask, exposure, self._likelihood(), reset=False)
        H = self._infer(series)
        rows = []
        for n in range(series.n_steps):
            x, weight = series.row(n)
            expected = series.exposure[n] * (H[:, n] @ self.components_)
            filled = np.where(weight > 0.0, x, expected)
            rows.append(sparse.csr_array(filled[None]) if sparse.issparse(X) else filled)
        if sparse.issparse(X):
            return type(X)(sparse.vstack(rows).asformat(X.format))
        values = np.array(rows)
        if hasattr(X, "iloc"):
            return type(X)(values, index=X.index, columns=X.columns)
        if hasattr(X, "columns"):
            return type(X)(values, schema=list(X.columns))
        return values

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        held_out: Any = None,
        exposure: Any = None,
        continue_chain: bool = False,
    ) -> float:
        """Mean log-likelihood per entry, at fixed components.

        Parameters
        ----------
        X, mask, exposure
            As in `fit`.
        held_out : array, (n_times,) or (n_times, n_features), default=None
            True for the entries to score: activations are inferred from all the others. Without
            it every observed entry is used for both.
        continue_chain : bool, default=False
            True: the first row of X follows the last fitted step. With everything held out this
            scores the forecast.
        """
        check_is_fitted(self)
        likelihood = self._likelihood()
        series = check_series(self, X, mask, exposure, likelihood, reset=False)
        known, scored = series, series
        if held_out is not None:
            known, scored = series.split(held_out)
        if not series.observed.any():
            raise ValueError("X has no observed entry: give at least one to score.")
        if not scored.observed.any():
            raise ValueError("held_out leaves nothing to score: no observed entry of X is in it.")
        if not known.observed.any() and not continue_chain:
            raise ValueError(
                "held_out leaves no observed entry to infer activations from. Hold out less, or "
                "score a forecast with continue_chain=True."
            )
        H = self._infer(known, continue_chain=continue_chain)
        total, weight_sum = 0.0, 0.0
        for n in map(int, np.flatnonzero(scored.observed)):
            x, weight = scored.row(n)
            seen = weight > 0.0
            rate = scored.exposure[n] * (H[:, n] @ self.components_[:, seen])
            total += float(weight[seen] @ likelihood.log_density(x[seen], rate))
            weight_sum += float(weight.sum())
        return total / weight_sum

    def forecast(self, steps: int, *, exposure: Any = None, point: Point | None = None) -> Forecast:
        """Point forecast of the steps after the last fitted one.

        Parameters
        ----------
        steps : int
        exposure : float or array, (steps,), default=None
            Exposure of the future steps; 1 if not given.
        point : {"mean", "mode"}, default=None
            Overrides the parameter of the same name.

        Returns
        -------
        Forecast
        """
        check_is_fitted(self)
        steps = check_count("steps", steps)
        point = self.point if point is None else point
        check_choice("point", point, ("mean", "mode"))
        H = self.chain_.point_forecast(self.activations_[-1], steps, point, self.map_scale)
        if np.ndim(exposure) == 0 and exposure is not None:
            exposure = np.full(steps, exposure)
        size = check_exposure(exposure, steps)
        return Forecast(
            values=size[:, None] * (H.T @ self.components_),
            activations=np.ascontiguousarray(H.T),
            point=self.chain_.point_name(point),
            feature_names=getattr(self, "feature_names_in_", None),
        )

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

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, Likelihood):
            return self.likelihood
        return registry.create(registry.LIKELIHOODS, self.likelihood, "likelihood")

    def _check_parameters(self) -> None:
        check_choice("map_scale", self.map_scale, ("log", "linear"))
        check_choice("point", self.point, ("mean", "mode"))
        for name, kind, least in (
            ("n_components", Integral, 1), ("n_init", Integral, 1), ("max_iter", Integral, 1),
            ("tol", Real, 0), ("smoothing", Real, 0),
        ):  # fmt: skip
            value = getattr(self, name)
            number = isinstance(value, kind) and not isinstance(value, bool)
            if not number or not least <= float(value) < np.inf:
                what = "whole number" if kind is Integral else "number"
                raise ValueError(f"{name}={value!r}: expected a {what} of at least {least}.")
        jobs = self.n_jobs
        whole = isinstance(jobs, Integral) and not isinstance(jobs, bool)
        if jobs is not None and not (whole and jobs):
            raise ValueError(
                f"n_jobs={jobs!r}: expected a number of threads, -1 for all cores, or None."
            )

    def _fit(self, X: Any, mask: Any, exposure: Any) -> None:
        """Fit, or leave the estimator as it was."""
        before = self.__dict__.copy()
        try:
            self._fit_whole(X, mask, exposure)
        except BaseException:
            self.__dict__ = before
            raise

    def _fit_whole(self, X: Any, mask: Any, exposure: Any) -> None:
        self._check_parameters()
        likelihood = self._likelihood()
        series = check_series(self, X, mask, exposure, likelihood, reset=True)
        self._check_size(series)
        chain = self.chain
        if not isinstance(chain, Chain):
            chain = registry.create(registry.CHAINS, chain, "chain")
        kept = fitted_steps(series.observed, chain, self.point)
        used = series.take(kept)
        with self._machinery() as workers:
            observations = observe(used.X, used.weights, used.exposure, likelihood, workers)
            if not observations.counted.any():
                raise ValueError(
                    "X is zero wherever it is observed: there is nothing to factorize. Give at "
                    "least one positive value."
                )
            chain = chain.resolve(observations.level, self.n_components)
            chain.check("map", self.map_scale)
            problem = Problem(observations, chain, self.map_scale, float(self.smoothing))
            best = self._best_start(problem, series, kept)
            # The last word on H is what `transform` does with the same data, to the bit.
            problem = replace(problem, chain=best.chain)
            start = start_activations(used, self.n_components)
            final = self._solve_activations(problem, best.W, start)
            self.objective_ = problem.objective(best.W, final)
            distance = observations.value(best.W, final) - observations.saturated
        self.components_ = np.ascontiguousarray(best.W.T)
        self.chain_ = best.chain
        self.history_ = np.array(best.monitor.history)
        self.history_iterations_ = np.array(best.monitor.iterations)
        self.stop_reason_ = best.monitor.reason
        self.converged_ = best.monitor.converged
        self.n_iter_ = best.monitor.iteration
        self.reconstruction_err_ = max(distance, 0.0)
        self.activations_ = np.ascontiguousarray(self._filled(final, kept, series.n_steps).T)
        self._warn(best.monitor, final)

    @contextmanager
    def _machinery(self) -> Iterator[Workers]:
        """Threads for a solve, and a word if the kernels have to be compiled."""
        with announced(bool(self.verbose)), Workers(self.n_jobs) as workers:
            yield workers

    def _check_size(self, series: Series) -> None:
        n_steps, n_features = series.X.shape
        if n_steps < _FEWEST_STEPS:
            raise ValueError(
                f"X has n_samples={n_steps} time step(s), and a series needs at least "
                f"{_FEWEST_STEPS}. Rows are time steps: is X transposed?"
            )
        if not series.observed.any():
            raise ValueError(
                "X has no observed entry: everything is NaN or hidden by the mask. Check the mask, "
                "in which 1 or True means observed."
            )
        if self.n_components > max(n_steps, n_features):
            warnings.warn(
                f"n_components={self.n_components} is larger than both dimensions of X "
                f"{series.X.shape}: some components will be copies of others.",
                UserWarning,
                stacklevel=5,
            )

    def _best_start(self, problem: Problem, series: Series, kept: Array) -> FitResult:
        """Solve from every start and keep the lowest objective."""
        solver = registry.create(registry.SOLVERS, self.solver, "solver")
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        children = np.random.default_rng(seeds).spawn(self.n_init)
        best: FitResult | None = None
        for i, rng in enumerate(children):
            W, H = start_factors(self, problem, series, kept, rng)
            label = f"start {i + 1}/{self.n_init}  " if self.n_init > 1 else ""
            monitor = Monitor(self.max_iter, self.tol, self.verbose, self.callback, label)
            result = solver.solve(problem, W, H, monitor)
            if best is None or result.monitor.history[-1] < best.monitor.history[-1]:
                best = result
        assert best is not None
        return best

    def _infer(self, series: Series, *, continue_chain: bool = False) -> Array:
        """Activations (K, N) of all steps at fixed components, missing ones filled."""
        chain, W = self.chain_, self.components_.T
        last = self.activations_[-1] if continue_chain and chain.dynamic else None
        if not series.observed.any():
            if not continue_chain:
                raise ValueError(
                    "X has no observed entry: there is nothing to infer from. If its rows follow "
                    "the fitted ones, continue_chain=True forecasts them."
                )
            last = self.activations_[-1]
            return chain.point_forecast(last, series.n_steps, self.point, self.map_scale)
        kept = fitted_steps(series.observed, chain, self.point)
        if last is not None:
            kept = np.arange(kept[-1] + 1)  # the anchor stands before the first step
        used = series.take(kept)
        H = start_activations(used, W.shape[1])
        held = 0
        if last is not None:
            used, H, held = used.anchored(), np.column_stack([last, H]), 1
        with self._machinery() as workers:
            observations = observe(used.X, used.weights, used.exposure, self._likelihood(), workers)
            problem = Problem(observations, chain, self.map_scale)
            H = self._solve_activations(problem, W, H, held=held)
        return self._filled(H[:, held:], kept, series.n_steps)

    def _solve_activations(self, problem: Problem, W: Array, H: Array, *, held: int = 0) -> Array:
        """H (K, N) at fixed W, solved more tightly than a fit since it is cheap."""
        problem = replace(problem, smoothing=0.0)  # a constant here
        monitor = Monitor(self.max_iter, _INFERENCE_TOL * self.tol)
        solver = registry.create(registry.SOLVERS, self.solver, "solver")
        return solver.solve(problem, W, H, monitor, fixed_W=True, held=held).H

    def _filled(self, H: Array, kept: Array, n_steps: int) -> Array:
        return fill_gaps(H, kept, n_steps, self.chain_, self.point, self.map_scale)

    def _warn(self, monitor: Monitor, H: Array) -> None:
        if not monitor.converged and monitor.reason.startswith("max_iter"):
            warnings.warn(
                f"The fit did not converge: {monitor.reason}. Increase max_iter, or accept a "
                f"larger tol (now {self.tol:g}).",
                ConvergenceWarning,
                stacklevel=5,
            )
        if self.map_scale == "linear" and self.chain_.bottomless() and np.any(H <= FLOOR):
            where = np.flatnonzero(np.any(H <= FLOOR, axis=1)).tolist()
            warnings.warn(
                f"Activations of component(s) {where} reached the floor {FLOOR:g}: on the linear "
                f"scale this objective can be lowered without end there, and the result depends "
                f"on the floor. map_scale='log' has no such places.",
                UserWarning,
                stacklevel=5,
            )


# Share of `tol` to which activations are solved at fixed components.
_INFERENCE_TOL = 1e-1
