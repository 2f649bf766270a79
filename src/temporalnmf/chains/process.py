"""A chain as a stochastic process: simulation, moments and long-run behaviour."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Array, Law, Seed
from ..messages.arguments import check_choice, check_count, check_rng, check_steps, check_time
from .outlook import Outlook
from .parameters import Parametric, Scale
from .regime import Paths, Regime, long_run_of_moments

Point = Literal["mean", "mode"]

# Upper bound of simulated paths, small enough that its product with a hyper-parameter does not
# overflow. Paths below the smallest double are 0.
CEILING = 1e300


class Moments(NamedTuple):
    """Mean and variance of one step: polynomials in the previous value, for every chain.

        E[h_n | h_{n−1} = h]   = slope·h + offset
        Var[h_n | h_{n−1} = h] = square·h² + linear·h + constant

    Each is a number, or an array with one per component, and none is negative.
    """

    slope: Array | float
    offset: Array | float = 0.0
    square: Array | float = 0.0
    linear: Array | float = 0.0
    constant: Array | float = 0.0


class Process(Parametric):
    """A Markov chain on the positive numbers.

    Subclasses define `_moments`, draws of a step (`_step`), the long-run behaviour of paths
    (`_paths`) and, if it has a closed form, the `_transition` distribution.

    Components are independent. Without data, "auto" assumes a level of 1. A value h may be a number
    or an array whose last axis runs over the components.

    Attributes
    ----------
    name : str
        Its name in the registry.
    """

    name: ClassVar[str]

    # Whether it is defined at all times, not only at whole steps.
    _any_time: ClassVar[bool] = False

    # Moments

    def _moments(self) -> Moments:
        raise NotImplementedError

    def conditional_mean(self, h: ArrayLike) -> Array:
        """E[h_n | h_{n−1} = h]; infinite if there is no mean."""
        chain = self._concrete()
        m = chain._moments()
        return m.slope * chain._check_values_of("h", h, zero=True) + m.offset

    def conditional_var(self, h: ArrayLike) -> Array:
        """Var[h_n | h_{n−1} = h]; infinite if only the mean exists, NaN if neither does."""
        chain = self._concrete()
        m, h = chain._moments(), chain._check_values_of("h", h, zero=True)
        with np.errstate(all="ignore"):
            return _times(m.square, h**2) + _times(m.linear, h) + m.constant

    def mean(self, h1: ArrayLike | None = None, n: ArrayLike = 1) -> Array:
        """E[h_n], n = 1 being the first step.

        Parameters
        ----------
        h1 : float or array, default=None
            First value; None starts as `sample` does.
        n : int or array of int
            Steps. An array puts its axes in front of those of h1.
        """
        return self._moments_at(h1, n)[0]

    def var(self, h1: ArrayLike | None = None, n: ArrayLike = 1) -> Array:
        """Var[h_n], n = 1 being the first step; infinite or NaN as in `conditional_var`.

        Parameters are those of `mean`.
        """
        return self._moments_at(h1, n)[1]

    def _moments_at(self, h1: ArrayLike | None, n: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance at the steps n; computed without subtractions."""
        chain = self._concrete()
        steps = check_steps("n", n)
        slope, offset, square, linear, constant = m = chain._moments()
        law = chain._stationary()
        mean, var = (np.ones(()), np.zeros(())) if law is None else (law.mean(), law.var())
        if h1 is not None:
            mean, var = chain._check_values_of("h1", h1), np.zeros(())
        shape = np.broadcast_shapes(np.shape(mean), *map(np.shape, m))
        mean, var = np.broadcast_to(mean, shape), np.broadcast_to(var, shape)
        means, variances = np.empty((2, int(steps.max()), *shape))
        heavy = np.broadcast_to(np.isinf(square), shape)
        with np.errstate(all="ignore"):
            for i in range(len(means)):
                means[i], variances[i] = mean, var
                # A coefficient of zero times an infinite mean adds nothing.
                added = _times(square, mean**2) + _times(linear, mean) + constant
                var = np.where(heavy, np.inf, (slope**2 + square) * var + added)
                mean = slope * mean + offset
        return means[steps - 1], variances[steps - 1]

    def autocorrelation(
        self, lag: ArrayLike, n: int | None = None, h1: ArrayLike | None = None
    ) -> Array:
        """corr(h_n, h_{n+lag}).

        Parameters
        ----------
        lag : int or array of int
            Zero or more.
        n : int, default=None
            First of the two steps; None is the limit of large n, which for a stationary chain is
            the correlation at any step.
        h1 : float or array, default=None
            As in `mean`; without n it makes no difference.

        Returns
        -------
        array
            NaN if a variance is zero, such as that of a given first value, or infinite.
        """
        lags = check_steps("lag", lag, least=0)
        moments = self._concrete()._moments()
        slope, offset, square, linear, _ = np.broadcast_arrays(*moments)
        with np.errstate(all="ignore"):
            if n is None:
                apart = lags.reshape(lags.shape + (1,) * slope.ndim)
                # In the limit the variance grows by the largest of three factors per step: of its
                # own recursion, of noise driven by the mean, of constant noise.
                fed = np.where(offset > 0.0, 1.0, 0.0)
                growth = np.maximum(np.where(linear > 0.0, slope, 0.0), slope**2 + square)
                found = (slope / np.sqrt(np.maximum(growth, fed))) ** apart
                return np.where(np.isfinite(square), found, np.nan)
            first = check_count("n", n)
            _, var = self._moments_at(h1, np.concatenate([[first], first + np.ravel(lags)]))
            later = var[1:].reshape(lags.shape + var.shape[1:])
            apart = lags.reshape(lags.shape + (1,) * (var.ndim - 1))
            found = slope**apart * np.sqrt(var[0] / later)
            return np.where((var[0] > 0.0) & np.isfinite(later), found, np.nan)

    # Distributions

    def transition(self, h: ArrayLike, steps: float = 1) -> Law | None:
        """The distribution of h_{n+steps} given h_n = h, as a frozen SciPy distribution.

        None if it has no closed form; `log_density` may still have its density.

        Parameters
        ----------
        h : float or array
        steps : int
            `HierShape` and `ARG`, diffusions observed at unit times, take any positive number.
        """
        chain = self._concrete()
        given = chain._check_values_of("h", h)
        if not chain._any_time:
            return chain._transition(given, check_count("steps", steps))
        return chain._transition(given, check_time("steps", steps))

    def _transition(self, h: Array, steps: float) -> Law | None:
        return None

    def log_density(self, h: ArrayLike, before: ArrayLike) -> Array:
        """log p(h_n = h | h_{n−1} = before), −∞ if h is not positive."""
        chain = self._concrete()
        before, h = chain._check_values_of("before", before), np.asarray(h, dtype=float)
        with np.errstate(all="ignore"):
            density = chain._log_density(np.where(np.isposinf(h), -1.0, h), before)
        return np.where(np.isnan(h), np.nan, density)[()]

    def _log_density(self, h: Array, before: Array) -> Array:
        law = self._transition(before, 1)
        assert law is not None
        return law.logpdf(h)

    def stationary(self) -> Law | None:
        """The stationary distribution, as a frozen SciPy distribution, or None."""
        return self._concrete()._stationary()

    def _stationary(self) -> Law | None:
        return None

    def regime(self) -> Regime | list[Regime]:
        """Long-run behaviour of the mean, the variance and almost every path.

        A list with one entry per component if hyper-parameters are arrays.
        """
        chain = self._concrete()
        shape = chain._shape
        numbers = [np.broadcast_to(m, shape).ravel() for m in chain._moments()]
        found = []
        for k in range(numbers[0].size):
            mean, var = long_run_of_moments(*(float(m[k]) for m in numbers[:3]))
            paths, note = chain._component(k)._paths()
            found.append(Regime(mean, var, paths, note))
        return found if shape else found[0]

    def _component(self, k: int) -> Self:
        """The chain of one component."""
        one = copy.copy(self)
        for name, value in self.get_params().items():
            if np.ndim(value):
                setattr(one, name, float(value[k]))
        return one

    def _paths(self) -> tuple[Paths, str]:
        """Behaviour of almost every path, and a remark or ""; for scalar hyper-parameters."""
        raise NotImplementedError

    # Simulation

    def sample(
        self,
        n_paths: int,
        n_steps: int,
        rng: Seed = None,
        h1: ArrayLike | None = None,
        *,
        return_aux: bool = False,
    ) -> Any:
        """Simulate independent paths.

        Values below the smallest double are 0, and values above 1e300 are 1e300. There are no
        warnings, NaN or infinities.

        Parameters
        ----------
        n_paths, n_steps : int
        rng : numpy Generator, int or None, default=None
            Random numbers, or a seed for them.
        h1 : float or array, default=None
            First value: a number; (n_paths,), or (n_paths, K) for K components; (K,) if
            hyper-parameters are given per component. None draws it from the stationary
            distribution; if there is none, it is 1, as in the paper.
        return_aux : bool, default=False
            Also return the auxiliary variables of the n_steps − 1 transitions, if there are any.

        Returns
        -------
        array, (n_paths, n_steps), or (n_paths, n_steps, K) if hyper-parameters or h1 are given
            per component
        aux : array of the same kind, with `return_aux`
        """
        chain = self._concrete()
        n_paths, n_steps = check_count("n_paths", n_paths), check_count("n_steps", n_steps)
        generator = check_rng(rng)
        with np.errstate(all="ignore"):
            first = chain._first_values(n_paths, h1, generator)
            paths, aux = chain._simulate(first, n_steps, generator)
        paths, aux = (np.ascontiguousarray(np.moveaxis(a, 0, 1)) for a in (paths, aux))
        return (paths, aux) if return_aux else paths

    def _first_values(self, n_paths: int, h1: ArrayLike | None, rng: np.random.Generator) -> Array:
        shape = (n_paths, *self._shape)
        if h1 is None:
            law = self._stationary()
            drawn = np.ones(shape) if law is None else law.rvs(size=shape, random_state=rng)
            return np.minimum(drawn, CEILING)
        given = self._check_values_of("h1", h1)
        if given.ndim == 2 and not self._shape:
            shape = (n_paths, given.shape[1])
        try:
            return np.broadcast_to(np.minimum(given, CEILING), shape)
        except ValueError as error:
            raise ValueError(
                f"h1 has shape {given.shape}: expected a number, or {shape} values."
            ) from error

    def _simulate(
        self, first: Array, n_steps: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Paths (n_steps, …) and auxiliary variables (n_steps − 1, …) or (0, …)."""
        paths = np.empty((n_steps, *first.shape))
        paths[0] = first
        aux = []
        for n in range(1, n_steps):
            after, drawn = self._step(paths[n - 1], rng)
            np.minimum(after, CEILING, out=paths[n])
            if drawn is not None:
                aux.append(drawn)
        return paths, np.array(aux) if aux else np.empty((0, *first.shape))

    def _step(self, h: Array, rng: np.random.Generator) -> tuple[Array, Array | None]:
        """A draw of h_n for each h_{n−1}, and its auxiliary variable."""
        raise NotImplementedError

    def forecast(
        self,
        h_last: ArrayLike,
        steps: int,
        *,
        point: Point = "mean",
        scale: Scale = "log",
        n_paths: int = 10_000,
        rng: Seed = 0,
    ) -> Outlook:
        """Forecast the steps after a known value.

        Parameters
        ----------
        h_last : float or array, (K,)
            The last value, or one per component.
        steps : int
        point : {"mean", "mode"}, default="mean"
            The kind of point forecast.
        scale : {"log", "linear"}, default="log"
            The scale of a mode.
        n_paths : int, default=10000
            Simulated paths, for quantiles that have no closed form.
        rng : numpy Generator or int, default=0
            The same seed gives the same numbers.

        Returns
        -------
        Outlook
            Mean, variance, point, quantiles and paths of the steps ahead.
        """
        chain = self._concrete()
        steps = check_count("steps", steps)
        n_paths = check_count("n_paths", n_paths)
        check_choice("point", point, ("mean", "mode"))
        check_choice("scale", scale, ("log", "linear"))
        if point == "mode":
            chain.check("map", scale)
        last = chain._check_values_of("h_last", h_last)
        if last.ndim > 1:
            raise ValueError(
                f"h_last has shape {last.shape}: expected a number, or one per component."
            )
        last = np.broadcast_to(last, np.broadcast_shapes(last.shape, chain._shape))
        ahead = np.arange(2, steps + 2)
        paths = chain.sample(n_paths, steps + 1, rng, np.broadcast_to(last, (n_paths, *last.shape)))
        return Outlook(
            mean=chain.mean(last, ahead),
            var=chain.var(last, ahead),
            point=chain._point(last, steps, point, scale),
            point_name=chain.point_name(point),
            paths=paths[:, 1:],
            laws=[chain._transition(last, s) for s in range(1, steps + 1)],
            regime=chain.regime(),
        )

    def _point(self, last: Array, steps: int, point: Point, scale: Scale) -> Array:
        """Point forecast (steps, …)."""
        return self.mean(last, np.arange(2, steps + 2))

    def point_name(self, point: Point) -> str:
        """Name of the point forecast."""
        return f"conditional {point}"


def _times(coefficient: Array | float, values: Array) -> Array:
    """Product in which zero times infinity is zero."""
    return np.where(np.equal(coefficient, 0.0), 0.0, coefficient * values)
