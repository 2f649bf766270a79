"""Geweke's joint test of a whole sweep: data and unknowns drawn from each other in turn."""

from contextlib import contextmanager

import numpy as np
import pytest

from temporalnmf import registry
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import First
from temporalnmf.data.series import Series
from temporalnmf.likelihoods.poisson import Poisson
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling import gibbs as sampler
from temporalnmf.sampling import learning
from temporalnmf.sampling.gibbs import Gibbs
from temporalnmf.sampling.learning import (
    LearnedChain,
    LearnedLikelihood,
    LearnedSmoothing,
    Parameters,
)

FIRST_LAW = First(2.0, 3.0)
F, K, N, SMOOTHING = 4, 2, 4, 0.7
EXPOSURE = np.array([1.5, 1.0, 0.7, 2.0])

# Every chain with a law, hyper-parameters with which paths are neither wild nor stiff.
NAMES = [name for name in registry.CHAINS if name != "none"]
SETTINGS = {
    "gap": GaP(2.0, 0.7),
    "rate": Rate(4.0, 4.0),
    "hier_rate": HierRate(6.0, 5.0, 4.0, 4.0),
    "shape": Shape(1.5, 1.5),
    "hier_shape": HierShape(1.3, 0.9),
    "bgar": BGAR(3.0, 1.2, 0.6),
    "arg": ARG(3.0, 1.2, 0.6),
}

# Chains whose first activation has a law of their own: Gamma(α, β).
OWN_FIRST_LAW = {"gap", "bgar", "arg"}

# What was observed: all, all but a step, or not even one of the features besides.
MASKS = {"all": np.ones((N, 1)), "steps": np.ones((N, 1)), "entries": np.ones((N, F))}
MASKS["steps"][2] = MASKS["entries"][2] = 0.0
MASKS["entries"][0, 1] = MASKS["entries"][3, 3] = 0.0
MASKS["entries"][:, 2] = 0.0

# 28 tests of up to 19 functionals: |z| beyond this by chance once in 300 runs of them all.
BOUND = 4.5


def started(series, chain, W, H, smoothing, first, seed, workers):
    """A run with hyper-parameters that are known."""
    known = known_parameters(chain, smoothing, W.shape[1])
    return Gibbs(series, known, W, H, first, seed, workers)


def known_parameters(chain, smoothing, n_components, level=1.0, likelihood=None, effects=None):
    """Parameters of which none is learned, if chain and likelihood have numbers."""
    return Parameters(
        LearnedChain(chain, level, n_components),
        LearnedSmoothing(smoothing, False),
        LearnedLikelihood((likelihood or Poisson()).resolve()),
        effects,
    )


def first_activations(chain, n, rng, first):
    """h_1 of n components, from the chain's own law if it has one."""
    if chain.name in OWN_FIRST_LAW:
        return rng.gamma(chain.alpha, 1.0 / np.asarray(chain.beta), size=n)
    return rng.gamma(first.shape, first.level / first.shape, size=n)


def paths(chain, n, n_steps, rng, first):
    """Activations (n, n_steps) from the prior, with what BGAR remembers of its transitions."""
    start = np.maximum(first_activations(chain, n, rng, first), 1e-30)
    if chain.name == "bgar":
        return _paths_of_bgar(chain, start, n_steps, rng)
    H = chain.sample(1, n_steps, rng, start[None])[0].T
    return np.ascontiguousarray(np.maximum(H, 1e-30)), np.zeros((n, n_steps - 1))


def _paths_of_bgar(chain, h, n_steps, rng):
    """By logarithms: parts that are lost or new may be smaller than all rounding of h."""
    alpha, beta, rho = np.asarray(chain.alpha), np.asarray(chain.beta), np.asarray(chain.rho)

    def log_gamma(shape):
        return np.log(rng.gamma(shape + 1.0, size=len(h))) + np.log(rng.random(len(h))) / shape

    H, Z, u = [h], [], np.log(h)
    for _ in range(1, n_steps):
        kept, lost = log_gamma(alpha * rho), log_gamma(alpha * (1.0 - rho))
        new = log_gamma(alpha * (1.0 - rho)) - np.log(beta)
        retained, lost = u - np.logaddexp(0.0, lost - kept), u - np.logaddexp(0.0, kept - lost)
        u = np.maximum(np.logaddexp(retained, new), np.log(1e-30))
        H.append(np.exp(u))
        Z.append(retained - np.minimum(lost, new))
    return np.ascontiguousarray(np.transpose(H)), np.ascontiguousarray(np.transpose(Z))


def n_paths(law):
    """How many components a `LearnedChain` has."""
    return len(next(iter(law.coordinates.values())))


def prior_coordinates(law, n, rng):
    """Where learned hyper-parameters are according to their priors."""
    return {
        name: rng.logistic(size=n) if prior.spread is None else rng.normal(*prior, size=n)
        for name, prior in law.priors.items()
    }


class Simulation:
    """Everything from the joint law, and a run that goes on from there with data after data.

    Parameters
    ----------
    parameters : Parameters
    seen : array, (N, 1) or (N, F)
    seed : int
    n_features : int
    """

    def __init__(self, parameters, seen, seed, n_features=F, n_components=K):
        n_steps = len(seen)
        self.rng = np.random.default_rng(seed)
        self.seen = np.broadcast_to(seen, (n_steps, n_features))
        self.active = self.seen.any(axis=0) if seen.shape[1] > 1 else np.ones(n_features, bool)
        self.exposure = np.resize(EXPOSURE, n_steps)
        self.run = Gibbs(
            Series(np.ones((n_steps, n_features)), seen, self.exposure),
            parameters,
            np.full((n_features, n_components), 1.0 / n_features),
            np.ones((n_components, n_steps)),
            FIRST_LAW,
            np.random.SeedSequence(seed),
            Threads(1),
        )
        rows = np.arange(n_features + 1) * n_steps, np.tile(np.arange(n_steps), n_features)
        self._structure = [part.astype(np.int32) for part in rows]

    def draw_prior(self):
        """Hyper-parameters, smoothing, components, levels and effects."""
        run, rng = self.run, self.rng
        n_components, n_steps = run.H.shape
        chain, smoothing, likelihood, effects = run.parameters
        chain.move(prior_coordinates(chain, n_components, rng))
        if smoothing.learned:
            at = rng.normal(np.log(learning.SMOOTHING), learning._WIDE)
            smoothing.value = float(np.exp(at))
        for name in likelihood.value.learned:
            likelihood.move({name: float(np.exp(rng.normal(0.0, learning._WIDE)))})
        weights = np.full(self.active.sum(), smoothing.value)
        run.W = np.zeros_like(run.W)
        run.W[self.active] = rng.dirichlet(weights, size=n_components).T
        run.H, run.Z = paths(run.chain, n_components, n_steps, rng, FIRST_LAW)
        if effects is not None:
            draw_effects(effects, rng)

    def draw_data(self):
        """Counts given the rest, for the run to go on with."""
        rates, likelihood = self.run.W @ self.run.activations, self.run.parameters.likelihood.value
        self.X = likelihood.sample(self.exposure * rates, self.rng).T * self.seen
        self.run._counts = (*self._structure, self.X.T.ravel())
        if likelihood.learns:
            self.observe(Series(self.X, self.seen.astype(float), self.exposure), likelihood)

    def observe(self, series, likelihood):
        """Data for the density of the counts."""
        self.run.observations = series.observe(likelihood, Threads(1))

    def functionals(self):
        """Thirteen numbers and two per learned one, the same if components are swapped.

        Three for dispersion; five for effects, and two per strength.
        """
        W, H, X = self.run.W, self.run.H, self.X
        u, v = np.log(np.maximum(H, 1e-8)), np.log(np.maximum(W, 1e-8))
        found = [
            u.mean(), u[:, 0].mean(), u[:, -1].mean(), u.std(), np.tanh(u[:, 0] @ u[:, 1]),
            v.mean(), v[0].mean(), W.max(), np.sum(W**2), np.tanh((v[0] * u[:, 0]).mean()),
            np.log1p(X.sum()), np.log1p(X[0, 0]), np.log1p(W[:, 0] @ W[:, -1]),
        ]  # fmt: skip
        chain, smoothing, likelihood, effects = self.run.parameters
        for x in chain.coordinates.values():
            found += [x.mean(), np.tanh((x * (u[:, -1] - u[:, 0])).mean())]
        if smoothing.learned:
            log_s = np.log(smoothing.value)
            found += [log_s, np.tanh(log_s * v.mean())]
        if likelihood.value.excess > 0.0:
            log_d = np.log(likelihood.value.excess)
            found += [np.mean(X == 0.0), np.log1p(X.max())]
            found += [log_d, np.tanh(log_d * u.mean())] if likelihood.value.learns else []
        if effects is not None:
            b, logs = effects.value.coefficients, np.log(effects.value.factors)
            found += [
                b.mean(), np.log1p(np.sum(b**2)), np.tanh((logs * u).mean()),
                np.tanh((logs * np.log1p(X.sum(axis=1))).mean()), np.log1p(np.ptp(logs)),
            ]  # fmt: skip
            for log_s, mine in zip(
                np.log(effects.value.strengths[effects.design.learned]),
                (b[:, effects.design.term_of == t] for t in np.flatnonzero(effects.design.learned)),
                strict=True,
            ):
                found += [log_s, np.tanh(log_s * np.log(np.sum(mine**2)))]
        return np.array(found)


def draw_effects(effects, rng):
    """Strengths and coefficients from their prior."""
    strengths, sizes = effects.value.strengths.copy(), effects.design.sizes
    for t in np.flatnonzero(effects.design.learned):
        inverse = rng.gamma(0.5 * sizes[t], 2.0 / effects.design.usual[t] ** 2)
        strengths[t] = np.sqrt(sizes[t] / inverse)
    effects.value.strengths = strengths
    shape = effects.value.coefficients.shape
    effects.value.coefficients = rng.normal(size=shape) / np.sqrt(effects.value.precisions)


def fixed(name, mask, seed):
    """A simulation with hyper-parameters that are known."""
    return Simulation(known_parameters(SETTINGS[name], SMOOTHING, K), MASKS[mask], seed)


@contextmanager
def sharing_seldom(part):
    """Components share in a part of the sweeps, at random: as right, and faster on tiny data."""
    right = sampler.share

    def share(*args):
        if args[7].random() < part:
            right(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "share", share)
        yield


def geweke(simulation, n_chains, rounds):
    """z of each functional: draws from the joint law, and what sweeps have made of them.

    Each of many short chains begins with a draw from the joint law (marginal-conditional) and
    alternates sweeps with new data (successive-conditional), which must not change the law. The
    difference between end and beginning is taken chain by chain, so its spread is known.
    """
    differences = []
    with sharing_seldom(0.1):
        for _ in range(n_chains):
            simulation.draw_prior()
            simulation.draw_data()
            before = simulation.functionals()
            for _round in range(rounds):
                simulation.run.sweep()
                simulation.draw_data()
            differences.append(simulation.functionals() - before)
    return np.mean(differences, axis=0) / (np.std(differences, axis=0) / np.sqrt(n_chains))
