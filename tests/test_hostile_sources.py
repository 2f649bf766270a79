"""Tables, datasets, records and models of strangers that ask for too much, or make no sense."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import refused
from memory import MB, little_memory
from temporalnmf import TemporalNMF, load
from temporalnmf.datasets import fetch_icews, fetch_lastfm, fetching, icews, lastfm
from temporalnmf.experiments import paper_protocol, run
from temporalnmf.experiments.runner import read_records
from temporalnmf.reading import cells, long_files, parquet, read_table
from temporalnmf.runtime import archives
from temporalnmf.solvers import Gibbs

LONG = {"time": "time", "feature": "feature", "value": "value"}


# Parquet: a text that is repeated is stored once.

ROWS, LENGTH = 600, 60_000


def bomb(path, kind, long):
    """36 MB of text in a kilobyte."""
    if kind == "fixed":
        feature = pa.array([b"x" * LENGTH] * ROWS, pa.binary(LENGTH))
    else:
        feature = pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), ["x" * LENGTH])
    how = {"store_schema": kind == "json"}
    if kind == "json":
        feature = pa.ExtensionArray.from_storage(pa.json_(), feature.cast(pa.string()))
    elif kind == "delta":
        feature = feature.cast(pa.string())
        encodings = {"feature": "DELTA_BYTE_ARRAY", "value": "PLAIN"}
        if long:
            encodings["time"] = "PLAIN"
        how |= {"use_dictionary": False, "column_encoding": encodings}
    columns = {"feature": feature, "value": np.ones(ROWS)}
    if long:
        columns["time"] = np.arange(ROWS) % 50 + 1900
    pq.write_table(pa.table(columns), path, compression="zstd", **how)
    assert path.stat().st_size < 10_000
    return path


@pytest.mark.parametrize("kind", ["dictionary", "delta", "json", "fixed"])
def test_labels_that_fill_the_memory_are_refused(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "HARMLESS_TEXT", 8 * MB)
    path = bomb(tmp_path / "a.parquet", kind, long=False)
    refusal = pytest.raises(ValueError, match=r"^a.parquet has more than 8,388,608 bytes of text")
    with little_memory(10 * MB), refusal:
        read_table(path)


@pytest.mark.parametrize("kind", ["dictionary", "delta", "json"])
def test_long_tables_take_no_memory_for_labels_that_are_repeated(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(long_files, "BLOCK_BYTES", MB)
    monkeypatch.setattr(cells, "LONGEST_LABEL", LENGTH + 10)
    path = bomb(tmp_path / "a.parquet", kind, long=True)
    with little_memory(30 * MB if kind == "json" else 20 * MB):
        table = read_table(path, **LONG)
    np.testing.assert_array_equal(table.X, np.full((50, 1), ROWS / 50))
    (name,) = table.features
    assert name.count("x") == LENGTH


def test_long_tables_refuse_names_of_one_width_that_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "HARMLESS_TEXT", 8 * MB)
    path = bomb(tmp_path / "a.parquet", "fixed", long=True)
    refusal = pytest.raises(ValueError, match=r"^a.parquet has more than 8,388,608 bytes of text")
    with little_memory(10 * MB), refusal:
        read_table(path, **LONG)


@pytest.mark.parametrize("how", [{}, LONG], ids=["wide", "long"])
@pytest.mark.parametrize("kind", ["dictionary", "delta", "fixed"])
def test_cells_that_are_too_long_are_refused(kind, how, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "LONGEST_TEXT", 50_000)
    path = bomb(tmp_path / "a.parquet", kind, long=bool(how))
    said = r"^a.parquet: column 'feature' has a cell of 60,000 bytes; .* Shorten it"
    with little_memory(10 * MB), pytest.raises(ValueError, match=said):
        read_table(path, **how)


@pytest.mark.parametrize("how", [{}, LONG], ids=["wide", "long"])
def test_pages_that_unpack_to_more_than_memory_are_refused(how, tmp_path, monkeypatch):
    text = pa.array(["x" * LENGTH] * ROWS)
    table = pa.table({"time": np.arange(ROWS), "feature": text, "value": np.ones(ROWS)})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    monkeypatch.setattr(archives, "memory_left", lambda: 8 * MB)
    said = r"a.parquet cannot be read as Parquet: its content would take 36,\d{3},\d{3} bytes"
    with little_memory(8 * MB), pytest.raises(ValueError, match=said):
        read_table(tmp_path / "a.parquet", **how)


@pytest.mark.parametrize("how", [{}, LONG], ids=["wide", "long"])
@pytest.mark.parametrize(
    ("cell", "kind"), [(["x" * 99] * 99, "list"), ({"a": ["x" * 99] * 99}, "struct")]
)
def test_lists_in_tables_are_refused_before_they_are_read(cell, kind, how, tmp_path):
    numbers = np.arange(2001.0, 2201.0)
    table = pa.table({"time": numbers, "value": [cell] * 200, "feature": numbers})
    pq.write_table(table, tmp_path / "a.parquet")
    said = rf"^a.parquet: column 'value' holds {kind}<.*(Leave it out|Name another column)"
    with little_memory(MB // 2), pytest.raises(ValueError, match=said):
        read_table(tmp_path / "a.parquet", **how)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_is_read_however_it_is_stored(kind, encoding, tmp_path, monkeypatch):
    """In groups of 90 rows, read by 70, with values that most blocks do not have."""
    monkeypatch.setattr(long_files, "BLOCK_ROWS", 70)
    days = pd.date_range("2001", periods=200).strftime("%Y-%m-%d").repeat(2)
    texts = [None if k % 50 == 7 else str(k) for k in range(400)]
    found = {"time": days, "feature": ["a", "é"] * 200, "value": texts}
    columns = {name: pa.array(texts, pa.string()).cast(kind) for name, texts in found.items()}
    how = {"row_group_size": 90, "use_dictionary": encoding is None}
    encodings = {} if encoding is None else dict.fromkeys(columns, encoding)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, column_encoding=encodings or None, **how)
    table = read_table(path, **LONG)
    values = np.arange(400.0)
    values[7::50] = np.nan
    np.testing.assert_array_equal(table.X, values.reshape(200, 2))
    assert table.features.tolist() == ["a", "é"]
    # As labels of a wide table.
    labels = pa.array(days[::2], pa.string()).cast(kind)
    encodings = {"time": encoding, "n": "PLAIN"} if encoding else None
    wide = pa.table({"time": labels, "n": np.arange(200.0)})
    pq.write_table(wide, path, column_encoding=encodings, **how)
    assert np.array_equal(read_table(path).times, table.times)


class Changing:
    """A file in which Arrow finds no places of texts from its third batch on."""

    def __init__(self, file):
        self.file, self.schema_arrow = file, file.schema_arrow

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def iter_batches(self, **how):
        for k, batch in enumerate(self.file.iter_batches(**how)):
            if k == 2:
                raise OSError("Not yet implemented: DecodeArrow of DictAccumulator")
            yield batch


@pytest.mark.parametrize("rows", [70, 150, 10**6])
def test_texts_may_be_stored_in_two_ways(rows, tmp_path, monkeypatch):
    opened, asked = parquet.open_file, []

    def changing(path, places=True):
        file = opened(path, places)
        asked.append(places)
        return Changing(file) if places else file

    frame = pd.DataFrame({"time": range(400), "feature": ["a", "b"] * 200, "value": 1.0})
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=110)
    expected = read_table(tmp_path / "a.parquet", **LONG)
    monkeypatch.setattr(long_files, "BLOCK_ROWS", rows)
    monkeypatch.setattr(parquet, "open_file", changing)
    table = read_table(tmp_path / "a.parquet", **LONG)
    assert asked == [True, True, False]  # the schema, then the rows
    np.testing.assert_array_equal(table.X, expected.X)
    assert table.notes == expected.notes


def test_metadata_that_would_end_the_process_are_refused(tmp_path):
    """A column that may not be missing, with statistics of one that may, as fuzzing found."""
    path = tmp_path / "a.parquet"
    table = pa.table({"time": range(9), "feature": ["a"] * 9, "value": [1.0] * 9})
    pq.write_table(table, path, store_schema=False)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    outcomes = set()
    for at in range(start, start + 80):  # what the columns are
        damaged = bytearray(data)
        damaged[at] ^= 2
        path.write_bytes(damaged)
        for how in ({}, LONG):
            try:
                outcomes.add(read_table(path, **how).X.shape)
            except ValueError as error:
                outcomes.add("refused")
                assert "a.parquet" in str(error)  # noqa: PT017
    assert {"refused", (9, 1)} <= outcomes


@pytest.mark.parametrize("n", [3, 150, 399])
def test_a_wrong_number_is_refused_with_its_row(n, tmp_path, monkeypatch):
    """All blocks of a group of rows have the same distinct texts."""
    monkeypatch.setattr(long_files, "BLOCK_ROWS", 70)
    frame = pd.DataFrame({"time": range(400), "feature": "a", "value": "1"})
    frame.loc[n, "value"] = "many"
    frame.to_parquet(tmp_path / "a.parquet")
    said = rf"a.parquet, row {n}, column 'value': 'many' is not a number"
    with pytest.raises(ValueError, match=said):
        read_table(tmp_path / "a.parquet", **LONG)


def test_bytes_in_the_place_of_numbers_are_read_or_refused(tmp_path):
    columns = {"time": range(2001, 2006), "feature": list("ababa")}
    for value in (b"1", b"\xff"):
        table = pa.table({**columns, "value": [value] * 5})
        pq.write_table(table, tmp_path / "a.parquet")
        if value == b"1":
            assert read_table(tmp_path / "a.parquet", **LONG).X.sum() == 5.0
            continue
        with pytest.raises(ValueError, match=r"^a.parquet: column 'value' holds bytes, not numb"):
            read_table(tmp_path / "a.parquet", **LONG)


def test_times_that_are_all_the_same_category_are_refused(tmp_path):
    frame = pd.DataFrame({"when": pd.Categorical(["x", "x", "x"]), "a": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"^a.parquet has the time 'x' twice"):
        read_table(tmp_path / "a.parquet")


def test_intervals_of_pandas_are_labels(tmp_path):
    index = pd.interval_range(0, 4, name="time")
    pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]}, index=index).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").times[0] == "(0, 1]"


# Sources of datasets


def tar_of(path, content, pax=None):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"lastfm/{lastfm.TABLE}")
        member.size, member.pax_headers = len(content), pax or {}
        archive.addfile(member, io.BytesIO(content))
    return path


def zip_of(path, content, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("events.2003.tab", content)
    return path


LINE = b"u\t2005-02-14T10:00:00Z\tid\tname\t\tsong\n"
HEAD = b"Event Date\tSource Country\tTarget Country\n"


@pytest.mark.parametrize("head", [b"", LINE, HEAD])
@pytest.mark.parametrize("fetch", [fetch_lastfm, fetch_icews])
def test_lines_that_are_too_long_are_refused(fetch, head, tmp_path):
    content = head + b"a" * 24 * MB
    make, name = (tar_of, "a.tar.gz") if fetch is fetch_lastfm else (zip_of, "events.2003.zip")
    path = make(tmp_path / name, content)
    said = rf"{name} could not be read: line {1 + bool(head)} is longer than 1,048,576 bytes\. It "
    if fetch is fetch_icews and head == LINE:
        said = "its header has no column 'Event Date'"
    with little_memory(8 * MB), pytest.raises(ValueError, match=said):
        fetch(data=path)
    path = path.with_name("events.2003.tab")  # as they are
    path.write_bytes(content)
    with little_memory(8 * MB), pytest.raises(ValueError, match=said.replace(name, path.name)):
        fetch(data=path)


@pytest.mark.long
def test_sources_that_unpack_out_of_proportion_are_refused(tmp_path, monkeypatch):
    for module in (cells, icews):
        monkeypatch.setattr(module, "HARMLESS", 2 * MB, raising=False)
        monkeypatch.setattr(module, "MOST_GROWTH", 20, raising=False)
    archive = zip_of(tmp_path / "events.2003.zip", HEAD + b"2003-01-01\tPeru\tChile\n" * MB)
    said = r"events.2003.zip could not be read: its table unpacks to more than 2,097,152 bytes"
    with little_memory(), pytest.raises(ValueError, match=said):
        fetch_icews(data=archive)
    path = tar_of(tmp_path / "a.tar.gz", LINE * MB)
    said = r"could not be read: a.tar.gz unpacks to more than 2,\d{3},\d{3} bytes"
    with little_memory(), pytest.raises(ValueError, match=said):
        fetch_lastfm(data=path)


def test_headers_of_archives_that_are_huge_are_refused(tmp_path):
    path = tar_of(tmp_path / "a.tar.gz", LINE, {"comment": "x" * 24 * MB})
    said = r"a.tar.gz could not be read: it has a header of 25,\d{3},\d{3} bytes"
    with little_memory(), pytest.raises(ValueError, match=said):
        fetch_lastfm(data=path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_sources_in_other_packings_are_refused(packing, tmp_path):
    path = zip_of(tmp_path / "events.2003.zip", HEAD, packing)
    with pytest.raises(
        ValueError, match=r"zip could not be read: its table is compressed by an unknown"
    ):
        fetch_icews(data=path)


def test_names_that_would_widen_all_others_are_left_out_as_malformed():
    """NumPy gives all labels the room of the longest."""
    name = "x" * 5000
    days = ["2003-01-01\tPeru\tChile\n", f"2003-01-01\tPeru\t{name}\n"]
    pairs = icews.pairs_by_day([HEAD.decode(), *days])
    assert pairs.features.tolist() == ["Chile--Peru"]
    lines = [LINE.decode(), *(LINE.decode().replace(old, name) for old in ("id", "name"))]
    artists = lastfm.listeners_by_month(lines, minimum=1)
    assert artists.features.tolist() == ["name"]
    assert "1 malformed lines" in pairs.remarks
    assert "2 malformed lines" in artists.remarks


def test_a_table_of_plays_may_be_packed_by_itself(tmp_path):
    path = tmp_path / "plays.tsv.gz"
    path.write_bytes(gzip.compress(LINE * 3))
    with pytest.raises(ValueError, match=r"no artist in it has 20 listeners\. It may be damaged"):
        fetch_lastfm(data=path)
    with lastfm.open_table(path) as lines:
        assert list(lines) == [LINE.decode()] * 3


@pytest.mark.parametrize(
    "error", [TypeError("x"), RuntimeError(""), lzma.LZMAError("x"), OSError("x")]
)
def test_any_error_from_a_damaged_source_names_the_file(error, tmp_path):
    said = rf"a.npz could not be read: {str(error) or 'RuntimeError'}\. It may be damaged"
    with pytest.raises(ValueError, match=said), fetching.reading(tmp_path / "a.npz"):
        raise error


@pytest.mark.parametrize("error", [PermissionError("x"), MemoryError("x")])
def test_errors_that_are_no_damage_stay_what_they_are(error, tmp_path):
    with pytest.raises(type(error), match=r"^x$"), fetching.reading(tmp_path / "a.npz"):
        raise error


@pytest.mark.parametrize(
    "changed",
    [
        {"features": np.array("x")}, {"times": np.array(3)}, {"counts": np.array(3.0)},
        {"features": np.array([["a"], ["b"]])},
    ],
    ids=["no features", "no times", "no counts", "columns"],
)  # fmt: skip
def test_a_cache_of_odd_arrays_is_refused(changed, tmp_path):
    whole = {"counts": np.ones((2, 3)), "features": np.array(["a", "b"]), "times": np.arange(3)}
    path = tmp_path / "lastfm.npz"
    np.savez(path, **{**whole, **changed}, remarks="", source="")
    with pytest.raises(ValueError, match=r"lastfm.npz could not be read: it holds .* counts, "):
        fetch_lastfm(data=path)


def test_an_encrypted_source_is_refused(tmp_path):
    path = zip_of(tmp_path / "events.2003.zip", HEAD)
    data = bytearray(path.read_bytes())
    for sign, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(sign) + place] |= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"zip could not be read: .*password.* It may be damaged"):
        fetch_icews(data=path)


# Experiments


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """A folder, and what goes on with it."""
    X = np.random.default_rng(0).poisson(9.0, (20, 3)).astype(float)
    protocol = paper_protocol(1, n_splits=1, n_inits=1, max_iter=3).only(["last_value", "rate"])
    folder = tmp_path_factory.mktemp("experiment") / "out"
    run(protocol, X, folder)
    return folder, lambda: run(protocol, X, folder)


@contextmanager
def changed(path, content):
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
        assert path.read_bytes() == content
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "{} is not a record: it has no split"),
        ({"split": [0]}, "a record has split [0]"),
        ({"split": True}, "a record has split True"),
        ({"point": 10**30}, "a record has point 1000"),
        ({"model": None}, "a record has model None"),
        ({"params": [1]}, "a record has params [1]"),
        ({"params": {"alpha": None}}, "a record has the parameter 'alpha' None"),
        ({"kle_s": "x"}, "a record has kle_s 'x'"),
        ({"kle_f_seen": {}}, "a record has kle_f_seen {}"),
        ({"kle_f": 10**400}, "a record has kle_f 1000"),
        ({"stop_reason": "\ud800"}, "a record has stop_reason '\\ud800'"),
    ],
    ids=lambda value: f"{value}"[:30],
)
def test_records_with_invalid_fields_are_refused_as_damage(experiment, change, said):
    folder, go_on = experiment
    log = folder / "fits.jsonl"
    first, *others = log.read_bytes().splitlines()
    wrong = {} if change is None else json.loads(first) | change
    lines = [json.dumps(wrong).encode(), *others]
    with changed(log, b"\n".join(lines) + b"\n"):
        for read in (go_on, lambda: read_records(log)):
            with pytest.raises(ValueError, match="is damaged") as refusal:
                read()
            message = f"{log} is damaged: {said}"
            assert str(refusal.value).startswith(message), str(refusal.value)


def test_records_of_earlier_versions_are_read(experiment):
    folder, go_on = experiment
    log = folder / "fits.jsonl"
    records = [json.loads(line) for line in log.read_bytes().splitlines()]
    older = [{k: v for k, v in r.items() if not k.endswith("_seen")} for r in records]
    with changed(log, "".join(f"{json.dumps(r)}\n" for r in older).encode()):
        assert go_on() == older


@pytest.mark.parametrize("content", [b"[]", b"null", b'"x"'])
def test_an_invalid_config_is_refused_as_damage(experiment, content):
    folder, go_on = experiment
    said = r"config.json is damaged: .* is not a config\. Choose another folder"
    with changed(folder / "config.json", content), pytest.raises(ValueError, match=said):
        go_on()


def test_a_config_of_odd_grids_is_another_experiment(experiment):
    folder, go_on = experiment
    config = json.loads((folder / "config.json").read_bytes())
    for grids in ({"rate": 5}, "x" * 10**6):
        content = json.dumps(config | {"grids": grids}).encode()
        said = pytest.raises(ValueError, match="another experiment: grids was")
        with changed(folder / "config.json", content), said as refusal:
            go_on()
        assert len(str(refusal.value)) < 2000


@pytest.mark.parametrize("name", [".lock", "fits.jsonl", "config.json", "table.csv"])
def test_links_out_of_a_folder_are_not_written_to(experiment, name, tmp_path):
    folder, go_on = experiment
    other = tmp_path / "other.txt"
    other.write_text("precious")
    path, aside = folder / name, tmp_path / "aside"
    there = path.exists()
    if there:
        path.rename(aside)
    path.symlink_to(other)
    try:
        with pytest.raises(ValueError, match="is a link to a place outside of the folder") as found:
            go_on()
        assert str(path) in str(found.value)
    finally:
        path.unlink()
        if there:
            aside.rename(path)
    assert other.read_text() == "precious"
    assert go_on()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on this system")
def test_a_lock_that_is_a_link_inside_is_refused(experiment):
    folder, go_on = experiment
    before = (folder / "fits.jsonl").read_bytes()
    (folder / ".lock").unlink()
    for target in ("fits.jsonl", ".lock"):
        (folder / ".lock").symlink_to(target)
        with pytest.raises(
            ValueError, match=r"\.lock is a link, which is not followed\. Remove it"
        ):
            go_on()
        (folder / ".lock").unlink()
    assert (folder / "fits.jsonl").read_bytes() == before


def test_links_inside_of_a_folder_may_stay(tmp_path):
    """Also if the folder itself is a link, and if they lead nowhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").touch()
    (tmp_path / "real" / "b").symlink_to("a")
    (tmp_path / "real" / "c").symlink_to(tmp_path / "real" / "nothing")
    (tmp_path / "link").symlink_to("real")
    for folder in (tmp_path / "real", tmp_path / "link", tmp_path / "none"):
        archives.refuse_links_out(folder)
    (tmp_path / "real" / "d").symlink_to("..")
    with pytest.raises(ValueError, match=r"link/d is a link to a place outside"):
        archives.refuse_links_out(tmp_path / "link")


# Models and checkpoints

X = np.random.default_rng(1).poisson(9.0, (15, 3)).astype(float)
X[[0, 4, 14]] = np.nan
unsettled = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def put(path, **new):
    """A model file with other arrays."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    for name, array in new.items():
        stream = io.BytesIO()
        np.save(stream, array)
        members[f"{name}.npy"] = stream.getvalue()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


GIBBS = {"solver": Gibbs(4, n_tune=2, n_chains=1)}
WAYS = {
    "rate": ({}, range(1, 14)),
    "mode": ({"point": "mode"}, range(1, 15)),
    "none": ({"chain": "none"}, [n for n in range(15) if n not in (0, 4, 14)]),
    "draws": (GIBBS, range(14)),
}


@unsettled
@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_fitted_steps_that_contradict_the_observed_ones_are_refused(way, data, tmp_path):
    params, steps = WAYS[way]
    model = TemporalNMF(1, max_iter=5, random_state=0, **params)
    path = model.fit(X).save(tmp_path / "m.npz", data=data)
    with zipfile.ZipFile(path) as file:
        kept = np.load(io.BytesIO(file.read("fitted_steps.npy")))
    assert kept.tolist() == list(steps)
    before = path.read_bytes()
    load(path).forecast(2)
    seen, disagree = model.observed_, "fitted_steps does not agree with observed_"
    moved = kept + 1 if kept[-1] < 14 else kept - 1
    for wrong, reason in (
        ({"observed_": seen & False}, "observed_ says that nothing was observed"),
        ({"observed_": ~seen}, disagree),
        ({"fitted_steps": moved}, disagree),
    ):
        path.write_bytes(before)
        with pytest.raises(ValueError, match=rf"m.npz cannot be read as a model.*{reason}"):
            load(put(path, **wrong))


@unsettled
def test_weights_that_contradict_the_observed_steps_are_refused(tmp_path):
    model = TemporalNMF(1, max_iter=5, random_state=0).fit(X)
    path = model.save(tmp_path / "m.npz")
    weights = (model.observed_[:, None] & np.ones(3, dtype=bool)).astype(float)
    load(put(path, weights=weights))
    weights[3] = 0.0
    with pytest.raises(ValueError, match=r"observed_ does not agree with the weights of its data"):
        load(put(path, weights=weights))


@unsettled
def test_a_point_that_was_set_after_the_fit_is_no_damage(tmp_path):
    model = TemporalNMF(1, max_iter=5, random_state=0).fit(X).set_params(point="mode")
    again = load(model.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(again._kept, np.arange(1, 14))


def test_a_damaged_checkpoint_is_refused_by_the_command(tmp_path):
    table, path = tmp_path / "a.csv", tmp_path / "state.npz"
    table.write_text("year,a,b\n" + "".join(f"{1990 + k},{k},{k % 3}\n" for k in range(12)))
    np.savez(path, identity=np.array("{}"), x=np.zeros(100))
    data = path.read_bytes()
    for damaged in (data.replace(b"PK\1\2", b"XXXX", 1), data.replace(b"identity", b"somebody")):
        path.write_bytes(damaged)
        said = refused(
            "fit", table, "--components", 1, "--out", tmp_path / "m.npz", "--checkpoint", path
        )
        assert f"--checkpoint {path} is not a checkpoint of a fit, or is damaged" in said
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("place", ["time", "name", "feature"])
def test_labels_that_are_too_long_are_refused(place, tmp_path):
    """NumPy would give each of them the length of the longest, and errors would repeat it."""
    label = "x" * 1001
    text = {
        "time": "time,a\n" + "".join(f"{n},1\n" for n in range(9)) + f"{label},1\n",
        "name": f"time,{label}\n" + "".join(f"{n},1\n" for n in range(9)),
        "feature": "time,feature,value\n" + "".join(f"{n},{label},1\n" for n in range(9)),
    }[place]
    path, said = tmp_path / "a.csv", r"^a\.csv.* has a label of 1,001 characters.* Shorten it"
    path.write_text(text)
    how = LONG if place == "feature" else {}
    with pytest.raises(ValueError, match=said):
        read_table(path, **how)
    path.write_text(text.replace(label, label[1:]))
    if place != "time":  # there it is read, and is no time
        assert read_table(path, **how).features.tolist() == [label[1:]]


def test_exposures_that_add_up_to_infinity_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(f"2001-{1 + n // 2:02d}-{1 + n % 2:02d},a,1,1e308\n" for n in range(12))
    path.write_text(f"time,feature,value,size\n{rows}")
    with pytest.raises(ValueError, match=r"^a\.csv: its exposures add up to infinity"):
        read_table(path, exposure="size", freq="M", **LONG)
