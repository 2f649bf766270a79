"""The command `fit` on shards and folders of Parquet files, in this process and on a cluster."""

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clusters import a_client, separate, without_a_client  # noqa: F401
from commands import done, invoke, refused
from temporalnmf import TemporalNMF, load
from temporalnmf.cli import data
from temporalnmf.cli.console import Voice
from temporalnmf.cli.fit import ClusterStatus, fit_table
from temporalnmf.shards import Shards
from temporalnmf.solvers import Progress

COLUMNS = ("--time", "time", "--feature", "feature", "--value", "value")
QUICK = ("--components", 2, "--starts", 1, "--tol", 1e-3)
LOCAL = ("--dask", "local", "--workers", 2, "--memory-limit", "600MB")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of two Parquet files, and what becomes of it as shards."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    level = 30.0 * np.exp(np.cumsum(rng.normal(0.0, 0.2, size=(24, 2)), axis=0))
    counts = rng.poisson(level @ rng.dirichlet(np.ones(20), size=2))
    times, features = np.meshgrid(np.arange(1990, 2014), np.arange(20), indexing="ij")
    rows = pd.DataFrame(
        {
            "time": times.ravel(),
            "feature": [f"w{f:02d}" for f in features.ravel()],
            "value": counts.ravel(),
        }
    )
    rows = rows[(rows.value > 0) & (rows.time != 2003)].sample(frac=1, random_state=0)
    (folder / "rows").mkdir()
    rows[::2].to_parquet(folder / "rows" / "one.parquet")
    rows[1::2].to_parquet(folder / "rows" / "two.parquet")
    rows.to_csv(folder / "rows.csv", index=False)
    (folder / "other").mkdir()
    pd.DataFrame({"year": [1], "word": ["a"]}).to_parquet(folder / "other" / "a.parquet")
    done("shard", folder / "rows", *COLUMNS, "--out", folder / "shards")
    return folder


@pytest.fixture(scope="module")
def fitted(place):
    """The model of the shards, made in this process."""
    return TemporalNMF(2, tol=1e-3, random_state=0).fit(Shards.open(place / "shards"))


def same(path, model):
    """The model of a file is another, to the bit."""
    found = load(path)
    np.testing.assert_array_equal(found.components_, model.components_)
    np.testing.assert_array_equal(found.activations_, model.activations_)
    return True


def watched(monkeypatch, callback):
    """Let fits of commands call this, as if on a terminal."""
    monkeypatch.setattr("temporalnmf.cli.fit.fit_progress", lambda *_: nullcontext(callback))


@pytest.mark.long
@pytest.mark.usefixtures("alone")
def test_a_folder_of_shards_is_fitted_as_its_table(place, fitted, tmp_path):
    out = tmp_path / "m.npz"
    said = done("fit", place / "shards", *QUICK, "--out", out).output
    assert "shards: 24 steps x 20 features" in said
    assert "2003" in said  # the notes of the folder
    assert "top features" in said
    assert "Cluster" not in said
    assert "for this fit only" not in said
    assert same(out, fitted)
    model = load(out)
    assert model.provenance_["sha256"] == data.checksum(place / "shards" / "shards.json")
    assert list(model.feature_labels()[:2]) == ["w00", "w01"]
    done("forecast", out, "--steps", 2, "--out", tmp_path / "next.csv")
    done("report", out, "--out", tmp_path / "report.html")


@pytest.mark.usefixtures("alone")
def test_a_folder_of_parquet_files_is_fitted_as_its_table(place, fitted, tmp_path):
    out = tmp_path / "m.npz"
    found = done("fit", place / "rows", *QUICK, "--out", out, "--json")
    assert "columns found by name, as with --time time --feature feature" in found.stderr
    assert "written as 16 shards, for this fit only; temporalnmf shard keeps them" in found.stderr
    answer = json.loads(found.stdout)
    assert (answer["n_steps"], answer["n_features"], answer["gaps"]) == (24, 20, ["2003"])
    assert len(answer["provenance"]["sha256"]) == 64
    assert any("rows read" in note for note in answer["notes"])
    assert same(out, fitted)
    assert list(tmp_path.iterdir()) == [out]  # the shards are gone


@pytest.mark.usefixtures("alone")
def test_columns_of_a_folder_may_have_other_names(place, fitted, tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    rows = pd.read_csv(place / "rows.csv").rename(columns={"feature": "word"})
    rows.to_csv(folder / "one.csv", index=False)
    assert "--feature" in refused("fit", folder, "--out", tmp_path / "m.npz")
    said = done("fit", folder, "--feature", "word", *QUICK, "--out", tmp_path / "m.npz").output
    assert "as with --time time --value value" in said
    assert same(tmp_path / "m.npz", fitted)


@pytest.mark.long
def test_a_fit_on_a_local_cluster_is_that_of_this_process(place, fitted, tmp_path):
    out = tmp_path / "m.npz"
    said = done("fit", place / "shards", *QUICK, *LOCAL, "--out", out).output
    assert "Cluster: 2 workers, 2 threads, 600 MB of memory each; 16 blocks of features" in said
    assert "kept in their memory" in said
    assert same(out, fitted)


@pytest.mark.long
def test_a_table_in_a_file_is_fitted_on_a_scheduler(place, fitted, client, tmp_path):
    """An ordinary table is the same fit there, from shards that are made for it."""
    address = client.scheduler.address
    out = tmp_path / "new" / "m.npz"
    words = ("fit", place / "rows.csv", *COLUMNS, *QUICK, "--scheduler", address, "--out", out)
    said = done(*words).output
    assert "written as 16 shards, for this fit only" in said
    assert "Cluster: 2 workers, 2 threads" in said
    assert same(out, fitted)
    assert load(out).provenance_["sha256"] == data.checksum(place / "rows.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert refused(*words).endswith("Replace it with --force, or choose another name.")


@pytest.mark.long
def test_the_line_on_memory_agrees_with_the_executor(place, client, monkeypatch):
    """The line at the start and the executor agree on whether data stay with the workers."""
    shards = Shards.open(place / "shards")
    said, executors = [], []
    monkeypatch.setattr(Voice, "say", lambda self, text="", **_: said.append(text))

    watched(monkeypatch, lambda progress: executors.append(progress.components.slot.executor))
    for share, resident in ((0.5, True), (0.0, False)):
        monkeypatch.setattr("temporalnmf.cluster.sources._SHARE", share)
        fit_table(shards, TemporalNMF(2, tol=1e-2), Voice(), client)
        assert executors[-1]._resident is resident
        words = "kept in their memory" if resident else "read from disk for every pass"
        assert words in next(text for text in said[::-1] if "Cluster" in text)


@pytest.mark.long
def test_a_lost_cluster_ends_the_command_with_one_line(place, tmp_path, monkeypatch):
    """And exit code 2, no traceback, no shards left behind."""
    (tmp_path / "cluster").mkdir()
    with separate(tmp_path / "cluster") as (process, address):
        watched(monkeypatch, lambda progress: process.kill())
        words = ("fit", place / "rows", *QUICK, "--scheduler", address, "--out", tmp_path / "m.npz")
        said = refused(*words)
    assert f"Error: The Dask scheduler at {address} does not answer." in said
    assert [path.name for path in tmp_path.iterdir()] == ["cluster"]


def test_progress_tells_the_fullest_worker_and_lost_ones():
    """Looked at once a second at the most; a lost one stays lost when another comes."""
    now, asked = [0.0], []
    workers = {"a": {"metrics": {"memory": 2e8}}, "b": {"metrics": {"memory": 3e9}}}

    class Client:
        def scheduler_info(self, n_workers):
            asked.append(n_workers)
            return {"workers": workers}

    status = ClusterStatus(Client(), lambda: now[0])
    assert status() == ", fullest worker 3.0 GB"
    del workers["b"]
    workers["c"] = {"metrics": {}}
    assert status() == ", fullest worker 3.0 GB"
    now[0] = 1.0
    assert status() == ", fullest worker 200 MB, 1 worker lost"
    assert asked == [-1, -1]


@pytest.mark.usefixtures("alone")
def test_callbacks_get_components_of_shards_on_request_and_of_arrays_at_once(place):
    """Of shards they stay where they are; of data in memory they are an array."""
    seen = []

    def look(progress):
        if len(seen) < 1:
            seen.append((progress, progress.components.array()))

    shards = Shards.open(place / "shards")
    TemporalNMF(2, tol=1e-2, random_state=0, callback=look).fit(shards)
    progress, W = seen[0]
    assert isinstance(progress, Progress)
    assert W.shape == (20, 2)
    np.testing.assert_allclose(W.sum(axis=0), 1.0)
    assert progress.activations.shape[1] == 2
    arrays = []
    plain = TemporalNMF(2, tol=1e-2, callback=lambda progress: arrays.append(progress))
    plain.fit(shards.matrix(), mask=shards.observed)
    assert arrays[0].components.shape == (2, 20)
    assert not arrays[0].components.flags.writeable


@pytest.mark.usefixtures("alone")
def test_checkpoints_of_shards_need_a_folder_and_do_not_change_the_fit(place, fitted, tmp_path):
    folder, out = tmp_path / "kept", tmp_path / "m.npz"
    done("fit", place / "shards", *QUICK, "--checkpoint", folder, "--out", out)
    assert same(out, fitted)
    (tmp_path / "file").write_text("x")
    words = ("fit", place / "shards", *QUICK, "--checkpoint", tmp_path / "file", "--out", out)
    assert "needs a folder. Choose another" in refused(*words, "--force")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shards", "--calibrate", 10), "--calibrate 10 needs the data in memory, and"),
        (("rows.csv", *COLUMNS, "--calibrate", 10, *LOCAL), "with --dask they are on a cluster"),
        (("shards", "--jobs", 2, *LOCAL), "--jobs 2 is for processes without a cluster: leave out"),
        (("shards", "--workers", 2), "--workers 2 is for a cluster on this machine: --dask local"),
        (("shards", "--dask", "here"), "--dask here is not known. Choose local."),
        (("shards", "--dask", "local", "--memory-limit", "1MB"), "too little for a worker"),
        (("shards", "--scheduler", "nowhere"), "expected the address that `dask scheduler` prints"),
        (("shards", "--freq", "M"), "--freq M: "),
        (("shards", "--time", "year"), "Leave it out, or make other shards"),
        (("nothing", "--dask", "local"), "there is no such file or folder. Check the path."),
        (("shards", "--out", "shards/m.npz"), "lies in the input folder. Choose another"),
        (("other",), "name its columns with --time and --feature"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read_or_started(
    place, tmp_path, monkeypatch, words, said
):
    monkeypatch.chdir(place)
    monkeypatch.setattr("distributed.LocalCluster", None)
    monkeypatch.setattr("temporalnmf.shards.Shards.open", None)
    out = () if "--out" in words else ("--out", tmp_path / "m.npz")
    assert said in refused("fit", *words, *out)


def test_help_tells_of_folders_and_clusters():
    said = " ".join(invoke("fit", "--help").output.split())
    for word in ("--scheduler", "--dask", "--workers", "--memory-limit", "folder of shards"):
        assert word in said
    assert not Path("model.npz").exists()
