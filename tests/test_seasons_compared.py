"""Seasons in searches and comparisons: fits know the times, and the last cycle is a rival."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from commands import invoke
from temporalnmf import TemporalNMF, estimator
from temporalnmf.chains import Rate
from temporalnmf.experiments import chosen, our_protocol, paper_protocol, run
from temporalnmf.experiments import protocol as protocols
from temporalnmf.metrics import kl_error
from temporalnmf.selection import HiddenEntries, HiddenSteps, RollingOrigin, seasons, select
from temporalnmf.selection.prediction import last_cycles, last_values
from temporalnmf.selection.seasons import cycle_of, long_enough, positions_in
from temporalnmf.timeline import timeline_of
from test_terms import daily, known

STRONG = np.exp([0.5, 0.4, 0.3, 0.2, 0.0, -0.9, -0.5])
X = daily(70, week=STRONG)
SPLITTER = HiddenSteps(2, random_state=0)


def searched(X=X, chains=None, **more):
    chains = {"rate": [{"alpha": 30.0}]} if chains is None else chains
    settings = {"n_components": 2, "splitter": SPLITTER, "random_state": 0, "rule": "lowest"}
    return select(X, chains=chains, **{**settings, **more})


# The rival


@pytest.mark.parametrize("seed", range(5))
def test_last_cycles_repeat_the_last_training_step_of_the_same_position(seed):
    """Against a loop over all earlier steps."""
    rng = np.random.default_rng(seed)
    X, sizes = rng.gamma(1.0, 5.0, (23, 3)), rng.gamma(3.0, 1.0, 23)
    train, positions = rng.random(23) < 0.7, rng.integers(4, size=23)
    train[0] = True
    found = last_cycles(X, train, 0.0, sizes, positions)
    for n in range(23):
        before = [m for m in range(n) if train[m]]
        same = [m for m in before if positions[m] == positions[n]]
        m = same[-1] if same else before[-1] if before else 0
        np.testing.assert_allclose(found[n], X[m] * sizes[n] / sizes[m])
    thin = last_cycles(sparse.csr_array(X), train, 0.0, sizes, positions)
    np.testing.assert_array_equal(thin, found)
    smooth = last_cycles(X, train, 2.0, sizes, positions)
    np.testing.assert_allclose(smooth.sum(axis=1), found.sum(axis=1))
    np.testing.assert_array_equal(
        last_cycles(X, train, 2.0, sizes, np.zeros(23)), last_values(X, train, 2.0, sizes)
    )


def test_positions_are_weekdays_days_of_a_year_and_steps():
    line = timeline_of(pd.date_range("2003-12-25", periods=800))
    days = pd.DatetimeIndex(line.labels)
    (week,) = long_enough("week", line.clock)
    np.testing.assert_array_equal(positions_in(week, line.clock), days.day_of_week)
    (year,) = long_enough(["year"], line.clock)
    ordinary = days.year == 2005
    np.testing.assert_array_equal(
        positions_in(year, line.clock)[ordinary], np.arange(365)[: ordinary.sum()]
    )
    (five,) = long_enough(5, timeline_of(np.arange(20)).clock)
    assert positions_in(five, timeline_of(np.arange(20)).clock).tolist() == [0, 1, 2, 3, 4] * 4


def test_the_cycle_is_the_shortest_season_or_candidate():
    clock = timeline_of(pd.date_range("2001-01-01", periods=800)).clock
    assert cycle_of("auto", clock).name == cycle_of(None, clock).name == "week"
    assert cycle_of("year", clock).name == "year"
    assert cycle_of([9, "year"], clock).name == "9 steps"
    undated = timeline_of(np.arange(50)).clock
    assert cycle_of("auto", undated) is None
    assert cycle_of(12, undated).name == "12 steps"


def test_the_answer_says_that_repeating_the_last_week_is_better():
    exact = pd.DataFrame(np.outer(np.tile(STRONG, 10), [30.0, 10.0, 5.0]).round(), index=X.index)
    more = {"chains": "none", "n_components": 1, "smoothing": 0.0, "splitter": RollingOrigin(2)}
    found = searched(exact, **more)
    rival = found.best_of("last_cycle")
    assert rival.mean == pytest.approx(0.0, abs=1e-9)
    assert (rival.params, rival.n_components) == ({"cycle": "week"}, 0)
    assert found.best.chain == "none"
    assert "Repeating the last week does as well or better: use it instead." in found.answer
    frame = found.to_frame()
    assert frame[frame.chain == "last_cycle"].params.tolist() == ["cycle=week"]
    numbered = searched(exact.to_numpy(), season=7, **more)
    assert "Repeating the last cycle of 7 steps does as well" in numbered.answer
    assert numbered.best_of("last_cycle").mean == rival.mean
    assert searched(exact.to_numpy(), **more).best_of("last_cycle") is None
    entries = searched(exact, "none", n_components=1, splitter=HiddenEntries(2, random_state=0))
    assert entries.best_of("last_cycle") is None


# Searches


def by_hand(K, chain, split, seed, X=X, covariates=None, **options):
    model = TemporalNMF(K, chain=chain, random_state=seed, **options)
    model.fit(X, mask=split.train, covariates=covariates)
    values, predicted = X.to_numpy()[split.hidden], model.activations_ @ model.components_
    return kl_error(values, predicted[split.hidden]) / values.size


def test_the_season_is_chosen_once_for_all_fits(monkeypatch):
    calls, of_fits = [], []

    def counted(calls):
        def chosen(config, *more):
            calls.append(config.season)
            return choose(config, *more)

        return chosen

    choose = seasons.choose_terms
    monkeypatch.setattr(seasons, "choose_terms", counted(calls))
    monkeypatch.setattr(estimator, "choose_terms", counted(of_fits))
    found = searched()
    assert calls == ["auto"]
    assert of_fits == [None] * 2 + [["week"]] * 3  # plain NMF, the chain, and the refit
    monkeypatch.undo()
    assert list(found.model.season_) == ["week"]
    assert found.model.season_reason_.startswith("week: errors of held-out steps are")
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=(2, 1))[:, 0].tolist()
    plain, rate, *_ = found.candidates
    for i, split in enumerate(SPLITTER.split(X.to_numpy())):
        expected = by_hand(2, Rate(30.0), split, seeds[i], season="week")
        assert rate.errors[i] == pytest.approx(expected, rel=1e-12)
        assert plain.errors[i] == pytest.approx(by_hand(2, "none", split, seeds[i]), rel=1e-12)
    assert searched(season=None).best_of("rate").mean > 2.0 * rate.mean
    assert searched(X.to_numpy()).best_of("rate").mean > 2.0 * rate.mean


def test_a_search_without_a_season_says_why():
    flat = daily(70, week=np.ones(7))
    found = searched(flat)
    assert found.model.season_ == {}
    assert "no week" in found.model.season_reason_
    assert found.best_of("last_cycle").params == {"cycle": "week"}
    assert "not dates" in searched(X.to_numpy()).model.season_reason_


def test_covariates_and_trends_take_part():
    values = known(70)
    more = {"season": "week", "trend": 0.8, "splitter": RollingOrigin(2)}
    found = searched(covariates=values, **more)
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=(2, 1))[:, 0].tolist()
    for i, split in enumerate(RollingOrigin(2).split(X.to_numpy())):
        options = {"season": "week", "trend": 0.8, "covariates": values}
        expected = by_hand(2, Rate(30.0), split, seeds[i], **options)
        assert found.best_of("rate").errors[i] == pytest.approx(expected, rel=1e-12)
    assert set(found.model.effects_) == {"rain", "sale"}
    assert found.model.trend_ is not None
    # Rows are found by their times, and arrays have those of X.
    shuffled = searched(X.sample(frac=1.0, random_state=1), covariates=values, **more)
    np.testing.assert_array_equal(shuffled.best.errors, found.best.errors)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"covariates": known(70)}, r"covariates=.*rain.*no effect: plain NMF.*chains="),
        ({"trend": 0.8}, r"trend=0.8 has no effect"),
        ({"holidays": {"strike": ["2001-01-09"]}}, r"holidays=.*no effect"),
        ({"season": "year"}, r"season='year': a cycle has 365.2 steps"),
    ],
)
def test_effects_that_nothing_can_use_are_refused(more, words):
    with pytest.raises(ValueError, match=words):
        searched(chains="none", **more)


# Comparisons

SMALL = our_protocol(2, n_splits=1, n_inits=1, n_origins=2, max_iter=40, tol=1e-4)
FEW = replace(
    SMALL, grids={m: SMALL.grids[m][:1] for m in ("last_value", "last_cycle", "none", "rate")}
)


def test_compare_fits_chains_with_the_season_and_repeats_the_last_week(tmp_path, monkeypatch):
    records = run(FEW, X, tmp_path / "auto")
    config = json.loads((tmp_path / "auto" / "config.json").read_text())
    assert (config["season"], config["season_chosen"]) == (["week"], True)
    assert "from 2001-01-01, every day" in config["data"]
    without = run(replace(FEW, season=None), X, tmp_path / "none")
    for with_it, other in zip(records, without, strict=True):
        if with_it["model"] == "rate":
            gap = "origin" not in with_it
            error = "kle_s" if gap else "kle_f"
            assert with_it[error] < (0.6 if gap else 1.0) * other[error]
        else:
            assert str({**with_it, "seconds": 0}) == str({**other, "seconds": 0})
    rivals = [r for r in records if r["model"] == "last_cycle"]
    assert all(r["params"] == {"cycle": "week"} for r in rivals)
    at_origin = [r for r in rivals if "origin" in r]
    for r in at_origin:  # by hand
        n, values = r["origin"], X.to_numpy(dtype=float)
        repeated = values[n - 7] + 0.1
        repeated *= values[n - 7].sum() / repeated.sum()
        assert r["kle_f"] == pytest.approx(kl_error(values[n], repeated), rel=1e-12)
    assert {row["model"] for row in chosen(records)} == set(FEW.grids)

    def chosen_again(*_):
        pytest.fail("the season is in the folder")

    monkeypatch.setattr(protocols, "chosen_terms", chosen_again)
    assert str(run(FEW, X, tmp_path / "auto")) == str(records)
    with pytest.raises(ValueError, match=r"season was \['week'\], now it is None"):
        run(replace(FEW, season=None), X, tmp_path / "auto")
    with pytest.raises(ValueError, match=r"season was None, now it is week"):
        run(replace(FEW, season="week"), X, tmp_path / "none")
    later = X.set_axis(X.index + pd.Timedelta(1, "D"))
    with pytest.raises(ValueError, match=r"data was .* from 2001-01-01.* from 2001-01-02"):
        run(replace(FEW, season=("week",)), later, tmp_path / "auto")


def test_a_folder_without_seasons_goes_on_in_later_versions(tmp_path):
    """Undated data, and the paper's way, have the description of before."""
    for name, protocol, data in (
        ("undated", FEW.only(["last_value", "none"]), X.to_numpy()),
        ("paper", replace(paper_protocol(2, n_splits=1, n_inits=1), grids={"none": [{}]}), X),
    ):
        records = run(protocol, data, tmp_path / name)
        path = tmp_path / name / "config.json"
        config = json.loads(path.read_text())
        assert config.pop("season") is None
        config.pop("season_chosen", None)
        assert set(config["data"]) <= set("0123456789abcdefhs x,")
        path.write_text(json.dumps(config))
        assert str(run(protocol, data, tmp_path / name)) == str(records)


def test_early_origins_have_no_season_of_fewer_than_two_cycles(tmp_path):
    months = X.iloc[:28].set_axis(pd.date_range("2001-01-01", periods=28, freq="MS"))
    protocol = replace(FEW.only(["rate"]), season="year", n_origins=8, max_iter=20)
    origins = [r["origin"] for r in run(protocol, months, tmp_path) if "origin" in r]
    assert min(origins) < 23 < max(origins)
    clock = timeline_of(months.index).clock
    assert [len(long_enough("year", clock.take(n))) for n in (23, 24)] == [0, 1]
    with pytest.raises(ValueError, match="at least two cycles are needed"):
        run(protocol, months.iloc[:20], tmp_path / "short")


def test_the_last_cycle_needs_a_cycle(tmp_path):
    undated = X.to_numpy()
    assert {r["model"] for r in run(FEW, undated, tmp_path)} == {"last_value", "none", "rate"}
    with pytest.raises(ValueError, match="last_cycle' needs a season"):
        run(FEW.only(["last_cycle"]), undated, tmp_path / "alone")
    given = replace(FEW.only(["last_cycle"]), season=7)
    assert run(given, undated, tmp_path / "given")[0]["params"] == {"cycle": "7 steps"}


def test_the_command_takes_a_season(tmp_path):
    path = tmp_path / "daily.csv"
    X.to_csv(path, index_label="day")
    words = ("compare", path, "--components", 1, "--splits", 1, "--inits", 1, "--origins", 1)
    words = (*words, "--chains", "last_value,last_cycle,none")
    for given, season in (("week", "week"), ("none", None), ("7", 7)):
        out = tmp_path / given
        result = invoke(*words, "--season", given, "--out", out)
        assert result.exit_code == 0, result.output
        assert "last_cycle" in result.output
        assert json.loads((out / "config.json").read_text())["season"] == season
    result = invoke(*words, "--season", "month", "--out", tmp_path / "month")
    assert result.exit_code == 2
    assert "--season month is not known" in result.stderr
