"""Gibbs sampling of components and activations.

Counts are split over the components, v_fn = Σ_k v_fkn; given the parts,

    column k of W ~ Dirichlet(s + Σ_n v_fkn),     Σ_f v_fkn ~ Poisson(e_n h_kn),

since columns of W sum to one, so the activations of each component are drawn separately
(`Chain.draw`). Hyper-parameters to learn are drawn in between (`learning.py`).

With effects, h are levels, and counts have the exposures e_n c_kn, c the factors of effects
(`effects.py`); the data depend on the activations c h.

Negative binomial counts are Poisson numbers of clumps, which are drawn given the counts and take
their place (`kernels/allocation.py`), with exposure e log(1+d)/d. The dispersion d is drawn with
clumps integrated out, so each sweep begins with it and draws the clumps anew.

Given H, features interact only through sums, so they may be in several blocks
(`cluster/gibbs.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.special import gammaln

from .._typing import Array
from ..chains.base import Chain, First
from ..data.series import Series, dense
from ..effects.effects import LARGEST_COEFFICIENT
from ..kernels.allocation import allocate_rows, draw_weights
from ..kernels.floor import FLOOR
from ..likelihoods.base import Likelihood
from ..messages.errors import Arg, Text
from ..observations.base import Observations
from ..observations.sparse import Rows
from ..runtime.archives import json_of
from ..runtime.states import NON_NEGATIVE, POSITIVE, StateError, arrays_of, restore, within
from ..runtime.threads import MOST_RANGES, Threads
from .learning import Parameters
from .sharing import share

# Least starting weight: draws would not move away from zero.
LEAST = 1e-12
# Largest absolute logarithm, or logit, of a drawn hyper-parameter in a valid checkpoint.
FARTHEST = 100.0
# Those of effects.
COEFFICIENTS = within(-LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)


# State of a random generator of NumPy.
Stream = Mapping[str, object]


@dataclass
class SweepState:
    """Everything that later draws depend on; streams are JSON."""

    W: Array = field(metadata=NON_NEGATIVE)
    H: Array = field(metadata=POSITIVE)
    Z: Array = field(metadata=NON_NEGATIVE)
    smoothing: float = field(metadata=POSITIVE)
    streams: str
    learned: dict[str, Array] = field(metadata=within(-FARTHEST, FARTHEST))
    likelihood: dict[str, float] = field(metadata=POSITIVE)  # learned parameters
    # Of effects, if there are any.
    coefficients: Array | None = field(default=None, metadata=COEFFICIENTS)
    strengths: Array | None = field(default=None, metadata=POSITIVE)


class Sweeps:
    """One run: its state and its sweeps, wherever the features are stored.

    Parameters
    ----------
    parameters : Parameters
        The chain, the smoothing of the Dirichlet prior on the columns of W, and the likelihood.
    H : array, (K, N)
        Starting point of the levels, positive; without effects, levels are the activations.
    first : First
        Prior of the first level, for chains that do not define it.
    exposure : array, (N,)
        Zero for steps that are missing.
    rng : numpy Generator
    held : int
        Number of known, fixed steps at the beginning.
    """

    def __init__(
        self,
        parameters: Parameters,
        H: Array,
        first: First,
        exposure: Array,
        rng: np.random.Generator,
        held: int,
    ) -> None:
        self.parameters, self.first = parameters, first
        self.exposure, self._rng, self.held = exposure, rng, held
        self.H = np.array(H, order="C")
        self.Z = np.zeros((len(H), H.shape[1] - 1))

    @property
    def chain(self) -> Chain:
        """The chain with its current hyper-parameters."""
        return self.parameters.chain.chain

    @property
    def factors(self) -> Array | None:
        """Those of effects between levels H and activations, (K, N)."""
        effects = self.parameters.effects
        return None if effects is None else effects.value.factors

    @property
    def activations(self) -> Array:
        """Levels H times the factors of effects."""
        factors = self.factors
        return self.H if factors is None else self.H * factors

    # Operations on features, for subclasses.

    def weights(self, kind: DTypeLike = float) -> Array:
        """W (F, K), in the memory of this process."""
        raise NotImplementedError

    def count_active(self) -> int:
        """Number of features with observed entries."""
        raise NotImplementedError

    def count_positive(self) -> int:
        """Number of positive counts."""
        raise NotImplementedError

    def log_sum(self) -> float:
        """Σ log w over active features."""
        raise NotImplementedError

    def streams(self) -> list[Stream]:
        """States of the random streams of all blocks, in their order."""
        raise NotImplementedError

    def resume(self, where: tuple[Array, list[Stream]]) -> None:
        """Resume with these weights and streams."""
        raise NotImplementedError

    def drop(self) -> None:
        """Called at the end of the run."""

    def _value(self, likelihood: Likelihood) -> float:
        """−log p(V | WH) up to a constant that does not depend on the likelihood's parameters."""
        raise NotImplementedError

    def _allocate(self) -> Array:
        """Split the counts, or clumps; returns their sums by component and step, (K, N)."""
        raise NotImplementedError

    def _draw_components(self) -> None:
        """Draw the smoothing and W, given the parts."""
        raise NotImplementedError

    def _share_components(self) -> None:
        raise NotImplementedError

    # Operations without features.

    def sweep(self, *, fixed_W: bool = False) -> None:
        """Draw every unknown once; only levels if `fixed_W`."""
        likelihood, effects = self.parameters.likelihood, self.parameters.effects
        if not fixed_W and likelihood.value.learns:
            likelihood.draw(self._value, self.count_positive(), self._rng)
        of_steps = self._allocate()
        if not fixed_W:
            self._draw_components()
        exposure = self.exposure * likelihood.value.cost
        seen = exposure if self.factors is None else exposure * self.factors
        self.chain.draw(self.H, self.Z, of_steps, seen, self._rng, self.first, held=self.held)
        if fixed_W:
            return
        if effects is not None:
            effects.draw(of_steps, exposure * self.H, self._rng)
        self._share_components()  # parts are void from here on
        if effects is not None:
            effects.interweave(self.H, self.Z, self.chain, self.first, self._rng)
            effects.draw_strengths(self._rng)
        self.parameters.chain.draw(self.H, self.Z, self._rng)

    def _share(self, W: Array, active: Array) -> None:
        smoothing = self.parameters.smoothing.value
        share(W, self.H, self.Z, self.chain, smoothing, self.first, active, self._rng, self.factors)

    def log_posterior(self) -> float:
        """Log density of the data and all unknowns, up to a constant."""
        chain, smoothing, likelihood, effects = self.parameters
        s, K = smoothing.value, len(self.H)
        n_active = self.count_active()
        value = -self._value(likelihood.value)
        value += float(self.chain.path_law(K)(self.H, self.Z, self.first).sum())
        value += K * float(gammaln(n_active * s) - n_active * gammaln(s))
        value += (s - 1.0) * self.log_sum()
        value += 0.0 if effects is None else effects.log_prior()
        return value + chain.log_prior() + smoothing.log_prior() + likelihood.log_prior()

    def _state(self) -> SweepState:
        streams = json.dumps([*self.streams(), self._rng.bit_generator.state])
        chain, smoothing, likelihood, effects = self.parameters
        learned, of_data = dict(chain.coordinates), likelihood.value.learned
        found = SweepState(
            self.weights(), self.H, self.Z, smoothing.value, streams, learned, of_data
        )
        if effects is not None:
            found.coefficients, found.strengths = (
                effects.value.coefficients,
                effects.value.strengths,
            )
        return found

    def state(self, prefix: str = "") -> dict[str, Array]:
        """The `SweepState` as arrays."""
        return arrays_of(self._state(), prefix)

    def restore(self, arrays: dict[str, Array], prefix: str = "") -> None:
        """Resume from a state; raises if it cannot be the state of such a run."""
        state = self._state()
        restore(state, arrays, prefix)
        chain, smoothing, likelihood, effects = self.parameters
        if not smoothing.learned and state.smoothing != smoothing.value:
            raise StateError("it has another smoothing")
        if not np.all(np.abs(state.W.sum(axis=0) - 1.0) <= 1e-6):
            raise StateError("its components do not sum to one")
        self.H, self.Z, smoothing.value = state.H, state.Z, state.smoothing
        try:
            *streams, self._rng.bit_generator.state = json_of(state.streams.encode())
            self.resume((state.W, streams))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StateError("its random streams are invalid") from error
        chain.move(state.learned)
        likelihood.move(state.likelihood)
        if effects is not None and state.coefficients is not None and state.strengths is not None:
            effects.move(state.coefficients, state.strengths)


class DrawnBlock:
    """Counts of some features, with draws of their parts by component and of their weights.

    Parameters
    ----------
    series : Series
        Counts; steps and single entries may be missing.
    exposure : array, (N,)
        Zero for steps that are missing, here and in all other blocks.
    W : array, (F, K)
        Starting point, positive.
    seed : numpy SeedSequence
        Seed of one stream per range.
    threads : Threads
    """

    def __init__(
        self,
        series: Series,
        exposure: Array,
        W: Array,
        seed: np.random.SeedSequence,
        threads: Threads,
    ) -> None:
        X, unseen, self.active = _counts(series, exposure > 0.0)
        rows = Rows.of(sparse.csr_array(X.T))
        self._counts, self._bounds = (rows.indptr, rows.indices, rows.counts), rows.bounds
        self._unseen = unseen.indptr, unseen.indices
        self._streams = tuple(map(np.random.default_rng, seed.spawn(MOST_RANGES)))
        # Passing all of them takes 0.2 ms, longer than a sweep of small data.
        self._handed = self._streams[:1] if len(self._bounds) == 2 else self._streams
        self.exposure, self.threads = exposure, threads
        self.hold(W)
        # Counts of each component by feature, of the last sweep.
        self._parts = np.empty(self.W.shape)

    def hold(self, W: Array) -> None:
        """Set the weights, (F, K)."""
        self.W = np.array(W, order="C")

    def weights(self, kind: DTypeLike = float) -> Array:
        """W, (F, K)."""
        return self.W.astype(kind, copy=False)

    def count_active(self) -> int:
        """Number of features with observed entries."""
        return int(np.count_nonzero(self.active))

    def count_positive(self) -> int:
        """Number of positive counts."""
        return int(np.count_nonzero(self._counts[2]))

    def allocate(self, H: Array, likelihood: Likelihood) -> Array:
        """Split the counts, or clumps, given activations (K, N); returns Σ_f v_fkn, (K, N)."""
        n_ranges, (F, K), N = len(self._bounds) - 1, self.W.shape, H.shape[1]
        self._parts, of_steps = np.empty((F, K)), np.empty((n_ranges, N, K))
        sizes = np.full(N, np.inf)
        if likelihood.excess > 0.0:
            sizes = self.exposure / likelihood.excess
        self.threads.run(
            allocate_rows, n_ranges, *self._counts, *self._unseen, self.exposure * likelihood.cost,
            sizes, self.W, np.ascontiguousarray(H.T), self._bounds, self._handed, self._parts,
            of_steps,
        )  # fmt: skip
        return np.ascontiguousarray(of_steps.sum(axis=0).T)

    def draw_weights(self, smoothing: float) -> Array:
        """Draw W given the parts, before division by its sums, which are returned."""
        self.threads.run(
            draw_weights, len(self._bounds) - 1, self._parts, smoothing, self.active,
            self._bounds, self._handed, self.W,
        )  # fmt: skip
        return self.W.sum(axis=0)

    def divide(self, totals: Array) -> None:
        """Divide W by the totals of all blocks."""
        self.W /= totals

    def log_sum(self) -> float:
        """Σ log w over features with observed entries."""
        return float(np.log(np.maximum(self.W[self.active], FLOOR)).sum())

    def streams(self) -> list[Stream]:
        """States of the random streams."""
        return [rng.bit_generator.state for rng in self._streams]

    def resume(self, where: tuple[Array, list[Stream]]) -> None:
        """Resume with these weights and streams."""
        W, streams = where
        self.hold(W)
        for rng, found in zip(self._streams, streams, strict=True):
            rng.bit_generator.state = found


class Gibbs(DrawnBlock, Sweeps):
    """A run on data in memory, which are one block.

    Parameters
    ----------
    series : Series
        Counts; steps and single entries may be missing.
    parameters, H, first, held
        See `Sweeps`.
    W : array, (F, K)
        Starting point, positive; its columns sum to one.
    seed : numpy SeedSequence
    threads : Threads
    observations : Observations or None
        Of the series; needed for the log posterior, and if the likelihood is learned.
    """

    def __init__(
        self,
        series: Series,
        parameters: Parameters,
        W: Array,
        H: Array,
        first: First,
        seed: np.random.SeedSequence,
        threads: Threads,
        observations: Observations | None = None,
        *,
        held: int = 0,
    ) -> None:
        self.observations = observations
        exposure = np.where(series.observed, series.exposure, 0.0)
        DrawnBlock.__init__(self, series, exposure, W, seed, threads)
        rng = np.random.default_rng(seed.spawn(1)[0])
        Sweeps.__init__(self, parameters, H, first, exposure, rng, held)

    def _value(self, likelihood: Likelihood) -> float:
        assert self.observations is not None
        self.observations.use(likelihood)
        W = np.array(self.W, order=self.observations.order)
        return self.observations.value(W, np.ascontiguousarray(self.activations))

    def _allocate(self) -> Array:
        return self.allocate(self.activations, self.parameters.likelihood.value)

    def _draw_components(self) -> None:
        smoothing = self.parameters.smoothing
        if smoothing.learned:
            smoothing.draw(self._parts[self.active], self._rng)
        self.divide(self.draw_weights(smoothing.value))

    def _share_components(self) -> None:
        self._share(self.W, self.active)


def check_counts(series: Series) -> None:
    """Raise if there are weights other than 0 and 1, or values that are not whole numbers."""
    _counts(series, series.observed)


_MODES = Arg("solver", "'accelerated'")


def _counts(series: Series, there: Array) -> tuple[sparse.csr_array, sparse.csr_array, Array]:
    """Counts (N, F), missing entries (F, N) of the steps `there`, features ever seen (F,)."""
    weights = np.asarray(dense(series.weights), dtype=float)
    known = np.isin(weights, (0.0, 1.0))
    if not known.all():
        raise ValueError(
            Text(
                "mask has the weight {weight:g}: draws need entries that are observed or not. Give "
                "1 and 0, or use {modes}.",
                weight=weights[~known].flat[0],
                modes=_MODES,
            )
        )
    if isinstance(series.X, np.ndarray):
        X = sparse.csr_array(np.where(weights > 0.0, series.X, 0.0))
    else:
        X = sparse.csr_array(series.X.multiply(weights))
    X.eliminate_zeros()
    whole = X.data == np.round(X.data)
    if not whole.all():
        raise ValueError(
            Text(
                "X has {value:g}, and draws need counts, whole numbers. Round X, give the size "
                "behind rates as {exposure=}, or use {modes}.",
                value=X.data[~whole][0],
                modes=_MODES,
            )
        )
    if weights.shape[1] == 1 and np.array_equal(weights[:, 0] > 0.0, there):
        return X, sparse.csr_array(X.shape[::-1]), np.ones(X.shape[1], dtype=bool)
    # A step that is missing in this block may be observed in another.
    weights = np.broadcast_to(weights, X.shape)
    active = np.any(weights > 0.0, axis=0)
    unseen = there[:, None] & (weights == 0.0) & active
    return X, sparse.csr_array(unseen.T), active
