"""What the table of likelihoods promises works, and all else is refused with a remedy."""

from contextlib import nullcontext
from itertools import product
from typing import NamedTuple

import dask.array as da
import numpy as np
import pytest
import sync_likelihoods as page
from scipy import sparse

from clusters import without_a_client  # noqa: F401
from temporalnmf import TemporalNMF, registry
from temporalnmf.shards import write_shards
from temporalnmf.solvers import Gibbs
from temporalnmf.timeline import timeline_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:The fit did not converge", "ignore:.*ettled", "ignore:X does not have valid feature"
)

N, F = 16, 5
GIBBS = Gibbs(n_draws=8, n_tune=2, n_chains=1)
SPARSE = "sparse data, folders of shards"
CHECKED = "intervals checked by default, `calibrate`"
DRAWS = 'posterior draws, `solver="gibbs"`'
LINEAR = '`map_scale="linear"` with default numbers'


REMEDIES = ("Remedy: ", "Use ", "Give ", "choose ", "Compare ", "Fit again")


def data():
    """Positive whole numbers, which are in the domain of every likelihood."""
    rng = np.random.default_rng(0)
    rise = np.linspace(1.0, 9.0, N)
    means = np.column_stack([rise, 10.0 - rise]) @ [[8, 4, 1, 2, 1], [1, 3, 9, 1, 2]]
    return rng.poisson(means) + 1.0


def estimator(likelihood, **given):
    settings = {"chain": "rate", "max_iter": 20, "random_state": 0, **given}
    return TemporalNMF(2, likelihood=likelihood, **settings)


def shards(X, folder):
    names = [f"f{i}" for i in range(F)]
    return write_shards(folder, X, names=names, timeline=timeline_of(np.arange(N)), n_shards=2)


def is_refused(attempt, *given, **named):
    """Whether it is refused, with a remedy."""
    with pytest.raises(ValueError, match=r"\S") as caught:
        attempt(*given, **named)
    words = str(caught.value)
    assert any(word in words for word in REMEDIES), words


# One likelihood at a time


def _zeros(law, folder):
    X = data()
    X[3, 2] = 0.0
    estimator(law).fit(X)


def _fractions(law, folder):
    estimator(law).fit(data() + 0.5)


def _every_chain(law, folder):
    for chain in registry.CHAINS:
        estimator(law, chain=chain, max_iter=3, map_scale="log").fit(data())
    for solver in registry.SOLVERS:
        estimator(law, solver=solver, map_scale="linear").fit(data())


def _missing(law, folder):
    X = data()
    X[3, 2] = X[5] = np.nan
    estimator(law).fit(X, mask=np.random.default_rng(1).uniform(0.5, 2.0, X.shape))


def _dense(law, folder):
    here = estimator(law).fit(data())
    there = estimator(law).fit(da.from_array(data(), chunks=(N, 3)))
    assert here.components_.shape == there.components_.shape == (2, F)


def _sparse(law, folder):
    estimator(law).fit(sparse.csr_array(data()))
    estimator(law).fit(shards(data(), folder / "data"))


def _either_sparse_is_refused(law, folder):
    is_refused(estimator(law).fit, sparse.csr_array(data()))
    is_refused(estimator(law).fit, shards(data(), folder / "data"))


def _learned(law, folder):
    (name,) = estimator(law).fit(data()).likelihood_.learned
    return f"`{name}`"


def _no_parameter(law, folder):
    assert estimator(law).fit(data()).likelihood_.learned == {}


def _smoothing(law, folder):
    assert estimator(law, smoothing="learn").fit(data()).smoothing_ != 0.1


def _draws(law, folder):
    assert estimator(law, solver=GIBBS).fit(data()).posterior_.n_draws == 8


def _after_the_fit(law, folder):
    model = estimator(law).fit(data()[:-1])
    assert np.isfinite(model.score(data()))
    X = data()
    X[2, 1] = np.nan
    assert np.isfinite(model.impute(X)).all()
    for found in (model.smooth(n_samples=20), model.forecast(2, n_samples=20)):
        assert np.isfinite(found.interval(0.9)).all()
    assert model.append(data()[-1:]).activations_.shape == (N, 2)


def _checked(law, folder):
    model = estimator(law).fit(data())
    model.forecast(1, n_samples=20)
    assert model.calibration_ is not None
    model.calibrate(refit=False)


def _not_checked(law, folder):
    model = estimator(law).fit(data())
    model.forecast(1, n_samples=20)
    assert model.calibration_ is None
    is_refused(model.calibrate, refit=False)


# What works if the table says yes; where it says no, the same is refused, or the second happens.
TRIALS = {
    "zeros": _zeros,
    "fractions": _fractions,
    "every chain, `map_scale`, mode solver": _every_chain,
    "missing entries, weights of entries": _missing,
    "dense data, Dask arrays": _dense,
    SPARSE: (_sparse, _either_sparse_is_refused),
    "learned by default": (_learned, _no_parameter),
    '`smoothing="learn"`': _smoothing,
    DRAWS: _draws,
    "`score`, `impute`, `smooth`, `forecast`, `append`": _after_the_fit,
    CHECKED: (_checked, _not_checked),
}


def test_every_row_of_the_table_has_a_trial():
    assert list(TRIALS) == list(page.OF_LIKELIHOODS)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("law", page.likelihoods(), ids=lambda law: law.name)
@pytest.mark.parametrize("name", TRIALS)
def test_a_likelihood_does_what_the_table_says(law, name, tmp_path):
    said, trial = page.cell(page.OF_LIKELIHOODS[name](law)), TRIALS[name]
    works, instead = trial if isinstance(trial, tuple) else (trial, None)
    if said != page.NO:
        assert works(law, tmp_path) in (None, said)
    elif instead is not None:
        instead(law, tmp_path)
    else:
        is_refused(works, law, tmp_path)


@pytest.mark.parametrize("chain", page.chains(), ids=lambda chain: chain.name)
def test_a_chain_does_what_the_table_says(chain):
    said = {name: page.cell(of(chain)) for name, of in page.OF_CHAINS.items()}
    names = [] if said['`"learn"` by modes and draws'] == page.NO else chain.get_params()
    for name in sorted(set(names) - {"marginal"}):
        assert f"`{name}`" in said['`"learn"` by modes and draws']
        learns = type(chain)(**{name: "learn"})
        if chain.name == "bgar":  # its density is an integral: a second each
            assert learns.resolve(1.0, 2)._learned == (name,)
            continue
        assert list(estimator("poisson", chain=learns, max_iter=3).fit(data()).learned_) == [name]
    for scale, row in (("log", '`map_scale="log"`'), ("linear", LINEAR)):
        fit = estimator("poisson", chain=chain, map_scale=scale).fit
        is_refused(fit, data()) if said[row] == page.NO else fit(data())
    fit = estimator("poisson", chain=chain, solver=GIBBS).fit
    is_refused(fit, data()) if said[DRAWS] == page.NO else fit(data())
    ahead = estimator("poisson", chain=chain).fit(data()).forecast(2, n_samples=20)
    assert np.isfinite(ahead.values).all() == (said["point forecasts"] == page.YES)
    if said["intervals"] == page.NO:
        is_refused(ahead.interval, 0.9)
    else:
        assert np.isfinite(ahead.interval(0.9)).all()


# All at once


class Case(NamedTuple):
    likelihood: str
    chain: str
    scale: str
    storage: str
    mask: str
    solver: str

    def factors(self):
        return self

    def __str__(self):
        return "-".join(self)

    @property
    def works(self):
        """What the tables say of it."""
        law = registry.create(registry.LIKELIHOODS, self.likelihood, "likelihood")
        chain = registry.create(registry.CHAINS, self.chain, "chain")
        of_law = {name: bool(of(law)) for name, of in page.OF_LIKELIHOODS.items()}
        of_chain = {name: bool(of(chain)) for name, of in page.OF_CHAINS.items()}
        drawn = self.solver == "gibbs"
        return (
            (of_law[SPARSE] or self.storage not in ("csr", "shards"))
            and ((of_law[DRAWS] and of_chain[DRAWS] and self.mask != "weights") or not drawn)
            and (of_chain[LINEAR] or self.scale == "log" or drawn)
        )


ALL = [
    Case(*values)
    for values in product(
        registry.LIKELIHOODS, registry.CHAINS, ("log", "linear"),
        ("dense", "csr", "shards", "dask"), ("none", "entries", "weights"),
        ("accelerated", "mm", "gibbs"),
    )
]  # fmt: skip
WORKS = [case for case in ALL if case.works]
REFUSED = [case for case in ALL if not case.works]


def fitted(case, folder):
    X, mask, rng = data(), None, np.random.default_rng(1)
    if case.mask != "none":
        mask = (rng.random(X.shape) < 0.8).astype(float)
        mask[:, 0] = 1.0
    if case.mask == "weights":
        mask[2] *= 0.5
    if case.storage == "csr":
        X = sparse.csr_array(X)
    elif case.storage == "dask":
        X = da.from_array(X, chunks=(N, 3))
    elif case.storage == "shards":
        X = shards(X, folder / "data")
    solver = GIBBS if case.solver == "gibbs" else case.solver
    model = estimator(
        case.likelihood, chain=case.chain, map_scale=case.scale, solver=solver, max_iter=5
    )
    return model.fit(X, mask=mask)


@pytest.mark.usefixtures("alone")
@pytest.mark.pairwise
@pytest.mark.parametrize("case", WORKS, ids=str)
def test_all_that_the_tables_allow_works_together(case, tmp_path):
    model = fitted(case, tmp_path)
    here, drawn = case.storage in ("dense", "csr"), case.solver == "gibbs"
    assert np.isfinite(model.activations_).all()
    ahead = model.forecast(2, n_samples=20)
    assert np.isfinite(ahead.values).all()
    has_intervals = case.chain != "none"
    with nullcontext() if has_intervals else pytest.raises(ValueError, match="choose a chain"):
        assert np.isfinite(ahead.interval(0.9)).all()
    assert np.isfinite(model.score(data()))
    for given in (data(), None):
        assert np.isfinite(model.smooth(given, n_samples=20).values).all()
    checked = page.OF_LIKELIHOODS[CHECKED](model.likelihood_) and has_intervals and here
    assert (model.calibration_ is not None) == (checked and not drawn)
    if not drawn:
        if checked:
            model.calibrate(refit=False)
        else:
            is_refused(model.calibrate, refit=False)
    if here:
        assert model.append(data()[:1]).activations_.shape == (N + 1, 2)
    else:
        is_refused(model.append, data()[:1])


@pytest.mark.usefixtures("alone")
@pytest.mark.each_value
@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_the_tables_exclude_is_refused(case, tmp_path):
    is_refused(fitted, case, tmp_path)


def test_the_page_shows_the_tables_of_the_present_classes():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.synced(text) == text
    for name in (*registry.LIKELIHOODS, *registry.CHAINS):
        assert f"`{name}`" in text
