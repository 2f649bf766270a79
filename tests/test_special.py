"""Special functions of the kernels against many digits."""

import mpmath
import numpy as np
import pytest

from temporalnmf.kernels import special
from temporalnmf.kernels.floor import FLOOR
from temporalnmf.kernels.logarithm import log
from temporalnmf.kernels.special import gamma_constant, gamma_excess

DIGITS = 40
DIGAMMA_ZERO = 1.4616321449683623
RATIO_ERROR = 2e-15
LOG_ERROR = 5e-14


def over_arrays(function):
    """A function of numbers over arrays; flags that compiled code leaves behind are ignored."""
    return np.errstate(all="ignore")(np.vectorize(function, otypes=[float]))


digamma = over_arrays(lambda x: special._polygamma(x)[0])
trigamma = over_arrays(lambda x: special._polygamma(x)[1])
bessel_ratio = over_arrays(special._bessel_ratio)
# As `Process.log_density` calls it.
log_bessel_scaled = np.errstate(all="ignore")(special.log_bessel_scaled)


@pytest.fixture(autouse=True)
def precision():
    with mpmath.workdps(DIGITS):
        yield


def errors(values, references, scale=abs):
    """|value − reference| / scale(reference), the difference taken before rounding."""
    pairs = zip(values, references, strict=True)
    return np.array([float(abs(float(v) - ref) / scale(ref)) for v, ref in pairs])


def at_least_one(reference):
    return max(1, abs(reference))


# Digamma and trigamma.


def gamma_arguments():
    rng = np.random.default_rng(0)
    wide = 10.0 ** rng.uniform(-300, 300, 200)
    middle = 10.0 ** rng.uniform(-3, 3, 200)
    return np.concatenate((wide, middle, np.arange(1.0, 15.0), np.nextafter(10.0, [0.0, 20.0])))


def test_digamma_agrees_with_mpmath():
    x = gamma_arguments()
    x = x[abs(x - DIGAMMA_ZERO) > 0.01]
    assert errors(digamma(x), [mpmath.psi(0, v) for v in x]).max() < 2e-13


def test_digamma_agrees_with_mpmath_near_its_zero():
    x = DIGAMMA_ZERO + np.linspace(-0.05, 0.05, 201)
    assert errors(digamma(x), [mpmath.psi(0, v) for v in x], lambda _: 1).max() < 1.5e-15


def test_trigamma_agrees_with_mpmath():
    x = gamma_arguments()
    x = x[x > 1e-154]  # the value is finite
    assert errors(trigamma(x), [mpmath.psi(1, v) for v in x]).max() < 1e-15


def test_tetragamma_agrees_with_mpmath():
    x = gamma_arguments()
    x = x[(x > 1e-100) & (x < 1e150)]  # the value is finite and not zero
    values = [special._polygamma(v)[2] for v in x]
    assert errors(values, [mpmath.psi(2, v) for v in x]).max() < 2e-15


@np.errstate(all="ignore")
def test_gamma_cost_does_not_cancel():
    """Near x = s all that is large cancels; far below it 1 + (x − s)/s is nothing but rounding."""
    rng = np.random.default_rng(4)
    shape = 10.0 ** np.concatenate([rng.uniform(-3.0, 9.0, 400), [-3.0, 1.204, 1.205, 9.0, 12.0]])
    near, far = 1.0 + 10.0 ** rng.uniform(-9.0, -0.1, 205), 10.0 ** rng.uniform(-60.0, 9.0, 200)
    x = shape * np.concatenate([far, near])
    off = []
    for s, value in zip(shape, x, strict=True):
        exact = mpmath.loggamma(s) - s * mpmath.log(value) + mpmath.mpf(value)
        # The quotient x/s is rounded, too.
        found = gamma_constant(s) + gamma_excess(s, value)
        off.append(abs(found - exact) / (1 + abs(exact) + s * abs(np.log(value / s))))
    assert max(off) < 1e-14


def test_polygammas_have_their_limits():
    np.testing.assert_array_equal(
        digamma([0.0, np.inf, np.nan, -0.5]), [-np.inf, np.inf, np.nan, np.nan]
    )
    np.testing.assert_array_equal(
        trigamma([0.0, np.inf, np.nan, -0.5]), [np.inf, 0.0, np.nan, np.nan]
    )


# The Bessel functions, against Poisson's integral with t = tanh u,
#
#   I_ν(x) = (x/2)^ν / (√π Γ(a)) ∫ sech(u)^(2a) exp(x tanh u) du,   a = ν + ½,
#
# by the trapezoidal rule, which converges geometrically here: the step is a fraction of the width
# of the one peak, at tanh u = x / (a + √(a² + x²)). Orders below `lowest`, where the integrand
# has long tails, come from higher ones by the recurrence.


def log_integral(nu, x, steps_per_width, cutoff):
    a = nu + mpmath.mpf(0.5)
    r = mpmath.hypot(a, x)
    peak = mpmath.asinh(x / mpmath.sqrt(2 * a * (a + r)))
    step = mpmath.sqrt((a + r) / (4 * a * r)) / steps_per_width

    def exponent(u):
        e = mpmath.exp(-2 * abs(u))
        tanh_minus_one = -2 * (e if u > 0 else 1) / (1 + e)
        return x * tanh_minus_one - 2 * a * (abs(u) + mpmath.log((1 + e) / 2))

    top = exponent(peak)
    total = mpmath.mpf(1)
    for direction in (step, -step):
        k, term = 1, mpmath.inf
        while term > cutoff:
            term = mpmath.exp(exponent(peak + k * direction) - top)
            total += term
            k += 1
    factor = nu * mpmath.log(x / 2) - mpmath.log(mpmath.pi) / 2 - mpmath.loggamma(a)
    return top + mpmath.log(total * step) + factor


def bessel_reference(nu, x, steps_per_width=2, cutoff=1e-25, lowest=12):
    """I_{ν+1}(x) / I_ν(x) and log(I_ν(x) exp(−x))."""
    nu, x = mpmath.mpf(nu), mpmath.mpf(x)
    shift = max(0, int(mpmath.ceil(lowest - nu)))
    log_low = log_integral(nu + shift, x, steps_per_width, cutoff)
    log_high = log_integral(nu + shift + 1, x, steps_per_width, cutoff)
    low, high = mpmath.mpf(1), mpmath.exp(log_high - log_low)
    for k in range(shift, 0, -1):
        low, high = 2 * (nu + k) / x * low + high, low
    return high / low, log_low + mpmath.log(low)


def bessel_points(name):
    rng = np.random.default_rng(1)
    return {
        "small order": (rng.uniform(-0.99, 5.0, 150), 10.0 ** rng.uniform(-12, 12, 150)),
        "any order": (10.0 ** rng.uniform(-2, 4, 150), 10.0 ** rng.uniform(-12, 12, 150)),
        "large order": (10.0 ** rng.uniform(4, 8, 100), 10.0 ** rng.uniform(-12, 12, 100)),
        "either side of r = 40": (rng.uniform(-0.99, 50.0, 200), rng.uniform(0.01, 50.0, 200)),
        "tiny argument": (rng.uniform(-0.99, 50.0, 50), 10.0 ** rng.uniform(-150, -12, 50)),
        "order close to -1": (
            10.0 ** rng.uniform(-12, -2, 50) - 1.0,
            10.0 ** rng.uniform(-6, 3, 50),
        ),
    }[name]


@pytest.mark.quick("order close to -1")
@pytest.mark.parametrize(
    "name",
    [
        "small order",
        pytest.param("any order", marks=pytest.mark.long),
        pytest.param("large order", marks=pytest.mark.long),
        "either side of r = 40",
        pytest.param("tiny argument", marks=pytest.mark.long),
        "order close to -1",
    ],
)
def test_bessel_functions_agree_with_the_reference(name):
    nu, x = bessel_points(name)
    ratios, logs = zip(*map(bessel_reference, nu, x), strict=True)
    assert errors(bessel_ratio(nu, x), ratios).max() < RATIO_ERROR
    assert errors(log_bessel_scaled(nu, x), logs, at_least_one).max() < LOG_ERROR


def test_the_reference_of_bessel_functions_agrees_with_mpmath():
    for nu, x in [(-0.99, 1e-12), (0.3, 30.0), (2.5, 1e12), (1e4, 1e3), (1e8, 1e12), (1e8, 1e-12)]:
        ratio, log = bessel_reference(nu, x)
        with mpmath.workdps(DIGITS + 20):
            finer = bessel_reference(nu, x, steps_per_width=3, cutoff=1e-40, lowest=20)
        assert abs(ratio / finer[0] - 1) < 1e-17
        assert abs(log - finer[1]) / at_least_one(log) < 1e-17
    for nu, x in [(-0.99, 1e-3), (0.3, 30.0), (7.0, 500.0), (200.0, 10.0)]:
        ratio, log = bessel_reference(nu, x)
        low, high = mpmath.besseli(nu, x), mpmath.besseli(mpmath.mpf(nu) + 1, x)
        assert abs(ratio / (high / low) - 1) < 1e-17
        assert abs(log - (mpmath.log(low) - x)) < 1e-17


def test_bessel_functions_of_half_orders_are_elementary():
    x = np.logspace(-12, 12, 500)
    common = 0.5 * np.log(2.0 / (np.pi * x)) - np.log(2.0)
    cosh, sinh = common + np.log1p(np.exp(-2.0 * x)), common + np.log(-np.expm1(-2.0 * x))
    np.testing.assert_allclose(bessel_ratio(-0.5, x), np.tanh(x), rtol=RATIO_ERROR)
    np.testing.assert_allclose(log_bessel_scaled(-0.5, x), cosh, rtol=LOG_ERROR, atol=LOG_ERROR)
    np.testing.assert_allclose(log_bessel_scaled(0.5, x), sinh, rtol=LOG_ERROR, atol=LOG_ERROR)


def test_bessel_functions_satisfy_their_recurrences():
    nu = np.concatenate((np.linspace(0.01, 80.0, 60), np.logspace(2, 6, 20)))[:, None]
    x = np.logspace(-6, 6, 100)
    ratio = bessel_ratio(nu, x)
    np.testing.assert_allclose(
        1.0 / bessel_ratio(nu - 1.0, x), 2.0 * nu / x + ratio, rtol=2.0 * RATIO_ERROR
    )
    low, high = log_bessel_scaled(nu, x), log_bessel_scaled(nu + 1.0, x)
    assert (abs(high - low - np.log(ratio)) < 2.0 * LOG_ERROR * np.maximum(1.0, abs(low))).all()


@np.errstate(all="ignore")
def test_bessel_functions_have_their_limits():
    nu = np.array([-0.5, 0.0, 0.5, 100.0])
    np.testing.assert_array_equal(bessel_ratio(nu, 0.0), 0.0)
    np.testing.assert_array_equal(log_bessel_scaled(nu, 0.0), [np.inf, 0.0, -np.inf, -np.inf])
    for function in (bessel_ratio, log_bessel_scaled):
        assert np.isnan(
            function([-1.0, -2.5, 1.0, np.nan, 1.0], [1.0, 1.0, -1.0, 1.0, np.nan])
        ).all()


# All of them.


def test_the_ufunc_broadcasts_the_scalar_function():
    rows, columns = np.array([[0.5], [3.0], [70.0]]), np.array([0.1, 1.0, 8.0, 300.0])
    values = log_bessel_scaled(rows, columns)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, np.vectorize(special._log_bessel_scaled)(rows, columns))


def test_special_functions_are_finite_over_the_whole_range():
    x = np.logspace(-150, 300, 451)
    for values in (digamma(x), trigamma(x), bessel_ratio(x[:, None], x)):
        assert np.isfinite(values).all()
    assert np.isfinite(log_bessel_scaled(np.logspace(-12, 8, 21)[:, None], x)).all()


def test_log_of_the_kernels_is_exact_to_the_last_place():
    """Within one unit in the last place, from the floor's square to huge counts, and next to 1."""
    rng = np.random.default_rng(0)
    x = np.concatenate([
        np.exp(rng.uniform(-300.0, 300.0, 3000)),
        rng.uniform(0.5, 2.0, 3000),
        1.0 + rng.uniform(-1e-6, 1e-6, 1000),
        [1.0, FLOOR, np.sqrt(0.5), np.nextafter(np.sqrt(0.5), 0.0), np.sqrt(2.0), 2.3e-308],
    ])  # fmt: skip
    with mpmath.workdps(40):
        for number in x:
            exact = mpmath.log(mpmath.mpf(float(number)))
            assert abs(mpmath.mpf(log(number)) - exact) <= 2.3e-16 * abs(exact)
