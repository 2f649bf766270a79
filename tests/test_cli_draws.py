"""Posterior draws on the command line."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest

from cases import estimator
from commands import changed, done, in_terminal, invoke, refused
from drawn import NAMES, SETTLED, drawn, months
from temporalnmf import load
from temporalnmf.chains import Rate
from temporalnmf.checkpoints.file import CheckpointFile

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DRAWS = (
    "--components", 2, "--solver", "gibbs", "--draws", 40, "--tune", 20, "--runs", 2, "--learn",
    "alpha,smoothing",
)  # fmt: skip


def written(X, path):
    X.rename_axis("month").reset_index().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X = months()[:28].dropna()
    X.index = X.index.strftime("%Y-%m")
    return written(X, tmp_path_factory.mktemp("table") / "months.csv")


@pytest.fixture(scope="module")
def model(table):
    path = table.parent / "model.npz"
    return path, done("fit", table, *DRAWS, "--out", path, "--jobs", 1).output


def test_fit_by_draws_is_what_the_library_does(table, model):
    path, output = model
    found = load(path)
    expected = estimator(
        2, chain=Rate(alpha="learn"), smoothing="learn", solver="gibbs", n_draws=40, n_tune=20,
        n_chains=2, random_state=0,
    ).fit(str(table))  # fmt: skip
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.posterior_.smoothing, expected.posterior_.smoothing)
    said = " ".join(output.split())
    assert "2 runs of 40 draws" in said
    for quantity in found.posterior_.diagnosis.quantities:
        assert f"{quantity.name} {quantity.rhat:.3f} {quantity.ess_bulk:,.0f}" in said
    assert "--tune and --draws" in said or "rely on predictions" in said
    assert "n_draws" not in said
    assert "onverged" not in said


def test_info_shows_draws_and_verdict(model):
    path, _ = model
    output = done("info", path).output
    found = load(path).posterior_.diagnosis
    assert "2 runs of 40 draws, NOT SETTLED: see below" in output
    assert "means of draws: alpha\n" in output
    assert "bulk ESS" in output
    told = json.loads(done("info", path, "--json").stdout)
    assert told["solver"] == "gibbs"
    draws = told["draws"]
    assert [draws["runs"], draws["draws"], draws["thin"]] == [2, 40, 1]
    assert draws["settled"] is False
    assert draws["verdict"] == found.verdict
    assert [q["name"] for q in draws["quantities"]] == [q.name for q in found.quantities]
    assert draws["quantities"][0]["rhat"] == found.quantities[0].rhat


def test_info_says_whether_draws_are_settled(tmp_path):
    settled, mode = drawn(1, **SETTLED), estimator(2, random_state=0).fit(months())
    path = settled.save(tmp_path / "m.npz")
    assert "4 runs of 400 draws, settled: see below" in done("info", path).output
    assert json.loads(done("info", path, "--json").stdout)["draws"]["settled"] is True
    path = mode.save(tmp_path / "mode.npz")
    assert json.loads(done("info", path, "--json").stdout)["draws"] is None


@pytest.mark.long
def test_forecast_append_and_report_work_from_draws(model, tmp_path):
    path, _ = model
    fitted = load(path)
    out = tmp_path / "next.csv"
    output = done("forecast", path, "--steps", 2, "--out", out).output
    assert "n_draws" not in output
    frame = pd.read_csv(out)
    expected = fitted.forecast(2).to_frame()["mean"]
    np.testing.assert_allclose(frame["mean"], expected, rtol=5.01e-6)  # six digits
    more = months()[:28].dropna()[-3:]
    more.index = ["2003-05", "2003-06", "2003-08"]
    written(more, tmp_path / "more.csv")
    new = tmp_path / "new.npz"
    output = done("append", path, tmp_path / "more.csv", "--out", new).output
    assert "Added 4 steps" in output
    assert load(new).posterior_.activations.shape == (2, 40, 32, 2)
    words = ("append", path, tmp_path / "more.csv", "--update-components", "--out", new, "--force")
    output = done(*words).output
    assert "Everything was drawn again: 2 runs of 40 draws." in output
    assert "bulk ESS" in output
    page = tmp_path / "r.html"
    done("report", new, "--out", page)
    assert "How sure are these results?" in page.read_text(encoding="utf-8")


def test_imputed_values_are_means_over_all_draws(model, tmp_path):
    path, _ = model
    fitted = load(path)
    done("impute", path, "--out", tmp_path / "filled.csv", "--bands", tmp_path / "bands.csv")
    filled = pd.read_csv(tmp_path / "filled.csv")[NAMES].to_numpy()
    gaps = np.flatnonzero(~fitted.observed_)
    assert gaps.tolist() == [3, 4, 20]
    H, W = (fitted.posterior_.flat(name) for name in ("activations", "components"))
    expected = np.einsum("snk,skf->nf", H[:, gaps], W.astype(float)) / len(H)
    np.testing.assert_allclose(filled[gaps], expected, rtol=1e-5)
    seen = fitted.observed_
    np.testing.assert_array_equal(filled[seen], months()[:28].to_numpy()[seen])
    bands = pd.read_csv(tmp_path / "bands.csv")
    assert (bands["lower_90"] <= bands["upper_90"]).all()
    assert len(bands) == 18
    one, many = fitted.smooth(n_samples=1), fitted.smooth(n_samples=80)
    np.testing.assert_array_equal(one.values, many.values)


def test_fit_learns_by_draws_and_by_a_mode(table, tmp_path):
    out = tmp_path / "m.npz"
    few = ("--draws", 4, "--tune", 0, "--runs", 1)
    fit = ("fit", table, "--components", 2, "--out", out)
    done(*fit, "--solver", "gibbs", "--learn", "all", "--chain", "bgar", *few)
    draws = load(out).posterior_
    assert {"alpha", "rho"} <= set(draws.parameters)
    assert np.ptp(draws.smoothing) > 0.0
    done(*fit, "--learn", "beta", "--starts", 1, "--force")
    assert load(out).chain_.beta.shape == (2,)
    assert load(out).posterior_ is None
    assert "learned (90 %): β = " in done("info", out).output


@pytest.mark.parametrize("solver", ["gibbs", "accelerated"])
def test_learn_all_is_all_that_can_be_learned_together(table, tmp_path, solver):
    out = tmp_path / "m.npz"
    few = ("--draws", 4, "--tune", 0, "--runs", 1) if solver == "gibbs" else ("--starts", 1)
    words = ("--components", 2, "--chain", "hier_rate", "--learn", "all", *few, "--out", out)
    done("fit", table, "--solver", solver, *words)
    model = load(out)
    if solver == "gibbs":
        assert model.posterior_.learned == ("alpha_z", "beta_z", "alpha_h")
    else:
        assert list(model.learned_) == ["alpha_z", "beta_z", "alpha_h"]
        assert model.chain_.alpha_h.shape == (2,)
    assert model.smoothing == "learn"


G = ("--solver", "gibbs")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--draws", 5), "--draws 5 has no effect with --solver accelerated: use --solver gibbs"),
        ((*G, "--starts", 3), "--starts 3 has no effect with --solver gibbs: see --draws and"),
        ((*G, "--max-iter", 9), "--max-iter 9 has no effect with --solver gibbs"),
        ((*G, "--likelihood", "exponential"),
         "posterior draws for --likelihood poisson and --likelihood negative_binomial only."),
        ((*G, "--chain", "none"), "--chain none is not a prior"),
        ((*G, "--thin", 9, "--draws", 5), "--thin 9 is larger than --draws 5"),
        ((*G, "--learn", "gamma"),
         "with --chain rate and --likelihood auto it can be alpha, beta, smoothing."),
        ((*G, "--learn", ""), "--learn : with --chain rate"),
        ((*G, "--learn", "alpha,"),
         "--learn alpha,: one name is empty; with --chain rate and --likelihood auto it"),
        ((*G, "--learn", "alpha, gamma"), "gamma is not known; with --chain rate and"),
        ((*G, "--chain", "hier_rate", "--learn", "beta_h,beta_z"),
         "--learn beta_h,beta_z: only the ratio of beta_z and beta_h matters. Learn one of them."),
        (("--calibrate", 4),
         "--calibrate 4: at least 5 past forecasts are needed. Take 20"),
        ((*G, "--checkpoint", "new/c"),
         "--checkpoint new/c: there is no folder new. Make it, or choose another."),
        ((*G, "--checkpoint", os.devnull), "is not a checkpoint of a fit"),
        (("--solver", "nuts"), "nuts"),
        ((*G, "--checkpoint", "m.npz"), "--checkpoint m.npz is the file of --out"),
        ((*G, "--checkpoint", "."), "--checkpoint . is a folder"),
        ((*G, "--checkpoint", "{table}"), "is the input file"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(words, said, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("temporalnmf.cli.data.read", None)  # a large file is not read before
    given = [str(word).format(table=table) for word in words]
    assert said in refused("fit", table, *given, "--out", "m.npz")
    assert not list(tmp_path.iterdir())


def test_a_foreign_checkpoint_is_refused(table, tmp_path):
    other = tmp_path / "c"
    other.write_text("something else")
    words = ("fit", table, *DRAWS, "--out", tmp_path / "m.npz", "--checkpoint", other)
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: --checkpoint {other} is not a checkpoint of a fit")
    assert result.stdout == ""  # nothing is said of continuing, and nothing is read
    assert other.read_text() == "something else"
    done("fit", table, "--components", 1, "--starts", 1, "--out", tmp_path / "model.npz")
    assert "is not a checkpoint" in refused(*words[:-1], tmp_path / "model.npz")


def test_a_checkpoint_of_another_fit_is_refused(table, tmp_path):
    path = tmp_path / "it's one.npz"
    CheckpointFile(path, {"n_components": 7}).write({})
    before = path.read_bytes()
    words = ("fit", table, *DRAWS, "--out", tmp_path / "m.npz", "--checkpoint", path)
    result = invoke(*words)
    assert result.exit_code == 2
    assert f"Found {path}: continuing from it, if it is of the same fit." in result.stdout
    said = f"Error: --checkpoint {str(path)!r} is of a fit with n_components=7"
    assert result.stderr.startswith(said)
    assert path.read_bytes() == before


def test_a_checkpoint_that_cannot_be_written_is_refused_at_the_start(table, tmp_path, monkeypatch):
    """Such as a name that is as long as names may be, so that there is none for its draft."""
    monkeypatch.setattr("temporalnmf.sampling.run._Sampler._start", None)
    path = tmp_path / ("c" * 255)
    said = refused("fit", table, *DRAWS, "--out", tmp_path / "m.npz", "--checkpoint", path)
    assert said.startswith(f"Error: --checkpoint {path} cannot be written: ")
    assert not list(tmp_path.iterdir())


def test_fractions_are_refused_in_words_of_the_command_line(tmp_path):
    path = written((months()[:28] / 7.0).dropna(), tmp_path / "rates.csv")
    said = refused("fit", path, *DRAWS, "--out", tmp_path / "m.npz")
    assert "give the size behind rates as --exposure, or use --solver accelerated." in said


def goes_on(words, out, checkpoint, whole):
    """The same command again: it ends with the draws of a run that nobody stopped."""
    assert not out.exists()
    assert checkpoint.exists()
    output = done(*words).output
    assert f"Found {checkpoint}: continuing from it" in output
    assert not checkpoint.exists()
    for name in ("components", "activations", "log_posterior", "smoothing"):
        got, wanted = (getattr(load(path).posterior_, name) for path in (out, whole))
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.long
def test_after_a_kill_the_same_command_goes_on(table, model, tmp_path):
    out, checkpoint = tmp_path / "m.npz", tmp_path / "draws.ckpt"
    words = ("fit", table, *DRAWS, "--jobs", 1, "--out", out, "--checkpoint", checkpoint)
    patch = (
        "import os\n"
        "from temporalnmf.checkpoints.file import CheckpointFile\n"
        "write = CheckpointFile.write\n"
        "CheckpointFile.write = lambda *given: (write(*given), os.kill(os.getpid(), 9))"
    )
    assert changed(patch, *words, "--checkpoint-every", 0) == -signal.SIGKILL
    goes_on(words, out, checkpoint, model[0])


@pytest.mark.long
def test_ctrl_c_says_that_the_same_command_goes_on(table, model, tmp_path, monkeypatch):
    from contextlib import contextmanager

    last = 30  # in the first of two runs

    def interrupted(progress):
        if progress.iteration > last:
            raise KeyboardInterrupt

    @contextmanager
    def watched(*numbers):
        yield interrupted

    out, checkpoint = tmp_path / "m.npz", tmp_path / "draws.ckpt"
    words = ("fit", table, *DRAWS, "--jobs", 1, "--out", out, "--checkpoint", checkpoint)
    with monkeypatch.context() as patch:
        patch.setattr("temporalnmf.cli.fit.draws_progress", watched)
        result = invoke(*words, "--checkpoint-every", 10**6)  # nothing was kept
        assert result.stderr == "Interrupted: nothing was written.\n"
        last = 70
        result = invoke(*words, "--checkpoint-every", 0)
    assert result.exit_code == 130
    assert result.stderr == f"Interrupted: the same command continues from {checkpoint}.\n"
    goes_on(words, out, checkpoint, model[0])


@pytest.mark.long
def test_a_terminal_gets_a_bar_over_all_sweeps(table, tmp_path):
    words = ("fit", table, *DRAWS, "--out", tmp_path / "m.npz")
    output, shown = in_terminal(*words)
    assert b"run 2 of 2 drawing" in shown
    assert b"120/120" in shown
    assert b"\x1b" not in output
