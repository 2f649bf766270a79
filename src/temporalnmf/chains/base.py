"""A chain as a prior on H: its value, its terms of an update, its point forecast."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numba import njit

from .._typing import Array
from ..likelihoods.base import Majorizer
from .parameters import Parameter, Purpose, Scale, scalar_or_array
from .prior import ActivationPrior, Expansion
from .process import CEILING, Point, Process

Row = tuple[float, ...]
Grid = Sequence[Mapping[str, Parameter]]

__all__ = [
    "Chain", "Expansion", "First", "Grid", "Kernels", "Parameter", "PathLaw", "Point", "Row",
    "Scale", "dominate", "lost_power", "rows_of", "scalar_or_array",
]  # fmt: skip


def lost_power(scale: Scale) -> float:
    """Reduction of the exponent of a Gamma density: h^(α−1) for h, h^α for log h."""
    return 1.0 if scale == "linear" else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def dominate(diagonal: Array, off: Array) -> None:
    """Raise the diagonal of a tridiagonal matrix to make it diagonally dominant."""
    for n in range(diagonal.size):
        beside = 0.0
        if n > 0:
            beside -= off[n - 1]
        if n < off.size:
            beside -= off[n]
        diagonal[n] = max(diagonal[n], beside)


class Kernels(NamedTuple):
    """The compiled code of a chain.

    `rows` (K, P) holds the numbers of the chain, a row per component, and Z (K, N−1) its auxiliary
    variables, (K, 0) where there are none; h, z and row, a tuple, belong to one component.
    """

    terms: Callable[..., tuple[float, float, float]]  # (h, z, n, row): added to (p, q, r) of step n
    value: Callable[..., float]  # (H, Z, rows)
    sweep: Callable[..., None]  # (H, Z, p, q, r, rows, held, rounds): updates H and Z
    expand: Callable[..., float]  # (H, Z, rows, slope, diagonal, off): fills all but H and rows
    # (rng, H, Z, Y, Q, rows, (a, b), held): a round of posterior draws; None where there are none
    draw: Callable[..., None] | None = None
    log_law: Callable[..., None] | None = None  # (H, Z, rows, found): log p(path | parameters)
    auxiliary: Callable[..., None] | None = None  # (H, Z, rows): sets Z to what is optimal for H


class First(NamedTuple):
    """Gamma(shape, shape/level) prior of h_1 in posterior draws, with mean `level`.

    A shape of 1/2 around the level of the data allows anything from 0 to a few times that.
    """

    shape: float = 0.5
    level: float = 1.0


# Least standard deviation of a step relative to its mean: the objective multiplies rounding errors
# of h by its inverse square.
_LEAST_SPREAD = 1e-8
# Largest one: beyond it, squares of derivatives overflow.
_MOST_SPREAD = 1e50
# Beyond such a factor, adding two levels loses the smaller one to rounding.
_FARTHEST = 1e100


class Chain(ActivationPrior, Process):
    """Prior on the rows of H: K independent chains over N steps.

    `Process` describes the chain as a stochastic process. A fit uses the contribution of one
    transition h_{n−1} → h_n to the objective (`value`), and to the majorizer (M) at both of its
    ends (`terms`). Its `Kernels` compute both in compiled code. Some hyper-parameters may be
    "auto" or "learn", which `resolve` replaces by numbers.

    Attributes
    ----------
    own_first : bool
        Whether the chain defines the distribution of h_1. If not, posterior draws use `First`.
    sweeps : int
        Rounds over H per pass over the data.
    grid, draws_grid : sequence of dict
        Hyper-parameters for `select` to try, from loose to tight, for posterior modes and for
        posterior draws. "100/level" is in units of the mean activation.
    """

    own_first: ClassVar[bool] = False
    sweeps: ClassVar[int] = 1
    grid: ClassVar[Grid] = ()
    draws_grid: ClassVar[Grid] = ()
    _kernels: ClassVar[Kernels]

    # Names of the hyper-parameters in units of 1/h.
    _per_unit: ClassVar[tuple[str, ...]] = ()
    # Names of the hyper-parameters that `resolve` was asked to learn.
    _learned: tuple[str, ...] = ()
    # Rates that determine growth, with a tighter prior in posterior draws; for each rate the shape
    # in whose units it is drawn if both are learned; pairs that cannot both be learned.
    _growth: ClassVar[tuple[str, ...]] = ()
    _measured_in: ClassVar[Mapping[str, str]] = MappingProxyType({"beta": "alpha"})
    _exclusive: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # Most turns of an M step over all that is learned; one is enough unless they are entangled.
    _turns: ClassVar[int] = 1

    def _rows(self, n_components: int, scale: Scale) -> Array:
        """The numbers of the chain for compiled code, a row per component."""
        raise NotImplementedError

    def resolve(self, level: float, n_components: int, purpose: Purpose = "map") -> Self:
        """A copy whose hyper-parameters are all numbers.

        Parameters
        ----------
        level : float
            Level of the data: the mean of Σ_k h_kn.
        n_components : int
            K; arrays of hyper-parameters must have this length.
        purpose : {"map", "draw"}, default="map"
            "learn" starts from the default.
        """
        self._check_values(purpose, n_components)
        chain = copy.deepcopy(self)
        for name in signature(type(self)).parameters:
            value = getattr(self, name)
            if isinstance(value, str) and value == "learn":
                chain._learned = (*chain._learned, name)
                setattr(chain, name, signature(type(self)).parameters[name].default)
        chain._fill_auto(level / n_components)
        return chain

    def unlearned(self) -> Self:
        """A copy in which hyper-parameters that are to be learned have their defaults."""
        chain = copy.deepcopy(self)
        for name, parameter in signature(type(self)).parameters.items():
            value = getattr(self, name)
            if isinstance(value, str) and value == "learn":
                setattr(chain, name, parameter.default)
        return chain

    def check_level(self, level: float) -> None:
        """Raise if the chain cannot describe data of this level, that of one component.

        That is, if one step leads far away from the level, or spreads too widely, or by less than
        rounding.
        """
        with np.errstate(over="ignore"):
            slope, offset, square, linear, constant = self.in_unit(level)._moments()
        mean = np.asarray(slope + offset, dtype=float)
        far = np.isfinite(mean) & ((mean > _FARTHEST) | (mean < 1.0 / _FARTHEST))
        if np.any(far):
            raise ValueError(
                f"{self!r} is far from the data: after a step at their level, {level:.3g}, it "
                f"expects {mean[far].flat[0]:.1e} times that. Leave its hyper-parameters at 'auto'."
            )
        with np.errstate(invalid="ignore"):  # there may be no mean
            spread = np.sqrt(square + linear + constant) / mean
        least, most = np.min(spread), np.max(spread, initial=0.0, where=np.isfinite(spread))
        if most > _MOST_SPREAD:
            raise ValueError(
                f"{self!r} is far from the data: at their level, {level:.3g}, a step spreads by "
                f"{most:.1e} times its mean. Leave its hyper-parameters at 'auto'."
            )
        if least < _LEAST_SPREAD:
            raise ValueError(
                f"{self!r} leaves no room to move: at the level of the data, {level:.3g}, a step "
                f"spreads by {least:.1e} of its value, less than rounding. Leave its "
                f"hyper-parameters at 'auto', or give smaller ones."
            )

    def bottomless(self) -> bool:
        """Whether the objective on the linear scale is unbounded below as h goes to zero."""
        return True

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        if self._kernels.auxiliary is None:
            return np.empty((len(H), 0))
        Z = np.empty((len(H), H.shape[1] - 1))
        self._kernels.auxiliary(np.ascontiguousarray(H), Z, self._rows(len(H), scale))
        return Z

    def value(self, H: Array, aux: Array, scale: Scale) -> float:
        return self._kernels.value(np.ascontiguousarray(H), aux, self._rows(len(H), scale))

    def expansion(self, H: Array, scale: Scale) -> Expansion:
        K, N = H.shape
        slope, diagonal, off = np.empty((K, N)), np.empty((K, N)), np.empty((K, N - 1))
        value = self._kernels.expand(
            np.ascontiguousarray(H),
            np.empty((K, N - 1)),
            self._rows(K, scale),
            slope,
            diagonal,
            off,
        )
        return Expansion(value, slope, diagonal, off)

    def sweep(
        self, H: Array, aux: Array, majorizer: Majorizer, scale: Scale, *, held: int = 0
    ) -> Array:
        aux = aux.copy()
        p, q, r = map(np.ascontiguousarray, majorizer)
        self._kernels.sweep(H, aux, p, q, r, self._rows(len(H), scale), held, self.sweeps)
        return aux

    # Posterior draws

    @property
    def has_draws(self) -> bool:
        """Whether the Gibbs sampler supports this chain."""
        return self._kernels.draw is not None

    def draw(
        self, H: Array, Z: Array, Y: Array, Q: Array, rng: np.random.Generator, first: First,
        *, held: int = 0,
    ) -> None:  # fmt: skip
        """One round of posterior draws for all components, in place.

        Counts, split over the components, are y_kn ~ Poisson(q_kn h_kn). A round draws all h_kn
        from their conditional distributions, with auxiliary variables z where needed to make these
        standard ones. In single steps a stiff chain would mix slowly, above all its level and its
        missing steps. So a round also scales blocks, h_n … h_m → c h_n … c h_m: of lengths 2, 4,
        8 … from random positions, and the whole path. Ratios inside a block are kept, so c depends
        only on the ends and on the counts. The density of log c is that of the moved path times the
        volume c^length of the move (generalised Gibbs; Liu and Sabatti 2000).

        Parameters
        ----------
        H : array, (K, N)
        Z : array, (K, N−1)
            Auxiliary variables. Only those of BGAR, the log odds of retained parts, are read.
        Y : array, (K, N)
            Counts of each component.
        Q : array, (1, N) or (K, N)
            Exposures, zero where a step was not observed.
        rng : numpy Generator
        first : First
        held : {0, 1}
            Number of known, fixed steps at the beginning, from which the path continues.
        """
        kernel = self._kernels.draw
        assert kernel is not None
        a, b = first.shape, first.shape / first.level
        Q = np.ascontiguousarray(np.broadcast_to(Q, H.shape))
        kernel(rng, H, Z, Y, Q, self._rows(len(H), "log"), (a, b), held)

    def path_law(self, n_paths: int) -> PathLaw:
        """The distribution of paths, one for each component."""
        assert self._kernels.log_law is not None
        rows = self._rows(n_paths, "log")
        return PathLaw(self._kernels.log_law, rows, self.own_first, self._log_volume)

    def _log_volume(self, H: Array, Z: Array) -> Array:
        """Log Jacobian (K,) that turns the density into that of (h, z) as they are drawn."""
        return np.zeros(len(H))

    def reordered(self, order: Array) -> Self:
        """A copy for components in another order, with hyper-parameters reordered, too."""
        chain = copy.copy(self)
        for name, value in self.get_params().items():
            if np.ndim(value):
                setattr(chain, name, np.asarray(value)[order])
        return chain

    def in_unit(self, unit: float) -> Self:
        """The chain of h/unit."""
        chain = copy.copy(self)
        if unit != 1.0:
            for name in self._per_unit:
                setattr(chain, name, unit * getattr(self, name))
        return chain

    def conditional_mode(self, h: Array, scale: Scale) -> Array:
        """The mode of a single further step: the paper's forecast."""
        H = np.column_stack([h, h])
        nothing = Majorizer(*(np.zeros_like(H) for _ in range(3)))
        aux = self.auxiliary(H, scale)
        for _ in range(500):
            before = H[:, 1].copy()
            aux = self.sweep(H, aux, nothing, scale, held=1)
            if np.allclose(H[:, 1], before, rtol=1e-13, atol=0.0):
                break
        return H[:, 1]

    def sample_ahead(self, state: Array, steps: int, rng: np.random.Generator) -> Array:
        return self.sample(len(state), steps + 1, rng, state)[:, 1:]

    def mean_ahead(self, state: Array, steps: int) -> Array:
        return self.mean(state, np.arange(2, steps + 2))

    def moments_ahead(self, state: Array, steps: int) -> tuple[Array, Array]:
        return self._moments_at(state, np.arange(2, steps + 2))

    def point_forecast(
        self, state: Array, steps: int, point: Point = "mean", scale: Scale = "log"
    ) -> Array:
        """Point forecast (K, steps) after a state (K,).

        Means are exact; modes are chained step by step. Without dynamics the last value is
        repeated, as in the paper. Values are at most `CEILING`, as in simulated paths.
        """
        if not self.dynamic:
            return np.repeat(state[:, None], steps, axis=1)
        if steps and point == "mean":
            return np.minimum(self.mean_ahead(state, steps).T, CEILING)
        path = [np.asarray(state, dtype=float)]
        for _ in range(steps):
            path.append(np.minimum(self.conditional_mode(path[-1], scale), CEILING))
        return np.reshape(path[1:], (steps, len(path[0]))).T

    def _point(self, last: Array, steps: int, point: Point, scale: Scale) -> Array:
        ahead = self.point_forecast(np.atleast_1d(last), steps, point, scale)
        return ahead.T.reshape(steps, *last.shape)

    def backcast(self, h_first: Array, steps: int) -> Array:
        return np.repeat(h_first[:, None], steps, axis=1)

    def point_name(self, point: Point) -> str:
        return super().point_name(point) if self.dynamic else "last value"


class PathLaw(NamedTuple):
    """The distribution of paths under a chain whose hyper-parameters are numbers.

    Auxiliary variables are integrated out if a round of draws redraws them first. Those of BGAR
    are not: its density is that of activations and retained parts.
    """

    log_law: Callable[..., None]
    rows: Array
    own_first: bool
    log_volume: Callable[[Array, Array], Array]

    def given_first(self, H: Array, Z: Array) -> Array:
        """Log density (K,) of each path (N,), for drawing hyper-parameters.

        The first step is included if the chain defines its distribution.
        """
        found = np.empty(len(H))
        self.log_law(H, Z, self.rows, found)
        return found

    def __call__(self, H: Array, Z: Array, first: First) -> Array:
        """Log density (K,) of (h, z), first step included."""
        found = self.given_first(H, Z) + self.log_volume(H, Z)
        if not self.own_first:
            a, level = first
            found += (a - 1.0) * np.log(H[:, 0]) - a * H[:, 0] / level
        return found


def rows_of(n_components: int, *columns: Parameter) -> Array:
    """Numbers, or arrays with one per component, as the columns of a (K, P) array."""
    rows = np.empty((n_components, len(columns)))
    for i, column in enumerate(columns):
        rows[:, i] = column
    return rows
