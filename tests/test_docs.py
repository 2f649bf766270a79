"""What the documents show is what the code does."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]


def test_contributing_shows_real_sources():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- source: (\S+) -->\n```python\n(.*?)```\n", text, re.S)
    assert [Path(path).parent.name for path, _ in blocks] == ["chains", "likelihoods", "data"]
    for path, shown in blocks:
        assert shown == (ROOT / path).read_text(encoding="utf-8"), path


def test_every_equation_that_the_source_cites_is_on_the_page_of_mathematics():
    """Labels are capitals and a number, and the four in this list."""
    page = (ROOT / "docs" / "math.md").read_text(encoding="utf-8")
    defined = re.findall(r" {2,}\(([A-Z]+\d?)\)$", page, re.M)
    assert len(defined) == len(set(defined))
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        cited |= set(re.findall(r"(?<![\w.])\((M|G|S|ROOT|[A-Z]{1,2}\d)\)", text))
    assert len(cited) > 15
    assert cited <= set(defined)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # noise as data
def test_readme_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one writes a model
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 11
    X = np.random.default_rng(0).poisson(5.0, size=(30, 8)).astype(float)
    names = {"X": X, "np": np}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["test"].shape == (5, 8)
    assert names["search"].best_params_["chain__alpha"] in (10, 100)
    assert isinstance(names["words"], pd.DataFrame)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.npz"]


def test_readme_lists_every_chain():
    from temporalnmf import registry

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r'^\| `"(\w+)"`', text, re.M) == list(registry.CHAINS)


def test_defaults_page_quotes_its_table():
    """The means in docs/defaults.md are those of docs/defaults.csv."""
    table = pd.read_csv(ROOT / "docs" / "defaults.csv").set_index("setting")[["inside", "ahead"]]
    means = table.groupby(level=0).mean().mean(axis=1)
    page = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
    quoted = {
        "rate 100, smoothing 0": "1.120",
        "rate 100, smoothing 0.1": "1.070",
        "gap 1": "1.040",
        "rate 300": "1.055",
        "hier_rate 600": "1.062",
        "shape 100/level": "1.039",
        "hier_shape 1, beta 200/level": "1.041",
        "bgar 1, rho 0.97": "1.063",
        "none": "1.042",
    }
    for setting, shown in quoted.items():
        assert f"{means[setting]:.3f}" == shown, setting
        assert shown in page


def test_calibration_page_shows_its_table():
    from rolling_origin import rendered

    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    rows = pd.read_csv(ROOT / "docs" / "calibration.csv")
    assert rendered(page, rows) == page
    assert "| sotu | rate | calibrated |" in page


@pytest.mark.long
def test_page_of_chains_runs_and_shows_every_picture(tmp_path):
    import matplotlib as mpl
    from typer.testing import CliRunner

    from temporalnmf import registry
    from temporalnmf.cli import app

    mpl.use("Agg")
    page = (ROOT / "docs" / "chains.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "chains.md", "exec"), {})
    mpl.pyplot.close("all")
    shown = set(re.findall(r"!\[\]\((figures/\w+\.png)\)", page))
    drawn = CliRunner().invoke(app, ["figures", "--out", str(tmp_path / "figures")])
    assert drawn.exit_code == 0, drawn.output
    assert shown == {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.png")}
    assert shown == {str(p.relative_to(ROOT / "docs")) for p in ROOT.glob("docs/figures/*.png")}
    assert re.findall(r"^## `(\w+)`", page, re.M) == [n for n in registry.CHAINS if n != "none"]


def test_the_documents_quote_regimes_as_they_are_printed():
    """A comment behind `print(chain.regime())` is what it prints."""
    from temporalnmf.chains import Rate

    said = f"# {Rate(alpha=1.5, beta=1.3).regime()}\n"
    for name in ("README.md", "docs/chains.md"):
        assert said in (ROOT / name).read_text(encoding="utf-8")


def test_results_page_shows_its_tables():
    """Every table of docs/results/README.md is that of the CSV beside it."""
    from sync_results import BLOCK, PAGE, rendered

    text = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 8
    assert rendered(text) == text
    shown = set(re.findall(r"!\[\]\((\w+)\.png\)", text))
    assert shown <= {path.stem for path in PAGE.parent.glob("*.png")}
