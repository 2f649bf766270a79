"""Models and checkpoints of earlier versions are still read, and give what they gave.

Another processor may round differently. Numbers of models are compared to 1e-9, quantiles of
counts to one count, numbers of fits that go on to 1e-6 (L-BFGS amplifies rounding), and draws,
whose paths part after a difference in the last bit, by their log posterior. Folders are made by
tools/make_old_files.py.
"""

import json
import shutil
from pathlib import Path

import make_old_files as made
import numpy as np
import pytest

from temporalnmf import load
from temporalnmf.chains import Rate

# Defaults of the version that wrote them.
THEN = {"likelihood": "poisson", "chain": Rate(300.0)}
FOLDERS = sorted(path for path in (Path(__file__).parent / "old_files").iterdir())


def check(model, expected, rtol):
    found = made.numbers(model)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "quantiles of totals":
            loose = {"rtol": rtol, "atol": 0.0 if model.likelihood == "exponential" else 1.0}
            np.testing.assert_allclose(found[name], value, **loose)
        else:
            np.testing.assert_allclose(found[name], value, rtol=rtol)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", made.MODELS)
def test_a_model_of_an_earlier_version_is_read(folder, name):
    expected = json.loads((folder / "expected.json").read_text())[name]
    check(load(folder / f"{name}.npz"), expected, 1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", made.CHECKPOINTS)
def test_a_fit_that_an_earlier_version_began_goes_on(folder, name, tmp_path):
    expected = json.loads((folder / "expected.json").read_text())[f"{name}.ckpt"]
    here = shutil.copytree(folder, tmp_path / "files")
    evaluations = []
    model = made.model_of(
        made.CHECKPOINTS[name],
        checkpoint=here / f"{name}.ckpt",
        callback=evaluations.append,
        gaps="mode",
        intervals="model",
        **THEN,
    )
    model.fit(made.source(name, here))
    if name == "gibbs":
        assert model.objective_ == pytest.approx(expected["objective"], rel=0.02)
    else:
        check(model, expected, 1e-6)
    whole = []
    made.model_of(made.CHECKPOINTS[name], callback=whole.append, **THEN).fit(
        made.source(name, here)
    )
    assert 0 < len(evaluations) < len(whole)  # it went on, and did not begin again


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_defaults_of_an_earlier_version_are_those_of_its_models(folder):
    """What is fitted again, such as by `calibrate`, is fitted as it was."""
    model = load(folder / "rate.npz")
    assert model.chain.alpha == model.chain_.alpha == 300.0
    assert (model.gaps, model.intervals, model.likelihood) == ("mode", "model", "poisson")
