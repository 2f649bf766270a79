"""The command line and what importing costs."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

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


def test_help_does_not_load_numba():
    code = (
        "import sys\nfrom temporalnmf.__main__ import main\nsys.argv = ['temporalnmf', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint('numba' in sys.modules)"
    )
    printed = _run_python(code)
    assert "demo" in printed
    assert printed.splitlines()[-1] == "False"


def test_missing_extra_says_how_to_install_it():
    code = (
        "import sys\nsys.modules['typer'] = None\nfrom temporalnmf.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end)"
    )
    assert 'pip install "temporalnmf[cli]"' in _run_python(code)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = CliRunner().invoke(
        app, ["demo", "--components", "2", "--out", str(folder)], catch_exceptions=False
    )
    assert result.exit_code == 0
    return result.output, folder


def test_demo_prints_every_chain_and_where_the_results_are(demo):
    output, folder = demo
    for name in ("gap", "rate", "hier_rate", "shape", "hier_shape", "bgar"):
        assert f" {name} " in output
    assert "held-out error" in output
    assert str(folder / "summary.csv") in output.replace("\n", "")


def test_demo_tables_are_complete_and_consistent(demo):
    _, folder = demo
    assert sorted(p.name for p in folder.iterdir()) == [
        "activations.csv", "components.csv", "summary.csv",
    ]  # fmt: skip
    rows = {p.stem: list(csv.DictReader(p.read_text().splitlines())) for p in folder.iterdir()}
    assert [r["chain"] for r in rows["summary"]] == [
        "gap", "rate", "hier_rate", "shape", "hier_shape", "bgar",
    ]  # fmt: skip
    assert len(rows["components"]) == 6 * 2
    assert len(rows["activations"]) == 6 * 232 * 2
    for chain in ("gap", "bgar"):
        peaks = [r for r in rows["components"] if r["chain"] == chain]
        values = [r for r in rows["activations"] if r["chain"] == chain]
        for row in peaks:
            own = [r for r in values if r["component"] == row["component"]]
            top = sorted(own, key=lambda r: -float(r["activation"]))[:3]
            assert row["peak_years"] == " ".join(sorted(r["year"] for r in top))
    errors = np.array([float(r["held_out_error"]) for r in rows["summary"]])
    assert np.all(errors > 0)
    assert np.all(np.isfinite(errors))


def test_version(demo):
    from temporalnmf import __version__

    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"temporalnmf {__version__}"
