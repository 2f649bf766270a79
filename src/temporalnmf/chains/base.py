"""A chain as a prior on H: its value, its part of an update, its point forecast."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numba import njit

from .._typing import Array
from ..kernels.roots import _quadratic_root
from ..likelihoods.base import Majorizer
from .parameters import Parameter, Purpose, Scale, scalar_or_array
from .prior import ActivationPrior, Expansion
from .process import CEILING, Point, Process

Row = tuple[float, ...]
Grid = Sequence[Mapping[str, Parameter]]

__all__ = [
    "Chain", "Expansion", "First", "Grid", "Kernels", "Parameter", "PathLaw", "Point", "Row",
    "Scale", "dominate", "lost_power", "quadratic_minimiser", "rows_of", "scalar_or_array",
]  # fmt: skip


def lost_power(scale: Scale) -> float:
    """What the exponent of a Gamma density loses on a scale: h^(α−1) against (log h)'s h^α."""
    return 1.0 if scale == "linear" else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def quadratic_minimiser(
    h: Array, z: Array, n: int, p: float, q: float, r: float, row: Row
) -> float:
    """Minimiser over h_n where likelihood and chain together have the form (M)."""
    return _quadratic_root(p, q, r, h[n])


@njit(cache=True, nogil=True, error_model="numpy")
def dominate(diagonal: Array, off: Array) -> None:
    """Raise the diagonal of a tridiagonal matrix to what stands beside it."""
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
    # (h, z, n, p, q, r, row): minimiser over h_n, (p, q, r) of likelihood and chain together
    minimiser: Callable[..., float] = quadratic_minimiser
    # (rng, H, Z, Y, Q, rows, (a, b), held): a round of posterior draws; None where there are none
    draw: Callable[..., None] | None = None
    log_law: Callable[..., None] | None = None  # (H, Z, rows, found): log p(path | parameters)


class First(NamedTuple):
    """Gamma(shape, shape/level) law of h_1 in posterior draws: a shape and a mean.

    A shape of 1/2 around the level of the data allows anything from 0 to a few times that.
    """

    shape: float = 0.5
    level: float = 1.0


# Least standard deviation of a step as a share of its mean. The objective has the square of its
# inverse in it, and with that multiplies what rounding does to h.
_LEAST_SPREAD = 1e-8
# Largest one: for a shape close to zero, squares of derivatives overflow.
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
        Whether h_1 has a law under the chain. If not, posterior draws use `First`.
    sweeps : int
        How many rounds over H one pass over the data is worth.
    grid, draws_grid : sequence of dict
        Hyper-parameters for `select` to try, from loose to tight, for posterior modes and for
        posterior draws. "100/level" is in units of the mean activation.
    """

    own_first: ClassVar[bool] = False
    sweeps: ClassVar[int] = 1
    grid: ClassVar[Grid] = ()
    draws_grid: ClassVar[Grid] = ()
    _kernels: ClassVar[Kernels]

    # Names of the hyper-parameters that count per unit of h.
    _per_unit: ClassVar[tuple[str, ...]] = ()
    # Names of the hyper-parameters that `resolve` was asked to learn.
    _learned: tuple[str, ...] = ()
    # Rates that decide on growth, which have a tighter prior in posterior draws; each rate with
    # the shape it is measured in if both are learned; pairs that cannot both be learned.
    _growth: ClassVar[tuple[str, ...]] = ()
    _measured_in: ClassVar[Mapping[str, str]] = MappingProxyType({"beta": "alpha"})
    _exclusive: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def _columns(self, *names: str) -> list[Array]:
        """The named hyper-parameters as (K, 1) or (1, 1) arrays."""
        return [np.reshape(np.asarray(getattr(self, name), dtype=float), (-1, 1)) for name in names]

    def _rows(self, n_components: int, scale: Scale) -> Array:
        """What compiled code has to know of the chain, a row per component."""
        raise NotImplementedError

    def resolve(self, level: float, n_components: int, purpose: Purpose = "map") -> Self:
        """A copy whose hyper-parameters are all numbers.

        Parameters
        ----------
        level : float
            Mean of Σ_k h_kn that the data ask for.
        n_components : int
            K; arrays of hyper-parameters must have this length.
        purpose : {"map", "draw"}, default="map"
            Draws can learn every number, a mode those in closed form. What is learned begins at
            its default.
        """
        self._check_values(purpose, n_components)
        chain = copy.deepcopy(self)
        for name in signature(type(self)).parameters:
            if _is_word(getattr(self, name), "learn"):
                chain._learned = (*chain._learned, name)
                setattr(chain, name, signature(type(self)).parameters[name].default)
        chain._fill_auto(level / n_components)
        return chain

    def check_level(self, level: float) -> None:
        """Refuse a chain that has nothing to do with data of this level, that of one component.

        Its steps lead to quite another level at once, or spread by less than rounding.
        """
        with np.errstate(over="ignore"):  # that is far, too
            slope, offset, square, linear, constant = self.in_unit(level)._moments()
        mean = np.asarray(slope + offset, dtype=float)
        far = np.isfinite(mean) & ((mean > _FARTHEST) | (mean < 1.0 / _FARTHEST))
        if np.any(far):
            raise ValueError(
                f"{self!r} is far from the data: after a step at their level, {level:.3g}, it "
                f"expects {mean[far].flat[0]:.1e} times that. Leave its hyper-parameters at 'auto'."
            )
        with np.errstate(invalid="ignore"):  # where the law has no mean
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
        """Whether, on the linear scale, the objective can fall without end as h goes to zero."""
        return True

    def auxiliary(self, H: Array, scale: Scale) -> Array:
        return np.empty((len(H), 0))

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

    def terms(self, H: Array, aux: Array, scale: Scale) -> Majorizer:
        """What the chain adds to (p, q, r) of every step, neighbours held fixed.

        Sweeps do this in compiled code; this one is for tests and inspection.
        """
        chains = zip(H, aux, self._rows(len(H), scale), strict=True)
        at = self._kernels.terms
        added = [[at(h, z, n, tuple(row)) for n in range(len(h))] for h, z, row in chains]
        return Majorizer(*np.moveaxis(np.array(added), 2, 0))

    def minimise(self, H: Array, aux: Array, total: Majorizer, steps: slice, scale: Scale) -> Array:
        """Minimisers over h_n for the given steps, likelihood and chain together; see `terms`."""
        chains = zip(H, aux, *total, self._rows(len(H), scale), strict=True)
        columns = range(H.shape[1])[steps]
        at = self._kernels.minimiser
        found = [
            [at(h, z, n, p[n], q[n], r[n], tuple(row)) for n in columns]
            for h, z, p, q, r, row in chains
        ]
        return np.array(found)

    # Posterior draws

    @property
    def has_draws(self) -> bool:
        """Whether the Gibbs sampler knows this chain."""
        return self._kernels.draw is not None

    def draw(
        self, H: Array, Z: Array, Y: Array, Q: Array, rng: np.random.Generator, first: First,
        *, held: int = 0,
    ) -> None:  # fmt: skip
        """One round of posterior draws for all components, in place.

        Counts of data, split over the components, are y_kn ~ Poisson(q_kn h_kn). A round draws all
        h_kn from their conditional laws, with auxiliary variables z where these make the laws known
        ones. Step by step a stiff chain would hardly move where nothing was observed, nor would its
        level. So a round moves blocks as well, h_n … h_m → c h_n … c h_m: lengths 2, 4, 8 … from
        random places on, and the whole path. Ratios inside a block stay, so c depends only on the
        ends and on the counts. The density of log c is that of the moved path times the volume
        c^length of the move (generalised Gibbs; Liu and Sabatti 2000).

        Parameters
        ----------
        H : array, (K, N)
        Z : array, (K, N−1)
            Auxiliary variables. Only those of BGAR, the log odds of what is retained, are read.
        Y : array, (K, N)
            Counts of each component.
        Q : array, (1, N) or (K, N)
            Exposures, zero where a step was not observed.
        rng : numpy Generator
        first : First
        held : {0, 1}
            Steps at the beginning that are known and fixed: the path continues from there.
        """
        kernel = self._kernels.draw
        assert kernel is not None
        a, b = first.shape, first.shape / first.level
        Q = np.ascontiguousarray(np.broadcast_to(Q, H.shape))
        kernel(rng, H, Z, Y, Q, self._rows(len(H), "log"), (a, b), held)

    def path_law(self, n_paths: int) -> PathLaw:
        """The law of paths, one for each component."""
        assert self._kernels.log_law is not None
        rows = self._rows(n_paths, "log")
        return PathLaw(self._kernels.log_law, rows, self.own_first, self._log_volume)

    def _log_volume(self, H: Array, Z: Array) -> Array:
        """Log volume (K,) that makes the law one of (h, z) as they are drawn."""
        return np.zeros(len(H))

    # Learning

    @property
    def learns(self) -> bool:
        return bool(self._learned)

    def learn(self, H: Array, aux: Array) -> Self:
        """A copy with the maximum-likelihood values of what is set to "learn"."""
        chain = copy.copy(self)
        if self.dynamic and H.shape[1] < 2:
            return chain  # one step says nothing of how they follow each other
        for name in self._learned:
            setattr(chain, name, chain._estimate(name, H, aux))
        return chain

    def reordered(self, order: Array) -> Self:
        """A copy for components in another order, with hyper-parameters that go along."""
        chain = copy.copy(self)
        for name, value in self.get_params().items():
            if np.ndim(value):
                setattr(chain, name, np.asarray(value)[order])
        return chain

    def in_unit(self, unit: float) -> Self:
        """A copy that has the law of h/unit."""
        chain = copy.copy(self)
        if unit != 1.0:
            for name in self._per_unit:
                setattr(chain, name, unit * getattr(self, name))
        return chain

    def _estimate(self, name: str, H: Array, aux: Array) -> Array:
        """Closed-form estimate (K,) of one hyper-parameter."""
        raise NotImplementedError

    def conditional_mode(self, h: Array, scale: Scale) -> Array:
        """Where a single further step settles in the objective: the paper's forecast."""
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

    def point_forecast(
        self, state: Array, steps: int, point: Point = "mean", scale: Scale = "log"
    ) -> Array:
        """Point forecast (K, steps) after a state (K,).

        Means are exact; modes are chained step by step. Without dynamics the last value is
        repeated, as in the paper. Numbers too large for a double end where simulated paths do.
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
    """The law of paths under a chain with hyper-parameters that are numbers.

    Auxiliary variables that a round of draws begins by drawing anew are integrated out. Those of
    BGAR are not, so its law is that of activations and retained parts.
    """

    log_law: Callable[..., None]
    rows: Array
    own_first: bool
    log_volume: Callable[[Array, Array], Array]

    def given_first(self, H: Array, Z: Array) -> Array:
        """Log density (K,) of each path (N,), on which hyper-parameters depend.

        The first step counts for chains that have a law of their own there.
        """
        found = np.empty(len(H))
        self.log_law(H, Z, self.rows, found)
        return found

    def __call__(self, H: Array, Z: Array, first: First) -> Array:
        """The same as a density of (h, z), first step included."""
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


def _is_word(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word
