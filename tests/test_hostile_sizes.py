"""What says that it is huge is refused before memory is taken."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import files
from scipy import sparse
from scipy.io import mmwrite

from hostile import LONG, npy, replaced, zipped
from memory import MB, little_memory
from temporalnmf import load
from temporalnmf.checkpoints.file import CheckpointFile
from temporalnmf.reading import cells, read_table
from temporalnmf.runtime import archives
from temporalnmf.shards import Shards


@pytest.mark.parametrize("shape", ["(1000000000000000000,)", "(1000000, 1000000)", "(-1, 3)"])
def test_headers_of_huge_arrays_are_refused(shape, model_file, tmp_path):
    data = npy(shape, numbers=bytes(80))
    (tmp_path / "a.npy").write_bytes(data)
    (tmp_path / "a.npz").write_bytes(zipped({"X.npy": data}))
    replaced(model_file, activations_=data)
    with little_memory():
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ValueError, match=rf"{name} cannot be read as NumPy.*shape"):
                read_table(tmp_path / name)
        with pytest.raises(ValueError, match=r"model.npz cannot be read.*activations_.*shape"):
            load(model_file)


def test_archives_that_unpack_to_more_than_memory_are_refused(model_file, tmp_path, monkeypatch):
    zeros = npy("(1000, 1000)", numbers=bytes(8_000_000))
    (tmp_path / "a.npz").write_bytes(zipped({"X.npy": zeros}))
    replaced(model_file, activations_=zeros)
    assert read_table(tmp_path / "a.npz", transpose=True).X.shape == (1000, 1000)
    monkeypatch.setattr(archives, "memory_left", lambda: MB)
    with little_memory():
        with pytest.raises(ValueError, match=r"a.npz cannot.*would take 8,000,\d+ bytes of mem"):
            read_table(tmp_path / "a.npz")
        with pytest.raises(ValueError, match=r"model.npz cannot be read.*would take"):
            load(model_file)
        state = CheckpointFile(tmp_path / "a.npz", {})
        with pytest.raises(ValueError, match=r"a.npz' is not a checkpoint of a fit, or is damaged"):
            state.read()


def test_archives_that_lie_about_sizes_are_refused(tmp_path):
    data = bytearray(zipped({"X.npy": npy("(4, 2)", numbers=bytes(64))}))
    at = data.index(b"PK\x01\x02")
    for size, told in ((2**31 - 1, "cannot be"), (3, "damaged"), (100_000, "cannot be")):
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
    """Unpacked they are two hundred times larger, but harmless."""
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
def test_matrix_market_is_read_as_scipy_wrote_it(symmetry, layout, field, tmp_path):
    X = np.random.default_rng(0).poisson(1.0, size=(5, 5))
    X = X + X.T if symmetry == "symmetric" else X[:, :3]
    mmwrite(tmp_path / "a.mtx", layout(X), field=field, symmetry=symmetry, comment="a\nword")
    found = read_table(tmp_path / "a.mtx").X
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_array_equal(found, X)


def test_matrix_market_patterns_are_read_and_negative_values_of_skew_symmetry_refused(tmp_path):
    X = np.triu(np.ones((4, 4)))
    mmwrite(tmp_path / "a.mtx", sparse.coo_array(X), field="pattern")
    np.testing.assert_array_equal(read_table(tmp_path / "a.mtx").X.toarray(), X)
    for layout in (np.asarray, sparse.coo_array):
        mmwrite(tmp_path / "b.mtx", layout(X - X.T), symmetry="skew-symmetric")
        with pytest.raises(ValueError, match=r"b.mtx, row ., .*-1 is negative \(6 such"):
            read_table(tmp_path / "b.mtx")


@pytest.mark.parametrize("starts", [[0, 4, 8, 0], [0, -4, -8, -12], [0, 9, 4, 9], [3, 5, 7, 9]])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_sparse_archives_whose_rows_do_not_follow_each_other_are_refused(kind, starts, tmp_path):
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
def test_sparse_archives_with_indices_that_are_no_whole_numbers_are_refused(kind, name, tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(np.eye(5)).asformat(kind))
    with np.load(tmp_path / "a.npz") as arrays:
        assert name in arrays.files
        file = io.BytesIO()
        np.save(file, arrays[name].astype(complex))
    replaced(tmp_path / "a.npz", **{name: file.getvalue()})
    with pytest.raises(ValueError, match=r"a.npz cannot be.*indices are not whole numbers"):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("head", "told"),
    [(rb"{'descr': '\sf8'}", "a backslash"), (b"{" + b" " * 20_000, r"20,001 bytes")],
)
@pytest.mark.parametrize("version", [1, 2])
def test_headers_that_numpy_does_not_write_are_refused(version, head, told, tmp_path):
    """Without a warning of Python's parser."""
    size = struct.pack("<H" if version == 1 else "<I", len(head))
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY" + bytes((version, 0)) + size + head)
    with pytest.raises(ValueError, match=rf"a.npy cannot be read as NumPy.*{told}"):
        read_table(tmp_path / "a.npy")


@pytest.mark.parametrize("error", [pa.ArrowMemoryError, MemoryError])
def test_a_lack_of_memory_that_a_file_causes_names_it(error, tmp_path, monkeypatch):
    """Arrow asks for what a page says of its size; others do for what the program wants."""
    pq.write_table(pa.table({"c": np.zeros(5)}), tmp_path / "a.parquet")

    def lacking(*_, **__):
        raise error("malloc of size 2147483584 failed")

    monkeypatch.setattr(pq, "read_metadata", lacking)
    kind, told = (MemoryError, "^malloc") if error is MemoryError else (ValueError, "^a.parquet")
    with pytest.raises(kind, match=told):
        read_table(tmp_path / "a.parquet")


def test_headers_of_many_brackets_are_refused(tmp_path):
    """Python's parser calls that a lack of memory."""
    (tmp_path / "a.npy").write_bytes(npy("(" * 190 + "1" + ",)" * 190))
    with pytest.raises(ValueError, match=r"a.npy cannot be read as NumPy") as refusal:
        read_table(tmp_path / "a.npy")
    assert not isinstance(refusal.value.__cause__.__cause__, MemoryError)


def test_a_few_dates_that_are_ages_apart_are_refused_before_memory_is_taken(tmp_path, monkeypatch):
    names = ",".join(f"f{j}" for j in range(100))
    rows = "".join(f"{year}-01-01{',1' * 100}\n" for year in (2001, 2002, 2003, 4001))
    (tmp_path / "a.csv").write_text(f"time,{names}\n{rows}")
    monkeypatch.setattr(archives, "memory_left", lambda: 8 * MB)
    refusal = pytest.raises(ValueError, match=r"a.csv cannot.*24,001 steps would take.*freq=")
    with little_memory(20 * MB), refusal:
        read_table(tmp_path / "a.csv", freq="M")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_sparse_archives_are_read_as_scipy_wrote_them(kind, tmp_path):
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


def test_the_memory_check_notices_memory_of_arrow(tmp_path):
    pq.write_table(pa.table({"c": np.zeros(10**6)}), tmp_path / "a.parquet")
    with little_memory():
        pq.ParquetFile(tmp_path / "a.parquet").close()
    with pytest.raises(AssertionError, match="bytes were taken"), little_memory():
        pq.read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("deep", ["[" * 10**5, '{"a":' * 10**5])
def test_deeply_nested_json_is_refused(deep, model_file, seeds, tmp_path):
    with zipfile.ZipFile(model_file) as file:
        members = {name: file.read(name) for name in file.namelist()}
    for name in ("header.json", "labels.json"):
        model_file.write_bytes(zipped(members | {name: deep.encode()}))
        with pytest.raises(ValueError, match=r"model.npz cannot be read"):
            load(model_file)
    files.write_folder(files.read_folder(seeds / "shards" / "0"), tmp_path)
    (tmp_path / "data" / "shards.json").write_text(deep)
    with pytest.raises(ValueError, match=r"data/shards.json"):
        Shards.open(tmp_path / "data")
    np.savez(tmp_path / "state.npz", identity=np.array(deep))
    with pytest.raises(ValueError, match=r"state.npz' is not a checkpoint"):
        CheckpointFile(tmp_path / "state.npz", {}).read()


def test_a_seal_detects_every_change():
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
