"""Hyper-parameters: automatic, learned, per component, refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cases import SCALES, all_cases, chains, h_step, random_problem, w_step
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import BGAR, GaP, HierRate, HierShape, Rate, Shape

LEARNING = [(chain, name) for chain in chains("log") for name in chain._learn]


def _learner(chain, name):
    """The chain with one hyper-parameter set to learn, started from its old value."""
    learner = chain.resolve(10.0, 2)
    learner._learned = (name,)
    return learner


@pytest.mark.parametrize(("chain", "name"), LEARNING, ids=str)
def test_learned_values_maximise_the_likelihood_of_the_chain(chain, name):
    """At the fixed point of learning, no other value of the hyper-parameter does better."""
    H = np.random.default_rng(0).gamma(2.0, 5.0, size=(1, 40))
    learner = _learner(chain, name)
    for _ in range(3000):  # EM where there are auxiliary variables, one step elsewhere
        before = np.copy(getattr(learner, name))
        learner = learner.learn(H, learner.auxiliary(H, "log"))
        if np.allclose(getattr(learner, name), before, rtol=1e-12):
            break

    def value(log_x):
        learner.set_params(**{name: np.exp(log_x)})
        return learner.value(H, learner.auxiliary(H, "log"), "log")

    learned = float(np.log(getattr(learner, name))[0])
    found = minimize_scalar(value, bracket=(learned - 1.0, learned + 0.7), tol=1e-10)
    # Minimisers are only found to the square root of the precision of the value.
    np.testing.assert_allclose(learned, found.x, atol=2e-6)


@pytest.mark.parametrize(
    ("chain", "name", "scale"),
    [(c, name, scale) for scale in SCALES for c in chains(scale) for name in c._learn],
    ids=str,
)
def test_learning_never_increases_the_objective(chain, name, scale, place):
    case = next(c for c in all_cases() if c.scale == scale)
    problem, W, H = random_problem(case._replace(chain=chain), seed=3, place=place)
    problem = replace(problem, chain=_learner(chain, name))
    aux = problem.chain.auxiliary(H, scale)
    current = problem.objective(W, H, aux)
    for _ in range(4 if place == "dask" else 15):
        W = w_step(problem, W, H)
        aux = h_step(problem, W, H, aux)
        problem = replace(problem, chain=problem.chain.learn(H, aux))
        aux = problem.chain.auxiliary(H, scale)
        slack = 1e-10 * sum(map(abs, problem.parts(W, H, aux).values()))
        after = problem.objective(W, H, aux)
        assert after <= current + slack
        current = after


def test_learning_shows_in_the_estimator_and_leaves_the_given_chain_alone():
    X = np.random.default_rng(0).poisson(5.0, size=(20, 4)).astype(float)
    chain = GaP(2.0, "learn")
    model = TemporalNMF(2, chain=chain, random_state=0).fit(X)
    assert chain.beta == "learn"
    assert model.chain is chain
    assert model.chain_.beta.shape == (2,)
    # The rate at which the Gamma law's mean is the mean of the activations; the last sweep over
    # the activations came after the last estimate.
    np.testing.assert_allclose(2.0 / model.chain_.beta, model.activations_.mean(axis=0), rtol=0.02)


def test_automatic_values_preserve_the_mean_or_match_the_level():
    level, K = 12.0, 3
    h = np.array([1.0, 4.0, 9.0])
    for chain in (Rate(7.0), Shape(3.0), Shape(), HierRate(5.0, "auto", 2.0)):
        np.testing.assert_allclose(chain.resolve(level, K).conditional_mean(h), h, rtol=1e-14)
    for chain in (GaP(3.0), BGAR(2.0)):
        resolved = chain.resolve(level, K)
        assert resolved.alpha / resolved.beta == level / K
    drift = HierShape(1.0).resolve(level, K)
    np.testing.assert_allclose(drift.conditional_mean(h) - h, 0.005 * level / K, rtol=1e-12)
    heavy = HierRate(0.8, "auto", 2.0).resolve(level, K)
    rng = np.random.default_rng(0)
    jumps = np.log(rng.gamma(2.0, size=100_000) / rng.gamma(0.8, size=100_000))
    drift_of_log = jumps.mean() + np.log(heavy.beta_z / heavy.beta_h)
    assert abs(drift_of_log) < 5.0 * jumps.std() / np.sqrt(100_000)  # false alarm: 6e-7


@pytest.mark.parametrize("scale", SCALES)
def test_one_value_per_component_is_as_many_chains(scale):
    H = np.random.default_rng(0).gamma(2.0, 5.0, size=(3, 8))
    for chain in chains(scale):
        numbers = {k: v for k, v in chain.get_params().items() if not isinstance(v, bool | str)}
        if not numbers:
            continue
        factors = np.array([1.0, 1.1, 1.3])
        many = type(chain)(**{**chain.get_params(), **{k: v * factors for k, v in numbers.items()}})
        if chain.name == "bgar":
            many.set_params(rho=np.array([0.6, 0.55, 0.5]))
        total = 0.0
        for k in range(3):
            one = type(chain)(
                **{
                    name: float(v[k]) if isinstance(v, np.ndarray) else v
                    for name, v in many.get_params().items()
                }
            )
            row = H[[k]]
            total += one.value(row, one.auxiliary(row, scale), scale)
        together = many.value(H, many.auxiliary(H, scale), scale)
        np.testing.assert_allclose(together, total, rtol=1e-12)


def test_limits_between_chains():
    """HierRate with huge α_z tends to Rate: the auxiliary rate loses its noise."""
    H = np.random.default_rng(0).gamma(20.0, 1.0, size=(2, 9))
    rate = Rate(3.0, 2.0)
    a = 1e9
    hier = HierRate(alpha_z=a, beta_z=a, alpha_h=3.0, beta_h=2.0, marginal=True)
    # z ≈ 1/h_{n−1}, so h_n ~ Gamma(3, 2 z) is Gamma(3, 2/h_{n−1}).
    for scale in SCALES:
        a_value = hier.value(H, hier.auxiliary(H, scale), scale)
        np.testing.assert_allclose(a_value, rate.value(H, np.empty(0), scale), rtol=1e-6)


REFUSED = [
    (Rate(0.5, 1.0), ["alpha=0.5", "alpha >= 1", "map_scale='log'"]),
    (HierRate(1.0, 1.0, 0.9, 1.0), ["alpha_h=0.9", "alpha_h >= 1", "map_scale='log'"]),
    (BGAR(2.0, 1.0, 0.9), ["alpha*(1-rho)", "0.2 ", "1.8", "map_scale='log'"]),
]


@pytest.mark.parametrize(("chain", "words"), REFUSED, ids=str)
def test_the_linear_scale_refuses_what_has_no_mode(chain, words):
    chain.check("map", "log")
    with pytest.raises(ValueError, match="linear") as error:
        chain.check("map", "linear")
    for word in words:
        assert word in str(error.value)


def test_every_registered_name_is_its_class_name():
    for table in (registry.CHAINS, registry.LIKELIHOODS, registry.SOLVERS):
        for name in table:
            assert registry.create(table, name, "").name == name
