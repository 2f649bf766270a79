"""A fit of data in blocks that was cut short goes on where it was, to the bit."""

import os
import signal

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from cases import estimator
from clusters import a_client, eventually, separate, without_a_client  # noqa: F401
from fits_compared import same
from stops import StopAt, StopError
from temporalnmf.checkpoints import file as checkpoint
from temporalnmf.cluster import dask as on_dask
from temporalnmf.cluster import sources
from temporalnmf.cluster.dask import ClusterLostError, DaskExecutor
from temporalnmf.cluster.executor import LocalExecutor
from temporalnmf.inference import fitting

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")


def _kept(folder, *components, **params):
    """A model that is kept at each look."""
    return estimator(*components, checkpoint=folder, checkpoint_every=0, **params)


def _data():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 1.0, (30, 3)) @ rng.gamma(0.3, 2.0, (3, 60))).astype(float)
    X[7], X[3, 5] = np.nan, np.nan
    return da.from_array(X, chunks=(30, 13))


SETTINGS = [
    {"solver": "mm", "chain": "rate"},
    {"solver": "accelerated", "chain": "rate"},
    {"solver": "accelerated", "chain": "none", "smoothing": 0.0},
    {"solver": "accelerated", "chain": "bgar", "likelihood": "poisson", "map_scale": "log"},
]


@pytest.mark.long
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: f"{s['solver']}-{s['chain']}")
@pytest.mark.parametrize(
    "look",
    [2, pytest.param(9, marks=pytest.mark.long), 14, pytest.param(18, marks=pytest.mark.long)],
)
def test_a_split_fit_that_was_cut_short_ends_with_the_same_bits(settings, look, tmp_path):
    params = {"random_state": 3, "n_init": 2, "max_iter": 90, "tol": 0.0, **settings}
    every_look = []
    whole = estimator(3, callback=every_look.append, **params).fit(_data())
    folder = tmp_path / "kept"
    with pytest.raises(StopError):
        _kept(folder, 3, callback=StopAt(look), **params).fit(_data())
    assert (folder / "fit.npz").exists()
    looks = []
    model = _kept(folder, 3, callback=looks.append, **params).fit(_data())
    same(model, whole)
    assert len(looks) == len(every_look) - (look - 1)  # none was done again
    assert list(folder.iterdir()) == []


def test_learned_hyper_parameters_of_a_split_fit_go_on_with_the_same_bits(tmp_path):
    from temporalnmf.chains import Rate

    params = {"random_state": 3, "max_iter": 60, "tol": 0.0, "chain": Rate("learn", "learn")}
    whole = estimator(2, **params).fit(_data())
    with pytest.raises(StopError):
        _kept(tmp_path, 2, callback=StopAt(6), **params).fit(_data())
    model = _kept(tmp_path, 2, **params).fit(_data())
    for name in ("alpha", "beta"):
        np.testing.assert_array_equal(model.learned_[name], whole.learned_[name])
    np.testing.assert_array_equal(model.components_, whole.components_)


def test_a_folder_of_another_fit_is_refused(tmp_path):
    with pytest.raises(StopError):
        _kept(tmp_path, 2, random_state=0, callback=StopAt(5)).fit(_data())
    with pytest.raises(ValueError, match=r"n_components=2, and this one has 3"):
        _kept(tmp_path, 3, random_state=0).fit(_data())
    start = np.ones((2, 60)), np.ones((30, 2))
    with pytest.raises(ValueError, match=r"of a fit with init=random, and this one has \d+"):
        _kept(tmp_path, 2, random_state=0, init=start).fit(_data())
    with pytest.raises(ValueError, match="of a fit with random_state="):
        _kept(tmp_path, 2, random_state=1).fit(_data())
    with pytest.raises(ValueError, match="of a fit to other data"):
        _kept(tmp_path, 2, random_state=0).fit(_data() + 1.0)


def test_a_random_state_is_recognised_by_its_state(tmp_path):
    """Not by where it lies in memory."""
    params = {"max_iter": 90, "tol": 0.0}
    state = np.random.RandomState
    with pytest.raises(StopError):
        _kept(tmp_path, 2, random_state=state(5), callback=StopAt(9), **params).fit(_data())
    model = _kept(tmp_path, 2, random_state=state(5), **params).fit(_data())
    whole = estimator(2, random_state=state(5), **params).fit(_data())
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.history_, whole.history_)


def test_without_a_seed_later_starts_are_those_of_the_first_attempt(tmp_path, monkeypatch):
    seeds = np.random.RandomState(8)
    params = {"n_init": 3, "max_iter": 20}
    whole = estimator(2, random_state=8, **params).fit(_data())
    monkeypatch.setattr(fitting, "check_random_state", lambda none: seeds)
    with pytest.raises(StopError):
        _kept(tmp_path, 2, callback=StopAt(2), **params).fit(_data())
    same(_kept(tmp_path, 2, **params).fit(_data()), whole)


@pytest.mark.parametrize("harm", [lambda file: file.unlink(), lambda file: file.write_bytes(b"x")])
def test_a_folder_with_a_missing_or_damaged_block_is_refused(harm, tmp_path):
    with pytest.raises(StopError):
        _kept(tmp_path, 2, random_state=0, callback=StopAt(5)).fit(_data())
    harm(next(tmp_path.glob("block-00002.*")))
    with pytest.raises(ValueError, match="lacks the file of a block, or has a damaged one"):
        _kept(tmp_path, 2, random_state=0).fit(_data())


def test_a_folder_is_written_every_so_many_seconds(alone, tmp_path, monkeypatch):
    """A second goes by between two looks."""
    now, files = [0.0], []
    monkeypatch.setattr(checkpoint, "monotonic", lambda: now[0])

    def tick(progress):
        now[0] += 1.0
        files.append({file.name for file in tmp_path.iterdir()})
        return now[0] == 9.0

    params = {"random_state": 0, "tol": 0.0, "checkpoint": tmp_path}
    estimator(2, checkpoint_every=3.5, callback=tick, **params).fit(_data())
    blocks = [{f"block-0000{b}.{n}.npz" for b in range(5)} | {"fit.npz"} for n in (1, 2)]
    assert files == 4 * [set()] + 4 * [blocks[0]] + [blocks[1]]
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_checkpoint_folder_is_refused(tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(ValueError, match=r"checkpoint='.*file' is a file"):
        _kept(path, 3).fit(_data())


@pytest.mark.long
def test_a_fit_goes_on_from_a_cluster_to_this_process_and_back(client, tmp_path, monkeypatch):
    params = {"random_state": 3, "n_init": 2, "max_iter": 90, "tol": 0.0}
    executors = []

    def fit(place, model):
        monkeypatch.setattr(sources, "current_client", lambda: place)
        return model.fit(_data())

    def stop_at(look):
        stop = StopAt(look)

        def callback(progress):
            executors.append(type(progress.components.slot.executor))
            stop(progress)

        return callback

    for place, look in ((client, 13), (None, 5)):
        with pytest.raises(StopError):
            fit(place, _kept(tmp_path, 3, callback=stop_at(look), **params))
    assert executors == [DaskExecutor] * 13 + [LocalExecutor] * 5
    model = fit(client, _kept(tmp_path, 3, **params))
    same(model, fit(None, estimator(3, **params)))


@pytest.mark.long
@pytest.mark.parametrize("given", [True, False])
def test_a_scheduler_that_disappears_leaves_a_checkpoint(given, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "EVERY", 0.0)  # of a folder of our own
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    params = {"random_state": 3, "max_iter": 90, "tol": 0.0}
    folder = tmp_path / "kept" if given else None
    with separate(tmp_path) as (process, address):

        def kill(progress):
            if progress.iteration == 40:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                monkeypatch.setattr(on_dask, "_NO_SCHEDULER", 2.0)

        with (
            Client(address, direct_to_workers=True, set_as_default=True),
            pytest.raises(
                ClusterLostError, match=r"The Dask scheduler at tcp://.*resumes from"
            ) as lost,
        ):
            _kept(folder, 3, callback=kill, **params).fit(_data())
    kept = str(lost.value).split("checkpoint='")[1].split("'")[0]
    model = _kept(kept, 3, **params).fit(_data())
    whole = estimator(3, **params).fit(_data())
    np.testing.assert_array_equal(model.components_, whole.components_)
    np.testing.assert_array_equal(model.history_, whole.history_)
