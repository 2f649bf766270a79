"""Parameters of likelihoods that are invalid, or that the data do not determine; wrong entries."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from temporalnmf import TemporalNMF
from temporalnmf.likelihoods import Gamma, Gaussian, NegativeBinomial, NegativeBinomial2, Tweedie
from temporalnmf.likelihoods.parametric import OneParameter

# How each law reaches its limit, where the data have less noise than any of its laws.
LIMITS = {
    NegativeBinomial: (1e-8, 1e-2),
    NegativeBinomial2: (1e3, 1e8),
    Gamma: (1e3, 1e8),
    Tweedie: (1e-12, 1e-3),
    Gaussian: (1e-12, 1e-2),
}
LAWS = pytest.mark.parametrize("law", LIMITS, ids=lambda law: law.name)


def counts(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.outer(np.linspace(5.0, 20.0, 15), [4.0, 2.0, 1.0])) + 1.0


def fitted(X, law, **given):
    return TemporalNMF(1, likelihood=law, random_state=0, **given).fit(X)


def test_every_law_with_a_parameter_is_tested():
    assert set(OneParameter.__subclasses__()) == set(LIMITS)


@LAWS
@pytest.mark.parametrize(
    "wrong",
    [np.ones(3), [1.0] * 2000, np.array(2.0), [1.0, 2.0], (1.0,), pd.Series([1.0, 2.0]),
     [[1.0], [2.0, 3.0]]],
    ids=["array", "long", "0-d", "list", "tuple", "series", "ragged"],
)  # fmt: skip
def test_a_number_per_feature_is_refused_with_a_remedy(law, wrong):
    likelihood = law(**{law.parameter: wrong})
    with pytest.raises(ValueError, match=rf"{law.__name__}\({law.parameter}=") as caught:
        fitted(counts(), likelihood)
    words = str(caught.value)
    assert "give a positive number, or 'learn'. All features share it" in words
    assert len(words) < 250


@LAWS
@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan, np.inf, True, "auto", None])
def test_numbers_that_make_no_sense_are_refused(law, wrong):
    name = f"{law.__name__}\\({law.parameter}={wrong!r}\\): give a positive number, or 'learn'"
    with pytest.raises(ValueError, match=name) as caught:
        fitted(counts(), law(**{law.parameter: wrong}))
    number = isinstance(wrong, float)
    assert ("Poisson()" in str(caught.value)) == (number and law().counts)


@LAWS
def test_data_of_zeros_or_of_one_step_are_refused(law):
    with pytest.raises(ValueError, match=r"X (is|has a) zero"):
        fitted(np.zeros((6, 3)), law())
    with pytest.raises(ValueError, match=r"n_samples=1.*at least 3"):
        fitted(counts()[:1], law())


@LAWS
def test_without_noise_the_parameter_ends_at_the_limit_of_the_law(law):
    """Counts and amounts exactly as expected; forecasts remain possible."""
    X = np.outer(np.linspace(1.0, 3.0, 15) * 64.0, [4.0, 2.0, 1.0]).round()
    X = X if law().whole else np.outer(np.linspace(1.0, 3.0, 15), [4.0, 2.0, 1.0])
    model = fitted(X, law(), smoothing=0.0, tol=1e-9)
    least, most = LIMITS[law]
    (value,) = model.likelihood_.learned.values()
    assert least <= value <= most, value
    assert np.isfinite(model.forecast(3, n_samples=50).interval(0.9)).all()


@LAWS
def test_one_burst_leaves_the_parameter_finite(law):
    """Nearly all entries tell nothing, one is far from all others."""
    X = np.full((15, 3), float(not law().takes_zeros))
    X[7, 1] = 1e6
    model = fitted(X, law())
    (value,) = model.likelihood_.learned.values()
    low, high = law.bounds
    assert low <= value <= high
    assert np.isfinite(model.forecast(3, n_samples=50).values).all()
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("law", "make"),
    [
        (NegativeBinomial(), np.asarray), (NegativeBinomial(), sparse.csr_array),
        (NegativeBinomial2(), np.asarray),
    ],
    ids=["negative_binomial", "sparse", "negative_binomial_2"],
)  # fmt: skip
def test_fractions_name_the_likelihoods_that_fit_them(law, make):
    X = counts()
    X[3, 2] = 2.5
    words = (
        r"X has a fraction.*2\.5 at row 3, column 2.*round it.*likelihood='tweedie' for amounts "
        r"with zeros, likelihood='gamma' for positive ones; likelihood='poisson' takes fractions"
    )
    with pytest.raises(ValueError, match=words):
        fitted(make(X), law)


@pytest.mark.parametrize("law", ["gamma", "exponential"])
def test_zeros_name_the_likelihoods_that_take_them(law):
    X = counts()
    X[3, 2] = 0.0
    words = r"X has a zero.*row 3, column 2.*floor.*likelihood='tweedie' for amounts.*'poisson'"
    with pytest.raises(ValueError, match=words):
        fitted(X, law)
