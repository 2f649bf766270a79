"""Splitters, and the choice of a model by held-out data."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from temporalnmf import TemporalNMF
from temporalnmf.chains import Rate
from temporalnmf.metrics import is_error, kl_error
from temporalnmf.selection import (
    Candidate,
    HiddenBlocks,
    HiddenEntries,
    HiddenSteps,
    RollingOrigin,
    Selection,
    select,
)
from temporalnmf.selection.data import Gridded
from temporalnmf.selection.grids import OUR_GRIDS
from temporalnmf.selection.prediction import last_values, mean_activation
from temporalnmf.selection.search import choose

SPLITTERS = [
    HiddenSteps(4, random_state=0),
    HiddenBlocks(4, length=2, random_state=0),
    HiddenEntries(4, random_state=0),
    RollingOrigin(4, horizon=2),
]
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda s: type(s).__name__)


def series(n_steps=29, n_features=3, missing=()):
    X = np.random.default_rng(0).poisson(5.0, size=(n_steps, n_features)).astype(float)
    X[list(missing)] = np.nan
    return X


@every_splitter
def test_masks_are_disjoint_and_hide_only_what_is_there(splitter):
    X = series(missing=(0, 7))
    splits = list(splitter.split(X))
    assert len(splits) == 4
    for split in splits:
        total = split.train.astype(int) + split.validation + split.test
        assert total.max() == 1
        assert split.test.any()
        seen = ~np.isnan(X) if split.train.ndim == 2 else ~np.isnan(X).any(axis=1)
        assert not np.any((total > 0) & ~seen)
        np.testing.assert_array_equal(split.hidden, split.validation | split.test)
    assert any(np.any(a.test != b.test) for a, b in pairwise(splits))


@every_splitter
def test_splits_are_those_of_the_seed(splitter):
    X = series()
    for a, b in zip(splitter.split(X), splitter.split(X), strict=True):
        for one, two in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n_steps", [5, 10, 29, 53, 365])
def test_hidden_steps_are_never_neighbours_nor_first_and_always_last(n_steps):
    n_hidden = int(0.2 * n_steps) + int(0.2 * n_steps) % 2
    for split in HiddenSteps(20, random_state=1).split(series(n_steps)):
        hidden = np.flatnonzero(split.hidden)
        assert len(hidden) == n_hidden
        assert split.test.sum() == split.validation.sum() == n_hidden // 2
        assert np.all(np.diff(hidden) > 1)
        assert hidden[0] > 0
        assert split.test[-1]
        np.testing.assert_array_equal(split.train, ~split.hidden)


def test_hidden_steps_are_those_of_the_paper():
    """The draws of NIPS, whose starts come first."""
    random = np.random.RandomState(20200928)
    random.gamma(2.0, 0.5, size=(11463, 3, 5))
    random.gamma(2.0, 0.5, size=(3, 29, 5))
    split = next(HiddenSteps(5, random_state=random).split(series()))
    assert np.flatnonzero(split.test).tolist() == [7, 19, 28]
    assert np.flatnonzero(split.validation).tolist() == [2, 11, 17]


def test_hidden_steps_include_the_last_observed_one():
    X = series(missing=(0, 27, 28))
    for split in HiddenSteps(10, random_state=0).split(X):
        assert split.test[26]
        assert split.train[1]


def test_hidden_blocks_do_not_touch():
    for split in HiddenBlocks(30, length=3, n_blocks=4, random_state=0).split(series(40)):
        edges = np.diff(np.concatenate([[0], split.hidden.astype(int), [0]]))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        assert (ends - starts).tolist() == [3, 3, 3, 3]
        assert split.test.sum() == split.validation.sum() == 6
        assert split.train[0]
        assert split.train[-1]


def test_hidden_entries_are_a_fifth_of_those_observed():
    X = series(20, 10)
    X[3, 4] = np.nan
    for split in HiddenEntries(3, random_state=0).split(X):
        assert split.test.sum() == int(0.2 * 199)
        assert split.train.sum() == 199 - int(0.2 * 199)
    (split,) = HiddenEntries(1, random_state=0).split(sparse.csr_array(series(20, 10)))
    assert split.test.shape == (20, 10)


def test_rolling_origins_train_on_all_steps_before():
    splits = list(RollingOrigin(3, horizon=2, stride=4).split(series(20)))
    for split, origin in zip(splits, (10, 14, 18), strict=True):
        np.testing.assert_array_equal(np.flatnonzero(split.train), np.arange(origin))
        np.testing.assert_array_equal(np.flatnonzero(split.test), [origin, origin + 1])


def test_origins_with_nothing_ahead_are_passed_over():
    splits = list(RollingOrigin(3).split(series(20, missing=(17, 18))))
    assert [np.flatnonzero(split.test).tolist() for split in splits] == [[15], [16], [19]]


def test_crowded_steps_are_drawn_again():
    """A third of nine steps, rounded up to four, fits in only one of many ways."""
    for seed in range(50):
        for split in HiddenSteps(1, 1 / 3, seed).split(series(9)):
            assert split.hidden.sum() == 4
            assert np.all(np.diff(np.flatnonzero(split.hidden)) > 1)


IMPOSSIBLE = {
    "too short": (HiddenSteps(), series(4), r"fraction=0.2.*4 observed steps"),
    "too many": (HiddenSteps(fraction=0.6, random_state=0), series(), r"fraction=0.6.*neighbours"),
    "fraction": (HiddenSteps(fraction=1.5), series(), r"fraction=1.5.*between 0 and 1"),
    "no split": (HiddenSteps(n_splits=0), series(), r"n_splits=0.*at least 1"),
    "no room": (
        HiddenBlocks(length=10, n_blocks=4, random_state=0),
        series(),
        r"do not fit.*fewer",
    ),
    "longer than all": (
        HiddenBlocks(length=50, random_state=0),
        series(),
        r"blocks of 50 steps do not fit",
    ),
    "odd": (HiddenBlocks(n_blocks=3), series(), r"n_blocks=3.*even"),
    "no entry": (HiddenEntries(fraction=0.01), series(5), r"fraction=0.01.*15 observed entries"),
    "origins": (RollingOrigin(n_splits=30), series(), r"n_splits=30.*only 26 have 3 observed"),
    "nothing": (HiddenSteps(), series() * np.nan, r"no observed entry"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_requests_are_refused_with_a_reason(case):
    splitter, X, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        list(splitter.split(X))


# The simplest prediction


def test_last_values_repeat_the_training_step_before():
    X = np.arange(10.0).reshape(5, 2) + 1.0
    train = np.array([True, True, False, False, True])
    expected, even = X[[0, 0, 1, 1, 1]], np.ones(5)
    np.testing.assert_array_equal(last_values(X, train, 0.0, even), expected)
    np.testing.assert_array_equal(last_values(sparse.csr_array(X), train, 0.0, even), expected)
    smooth = last_values(X, train, 0.5, even)
    np.testing.assert_allclose(smooth.sum(axis=1), expected.sum(axis=1))
    np.testing.assert_allclose(smooth[2] / smooth[2, 0], (X[1] + 0.5) / (X[1, 0] + 0.5))
    # Half of the exposure behind step 1, all of it where it is repeated.
    sizes = np.array([1.0, 0.5, 1.0, 2.0, 1.0])
    np.testing.assert_allclose(last_values(X, train, 0.0, sizes)[2:4], X[[1, 1]] * [[2], [4]])


def test_hidden_steps_without_the_last_are_inner_ones():
    for split in HiddenSteps(20, random_state=0, last=False).split(series(29, missing=(28,))):
        assert split.train[[0, 27]].all()
        assert split.test.sum() == split.validation.sum() == 3
        assert np.all(np.diff(np.flatnonzero(split.hidden)) > 1)


def test_level_is_that_of_the_training_data():
    X = series(10, 4)
    train, even = np.arange(10) < 6, np.ones(10)
    assert mean_activation(X, train, 2, even) == pytest.approx(X[:6].sum(axis=1).mean() / 2)
    rows = sparse.csr_array(X)
    found = mean_activation(rows, train, 2, even)
    assert found == pytest.approx(mean_activation(X, train, 2, even))
    X[2, 1] = np.nan
    expected = np.nanmean(X[:6], axis=0).sum() / 3
    assert mean_activation(X, train, 3, even) == pytest.approx(expected)
    sizes = np.arange(1.0, 11.0)
    rate = (np.nansum(X[:6], axis=0) / (sizes[:6] @ ~np.isnan(X[:6]))).sum() / 3
    assert mean_activation(X, train, 3, sizes) == pytest.approx(rate)
    with pytest.raises(ValueError, match="zero wherever it is observed"):
        mean_activation(0.0 * X, train, 3, even)


# The search


def smooth_counts(n_steps=40, seed=0):
    """Two components that move by a few percent per step: time helps."""
    rng = np.random.default_rng(seed)
    H = 300.0 * np.exp(np.cumsum(rng.normal(0.0, 0.1, size=(n_steps, 2)), axis=0))
    W = rng.dirichlet(np.ones(12), size=2)
    return rng.poisson(H @ W).astype(float)


def test_errors_are_those_of_a_fit_by_hand():
    X = smooth_counts()
    splitter = HiddenSteps(2, random_state=3)
    found = select(
        X, chains=Rate(50.0), n_components=2, splitter=splitter, random_state=1, rule="lowest"
    )
    candidate = next(c for c in found.candidates if c.chain == "rate")
    seeds = np.random.RandomState(1).randint(2**31 - 1, size=(2, 1))
    for i, split in enumerate(splitter.split(X)):
        model = TemporalNMF(2, chain=Rate(50.0), random_state=int(seeds[i, 0]))
        model.fit(X, mask=split.train)
        hidden = split.hidden
        error = kl_error(X[hidden], (model.activations_ @ model.components_)[hidden])
        assert candidate.errors[i] == pytest.approx(error / X[hidden].size, rel=1e-12)
        rows = last_values(X, split.train, 0.1, np.ones(len(X)))
        repeated = kl_error(X[hidden], rows[hidden]) / X[hidden].size
        assert found.best_of("last_value").errors[i] == pytest.approx(repeated, rel=1e-12)
    assert candidate.params == {"alpha": 50.0, "beta": "auto"}


def test_the_winner_is_refitted_and_the_answer_names_both_rivals():
    X = smooth_counts()
    found = select(
        X, chains=["rate", "gap"], n_components=2, random_state=0,
        splitter=HiddenSteps(3, random_state=0),
    )  # fmt: skip
    assert found.model.activations_.shape == (40, 2)
    assert found.model.chain_.name == found.best.chain
    # Close to the lowest by its own rule: the same number of components, so the lowest itself.
    assert found.best.mean == min(c.mean for c in found.candidates if c.chain != "last_value")
    for words in ("plain NMF", "repeating the last value", "splits", str(found.best)):
        assert words in found.answer
    frame = found.to_frame()
    assert len(frame) == 1 + 3 + 3 + 1  # none, rate, gap, last_value
    assert frame["error"].is_monotonic_increasing
    assert frame["chosen"].sum() == 1
    assert set(frame["chain"]) == {"none", "rate", "gap", "last_value"}


def test_the_winner_knows_the_names_of_a_frame():
    import pandas as pd

    X = pd.DataFrame(smooth_counts(), columns=[f"band {i}" for i in range(12)])
    found = select(X, chains="none", n_components=2, random_state=0,
                   splitter=HiddenEntries(1, random_state=0))  # fmt: skip
    assert found.model.feature_names_in_.tolist() == list(X.columns)


@pytest.mark.long
def test_the_result_does_not_depend_on_the_number_of_processes():
    X = smooth_counts(30)
    one, two = (
        select(X, chains=["rate"], n_components=[1, 2], n_init=2, n_jobs=jobs, random_state=0,
               splitter=HiddenSteps(2, random_state=0))
        for jobs in (1, 2)
    )  # fmt: skip
    for a, b in zip(one.candidates, two.candidates, strict=True):
        np.testing.assert_array_equal(a.errors, b.errors)
    np.testing.assert_array_equal(one.model.components_, two.model.components_)


def test_results_do_not_depend_on_the_order_of_the_grid():
    X = smooth_counts(30)
    grid = [{"alpha": a} for a in (10.0, 100.0, 1000.0)]
    found = [
        select(X, chains=chains, n_components=ranks, random_state=0,
               splitter=HiddenSteps(2, random_state=0))
        for chains, ranks in (
            ({"rate": grid, "none": [{}]}, [1, 2]),
            ({"none": [{}], "rate": [grid[2], grid[0], grid[1]]}, [2, 1]),
            ({"rate": grid[1:2]}, [2]),
        )
    ]  # fmt: skip
    first, permuted, alone = (
        {(c.chain, str(c.params), c.n_components): c.errors for c in one.candidates}
        for one in found
    )
    assert first.keys() == permuted.keys() > alone.keys()
    for key, errors in (*permuted.items(), *alone.items()):
        np.testing.assert_array_equal(first[key], errors)
    np.testing.assert_array_equal(found[0].model.components_, found[1].model.components_)


def frames(X):
    """The same series in other containers: shuffled, newest first, and on paper."""
    import pandas as pd

    days = pd.date_range("2024-01-01", periods=len(X), name="day")
    frame = pd.DataFrame(X, index=days, columns=[f"band {i}" for i in range(X.shape[1])])
    return frame, frame.sample(frac=1.0, random_state=0), frame[::-1]


def errors_of(X, **more):
    found = select(X, chains={"rate": [{"alpha": 30.0}]}, n_components=2, random_state=0,
                   splitter=HiddenSteps(2, random_state=0), season=None, **more)  # fmt: skip
    errors = [c.errors for c in found.candidates if c.chain != "last_cycle"]  # needs dates
    return np.array(errors), found.model


def test_rows_are_put_in_the_order_of_their_times(tmp_path):
    from temporalnmf.reading import read_table

    X = smooth_counts(30)
    expected, model = errors_of(X)
    path = tmp_path / "days.csv"
    frames(X)[1].to_csv(path)
    shuffled = frames(X)[1]
    array = shuffled.stack().to_xarray().rename(level_1="band")
    for same in (*frames(X), path, read_table(path), array):
        errors, other = errors_of(same)
        np.testing.assert_array_equal(errors, expected, err_msg=type(same).__name__)
        np.testing.assert_array_equal(other.components_, model.components_)


def test_absent_periods_are_missing_steps():
    X = smooth_counts(30)
    frame = frames(X)[0]
    X[[7, 8]] = np.nan
    expected, _ = errors_of(X)
    with pytest.warns(UserWarning, match="missing steps") as told:
        errors, _ = errors_of(frame.drop(frame.index[[7, 8]]))
    np.testing.assert_array_equal(errors, expected)
    assert len(told) == 1


def test_exposure_and_mask_reach_fits_and_errors():
    """Exposure changes, the rate does not: without exposure= the level seems to jump."""
    rng = np.random.default_rng(0)
    exposure = np.tile([1.0, 4.0, 4.0, 1.0], 10)
    X = rng.poisson(exposure[:, None] * rng.dirichlet(np.ones(8)) * 200.0).astype(float)
    ahead = {"chains": {"rate": [{"alpha": 300.0}]}, "n_components": 1, "random_state": 0,
             "splitter": HiddenSteps(3, random_state=1)}  # fmt: skip
    blind, aware = select(X, **ahead), select(X, exposure=exposure, **ahead)
    for name in ("last_value", "rate"):
        assert aware.best_of(name).mean < blind.best_of(name).mean
    np.testing.assert_array_equal(aware.model.exposure_, exposure)
    # Counts at their rate: 0.5 per entry of a Poisson law, a little more for what is estimated.
    assert 0.4 < aware.best_of("rate").mean < 0.65
    mask = np.ones(X.shape, dtype=bool)
    mask[4:9, 2] = mask[30] = False
    wrong = np.where(mask, X, 1e6)
    masked = select(wrong, mask=mask, exposure=exposure, **ahead)
    missing = select(np.where(mask, X, np.nan), exposure=exposure, **ahead)
    for one, other in zip(masked.candidates, missing.candidates, strict=True):
        np.testing.assert_array_equal(one.errors, other.errors)
    with pytest.raises(ValueError, match=r"mask contains 0.5.*no other weights"):
        select(X, mask=0.5 * mask, **ahead)


def test_gaps_of_a_sparse_table_become_missing_values(monkeypatch):
    from temporalnmf.reading import TimeTable
    from temporalnmf.selection import data
    from temporalnmf.timeline import timeline_of

    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    seen = np.array([True, False, True])
    line = timeline_of(np.arange(3))
    table = TimeTable(X, line.labels, np.array(["a", "b"]), (), line, observed=seen)
    found, exposure = data.gridded(table)[:2]
    np.testing.assert_array_equal(found, [[1.0, 0.0], [np.nan, np.nan], [0.0, 2.0]])
    np.testing.assert_array_equal(exposure, np.ones(3))
    monkeypatch.setattr(data, "_MOST_BYTES", 47)
    with pytest.raises(ValueError, match=r"missing values.*would take"):
        data.gridded(table)
    whole = TimeTable(X, line.labels, np.array(["a", "b"]), (), line)
    assert sparse.issparse(data.gridded(whole)[0])


def test_rank_is_found_where_it_is_clear():
    rng = np.random.default_rng(5)
    H, W = rng.gamma(1.0, 400.0, size=(60, 2)), rng.dirichlet(np.full(30, 0.3), size=2)
    X = rng.poisson(H @ W).astype(float)
    found = select(
        X, chains="none", n_components=range(1, 4), random_state=0,
        splitter=HiddenEntries(4, random_state=0),
    )  # fmt: skip
    assert found.best.n_components == 2
    assert found.best_of("last_value") is None


def candidate(K, errors, chain="none", ratio=0.0):
    return Candidate(chain, {}, K, np.array(errors), ratio)


def test_the_one_standard_error_rule_takes_the_fewest_components_that_are_close():

    low = candidate(4, [1.0, 2.0, 3.0])
    # Worse by 0.1 ± 0.1 (standard error 0.058): not close. Worse by 0.1 ± 0.3: close.
    steady, shaky = candidate(2, [1.0, 2.1, 3.2]), candidate(3, [1.3, 2.2, 2.8])
    assert choose([low, steady, shaky], "lowest") is low
    assert choose([low, steady, shaky], "one_se") is shaky
    assert choose([low, candidate(1, [9.0, 9.0, 9.0])], "one_se") is low
    assert choose([candidate(2, [2.0]), candidate(3, [1.0])], "one_se").n_components == 3
    # Splits that overlap say less: what is worse by 0.1 ± 0.1 is close, too.
    overlapping = [candidate(4, low.errors, ratio=0.9), candidate(2, steady.errors, ratio=0.9)]
    assert choose(overlapping, "one_se").n_components == 2


def test_a_noisy_chain_is_not_chosen_over_the_plain_nmf_that_beats_it():
    """Within one standard error of the lowest for its noise alone, and worse than plain NMF."""
    low, plain = candidate(6, [1.0, 2.0, 3.0], "rate"), candidate(4, [1.1, 2.1, 3.1])
    noisy = candidate(2, [0.5, 3.5, 2.9], "bgar")
    assert noisy.mean - low.mean < np.std(noisy.errors - low.errors, ddof=1) / np.sqrt(3)
    assert noisy.mean > plain.mean
    assert choose([low, plain, noisy], "one_se") is low
    # Where it beats plain NMF, it may be chosen for its few components.
    better = candidate(2, [0.5, 3.3, 2.3], "bgar")
    assert plain.mean > better.mean > low.mean
    assert choose([low, plain, better], "one_se") is better
    # Plain NMF wins, and is taken as it is.
    assert choose([plain, noisy, candidate(2, [1.2, 2.2, 3.2], "rate")], "one_se") is plain


def selection(*candidates):
    model, rule = None, "one_se"
    return Selection(list(candidates), choose(candidates, rule), model, rule, 3, 0)


def test_the_answer_says_when_a_rival_wins():
    plain, rate = candidate(8, [1.0, 2.0, 3.0]), candidate(5, [1.5, 2.5, 3.5], "rate")
    last = candidate(0, [0.5, 1.5, 2.5], "last_value")
    said = selection(plain, rate).answer
    assert said.startswith("Chosen: plain NMF with 8 components, held-out error 2 per entry.")
    assert "No chain does better than plain NMF with 8 components here (rate with 5" in said
    assert "Repeating the last value does" not in said
    said = selection(plain, rate, last).answer
    assert "33.3 % higher than repeating the last value" in said
    assert "Repeating the last value does as well or better" in said


def test_errors_that_could_not_be_computed_never_win():
    bad = Candidate("none", {}, 1, np.array([np.nan, 1.0]))
    good = Candidate("none", {}, 2, np.array([5.0, 6.0]))
    assert choose([bad, good], "lowest") is good
    assert choose([bad, good], "one_se") is good


def test_hidden_values_do_not_reach_the_fits(monkeypatch):
    """With predictions instead of errors, other hidden values change nothing, to the bit."""
    from temporalnmf.selection import search

    monkeypatch.setattr(search, "error_of", lambda _: lambda v, predicted: float(predicted.sum()))
    X = smooth_counts(30)
    splitter = HiddenSteps(2, random_state=0)
    for split in splitter.split(X):
        other = X.copy()
        other[split.hidden] = 999.0
        for name in ("rate", "shape"):
            for setting in OUR_GRIDS[name]:
                errors = [
                    search.outcome((Gridded.undated(data), [split], {}), name, setting, 2, 0, 0)
                    for data in (X, other)
                ]
                assert errors[0] == errors[1]


def test_the_answer_mentions_only_rivals_that_were_tried():
    X = smooth_counts(30)
    splitter = HiddenEntries(2, random_state=0)
    ranks = select(X, chains="none", n_components=[1, 2], splitter=splitter, random_state=0)
    assert "No chain" not in ranks.answer
    constant = select(np.full((20, 4), 7.0), chains="rate", n_components=1, random_state=0)
    assert "The error of repeating the last value is 0" in constant.answer
    assert "Repeating the last value does as well or better" in constant.answer


def test_the_answer_counts_fits_that_did_not_converge():
    settings = {"n_components": 2, "splitter": HiddenSteps(2, random_state=0), "random_state": 0}
    X = smooth_counts(30)
    done = select(X, chains="gap", **settings)
    assert (done.n_fits, done.n_unconverged) == (8, 0)  # plain NMF and three of gap, two splits
    assert "max_iter" not in done.answer
    with pytest.warns(ConvergenceWarning, match="max_iter"):  # of the refit
        hasty = select(X, chains="gap", max_iter=2, **settings)
    assert hasty.n_unconverged > 0
    assert f"{hasty.n_unconverged} of 8 fits ended at max_iter" in hasty.answer


def test_missing_values_of_pandas_are_those_of_an_array():
    import pandas as pd

    X = smooth_counts(30)
    frame = pd.DataFrame(X).astype("Int64")
    X[4, 2], frame.iloc[4, 2] = np.nan, pd.NA
    expected, found, of_zero = (
        select(data, chains="none", n_components=1, random_state=0,
               splitter=HiddenEntries(1, random_state=0)).best.errors
        for data in (X, frame, np.nan_to_num(X))
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found).all()
    assert found != of_zero


def test_exponential_data_are_judged_by_the_itakura_saito_error():
    rng = np.random.default_rng(0)
    X = rng.exponential(np.outer(np.linspace(1, 9, 30), [1.0, 4.0, 2.0])) + 1e-6
    splitter = HiddenEntries(1, random_state=0)
    found = select(
        X, chains="none", n_components=2, splitter=splitter, likelihood="exponential",
        smoothing=0.0, random_state=0,
    )  # fmt: skip
    (split,) = splitter.split(X)
    seed = int(np.random.RandomState(0).randint(2**31 - 1, size=(1, 1))[0, 0])
    model = TemporalNMF(
        2, chain="none", likelihood="exponential", smoothing=0.0, random_state=seed
    ).fit(X, mask=split.train)
    predicted = (model.activations_ @ model.components_)[split.test]
    expected = is_error(X[split.test], predicted) / split.test.sum()
    assert found.best.errors[0] == pytest.approx(expected, rel=1e-12)
    assert is_error([2.0, 1.0], [1.0, 1.0]) == pytest.approx(2.0 - np.log(2.0) - 1.0)


def test_sparse_and_dense_data_have_the_same_errors():
    X = smooth_counts(30)
    dense, rows = (
        select(data, chains=["rate"], n_components=2, random_state=0,
               splitter=HiddenSteps(1, random_state=0))
        for data in (X, sparse.csr_array(X))
    )  # fmt: skip
    for a, b in zip(dense.candidates, rows.candidates, strict=True):
        np.testing.assert_allclose(a.errors, b.errors, rtol=1e-4)


REFUSED = {
    "misspelt": ({"chains": "ratte"}, r"chains='ratte'.*rate"),
    "rule": ({"rule": "two_se"}, r"rule='two_se'.*one_se"),
    "no rank": ({"n_components": []}, r"n_components is empty"),
    "zero rank": ({"n_components": [0, 1]}, r"n_components=0.*at least 1"),
    "empty grid": ({"chains": {"rate": []}}, r"'rate'.*at least one setting"),
    "no start": ({"n_init": 0}, r"n_init=0"),
    "chain": ({"chain": "rate"}, r"chain='rate'.*chains"),
    "warm start": ({"warm_start": True}, r"warm_start=True"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_requests_are_refused_by_name(case):
    arguments, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        select(series(), **arguments)


def test_pictures_of_a_selection_mark_the_choice():
    from matplotlib.figure import Figure

    X = smooth_counts(30)
    splitter = HiddenEntries(2, random_state=0)
    ranks = select(X, chains="none", n_components=[1, 2, 3], splitter=splitter, random_state=0)
    ax = ranks.plot(Figure().subplots())
    assert ax.get_xlabel() == "number of components"
    chosen = ax.lines[-1].get_xydata()[0]
    np.testing.assert_allclose(chosen, [ranks.best.n_components, ranks.best.mean])
    chains = select(
        X, chains=["rate"], n_components=2, splitter=HiddenSteps(2, random_state=0), random_state=0
    )
    labels = [t.get_text() for t in chains.plot(Figure().subplots()).get_yticklabels()]
    assert labels[-1] == str(chains.lowest).split(" with ")[0]
    assert "repeating the last value" in labels
