"""The command line from a table to a report: fit, forecast, impute, report, info, demo."""

import csv
import json
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from commands import done, in_terminal, invoke, refused, started
from temporalnmf import TemporalNMF, load
from temporalnmf.cli import data
from temporalnmf.cli.console import Voice, Watch
from temporalnmf.messages.formatting import csv_number
from temporalnmf.solvers import Progress
from temporalnmf.timeline import time_texts

LONG = ("--time", "date", "--feature", "artist", "--value", "plays", "--freq", "M")
ARTISTS = ("Ada", "Bix", "Cleo", "[bold]Dex")  # a name that looks like markup stays a name
LOST = ("2019-02", "2019-03")


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    """A long CSV as somebody might bring it: 26 months in no order, two of them lost, some dirt."""
    rng = np.random.default_rng(0)
    level = 40.0 * np.exp(np.cumsum(rng.normal(0.0, 0.2, size=(26, 2)), axis=0))
    counts = rng.poisson(level @ np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.2, 0.5, 0.3]]))
    lines = []
    for n, row in enumerate(counts):
        month = f"{2018 + n // 12}-{n % 12 + 1:02d}"
        if month in LOST:
            continue
        for artist, count in zip(ARTISTS, row, strict=True):
            lines += [
                f"{month}-03,{artist},{count // 2}",
                f"{month}-20,{artist},{count - count // 2}",
            ]
    rng.shuffle(lines)
    lines += ["2019-05-05,,7", "2019-05-05,Ada,"]  # no artist; no count
    path = tmp_path_factory.mktemp("plays") / "plays.csv"
    path.write_text("\n".join(["date,artist,plays", *lines]) + "\n", encoding="utf-8")
    kept = np.ones(26, dtype=bool)
    kept[[13, 14]] = False
    return path, np.where(kept[:, None], counts, np.nan)


@pytest.fixture(scope="module")
def fitted(plays, tmp_path_factory):
    """The model of that file, what the command said, and the command."""
    path = tmp_path_factory.mktemp("models") / "new" / "plays.npz"
    words = ("fit", plays[0], "--components", 2, *LONG, "--calibrate", 6, "--out", path)
    return path, done(*words).output, words


def test_fit_says_what_it_understood_and_what_it_found(plays, fitted):
    path, output, words = fitted
    total = int(np.nansum(plays[1]))
    assert f"26 steps x 4 features, total {total:,}\n" in output
    assert f"total {total + 7:,}; dropped: 1 without 'artist', total 7; 1 without 'plays'" in output
    assert "absent periods: 2 (2019-02, 2019-03)" in output
    assert "monthly, 2018-01 to 2020-02" in output
    assert "\nConverged: relative decrease" in output
    assert "the best of 3 starts" in output
    for heading in ("share", "peak", "stability", "top features"):
        assert heading in output
    assert "[bold]Dex" in output
    assert f"written: {path}\n" in output
    assert "6 forecasts of past steps were compared" in output
    model = load(path)
    np.testing.assert_array_equal(model.observed_, ~np.isnan(plays[1][:, 0]))
    assert model.feature_labels().tolist() == sorted(ARTISTS)
    assert model.calibration_.n_origins == 6
    found = model.provenance_
    assert found["command"] == shlex.join(["temporalnmf", *map(str, words)])
    assert found["source"] == str(plays[0])
    assert found["sha256"] == data.checksum(plays[0])
    assert found["date"].startswith("20")


def test_fit_is_what_the_library_does(plays, fitted):
    from temporalnmf.reading import read_table

    table = read_table(plays[0], time="date", feature="artist", value="plays", freq="M")
    model = TemporalNMF(2, n_init=3, random_state=0).fit(table)
    np.testing.assert_array_equal(load(fitted[0]).components_, model.components_)


@pytest.mark.parametrize("of", ["features", "components", "totals"])
def test_forecast_writes_and_prints_what_the_library_predicts(fitted, of, tmp_path):
    out = tmp_path / "next.csv"
    words = ("forecast", fitted[0], "--steps", 3, "--of", of, "--coverage", "0.8", "--seed", 5)
    result = done(*words, "--out", out)
    ahead = load(fitted[0]).forecast(3, coverage=0.8, random_state=5)
    frame = ahead.to_frame(of)
    rows = rows_of(out)
    assert list(rows[0]) == list(frame.columns)
    assert "lower_80" in rows[0]
    for column in ("mean", "median", "lower_80", "upper_80"):
        rounded = [float(csv_number(value)) for value in frame[column]]
        np.testing.assert_array_equal([float(row[column]) for row in rows], rounded)
    assert sorted({row["time"] for row in rows}) == ["2020-03", "2020-04", "2020-05"]
    for text in ("2020-03", "2020-05", f"written: {out}"):
        assert text in result.stdout
    assert "80 % interval" in result.stdout
    told = json.loads(done(*words, "--json").stdout)
    assert told["of"] == of
    assert told["times"] == ["2020-03", "2020-04", "2020-05"]
    assert [row["mean"] for row in told["rows"]] == frame["mean"].tolist()


def test_forecast_shows_the_largest_features_and_the_steps_that_fit(tmp_path):

    weights = np.arange(1.0, 41.0)
    path = (
        TemporalNMF(1, random_state=0)
        .fit(np.outer(np.ones(20), weights))
        .save(tmp_path / "many.npz")
    )
    output = done("forecast", path, "--steps", 30).stdout
    assert "The 15 largest of 40 features at the first step." in output
    names = [line.split()[0] for line in output.splitlines() if line.startswith(" x")]
    assert sorted(names) == sorted(f"x{f}" for f in range(25, 40))
    heading, *shown = output.splitlines()[1].split()
    assert (heading, shown) == ("feature", [str(20 + n) for n in range(len(shown))])
    assert f"The first {len(shown)} of 30 steps. Show all with --out FILE.csv or --json." in output
    assert 2 <= len(shown) < 12
    assert max(map(len, output.splitlines()[:-3])) <= 80
    totals = done("forecast", path, "--steps", 30, "--of", "totals").stdout
    first = [line.split()[0] for line in totals.splitlines()[3:33]]
    assert first == [str(20 + n) for n in range(30)]  # a row each
    assert "temporalnmf fit --calibrate 20" in output  # a note, in the words of the command line


def test_forecast_sums_over_steps_and_groups_as_the_library_does(fitted, tmp_path):
    """How many in the next weeks, per group: the sums of the forecast from Python."""
    model = load(fitted[0])
    names = model.feature_labels().tolist()
    path, out = tmp_path / "groups.csv", tmp_path / "sums.csv"
    path.write_text("group,feature\n" + "".join(f"all,{n}\n" for n in names) + f"one,{names[0]}\n")
    words = ("forecast", fitted[0], "--steps", 3, "--sum", "steps", "--groups", path)
    ahead = model.forecast(3).sum(over="steps", groups={"all": names, "one": names[:1]})
    told = json.loads(done(*words, "--json").stdout)
    assert told["groups"] == ["all", "one"]
    assert told["sum"] == "steps"
    assert told["times"] == ahead.times.tolist()
    assert [row["group"] for row in told["rows"]] == ["all", "one"]
    assert [row["upper_90"] for row in told["rows"]] == ahead.interval(0.9)[1][0].tolist()
    shown = done(*words, "--out", out).stdout
    assert "group" in shown
    assert ahead.times[0] in shown
    assert [float(row["lower_90"]) for row in rows_of(out)] == ahead.interval(0.9)[0][0].tolist()
    totals = done("forecast", fitted[0], "--steps", 3, "--sum", "steps", "--of", "totals", "--json")
    (row,) = json.loads(totals.stdout)["rows"]
    assert row["median"] == ahead.median("totals")[0]
    for text, message in (
        ("name,group\na,b\n", "needs the columns feature and group, not 'name', 'group'"),
        ("feature,group\n", "has no rows"),
        ("feature,group\n,b\n", "complete line 2, or delete it"),
        ("feature,group\nnobody,b\n", "'b' has 'nobody', which is not among"),
    ):
        path.write_text(text)
        result = invoke("forecast", fitted[0], "--groups", path)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())


def test_forecast_scales_with_the_exposure_given_or_with_that_of_the_last_step(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.integers(5, 20, size=15)
    lines = [
        f"{2000 + n},{rng.poisson(9 * s)},{rng.poisson(3 * s)},{s}" for n, s in enumerate(size)
    ]
    path, model = tmp_path / "rates.csv", tmp_path / "rates.npz"
    path.write_text("\n".join(["year,a,b,days", *lines]))
    output = done("fit", path, "--components", 1, "--exposure", "days", "--out", model).output
    assert "15 steps x 2 features" in output
    output = done("forecast", model).output
    assert f"that of the last step, {size[-1]}, is assumed. --exposure sets another." in output
    of_last, of_week, by_step = (
        json.loads(done("forecast", model, "--of", "totals", "--steps", 2, "--json", *more).stdout)
        for more in ((), ("--exposure", 7), ("--exposure", "7,14"))
    )
    means = [[row["mean"] for row in told["rows"]] for told in (of_last, of_week, by_step)]
    assert means[1][0] == pytest.approx(12.0 * 7, rel=0.1)
    assert means[0] == pytest.approx([mean * size[-1] / 7 for mean in means[1]])
    assert means[2] == pytest.approx([means[1][0], 2 * means[1][1]])
    assert not any("is assumed" in note for note in of_week["notes"])
    # What the model needs for other tables, too.
    path.write_text("year,a,b\n2015,90,30\n2016,80,20\n2017,70,40\n")
    for command in ("impute", "append"):
        said = refused(command, model, path, "--out", tmp_path / "new")
        assert "--exposure is missing: the model was fitted with exposure" in said
    path.write_text("year,a,b,days\n2015,90,30,10\n2016,80,20,9\n2017,70,40,8\n")
    done("append", model, path, "--exposure", "days", "--force")
    np.testing.assert_array_equal(load(model).exposure_, [*size, 10, 9, 8])


# Append


def more_plays(path, months, artist="Ada"):
    lines = [f"{month}-15,{a},{c}" for month in months for a, c in ((artist, 30), ("Cleo", 12))]
    path.write_text("\n".join(["date,artist,plays", *lines]) + "\n", encoding="utf-8")
    return path


def test_append_adds_steps_and_says_so(fitted, tmp_path):
    more = more_plays(tmp_path / "more.csv", ["2020-03", "2020-05"])
    out = tmp_path / "new.npz"
    output = done("append", fitted[0], more, *LONG, "--out", out).output
    assert "without a row, so zero: 'Bix', '[bold]Dex'" in output
    assert "Added 3 steps (2020-03 to 2020-05, 1 of them missing): 29 in total." in output
    assert "Components are unchanged; the activations of all steps were inferred again." in output
    assert output.splitlines()[-1] == f"written: {out}"
    old, new = load(fitted[0]), load(out)
    np.testing.assert_array_equal(new.components_, old.components_)
    months = pd.period_range("2020-03", "2020-05", freq="M")
    rows = pd.DataFrame([[30, 0, 12, 0], [np.nan] * 4, [30, 0, 12, 0]], months, sorted(ARTISTS))
    longer = load(fitted[0]).append(rows)
    np.testing.assert_array_equal(new.activations_, longer.activations_)
    assert (new.activations_[:26] != old.activations_).any()
    assert time_texts(new.times_)[26:] == ["2020-03", "2020-04", "2020-05"]
    assert new.observed_[26:].tolist() == [True, False, True]
    assert len(old.times_) == 26  # the model that was read is as it was
    commands = new.provenance_["command"].splitlines()
    assert commands[0] == old.provenance_["command"]
    assert commands[1].startswith("temporalnmf append ")
    assert data.checksum(more) in new.provenance_["appended"]
    assert new.provenance_["source"] == old.provenance_["source"]
    assert "more.csv (SHA-256" in done("info", out).output


def test_append_with_update_components_refits_the_same_file_and_answers_in_json(fitted, tmp_path):
    model = tmp_path / "m.npz"
    shutil.copy(fitted[0], model)
    known = ["2020-01", "2020-02"]
    for month in ("2020-03", "2020-04"):  # a step each, onto the same file, as the data grow
        known.append(month)
        more = more_plays(tmp_path / "more.csv", known)
        words = ("append", model, more, *LONG, "--update-components", "--force", "--json")
        result = done(*words)
        told = json.loads(result.stdout)
        assert told["added"] == [month]
        assert (told["model"], told["last"]) == (str(model), month)
        assert f"so left out: {len(known) - 1} of {len(known)} steps" in result.stderr
        assert "Everything was fitted again: converged." in result.stderr
    assert told["n_steps"] == 28
    assert not np.array_equal(load(model).components_, load(fitted[0]).components_)


def test_append_refuses_to_overwrite_files_and_to_add_no_steps(plays, fitted, tmp_path):
    model, more = tmp_path / "m.npz", more_plays(tmp_path / "more.csv", ["2020-03"])
    shutil.copy(fitted[0], model)
    before = model.read_bytes()
    said = refused("append", model, more, *LONG)
    assert f"--out is missing. Name a file, or replace {model} with --force." in said
    assert "Replace it with --force" in refused("append", model, more, *LONG, "--out", model)
    assert "is the input file" in refused("append", model, more, *LONG, "--out", more, "--force")
    known = more_plays(tmp_path / "known.csv", ["2019-12", "2020-01", "2020-02"])
    said = refused("append", model, known, *LONG, "--force")
    assert "ends at 2020-02 and the model at 2020-02: there are no new steps." in said
    assert "keep earlier steps in the file" in refused("append", model, more, *LONG, "--force")
    assert model.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["known.csv", "m.npz", "more.csv"]


@pytest.mark.parametrize(("command", "steps"), [("info", 3), ("fit", 3), ("append", 3)])
def test_periods_that_are_not_full_can_be_left_out(command, steps, fitted, tmp_path):
    """Days until the middle of June: the last month is half full."""
    path = tmp_path / "days.csv"
    days = np.arange("2020-03-01", "2020-06-16", dtype="datetime64[D]")
    path.write_text("\n".join(["date,artist,plays", *(f"{day},Ada,2" for day in days)]))
    words = {
        "info": ("info", path),
        "fit": ("fit", path, "--components", 1, "--out", tmp_path / "m.npz"),
        "append": ("append", fitted[0], path, "--out", tmp_path / "m.npz"),
    }[command]
    assert f"{steps + 1} steps x" in done(*words, *LONG).output
    more = () if command == "info" else ("--force",)
    output = done(*words, *LONG, "--drop-partial", *more).output
    assert f"{steps} steps x" in output


def test_impute_fills_the_fitted_table_and_nothing_else(plays, fitted, tmp_path):
    out, bands = tmp_path / "filled.csv", tmp_path / "bands.csv"
    result = done("impute", fitted[0], "--out", out, "--bands", bands)
    assert "Filled 8 of 104 entries, in 2 of 26 steps (2 of them wholly missing)." in result.stdout
    model, rows = load(fitted[0]), rows_of(out)
    values = np.array([[float(row[name]) for name in ARTISTS] for row in rows])
    there = ~np.isnan(plays[1])
    np.testing.assert_array_equal(values[there], plays[1][there])
    assert [row["time"] for row in rows] == time_texts(model.times_)
    order = [model.feature_labels().tolist().index(name) for name in ARTISTS]
    expected = (model.activations_ @ model.components_)[13:15][:, order]
    np.testing.assert_allclose(values[13:15], expected, rtol=5.01e-6)  # six digits
    missing = rows_of(bands)
    assert [row["time"] for row in missing] == [*["2019-02"] * 4, *["2019-03"] * 4]
    assert [row["feature"] for row in missing] == 2 * sorted(ARTISTS)
    for row in missing:
        assert float(row["lower_90"]) <= float(row["median"]) <= float(row["upper_90"])
    told = json.loads(done("impute", fitted[0], "--out", out, "--force", "--json").stdout)
    assert (told["entries_filled"], told["steps_filled"], told["bands"]) == (8, 2, None)


def test_impute_fills_another_table_with_the_features_of_the_model(plays, fitted, tmp_path):
    """Long: in any order, without one of the features, with one that the model never saw."""
    path, out = tmp_path / "more.csv", tmp_path / "filled.csv"
    lines = [f"2021-{m:02d}-01,{a},{c}" for m in (1, 2, 4) for a, c in (("Cleo", 20), ("Ada", 9))]
    path.write_text("\n".join(["date,artist,plays", *lines, "2021-02-01,Zoe,31"]))
    output = done("impute", fitted[0], path, *LONG, "--out", out).output
    assert "without a row, so zero: 'Bix', '[bold]Dex'" in output
    assert "not in the model, so left out: 'Zoe', total 31" in output
    rows = rows_of(out)
    assert [row["time"] for row in rows] == ["2021-01", "2021-02", "2021-03", "2021-04"]
    assert [row["Cleo"] for row in rows[:2]] == ["20", "20"]
    assert [row["Bix"] for row in rows[:2]] == ["0", "0"]
    assert float(rows[2]["Cleo"]) > 1.0  # the month without a row
    assert float(rows[2]["Bix"]) > 0.0  # is missing for all features
    assert "Filled 4 of 16 entries" in output
    # Wide, single entries missing: the same features are wanted.
    path = tmp_path / "wide.csv"
    path.write_text(
        "month,Cleo,Bix,[bold]Dex,Ada\n2021-01,9,1,,9\n2021-02,8,2,2,8\n2021-03,9,1,,9\n"
    )
    bands = tmp_path / "bands.csv"
    output = done("impute", fitted[0], path, "--out", out, "--bands", bands, "--force").output
    assert "Filled 2 of 12 entries, in 2 of 3 steps (0 of them wholly missing)." in output
    assert rows_of(out)[1] == {
        "time": "2021-02", "Ada": "8", "Bix": "2", "Cleo": "8", "[bold]Dex": "2",
    }  # fmt: skip
    assert [(row["time"], row["feature"]) for row in rows_of(bands)] == [
        ("2021-01", "[bold]Dex"), ("2021-03", "[bold]Dex"),
    ]  # fmt: skip
    path.write_text("month,Cleo,Bix,Zoe\n2021-01,9,1,9\n2021-02,8,2,8\n2021-03,9,1,9\n")
    said = refused("impute", fitted[0], path, "--out", out, "--force")
    assert "lacks 'Ada', '[bold]Dex' and has 'Zoe', which the model does not know" in said


def test_report_writes_a_page_with_its_question_and_commands(fitted, tmp_path):
    out = tmp_path / "report.html"
    words = ("report", fitted[0], "--out", out, "--question", "Who is played?", "--steps", 2)
    output = done(*words).output
    assert output == f"written: {out}\n"
    page = out.read_text(encoding="utf-8")
    for text in ("Who is played?", "temporalnmf fit", "temporalnmf report", "plays.csv", "2020-04"):
        assert text in page
    told = json.loads(done(*words, "--force", "--json").stdout)
    assert told["report"] == str(out)
    assert told["bytes"] == out.stat().st_size


def test_report_checks_intervals_on_the_past_if_asked_to(plays, tmp_path):
    model, out = tmp_path / "m.npz", tmp_path / "r.html"
    fit = ("fit", plays[0], *LONG, "--components", 1, "--starts", 1, "--out", model)
    done(*fit)
    output = done("report", model, "--out", out, "--hold-out", 5).output
    assert "5 forecasts of past steps were compared" in output
    assert "Are the intervals reliable?" in out.read_text(encoding="utf-8")
    done(*fit, "--intervals", "model", "--force")
    done("report", model, "--out", out, "--force")
    assert "Are the intervals reliable?" not in out.read_text(encoding="utf-8")


def test_report_never_shows_the_checksum_of_another_file(plays, tmp_path):
    source, model, out = tmp_path / "plays.csv", tmp_path / "m.npz", tmp_path / "r.html"
    shutil.copy(plays[0], source)
    done("fit", source, *LONG, "--components", 1, "--starts", 1, "--out", model)
    fitted_to = data.checksum(source)
    done("report", model, "--out", out)
    assert fitted_to in out.read_text(encoding="utf-8")
    source.write_text(source.read_text() + "2018-01-09,Ada,1\n")
    done("report", model, "--out", out, "--force")
    page = out.read_text(encoding="utf-8")
    assert data.checksum(source) not in page
    assert fitted_to[:16] in page


def test_info_describes_a_model(fitted):
    output = done("info", fitted[0]).stdout
    for text in (
        "temporalnmf model, schema 2", "26 steps x 4 features, 2 components", "numpy",
        "2018-01 to 2020-02, every month", "2 of the steps (2019-02, 2019-03)", "rate: α = ",
        "converged:", "6 forecasts of past steps", "temporalnmf fit", "with the data",
    ):  # fmt: skip
        assert text in output
    told = json.loads(done("info", fitted[0], "--json").stdout)
    assert told["kind"] == "model"
    assert told["schema"] == 2
    assert told["gaps"] == list(LOST)
    assert told["converged"] is True
    assert told["chain"] == "rate"
    assert told["versions"]["numpy"] == np.__version__
    assert told["calibration"]["n_origins"] == 6
    assert sum(one["share"] for one in told["components"]) == pytest.approx(1.0)


def test_info_describes_a_table(plays):
    told = json.loads(done("info", plays[0], *LONG, "--json").stdout)
    assert told["kind"] == "table"
    assert told["total"] == np.nansum(plays[1])
    assert told["absent"] == list(LOST)
    assert told["features"] == sorted(ARTISTS)
    assert "  features: Ada, Bix, Cleo, [bold]Dex\n" in done("info", plays[0], *LONG).stdout


def test_fit_with_json_prints_one_object_and_words_on_standard_error(plays, tmp_path):
    """One object on standard output, words on the other."""
    out = tmp_path / "m.npz"
    words = ("fit", plays[0], *LONG, "--components", 1, "--max-iter", 1, "--starts", 1)
    result = done(*words, "--out", out, "--json")
    told = json.loads(result.stdout)
    assert told["model"] == str(out)
    assert told["converged"] is False
    assert told["components"][0]["stability"] is None
    assert any("absent periods: 2" in note for note in told["notes"])
    assert "Not converged: max_iter=1 reached" in result.stderr
    assert "Increase --max-iter" in result.stderr
    assert "stability" not in result.stderr


def test_json_has_null_for_nan_and_infinity(capsys):
    Voice(json=True).answer({"a": np.array([1.0, np.nan]), "b": (np.inf, np.int64(2), True)})
    assert json.loads(capsys.readouterr().out) == {"a": [1.0, None], "b": [None, 2, True]}


def test_plain_nmf_is_forecast_and_imputed_without_intervals(plays, tmp_path):
    """Plain NMF can be fitted, forecast, filled in and looked at, without intervals."""
    model = tmp_path / "none.npz"
    done("fit", plays[0], *LONG, "--components", 2, "--chain", "none", "--out", model)
    assert "so there are no intervals" in done("forecast", model).output
    assert "so there are no intervals" in done("forecast", model, "--of", "totals").output
    bands = tmp_path / "bands.csv"
    done("impute", model, "--out", tmp_path / "filled.csv", "--bands", bands)
    assert set(rows_of(bands)[0]) == {"time", "feature", "point"}
    assert "none: plain NMF" in done("info", model).output


# What is wrong is told, before anything is done


def test_nothing_is_replaced_without_force(plays, fitted, tmp_path):
    there = tmp_path / "there"
    there.write_text("mine")
    for words in (
        ("fit", plays[0], *LONG, "--out", there),
        ("forecast", fitted[0], "--out", there),
        ("impute", fitted[0], "--out", there),
        ("impute", fitted[0], "--out", tmp_path / "new.csv", "--bands", there),
        ("report", fitted[0], "--out", there),
    ):
        result = invoke(*words)
        assert result.exit_code == 2
        assert "exists already. Replace it with --force" in result.stderr
        assert result.stdout == ""  # the file was not even read
    assert there.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["there"]
    done("forecast", fitted[0], "--out", there, "--force")
    assert there.read_text().startswith("time,feature,mean")


def test_input_files_are_never_overwritten(plays, fitted, tmp_path):
    source, model = tmp_path / "plays.csv", tmp_path / "plays.npz"
    shutil.copy(plays[0], source)
    shutil.copy(fitted[0], model)
    for words in (
        ("fit", source, *LONG, "--out", source),
        ("forecast", model, "--out", model),
        ("impute", model, source, *LONG, "--out", source),
        ("report", model, "--out", model),
    ):
        assert "is the input file" in refused(*words, "--force")
    assert source.read_bytes() == plays[0].read_bytes()
    assert model.read_bytes() == fitted[0].read_bytes()
    both = tmp_path / "both.csv"
    assert "the file of --out" in refused("impute", model, "--out", both, "--bands", both)


def test_a_place_that_cannot_be_written_to_is_refused_at_once(plays, tmp_path):
    assert "is a folder" in refused("fit", plays[0], *LONG, "--out", tmp_path)
    (tmp_path / "file").touch()
    assert "is a file" in refused("fit", plays[0], *LONG, "--out", tmp_path / "file" / "m.npz")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "{plays}", "--time", "dat", "--feature", "artist"],
         "--time dat is not the name of a column: did you mean 'date'? The columns are 'date',"),
        (["fit", "{plays}", "--time", "date", "--feature", "ARTIST"], "did you mean 'artist'?"),
        (["fit", "{plays}", "--time", "date", "--feature", "artist", "--value", "play"],
         "--value play is not the name of a column: did you mean 'plays'?"),
        (["fit", "{plays}", "--feature", "artist"], "the column of times with --time too."),
        (["fit", "{plays}", *LONG[:-1], "X"], "--freq X is not known"),
        (["fit", "{plays}", *LONG, "--exposure", "size"], "--exposure size is not the"),
        (["fit", "{plays}"], "artist"),
        (["fit", "{tmp}/none.csv"], "none.csv: there is no such file"),
        (["fit", "{model}"], "is a model, not a table"),
        (["fit", "sotu", "--freq", "Y"], "--freq Y: 'sotu' is embedded data"),
        (["fit", "sotu", "--drop-partial"], "--drop-partial: 'sotu' is embedded data"),
        (["fit", "{plays}", *LONG, "--chain", "rat"], "--chain rat is not known"),
        (["fit", "{plays}", *LONG, "--likelihood", "gauss"], "--likelihood gauss is not known"),
        (["fit", "{plays}", *LONG, "--chain", "none", "--calibrate", "5"], "--calibrate 5: Plain"),
        (["fit", "{plays}", *LONG, "--likelihood", "exponential", "--calibrate", "5"],
         "--calibrate 5 is for counts"),
        (["demo", "--out", "{tmp}/new", "--calibrate", "4"], "--calibrate 4: at least 5 past"),
        (["fit", "{plays}", *LONG, "--components", "0"], "'--components'"),
        (["fit", "{plays}", "--tiem", "date"], "--tiem"),
        (["forecast", "{plays}"], "plays.csv is not a model"),
        (["forecast", "{tmp}/none.npz"], "none.npz: there is no such file"),
        (["forecast", "{model}", "--steps", "0"], "'--steps'"),
        (["forecast", "{model}", "--of", "words"], "'--of'"),
        (["forecast", "{model}", "--coverage", "90"], "--coverage 90: expected numbers strictly"),
        (["forecast", "{model}", "--coverage", "a,b"], "--coverage a,b"),
        (["forecast", "{model}", "--exposure", "-1"], "--exposure -1: expected a positive"),
        (["forecast", "{model}", "--exposure", "1,2"],
         "--exposure 1,2 has 2 numbers. Give one, or 5."),
        (["forecast", "{model}", "--exposure", "many"], "--exposure many: expected a positive"),
        (["impute", "{model}", "--freq", "M"], "--freq M: this is for a FILE after MODEL"),
        (["report", "{plays}"], "plays.csv is not a model"),
        (["info", "{tmp}/none.npz"], "no such file"),
        (["fot"], "fot"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_with_its_remedy(words, said, plays, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert said in refused(
        *(w.format(plays=plays[0], model=fitted[0], tmp=tmp_path) for w in words)
    )
    assert not list(tmp_path.iterdir())


def test_damaged_models_and_models_of_later_versions_are_refused(fitted, tmp_path):
    import zipfile

    whole = fitted[0].read_bytes()
    path = tmp_path / "m.npz"
    for damaged in (b"", whole[:1000], whole[: len(whole) // 2] + whole[len(whole) // 2 + 9 :]):
        path.write_bytes(damaged)
        for command in ("forecast", "info", "report"):
            assert "m.npz" in refused(command, path)
    with zipfile.ZipFile(fitted[0]) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "header.json":
                text = text.replace(b'"schema": 2', b'"schema": 999')
            new.writestr(name, text)
    for command in ("forecast", "info", "report"):
        assert "Update temporalnmf" in refused(command, path, *(("--json",) * (command == "info")))
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


def test_escape_codes_in_names_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "evil.csv"
    path.write_text("year,\x1b[31mred,b\n2000,1,2\n2001,2,2\n2002,3,1\n2003,1,1\n")
    result = invoke("fit", path, "--components", 1, "--out", tmp_path / "m.npz")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\x1b" not in done("forecast", tmp_path / "m.npz").output


def test_a_fault_of_the_program_has_exit_code_1(fitted, monkeypatch):
    def broken(path):
        raise RuntimeError("a fault")

    monkeypatch.setattr("temporalnmf.estimator.load", broken)
    result = invoke("forecast", fitted[0])
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


# Ctrl-C


@pytest.mark.long
def test_ctrl_c_during_a_fit_leaves_nothing(plays, tmp_path):
    out = tmp_path / "m.npz"
    process = started("fit", plays[0], *LONG, "--starts", 10**4, "--out", out)
    first = process.stdout.readline()  # it has read the file
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate()
    assert b"26 steps x 4 features" in first
    assert process.returncode == 130, errors
    assert errors == b"Interrupted: nothing was written.\n"
    assert b"Converged" not in rest
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["fit", "forecast", "impute", "report"])
def test_ctrl_c_while_writing_leaves_nothing(command, plays, fitted, tmp_path, monkeypatch):
    from pathlib import Path

    def interrupted(self, target):
        assert self.exists()  # it was written, under another name
        raise KeyboardInterrupt

    words = {"fit": [plays[0], *LONG, "--starts", 1]}.get(command, [fitted[0]])
    monkeypatch.setattr(Path, "replace", interrupted)
    result = invoke(command, *words, "--out", tmp_path / "result")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted: nothing was written.\n"
    assert not list(tmp_path.iterdir())


def test_ctrl_c_after_the_model_was_written_says_so(plays, tmp_path, monkeypatch):

    def interrupted(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(TemporalNMF, "calibrate", interrupted)
    out = tmp_path / "m.npz"
    result = invoke("fit", plays[0], *LONG, "--starts", 1, "--out", out, "--calibrate", 5)
    assert result.exit_code == 130
    assert result.stderr == f"Interrupted. Written before: {out}.\n"
    assert not load(out).calibration_.refitted


# Terminals and pipes


@pytest.mark.long
def test_a_pipe_gets_words_and_no_colours(plays, tmp_path):
    process = started("fit", plays[0], *LONG, "--components", 1, "--out", tmp_path / "m.npz")
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert b"\x1b" not in output + errors
    assert b"iteration 1," not in output + errors
    assert errors == b""


@pytest.mark.long
def test_a_warning_takes_one_line(plays, tmp_path):
    process = started(
        "fit", plays[0], *LONG, "--components", 30, "--starts", 1, "--out", tmp_path / "m.npz"
    )
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors.startswith(b"Warning: n_components=30 is larger than both dimensions of X")
    assert errors.count(b"\n") == 1
    assert b"written: " in output


@pytest.mark.long
def test_a_terminal_gets_progress_on_standard_error(plays, tmp_path):
    words = ("fit", plays[0], *LONG, "--components", 1, "--out", tmp_path / "m.npz")
    output, shown = in_terminal(*words)
    assert b"of 3, iteration" in shown or b"from the best start, iteration" in shown
    assert b"start 4 of 3" not in shown
    assert b"objective" in shown
    assert b"\x1b" not in output


def test_time_left_is_a_bound_at_first_and_an_estimate_after_a_start():
    told, now = [], [0.0]
    watch = Watch(told.append, n_starts=3, max_iter=100, clock=lambda: now[0])

    def look(at, iteration):
        now[0] = at
        watch(Progress(iteration, 123.456789, 0.1, np.ones((1, 1)), np.ones((1, 1))))

    look(5.0, 1)  # compiled for five seconds
    assert told[-1] == "start 1 of 3, iteration 1, objective 123.457, 0:05"
    look(7.0, 11)  # 0.2 s each, 289 to go
    assert told[-1].endswith("0:07, at most 0:58 left")
    look(15.0, 1)  # a start took 10 s
    assert told[-1] == "start 2 of 3, iteration 1, objective 123.457, 0:15, about 0:20 left"
    look(19.0, 20)
    assert told[-1].endswith("about 0:16 left")
    look(60.0, 40)
    assert told[-1].endswith("1:00, about 0:00 left")
    look(62.0, 1)
    look(63.0, 1)  # the fit goes on from the best start
    assert told[-1] == "from the best start, iteration 1, objective 123.457, 1:03"


@pytest.mark.long
def test_without_pandas_a_forecast_is_shown_and_a_file_refused(fitted, tmp_path):
    code = (
        "import sys\nsys.modules['pandas'] = None\nfrom temporalnmf.__main__ import main\n"
        f"sys.argv = ['temporalnmf', 'forecast', {str(fitted[0])!r}, '--out', 'next.csv']\nmain()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert 'pip install "temporalnmf[io]"' in process.stderr
    assert "2020-03" in process.stdout
    assert not list(tmp_path.iterdir())


# The demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new"
    words = ("demo", "--out", folder, "--components", 2, "--starts", 2, "--calibrate", 5)
    return words, folder, done(*words).output


@pytest.mark.long
def test_demo_ends_with_the_paths_of_both_reports(demo):
    _, folder, output = demo
    reports = [folder / "report.html", folder / "flights_report.html"]
    last, *paths = output.splitlines()[-3:]
    assert last == "Open these reports in a browser:"
    assert [line.split(":", 1)[1].strip() for line in paths] == list(map(str, reports))
    names = ["forecast.csv", "model.npz", "report.html"]
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [*names, *(f"flights_{name}" for name in names)]
    )


@pytest.mark.long
def test_demo_shows_the_state_of_the_union(demo):
    _, folder, output = demo
    output = output[: output.index("\nFlights\n")]
    assert "232 steps x 1609 features" in output
    assert "5 forecasts of past steps were compared" in output
    assert "2022" in output
    assert f"of 5 steps. All are in {folder / 'forecast.csv'}." in output
    assert "may be too narrow" not in output  # all five steps were checked
    rows = rows_of(folder / "forecast.csv")
    assert len(rows) == 5 * 1609
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "presidents" in page
    assert load(folder / "model.npz").provenance_["source"] == "sotu"


@pytest.mark.long
def test_demo_shows_the_season_of_the_flights_and_two_weeks(demo):
    _, folder, output = demo
    output = output[output.index("\nFlights\n") :]
    assert "181 steps x 229 features" in output
    assert "Season week:" in output
    assert "below the level on Saturday" in output
    assert "Reason: week: errors of held-out steps are" in output
    assert "2001-07-14" in output
    assert "2001-07-01 to 2001-07-14" in output  # the sum
    rows = rows_of(folder / "flights_forecast.csv")
    assert len(rows) == 14 * 229
    page = (folder / "flights_report.html").read_text(encoding="utf-8")
    assert "airports" in page
    model = load(folder / "flights_model.npz")
    assert model.provenance_["source"] == "flights2001"
    assert model.season_["week"].shape == (2, 7)


@pytest.mark.long
def test_demo_replaces_a_former_demo_but_no_other_file(demo, tmp_path):
    words, folder, output = demo
    before = [(folder / name).read_bytes() for name in ("forecast.csv", "flights_forecast.csv")]
    assert done(*words).output.splitlines()[-3:] == output.splitlines()[-3:]
    after = [(folder / name).read_bytes() for name in ("forecast.csv", "flights_forecast.csv")]
    assert after == before


@pytest.mark.parametrize("name", ["report.html", "flights_report.html"])
def test_demo_does_not_replace_a_file_of_a_user(tmp_path, name):
    (tmp_path / name).write_text("mine")
    assert "--force" in refused("demo", "--out", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["model.npz", "flights_model.npz"])
def test_demo_does_not_replace_the_model_of_a_user(fitted, tmp_path, name):
    shutil.copy(fitted[0], tmp_path / name)
    assert f"{name} exists already" in refused("demo", "--out", tmp_path)


# Embedded data


def test_embedded_flights_are_read_by_their_name():
    output = done("info", "flights2001").output
    assert "flights2001: 181 steps x 229 features, total 2,999,994" in output
    assert "daily, 2001-01-01 to 2001-06-30" in output
    assert "--freq W: 'flights2001' is embedded data" in refused(
        "info", "flights2001", "--freq", "W"
    )


def test_the_commands_page_shows_what_fit_prints(tmp_path, monkeypatch):
    import re
    from pathlib import Path

    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], {})
    command = re.search(r"^temporalnmf (fit events.csv .* events.npz)$", page, re.M)[1]
    shown = re.search(r"```text\n(.*?)```", page, re.S)[1].splitlines()
    said = done(*shlex.split(command)).output.splitlines()
    for line, found in zip(shown, said, strict=True):
        if not line.startswith("Converged"):  # its numbers are those of one machine
            assert line == found.rstrip()


def test_append_takes_only_the_new_steps_of_a_file_that_has_grown(tmp_path):
    """Steps counted from 0 are times as well; a step that changed is spoken of."""
    counts = np.random.default_rng(0).integers(5, 50, size=(13, 3))
    for n in (10, 13):
        lines = [",".join(map(str, [i, *row])) for i, row in enumerate(counts[:n].tolist())]
        (tmp_path / f"{n}.csv").write_text("\n".join(["step,a,b,c", *lines]) + "\n")
    model = tmp_path / "model.npz"
    done("fit", tmp_path / "10.csv", "--components", 2, "--out", model)
    output = done("append", model, tmp_path / "13.csv", "--out", tmp_path / "new.npz").output
    assert "left out: 10 of 13 steps" in output
    assert "Added 3 steps (10 to 12): 13 in total." in output
    assert "differ" not in output
    changed = (tmp_path / "13.csv").read_text().splitlines()
    changed[10] = "9,500,500,500"
    (tmp_path / "13.csv").write_text("\n".join(changed) + "\n")
    output = done("append", model, tmp_path / "13.csv", "--out", tmp_path / "again.npz").output
    assert f"are not changed: 9: total {counts[9].sum()}, now 1,500" in " ".join(output.split())
    lines = [",".join(map(str, row)) for row in counts[10:].tolist()]
    (tmp_path / "more.csv").write_text("\n".join(["a,b,c", *lines]) + "\n")
    output = done("append", model, tmp_path / "more.csv", "--out", tmp_path / "third.npz").output
    assert "the file has no times: all of its steps count as new" in output
    assert len(load(tmp_path / "third.npz").times_) == 13


def test_bands_never_replace_the_filled_table(fitted, tmp_path):
    (tmp_path / "folder").mkdir()
    said = refused(
        "impute", fitted[0], "--out", tmp_path / "a.csv", "--bands", tmp_path / "folder/../a.csv"
    )
    assert "--bands" in said


def test_cells_without_a_value_stay_hidden_when_features_are_put_in_order(tmp_path):
    """Sparse tables: a word that is new, words that are absent, one cell of unknown value."""
    rng = np.random.default_rng(0)
    names = [f"w{i:03d}" for i in range(200)]
    old = [f"{2000 + n},{w},3" for n in range(8) for w in ("w000", *rng.choice(names, 12))]
    old += [f"2003,{w},1" for w in names]
    new = [f"{2008 + n},{w},2" for n in range(3) for w in ("w000", "w150", "zebra")]
    new += ["2008,w007,4", "2009,w007,NA"]
    new += [f"{2008 + n % 6},new{n:03d},1" for n in range(150)]  # so many that it is sparse, too
    for name, lines in (("old", old), ("new", new)):
        (tmp_path / f"{name}.csv").write_text("\n".join(["year,word,count", *lines]) + "\n")
    how = ("--time", "year", "--feature", "word", "--value", "count")
    model, out = tmp_path / "model.npz", tmp_path / "out.npz"
    done("fit", tmp_path / "old.csv", *how, "--components", 2, "--out", model)
    output = done("append", model, tmp_path / "new.csv", *how, "--out", out).output
    assert "so left out: 'new000', 'new001', 'new002' and 148 more, total 156" in output
    series = load(out)._series
    weights = np.broadcast_to(
        series.weights.toarray() if hasattr(series.weights, "toarray") else series.weights,
        series.X.shape,
    )
    assert np.argwhere(weights == 0).tolist() == [[9, 7]]
