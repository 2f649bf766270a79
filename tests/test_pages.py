"""Every code block of the pages and every guide runs; every command that is shown exists."""

import re
import runpy
import shlex
import shutil
from pathlib import Path

import matplotlib as mpl
import pytest
import sync_reliability
import typer
from matplotlib import pyplot
from typer.testing import CliRunner

from temporalnmf.cli import app

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "auto_gallery"} & set(p.parts))
LONG = {"calibration", "cluster", "commands", "draws"}
GUIDES = sorted(DOCS.glob("gallery/[0-9]_*.py"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMANDS = typer.main.get_command(app).commands

# Run where a page shows them and its earlier blocks made their input; others are only parsed.
QUICK = {"fit", "forecast", "impute", "info", "report", "shard", "simulate"}

# Files that show that the commands of a page were run, not only read.
MAKES = {
    "quickstart.md": ["plays.npz", "plays_next.csv", "plays.html", "plays_model.npz"],
    "commands.md": ["next_year.csv", "filled_bands.csv", "report.html", "events.npz", "paths.png"],
    "chains.md": ["rate.png", "rate.csv"],
    "cluster.md": ["plays.npz", "from_shards.npz", "from_parquet.npz", "small.npz", "kept.npz"],
}


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, and pictures that go nowhere."""
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    yield tmp_path
    pyplot.close("all")


def shown_commands(text):
    """Argument lists of the lines of a block that call temporalnmf, comments taken off."""
    joined = text.replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in joined.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["temporalnmf"]]


def inline_commands(page):
    """Those shown inside a sentence that have options, without a "…" for the rest."""
    found = re.findall(r"`temporalnmf ([^`…]+)`", BLOCK.sub("", page))
    return [words for words in map(shlex.split, found) if len(words) > 1]


def check_command(words):
    """The command exists and takes these options."""
    if words and words[0].startswith("--"):
        return
    assert words[0] in COMMANDS, f"no command {words[0]!r}; there are {sorted(COMMANDS)}"
    if "--help" not in words:
        COMMANDS[words[0]].make_context(words[0], list(words[1:]))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:X. absent periods")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.long if p.stem in LONG else ()) for p in PAGES],
    ids=lambda p: str(p.relative_to(DOCS)),
)
def test_blocks_of_a_page_run(page, workplace):
    """In order, in one namespace, in a folder in which nothing is but what the page made."""
    text = page.read_text(encoding="utf-8")
    names = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        if kind == "python":
            line = text.count("\n", 0, block.start(2))  # errors name the line of the page
            exec(compile("\n" * line + code, str(page), "exec"), names)
        for words in shown_commands(code):
            check_command(words)
            needs = [word for word in words[1:2] if Path(word).suffix]
            if words[0] in QUICK and all(Path(word).exists() for word in needs):
                done = CliRunner().invoke(app, words)
                assert done.exit_code == 0, f"{words}: {done.output}{done.exception!r}"
    for words in inline_commands(text):
        check_command(words)
    for name in MAKES.get(str(page.relative_to(DOCS)), []):
        assert (workplace / name).stat().st_size > 0, name


@pytest.mark.long
@pytest.mark.parametrize("guide", GUIDES, ids=lambda p: p.stem)
def test_guide_runs_and_draws(guide, workplace):
    shutil.copytree(guide.parent, workplace, dirs_exist_ok=True)
    before = set(workplace.iterdir())
    runpy.run_path(str(workplace / guide.name))
    assert pyplot.get_fignums()
    assert set(workplace.iterdir()) - before <= {workplace / "__pycache__"}  # it leaves nothing


def test_there_are_seven_guides_and_each_says_its_limits():
    assert len(GUIDES) == 7
    for guide in GUIDES:
        assert "What not to believe" in guide.read_text(encoding="utf-8"), guide


def test_every_page_is_in_the_contents():
    listed = {"index"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
            listed |= {line for line in tree.splitlines() if line and not line.startswith(":")}
    assert {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} <= listed


def test_commands_page_lists_every_command_and_exit_code():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    table = page.split("## ")[0]
    assert set(re.findall(r"`([\w-]+)`[,|\s]", table)) - {"cli", "all"} >= set(COMMANDS)
    assert re.findall(r"^\| (\d+) \|", page, re.M) == ["0", "1", "2", "130"]


def test_scikit_learn_page_speaks_of_every_parameter():
    """Theirs and ours; the words "the same" stand for a parameter of the same name."""
    from sklearn.decomposition import NMF

    from temporalnmf import TemporalNMF

    page = (DOCS / "sklearn.md").read_text(encoding="utf-8")
    table = page.split("## Parameter by parameter")[1].split("## What is new")[0]
    for name in NMF().get_params(deep=False):
        assert f"`{name}" in table, name
    ours = set(re.findall(r"`(\w+)=", table)) & set(TemporalNMF().get_params(deep=False))
    assert ours >= {"n_components", "likelihood", "solver", "init", "tol", "max_iter", "chain"}


def test_the_check_finds_commands_and_options_that_do_not_exist():
    """The checks themselves can fail."""
    with pytest.raises(AssertionError, match="no command"):
        check_command(["fitt", "plays.csv"])
    with pytest.raises(Exception, match="No such option"):
        check_command(["simulate", "rate", "--alpa", "1"])
    assert shown_commands("$ x\ntemporalnmf fit a.csv \\\n  --out b  # why\n") == [
        ["fit", "a.csv", "--out", "b"]
    ]


def test_formats_page_names_every_member_of_a_model_file(workplace):
    import zipfile

    import numpy as np
    from scipy import sparse

    from temporalnmf import TemporalNMF

    X = np.random.default_rng(0).poisson(3.0, size=(24, 5))
    page = (DOCS / "formats.md").read_text(encoding="utf-8").split("## A model file")[1]
    for data in (X.astype(float), sparse.csr_array(X)):
        model = TemporalNMF(2, n_init=2, random_state=0).fit(data).calibrate(6)
        path = model.save(workplace / "model.npz", overwrite=True)
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                assert f"`{name.removesuffix('.npy')}`" in page, name


def test_the_reliability_page_shows_the_figures_of_the_runs_and_they_keep_their_bounds():
    """Of the files beside the page; `tools/sync_reliability.py` puts them there."""
    page = (DOCS / "reliability" / "README.md").read_text(encoding="utf-8")
    assert sync_reliability.synced(page) == page
    assert page.count("<!-- figures: ") == len(sync_reliability.FIGURES)
    for mode, cases in (("fits", 20_000), ("files", 200_000)):
        found = sync_reliability.read(mode)
        assert found["unexpected"] == []
        assert found["cases"] >= cases
    assert sync_reliability.read("faults")["wrong"] == []
    assert sync_reliability.read("mutants")["killed_share"] >= 0.85


def test_every_surviving_mutant_is_listed():
    page = (DOCS / "reliability" / "survivors.md").read_text(encoding="utf-8")
    for mutant in sync_reliability.read("mutants")["results"]:
        if mutant["outcome"] == "survived":
            place = f"| `{mutant['file']}` {mutant['line']} | "
            changed = mutant["diff"][1][1:].strip().replace("|", "\\|")
            assert any(
                row.startswith(place) and f"`{changed}`" in row for row in page.splitlines()
            ), mutant
