"""Checkpoints that somebody changed on purpose, and sealed again: compiled code never sees them."""

import numpy as np
import pytest

from cases import estimator
from stops import StopAt, StopError
from temporalnmf import registry
from temporalnmf.chains import Rate
from temporalnmf.runtime.archives import read_npz, sealed, unsealed
from temporalnmf.shards import write_shards
from temporalnmf.timeline import timeline_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).poisson(5.0, (12, 8)).astype(float)
DRAWS = {"n_draws": 6, "n_tune": 4, "n_chains": 2}


def model(solver, path):
    chain = Rate(beta="learn") if solver != "gibbs" else Rate(alpha="learn")
    return estimator(
        2, chain=chain, solver=solver, random_state=0, checkpoint=path, checkpoint_every=0.0,
        tol=0.0, max_iter=90, n_init=2, **DRAWS,
    )  # fmt: skip


def stopped(solver, path, data=X):
    """The checkpoint of a fit that was stopped on its way: by L-BFGS, or in the second run."""
    callback = StopAt(9 if solver == "gibbs" else 11)
    with pytest.raises(StopError):
        model(solver, path).set_params(callback=callback).fit(data)


def changed(path, name, change):
    arrays = unsealed(read_npz(path))
    arrays[name] = change(arrays[name])
    with path.open("wb") as file:
        np.savez(file, **sealed({k: v for k, v in arrays.items() if v is not None}))


def nothing(array):
    return None


CHANGES = {
    "mm": [
        ("start.0.H", lambda a: a[:1]), ("start.0.H", lambda a: a[:, 1:]),
        ("start.0.H", lambda a: a * np.nan), ("start.0.H", lambda a: -a), ("start.0.H", nothing),
        ("start.0.H", lambda a: a.astype(np.float32)), ("W.0.W", lambda a: a[:3]),
        ("W.0.W", lambda a: a[:, :1]), ("W.0.W", lambda a: a * np.inf), ("W.0.W", lambda a: -a),
        ("W.0.W", nothing), ("start.0.history", lambda a: a[:-1]),
        ("start.0.history", lambda a: a[:0]), ("start.0.interval", lambda a: a - 1000),
        ("start.0.ended", lambda a: a[:1]), ("seeds", lambda a: a[:2]), ("seeds", nothing),
    ],
    "accelerated": [
        ("start.0.path_x", lambda a: a[:4]), ("start.0.path_S", lambda a: a[:1]),
        ("start.0.path_S", lambda a: a[:, :3]), ("start.0.path_T", lambda a: a.astype(float)),
        ("start.0.path_newest", lambda a: a + 1000), ("start.0.path_newest", lambda a: a - 1000),
        ("start.0.path_newest", lambda a: np.arange(6)),  # no row is free
        ("start.0.path_newest", lambda a: np.repeat(a[:1], 2)),
        ("start.0.path_products", lambda a: a[:2]), ("start.0.path_totals", lambda a: a[:1]),
        ("start.0.path_metric_off", lambda a: a[:, 1:]), ("start.0.turns", lambda a: a[:1]),
        ("W.0.x", lambda a: a[:4]), ("W.0.S", lambda a: a[:1]), ("W.0.before", lambda a: a[:2]),
        ("W.0.metric_numbers", nothing),
    ],
    "gibbs": [
        ("state_H", lambda a: a[:, :2]), ("state_W", lambda a: a[:3]), ("state_Z", lambda a: a[:1]),
        ("state_W", lambda a: a * np.nan), ("state_H", lambda a: -a), ("done", lambda a: a - 99),
        ("done", lambda a: a + 10**9), ("run", lambda a: a + 5), ("run", lambda a: a - 5),
        ("state_streams", lambda a: np.array("[]")), ("state_streams", lambda a: np.array("[[]]")),
        ("kept_components", lambda a: a[:, :1]), ("kept_activations", nothing),
        ("state_learned_alpha", lambda a: a[:1]), ("seeds", lambda a: a.astype(float)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("solver", CHANGES)
def test_arrays_that_no_fit_writes_are_refused_in_a_checkpoint(solver, tmp_path):
    path = tmp_path / "state.npz"
    stopped(solver, path)
    kept = path.read_bytes()
    for name, change in CHANGES[solver]:
        path.write_bytes(kept)
        changed(path, name, change)
        with pytest.raises(
            ValueError, match=r"state\.npz' is not a checkpoint of a fit, or is dama"
        ):
            model(solver, path).fit(X)
    path.write_bytes(kept)
    changed(path, "seeds", lambda a: a)  # sealed again, and nothing else
    whole = model(solver, None).fit(X)
    again = model(solver, path).fit(X)
    np.testing.assert_array_equal(again.activations_, whole.activations_)


@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_arrays_that_no_fit_writes_are_refused_in_the_checkpoint_of_a_block(solver, tmp_path):
    line = timeline_of(np.arange(12))
    write_shards(tmp_path / "data", X, names=list("abcdefgh"), timeline=line, n_shards=2)
    folder = tmp_path / "state"
    stopped(solver, folder, tmp_path / "data")
    (block,) = folder.glob("block-00001.*.npz")
    kept = block.read_bytes()
    for change in (lambda a: a[:2], lambda a: a[:, :1], lambda a: a * np.nan, nothing):
        block.write_bytes(kept)
        changed(block, next(n for n in unsealed(read_npz(block)) if n.endswith(".W")), change)
        with pytest.raises(ValueError, match=r"state.* damaged"):
            model(solver, folder).fit(tmp_path / "data")
    block.write_bytes(kept)
    whole = model(solver, None).fit(tmp_path / "data")
    again = model(solver, folder).fit(tmp_path / "data")
    np.testing.assert_array_equal(again.activations_, whole.activations_)
