"""Whether draws are from the posterior: calibration by simulation, and laws known by quadrature."""

import numpy as np
import pytest
from scipy import special, stats

import geweke as joint
import test_learning as learning
from temporalnmf.chains import ARG, BGAR, GaP, HierRate, HierShape, Rate, Shape
from temporalnmf.chains.base import Chain, First
from temporalnmf.data.series import Series
from temporalnmf.runtime.threads import Threads
from temporalnmf.sampling.gibbs import Gibbs

# Ranks among 31 draws, in 8 bins. A p-value is below this once in 10 000 times by chance; there are
# about 90 of them, so one is once in 100 runs of them all.
N_DRAWS, N_BINS, LEAST = 31, 8, 1e-4

# A step and an entry were not observed.
N_STEPS = 5
SEEN = np.ones((N_STEPS, 4))
SEEN[2] = SEEN[1, 3] = 0.0


def p_of_ranks(draws, truth):
    """p-values (m,) of uniform ranks: draws (N_DRAWS, replicates, m), truth (replicates, m)."""
    assert len(draws) == N_DRAWS
    bins = np.sum(draws < truth, axis=0) * N_BINS // (N_DRAWS + 1)
    counts = [np.bincount(column, minlength=N_BINS) for column in bins.T]
    return stats.chisquare(counts, axis=1).pvalue


def calibrated(simulation, replicates=96, burn=25, thin=5, numbers=None):
    """p-values of simulation-based calibration (Talts et al. 2018).

    Unknowns and data are drawn from the joint law, then the posterior, from a start that knows of
    neither. The rank of what was true among the draws is uniform.
    """
    run, truth, found = simulation.run, [], []
    numbers = numbers or _symmetric
    with joint.sharing_seldom(0.04):
        for _ in range(replicates):
            simulation.draw_prior()
            simulation.draw_data()
            truth.append(numbers(run))
            simulation.draw_prior()
            draws = []
            for _draw in range(N_DRAWS):
                for _sweep in range(thin if draws else burn):
                    run.sweep()
                draws.append(numbers(run))
            found.append(draws)
    return p_of_ranks(np.swapaxes(found, 0, 1), np.array(truth))


def _symmetric(run):
    """Numbers that do not change with the order of components."""
    W, H = run.W, run.H
    rates = W @ H
    return [
        H[:, 0].sum(), H[:, 2].sum(), H[:, -1].sum(), H.max(), rates[0, 0], rates[3, 1],
        np.sum(W**2), W[:, 0] @ W[:, 1], H[0] @ H[1],
    ]  # fmt: skip


def simulation_of(name, seed=1):
    known = joint.known_parameters(joint.SETTINGS[name], joint.SMOOTHING, 2)
    return joint.Simulation(known, SEEN, seed)


@pytest.mark.long
@pytest.mark.parametrize("name", joint.NAMES)
def test_ranks_of_the_truth_among_draws_are_uniform(name):
    """Two components, whose order does not count."""
    p = calibrated(simulation_of(name))
    assert p.min() > LEAST, p


@pytest.mark.long
def test_ranks_show_a_posterior_that_is_too_narrow(monkeypatch):
    """Counts that count four times are noticed."""
    right = Chain.draw

    def fourfold(chain, H, Z, Y, q, *rest, held):
        right(chain, H, Z, 4.0 * Y, 4.0 * q, *rest, held=held)

    monkeypatch.setattr(Chain, "draw", fourfold)
    assert calibrated(simulation_of("rate")).min() < 0.1 * LEAST


def calibrated_paths(law, burn=60, thin=8):
    """The same for one component with its hyper-parameters, replicates side by side."""
    n, rng, q = joint.n_paths(law), np.random.default_rng(4), learning.EXPOSURE

    def from_prior():
        law.move(joint.prior_coordinates(law, n, rng))
        return joint.paths(law.chain, n, N_STEPS, rng, joint.FIRST_LAW)

    def numbers():
        ends = H[:, 0], H[:, 1], H[:, -1], H.sum(axis=1), H[:, -1] / H[:, 0]
        return np.column_stack([*ends, *law.coordinates.values()])

    H, Z = from_prior()
    Y, truth, draws = rng.poisson(q * H).astype(float), numbers(), []
    H, Z = from_prior()
    for _draw in range(N_DRAWS):
        for _sweep in range(thin if draws else burn):
            law.chain.draw(H, Z, Y, q, rng, joint.FIRST_LAW)
            law.draw(H, Z, rng)
        draws.append(numbers())
    return p_of_ranks(np.array(draws), truth)


@pytest.mark.long
@pytest.mark.parametrize("name", joint.NAMES)
def test_ranks_of_what_is_learned_are_uniform(name):
    p = calibrated_paths(learning.narrowed(*learning.LEARNED[name], 300))
    assert p.min() > LEAST, p


def means_of_run(run, functionals, n_sweeps):
    """Means of functionals of a run, and their standard errors by the means of 40 batches."""
    found = []
    with joint.sharing_seldom(0.1):
        for _ in range(n_sweeps + 100):
            run.sweep()
            found.append(functionals(run))
    found = found[100:]
    batches = np.reshape(found, (40, n_sweeps // 40, -1)).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(40)


def run_of(X, seen, exposure, chain, n_components, smoothing=0.7):
    """A run on data that stay as they are."""
    n_steps, n_features = X.shape
    run = Gibbs(
        Series(X, seen, exposure),
        joint.known_parameters(chain, smoothing, n_components),
        np.full((n_features, n_components), 1.0 / n_features),
        np.full((n_components, n_steps), 3.0),
        FIRST,
        np.random.SeedSequence(11),
        Threads(1),
    )
    return run


FIRST = First(2.0, 3.0)
# Few counts, and paths that do not come close to zero, where a grid would have to be wide.
TINY = {
    "gap": GaP(2.0, 0.7),
    "rate": Rate(4.0, 3.0),
    "hier_rate": HierRate(6.0, 5.0, 4.0, 4.5),
    "shape": Shape(4.0, 4.5),
    "hier_shape": HierShape(1.3, 1.9),
    "bgar": BGAR(5.0, 1.6, 0.6),
    "arg": ARG(5.0, 1.6, 0.6),
}
COUNTS = np.array([[2.0, 1.0], [0.0, 0.0], [4.0, 3.0], [0.0, 1.0]])
TINY_EXPOSURE = np.array([1.5, 0.0, 0.7, 2.0])  # the second step was not observed


def marginals(chain, u):
    """Posterior mass (N, len(u)) of log h_n on a grid: one component, steps in a chain."""
    h, width = np.exp(u), u[1] - u[0]
    transition = np.exp(chain.log_density(h[None], h[:, None]) + u) * width
    own = chain.stationary()
    first = own if own is not None else stats.gamma(FIRST.shape, scale=FIRST.level / FIRST.shape)
    y = COUNTS.sum(axis=1)[:, None]
    likelihood = np.exp(y * u - TINY_EXPOSURE[:, None] * h)
    forward, backward = [first.pdf(h) * h * likelihood[0]], [np.ones_like(u)]
    for n in range(1, len(y)):
        forward.append((forward[-1] @ transition) * likelihood[n])
        backward.append(transition @ (likelihood[-n] * backward[-1]))
    mass = np.array(forward) * np.array(backward[::-1])
    return mass / mass.sum(axis=1, keepdims=True)


@pytest.mark.long
@pytest.mark.parametrize("name", joint.NAMES)
def test_activations_have_the_means_of_quadrature(name):
    """One component, four steps, one of them missing: E h_n, E log h_n, E h_n²."""
    chain, u = TINY[name], np.linspace(-12.0, 5.0, 601)
    mass = marginals(chain, u)
    moments = np.array([np.exp(u), u, np.exp(2.0 * u)])
    expected = (moments @ mass.T).ravel()
    # The grid is wide enough and fine enough.
    assert mass[:, [0, -1]].max() < 1e-8
    np.testing.assert_allclose((moments[:, ::2] @ marginals(chain, u[::2]).T).ravel(), expected,
                               rtol=1e-3, atol=1e-3)  # fmt: skip
    seen = (TINY_EXPOSURE[:, None] > 0.0).astype(float)
    run = run_of(COUNTS, seen, np.where(TINY_EXPOSURE > 0.0, TINY_EXPOSURE, 1.0), chain, 1)
    found, error = means_of_run(
        run, lambda run: np.concatenate([run.H[0], np.log(run.H[0]), run.H[0] ** 2]), 12000
    )
    assert np.all(error < 0.05 * np.maximum(abs(expected), 1.0)), error
    # Seven chains, twelve means, errors from 40 batches: once in 500 runs of them all by chance.
    assert np.all(abs(found - expected) < 5.0 * error), (found - expected) / error


@pytest.mark.long
def test_components_have_the_means_of_quadrature():
    """Two components, two steps, two features, an entry missing: the allocation matters.

    Columns of W sum to one, so e^(−e Σ h) goes into the weights of Gauss-Laguerre nodes for h_1,
    and for h_2 given h_1; Gauss-Jacobi nodes stand for W. What is left is a polynomial, but for
    the entry that is missing, and a smooth function of h_1.
    """
    alpha, beta = np.array([3.0, 6.0]), np.array([2.5, 7.0])
    X, seen = np.array([[3.0, 1.0], [1.0, 4.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])
    e, s = np.array([1.2, 0.8]), 0.7
    coarse = _by_nodes(alpha, beta, X, seen, e, s, (8, 12, 9))
    expected = _by_nodes(alpha, beta, X, seen, e, s, (9, 16, 11))
    np.testing.assert_allclose(coarse, expected, rtol=1e-4)
    run = run_of(X, seen, e, Rate(alpha, beta), 2, s)
    found, error = means_of_run(run, lambda run: _of_two(run.W[0], run.H), 20000)
    assert np.all(error < 0.04 * expected), error / expected
    # Eleven means, errors from 40 batches: once in 5000 runs by chance.
    assert np.all(abs(found - expected) < 5.0 * error), (found - expected) / error


def _of_two(w, H):
    """Functionals of weights (2, …) of the first feature and activations (2, 2, …)."""
    (h11, h12), (h21, h22) = H
    return np.array([
        h11, h12, h21, h22, h11 * h21, h12 * h22, h11 * h12, w[0] + 0.0 * h11, w[1] + 0.0 * h11,
        w[0] * w[1] + 0.0 * h11, w[0] * h11 + w[1] * h21,
    ])  # fmt: skip


def _by_nodes(alpha, beta, X, seen, e, s, sizes):
    """Posterior means by Gauss quadrature; sizes for W, first and second steps."""
    n_w, n_first, n_second = sizes
    x, at_w = special.roots_jacobi(n_w, s - 1.0, s - 1.0)
    w = (x + 1.0) / 2.0
    first, at_first = special.roots_genlaguerre(n_first, FIRST.shape - 1.0)
    first = first / (FIRST.shape / FIRST.level + e[0])
    pairs = []
    for k in range(2):
        second, at_second = special.roots_genlaguerre(n_second, alpha[k] - 1.0)
        rate = beta[k] / first + e[1]
        weight = at_first * (beta[k] / first / rate) ** alpha[k]
        h1 = np.repeat(first, n_second)
        h2 = (second / rate[:, None]).ravel()
        pairs.append((h1, h2, (weight[:, None] * at_second).ravel()))
    # Axes: w of both components, activations of both.
    w1, w2 = w[:, None, None, None], w[None, :, None, None]
    (h11, h12, at1), (h21, h22, at2) = pairs
    h11, h12, h21, h22 = h11[:, None], h12[:, None], h21[None], h22[None]
    weight = at_w[:, None, None, None] * at_w[None, :, None, None] * (at1[:, None] * at2[None])
    for n, (a, b) in enumerate([(h11, h21), (h12, h22)]):
        for f, (v1, v2) in enumerate([(w1, w2), (1.0 - w1, 1.0 - w2)]):
            rate = v1 * a + v2 * b
            weight = weight * (rate ** X[n, f] if seen[n, f] else np.exp(e[n] * rate))
    ones = np.ones(weight.shape)
    H = (h11 * ones, h12 * ones), (h21 * ones, h22 * ones)
    return np.sum(_of_two((w1 * ones, w2 * ones), H) * weight, axis=(1, 2, 3, 4)) / weight.sum()
