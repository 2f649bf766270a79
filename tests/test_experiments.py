"""Experiments, the paper's and ours: draws, records, resuming, tables."""

import csv
import json
import multiprocessing
import os
import random
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from cases import estimator
from protocols import counts, small, without_seconds
from temporalnmf.chains import Rate
from temporalnmf.datasets import load_sotu
from temporalnmf.experiments import (
    Protocol,
    chosen,
    comparisons,
    our_protocol,
    paper_protocol,
    run,
    summary,
)
from temporalnmf.experiments.protocol import MODELS, PAPER_GRIDS, Task, warm_up
from temporalnmf.experiments.published import TABLES
from temporalnmf.experiments.runner import fit_task, read_records
from temporalnmf.experiments.tables import (
    about_the_default,
    beside_published,
    difference,
    latex,
    legend,
    markdown,
    plot_differences,
    unconverged,
    verdict,
    write_tables,
)
from temporalnmf.metrics import kl_error
from temporalnmf.registry import CHAINS
from temporalnmf.selection.data import Gridded
from temporalnmf.selection.grids import NAIVE

# Protocol


def test_every_chain_takes_part_in_both_protocols():
    undated = our_protocol(3).of_data(Gridded.undated(counts()))
    for protocol in (paper_protocol(3), undated):
        assert set(protocol.grids) == {"last_value", *CHAINS} == set(MODELS)
    paper = sum(len(PAPER_GRIDS[m]) for m in TABLES["nips"])
    assert paper * 25 == 825


def test_draws_are_those_of_the_papers_code():
    """Seed 20200928: W, then H, then hidden steps; all five splits, from a loop like theirs."""
    X = np.ones((29, 40))
    draws = paper_protocol(3).draw(X)
    legacy = np.random.RandomState(20200928)
    W = legacy.gamma(2.0, 0.5, size=(40, 3, 5))
    H = legacy.gamma(2.0, 0.5, size=(3, 29, 5))
    np.testing.assert_array_equal(draws.H, H)
    np.testing.assert_array_equal(draws.W, W / W.sum(axis=0))
    for split in draws.splits:
        hidden = [28]
        while len(hidden) < 6:
            n = legacy.choice(range(1, 28), 1)[0]
            if n not in hidden and n - 1 not in hidden and n + 1 not in hidden:
                hidden.append(n)
        assert np.flatnonzero(split.test).tolist() == sorted(hidden[:3])
        assert np.flatnonzero(split.validation).tolist() == sorted(hidden[3:])


def test_hidden_steps_of_nips_are_those_of_the_published_seed():
    """The five splits implied by the seed, at the size of NIPS; split 0 is the published one."""
    splits = paper_protocol(3).draw(np.ones((29, 11463))).splits
    found = [
        (np.flatnonzero(s.test).tolist(), np.flatnonzero(s.validation).tolist()) for s in splits
    ]
    assert found == [
        ([7, 19, 28], [2, 11, 17]),
        ([12, 20, 28], [3, 17, 22]),
        ([9, 19, 28], [14, 21, 25]),
        ([2, 6, 28], [12, 14, 16]),
        ([1, 11, 28], [18, 22, 25]),
    ]


def test_short_series_have_only_a_forecast(tmp_path):
    """Ten steps: two are hidden, one for validation and the last."""
    records = run(small(), counts(10), tmp_path)
    assert all(np.isnan(r["kle_s"]) and r["kle_f"] >= 0.0 for r in records)
    table, _ = write_tables(records, tmp_path)
    assert difference(table[0], "kle_s", table) == "–"
    assert "| – | – | – |" in markdown(table)
    assert r"\text{--}" in latex(table)
    assert plot_differences(chosen(records)).axes[0].texts[0].get_text() == "–"


def test_our_protocol_forecasts_from_many_origins_and_hides_only_inner_steps():
    X = counts(60)
    draws = our_protocol(2, n_splits=5, seed=1).draw(X)
    splits, origins = draws.splits[:5], draws.splits[5:]
    assert not any(split.hidden[-1] for split in splits)
    ahead = [int(np.flatnonzero(split.test)[0]) for split in origins]
    assert ahead == list(range(36, 60))  # 4 to choose by, 20 that are scored
    for origin, split in zip(ahead, origins, strict=True):
        assert split.train.sum() == origin
        assert not split.train[origin:].any()
        assert not split.validation.any()


@pytest.mark.parametrize(("n_steps", "n_origins"), [(60, 20), (29, 12), (10, 4), (5, 1)])
def test_short_series_have_fewer_origins(n_steps, n_origins, tmp_path):
    protocol = our_protocol(1, n_splits=1, n_inits=1).only(["last_value"])
    table = summary(chosen(run(protocol, counts(n_steps), tmp_path)))
    assert (table[0]["n_origins"], table[0]["n_splits"]) == (n_origins, 1)


def test_hyper_parameters_of_a_forecast_are_chosen_by_earlier_ones():
    """By hand: point 0 is better up to step 6, point 1 from then on; the sums change at step 8."""
    errors = {0: [1, 1, 1, 5, 5, 5, 5], 1: [2, 2, 2, 1, 1, 1, 1]}
    records = [
        {**fake("rate", 3 + i, 0, point, float("nan"), float("nan"), float(error)), "origin": 3 + i}
        for point, of_point in errors.items()
        for i, error in enumerate(of_point)
    ]
    rows = chosen(records)
    assert [row["origin"] for row in rows] == [4, 5, 6, 7, 8, 9]  # the first serves the choice
    assert [row["params"] for row in rows] == ["alpha=0"] * 3 + ["alpha=1"] * 3
    assert [row["kle_f"] for row in rows] == [1.0, 1.0, 5.0, 1.0, 1.0, 1.0]
    assert rows[3]["kle_validation"] == 7 / 4


def test_hidden_values_do_not_reach_the_fits(monkeypatch):
    from temporalnmf.experiments import runner

    monkeypatch.setattr(runner, "kl_error", lambda v, predicted: float(predicted.sum()))
    X = counts()
    ours = our_protocol(2, n_splits=1, n_inits=1, n_origins=1, seed=1, max_iter=30)
    for protocol in (small(), ours.of_data(Gridded.undated(X))):
        draws = protocol.draw(X)
        for task in protocol.tasks(len(draws.splits) - protocol.n_splits):
            split = draws.splits[task.split]
            other = np.where(split.train[:, None], X, 999.0)
            if task.init == 0 and task.split in (0, protocol.n_splits):
                start = draws.W[:, :, 0], draws.H[:, :, 0]
                found = [fit_task(data, protocol, task, *start, split) for data in (X, other)]
                assert str(without_seconds(found)[0]) == str(without_seconds(found)[1]), task


def test_hyper_parameters_are_in_units_of_the_level():
    protocol = our_protocol(2).only(["shape", "hier_shape"])
    chain = protocol.settings(Task(0, 0, "shape", 1), level=50.0)["chain"]
    assert chain.alpha == 2.0
    assert protocol.settings(Task(0, 0, "hier_shape", 2), level=50.0)["chain"].beta == 40.0


def test_the_paper_protocol_makes_one_sweep_per_iteration_and_ours_that_of_the_chain():
    task = Task(0, 0, "rate", 0)
    assert paper_protocol(2).settings(task, 1.0)["chain"].sweeps == 1
    assert our_protocol(2).settings(task, 1.0)["chain"].sweeps == 5


REFUSED = {
    "components": (lambda: paper_protocol(0), r"n_components=0"),
    "splits": (lambda: paper_protocol(2, n_splits=0), r"n_splits=0"),
    "no model": (lambda: Protocol(2), r"grids=\{\} is empty"),
    "unknown": (lambda: Protocol(2, grids={"arma": [{}]}), r"model='arma'.*bgar"),
    "unknown, only": (lambda: paper_protocol(2).only(["arma"]), r"model='arma'.*bgar"),
    "no process": (lambda: run(small(), counts(), "nowhere", n_jobs=0), r"n_jobs=0"),
    "baseline": (lambda: summary(chosen(RECORDS), "bgar"), r"baseline='bgar'.*gap"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_requests_are_refused_by_name(case):
    attempt, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        attempt()


# Records


def test_a_record_has_the_errors_of_its_fit(tmp_path):
    from temporalnmf.chains import Rate

    X, protocol = counts(), small()
    draws = protocol.draw(X)
    split = draws.splits[1]
    task = Task(1, 0, "rate", 2)
    record = fit_task(X, protocol, task, draws.W[:, :, 0], draws.H[:, :, 0], split)
    chain = Rate(100.0, 100.0)
    chain.sweeps = 1
    with pytest.warns(UserWarning, match=r"converge|floor"):
        model = estimator(
            2, chain=chain, likelihood="poisson", map_scale="linear", point="mode", smoothing=0.0,
            solver="mm", tol=1e-5,
            max_iter=30, init=(draws.W[:, :, 0].T, draws.H[:, :, 0].T), gaps="mode",
        ).fit(X, mask=split.train)  # fmt: skip
    fitted = model.activations_ @ model.components_
    inner = split.test.copy()
    inner[-1] = False
    assert record["kle_validation"] == kl_error(X[split.validation], fitted[split.validation])
    assert record["kle_s"] == kl_error(X[inner], fitted[inner])
    assert record["kle_f"] == kl_error(X[-1], fitted[-1])
    assert record["params"] == {"alpha": 100.0, "beta": 100.0}
    assert (record["split"], record["init"], record["model"], record["point"]) == task
    assert record["n_iter"] == model.n_iter_


@pytest.mark.long
def test_records_do_not_depend_on_the_number_of_workers(tmp_path):
    X, protocol = counts(), small()
    one = run(protocol, X, tmp_path / "one", n_jobs=1)
    two = run(protocol, X, tmp_path / "two", n_jobs=2)
    assert without_seconds(one) == without_seconds(two)
    assert [Task(*(r[f] for f in Task._fields)) for r in one] == protocol.tasks()
    assert all(r["seconds"] > 0.0 for r in one)


def test_progress_counts_every_fit(tmp_path):
    X, protocol = counts(), small()
    seen = []
    run(protocol, X, tmp_path, progress=lambda done, wanted: seen.append((done, wanted)))
    total = len(protocol.tasks())
    assert seen == [(n, total) for n in range(1, total + 1)]
    seen.clear()
    run(protocol, X, tmp_path, progress=lambda done, wanted: seen.append((done, wanted)))
    assert seen == []  # nothing is done twice


def _work(protocol, X, folder, goal):
    def kill(done, wanted):
        if (folder / "fits.jsonl").stat().st_size >= goal:
            os.kill(os.getpid(), signal.SIGKILL)

    run(protocol, X, folder, progress=kill)


@pytest.mark.long
def test_a_run_killed_twenty_times_ends_with_the_records_of_an_undisturbed_one(tmp_path):
    """SIGKILL whenever the file has grown by a random number of bytes, lines cut short or not."""
    X, protocol = counts(), small(n_splits=3, n_inits=3)
    expected = run(protocol, X, tmp_path / "calm")
    folder, log = tmp_path / "killed", tmp_path / "killed" / "fits.jsonl"
    whole = (tmp_path / "calm" / "fits.jsonl").stat().st_size
    chance, context = random.Random(0), multiprocessing.get_context("fork")
    for i in range(20):
        # The next kill comes within the next twentieth of the file.
        size = log.stat().st_size if log.exists() else 0
        goal = min(size + chance.randrange(1, whole // 20), whole - 1)
        worker = context.Process(target=_work, args=(protocol, X, folder, goal))
        worker.start()
        worker.join()
        assert worker.exitcode == -9
        if i % 2:  # as if the kill had come in the middle of a write
            with log.open("r+b") as file:
                file.truncate(max(log.stat().st_size - chance.randrange(1, 200), 0))
    assert len(read_records(log)) < len(expected)
    resumed = run(protocol, X, folder)
    assert without_seconds(resumed) == without_seconds(expected)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == len({Task(*(r[f] for f in Task._fields)) for r in lines}) == len(expected)


def test_a_folder_holds_one_experiment(tmp_path):
    X, protocol = counts(), small()
    run(protocol, X, tmp_path)
    with pytest.raises(ValueError, match=r"another experiment: n_splits was 2, now it is 3"):
        run(replace(protocol, n_splits=3), X, tmp_path)
    with pytest.raises(ValueError, match=r"another experiment: data was 20 x 6.*sha256"):
        run(protocol, X + 1.0, tmp_path)
    with pytest.raises(ValueError, match=r"grids was 1 of last_value, 9 of gap, 3 of rate, now"):
        run(protocol.only(["gap"]), X, tmp_path)
    (tmp_path / "config.json").rename(tmp_path / "elsewhere.json")
    with pytest.raises(ValueError, match=r"records, but no config.json"):
        run(protocol, X, tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config.json is damaged"):
        run(protocol, X, tmp_path)


def test_damaged_records_are_not_guessed_at(tmp_path):
    X, protocol = counts(), small()
    run(protocol, X, tmp_path)
    log = tmp_path / "fits.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    with pytest.raises(ValueError, match=r"fits.jsonl is damaged"):
        run(protocol, X, tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path):
    X, protocol, refused = counts(), small(), []

    def intrude(done, wanted):
        with pytest.raises(ValueError, match="Another run is using"):
            run(protocol, X, tmp_path)
        refused.append(done)

    run(protocol, X, tmp_path, progress=intrude)
    assert len(refused) == len(protocol.tasks())


@pytest.mark.long
def test_missing_steps_and_sparse_data_take_part(tmp_path):
    X = counts()
    X[5] = np.nan
    records = run(small(), X, tmp_path / "missing")
    assert all(np.isfinite(r["kle_s"]) for r in records)
    dense = run(small(), counts(), tmp_path / "dense")
    rows = run(small(), sparse.csr_array(counts()), tmp_path / "sparse")
    for a, b in zip(dense, rows, strict=True):
        assert a["kle_f"] == pytest.approx(b["kle_f"], rel=1e-3)


@pytest.mark.long
def test_our_protocol_runs_on_the_embedded_data(tmp_path):
    X = load_sotu().data[:60, :80]
    protocol = our_protocol(2, n_splits=1, n_inits=1, n_origins=1, max_iter=40)
    records = run(protocol, X, tmp_path)
    assert {r["model"] for r in records} == set(MODELS)
    for r in records:
        at_origin = "origin" in r
        assert np.isfinite([r["kle_s"], r["kle_validation"]]).all() != at_origin
        assert np.isfinite(r["kle_f"]) == at_origin


def test_exposure_reaches_fits_and_errors(tmp_path):
    """Exposure changes from step to step, the rate never does: knowing it, nothing is left to err.

    Masked entries are not scored, whatever they hold.
    """
    rng = np.random.default_rng(0)
    exposure = np.tile([1.0, 5.0, 2.0], 10)
    X = rng.poisson(exposure[:, None] * rng.dirichlet(np.ones(6)) * 100.0).astype(float)
    protocol = our_protocol(1, n_splits=2, n_inits=1, n_origins=5, seed=1).only(
        ["last_value", "none", "rate"]
    )
    blind = summary(chosen(run(protocol, X, tmp_path / "blind")))
    aware = summary(chosen(run(protocol, X, tmp_path / "aware", exposure=exposure)))
    for one, other in zip(blind, aware, strict=True):
        for metric in ("kle_s_mean", "kle_f_mean"):
            assert other[metric] < 0.5 * one[metric], (one["model"], metric)
    with pytest.raises(ValueError, match=r"another experiment: data was .* exposure 30 x 1"):
        run(protocol, X, tmp_path / "aware")
    mask = np.ones(X.shape, dtype=bool)
    mask[3:20, 1] = mask[12] = False
    masked = run(protocol, np.where(mask, X, 1e6), tmp_path / "masked", mask=mask)
    missing = run(protocol, np.where(mask, X, np.nan), tmp_path / "missing")
    assert str(without_seconds(masked)) == str(without_seconds(missing))


# Tables


def fake(model, split, init, point, validation, s, f):
    return {
        "split": split, "init": init, "model": model, "point": point,
        "params": {"alpha": float(point)}, "n_iter": 7, "stop_reason": "converged",
        "kle_validation": validation, "kle_s": s, "kle_f": f, "seconds": 0.5,
    }  # fmt: skip


# gap is best on validation at point 1, rate at point 0.
RECORDS = [
    record
    for split in (0, 1, 2)
    for init in (0, 1)
    for record in (
        fake("gap", split, init, 0, 9.0, 1.0, 1.0),
        fake("gap", split, init, 1, 8.0, 100.0 + 10 * split, 50.0 + init),
        fake("rate", split, init, 0, 7.0, 90.0 + 10 * split + init, 60.0 + init),
        fake("rate", split, init, 1, 7.5, 1.0, 1.0),
    )
]


def test_the_point_with_the_lowest_validation_error_is_chosen():
    rows = chosen(RECORDS)
    assert len(rows) == 12
    assert {(r["model"], r["params"]) for r in rows} == {("gap", "alpha=1"), ("rate", "alpha=0")}
    assert rows[0]["kle_s"] == 100.0
    assert rows[0]["seconds"] == 1.0
    broken = {**RECORDS[0], "kle_validation": float("nan")}
    assert chosen([broken, RECORDS[1]])[0]["params"] == "alpha=1"


def test_the_table_has_the_numbers_computed_by_hand():
    gap, rate = summary(chosen(RECORDS))
    assert gap["baseline"] == rate["baseline"] == "gap"
    assert gap["kle_s_mean"] == 110.0
    assert gap["kle_s_std"] == pytest.approx(np.sqrt(200.0 / 3.0))  # of the population
    assert rate["kle_s_mean"] == 100.5
    assert (rate["kle_s_wins"], rate["kle_f_wins"], rate["n_splits"]) == (3, 0, 3)
    assert (gap["kle_s_rank"], rate["kle_s_rank"]) == (2.0, 1.0)
    assert (gap["kle_f_rank"], rate["kle_f_rank"]) == (1.0, 2.0)
    assert rate["kle_s_diff"] == -9.5
    # All splits differ by the same amount, so every resample does.
    assert rate["kle_s_diff_low"] == rate["kle_s_diff_high"] == -9.5
    assert rate["kle_f_diff"] == 10.0
    assert gap["kle_f_diff"] == 0.0


def test_the_bootstrap_resamples_splits():
    """Differences −1, 3 and 3: a resample has a mean of −1 or of 3 with odds of 1 or 8 in 27."""
    records = []
    for split, (base, other) in enumerate([(10.0, 9.0), (10.0, 13.0), (10.0, 13.0)]):
        for init in range(3):
            records.append(fake("gap", split, init, 0, 1.0, base, base))
            records.append(fake("rate", split, init, 0, 1.0, other, other))
    rate = summary(chosen(records))[1]
    assert (rate["kle_s_diff_low"], rate["kle_s_diff_high"]) == (-1.0, 3.0)
    two = summary(chosen([r for r in records if r["split"] < 2]))[1]
    assert np.isnan(two["kle_s_diff_low"])
    assert two["kle_s_wins"] == 1


def test_tables_are_written_as_markdown_and_latex():
    table = summary(chosen(RECORDS))
    lines = markdown(table).splitlines()
    assert lines[2] == "| gap | 110 ± 8.16 | 2.0 | baseline | **50.5 ± 0.5** | 1.0 | baseline |"
    assert lines[3].startswith("| rate | **100 ± 8.18** | 1.0 | -8.6 % (-8.6 to -8.6) |")
    assert r"gap & $1.10 \times 10^{2} \pm 8.16 \times 10^{0}$" in latex(table)
    assert latex([{**table[0], "model": "hier_rate"}]).count(r"hier\_rate") == 1
    assert difference(table[1], "kle_f", table) == "+19.8 % (+19.8 to +19.8)"
    assert "| model | KLE-S |" in markdown(table)
    assert verdict(table[:1]) == "Only gap took part."


def test_the_papers_design_says_what_its_spread_is_and_gives_no_verdict():
    """Four splits that differ by 20 percent, always: the last step is one, so nothing follows."""
    rows = chosen(RECORDS)
    table = summary(rows)
    assert comparisons(rows) == []
    assert verdict(table) == ""
    assert about_the_default(rows) == []
    assert np.isnan(table[1]["kle_f_p"])
    for words in ("standard deviation over 3 splits", "share its last step", "no verdict"):
        assert words in legend(table)


def of_ours(gap_errors, forecast_errors):
    """Chosen fits from errors per model: of splits, and of forecast origins."""
    nothing = float("nan")
    common = {"init": 0, "seconds": 1.0, "n_test": 3, "n_train": 24}
    return [
        {"model": model, "split": split, "kle_s": error, "kle_f": nothing, **common}
        for model, errors in gap_errors.items()
        for split, error in enumerate(errors)
    ] + [
        {"model": model, "split": 99 + n, "origin": 30 + n, "kle_s": nothing, "kle_f": error,
         **common, "n_test": 1}
        for model, errors in forecast_errors.items()
        for n, error in enumerate(errors)
    ]  # fmt: skip


NOISE = np.random.default_rng(7).normal(size=(4, 40))


def test_the_verdict_names_only_differences_beyond_chance():
    gap = {"gap": 100 + NOISE[0, :5], "rate": 80 + NOISE[1, :5], "bgar": 100 + NOISE[2, :5]}
    ahead = {"gap": 10 + NOISE[0, :20], "rate": 10 + NOISE[1, :20], "bgar": 15 + NOISE[2, :20]}
    rows = of_ours(gap, ahead)
    table = summary(rows)
    said = verdict(table)
    assert "Gap error: significantly lower than gap: rate (-19." in said
    assert "Forecast error: significantly higher than gap: bgar (+5" in said
    assert "rate" not in said.split("Forecast error")[1]
    assert titled(markdown(table)) == ["gap error", "forecast error"]
    assert "Gap error & Forecast error" in latex(table)
    assert "5 splits; forecast errors those of the next step, from 20 origins" in legend(table)
    # Six comparisons: gap against two, rate against one, in two metrics.
    found = comparisons(rows)
    assert len(found) == 6
    raw = np.array([one.difference.p for one in found])
    assert min(one.p for one in found) == pytest.approx(6 * raw.min())
    by_model = {row["model"]: row for row in table}
    one = next(c for c in found if (c.metric, c.model) == ("kle_f", "rate"))
    assert by_model["rate"]["kle_f_p"] == one.p
    assert by_model["rate"]["kle_f_diff_low"] == one.difference.low
    assert np.isnan(by_model["gap"]["kle_f_diff_low"])


def titled(text):
    return text.splitlines()[0].split(" | ")[1::3]


def test_the_default_is_called_worse_only_beyond_chance():
    gap = {"gap": 100 + NOISE[0, :5], "rate": 100 + NOISE[1, :5], "shape": 80 + NOISE[2, :5]}
    same = {name: 10 + NOISE[j, :20] for j, name in enumerate(gap)}
    (said,) = about_the_default(of_ours({**gap, "last_value": 10 + NOISE[3, :5]}, same))
    assert "rate, has a higher gap error than shape, by 2" in said  # the last value is no chain
    assert said.endswith("which is significant: consider chain='shape'.")
    assert about_the_default(of_ours({**gap, "shape": 99.5 + NOISE[2, :5]}, same)) == []
    assert (
        about_the_default(of_ours({**gap, "rate": gap["shape"], "shape": gap["rate"]}, same)) == []
    )
    assert about_the_default(of_ours({"gap": gap["gap"], "shape": gap["shape"]}, same)) == []


def test_without_an_interval_there_is_no_verdict():
    """Four splits are too few, and origins that hardly move have too much in common."""
    drift = np.linspace(0.0, 9.0, 20)
    rows = of_ours(
        {"gap": 100 + NOISE[0, :4], "rate": 80 + NOISE[1, :4]},
        {"gap": 10 + NOISE[0, :20], "rate": 20 + drift + NOISE[0, :20]},
    )
    table = summary(rows)
    assert difference(table[1], "kle_s", table).startswith("-2")
    assert "(" not in difference(table[1], "kle_s", table)
    assert "(" not in difference(table[1], "kle_f", table)
    assert (
        "Gap error: no intervals, so no verdict; they need at least 5 splits, n_splits=5"
        in verdict(table)
    )
    assert "Forecast error: no intervals, so no verdict" in verdict(table)
    assert "chance" not in verdict(table)
    assert about_the_default(rows) == []


def test_intervals_of_forecasts_have_a_width(tmp_path):
    """What repeats the last value has no start and no split: its errors still vary."""
    protocol = our_protocol(2, n_splits=5, n_inits=1, seed=0, max_iter=50)
    rows = chosen(run(protocol.only(["last_value", "gap"]), counts(40), tmp_path))
    table = summary(rows)
    last = next(row for row in table if row["model"] == "last_value")
    assert last["kle_f_std"] > 0.05 * last["kle_f_mean"]
    assert last["kle_f_diff_high"] - last["kle_f_diff_low"] > 0.05 * last["kle_f_mean"]
    assert last["n_origins"] == 16
    assert plot_differences(rows).axes[1].get_xlabel().startswith("forecast error")


def test_fits_that_did_not_converge_are_counted():
    assert unconverged(chosen(RECORDS)) == ""
    records = [{**RECORDS[2], "stop_reason": "max_iter=30 reached, …"}, *RECORDS[4:]]
    assert unconverged(chosen(records)).endswith("before they converged: 1 of rate.")


def test_what_cannot_be_split_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="4 observed steps"):
        run(small(), counts(4), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_published_numbers_stand_beside_ours():
    (gap, rate) = beside_published(summary(chosen(RECORDS)), TABLES["lastfm"])
    assert gap["kle_s_published"] == 13000.0
    assert rate["kle_f_ratio"] == 60.5 / 7760.0


def test_published_numbers_are_those_of_the_paper():
    """Spot checks, typed from the paper's tables once more."""
    assert TABLES["nips"]["hier_rate"] == (6.06e4, 9.18e3, 3.24e5, 2.09e5)
    assert TABLES["lastfm"]["bgar"] == (1.24e4, 3.00e2, 9.65e3, 2.91e3)
    assert TABLES["icews"]["gap"] == (8.91e4, 2.82e3, 1.59e3, 6.34e1)
    assert TABLES["icews"]["shape"] == (9.95e4, 3.82e3, 1.84e3, 1.37e2)


def test_tables_and_records_are_written_as_files(tmp_path):
    table, paths = write_tables(RECORDS, tmp_path)
    assert [p.name for p in paths] == ["records.csv", "table.csv", "table.md", "table.tex"]
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert list(rows[0])[:5] == ["model", "kle_s_mean", "kle_s_std", "kle_s_rank", "kle_s_diff"]
    assert float(rows[1]["kle_f_mean"]) == table[1]["kle_f_mean"]
    records = list(csv.DictReader((tmp_path / "records.csv").read_text().splitlines()))
    assert len(records) == 12
    for column in ("split", "init", "model", "params", "kle_s", "kle_f", "seconds"):
        assert column in records[0]


def test_the_picture_of_differences_shows_means_dots_and_outliers():
    figure = plot_differences(chosen(RECORDS))
    inside, ahead = figure.axes
    means = [line.get_xdata()[0] for line in inside.lines if line.get_marker() == "D"]
    np.testing.assert_allclose(means, [100.0 * -9.5 / 110.0])
    dots = next(line.get_xdata() for line in ahead.lines if line.get_marker() == ".")
    np.testing.assert_allclose(sorted(dots), [100.0 * 10.0 / 50.5] * 6)
    assert [t.get_text() for t in inside.get_yticklabels()] == ["rate"]
    far = [fake("shape", r["split"], r["init"], 0, 1.0, 990.0, 50.0) for r in RECORDS]
    inside, ahead = plot_differences(chosen([*RECORDS, *far])).axes
    assert [t.get_text() for t in inside.texts] == ["+800 % →"]
    assert inside.get_xlim()[1] < 100.0
    assert not ahead.texts
    near = [fake("shape", r["split"], r["init"], 0, 1.0, 11.0, 50.0) for r in RECORDS]
    inside, _ = plot_differences(chosen([*RECORDS, *near])).axes
    assert [t.get_text() for t in inside.texts] == ["← -90 %"]


def test_draws_stand_beside_modes_and_share_their_splits():
    """Models with draws come last; a folder of the same data and seed hides the same steps."""
    protocol = our_protocol(2).with_draws()
    assert list(protocol.grids) == [
        *our_protocol(2).grids,
        *(f"{model}:gibbs" for model in our_protocol(2).grids if model not in ("none", *NAIVE)),
    ]
    assert list(our_protocol(2).with_draws(modes=False).only(["rate"]).grids) == ["rate:gibbs"]
    assert list(protocol.only(["rate"]).grids) == ["rate", "rate:gibbs"]
    assert list(protocol.only(["rate:gibbs"]).grids) == ["rate:gibbs"]
    few, many = (our_protocol(2, n_inits=n).draw(counts()).splits for n in (1, 5))
    assert [s.test.tolist() for s in few] == [s.test.tolist() for s in many]


def test_a_fifth_of_the_origins_is_not_scored():
    assert [warm_up(n) for n in (24, 2, 1)] == [4, 1, 1]


def test_components_and_smoothing_are_chosen_like_hyper_parameters():
    protocol = our_protocol(2).with_draws().only(["last_value", "rate"])
    protocol = protocol.choosing((2, 3), ("learn", 1.0))
    assert protocol.grids["last_value"] == [{}]
    assert [p["smoothing"] for p in protocol.grids["rate"]] == [1.0] * 6  # a mode learns none
    assert {p["smoothing"] for p in protocol.grids["rate:gibbs"]} == {"learn", 1.0}
    task = Task(0, 0, "rate:gibbs", 2)
    settings = protocol.settings(task, 5.0)
    assert settings["n_components"] == protocol.components_of(task) == 3
    assert settings["solver"].name == "gibbs"
    assert settings["smoothing"] == "learn"
    assert "n_components" not in settings["chain"].get_params()
    mode = protocol.settings(Task(0, 0, "rate", 1), 5.0)
    assert (mode["solver"], mode["n_components"], mode["smoothing"]) == ("accelerated", 3, 1.0)


def test_errors_of_draws_are_those_of_their_mean(tmp_path):
    data = np.random.default_rng(0).poisson(5.0, size=(20, 6)).astype(float)
    settings = {"n_splits": 2, "n_inits": 1, "n_tune": 5, "n_draws": 10, "n_origins": 0}
    protocol = our_protocol(1, **settings).with_draws(modes=False)
    protocol = protocol.only(["rate"]).choosing((1, 2), (0.5,))
    records = run(protocol, data, tmp_path)
    assert len(records) == 2 * 3 * 2
    again = run(protocol, data, tmp_path)
    assert again == records
    split, K, alpha = protocol.draw(data).splits[0], 2, 10_000.0
    record = next(r for r in records if r["params"]["n_components"] == K
                  and r["params"]["alpha"] == alpha and r["split"] == 0)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(
            K, chain=Rate(alpha), likelihood="poisson", solver="gibbs", n_chains=1, n_tune=5,
            n_draws=10, smoothing=0.5, random_state=0,
        ).fit(data, mask=split.train)  # fmt: skip
    last = np.flatnonzero(split.test)[-1]
    expected = kl_error(data[last], model.smooth().values[last])
    assert record["kle_f"] == pytest.approx(expected, rel=1e-12)
    assert record["kle_f_seen"] == record["kle_f"]  # every feature was seen
    table, _ = write_tables(records, tmp_path)
    assert table[0]["model"] == "rate:gibbs"
    assert table[0]["kle_f_seen_mean"] == table[0]["kle_f_mean"]


def test_errors_over_known_features_leave_out_the_others():
    data = np.random.default_rng(0).poisson(5.0, size=(20, 6)).astype(float)
    data[:-1, 5] = 0.0  # appears in the last step, which is always hidden
    protocol = our_protocol(1, n_splits=1, n_inits=1, n_origins=0).only(["none"])
    draws = protocol.draw(data)
    record = fit_task(
        data, protocol, Task(0, 0, "none", 0), draws.W[:, :, 0], draws.H[:, :, 0], draws.splits[0]
    )
    assert record["kle_f_seen"] < record["kle_f"] - 5.0
