"""A fit of data in memory that was cut short goes on where it was, to the bit."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from cases import chains, estimator, likelihoods, named, random_data, random_weights
from commands import done, invoke, refused
from fits_compared import same
from stops import StopAt, StopError
from temporalnmf import TemporalNMF, load, registry
from temporalnmf.chains import Rate
from temporalnmf.checkpoints import file as checkpoint
from temporalnmf.inference import fitting
from temporalnmf.likelihoods import Exponential, Poisson
from temporalnmf.solvers import Checkpoint

pytestmark = pytest.mark.filterwarnings(
    "ignore:The fit did not converge", "ignore:Activations of component"
)

POISSON, EXPONENTIAL = Poisson(), Exponential()
SOLVERS = list(registry.SOLVERS)
# Thirty iterations of MM, then several stages.
PARAMS = {"n_components": 2, "random_state": 3, "max_iter": 75, "tol": 0.0}
N_STEPS, N_FEATURES = 12, 9


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch):
    """There is none in these tests, and thousands of files to be forced to disk otherwise."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def data(likelihood=POISSON):
    return random_data(np.random.default_rng(0), likelihood, N_STEPS, N_FEATURES)


def fresh(**params):
    return estimator(**{**PARAMS, **params})


def stopped_everywhere(model, path, X, **given):
    """Fit, and be stopped after each look at the objective; how often it was."""
    stops = 0
    while True:
        model.set_params(checkpoint=Checkpoint(path, 0), callback=StopAt(2))
        try:
            model.fit(X, **given)
        except StopError:
            stops += 1
            assert path.exists()
            assert stops < 1000, "it does not get on"
        else:
            return stops


def check(path, make, X, **given):
    """Cut short after every look, a fit is the same as if nobody had touched it."""
    looks = []
    whole = make().set_params(callback=looks.append).fit(X, **given)
    model = make()
    stops = stopped_everywhere(model, path, X, **given)
    same(model, whole)
    assert stops == len(looks) - 1 > 3  # none was done again
    assert list(path.parent.iterdir()) == []


def one_of_each(scale):
    """The first setting of every chain; others are for the long tests."""
    found, seen = [], set()
    for chain in chains(scale):
        marks = [pytest.mark.long] if chain.name in seen else []
        seen.add(chain.name)
        found.append(pytest.param(chain, id=named(chain), marks=marks))
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("likelihood", likelihoods(), ids=lambda found: found.name)
@pytest.mark.parametrize("chain", one_of_each("log"))
def test_a_fit_that_was_cut_short_ends_with_the_same_bits(chain, likelihood, solver, tmp_path):
    def make():
        return fresh(chain=chain, likelihood=likelihood, solver=solver)

    check(tmp_path / "fit.ckpt", make, data(likelihood))


@pytest.mark.long
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("likelihood", likelihoods(), ids=lambda found: found.name)
@pytest.mark.parametrize("chain", one_of_each("linear"))
def test_a_fit_on_the_linear_scale_that_was_cut_short_ends_with_the_same_bits(
    chain, likelihood, solver, tmp_path
):
    def make():
        return fresh(
            chain=chain, likelihood=likelihood, solver=solver, map_scale="linear", max_iter=300
        )

    check(tmp_path / "fit.ckpt", make, data(likelihood))


def _gaps():
    X = data()
    X[4], X[7, 3], X[-1] = np.nan, np.nan, np.nan
    return X


def _weights(kind):
    return random_weights(np.random.default_rng(1), kind, (N_STEPS, N_FEATURES))


_START = np.random.default_rng(2).gamma(2.0, size=(2, N_FEATURES + N_STEPS))
KINDS = {
    "sparse": ({}, sparse.csr_array(data()), {}),
    "single precision": ({}, data().astype(np.float32), {}),
    "gaps": ({}, _gaps(), {}),
    "gaps by modes": ({"point": "mode"}, _gaps(), {}),
    "hidden entries": ({}, data(), {"mask": _weights("entries")}),
    "sparse, hidden entries": (
        {}, sparse.csr_array(data()), {"mask": sparse.csr_array(_weights("entries"))}
    ),
    "weights": ({"likelihood": "exponential"}, data(EXPONENTIAL), {"mask": _weights("weights")}),
    "exposure": ({}, data(), {"exposure": np.linspace(0.5, 2.0, N_STEPS)}),
    "three starts": ({"n_init": 3}, data(), {}),
    "three starts to the end": ({"n_init": 3, "max_iter": 1000, "tol": 1e-4}, data(), {}),
    "learned": ({"chain": Rate(5.0, "learn"), "n_init": 2}, data(), {}),
    "no smoothing": ({"smoothing": 0.0, "chain": "none"}, data(), {}),
    "singular vectors": ({"init": "nndsvda"}, data(), {}),
    "values given": ({"init": (_START[:, :N_FEATURES], _START[:, N_FEATURES:].T)}, data(), {}),
    "threads": ({"n_jobs": 2}, data(), {}),
}  # fmt: skip


@pytest.mark.quick(
    "sparse-accelerated",
    "gaps-accelerated",
    "hidden entries-accelerated",
    "three starts to the end-accelerated",
    "learned-accelerated",
)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_fits_that_were_cut_short_end_with_the_same_bits(kind, solver, tmp_path):
    params, X, given = KINDS[kind]
    check(tmp_path / "fit.ckpt", lambda: fresh(solver=solver, **params), X, **given)


def test_warm_starts_and_appended_steps_that_were_cut_short_end_with_the_same_bits(tmp_path):
    X, path = data(), tmp_path / "fit.ckpt"

    def make():
        return fresh(warm_start=True, max_iter=12).fit(X[:-2]).set_params(max_iter=75)

    check(path, make, X)
    check(path, make, X[:-2])
    whole, model = make().append(X[-2:], update_components=True), make()
    model.set_params(checkpoint=Checkpoint(path, 0), callback=StopAt(5))
    with pytest.raises(StopError):
        model.append(X[-2:], update_components=True)
    looks = []
    model.set_params(callback=looks.append).append(X[-2:], update_components=True)
    same(model, whole)
    assert looks[0].iteration == whole.history_iterations_[4]
    assert not path.exists()


def test_a_checkpoint_of_another_warm_start_is_refused(tmp_path):
    path = tmp_path / "fit.ckpt"
    kept = {"warm_start": True, "checkpoint": Checkpoint(path, 0)}
    model = fresh().fit(data()).set_params(callback=StopAt(4), **kept)
    with pytest.raises(StopError):
        model.fit(data())
    other = fresh(random_state=4).fit(data()).set_params(random_state=3, **kept)
    with pytest.raises(ValueError, match=r"init=\d+, and this one has \d+"):
        other.fit(data())


def test_without_a_seed_later_starts_are_those_of_the_first_attempt(tmp_path, monkeypatch):
    looks, path = [], tmp_path / "fit.ckpt"
    params = {"n_init": 3, "max_iter": 12}
    whole = fresh(random_state=8, callback=looks.append, **params).fit(data())
    seeds = np.random.RandomState(8)  # what None stands for goes on from fit to fit
    monkeypatch.setattr(fitting, "check_random_state", lambda none: seeds)
    model = fresh(random_state=None, **params)
    assert stopped_everywhere(model, path, data()) == len(looks) - 1
    same(model, whole)


def test_a_random_state_is_recognised_by_its_state(tmp_path):
    """In the state that it was in at first the fit goes on, in a later one it is another fit."""
    path, generator = tmp_path / "fit.ckpt", np.random.RandomState(5)
    model = cut_short(path, random_state=generator)
    with pytest.raises(ValueError, match="is of a fit with random_state="):
        model.set_params(callback=None).fit(data())
    again = fresh(random_state=np.random.RandomState(5), checkpoint=path).fit(data())
    same(again, fresh(random_state=np.random.RandomState(5)).fit(data()))


def cut_short(path, X=None, **params):
    """A model of which a file is left."""
    model = fresh(checkpoint=path, checkpoint_every=0, callback=StopAt(4), **params)
    with pytest.raises(StopError):
        model.fit(data() if X is None else X)
    return model


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_components": 3}, "n_components=2, and this one has 3"),
        ({"solver": "mm"}, "solver=accelerated, and this one has mm"),
        ({"solver": "gibbs"}, "solver=accelerated, and this one has gibbs"),
        ({"chain": "gap"}, "chain=rate, and this one has gap"),
        ({"chain": Rate(20.0)}, "hyper-parameters="),
        ({"likelihood": "exponential"}, "likelihood=auto, and this one has exponential"),
        ({"map_scale": "linear"}, "map_scale=log, and this one has linear"),
        ({"max_iter": 80}, "max_iter=75, and this one has 80"),
        ({"tol": 0.1}, "tol=0.0, and this one has 0.1"),
        ({"n_init": 2}, "n_init=1, and this one has 2"),
        ({"smoothing": 0.2}, "smoothing=0.1, and this one has 0.2"),
        ({"point": "mode"}, "point=mean, and this one has mode"),
        ({"init": "nndsvda"}, "init=random, and this one has nndsvda"),
        ({"random_state": 4}, "random_state="),
    ],
    ids=str,
)
def test_a_checkpoint_of_a_fit_with_other_parameters_is_refused(changes, words, tmp_path):
    path, X = tmp_path / "fit.ckpt", data() + 1.0  # without zeros, for all likelihoods
    cut_short(path, X)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words):
        fresh(checkpoint=path, **changes).fit(X)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_or_starting_values_is_refused(tmp_path):
    path = tmp_path / "fit.ckpt"
    start = np.ones((2, N_FEATURES)), np.ones((N_STEPS, 2))
    cut_short(path, init=start)
    other = start[0], 2.0 * start[1]
    with pytest.raises(ValueError, match=r"init=\d+, and this one has \d+. Delete it, or name"):
        fresh(checkpoint=path, init=other).fit(data())
    model = fresh(checkpoint=path, init=start)
    with pytest.raises(ValueError, match="to other data"):
        model.fit(data() + 1.0)
    for given in ({"exposure": np.full(N_STEPS, 2.0)}, {"mask": np.arange(N_STEPS) != 5}):
        with pytest.raises(ValueError, match=r"other data .or another mask or exposure."):
            model.fit(data(), **given)


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "0.0.9")
        cut_short(path)
    with pytest.raises(ValueError, match=r"of a fit with temporalnmf=0.0.9, and this one has "):
        fresh(checkpoint=path).fit(data())


def test_a_checkpoint_of_draws_with_other_starting_values_is_refused(tmp_path):
    """Runs that have not begun would start from others."""
    path = tmp_path / "fit.ckpt"
    start = np.ones((2, N_FEATURES)), np.ones((N_STEPS, 2))
    params = {"solver": "gibbs", "n_draws": 20, "n_tune": 20, "n_chains": 2}
    cut_short(path, init=start, **params)
    with pytest.raises(ValueError, match=r"init=\d+, and this one has \d+"):
        fresh(checkpoint=path, init=(start[0], 2.0 * start[1]), **params).fit(data())


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "fit.ckpt"
    cut_short(path)
    whole = path.read_bytes()
    for damaged in (whole[:1000], whole[:-100], b"", b"something else"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a checkpoint of a fit, or is damaged"):
            fresh(checkpoint=path).fit(data())
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["start.0.H"][0, 0] += 1.0
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ValueError, match="is not a checkpoint of a fit, or is damaged"):
        fresh(checkpoint=path).fit(data())


def test_an_invalid_checkpoint_path_is_refused_before_the_fit(tmp_path):
    for path, words in (
        (tmp_path / "absent" / "fit.ckpt", "folder that does not exist"),
        (tmp_path, "is not a file"),
        (3, "checkpoint=3"),
    ):
        with pytest.raises(ValueError, match=words):
            fresh(checkpoint=path, callback=StopAt(1)).fit(data())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("solver", [*SOLVERS, *registry.SAMPLERS])
def test_invalid_starting_values_are_refused_with_a_checkpoint(solver, tmp_path):
    with pytest.raises(ValueError, match="init=3 is not known"):
        fresh(solver=solver, init=3, checkpoint=tmp_path / "fit.ckpt").fit(data())


@pytest.mark.parametrize("every", [-1.0, np.inf, np.nan, "often", None, True])
def test_seconds_between_checkpoints_must_be_a_non_negative_number(every):
    with pytest.raises(ValueError, match=r"every=.*: expected a number of at least 0\."):
        fresh(checkpoint="fit.ckpt", checkpoint_every=every).fit(data())


@pytest.mark.filterwarnings("ignore:Not settled")
@pytest.mark.parametrize("solver", [*SOLVERS, *registry.SAMPLERS])
def test_a_checkpoint_is_written_every_so_many_seconds(solver, tmp_path, monkeypatch):
    """A second goes by between two looks."""
    now, path, written = [0.0], tmp_path / "fit.ckpt", []
    monkeypatch.setattr(checkpoint, "monotonic", lambda: now[0])
    write = checkpoint.CheckpointFile.write

    def noted(self, arrays):
        written.append(now[0])
        write(self, arrays)

    monkeypatch.setattr(checkpoint.CheckpointFile, "write", noted)

    def tick(progress):
        now[0] += 1.0
        return now[0] == 9.0

    params = {"solver": solver, "max_iter": 1000, "n_draws": 20, "n_tune": 0, "n_chains": 1}
    model = fresh(checkpoint=path, checkpoint_every=3.5, callback=tick, **params)
    model.fit(data())
    assert written == [4.0, 8.0]
    written.clear()
    now[0] = 0.0
    model.set_params(checkpoint=None).fit(data())
    assert written == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_control_c_leaves_a_checkpoint_of_that_moment(solver, tmp_path):
    path, told = tmp_path / "fit.ckpt", []
    plain = {"solver": solver, "likelihood": "poisson"}

    def press(progress):
        told.append(progress.iteration)
        if len(told) == 6:
            os.kill(os.getpid(), signal.SIGINT)

    # A process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            fresh(**plain, checkpoint=path, callback=press).fit(data())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(told) == 6
    left = []
    model = fresh(**plain, checkpoint=path, callback=lambda p: left.append(p.iteration))
    whole = fresh(**plain).fit(data())
    same(model.fit(data()), whole)
    assert told + left == whole.history_iterations_.tolist()


def test_a_checkpoint_stays_until_there_is_a_result(tmp_path, monkeypatch):
    """What fails after the last iteration does not lose the fit."""
    path, told = tmp_path / "fit.ckpt", []
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "start_activations", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fresh(checkpoint=path, checkpoint_every=0, n_init=2).fit(data())
    model = fresh(checkpoint=path, n_init=2, callback=told.append).fit(data())
    same(model, fresh(n_init=2).fit(data()))
    assert told == []  # nothing was left to do


def test_a_write_that_fails_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path, whole = tmp_path / "fit.ckpt", fresh().fit(data())
    save, files = np.savez, []

    def full(file, **members):
        files.append(file)
        if len(files) == 5:
            file.write(b"half of it")
            raise OSError(28, "No space left on device")
        save(file, **members)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(OSError, match="No space left"):
            fresh(checkpoint=path, checkpoint_every=0).fit(data())
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]
    same(fresh(checkpoint=path).fit(data()), whole)


@pytest.mark.long
def test_a_process_that_was_killed_goes_on_in_another(tmp_path):
    path, script = tmp_path / "fit.ckpt", tmp_path / "fit.py"
    script.write_text(
        "import os, signal, sys\n"
        "import numpy as np\n"
        "from temporalnmf import TemporalNMF\n"
        "from temporalnmf.solvers import Checkpoint\n"
        "def die(progress):\n"
        "    if progress.iteration >= 50:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        f"TemporalNMF(**{PARAMS}, checkpoint=Checkpoint(sys.argv[1], 0),\n"
        "            callback=die).fit(np.load(sys.argv[2]))\n"
    )
    np.save(tmp_path / "x.npy", data())
    ended = subprocess.run([sys.executable, script, path, tmp_path / "x.npy"], check=False)
    assert ended.returncode == -signal.SIGKILL
    left = []
    model = fresh(checkpoint=path, callback=lambda p: left.append(p.iteration)).fit(data())
    assert left[0] == 50
    same(model, fresh().fit(data()))


def test_the_fit_command_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from contextlib import contextmanager

    table, path = tmp_path / "table.csv", tmp_path / "fit.ckpt"
    names = ",".join(f"x{i}" for i in range(N_FEATURES))
    rows = np.column_stack([np.arange(2000, 2000 + N_STEPS), data()])
    np.savetxt(table, rows, fmt="%d", delimiter=",", header=f"year,{names}", comments="")
    fit = ("fit", table, "--time", "year", "--components", 2, "--tol", 0, "--max-iter", 75)
    fit = (*fit, "--starts", 2, "--jobs", 1)
    done(*fit, "--out", tmp_path / "whole.npz")

    @contextmanager
    def interrupted(*_):
        def look(progress, left=[5]):  # noqa: B006
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

        yield look

    kept = (*fit, "--out", tmp_path / "m.npz", "--checkpoint", path)
    with monkeypatch.context() as patch:
        patch.setattr("temporalnmf.cli.fit.fit_progress", interrupted)
        assert invoke(*kept).stderr == "Interrupted: nothing was written.\n"
        result = invoke(*kept, "--checkpoint-every", 0)
    assert result.stderr == f"Interrupted: the same command continues from {path}.\n"
    assert f"Found {path}: continuing from it" in done(*kept).output
    assert not path.exists()
    same(load(tmp_path / "m.npz"), load(tmp_path / "whole.npz"))
    said = refused(*fit, "--out", tmp_path / "n.npz", "--checkpoint-every", 5)
    assert "--checkpoint-every 5 has no effect without --checkpoint" in said


@pytest.mark.quick("mm")
@pytest.mark.parametrize("solver", ["mm", "gibbs"])
def test_a_result_that_cannot_be_saved_is_not_lost(solver, tmp_path, monkeypatch):
    """The command has fitted, and there is no room for the model: the same command goes on."""
    table, kept = tmp_path / "table.csv", tmp_path / "fit.ckpt"
    rows = np.random.default_rng(0).poisson(4.0, (12, 3))
    np.savetxt(table, rows, fmt="%d", delimiter=",", header="a,b,c", comments="")
    few = ("--draws", 40, "--tune", 10) if solver == "gibbs" else ("--starts", 2)
    words = (
        "fit", table, "--components", 1, "--solver", solver, *few, "--checkpoint", kept,
        "--checkpoint-every", 0,
    )  # fmt: skip
    done(*words, "--out", tmp_path / "whole.npz")
    assert not kept.exists()

    def full(*given, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TemporalNMF, "save", full)
        assert invoke(*words, "--out", tmp_path / "model.npz").exit_code != 0
    assert kept.exists()
    done(*words, "--out", tmp_path / "model.npz")
    assert not kept.exists()
    whole, model = load(tmp_path / "whole.npz"), load(tmp_path / "model.npz")
    assert np.array_equal(whole.activations_, model.activations_)
    assert np.array_equal(whole.components_, model.components_)
