"""The command line and what importing costs."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import changed, invoke
from temporalnmf import registry
from temporalnmf.cli import app


def _run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_the_package_loads_neither_numba_nor_extras():
    code = "import sys, temporalnmf, temporalnmf.registry; print(*sys.modules)"
    loaded = set(_run_python(code).split())
    assert "temporalnmf" in loaded
    assert not loaded & {"numba", "pandas", "typer", "rich", "matplotlib"}


@pytest.mark.parametrize(
    "words", [["--help"], pytest.param(["fit", "--help"], marks=pytest.mark.long)]
)
def test_help_loads_neither_numba_nor_pandas(words):
    code = (
        f"import sys\nfrom temporalnmf.__main__ import main\nsys.argv = ['temporalnmf', *{words}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'numba', 'pandas', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    printed = _run_python(code)
    assert "Usage: temporalnmf" in printed
    assert printed.splitlines()[-1] == "set()"


def test_missing_extra_says_how_to_install_it():
    code = (
        "import sys\nsys.modules['typer'] = None\nfrom temporalnmf.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end)"
    )
    assert 'pip install "temporalnmf[cli]"' in _run_python(code)


def test_version_is_printed():
    from temporalnmf import __version__

    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"temporalnmf {__version__}"


def test_simulate_writes_the_paths_of_the_seed_and_a_picture(tmp_path):
    from temporalnmf.chains import Rate

    csv_path, png = tmp_path / "new" / "rate.csv", tmp_path / "rate.png"
    result = invoke(
        "simulate", "rate", "--alpha", 1.5, "--beta", 1.3, "--n-steps", 20, "--n-paths", 3,
        "--seed", 4, "--plot", png, "--csv", csv_path,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "almost every path goes to zero" in " ".join(result.output.split())
    rows = list(csv.DictReader(csv_path.read_text().splitlines()))
    values = np.array([float(r["h"]) for r in rows]).reshape(3, 20)
    np.testing.assert_array_equal(values, Rate(1.5, 1.3).sample(3, 20, 4))
    assert [(r["path"], r["step"]) for r in rows[18:22]] == [
        ("1", "19"), ("1", "20"), ("2", "1"), ("2", "2"),
    ]  # fmt: skip
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == ["rate.csv", "rate.png"]
    mean = Rate(1.5, 1.3).mean(1.0, 20)
    assert f" {mean:.3g} " in result.output


@pytest.mark.parametrize("name", registry.PROCESSES)
def test_simulate_knows_every_process(name):
    result = invoke("simulate", name, "--n-steps", 3)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rat"], "chain='rat' is not known"),
        (["rate", "--rho", 0.5], "--rho 0.5: rate has no rho; it takes --alpha, --beta"),
        (["rate", "--alpha", -1], "Rate(alpha=-1.0)"),
        (["bgar", "--rho", 1], "BGAR(rho=1.0): rho must lie in [0, 1)"),
        (["rate", "--h1", 0], "--h1 0.0: expected"),
        (["rate", "--n-steps", 0], "--n-steps 0: expected"),
        (["rate", "--plot", "{}/x.abc"], "'abc' is not supported"),
        (["rate", "--plot", "{}/x"], "has no suffix"),
    ],
)
def test_simulate_says_what_is_wrong(words, said, tmp_path):
    result = invoke("simulate", *(str(word).format(tmp_path) for word in words))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_missing_matplotlib_says_how_to_install_it():
    code = (
        "import sys\nsys.modules['matplotlib.figure'] = None\n"
        "from temporalnmf.__main__ import main\n"
        "sys.argv = ['temporalnmf', 'figures', '--out', 'nowhere']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "temporalnmf[plot]"' in done.stderr


def test_files_are_written_whole_or_not_at_all(tmp_path):
    from temporalnmf.runtime.files import write_csv, written_whole

    path = tmp_path / "a.csv"
    write_csv(path, [{"x": 1}])

    def rows():
        yield {"x": 2}
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        write_csv(path, rows())
    assert path.read_text() == "x\n1\n"
    with pytest.raises(OSError, match="full"), written_whole(path) as partial:  # noqa: PT012
        partial.write_text("half")
        raise OSError("disk full")
    assert path.read_text() == "x\n1\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


# Experiments


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """A CSV as somebody might bring it: 30 months, 10 columns."""
    rng = np.random.default_rng(0)
    H = 60.0 * np.exp(np.cumsum(rng.normal(0.0, 0.2, size=(30, 2)), axis=0))
    X = rng.poisson(H @ rng.dirichlet(np.ones(10), size=2))
    path = tmp_path_factory.mktemp("data") / "plays.csv"
    months = [f"{2020 + n // 12}-{n % 12 + 1:02d}" for n in range(30)]
    lines = [f"{month},{','.join(map(str, row))}" for month, row in zip(months, X, strict=True)]
    path.write_text("\n".join(["month," + ",".join(f"band {i}" for i in range(10)), *lines]))
    return path


@pytest.mark.long
def test_compare_writes_tables_and_goes_on_from_its_records(newcomer, tmp_path):
    out = tmp_path / "out"
    words = ("compare", newcomer, "--components", 2, "--splits", 2, "--inits", 1, "--out", out,
             "--origins", 2)  # fmt: skip
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "30 steps x 10 features" in result.output
    models = [
        "last_value", "last_cycle", "none", "gap", "rate", "hier_rate", "shape", "hier_shape",
        "bgar", "arg",
    ]  # fmt: skip
    table = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    assert [row["model"] for row in table] == models
    for column in ("kle_s_mean", "kle_s_std", "kle_f_mean", "kle_f_std"):
        assert all(float(row[column]) >= 0.0 for row in table)
    records = list(csv.DictReader((out / "records.csv").read_text().splitlines()))
    assert len(records) == (2 + 2) * len(models)
    for name in ("table.md", "table.tex", "differences.png", "config.json", "fits.jsonl"):
        assert (out / name).stat().st_size > 0
    said = " ".join(result.output.split())
    assert "Gap error: no intervals, so no verdict; they need at least 5 splits, --splits 5" in said
    assert "forecast errors those of the next step, from 2 origins" in said
    assert "KLE" not in said
    # Again: nothing to do, the same table.
    before = (out / "fits.jsonl").read_bytes()
    assert invoke(*words).exit_code == 0
    assert (out / "fits.jsonl").read_bytes() == before
    other = invoke(*words[:3], 3, *words[4:])
    assert other.exit_code == 2
    assert "another experiment: n_components was 2, now it is 3" in other.stderr


@pytest.mark.long
def test_compare_ranks_draws_beside_modes(newcomer, tmp_path):
    words = (
        "compare", newcomer, "--components", 1, "--splits", 1, "--inits", 1, "--chains", "gap",
        "--inference", "map,gibbs", "--choose-components", "1,2", "--choose-smoothing", "learn,1",
        "--out", tmp_path, "--origins", 0,
    )  # fmt: skip
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    records = list(csv.DictReader((tmp_path / "records.csv").read_text().splitlines()))
    assert [record["model"] for record in records] == ["gap", "gap:gibbs"]
    assert "n_components=" in records[1]["params"]
    assert float(records[1]["kle_f_seen"]) > 0.0
    for option, value, words_of_error in (
        ("--inference", "mcmc", "--inference mcmc is not known"),
        ("--choose-components", "3,x", "--choose-components 3,x: expected positive numbers"),
        ("--choose-smoothing", "-1", "--choose-smoothing -1: expected positive numbers"),
    ):
        wrong = invoke("compare", newcomer, option, value, "--out", tmp_path / "other")
        assert wrong.exit_code == 2
        assert words_of_error in wrong.stderr


@pytest.mark.long
def test_compare_killed_with_two_workers_ends_the_same_when_resumed_with_one(newcomer, tmp_path):
    words = [
        "compare", str(newcomer), "--components", "2", "--splits", "2", "--inits", "8",
        "--chains", "gap,rate", "--seed", "3", "--origins", "1",
    ]  # fmt: skip
    assert invoke(*words, "--out", tmp_path / "calm").exit_code == 0
    out = tmp_path / "killed"
    log = out / "fits.jsonl"
    patch = (
        "import os\n"
        "from temporalnmf.experiments import runner\n"
        "class Dies(list):\n"
        "    def __call__(self, file, line):\n"
        "        add(file, line)\n"
        "        self.append(line)\n"
        "        len(self) == 9 and os.kill(os.getpid(), 9)\n"
        "add, runner.add_record = runner.add_record, Dies()"
    )
    assert changed(patch, *words, "--jobs", 2, "--out", out) == -9
    assert log.read_bytes().count(b"\n") == 9
    assert invoke(*words, "--out", out).exit_code == 0
    both = [
        [
            {column: cell for column, cell in row.items() if column != "seconds"}
            for row in csv.DictReader((folder / "records.csv").read_text().splitlines())
        ]
        for folder in (tmp_path / "calm", out)
    ]
    assert both[0] == both[1]
    # Splits times starts, and two origins, of two chains at three points.
    assert log.read_bytes().count(b"\n") == (2 * 8 + 2) * 6


def test_compare_and_select_rank_read_long_tables(newcomer, tmp_path):
    """The wide table as a long one, two months of it lost: the same totals, two absent steps."""
    head, *lines = (line.split(",") for line in newcomer.read_text().splitlines())
    cells = [
        (month, name, count)
        for month, *counts in lines
        for name, count in zip(head[1:], counts, strict=True)
        if month not in ("2020-05", "2021-02")
    ]
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["when,who,plays", *map(",".join, cells)]))
    total = sum(int(count) for _, _, count in cells)
    how = ("--time", "when", "--feature", "who", "--value", "plays", "--freq", "M")
    for words in (
        ("compare", path, "--components", 1, "--splits", 1, "--inits", 1, "--chains", "rate"),
        ("select-rank", path, "--largest", 1, "--splits", 2),
    ):
        result = invoke(*words, "--out", tmp_path / words[0], *how)
        assert result.exit_code == 0, result.output
        assert f"30 steps x 10 features, total {total:,}" in result.output
        assert "absent periods: 2 (2020-05, 2021-02)" in result.output
        assert (tmp_path / words[0] / "table.csv").exists()


def test_compare_says_that_a_short_series_has_no_intervals(newcomer, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text("\n".join(newcomer.read_text().splitlines()[:9]))
    out = tmp_path / "o"
    words = ("compare", short, "--components", 1, "--splits", 2, "--inits", 1, "--out", out)
    result = invoke(*words, "--chains", "gap,rate")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "Gap error: no intervals, so no verdict; they need at least 5 splits, --splits 5" in said
    assert (
        "Forecast error: no intervals, so no verdict; they need at least 5 origins: a longer"
        in said
    )


def test_compare_names_the_bad_cell(newcomer, tmp_path):
    lines = newcomer.read_text().splitlines()
    cells = lines[6].split(",")
    cells[3] = "abc"
    lines[6] = ",".join(cells)
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join(lines))
    result = invoke("compare", bad, "--out", tmp_path / "out")
    assert result.exit_code == 2
    for word in ("bad.csv", "line 7", "2020-06", "'band 2'", "'abc'"):
        assert word in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "{}/none.csv", "--out", "{}/o"], "no such file"),
        (["compare", "sotu", "--out", "{}/o", "--chains", "rate,arma"], "model='arma'"),
        (["compare", "sotu", "--out", "{}/o", "--way", "mine"], "--way mine is not known"),
        (["reproduce", "wikipedia", "--out", "{}/o"], "dataset='wikipedia'"),
        (["reproduce", "nips", "--out", "{}/o", "--data", "{}"], "nips"),
        (["select-rank", "{}/none.npy"], "no such file"),
    ],
)
def test_experiments_say_what_is_wrong(words, said, tmp_path, monkeypatch):
    monkeypatch.delenv("TEMPORALNMF_DATA", raising=False)
    result = invoke(*(str(word).format(tmp_path) for word in words))
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.long
def test_reproduce_prints_published_numbers_only_beside_the_same_data(tmp_path):
    from scipy import sparse

    counts = np.random.default_rng(0).poisson(2.0, size=(8, 20))
    sparse.save_npz(tmp_path / "icews.npz", sparse.csr_array(counts))
    words = ("reproduce", "icews", "--data", tmp_path / "icews.npz", "--splits", 1, "--inits", 1)
    result = invoke(*words, "--components", 1, "--out", tmp_path / "o")
    assert result.exit_code == 0, result.output
    assert "stand-in" in result.output
    assert "published" not in result.output.split("stand-in", 1)[1].split("\n", 1)[1]
    assert not (tmp_path / "o" / "published.csv").exists()
    plays = np.random.default_rng(0).poisson(5.5, size=(7017, 53))
    plays[0, 0] += 2_067_454 - plays.sum()  # the paper's total
    np.save(tmp_path / "lastfm.npy", plays)
    result = invoke(
        "reproduce", "lastfm", "--data", tmp_path, "--splits", 1, "--inits", 1, "--components", 1,
        "--out", tmp_path / "p", "--chains", "none,gap,rate",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "p" / "published.csv").read_text().splitlines()))
    assert [row["model"] for row in rows] == ["gap", "rate"]
    assert float(rows[0]["kle_s_published"]) == 13000.0
    assert "ratios mean little: n_components, n_splits, n_inits" in result.output
    said = " ".join(result.output.split())
    assert "All splits are of one data set and share its last step" in said
    assert "neither is a confidence interval, and no verdict follows" in said


def test_compare_and_select_rank_have_the_reading_options_of_fit():
    """Every option of the panel on reading, and exposure is one of them."""
    import typer.main

    commands = typer.main.get_command(app).commands
    options = {
        name: {
            option
            for parameter in commands[name].params
            if getattr(parameter, "rich_help_panel", None) == "Reading the file"
            for option in parameter.opts
        }
        for name in ("fit", "compare", "select-rank")
    }
    assert "--exposure" in options["fit"]
    assert options["compare"] == options["select-rank"] == options["fit"]


def test_compare_and_select_rank_take_exposure(newcomer, tmp_path):
    """Twice the exposure and twice the counts in every other month: no error is due to it."""
    head, *lines = newcomer.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    days = [1 + n % 2 for n in range(30)]
    text = [
        ",".join([month, str(size), *(str(size * 100) for _ in counts)])
        for (month, *counts), size in zip(cells, days, strict=True)
    ]
    path = tmp_path / "days.csv"
    path.write_text("\n".join([head.replace("month", "month,days"), *text]))
    how = ("--exposure", "days", "--out", tmp_path)
    words = ("compare", path, "--components", 1, "--splits", 2, "--inits", 1, "--origins", 2)
    result = invoke(*words, "--chains", "last_value,none", *how)
    assert result.exit_code == 0, result.output
    table = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert all(float(row["kle_s_mean"]) < 1e-2 for row in table)
    assert all(float(row["kle_f_mean"]) < 1e-2 for row in table)
    result = invoke("select-rank", path, "--largest", 1, "--splits", 2, *how)
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert float(row["error_mean"]) < 1e-6


def test_select_rank_marks_the_number_of_components_with_the_lowest_error(newcomer, tmp_path):
    result = invoke(
        "select-rank", newcomer, "--largest", 3, "--splits", 2, "--out", tmp_path, "--jobs", 1
    )
    assert result.exit_code == 0, result.output
    table = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["n_components"] for row in table] == ["1", "2", "3"]
    (chosen,) = (row for row in table if row["chosen"] == "True")
    assert float(chosen["error_mean"]) == min(float(row["error_mean"]) for row in table)
    records = list(csv.DictReader((tmp_path / "records.csv").read_text().splitlines()))
    assert len(records) == 6
    assert (tmp_path / "rank.png").read_bytes().startswith(b"\x89PNG")
