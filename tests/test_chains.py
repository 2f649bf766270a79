"""Hyper-parameters: automatic, learned, per component, refused."""

import ast
import re

import numpy as np
import pytest

from cases import SCALES, chains
from temporalnmf import TemporalNMF, registry
from temporalnmf.chains import ARG, BGAR, GAR, GaP, HierRate, HierShape, NoChain, Rate, Shape
from temporalnmf.likelihoods.base import Majorizer


def test_learning_shows_in_the_estimator_and_leaves_the_given_chain_alone():
    X = np.random.default_rng(0).poisson(5.0, size=(20, 4)).astype(float)
    chain = GaP(2.0, "learn")
    model = TemporalNMF(2, chain=chain, random_state=0).fit(X)
    assert chain.beta == "learn"
    assert model.chain is chain
    assert model.chain_.beta.shape == (2,)
    # The rate at which the mean of the distribution is that of the activations, but for the prior.
    np.testing.assert_allclose(2.0 / model.chain_.beta, model.activations_.mean(axis=0), rtol=0.05)


def test_automatic_values_preserve_the_mean_or_match_the_level():
    level, K = 12.0, 3
    h = np.array([1.0, 4.0, 9.0])
    for chain in (Rate(7.0), Shape(3.0), Shape(), HierRate(5.0, "auto", 2.0)):
        np.testing.assert_allclose(chain.resolve(level, K).conditional_mean(h), h, rtol=1e-14)
    for chain in (GaP(3.0), BGAR(2.0), ARG(2.0)):
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
def test_a_chain_with_one_value_per_component_is_the_sum_of_its_components(scale):
    H = np.random.default_rng(0).gamma(2.0, 5.0, size=(3, 8))
    for chain in chains(scale):
        numbers = {k: v for k, v in chain.get_params().items() if not isinstance(v, bool | str)}
        if not numbers:
            continue
        factors = np.array([1.0, 1.1, 1.3])
        many = type(chain)(**{**chain.get_params(), **{k: v * factors for k, v in numbers.items()}})
        if chain.name in ("bgar", "arg"):
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


def test_hier_rate_with_a_huge_shape_tends_to_rate():
    """The auxiliary rate loses its noise."""
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


# Small print, which mutation testing found untested (docs/reliability/survivors.md).


def test_hyper_parameters_are_shown_in_greek_letters_and_order():
    assert Rate(1.5).numbers() == "α = 1.5, β = 1.5"
    assert HierRate(3.0, 2.0, 4.0, 5.0).numbers() == "α_z = 3, β_z = 2, α_h = 4, β_h = 5"
    assert BGAR([1.0, 2.0], 1.0, 0.123456).numbers() == "α = [1 2], β = 1, ρ = 0.1235"


WRONG_VALUES = [
    (lambda: Rate([1.0, 2.0]).resolve(10.0, 3), r"shape \(2,\).*scalar or 3 values, one per comp"),
    (lambda: Rate(np.ones((2, 2))).check("draw"), r"shape \(2, 2\).*scalar or one value per comp"),
    (lambda: Rate({}).check("draw"), r"alpha={}.*number, or one per component"),
    (lambda: Rate([[1.0], 2.0]).check("draw"), r"alpha=.*number, or one per component"),
    (lambda: HierRate(marginal=1).check("draw"), r"marginal=1.*True or False"),
    (lambda: BGAR(2.0, np.inf).check("draw"), r"beta=inf.*positive and finite"),
    (lambda: BGAR(2.0, 1.0, 0.0).check("draw"), "strictly between 0 and 1"),
    (lambda: BGAR(2.0, 1.0, 1.0).check("draw"), "strictly between 0 and 1"),
    (lambda: Rate("auto").check("draw"), r"alpha='auto'.*per component, or 'learn'\.$"),
    (lambda: Rate(2.0, "atuo").check("map"), r"per component, or 'auto' or 'learn'\.$"),
    (lambda: GAR(2.0, "learn").check("map"), "for simulation only"),
    (lambda: HierRate(3.0, "learn", 4.0, "learn").resolve(1.0, 2), "only their ratio matters"),
]


@pytest.mark.parametrize(("attempt", "words"), WRONG_VALUES, ids=lambda x: "" if callable(x) else x)
def test_invalid_hyper_parameters_are_refused_by_name(attempt, words):
    with pytest.raises(ValueError, match=words):
        attempt()


def test_valid_hyper_parameters_are_accepted():
    Rate([1.0, 2.0]).check("map")
    assert Rate([1.0, 2.0]).resolve(10.0, 2).beta == [1.0, 2.0]
    HierRate(marginal=np.True_).check("draw")
    Rate("learn", "learn").check("draw")
    Rate(1.0, 1.0).check("map", "linear")  # the edge of what has a mode
    HierRate(1.0, 1.0, 1.0, 1.0).check("map", "linear")


def test_what_is_learned_begins_at_its_default():
    chain = HierRate("learn", "auto", 5.0, "learn").resolve(10.0, 2, "draw")
    assert chain._learned == ("alpha_z", "beta_h")
    assert (chain.alpha_z, chain.alpha_h, chain.beta_h) == (600.0, 5.0, 5.0)
    assert HierRate("learn").learns
    assert not chain.learns
    assert not HierRate().learns


@pytest.mark.parametrize("kind", [ARG, BGAR, GAR, GaP, HierRate, HierShape, Rate, Shape])
def test_defaults_are_the_documented_ones(kind):
    documented = {}
    for names, default in re.findall(r"^    (\w.*) : .*default=(.*)$", kind.__doc__, re.MULTILINE):
        documented |= dict.fromkeys(names.split(", "), ast.literal_eval(default))
    assert kind().get_params() == documented


def test_a_chain_knows_whether_its_objective_is_bounded_below():
    """On the linear scale a Gamma density with a shape below one is unbounded at zero."""
    for chain in (GaP(1.0), GaP([1.0, 2.0]), HierShape(1.0), ARG(1.0), NoChain()):
        assert not chain.bottomless()
    for chain in (GaP(0.9), GaP([2.0, 0.9]), HierShape(0.9), ARG(0.9), Shape(2.0), Rate(2.0)):
        assert chain.bottomless()


def test_reordered_components_keep_their_numbers():
    chain = BGAR([1.0, 2.0, 3.0], 0.5, [0.1, 0.2, 0.3]).reordered(np.array([2, 0, 1]))
    np.testing.assert_array_equal(chain.alpha, [3.0, 1.0, 2.0])
    np.testing.assert_array_equal(chain.rho, [0.3, 0.1, 0.2])
    assert chain.beta == 0.5


def test_backcasts_and_point_forecasts_have_their_closed_forms():
    h = np.array([2.0, 5.0])
    for chain in (Rate(3.0, 2.0), GaP(2.0, 1.0)):
        np.testing.assert_array_equal(chain.backcast(h, 3), [[2.0] * 3, [5.0] * 3])
    assert Rate(3.0, 2.0).point_forecast(h, 0).shape == (2, 0)
    for chain in (GaP(2.0, 1.0), NoChain()):  # without dynamics the last value is repeated
        np.testing.assert_array_equal(chain.point_forecast(h, 3), [[2.0] * 3, [5.0] * 3])
    # E[h_{n−s} | h_n] = ρ^s h_n + (1 − ρ^s) α/β, the farthest step first.
    share = np.array([0.125, 0.25, 0.5])
    for chain in (BGAR(4.0, 2.0, 0.5), ARG(4.0, 2.0, 0.5)):
        np.testing.assert_allclose(
            chain.backcast(h, 3), h[:, None] * share + (1.0 - share) * 2.0, rtol=1e-14
        )


@pytest.mark.parametrize("scale", SCALES)
def test_point_forecasts_by_modes_start_from_the_mode_before(scale):
    """A mode of the mode before; those of one step ahead are known (test_estimator.py)."""
    lost = 1.0 if scale == "linear" else 0.0
    h, steps = np.array([2.0, 30.0]), np.arange(1, 4)
    found = Rate(4.0, 5.0).point_forecast(h, 3, "mode", scale)
    np.testing.assert_allclose(found, h[:, None] * ((4.0 - lost) / 5.0) ** steps, rtol=1e-9)
    # b = (η−s)/(η+γ−2s), ε = (γ−s)/β
    share, fresh = (16.0 - lost) / (20.0 - 2.0 * lost), (4.0 - lost) / 2.0
    one = share * h + fresh
    by_hand = np.transpose([one, share * one + fresh])
    found_bgar = BGAR(20.0, 2.0, 0.8).point_forecast(h, 2, "mode", scale)
    np.testing.assert_allclose(found_bgar, by_hand, rtol=1e-9)
    ahead = Rate(4.0, 5.0).forecast(h, 3, point="mode", scale=scale, n_paths=2)
    np.testing.assert_allclose(ahead.point, found.T, rtol=1e-12)
    assert ahead.point_name == "conditional mode"


# Units, and chains that have nothing to do with the data


@pytest.mark.parametrize("unit", [0.25, 1.0, 8.0])
@pytest.mark.parametrize("chain", chains("log"), ids=str)
def test_in_a_unit_the_law_is_that_of_the_quotient(chain, unit):
    """−log p(log h) knows no unit: values are the same, and steps that are counted in it."""
    chain = chain.resolve(10.0, 2)
    other = chain.in_unit(unit)
    H = np.random.default_rng(1).gamma(5.0, 2.0, size=(2, 6))
    values = [
        one.value(h, one.auxiliary(h, "log"), "log") for one, h in ((chain, H), (other, H / unit))
    ]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-12)
    if chain.name != "none":
        h = H[:, 0]
        np.testing.assert_allclose(
            unit * other.conditional_mean(h / unit), chain.conditional_mean(h), rtol=1e-12
        )
        np.testing.assert_allclose(
            unit**2 * other.conditional_var(h / unit), chain.conditional_var(h), rtol=1e-12
        )


@pytest.mark.parametrize(
    ("chain", "level", "words"),
    [
        (GaP(2.0, 1.0), 1e-101, r"far from the data: .* expects 2\.0e\+101 times that"),
        (GaP(2.0, 1.0), 1e101, r"far from the data: .* expects 2\.0e-101 times that"),
        (Rate(2.0, 1e-101), 1.0, r"far from the data: .* expects 2\.0e\+101 times that"),
        (BGAR(2.0, 1.0, 0.5), 1e-101, r"far from the data: .* expects 1\.0e\+101 times that"),
        (Shape(1.0, 1.0), 1e-101, r"far from the data: .* spreads by 3\.2e\+50 times its mean"),
        (Shape(1.0, 1.0), 4e16, r"no room to move: .* spreads by 5\.0e-09 of its value"),
        (HierShape(1.0, 1.0), 8e16, r"no room to move: .* spreads by 5\.0e-09 of its value"),
        (Rate(4e16, 4e16), 3.0, r"no room to move: .* spreads by 5\.0e-09 of its value"),
        (GaP(4e16, 4e16), 1.0, r"no room to move: .* spreads by 5\.0e-09 of its value"),
    ],
)  # fmt: skip
def test_chains_far_from_the_data_or_without_room_to_move_are_refused(chain, level, words):
    with pytest.raises(ValueError, match=words):
        chain.check_level(level)


@pytest.mark.parametrize(
    ("chain", "level"),
    [
        (GaP(2.0, 1.0), 1e-99), (GaP(2.0, 1.0), 1e99), (Shape(1.0, 1.0), 1e-99),
        (Shape(1.0, 1.0), 9e15), (HierShape(1.0, 1.0), 1.9e16), (Rate(9e15, 9e15), 1.0),
        (HierRate(0.5, 1.0, 0.5, 1.0), 1.0), (HierRate(1.5, 1.0, 0.5, 1.0), 1.0),
        (NoChain(), 1e200),
    ],
)  # fmt: skip
def test_levels_within_the_range_of_a_chain_are_accepted(chain, level):
    assert chain.check_level(level) is None


def test_the_automatic_shape_is_100_over_the_level_of_a_component():
    assert Shape().resolve(level=8.0, n_components=2).alpha == 25.0  # 100 over the level of one


def test_forecasts_of_hier_rate_are_means_where_there_are_any_and_medians_elsewhere():
    h = np.array([3.0])
    with_mean, without = HierRate(1.5, 1.0, 2.0, 1.0), HierRate(0.8, 1.0, 2.0, 1.0)
    # β_z/β_h · α_h/(α_z − 1) is 4.
    np.testing.assert_allclose(with_mean.point_forecast(h, 2), [[12.0, 48.0]])
    assert with_mean.forecast(3.0, 1).point[0] == pytest.approx(12.0)
    assert without.point_forecast(h, 1)[0, 0] == pytest.approx(
        3.0 * without.transition(1.0).median()
    )
    # The mode on the log scale: β_z/β_h · α_h/α_z times the value before.
    for chain in (with_mean, without):
        mode = chain.point_forecast(h, 1, "mode")[0, 0]
        assert mode == pytest.approx(3.0 * 2.0 / chain.alpha_z)
        assert chain.forecast(3.0, 1, point="mode").point[0] == pytest.approx(mode)
    both = HierRate(np.array([1.5, 0.8]), 1.0, 2.0, 1.0).point_forecast(np.array([3.0, 3.0]), 3)
    np.testing.assert_allclose(both[0], with_mean.point_forecast(h, 3)[0])
    np.testing.assert_allclose(both[1], without.point_forecast(h, 3)[0])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("chain", [c for c in chains("linear") if c.name != "none"], ids=str)
def test_compiled_sweeps_stay_inside_of_their_arrays(chain, scale):
    """Python notices where compiled code would read, or write, what is not its own."""
    chain = chain.resolve(10.0, 2)
    rng = np.random.default_rng(2)
    H = rng.gamma(4.0, 2.0, size=(2, 5))
    p, q, r = rng.gamma(2.0, size=(3, 2, 5))
    rows, aux = chain._rows(2, scale), chain.auxiliary(H, scale)
    found, kept = H.copy(), aux.copy()
    chain._kernels.sweep.py_func(found, kept, p, q, r, rows, 0, chain.sweeps)
    expected = H.copy()
    expected_aux = chain.sweep(expected, aux, Majorizer(p, q, r), scale)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(kept, expected_aux, rtol=1e-9)
