"""Damaged files of every kind are read, or refused in our own words; and the checks see damage."""

from __future__ import annotations

import io
import time
import warnings
import zipfile
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from fuzzing import files, workers
from scipy import sparse

import temporalnmf
import trials
from hostile import zipped
from temporalnmf import load
from temporalnmf.components import ShardedComponents
from temporalnmf.reading import read_table
from temporalnmf.runtime import archives
from temporalnmf.shards import Shards

SOURCE = Path(temporalnmf.__file__).parent


def tried(make, numbers, jobs=1, name=str):
    """How cases end in other processes, where one that hangs or wants all memory is ended."""
    found = list(workers.run_cases(make, files.run, numbers, jobs, limit_seconds=20.0))
    wrong = {name(number): error.splitlines()[-1] for number, _, error in found if error}
    assert wrong == {}
    assert sorted(number for number, _, _ in found) == [*numbers]
    return [outcome.partition(":")[0] for _, outcome, _ in found]


def test_files_that_went_wrong_before_are_read_or_refused():
    names = [path.name for path in sorted(files.CORPUS.iterdir())]
    assert names
    found = tried(trials.kept_file, range(len(names)), name=names.__getitem__)
    assert set(found) <= {"read", "refused"}


def test_all_files_are_read_before_they_are_damaged(seeds):
    found = {
        f"{loader}/{k}": files.run(files.FileCase(loader, content))
        for loader, contents in files.kept_seeds(seeds).items()
        for k, content in enumerate(contents)
    }
    assert {path.partition("/")[0] for path in found} == {*files.LOADERS}
    assert {path: outcome for path, outcome in found.items() if outcome != "read"} == {}
    for path, names in (
        ("resumed/0/state.npz", {"start.1.path_x", "W.1.S"}),
        ("blocks/0/state/fit.npz", {"start.1.path_x"}),
        ("blocks/0/state/block-00000.19.npz", set()),
        ("checkpoint/0/state.npz", {"state_learned_alpha", "state_streams"}),
        ("drawn/0/state.npz", {"state_learned_alpha", "state_streams"}),
    ):
        assert names <= set(archives.read_npz(seeds / path)), path  # at a moment with much to tell
    for path in sorted(seeds.glob("model/*/model.npz")):
        np.testing.assert_allclose(load(path).components_.sum(axis=1), 1.0, atol=1e-10, rtol=0)


@pytest.mark.long
def test_damaged_files_are_read_or_refused(seeds):
    found = tried(partial(files.make_case, seeds), range(300))
    assert found.count("read") > 20
    assert found.count("refused") > 100


@pytest.mark.long
def test_many_damaged_files_are_read_or_refused(seeds):
    assert set(tried(partial(files.make_case, seeds), range(1000, 6000), jobs=2)) == {
        "read",
        "refused",
    }


@pytest.mark.long
def test_valid_files_are_the_same_whenever_they_are_made(seeds, tmp_path):
    """Or a case would not follow from its number."""
    again = files.make_seeds(tmp_path / "again")
    assert files.read_folder(again) == files.read_folder(seeds)


def test_cases_follow_from_their_numbers_and_can_be_kept(seeds, tmp_path):
    for seed in range(60):
        one, again = files.make_case(seeds, seed), files.make_case(seeds, seed)
        assert one == again
        path = files.keep(one, seed, "KeyError: 'x' is lost", tmp_path)
        assert path.name.startswith(f"{one.loader}-{seed}-KeyError_x_is_lost")
        back = files.kept(path)
        assert back.loader == one.loader
        assert [*back.files.values()] == [*one.files.values()]
    whole = {loader: [] for loader in files.LOADERS}
    for seed in range(400):
        case = files.make_case(seeds, seed)
        whole[case.loader].append(case)
    assert all(whole.values()), "every loader is tried"


def _warns(path):
    return np.float64(1e308) * np.full(1, 1e308)


def _no_name(path):
    read_table(path.with_name("nothing.csv"))


def _floods(path):
    for k in range(21):
        warnings.warn(f"warning {k}", UserWarning, stacklevel=1)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda path: {}["x"], "KeyError"),
        (lambda path: int("x"), "ValueError of"),
        (lambda path: bytearray(1 << 60), "out of memory"),
        (lambda path: zipfile.ZipFile(io.BytesIO()), "BadZipFile"),
        (_warns, "RuntimeWarning"),
        (_no_name, "does not name the file"),
        (_floods, "a flood of 21 warnings"),
    ],
)
def test_the_fuzzer_allows_only_our_own_errors(monkeypatch, use, told):
    monkeypatch.setitem(files.LOADERS, "wide", (use, None))
    with pytest.raises(files.UnexpectedError, match=told):
        files.run(files.FileCase("wide", {"table.csv": b"x"}))


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("len(5)", "refused: TypeError"),
        ("{}['x']", "refused: KeyError"),
        ("int('x')", "refused"),
        ("open('/nowhere')", "refused"),
    ],
)
def test_the_fuzzer_tells_refusals_by_accident(cause, told, monkeypatch):
    def use(path):  # as if it were one of our own modules
        code = f"try:\n    {cause}\nexcept Exception as e:\n    raise ValueError('a.csv') from e"
        exec(compile(code, str(SOURCE / "somewhere.py"), "exec"))

    monkeypatch.setitem(files.LOADERS, "wide", (use, None))
    assert files.run(files.FileCase("wide", {"a.csv": b"x"})) == told


def test_the_fuzzer_takes_a_missing_name_for_a_refusal(model_file):
    members = dict(files.zip_members(model_file.read_bytes()))
    members["labels.json"] = b"{}"
    model_file.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=r"model.npz cannot.*'timeline'") as refusal:
        load(model_file)
    assert isinstance(refusal.value.__cause__, KeyError)
    assert files._refusal(refusal.value) == "refused"


def _spoiled(name, change):
    """A model as `load` returns it, but for one array."""

    def wrong(path):
        model = load(path)
        setattr(model, name, change(np.array(getattr(model, name))))
        return model

    return wrong


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("components_", lambda a: a * (1 + 2e-6), "components sum to one"),
        ("components_", lambda a: a - a[:, :1] - 1e-9, "components_ is not negative"),
        ("components_", lambda a: a / 0.0, "components_ is finite"),
        ("activations_", lambda a: a * np.nan, "activations_ is finite"),
        ("activations_", lambda a: -a, "activations_ is not negative"),
    ],
)
def test_the_fuzzer_checks_models_that_were_read(name, change, told, seeds, monkeypatch):
    case = files.FileCase("model", files.read_folder(seeds / "model" / "0"))
    assert files.run(case) == "read"
    with np.errstate(all="ignore"):
        monkeypatch.setattr(files, "load", _spoiled(name, change))
        with pytest.raises(files.UnexpectedError, match=told):
            files.run(case)


def test_the_fuzzer_checks_draws_that_were_read(seeds, monkeypatch):
    case = files.FileCase("model", files.read_folder(seeds / "model" / "5"))

    def wrong(path):
        model = load(path)
        model.posterior_.components[1, 2, 0] *= 1.001
        return model

    monkeypatch.setattr(files, "load", wrong)
    with pytest.raises(files.UnexpectedError, match="draws of components sum to one"):
        files.run(case)


@pytest.mark.parametrize("value", [-1.0, np.inf])
def test_the_fuzzer_checks_tables_that_were_read(value, seeds, monkeypatch):
    def wrong(*args, **kwargs):
        table = read_table(*args, **kwargs)
        (table.X.data if sparse.issparse(table.X) else table.X)[2] = value
        return table

    monkeypatch.setattr(files, "read_table", wrong)
    for loader in ("wide", "timed", "long"):
        case = files.FileCase(loader, files.read_folder(seeds / loader / "0"))
        with pytest.raises(files.UnexpectedError, match="a cell that is not missing is"):
            files.run(case)


def test_the_fuzzer_checks_shards_components_and_records_that_were_read(seeds, monkeypatch):
    monkeypatch.setattr(Shards, "check", lambda shards, i: None)
    monkeypatch.setattr(ShardedComponents, "_block", ShardedComponents._mapped)
    for loader, name, told in (
        ("shards", "data/00001.features.values.npy", "values by feature is not negative"),
        ("shards", "data/00001.steps.values.npy", "values by step is not negative"),
        ("components", "parts/00001.npy", "components is not negative"),
    ):
        content = files.read_folder(seeds / loader / "0")
        content[name] = files.npy_bytes(-np.load(io.BytesIO(content[name])))
        with pytest.raises(files.UnexpectedError, match=told):
            files.run(files.FileCase(loader, content))
    record = files.Task(0, "x", "rate", 1)._asdict()
    monkeypatch.setattr(files, "read_records", lambda path: [record])
    with pytest.raises(files.UnexpectedError, match="a record says which fit it is of"):
        files.run(files.FileCase("records", {"fits.jsonl": b""}))


@pytest.mark.quick("checkpoint")
@pytest.mark.parametrize("loader", files.SEALED)
def test_checkpoints_are_changed_under_their_seal(loader, seeds):
    """So that what reads them gets to look at their arrays."""
    (content,) = files.kept_seeds(seeds)[loader]
    names = [name for name in content if name.startswith("state")]
    whole = {name: archives.read_npz(io.BytesIO(content[name])) for name in names}
    seals = set()
    for seed in range(30):
        name = names[seed % len(names)]
        data, again = (
            files._tried(files._under_seal, Random(seed), name, content[name], [b"x"])
            for _ in range(2)
        )
        assert data == again
        found = archives.read_npz(io.BytesIO(data))
        archives.unsealed(found)  # or it would be refused here
        seals.add(str(found["seal"]))
    assert len(seals - {str(arrays["seal"]) for arrays in whole.values()}) > 20


@pytest.mark.long
def test_a_worker_that_dies_or_hangs_is_known_by_its_case(monkeypatch, tmp_path):
    def clock():
        """Goes ahead of time when a case hangs."""
        ahead = 2e6 * hangs.exists()
        hangs.unlink(missing_ok=True)
        return time.monotonic() + ahead

    hangs = tmp_path / "hangs"
    monkeypatch.setenv(trials.HANGS, str(hangs))
    monkeypatch.setattr(workers, "BATCH", 4)
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=clock))
    found = list(workers.run_cases(int, trials.end_by, range(14), jobs=1, limit_seconds=1e6))
    assert sorted(seed for seed, _, _ in found) == list(range(14))
    outcomes = {seed: (outcome, error) for seed, outcome, error in found}
    assert outcomes[3] == ("died", "the process ended with code -11")
    assert outcomes[5][0] == "hung"
    assert "KeyError: 'lost'" in outcomes[7][1]
    assert "MemoryError" in outcomes[11][1]
    rest = {seed: outcomes[seed] for seed in range(14) if seed not in (3, 5, 7, 11)}
    assert rest == {seed: ("odd" if seed % 2 else "even", None) for seed in rest}


@pytest.mark.long
def test_a_case_is_ended_by_the_processor_time_it_takes(monkeypatch):
    monkeypatch.setattr(workers, "WAITING", 1e6)
    found = sorted(workers.run_cases(int, trials.spin, range(2), jobs=1, limit_seconds=1.0))
    assert found == [
        (0, "ended", None), (1, "hung", "it took more than 1 s of processor time")
    ]  # fmt: skip
