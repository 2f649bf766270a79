"""Nothing in a file is run, and no path in one is followed."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import sys
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzzing import files
from sklearn.exceptions import ConvergenceWarning

import temporalnmf
from commands import done
from hostile import replaced, with_parameters, zipped
from temporalnmf import TemporalNMF, load
from temporalnmf.checkpoints.file import CheckpointFile
from temporalnmf.components import ShardedComponents
from temporalnmf.persistence.models import CappedWarning
from temporalnmf.reading import read_table
from temporalnmf.shards import Shards
from temporalnmf.solvers.options import flattened

SOURCE = Path(temporalnmf.__file__).parent


# Nothing is run.


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def test_pickles_are_never_loaded(model_file, seeds, tmp_path):
    control, marker = tmp_path / "control", tmp_path / "marker"
    pickle.loads(pickle.dumps(Bomb(control)))
    assert control.exists(), "the bomb works"
    objects = np.empty((4, 2), dtype=object)
    objects[:] = Bomb(marker)
    array, plain = io.BytesIO(), pickle.dumps(Bomb(marker))
    np.save(array, objects, allow_pickle=True)
    data = array.getvalue()
    for name in ("shards", "components"):
        files.write_folder(files.read_folder(seeds / name / "0"), tmp_path)
    places = {
        tmp_path / "a.npy": read_table,
        tmp_path / "data" / "00000.features.values.npy": lambda path: Shards.open(path.parent),
        tmp_path / "parts" / "00000.npy": lambda path: ShardedComponents.open(path.parent),
    }
    for path, read in places.items():
        for content in (data, plain):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"objects|no NPY file"):
                read(path)
    archives_of = {
        tmp_path / "a.npz": (read_table, ("X", "format", "shape", "data")),
        tmp_path / "state.npz": (
            lambda path: CheckpointFile(path, {}).read(),
            ("identity", "state_W"),
        ),
        model_file: (load, ("activations_", "extra", "data")),
    }
    whole = model_file.read_bytes()
    for path, (read, members) in archives_of.items():
        for member in members:
            for content in (data, plain):
                path.write_bytes(whole if path == model_file else zipped({"format.npy": data}))
                replaced(path, **{member: content})
                with pytest.raises(ValueError, match=path.name):
                    read(path)
        path.write_bytes(plain)
        with pytest.raises(ValueError, match=path.name):
            read(path)
    assert not marker.exists()


FORBIDDEN = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle"}
UNSAFE = {
    "eval", "exec", "compile", "joblib.load", "joblib.dump", "yaml.load", "yaml.unsafe_load",
    "pd.read_pickle", "pandas.read_pickle",
}  # fmt: skip


def called(node: ast.AST) -> str:
    """The name of what is called, with what it belongs to if that has a name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def unsafe(tree: ast.AST) -> list[str]:
    """What could run code from a file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if (node.module or "").split(".")[0] in FORBIDDEN else []
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found += [] if ast.unparse(node.value) == "False" else ["allow_pickle"]
        elif isinstance(node, ast.Call):
            name = called(node.func)
            told = {keyword.arg for keyword in node.keywords}
            if name in ("np.load", "numpy.load") and "allow_pickle" not in told:
                found.append(name)
            if name in UNSAFE:
                found.append(name)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from pickle import loads", "import joblib\njoblib.load(f)", "eval(x)",
        "np.load(f)", "np.load(f, allow_pickle=True)", "np.load(f, allow_pickle=how)",
        "import marshal",
        "import shelve", "yaml.load(f)", "pd.read_pickle(f)", "exec(x)", "import cloudpickle",
    ],
)  # fmt: skip
def test_the_check_notices_what_could_run_code(text):
    assert unsafe(ast.parse(text))


def test_no_source_can_run_code_from_a_file():
    """Dask is another matter: `cluster/dask.py` and the experiments hand functions and arrays
    to workers that the user has started, and `distributed` pickles what it sends between them. None
    of that comes from a file, and no file is unpickled on either side."""
    found = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if (names := unsafe(ast.parse(path.read_text(encoding="utf-8"))))
    }
    # Written out by `kernels/dense.py` itself: numba wants a function per number of components.
    assert found.pop("kernels/dense.py") == ["exec", "compile"]
    assert found == {}


# No path in a file is followed.

_opened: list[str] | None = None


def _listen(event, args):
    if event == "open" and _opened is not None and isinstance(args[0], str | bytes):
        _opened.append(os.fsdecode(args[0]))


sys.addaudithook(_listen)


@contextmanager
def files_opened():
    global _opened
    _opened = found = []
    try:
        yield found
    finally:
        _opened = None


def test_paths_in_files_are_not_followed(model_file, seeds, tmp_path):
    canary = tmp_path / "elsewhere" / "canary.npy"
    canary.parent.mkdir()
    np.save(canary, np.ones(3))
    for name in (str(canary), f"../{tmp_path.name}/elsewhere/canary.npy", "../../../../etc/passwd"):
        with zipfile.ZipFile(model_file) as file:
            members = {member: file.read(member) for member in file.namelist()}
        header, labels = (json.loads(members[f"{n}.json"]) for n in ("header", "labels"))
        header |= {"provenance": {"source": name}, "folder": name, "components_fingerprint": name}
        header["versions"]["temporalnmf"] = header["numbers"]["stop_reason_"] = name
        labels["features"][0], labels["timeline"]["notes"] = name, [name]
        texts = {"header.json": json.dumps(header), "labels.json": json.dumps(labels)}
        model_file.write_bytes(
            zipped(members | texts | {f"../{name}.txt": b"x", "../x.npy": members["exposure.npy"]})
        )
        files.write_folder(files.read_folder(seeds / "shards" / "0"), tmp_path / "folder")
        place = tmp_path / "folder" / "data" / "shards.json"
        whole = json.loads(place.read_text())
        place.write_text(json.dumps({**whole, "notes": [name], "path": name, "files": [name]}))
        before = sorted(tmp_path.rglob("*"))
        with files_opened() as found:
            load(model_file).forecast(1)
            Shards.open(place.parent).matrix()
        assert any(path.endswith("model.npz") for path in found), "the test listens"
        assert not [path for path in found if "canary" in path or "passwd" in path]
        assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


# Years after the last one of `model_file`.
NEW = pd.DataFrame(files.COUNTS[:3], columns=list("abcde"), index=[2005, 2006, 2007])
RUN_SETTINGS = {"warm_start": True, "checkpoint_every": 0.0, "n_jobs": 64, "verbose": 1}


def settings_of(model):
    return flattened(model.get_params(deep=False))


@pytest.mark.parametrize("front_end", ["python", "command"])
@pytest.mark.parametrize("solver", ["accelerated", "gibbs"])
def test_a_model_file_does_not_choose_a_path_to_write_to(
    solver, front_end, seeds, tmp_path, monkeypatch
):
    """Not even when the model is fitted again, which writes and removes a checkpoint."""
    model_file = tmp_path / "inside" / "model.npz"
    model_file.parent.mkdir()
    seed = {"accelerated": "0", "gibbs": "5"}[solver]
    model_file.write_bytes((seeds / "model" / seed / "model.npz").read_bytes())
    victim = tmp_path / "victim.npz"
    monkeypatch.chdir(model_file.parent)
    with_parameters(model_file, **RUN_SETTINGS, checkpoint=str(victim), max_iter=3)
    with files_opened() as found:
        if front_end == "python":
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                load(model_file).append(NEW, update_components=True)
        else:
            NEW.to_csv("new.csv", index_label="time")
            done("append", model_file, "new.csv", "--update-components", "--force")
    assert any(path.endswith("model.npz") for path in found), "the test listens"
    assert not [path for path in found if "victim" in path]
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@pytest.mark.parametrize(
    ("name", "value"),
    [*RUN_SETTINGS.items(), ("checkpoint", "x.npz"), ("callback", "os.system")],
)
def test_settings_of_a_run_never_come_from_a_file(name, value, model_file):
    model = load(with_parameters(model_file, **{name: value}))
    assert settings_of(model)[name] == settings_of(TemporalNMF())[name]


@pytest.mark.parametrize(
    ("name", "default"),
    [("max_iter", 1000), ("n_init", 1), ("n_draws", 500), ("n_tune", 500), ("n_chains", 4)],
)
def test_a_file_does_not_make_later_fits_costlier_than_the_defaults(name, default, seeds, tmp_path):
    of_draws = name.startswith("n_") and name != "n_init"
    path, shown = tmp_path / "model.npz", f"solver__{name}" if of_draws else name
    path.write_bytes((seeds / "model" / ("5" if of_draws else "0") / "model.npz").read_bytes())
    with warnings.catch_warnings(action="error"):
        assert settings_of(load(with_parameters(path, **{name: default})))[name] == default
    with_parameters(path, **{name: 10**12})
    told = (
        rf"^model\.npz: it was fitted with {shown}=1000000000000\. Later fits of the loaded model "
        rf"use {shown}={default}, .* model\.set_params\({shown}=1000000000000\)\.$"
    )
    with pytest.warns(CappedWarning, match=told):
        model = load(path)
    assert settings_of(model)[name] == default


@pytest.mark.parametrize("value", [-1, 0.5, 1e9, True, None, "10", [10], 10**400])
@pytest.mark.parametrize("name", ["max_iter", "n_init", "n_draws", "n_chains"])
def test_costs_that_are_no_whole_numbers_are_refused(name, value, model_file):
    with pytest.raises(ValueError, match=r"model\.npz cannot be read"):
        load(with_parameters(model_file, **{name: value}))


@pytest.mark.parametrize("kind", ["shards", "components"])
def test_links_out_of_a_folder_are_not_followed(kind, seeds, tmp_path):
    files.write_folder(files.read_folder(seeds / kind / "0"), tmp_path)
    use, name = files.LOADERS[kind]
    folder = tmp_path / name
    for path in sorted(folder.iterdir()):
        outside, inside = tmp_path / "outside", folder / "inside"
        path.rename(outside)
        path.symlink_to(outside)
        with pytest.raises(ValueError, match=rf"{name}/{path.name} is a link to a place outside"):
            use(folder)
        path.unlink()
        outside.rename(inside)
        path.symlink_to("inside")
        use(folder)  # a link that stays within is a way to name a file
        path.unlink()
        inside.rename(path)
