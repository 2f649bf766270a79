"""Folders of shards: what is written is what is read, in memory or sorted on disk."""

import io
import json
import pickle
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from shard_folders import names_of
from temporalnmf.reading import long_files, read_table
from temporalnmf.reading.long_columns import Columns
from temporalnmf.shards import Shards, ShardWriter, is_shards, shard_long, sorting, write_shards
from temporalnmf.shards.writing import cut, shard_count
from temporalnmf.timeline import time_texts, timeline_of

COLUMNS = Columns("date", "word", "count")
NAMES = ["war", "peace", "new\nline", "back\\slash\\n", "Größe ☃", "", "a\r", "x y"]


def lines(n):
    return timeline_of(np.arange(2000, 2000 + n))


def missing_of(shards):
    """Cells that are missing, as a mask (n_times, n_features); steps are not counted."""
    mask = np.zeros((shards.n_times, shards.n_features), dtype=bool)
    for i in range(shards.n_shards):
        if (found := shards.missing(i)) is not None:
            indptr, steps = found
            for f in range(len(indptr) - 1):
                mask[steps[indptr[f] : indptr[f + 1]], shards.bounds[i] + f] = True
    return mask


def dense(shards):
    """From the feature order, entry by entry; NaN where missing."""
    X = np.zeros((shards.n_times, shards.n_features))
    for i in range(shards.n_shards):
        indptr, steps, values = shards.by_feature(i)
        for f in range(len(indptr) - 1):
            part = slice(indptr[f], indptr[f + 1])
            X[steps[part], shards.bounds[i] + f] = values[part]
        shards.check(i)
    np.testing.assert_array_equal(X, shards.matrix().toarray())  # the step order says the same
    X[missing_of(shards)] = np.nan
    X[~shards.observed] = np.nan
    return X


def data(N=7, F=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(0.7, size=(N, F)) * rng.uniform(0.5, 2.0, size=(N, F))


@pytest.fixture
def folder(tmp_path):
    """A sound one of two shards, with missing cells in the second only."""
    X = data()
    X[2, 6] = X[3, 7] = np.nan
    write_shards(tmp_path / "words", X, names=NAMES, timeline=lines(7), n_shards=2)
    return tmp_path / "words"


# Writing what is in memory


@pytest.mark.parametrize("n_shards", [None, 1, 3, 8])
@pytest.mark.parametrize("kind", ["dense", "sparse", "int"])
def test_numbers_and_names_come_back(tmp_path, kind, n_shards):
    X = data()
    if kind == "int":
        X = np.rint(X).astype(int)
    given = sparse.coo_array(X) if kind == "sparse" else X
    exposure = np.linspace(1.0, 3.0, 7)
    shards = write_shards(
        tmp_path / "a", given, names=NAMES, timeline=lines(7), exposure=exposure,
        n_shards=n_shards, notes=["said"],
    )  # fmt: skip
    np.testing.assert_array_equal(dense(shards), X)
    assert names_of(shards) == NAMES
    assert shards.n_shards == (n_shards or 8)
    assert (shards.n_times, shards.n_features) == (7, 8)
    np.testing.assert_array_equal(shards.exposure, exposure)
    np.testing.assert_array_equal(shards.timeline.labels, np.arange(2000, 2007))
    assert shards.timeline.every == "step of 1"
    assert shards.notes == ("said",)
    assert shards.observed.all()
    assert not any(shards.has_missing)
    assert shards.nonzeros.sum() == np.count_nonzero(X)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_missing_cells_and_steps_come_back(tmp_path):
    X = data()
    X[1] = np.nan
    X[2, 3] = X[5, 0] = np.nan
    shards = write_shards(tmp_path / "a", X, names=NAMES, timeline=lines(7), n_shards=4)
    np.testing.assert_array_equal(dense(shards), X)
    assert shards.observed.tolist() == [True, False, *[True] * 5]
    assert np.argwhere(missing_of(shards)).tolist() == [[2, 3], [5, 0]]
    assert shards.has_missing == tuple(shards.missing(i) is not None for i in range(4))
    assert 1 <= sum(shards.has_missing) <= 2


@pytest.mark.parametrize("whole", [True, False])
def test_masked_entries_come_back_as_missing(tmp_path, whole):
    X = data() + 1.0
    mask = np.ones((7, 8), dtype=bool)
    mask[4] = False
    if not whole:
        mask[0, [2, 7]] = False
    observed = mask[:, 0] if whole else mask
    shards = write_shards(
        tmp_path / "a", sparse.csr_array(X), names=NAMES, timeline=lines(7), observed=observed
    )
    np.testing.assert_array_equal(dense(shards), np.where(mask, X, np.nan))
    assert shards.nonzeros.sum() == mask.sum()


def test_arrays_have_the_types_that_are_documented(folder):
    shards = Shards.open(folder)
    for order, arrays in (("features", shards.by_feature(0)), ("steps", shards.by_step(0))):
        assert [a.dtype for a in arrays] == [np.int32, np.int32, np.float64]
        assert all(type(a) is np.ndarray and a.flags.writeable for a in arrays)
        values = arrays[2]
        before = values.copy()
        values[:] = 0.0  # copy on write: the file stays as it is
        np.testing.assert_array_equal(np.load(folder / f"00000.{order}.values.npy"), before)
    files = [p for p in folder.iterdir() if p.name.startswith("00001.") and p.suffix == ".npy"]
    assert len(files) == 8
    assert shards.nbytes(1) == sum(p.stat().st_size for p in files)
    assert shards.nbytes(0) < shards.nbytes(1)


def test_a_pickled_reader_is_small_and_reads_the_same(folder):
    shards = Shards.open(folder)
    again = pickle.loads(pickle.dumps(shards))
    np.testing.assert_array_equal(dense(again), dense(shards))
    assert len(pickle.dumps(shards)) < 3000
    assert names_of(again) == NAMES
    names = b"".join(path.read_bytes() for path in sorted(folder.glob("*.names.txt")))
    assert names.count(b"\n") == len(NAMES)
    assert b"\r" not in names  # editors would take it for the end of a line


def test_number_of_shards_follows_from_the_data():
    assert [shard_count(0, F) for F in (1, 2, 3, 15, 16, 1000)] == [1, 2, 2, 8, 16, 16]
    M = 2**21
    assert [shard_count(n, 10**6) for n in (16 * M, 16 * M + 1, 32 * M, 33 * M)] == [16, 32, 32, 64]
    assert shard_count(10**12, 20) == 16
    for wanted in (0, 21, -1):
        with pytest.raises(ValueError, match=f"n_shards={wanted} .*Choose 1 to 20"):
            shard_count(5, 20, wanted)


@pytest.mark.parametrize("seed", range(20))
def test_shards_are_about_equal_and_never_empty(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.exponential(20.0, size=rng.integers(20, 200)))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    n = int(rng.integers(1, 20))
    bounds = cut(indptr, n)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, len(counts), n + 1)
    assert np.all(np.diff(bounds) >= 1)
    sizes = np.diff(indptr[bounds])
    assert sizes.max() <= indptr[-1] / n + 2 * counts.max()


def test_no_shard_is_empty_wherever_the_non_zeros_are():
    assert cut(np.array([0, 0, 0, 0, 9]), 3) == [0, 2, 3, 4]
    assert cut(np.array([0, 9, 9, 9, 9]), 3) == [0, 1, 2, 4]
    assert cut(np.zeros(5, dtype=int), 4) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"X": np.full((7, 8), -1.0)}, r"X\[0, 0\] is -1"),
        ({"X": np.full((7, 8), np.inf)}, r"X\[0, 0\] is inf"),
        (
            {"X": sparse.csr_array(np.diag([1, np.nan, 1, 1, 1, 1, 1, 1.0])[:7])},
            r"X\[1, 1\] is nan",
        ),
        ({"X": np.ones(7)}, "X has the shape"),
        ({"X": np.ones((7, 0)), "names": []}, "X has the shape"),
        ({"names": NAMES[:7]}, "names has 7 names for 8 features"),
        ({"timeline": lines(6)}, "timeline has 6 steps"),
        ({"observed": np.ones(6, dtype=bool)}, "observed holds bool of shape"),
        ({"observed": np.ones(7)}, "observed holds float64"),
        ({"exposure": np.zeros(7)}, r"^exposure contains 0\.0: .* observed="),
        ({"exposure": np.full(7, np.nan)}, "^exposure contains nan: it must be positive"),
        ({"exposure": np.ones(6)}, r"^exposure has shape \(6,\): expected \(7,\)"),
        ({"exposure": "x"}, "^exposure='x': expected positive numbers"),
        ({"n_shards": 9}, "n_shards=9"),
    ],
)
def test_wrong_input_is_refused_and_leaves_nothing(tmp_path, changed, said):
    given = {"X": data(), "names": NAMES, "timeline": lines(7), **changed}
    with pytest.raises(ValueError, match=said):
        write_shards(tmp_path / "a", **given)
    assert list(tmp_path.iterdir()) == []


def test_writer_refuses_shards_that_do_not_fit(tmp_path):
    with ShardWriter(tmp_path / "a") as writer:
        writer.add(["x"], sparse.csr_array([[1.0, 2.0, 0.0]]))
        with pytest.raises(ValueError, match=r"at least one feature × 3 steps"):
            writer.add(["y"], sparse.csr_array([[1.0, 2.0]]))
        with pytest.raises(ValueError, match="2 names for 1 features"):
            writer.add(["y", "z"], sparse.csr_array([[1.0, 2.0, 0.0]]))
        with pytest.raises(ValueError, match="zero, negative or not finite"):
            writer.add(["y"], sparse.csr_array([[1.0, -2.0, 0.0]]))
    assert list(tmp_path.iterdir()) == []  # it was not finished


# Overwriting, and being stopped


def test_a_folder_is_replaced_only_on_request_and_only_when_the_new_one_is_whole(folder):
    before = dense(Shards.open(folder))
    other = {"names": NAMES, "timeline": lines(7)}
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_shards(folder, data(seed=1), **other)
    with pytest.raises(ValueError, match="exposure"):  # found at the very end
        write_shards(folder, data(seed=1), exposure=np.zeros(7), overwrite=True, **other)
    np.testing.assert_array_equal(dense(Shards.open(folder)), before)
    shards = write_shards(folder, data(seed=1), overwrite=True, n_shards=1, **other)
    np.testing.assert_array_equal(dense(shards), data(seed=1))
    assert not list(folder.glob("00001.*"))  # nothing of the old one is left
    assert [p.name for p in folder.parent.iterdir()] == ["words"]


def test_foreign_files_and_folders_are_never_replaced(tmp_path):
    given = {"X": data(), "names": NAMES, "timeline": lines(7), "overwrite": True}
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    with pytest.raises(FileExistsError, match=r"holds 'cat.jpg'.*not replaced"):
        write_shards(tmp_path / "photos", **given)
    assert (tmp_path / "photos" / "cat.jpg").read_text() == "meow"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"):
        write_shards(tmp_path / "file", **given)
    (tmp_path / "empty").mkdir()
    assert write_shards(tmp_path / "empty", **given).n_features == 8


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("before", [False, True])
def test_being_stopped_leaves_no_half_folder(tmp_path, monkeypatch, stop, before):
    given = {"names": NAMES, "timeline": lines(7), "n_shards": 4}
    if before:
        write_shards(tmp_path / "a", data(), **given)
    save = np.save

    def stopped(path, array, **options):
        if "00002" in str(path):
            raise stop("full")
        save(path, array, **options)

    monkeypatch.setattr(np, "save", stopped)
    with pytest.raises(stop):
        write_shards(tmp_path / "a", data(seed=1), overwrite=True, **given)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == (["a"] if before else [])
    if before:
        np.testing.assert_array_equal(dense(Shards.open(tmp_path / "a")), data())


def test_leftovers_of_a_killed_process_are_cleared(tmp_path):
    (tmp_path / ".a.partial").mkdir()
    (tmp_path / ".a.partial" / "00007.names.txt").write_text("old\n")
    write_shards(tmp_path / "a", data(), names=NAMES, timeline=lines(7), n_shards=2)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert not (tmp_path / "a" / "00007.names.txt").exists()


# Damaged and foreign folders


def test_an_unfinished_folder_says_so(folder):
    (folder / "shards.json").unlink()
    assert is_shards(folder)
    with pytest.raises(ValueError, match=r"is not finished.*overwrite=True"):
        Shards.open(folder)


def test_what_is_no_folder_of_shards_is_refused(tmp_path):
    assert not is_shards(tmp_path)
    assert not is_shards(tmp_path / "none")
    with pytest.raises(ValueError, match="is not a folder of shards"):
        Shards.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        Shards.open(tmp_path / "none")


ARRAYS = [
    f"0000{i}.{part}.npy"
    for i, orders in enumerate((("features", "steps"), ("features", "steps")))
    for part in (f"{o}.{a}" for o in orders for a in ("indptr", "indices", "values"))
] + ["00001.missing.indptr.npy", "00001.missing.indices.npy"]


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays_are_refused_by_name(folder, name):
    whole = (folder / name).read_bytes()
    array = np.load(folder / name)

    def refused():
        with pytest.raises(ValueError, match=rf"words/{name}: .*write it again"):
            Shards.open(folder)

    for damaged in (whole[:-1], whole[:40], b"", whole + b"x", b"x" + whole[1:]):
        (folder / name).write_bytes(damaged)
        refused()
    (folder / name).unlink()
    refused()
    for other in (array.astype(np.float32), array.reshape(-1, 1), array.astype(">i8")):
        np.save(folder / name, other)
        refused()
    if "missing.indices" not in name:  # how many cells are missing, only the arrays say
        np.save(folder / name, array[:-1])
        refused()
    (folder / name).write_bytes(whole)
    Shards.open(folder)


def test_pickled_arrays_are_never_loaded(folder):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was run",)

    size = Shards.open(folder).nonzeros[0]
    with (folder / "00000.features.values.npy").open("wb") as file:
        np.lib.format.write_array(file, np.array([Bomb()] * size, dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"00000\.features\.values\.npy: .*holds Python objects"):
        Shards.open(folder)
    (folder / "00000.features.values.npy").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match=r"00000\.features\.values\.npy: it is not an NPY file"):
        Shards.open(folder)


def test_an_array_that_says_it_is_huge_is_refused_before_it_is_mapped(folder):
    whole = (folder / "shards.json").read_text()
    header = json.loads(whole)
    header["nonzeros"][0] = 10**15
    (folder / "shards.json").write_text(json.dumps(header))
    with pytest.raises(ValueError, match=r"shards\.json: nonzeros cannot be right"):
        Shards.open(folder)
    (folder / "shards.json").write_text(whole)
    file = io.BytesIO()
    huge = {"descr": "<i4", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(file, huge)
    (folder / "00001.missing.indices.npy").write_bytes(file.getvalue())
    with pytest.raises(ValueError, match=r"00001\.missing\.indices\.npy: it has \d+ bytes"):
        Shards.open(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "temporalnmf model"}, "not the header of shards"),
        ({"schema": 2}, "reads schema 1. Update temporalnmf"),
        ({"n_times": 8}, "n_times cannot be right"),
        ({"n_features": 10**18}, "n_features cannot be right"),
        ({"bounds": [0, 8]}, "bounds cannot be right"),
        ({"bounds": [0, 8, 8]}, "bounds cannot be right"),
        ({"bounds": [0, 10**30, 8]}, "cannot be understood"),
        ({"bounds": []}, "cannot be understood"),
        ({"bounds": {"a": "../../secret"}}, "cannot be understood"),
        ({"bounds": [0, 2**40, 2**41], "n_features": 2**41}, "instead of \\("),
        ({"nonzeros": [-1, 3]}, "nonzeros cannot be right"),
        ({"nonzeros": []}, "cannot be right"),
        ({"nonzeros": None}, "cannot be understood"),
        ({"has_missing": [False]}, "has_missing cannot be right"),
        ({"exposure": [1.0] * 6}, "exposure cannot be right"),
        ({"exposure": [-1.0] * 7}, "exposure cannot be right"),
        ({"observed": [True]}, "observed cannot be right"),
        ({"timeline": {}}, "cannot be understood"),
        ({"timeline": None}, "cannot be understood"),
    ],
)
def test_a_header_that_cannot_be_right_is_refused(folder, change, said):
    header = json.loads((folder / "shards.json").read_text())
    (folder / "shards.json").write_text(json.dumps({**header, **change}))
    with pytest.raises(ValueError, match=said):
        Shards.open(folder)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "\xff", '{"format": ' + "[" * 100_000, '{"format": 1' + "0" * 9999],
)
def test_a_header_that_is_no_json_is_refused(folder, text):
    (folder / "shards.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"words/shards\.json: "):
        Shards.open(folder)


@pytest.mark.parametrize("text", [b"", b"a\n", b"a\nb\nc\nd\ne\nf\ng\nh\ni\n", b"\xff\n", b"a"])
def test_damaged_names_are_refused(folder, text):
    (folder / "00000.names.txt").write_bytes(text)
    with pytest.raises(ValueError, match=r"words/00000\.names\.txt"):
        Shards.open(folder).names(0)
    (folder / "00000.names.txt").unlink()
    with pytest.raises(ValueError, match=r"00000\.names\.txt: it is not there"):
        Shards.open(folder)


@pytest.mark.parametrize("order", ["features", "steps"])
def test_check_finds_numbers_that_are_damaged(folder, order):
    for part, value, said in (
        ("indices", 99, "points outside"),
        ("indices", -1, "points outside"),
        ("values", np.nan, "not positive"),
        ("values", 0.0, "not positive"),
        ("indptr", 99, "not in order"),
    ):
        path = folder / f"00001.{order}.{part}.npy"
        whole, array = path.read_bytes(), np.load(path)
        array[1] = value
        np.save(path, array)
        shards = Shards.open(folder)
        shards.check(0)
        with pytest.raises(ValueError, match=said):
            shards.check(1)
        path.write_bytes(whole)
    path = folder / f"00001.{order}.indices.npy"
    np.save(path, np.load(path)[::-1])
    with pytest.raises(ValueError, match="columns are not in order"):
        Shards.open(folder).check(1)
    path = folder / f"00001.{order}.indptr.npy"
    np.save(path, np.load(path) + 1)
    with pytest.raises(ValueError, match="rows do not fit"):
        Shards.open(folder).check(1)


def test_a_folder_may_be_moved(folder):
    before = dense(Shards.open(folder))
    moved = shutil.move(folder, folder.with_name("elsewhere"))
    np.testing.assert_array_equal(dense(Shards.open(moved)), before)


# Sorting on disk


def rows(n=600, n_days=40, n_words=50, seed=0):
    """Rows in random order: cells with several rows, rows without a value, days without a row."""
    rng = np.random.default_rng(seed)
    day = rng.integers(n_days, size=n)
    day[:2] = 0, n_days - 1
    day[np.isin(day, (7, 20))] = 8
    dates = pd.Timestamp("2001-01-20") + pd.to_timedelta(day, unit="D")
    words = np.array([f"Wört\n{w}" if w % 3 else f"w{w}, ☃" for w in range(n_words)])
    count = rng.poisson(1.0, size=n).astype(float)
    count[(rng.random(n) < 0.2) | (day == 11)] = np.nan  # day 11 has rows, and no value
    return pd.DataFrame(
        {"date": dates.strftime("%Y-%m-%d"), "word": rng.choice(words, size=n), "count": count}
    )


def added_up(frame):
    """An oracle that goes row by row: values of cells, NaN if none of their rows has one."""
    cells = defaultdict(lambda: np.nan)
    for date, word, count in frame[["date", "word", "count"]].itertuples(index=False):
        cells[date, word] = (
            np.nansum([cells[date, word], count]) if count == count else cells[date, word]
        )
    days = pd.date_range(frame["date"].min(), frame["date"].max()).strftime("%Y-%m-%d").tolist()
    words = sorted({word for (_, word), value in cells.items() if value == value})
    X = np.array([[cells.get((day, word), 0.0) for word in words] for day in days])
    valued = {day for (day, _), value in cells.items() if value == value}
    X[[day not in valued for day in days]] = np.nan
    return days, words, X


def same_as_table(shards, table):
    """The folder holds what `read_table` gives."""
    X = table.X
    if sparse.issparse(X):
        seen = np.ones(len(table.times), dtype=bool) if table.observed is None else table.observed
        X = np.where(seen.reshape(len(table.times), -1), X.toarray(), np.nan)
    np.testing.assert_array_equal(dense(shards), X)
    assert names_of(shards) == table.features.tolist()
    np.testing.assert_array_equal(shards.timeline.labels, table.times)
    assert shards.timeline.labels.dtype == table.times.dtype
    assert shards.timeline.every == table.timeline.every
    np.testing.assert_array_equal(shards.timeline.absent, table.timeline.absent)
    exposure = np.ones(len(table.times)) if table.exposure is None else table.exposure
    np.testing.assert_allclose(shards.exposure, exposure, rtol=1e-14)
    assert set(shards.notes) >= {note for note in table.notes if "missing cells" not in note}


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.fixture
def many_runs(monkeypatch):
    """Small blocks, so that little memory makes many runs and many ranges; they are counted."""
    monkeypatch.setattr(long_files, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(long_files, "BLOCK_ROWS", 70)
    found = []
    ranges = sorting.Runs.ranges

    def counted(self, whole):
        bounds = ranges(self, whole)
        found.append((bounds.shape[0], bounds.shape[1] - 1))
        return bounds

    monkeypatch.setattr(sorting.Runs, "ranges", counted)
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("memory", [1, 1 << 14, 1 << 28])
@pytest.mark.parametrize("name", ["long.csv", "long.parquet", "long.tsv.gz"])
def test_tables_sorted_on_disk_are_those_of_memory(tmp_path, many_runs, memory, name):
    frame = rows()
    path = tmp_path / name
    if name == "long.tsv.gz":
        frame.to_csv(path, index=False, sep="\t")
    else:
        write(frame, path)
    shards = shard_long(path, tmp_path / "out", COLUMNS, memory=memory)
    days, words, X = added_up(frame)
    np.testing.assert_array_equal(dense(shards), X)
    assert time_texts(shards.timeline.labels) == days
    assert names_of(shards) == words
    assert shards.n_shards == 16
    assert np.isnan(X).any(axis=0).sum() > 1  # there is something to get wrong
    assert missing_of(shards).any()
    assert (~shards.observed).sum() == 3
    assert not missing_of(shards)[~shards.observed].any()  # that the step is missing says it
    same_as_table(shards, read_table(path, time="date", feature="word", value="count"))
    n_runs, n_ranges = many_runs[0]
    if memory == 1 << 28:
        assert (n_runs, n_ranges) == (1, 1)
    else:
        assert n_runs >= 4
    assert (n_ranges > 5) == (memory == 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, "out"]
    assert not (tmp_path / "out" / "sorting").exists()


@pytest.mark.quick("csv-0", "parquet-1")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_folder_of_files_is_one_table(tmp_path, many_runs, suffix, seed):
    frame = rows(seed=seed)
    parts = tmp_path / "parts"
    (parts / "sub").mkdir(parents=True)
    (parts / "_SUCCESS").write_text("")
    (parts / ".hidden.csv").write_text("nonsense")
    for k, place in enumerate(["a", "b", "sub/c"]):
        write(frame[k * 200 : (k + 1) * 200], parts / f"{place}.{suffix}")
    if suffix == "parquet":
        (parts / "readme.txt").write_text("about these files\n")
    shards = shard_long(parts, tmp_path / "out", COLUMNS, memory=1)
    whole = read_table(
        write(frame, tmp_path / "all.csv"), time="date", feature="word", value="count"
    )
    same_as_table(shards, whole)
    assert many_runs[0][0] >= 9


@pytest.mark.each_value
@pytest.mark.parametrize("drop_partial", [False, True])
@pytest.mark.parametrize("freq", ["W", "3D"])
def test_periods_and_exposure_are_those_of_read_table(tmp_path, many_runs, freq, drop_partial):
    frame = rows(n=900)
    day = pd.to_datetime(frame["date"])
    frame["size"] = 10.0 + (day - day.min()).dt.days
    # A word that is there in the first days only, and one that never has a value.
    more = pd.DataFrame({"date": frame["date"].min(), "word": ["early", "never"],
                         "count": [3.0, np.nan], "size": 10.0})  # fmt: skip
    frame = pd.concat([frame, more])
    path = write(frame, tmp_path / "long.csv")
    options = {"freq": freq, "drop_partial": drop_partial}
    table = read_table(path, time="date", feature="word", value="count", exposure="size", **options)
    columns = COLUMNS._replace(exposure="size")
    shards = shard_long(path, tmp_path / "out", columns, memory=1, **options)
    same_as_table(shards, table)
    assert ("early" in names_of(shards), "never" in names_of(shards)) == (True, False)
    assert len(shards.timeline.labels) < 15


def test_rows_are_counted_where_no_value_is_named(tmp_path, many_runs):
    frame = rows()
    path = write(frame, tmp_path / "long.parquet")
    shards = shard_long(path, tmp_path / "out", Columns("date", "word"), memory=1)
    expected = frame.groupby(["date", "word"]).size().unstack(fill_value=0)
    X = dense(shards)
    np.testing.assert_array_equal(X[shards.observed], expected.to_numpy())
    assert time_texts(shards.timeline.labels[shards.observed]) == expected.index.tolist()
    assert shards.observed.sum() == 38  # days with rows, with a value or without


@pytest.mark.parametrize("n_odd", [0, 1])
@pytest.mark.parametrize("kind", [int, str])
def test_whole_numbers_are_sorted_by_size(tmp_path, many_runs, kind, n_odd):
    """Unless one name, in the last block, is no number: then all are text."""
    rng = np.random.default_rng(0)
    numbers = rng.choice([1, 2, 10, 9, 100, 23, 10**15, 7 * 10**16, 5], size=400)
    if kind is str:
        numbers = [f"0{n}" if n in (5, 100) else str(n) for n in numbers]
    frame = pd.DataFrame(
        {"date": rng.integers(1990, 2000, size=400), "word": numbers, "count": 1.0}
    )
    if n_odd:
        frame["word"] = frame["word"].astype(str)
        frame = pd.concat([frame, pd.DataFrame({"date": [1995], "word": ["x"], "count": [2.0]})])
    path = write(frame, tmp_path / "long.parquet")
    shards = shard_long(path, tmp_path / "out", COLUMNS, memory=1)
    same_as_table(shards, read_table(path, time="date", feature="word", value="count"))
    names = names_of(shards)
    key = str if n_odd else int
    assert names == sorted(names, key=key)
    assert names != sorted(names, key=(lambda n: n.zfill(20)) if n_odd else str)  # it matters
    assert many_runs[0][0] >= 5


def test_numbers_and_categories_are_labels(tmp_path):
    frame = pd.DataFrame(
        {
            "date": pd.to_datetime(["2001-01-01", "2001-01-02", "2001-01-04"] * 3),
            "word": np.repeat([1.5, 20.25, np.nan], 3),
            "count": np.arange(1, 10, dtype=np.int32),
        }
    )
    frame["kind"] = pd.Categorical([" b ", "a", "", "a", "b", "a", " b ", "b", "a"])
    path = write(frame, tmp_path / "long.parquet")
    for feature in ("word", "kind"):
        columns = Columns("date", feature, "count")
        shards = shard_long(path, tmp_path / feature, columns)
        table = read_table(path, time="date", feature=feature, value="count")
        same_as_table(shards, table)
    assert names_of(Shards.open(tmp_path / "word")) == ["1.5", "20.25"]
    assert names_of(Shards.open(tmp_path / "kind")) == ["a", "b"]


def test_a_feature_in_every_run_is_added_up_on_the_way(tmp_path, many_runs, monkeypatch):
    """More rows than memory takes, all of them of a few cells."""
    together = []
    added = sorting.added_up

    def watched(pieces, *args):
        together.append(sum(len(piece.v) for piece in pieces))
        return added(pieces, *args)

    monkeypatch.setattr(sorting, "added_up", watched)
    monkeypatch.setattr("temporalnmf.shards.runs.added_up", watched)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"date": rng.integers(2000, 2005, size=5000), "word": "the", "count": 0.5})
    frame.loc[:9, "word"] = "a"
    path = write(frame, tmp_path / "long.parquet")
    shards = shard_long(path, tmp_path / "out", COLUMNS, memory=1)
    expected = frame.groupby(["date", "word"])["count"].sum().unstack(fill_value=0.0)
    np.testing.assert_array_equal(dense(shards), expected.to_numpy())
    assert shards.n_shards == 2
    assert many_runs[0][0] > 70
    assert max(together) <= 70  # rows of a block


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["2001,a,-1"], {}),
        (["2001,a,inf"], {}),
        (["2001,a,many"], {}),
        (["2001,a"], {}),
        (["2001,,1"], {}),
        (["2001,a,1", "x,a,1"], {}),
        (["2001,a,1", "2002,a,1"], {}),
        ([], {}),
        (["2001-01-01,a,1", "2001-01-02,a,1", "2001-01-03,a,1"], {"freq": "M"}),
        (["2001-01-01,a,1", "2001-01-02,a,1", "2001-01-03,a,1"], {"freq": "nonsense"}),
    ],
)
def test_errors_are_those_of_read_table(tmp_path, lines, options):
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["date,word,count", *lines]) + "\n")
    with pytest.raises(ValueError) as expected:  # noqa: PT011 – compared below
        read_table(path, time="date", feature="word", value="count", **options)
    with pytest.raises(ValueError) as found:  # noqa: PT011
        shard_long(path, tmp_path / "out", COLUMNS, **options)
    assert str(found.value) == str(expected.value)
    assert [p.name for p in tmp_path.iterdir()] == ["long.csv"]


@pytest.mark.parametrize("name", ["Total", "Gesamt", "all words"])
@pytest.mark.parametrize("memory", [1, 1 << 28])
def test_totals_among_features_are_refused_as_by_read_table(tmp_path, many_runs, memory, name):
    frame = rows().dropna()
    sums = frame.groupby("date", as_index=False)["count"].sum().assign(word=name)
    factor = pd.Series(np.tile([1.0, 1.0004], len(sums)))  # rounded
    for total, refused in ((1.0, True), (factor, name != "all words"), (1.5, False)):
        own = sums.assign(count=sums["count"] * total)
        path = write(pd.concat([frame, own]), tmp_path / "long.parquet")
        options = {"time": "date", "feature": "word", "value": "count"}
        if not refused:
            same_as_table(
                shard_long(path, tmp_path / "out", COLUMNS, memory=memory, overwrite=True),
                read_table(path, **options),
            )
            continue
        with pytest.raises(ValueError, match=f"feature '{name}' is the sum of all") as expected:
            read_table(path, **options)
        with pytest.raises(ValueError, match=f"feature '{name}' is the sum of all") as found:
            shard_long(path, tmp_path / "out", COLUMNS, memory=memory)
        assert str(found.value) == str(expected.value)
        assert [p.name for p in tmp_path.iterdir()] == ["long.parquet"]


def test_errors_name_the_file_of_a_folder_and_the_place(tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    good, bad = rows(50), rows(50)
    bad.loc[17, "count"] = -3.0
    write(good, parts / "a.parquet")
    write(bad, parts / "b.parquet")
    with pytest.raises(ValueError, match=r"^parts/b\.parquet, row 17, column 'count': -3 is negat"):
        shard_long(parts, tmp_path / "out", COLUMNS)
    bad.loc[17, ["date", "count"]] = "tomorrow", 1.0
    write(bad, parts / "b.parquet")
    with pytest.raises(ValueError, match=r"'tomorrow' \(parts/b\.parquet, row 17\) is text"):
        shard_long(parts, tmp_path / "out", COLUMNS)
    bad["date"] = 7
    write(bad, parts / "b.parquet")
    with pytest.raises(ValueError, match=r"parts/b\.parquet has times of type int64"):
        shard_long(parts, tmp_path / "out", COLUMNS)
    assert [p.name for p in tmp_path.iterdir()] == ["parts"]


def test_a_total_that_is_infinite_is_refused(tmp_path):
    frame = pd.DataFrame({"date": [2001, 2002, 2003, 2003], "word": "a", "count": 1e308})
    path = write(frame, tmp_path / "long.parquet")
    with pytest.raises(
        ValueError, match=r"long\.parquet: the values in column 'count' add up to inf"
    ):
        shard_long(path, tmp_path / "out", COLUMNS)


def test_places_that_hold_no_table_are_refused(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        shard_long(tmp_path / "none", tmp_path / "out", COLUMNS)
    with pytest.raises(ValueError, match="folder of shards already"):
        shard_long(folder, tmp_path / "out", COLUMNS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no file of a known suffix"):
        shard_long(tmp_path / "empty", tmp_path / "out", COLUMNS)
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"a\.xlsx has the suffix '\.xlsx'"):
        shard_long(tmp_path / "a.xlsx", tmp_path / "out", COLUMNS)


@pytest.mark.parametrize("stage", ["rows read", "parts sorted", "shards written"])
@pytest.mark.parametrize("before", [False, True])
def test_being_stopped_while_sorting_leaves_nothing(tmp_path, many_runs, stage, before):
    path = write(rows(), tmp_path / "long.parquet")
    if before:
        old = dense(shard_long(path, tmp_path / "out", COLUMNS, n_shards=3))
    seen = []

    def stop(done, wanted, words):
        seen.append(words)
        assert wanted is None or 1 <= done <= wanted
        if words == stage and done > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shard_long(path, tmp_path / "out", COLUMNS, memory=1, overwrite=True, progress=stop)
    assert seen[-1] == stage
    left = ["long.parquet", "out"] if before else ["long.parquet"]
    assert sorted(p.name for p in tmp_path.iterdir()) == left
    if before:
        kept = Shards.open(tmp_path / "out")
        assert kept.n_shards == 3
        np.testing.assert_array_equal(dense(kept), old)


def test_an_existing_folder_is_refused_before_anything_is_read(tmp_path, folder):
    with pytest.raises(FileExistsError, match="exists already"):
        shard_long(Path("not even there"), folder, COLUMNS)


def test_sorting_holds_no_more_names_and_rows_than_memory_takes(tmp_path, many_runs, monkeypatch):
    """While rows are read, names are those of one block, and a run ends when memory does."""
    frame = rows(n=1400, n_words=1200)
    sizes, pieces = [], []
    add = sorting.Runs.add

    def watched(self, piece):
        add(self, piece)
        pieces.append(len(piece.names))
        sizes.append(sum(len(p.v) for p in self.pieces))

    monkeypatch.setattr(sorting.Runs, "add", watched)
    path = write(frame, tmp_path / "long.parquet")
    shards = shard_long(path, tmp_path / "out", COLUMNS, memory=200 * 128)
    assert max(pieces) <= 70
    assert max(sizes) < 200
    assert shards.n_features > 500
