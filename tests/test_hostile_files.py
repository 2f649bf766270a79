"""Files of strangers: damaged, huge, malicious. They are read, or refused in our own words."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import os
import pickle
import struct
import sys
import warnings
import zipfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import files, workers
from scipy import sparse
from scipy.io import mmwrite

import temporalnmf
import trials
from browser import launched, visited
from commands import done
from memory import MB, little_memory
from temporalnmf import TemporalNMF, archives, load
from temporalnmf.components import ShardedComponents
from temporalnmf.files import plain_cell, write_csv
from temporalnmf.reading import cells, read_table
from temporalnmf.report import write_report
from temporalnmf.sampling.checkpoint import Checkpoint
from temporalnmf.shards import Shards

SOURCE = Path(temporalnmf.__file__).parent
LONG = {"time": "time", "feature": "feature"}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return files.make_seeds(tmp_path_factory.mktemp("hostile") / "seeds")


# Fuzzing: cases that went wrong before, and some new ones.


def tried(make, numbers, jobs=1, name=str):
    """How cases end in other processes, where one that hangs or wants all memory is ended."""
    found = list(workers.run_cases(make, files.run, numbers, jobs, limit_seconds=20.0))
    wrong = {name(number): error.splitlines()[-1] for number, _, error in found if error}
    assert wrong == {}
    assert sorted(number for number, _, _ in found) == [*numbers]
    return [outcome.partition(":")[0] for _, outcome, _ in found]


def test_what_went_wrong_before_is_read_or_refused():
    names = [path.name for path in sorted(files.CORPUS.iterdir())]
    found = tried(trials.kept_file, range(len(names)), name=names.__getitem__)
    assert set(found) <= {"read", "refused"}


def test_all_files_are_read_before_they_are_damaged(seeds):
    found = {
        f"{loader}/{k}": files.run(files.FileCase(loader, content))
        for loader, contents in files._kept(seeds).items()
        for k, content in enumerate(contents)
    }
    assert {path.partition("/")[0] for path in found} == {*files.LOADERS}
    assert {path: outcome for path, outcome in found.items() if outcome != "read"} == {}
    for path, names in (
        ("resumed/0/state.npz", {"start.1.path_x", "W.1.S", "start.1.chain_beta"}),
        ("blocks/0/state/fit.npz", {"start.1.path_x"}),
        ("blocks/0/state/block-00000.19.npz", set()),
        ("checkpoint/0/state.npz", {"state_learned_alpha", "state_streams"}),
        ("drawn/0/state.npz", {"state_learned_alpha", "state_streams"}),
    ):
        assert names <= set(archives.read_npz(seeds / path)), path  # at a moment with much to tell
    for path in sorted(seeds.glob("model/*/model.npz")):
        np.testing.assert_allclose(load(path).components_.sum(axis=1), 1.0, atol=1e-10, rtol=0)


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


def test_valid_files_are_the_same_whenever_they_are_made(seeds, tmp_path):
    """Or a case would not follow from its number."""
    again = files.make_seeds(tmp_path / "again")
    assert files._read(again) == files._read(seeds)


def test_a_case_is_known_by_its_number(seeds, tmp_path):
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
def test_only_our_own_errors_are_allowed(monkeypatch, use, told):
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
def test_refusals_by_accident_are_told(cause, told, monkeypatch):
    def use(path):  # as if it were one of our own modules
        code = f"try:\n    {cause}\nexcept Exception as e:\n    raise ValueError('a.csv') from e"
        exec(compile(code, str(SOURCE / "somewhere.py"), "exec"))

    monkeypatch.setitem(files.LOADERS, "wide", (use, None))
    assert files.run(files.FileCase("wide", {"a.csv": b"x"})) == told


def test_a_name_that_a_file_lacks_is_no_accident(model):
    members = dict(files._members(model.read_bytes()))
    del members["history_.npy"]
    model.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=r"model.npz cannot.*'history_'") as refusal:
        load(model)
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
def test_models_that_were_read_are_looked_at(name, change, told, seeds, monkeypatch):
    case = files.FileCase("model", files._read(seeds / "model" / "0"))
    assert files.run(case) == "read"
    with np.errstate(all="ignore"):
        monkeypatch.setattr(files, "load", _spoiled(name, change))
        with pytest.raises(files.UnexpectedError, match=told):
            files.run(case)


def test_draws_that_were_read_are_looked_at(seeds, monkeypatch):
    case = files.FileCase("model", files._read(seeds / "model" / "5"))

    def wrong(path):
        model = load(path)
        model.posterior_.components[1, 2, 0] *= 1.001
        return model

    monkeypatch.setattr(files, "load", wrong)
    with pytest.raises(files.UnexpectedError, match="draws of components sum to one"):
        files.run(case)


@pytest.mark.parametrize("value", [-1.0, np.inf])
def test_tables_that_were_read_are_looked_at(value, seeds, monkeypatch):
    def wrong(*args, **kwargs):
        table = read_table(*args, **kwargs)
        (table.X.data if sparse.issparse(table.X) else table.X)[2] = value
        return table

    monkeypatch.setattr(files, "read_table", wrong)
    for loader in ("wide", "timed", "long"):
        case = files.FileCase(loader, files._read(seeds / loader / "0"))
        with pytest.raises(files.UnexpectedError, match="a cell that is not missing is"):
            files.run(case)


def test_shards_components_and_records_that_were_read_are_looked_at(seeds, monkeypatch):
    monkeypatch.setattr(Shards, "check", lambda shards, i: None)
    monkeypatch.setattr(ShardedComponents, "_block", ShardedComponents._mapped)
    for loader, name, told in (
        ("shards", "data/00001.features.values.npy", "values by feature is not negative"),
        ("shards", "data/00001.steps.values.npy", "values by step is not negative"),
        ("components", "parts/00001.npy", "components is not negative"),
    ):
        content = files._read(seeds / loader / "0")
        content[name] = files._npy(-np.load(io.BytesIO(content[name])))
        with pytest.raises(files.UnexpectedError, match=told):
            files.run(files.FileCase(loader, content))
    record = files.Task(0, "x", "rate", 1)._asdict()
    monkeypatch.setattr(files, "read_records", lambda path: [record])
    with pytest.raises(files.UnexpectedError, match="a record says which fit it is of"):
        files.run(files.FileCase("records", {"fits.jsonl": b""}))


@pytest.mark.parametrize("loader", files.SEALED)
def test_checkpoints_are_changed_under_their_seal(loader, seeds):
    """So that what reads them gets to look at their arrays."""
    (content,) = files._kept(seeds)[loader]
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


def test_a_worker_that_dies_or_hangs_is_known_by_its_case(monkeypatch):
    monkeypatch.setattr(workers, "BATCH", 4)
    monkeypatch.setattr(workers, "FIRST_SECONDS", 60.0)
    found = list(workers.run_cases(int, trials.end_by, range(14), jobs=2, limit_seconds=5.0))
    assert sorted(seed for seed, _, _ in found) == list(range(14))
    outcomes = {seed: (outcome, error) for seed, outcome, error in found}
    assert outcomes[3] == ("died", "the process ended with code -11")
    assert outcomes[5][0] == "hung"
    assert "KeyError: 'lost'" in outcomes[7][1]
    assert "MemoryError" in outcomes[11][1]
    rest = {seed: outcomes[seed] for seed in range(14) if seed not in (3, 5, 7, 11)}
    assert rest == {seed: ("odd" if seed % 2 else "even", None) for seed in rest}


# Sizes: what says that it is huge is refused before memory is taken.


def npy(shape: str, kind: str = "'<f8'", numbers: bytes = b"") -> bytes:
    head = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + numbers


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


def replaced(path: Path, **changed: bytes) -> Path:
    """An archive with other members."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    path.write_bytes(zipped(members | {f"{name}.npy": data for name, data in changed.items()}))
    return path


@pytest.fixture
def model(seeds, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes((seeds / "model" / "0" / "model.npz").read_bytes())
    return path


@pytest.mark.parametrize("shape", ["(1000000000000000000,)", "(1000000, 1000000)", "(-1, 3)"])
def test_headers_of_huge_arrays_are_refused(shape, model, tmp_path):
    data = npy(shape, numbers=bytes(80))
    (tmp_path / "a.npy").write_bytes(data)
    (tmp_path / "a.npz").write_bytes(zipped({"X.npy": data}))
    replaced(model, activations_=data)
    with little_memory():
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ValueError, match=rf"{name} cannot be read as NumPy.*shape"):
                read_table(tmp_path / name)
        with pytest.raises(ValueError, match=r"model.npz cannot be read.*activations_.*shape"):
            load(model)


def test_archives_that_unpack_to_more_than_memory_are_refused(model, tmp_path, monkeypatch):
    zeros = npy("(1000, 1000)", numbers=bytes(8_000_000))
    (tmp_path / "a.npz").write_bytes(zipped({"X.npy": zeros}))
    replaced(model, activations_=zeros)
    assert read_table(tmp_path / "a.npz", transpose=True).X.shape == (1000, 1000)
    monkeypatch.setattr(archives, "memory_left", lambda: MB)
    with little_memory():
        with pytest.raises(ValueError, match=r"a.npz cannot.*would take 8,000,\d+ bytes of mem"):
            read_table(tmp_path / "a.npz")
        with pytest.raises(ValueError, match=r"model.npz cannot be read.*would take"):
            load(model)
        state = Checkpoint(tmp_path / "a.npz", {})
        with pytest.raises(ValueError, match=r"a.npz' is no checkpoint of a fit, or is damaged"):
            state.read()


def test_archives_that_lie_about_sizes_are_refused(tmp_path):
    data = bytearray(zipped({"X.npy": npy("(4, 2)", numbers=bytes(64))}))
    at = data.index(b"PK\x01\x02")
    for size, told in ((2**31 - 1, "cannot be in"), (3, "damaged"), (100_000, "cannot be in")):
        data[at + 24 : at + 28] = struct.pack("<I", size)
        (tmp_path / "a.npz").write_bytes(data)
        with little_memory(), pytest.raises(ValueError, match=f"a.npz cannot.*{told}"):
            read_table(tmp_path / "a.npz")


def test_a_member_that_comes_twice_is_refused(tmp_path):
    data = zipped({"X.npy": npy("(4, 2)", numbers=bytes(64)), "Y.npy": npy("()", numbers=bytes(8))})
    (tmp_path / "a.npz").write_bytes(data.replace(b"Y.npy", b"X.npy"))
    with pytest.raises(ValueError, match=r"a.npz cannot.*'X.npy' twice"):
        read_table(tmp_path / "a.npz")


def test_gzip_files_that_grow_out_of_proportion_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "HARMLESS", MB)
    head = b"time,feature\n"
    bombs = {
        "a.csv.gz": head + bytes(30 * MB), "b.csv.gz": head + b"2001,x\n" * (4 * MB),
        "c.mtx.gz": b"%%MatrixMarket matrix array real general\n" + b"%\n" * (15 * MB),
    }  # fmt: skip
    for name, data in bombs.items():
        path = tmp_path / name
        path.write_bytes(gzip.compress(data))
        ways = [{}] if name == "c.mtx.gz" else [{}, LONG]
        for how in ways:
            most = 30 * MB if how else 20 * MB
            refusal = pytest.raises(ValueError, match=rf"{name} unpacks to more than .*gunzip")
            with little_memory(most), refusal:
                read_table(path, **how)


def test_gzip_files_of_many_zeros_are_read(tmp_path):
    """Such as are no bomb: two hundred times larger, but harmless."""
    frame = pd.DataFrame(np.zeros((800, 200)), columns=[f"f{j}" for j in range(200)])
    frame.iloc[5, 5] = 1.0
    path = tmp_path / "zeros.csv.gz"
    frame.to_csv(path, index_label="step")
    assert read_table(path).X.sum() == 1.0


HEAD = "%%MatrixMarket matrix"


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD} array real general\n1000000000000 1000000000000\n1\n2\n",
        f"{HEAD} coordinate real general\n3 3 99999999999\n1 1 1\n",
        f"{HEAD} coordinate real general\n1000000000000 3 1\n1 1 1\n",
        f"{HEAD} array real symmetric\n3000000 3000000\n1\n",
        f"{HEAD} array real general\n3 1\n1\x00\n2\n3\n",  # SciPy's reader ends the process
        f"{HEAD} array real general\n3 1\n1\n2\n0000-00-00",  # this one, too
        f"{HEAD} coordinate real general\n3 1 1\n9 1 1\n",
        f"{HEAD} coordinate real general\n3 1 1\n1.5 1 1\n",
        f"{HEAD} coordinate complex general\n3 1 1\n1 1 1 1\n",
    ],
)
def test_matrix_market_that_does_not_hold_what_it_says_is_refused(text, tmp_path):
    (tmp_path / "a.mtx").write_text(text)
    refusal = pytest.raises(ValueError, match=r"a.mtx cannot be read as Matrix Market")
    with little_memory(), refusal:
        read_table(tmp_path / "a.mtx")


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.coo_array], ids=["array", "coordinate"])
@pytest.mark.parametrize("field", ["real", "integer"])
def test_matrix_market_is_what_scipy_wrote(symmetry, layout, field, tmp_path):
    X = np.random.default_rng(0).poisson(1.0, size=(5, 5))
    X = X + X.T if symmetry == "symmetric" else X[:, :3]
    mmwrite(tmp_path / "a.mtx", layout(X), field=field, symmetry=symmetry, comment="a\nword")
    found = read_table(tmp_path / "a.mtx").X
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(found, X)


def test_matrix_market_of_patterns_and_skew_symmetry(tmp_path):
    X = np.triu(np.ones((4, 4)))
    mmwrite(tmp_path / "a.mtx", sparse.coo_array(X), field="pattern")
    np.testing.assert_array_equal(read_table(tmp_path / "a.mtx").X.toarray(), X)
    for layout in (np.asarray, sparse.coo_array):
        mmwrite(tmp_path / "b.mtx", layout(X - X.T), symmetry="skew-symmetric")
        with pytest.raises(ValueError, match=r"b.mtx, row ., .*-1 is negative \(6 such"):
            read_table(tmp_path / "b.mtx")


@pytest.mark.parametrize("starts", [[0, 4, 8, 0], [0, -4, -8, -12], [0, 9, 4, 9], [3, 5, 7, 9]])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_rows_of_sparse_archives_follow_each_other(kind, starts, tmp_path):
    """SciPy looks at no index if the last row ends at zero, and would end the process."""
    path = tmp_path / "table.npz"
    parts = {"format": np.array(kind), "shape": np.array([3, 3]), "data": np.ones(9)}
    np.savez(path, **parts, indices=np.tile(np.arange(3), 3), indptr=np.array(starts))
    with pytest.raises(ValueError, match=r"^table.npz"):
        read_table(path)


def test_sparse_archives_that_say_they_are_huge_are_refused(tmp_path):
    for kind in ("coo", "dia", "csr", "csc"):
        path = tmp_path / f"{kind}.npz"
        sparse.save_npz(path, sparse.coo_array(np.eye(5)).asformat(kind))
        replaced(path, shape=npy("(2,)", "'<i8'", struct.pack("<qq", 10**12, 10**12)))
        with little_memory(), pytest.raises(ValueError, match=f"{kind}.npz cannot.*are empty"):
            read_table(path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("csr", "indices"), ("csc", "indptr"), ("coo", "row"), ("dia", "offsets"), ("bsr", "indices")],
)
def test_indices_of_sparse_archives_are_whole_numbers(kind, name, tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(np.eye(5)).asformat(kind))
    with np.load(tmp_path / "a.npz") as arrays:
        assert name in arrays.files
        file = io.BytesIO()
        np.save(file, arrays[name].astype(complex))
    replaced(tmp_path / "a.npz", **{name: file.getvalue()})
    with pytest.raises(ValueError, match=r"a.npz cannot be.*indices are no whole numbers"):
        read_table(tmp_path / "a.npz")


def test_headers_of_many_brackets_are_refused(tmp_path):
    """Python's parser calls that a lack of memory."""
    (tmp_path / "a.npy").write_bytes(npy("(" * 190 + "1" + ",)" * 190))
    with pytest.raises(ValueError, match=r"a.npy cannot be read as NumPy") as refusal:
        read_table(tmp_path / "a.npy")
    assert not isinstance(refusal.value.__cause__.__cause__, MemoryError)


def test_a_few_dates_that_are_ages_apart_take_no_memory(tmp_path, monkeypatch):
    names = ",".join(f"f{j}" for j in range(100))
    rows = "".join(f"{year}-01-01{',1' * 100}\n" for year in (2001, 2002, 2003, 4001))
    (tmp_path / "a.csv").write_text(f"time,{names}\n{rows}")
    monkeypatch.setattr(archives, "memory_left", lambda: 8 * MB)
    refusal = pytest.raises(ValueError, match=r"a.csv cannot.*24,001 steps would take.*--freq")
    with little_memory(20 * MB), refusal:
        read_table(tmp_path / "a.csv", freq="M")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_sparse_archives_are_what_scipy_wrote(kind, tmp_path):
    X = np.random.default_rng(0).poisson(1.0, size=(6, 4)).astype(float)
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(X).asformat(kind))
    np.testing.assert_array_equal(read_table(tmp_path / "a.npz").X.toarray(), X)


def test_parquet_with_more_cells_than_memory_is_refused(tmp_path, monkeypatch):
    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int32)), pa.array(["1"]))
    pq.write_table(pa.table({f"c{j}": rows for j in range(5)}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 20_000
    monkeypatch.setattr(archives, "memory_left", lambda: MB)
    with little_memory(), pytest.raises(ValueError, match=r"a.parquet.*5,000,000 cells.*memory"):
        read_table(tmp_path / "a.parquet")


def test_memory_of_arrow_is_noticed(tmp_path):
    pq.write_table(pa.table({"c": np.zeros(10**6)}), tmp_path / "a.parquet")
    with little_memory():
        pq.ParquetFile(tmp_path / "a.parquet").close()
    with pytest.raises(AssertionError, match="bytes were taken"), little_memory():
        pq.read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("deep", ["[" * 10**5, '{"a":' * 10**5])
def test_json_without_an_end_is_refused(deep, model, seeds, tmp_path):
    with zipfile.ZipFile(model) as file:
        members = {name: file.read(name) for name in file.namelist()}
    for name in ("header.json", "labels.json"):
        model.write_bytes(zipped(members | {name: deep.encode()}))
        with pytest.raises(ValueError, match=r"model.npz cannot be read"):
            load(model)
    files._write(files._read(seeds / "shards" / "0"), tmp_path)
    (tmp_path / "data" / "shards.json").write_text(deep)
    with pytest.raises(ValueError, match=r"data/shards.json"):
        Shards.open(tmp_path / "data")
    np.savez(tmp_path / "state.npz", identity=np.array(deep))
    with pytest.raises(ValueError, match=r"state.npz' is no checkpoint"):
        Checkpoint(tmp_path / "state.npz", {}).read()


def test_a_seal_tells_of_every_change():
    arrays = {"H": np.arange(6.0).reshape(2, 3), "n": np.array(3)}
    whole = archives.sealed(arrays)
    np.testing.assert_array_equal(archives.unsealed(whole)["H"], arrays["H"])
    other = arrays["H"].copy()
    other[1, 1] = np.nextafter(4.0, 5.0)
    changes = (
        {"H": other}, {"H": arrays["H"].T}, {"H": arrays["H"].astype("f4")}, {"n": np.array(4)},
        {"more": np.ones(1)}, {"seal": np.array("x")},
    )  # fmt: skip
    for change in changes:
        with pytest.raises(ValueError, match="not as they were written"):
            archives.unsealed(whole | change)
    for name in whole:
        with pytest.raises(ValueError, match="not as they were written"):
            archives.unsealed({key: array for key, array in whole.items() if key != name})


# Numbers that compiled code could not rely on.


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e301])
def test_components_on_disk_are_looked_at_when_they_are_first_used(value, seeds, tmp_path):
    files._write(files._read(seeds / "components" / "0"), tmp_path)
    block = np.load(tmp_path / "parts" / "00001.npy")
    block[0, 1] = value
    np.save(tmp_path / "parts" / "00001.npy", block)
    components = ShardedComponents.open(tmp_path / "parts")  # sizes only
    assert components[:, 0].shape == (2,)
    for use in (
        lambda: components[:, 4],
        lambda: components.top(1),
        lambda: np.ones(2) @ components,
    ):
        with pytest.raises(ValueError, match=r"parts/00001.npy: it has numbers that are negative"):
            use()


HEADER_CHANGES = {
    "schema of another type": (("schema",), "x"),
    "chain of text": (("chain", "parameters", "alpha"), "x"),
    "chain that is to be learned": (("chain", "parameters", "beta"), "learn"),
    "chain of a negative number": (("chain", "parameters", "alpha"), -1.0),
    "chain of next to nothing": (("chain", "parameters", "alpha"), 1e-320),
    "chain of a huge number": (("chain", "parameters", "alpha"), 1e301),
    "chain with too many numbers": (("chain", "parameters", "alpha"), [1.0, 2.0, 3.0]),
    "chain that is not known": (("chain", "name"), "os:system"),
    "solver": (("parameters", "solver"), "os:system"),
    "threads": (("parameters", "n_jobs"), "x"),
    "iterations": (("parameters", "max_iter"), -1),
    "seed": (("parameters", "random_state"), [1, 2]),
    "number of text": (("numbers", "n_iter_"), "x"),
    "smoothing": (("numbers", "smoothing_"), -1.0),
}
LABEL_CHANGES = {
    "features of numbers": (("features", 0), 5),
    "features of nothing": (("features",), None),
    "spacing of text": (("timeline", "every"), "x"),
    "spacing of a list": (("timeline", "every"), []),
    "rows elsewhere": (("timeline", "rows", 0), 99),
    "times of objects": (("timeline", "kind"), "object"),
    "times without unit": (("timeline", "kind"), "M8"),
    "notes of numbers": (("timeline", "notes"), [1]),
}


def changed(content, keys, value):
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("member", "keys", "value"),
    [
        *(pytest.param("header.json", *x, id=name) for name, x in HEADER_CHANGES.items()),
        *(pytest.param("labels.json", *x, id=name) for name, x in LABEL_CHANGES.items()),
    ],
)
def test_a_model_that_could_not_be_used_is_not_loaded(member, keys, value, model):
    load(model)
    with zipfile.ZipFile(model) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members[member] = changed(json.loads(members[member]), keys, value)
    model.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=r"model.npz cannot be read as a model of temporalnmf"):
        load(model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("activations_", lambda a: a.astype(">f8").astype("f4")),
        ("activations_", lambda a: a.astype(complex)),
        ("activations_", lambda a: a * 1e301),
        ("exposure", lambda a: a * 0),
        ("exposure", lambda a: a * 1e-320),
        ("fitted_steps", lambda a: a.astype(float)),
        ("history_iterations_", lambda a: a[:-1]),
        ("data", lambda a: -a),
        ("posterior_covariance", lambda a: -a),
        ("posterior_covariance", lambda a: a * 0),
        ("posterior_activations", lambda a: a * 0),
    ],
)
def test_arrays_of_a_model_have_their_type_and_range(name, change, model):
    with np.load(model) as arrays:
        file = io.BytesIO()
        np.save(file, change(arrays[name]))
    replaced(model, **{name: file.getvalue()})
    with pytest.raises(ValueError, match=rf"model.npz cannot be read.*array {name} "):
        load(model)


def test_draws_without_features_are_refused(seeds, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes((seeds / "model" / "5" / "model.npz").read_bytes())
    with np.load(path) as arrays:
        draws = arrays["draws_components"]
    draws[0, 0, 0] = 0.0
    file = io.BytesIO()
    np.save(file, draws)
    load(path)
    replaced(path, draws_components=file.getvalue())
    with pytest.raises(
        ValueError,
        match=r"model.npz cannot.*draws_components has components that do not sum to one",
    ):
        load(path)


def test_labels_of_bytes_are_text_or_refused(tmp_path):
    table = pa.table({"time": pa.array([b"\xff\x00"] * 5), "a": pa.array([1.0] * 5)})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet has labels of bytes that are no text"):
        read_table(tmp_path / "a.parquet")


def test_arrays_of_other_machines_are_read(model):
    """Big-endian, and in the order of Fortran: compiled code gets them as it wants them."""
    before = load(model).forecast(2).values
    with np.load(model) as arrays:
        file = io.BytesIO()
        np.save(file, np.asfortranarray(arrays["activations_"].astype(">f8")))
    replaced(model, activations_=file.getvalue())
    np.testing.assert_array_equal(load(model).forecast(2).values, before)


def test_values_that_add_up_to_infinity_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,feature,value\n" + "".join(f"{y},x,1.5e308\n" for y in range(2001, 2006)))
    with pytest.raises(ValueError, match=r"a.csv: the values in column 'value' add up to infinity"):
        read_table(path, time="time", feature="feature", value="value")
    path.write_text("time,x\n" + "".join(f"{y},1.5e308\n" for y in range(2001, 2006)))
    for how in ({}, {"freq": "2"}):
        with pytest.raises(ValueError, match=r"a.csv: its values add up to infinity"):
            read_table(path, **how)


@pytest.mark.parametrize("column", ["time", "feature"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1.0]] * 5), pa.array([{"a": 1}] * 5), pa.array(range(5), pa.float16()),
        pa.array([1, 2, 3, 4, 5], pa.time64("ns")),
    ],
    ids=["lists", "structs", "halves", "nanoseconds"],
)  # fmt: skip
def test_columns_that_are_no_labels_are_named(column, values, tmp_path):
    table = {
        "time": pa.array(range(2001, 2006)),
        "feature": pa.array(list("ababa")),
        column: values,
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    if column == "feature" and values.type == pa.time64("ns"):
        values = None  # as text they are names
    try:
        read_table(tmp_path / "a.parquet", **LONG)
    except ValueError as error:
        assert f"a.parquet: column {column!r} holds" in str(error)  # noqa: PT017
        return
    assert values is None


# Nothing is run.


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def test_pickles_are_never_loaded(model, seeds, tmp_path):
    control, marker = tmp_path / "control", tmp_path / "marker"
    pickle.loads(pickle.dumps(Bomb(control)))
    assert control.exists(), "the bomb works"
    objects = np.empty((4, 2), dtype=object)
    objects[:] = Bomb(marker)
    array, plain = io.BytesIO(), pickle.dumps(Bomb(marker))
    np.save(array, objects, allow_pickle=True)
    data = array.getvalue()
    for name in ("shards", "components"):
        files._write(files._read(seeds / name / "0"), tmp_path)
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
        tmp_path / "state.npz": (lambda path: Checkpoint(path, {}).read(), ("identity", "state_W")),
        model: (load, ("activations_", "extra", "data")),
    }
    whole = model.read_bytes()
    for path, (read, members) in archives_of.items():
        for member in members:
            for content in (data, plain):
                path.write_bytes(whole if path == model else zipped({"format.npy": data}))
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
def test_what_could_run_code_is_noticed(text):
    assert unsafe(ast.parse(text))


def test_no_source_can_run_code_from_a_file():
    """Dask is another matter: `observations/dask.py` and the experiments hand functions and arrays
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


def test_paths_in_files_are_not_followed(model, seeds, tmp_path):
    canary = tmp_path / "elsewhere" / "canary.npy"
    canary.parent.mkdir()
    np.save(canary, np.ones(3))
    for name in (str(canary), f"../{tmp_path.name}/elsewhere/canary.npy", "../../../../etc/passwd"):
        with zipfile.ZipFile(model) as file:
            members = {member: file.read(member) for member in file.namelist()}
        header, labels = (json.loads(members[f"{n}.json"]) for n in ("header", "labels"))
        header |= {"provenance": {"source": name}, "folder": name, "components_fingerprint": name}
        header["versions"]["temporalnmf"] = header["numbers"]["stop_reason_"] = name
        labels["features"][0], labels["timeline"]["notes"] = name, [name]
        texts = {"header.json": json.dumps(header), "labels.json": json.dumps(labels)}
        model.write_bytes(
            zipped(members | texts | {f"../{name}.txt": b"x", "../x.npy": members["exposure.npy"]})
        )
        files._write(files._read(seeds / "shards" / "0"), tmp_path / "folder")
        place = tmp_path / "folder" / "data" / "shards.json"
        whole = json.loads(place.read_text())
        place.write_text(json.dumps({**whole, "notes": [name], "path": name, "files": [name]}))
        before = sorted(tmp_path.rglob("*"))
        with files_opened() as found:
            load(model).forecast(1)
            Shards.open(place.parent).matrix()
        assert any(path.endswith("model.npz") for path in found), "the test listens"
        assert not [path for path in found if "canary" in path or "passwd" in path]
        assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


@pytest.mark.parametrize("kind", ["shards", "components"])
def test_links_out_of_a_folder_are_not_followed(kind, seeds, tmp_path):
    files._write(files._read(seeds / kind / "0"), tmp_path)
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


# What we write is safe to open.

HOSTILE = [
    "<script>window.hacked=1</script>", '"><img src=x onerror=window.hacked=1>',
    "</script><script>window.hacked=1</script>", "{{7*7}}", "a\u2028b\u2029c", "\u202egpj.exe",
    "javascript:window.hacked=1", "' onmouseover='window.hacked=1",
]  # fmt: skip


def test_hostile_names_times_and_titles_are_text_in_a_browser(tmp_path):
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    X = rng.poisson(np.outer(np.linspace(1, 9, 3 * n), rng.gamma(1.0, 9.0, n)) + 1.0)
    times = [f"{name} {k}" for k in range(3) for name in HOSTILE]
    frame = pd.DataFrame(X.astype(float), index=times, columns=HOSTILE)
    frame.iloc[4] = np.nan
    model = TemporalNMF(2, random_state=0).fit(frame)
    path = write_report(
        model,
        tmp_path / "h.html",
        question=HOSTILE[0],
        command=HOSTILE[2],
        source=HOSTILE[1],
        steps=3,
    )
    # That the page says nothing on the console and asks for nothing is for `visited` to see.
    with launched() as browser, visited(browser, path) as page:
        page.get_by_text("The same as a table").click()
        for box in page.locator("svg").all()[:4]:
            if box.is_visible():
                box.hover(force=True)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, iframe, object, embed").count() == 0
        assert page.locator("[onerror], [onmouseover], [href^='javascript']").count() == 0
        assert page.locator("h1").inner_text() == HOSTILE[0]
        features = page.locator(".bars bdi").all_text_contents()
        assert {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3]} <= set(features)
        text = page.locator("body").text_content()
        assert "missing and is filled in: a b c 0." in text, "the missing step is named"
        assert not set(text) & set("\u2028\u2029\u202e"), "what turns lines around is left out"


FORMULAS = ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "-x"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert plain_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "cell", [-3.5, 0, None, "", "war", "-3.5", "+1", "-1e-7", "2001-02", "a=b", True, "-.5"]
)
def test_numbers_and_other_text_stay(cell):
    assert plain_cell(cell) is cell


def texts_of(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def assert_harmless(path: Path) -> list[str]:
    cells = texts_of(path)
    for cell in cells:
        if cell[:1] in tuple("=+-@\t\r"):
            float(cell)  # a number, or the test fails
    return cells


def test_no_csv_that_we_write_holds_a_formula(tmp_path):
    found = texts_of(write_csv(tmp_path / "rows.csv", [{"=a": "=1+2", "b": -3.5, "c": "-3.5"}]))
    assert found == ["'=a", "b", "c", "'=1+2", "-3.5", "-3.5"]
    rng = np.random.default_rng(0)
    names = ["=1+2", "@SUM(A1)", "-x", "plain"]
    frame = pd.DataFrame(rng.poisson(9.0, size=(12, 4)).astype(float), columns=names)
    frame.iloc[3, 1] = np.nan
    frame.index = pd.Index([f"={k}+1" for k in range(12)], name="time")
    frame.to_csv(tmp_path / "data.csv")
    model, out = tmp_path / "model.npz", tmp_path / "out.csv"
    done("fit", tmp_path / "data.csv", "--components", 2, "--out", model)
    for command in (["forecast", model, "--steps", 2], ["forecast", model, "--of", "components"]):
        done(*command, "--out", out, "--force")
        assert_harmless(out)
    bands = tmp_path / "bands.csv"
    done("impute", model, "--out", out, "--bands", bands, "--force")
    assert {"'=1+2", "'@SUM(A1)", "'-x", "plain", "'=0+1"} <= set(assert_harmless(out))
    assert {"'@SUM(A1)", "'=3+1"} <= set(assert_harmless(bands))
    again = read_table(out)
    assert again.features.tolist() == ["'=1+2", "'@SUM(A1)", "'-x", "plain"]  # as it is written
    assert again.times[0] == "'=0+1"
