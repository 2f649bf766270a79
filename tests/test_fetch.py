"""Data sets of the paper: sources, places, checks, stand-ins."""

import functools
import io
import subprocess
import sys
import tarfile
import threading
import types
import zipfile
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy import sparse

from temporalnmf.datasets import (
    fetch_icews,
    fetch_lastfm,
    fetch_nips,
    fetching,
    icews,
    lastfm,
    nips,
)

FETCHERS = {"nips": fetch_nips, "lastfm": fetch_lastfm, "icews": fetch_icews}
DATASETS = {"nips": nips.NIPS, "lastfm": lastfm.LASTFM, "icews": icews.ICEWS}
STAND_IN = "icews_2001_2003_pairs_3day.npz"

NIPS_CSV = '"","X1987_1","1988_1","1987_2"\n"neuron",3,5,1\n"a, ""b""",0,7,2\n"NA",1,1,1\n'
SMALL = replace(nips.NIPS, shape=(3, 2), total=21, times=[1987, 1988])


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no folder of data, and no network."""

    def unexpected(url, path):
        pytest.fail(f"{url} was downloaded")

    monkeypatch.setattr(fetching, "download", unexpected)
    monkeypatch.delenv("TEMPORALNMF_DATA", raising=False)
    monkeypatch.setenv("TEMPORALNMF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("TEMPORALNMF_DATA", str(path))
    return path


@pytest.fixture
def small(monkeypatch):
    """NIPS with three words and two years."""
    monkeypatch.setattr(nips, "NIPS", SMALL)


@pytest.fixture
def offline(monkeypatch):
    def fail(url, path):
        raise OSError("no route to host")

    monkeypatch.setattr(fetching, "download", fail)


def paper_like(dataset):
    """A matrix with the paper's shape and total."""
    values = np.random.default_rng(0).poisson(1.0, dataset.shape)
    values[0, 0] += (dataset.total or values.sum()) - values.sum()
    return values


def three_by_two(total=21):
    return np.array([[1, 2], [3, 4], [5, total - 15]])


def play(user, moment="2005-02-14T10:00:00Z", identifier="id-1", name="Nina Simone"):
    return f"{user}\t{moment}\t{identifier}\t{name}\t\tSong\n"


def archive_of(path, text, name="lastfm-dataset-1K/" + lastfm.TABLE):
    with tarfile.open(path, "w:gz") as archive:
        for member, content in (("lastfm-dataset-1K/README.txt", "x"), (name, text)):
            entry = tarfile.TarInfo(member)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return path


# Preparing NIPS


def test_papers_are_summed_by_year(tmp_path):
    path = tmp_path / "papers.csv"
    path.write_text(NIPS_CSV, encoding="utf-8")
    counts, words, years, *_ = nips.prepare_nips(path)
    assert counts.tolist() == [[4, 5], [2, 7], [2, 1]]
    assert words.tolist() == ["neuron", 'a, "b"', "NA"]
    assert years.tolist() == [1987, 1988]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NIPS_CSV + '"cut",1', "line 5 has 2 cells, the header 4"),
        (NIPS_CSV.replace("X1987_1", "paper 1"), "'paper 1' is not named like a paper"),
        (NIPS_CSV.replace("5", "5.5"), "'5.5'"),
        (NIPS_CSV.replace("5", "-5"), "negative"),
        ("", "0 names"),
    ],
)
def test_a_table_of_papers_that_is_wrong_is_refused(tmp_path, text, message):
    path = tmp_path / "papers.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as raised:
        fetch_nips(data=path)
    assert str(path) in str(raised.value)


# Preparing last.fm


def test_a_listener_counts_once_per_artist_and_month():
    lines = [
        play("ann"),
        play("ann", "2005-02-28T23:59:59Z"),
        play("ann", "2005-03-01T00:00:00Z"),
        play("bob", "2009-06-30T23:59:59Z"),
    ]
    counts, artists, months, *_ = lastfm.listeners_by_month(lines, minimum=2)
    assert artists.tolist() == ["Nina Simone"]
    assert (months[0], months[10], months[11], months[-1]) == (
        "2005-02", "2005-12", "2006-01", "2009-06",
    )  # fmt: skip
    assert counts.shape == (1, 53)
    assert counts[0, [0, 1, -1]].tolist() == [1, 1, 1]
    assert counts.sum() == 3


@pytest.mark.parametrize(("listeners", "kept"), [(19, False), (20, True)])
def test_artists_need_twenty_different_listeners(listeners, kept):
    lines = [play(f"user_{number}", identifier="a", name="A") for number in range(25)]
    for number in range(listeners):
        lines += 2 * [play(f"user_{number}", "2006-01-01T00:00:00Z", "b", "B")]
    lines += [play("user_0", f"2007-0{month}-01T00:00:00Z", "b", "B") for month in range(1, 10)]
    assert ("B" in lastfm.listeners_by_month(lines).features) is kept


def test_listeners_outside_the_months_do_not_count():
    lines = [play("ann"), play("bob"), play("cid", "2005-01-31T23:59:59Z")]
    lines += [play("dan", "2009-07-01T00:00:00Z"), play("eve", "2013-09-29T18:32:04Z")]
    counts = lastfm.listeners_by_month(lines, minimum=2)
    assert counts.values.sum() == 2
    assert counts.remarks == "Left out of the source: 3 plays outside 2005-02 to 2009-06."
    with pytest.raises(ValueError, match=r"no artist in it has 3 listeners. Left out"):
        lastfm.listeners_by_month(lines, minimum=3)


def test_artists_without_identifier_go_by_their_name():
    lines = [
        play(user, identifier=identifier, name=name)
        for user in ("ann", "bob")
        for identifier, name in [
            ("", 'The "Quotes'),
            ("id-1", "Nirvana"),
            ("id-2", "Nirvana"),
            ("", "Nirvana"),
            ("id-3", ""),
            ("id-4", "Solo"),
        ]
    ]
    lines += [play("cid", identifier="id-1", name="NIRVANA")]
    lines += [play("cid", identifier="too rare", name="Solo")]
    counts, artists, *_ = lastfm.listeners_by_month(lines, minimum=2)
    assert dict(zip(artists.tolist(), counts[:, 0].tolist(), strict=True)) == {
        "Nirvana": 2,
        "Nirvana (id-1)": 3,
        "Nirvana (id-2)": 2,
        "Solo": 2,
        'The "Quotes': 2,
        "id-3": 2,
    }
    assert artists.tolist() == sorted(artists)


def test_lines_that_cannot_be_used_are_counted():
    good = [play("ann"), play("bob")]
    malformed = ["\n", "ann\t2005-02-14T10:00:00Z\n", play("ann", "yesterday"), play("a\tb")]
    nobody = [play(""), play("ann", identifier="", name="")]
    counts = lastfm.listeners_by_month([*good, *malformed, *nobody], minimum=2)
    assert counts.values.sum() == 2
    assert counts.remarks == (
        "Left out of the source: 2 lines without user or artist, 4 malformed lines."
    )


@pytest.mark.parametrize("packed", [True, False])
def test_only_a_line_feed_ends_a_line(tmp_path, packed):
    name = "one\u2028two\x85three\rfour"
    text = play("ann", name=name) + play("bob", name=name)
    path = tmp_path / "plays.tsv"
    path.write_bytes(text.encode() + b"cid\t2005-02-14T10:00:00Z\tid-1\t\xff\t\tSong\n")
    if packed:
        path = archive_of(tmp_path / "plays.tar.gz", path.read_bytes().decode("utf-8", "replace"))
    with lastfm.open_table(path) as lines:
        counts = lastfm.listeners_by_month(lines, minimum=3)
    assert counts.features.tolist() == [name]
    assert counts.remarks == ""


@pytest.mark.parametrize("batch", [1, 7, 1 << 21])
def test_counts_of_listeners_agree_with_those_by_sets(monkeypatch, batch):
    monkeypatch.setattr(lastfm, "BATCH", batch)
    rng = np.random.default_rng(4)
    triples = [(rng.integers(6), rng.integers(1, 10), rng.integers(8)) for _ in range(70)]
    lines = [
        play(f"user_{user}", f"2008-0{month}-05T00:00:00Z", f"id-{artist}", f"artist {artist}")
        for user, month, artist in triples
    ]
    counts, artists, months, *_ = lastfm.listeners_by_month(lines, minimum=5)

    people = {
        artist: {user for user, _, other in triples if other == artist} for artist in range(8)
    }
    kept = [artist for artist in range(8) if len(people[artist]) >= 5]
    assert 1 < len(kept) < 8
    assert lines[0].split("\t")[3] == f"artist {kept[-1]}"  # so artists are put in order
    assert artists.tolist() == [f"artist {artist}" for artist in kept]
    for row, artist in enumerate(kept):
        for column, month in enumerate(months):
            users = {u for u, m, a in triples if a == artist and f"2008-0{m}" == month}
            assert counts[row, column] == len(users)


def test_an_archive_without_the_table_or_cut_short_is_refused(tmp_path):
    other = archive_of(tmp_path / "other.tar.gz", "x", name="other.tsv")
    with pytest.raises(ValueError, match="there is no userid-timestamp"):
        fetch_lastfm(data=other)
    noise = np.random.default_rng(0).integers(0, 10**9, 20_000).tolist()
    whole = archive_of(tmp_path / "whole.tar.gz", "\n".join(map(str, noise)))
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:-20_000])
    with pytest.raises(ValueError, match=r"could not be read.*cut short"):
        fetch_lastfm(data=cut)


# Preparing ICEWS

EVENTS = """\
Event ID\tEvent Date\tSource Country\tEvent Text\tTarget Country
1\t2003-01-01\tPeru\tPraise\tChile
2\t2003-01-01\tChile\t"Halt\tPeru
3\t2003-12-31\tChile\tPraise\tPeru
4\t2003-01-02\tIraq\tPraise\tChile
5\t2003-01-02\tPeru\tPraise\tPeru
6\t2003-01-02\t\tPraise\tPeru
7\t2002-12-31\tChile\tPraise\tPeru
8\t2003-01-02\tChile
"""


def check_events(counts):
    assert counts.features.tolist() == ["Chile--Peru", "Chile--Iraq"]
    assert (counts.times[0], counts.times[1], counts.times[-1]) == (
        "2003-01-01", "2003-01-02", "2003-12-31",
    )  # fmt: skip
    assert counts.values.shape == (2, 365)
    assert counts.values[:, [0, 1, -1]].tolist() == [[2, 0, 1], [0, 1, 0]]
    assert counts.values.sum() == 4
    assert counts.remarks == (
        "Left out of the source: 1 events inside one country, 1 events not dated in 2003, "
        "1 events without two countries, 1 malformed lines."
    )


def test_directions_of_a_pair_are_summed(tmp_path):
    path = tmp_path / "events.2003.tab"
    path.write_text(EVENTS, encoding="utf-8")
    check_events(icews.prepare_icews(path))


def test_quoted_cells_and_carriage_returns_of_a_table_of_events_are_read(tmp_path):
    rows = (line.split("\t") for line in EVENTS.splitlines())
    quoted = "".join("\t".join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)
    path = tmp_path / "events.2003.tab"
    path.write_bytes(quoted.encode())
    check_events(icews.prepare_icews(path))


def test_a_zipped_table_of_events_is_read(tmp_path):
    path = tmp_path / "events.2003.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no events")
    with pytest.raises(ValueError, match="no table of events"):
        fetch_icews(data=path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("events.2003.tab", EVENTS)
    check_events(icews.prepare_icews(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EVENTS.replace("Target Country", "Target"), "no column 'Target Country'"),
        (EVENTS.replace("2003", "2004"), "no event between two countries in 2003. Left out.* 7 "),
    ],
)
def test_a_table_without_events_is_refused(tmp_path, text, message):
    path = tmp_path / "events.2003.tab"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        fetch_icews(data=path)


def pgds_file(path, labels):
    days = np.arange("2003-01-01", "2003-01-04", dtype="datetime64[D]").astype("datetime64[ns]")
    counts = np.array([[3, 0], [2, 1], [1, 0]], dtype=np.uint16)  # days × pairs
    np.savez(path, Y_TV=counts, dates_T=days, labels_V=labels)
    return path


def test_the_file_of_pgds_is_read(tmp_path):
    path = pgds_file(tmp_path / "data.npz", np.array(["Chile--Peru", "Chile--Iraq"]))
    counts, pairs, days, remarks, *_ = icews.prepare_icews(path)
    assert counts.tolist() == [[3, 2, 1], [0, 1, 0]]
    assert pairs.tolist() == ["Chile--Peru", "Chile--Iraq"]
    assert days.tolist() == ["2003-01-01", "2003-01-02", "2003-01-03"]
    assert remarks == ""


def test_objects_in_the_file_of_pgds_are_not_loaded(tmp_path):
    path = pgds_file(tmp_path / "data.npz", np.array([Trap(), Trap()], dtype=object))
    counts = icews.prepare_icews(path)
    assert counts.features.tolist() == ["pair_0", "pair_1"]
    assert "numbered" in counts.remarks


class Trap:
    """An object that tells when it is loaded."""

    def __reduce__(self):
        return pytest.fail, ("code was run",)


# Where datasets are looked for


@pytest.mark.parametrize("name", FETCHERS)
def test_a_matrix_in_the_folder_of_data_is_used(folder, name, recwarn):
    dataset = DATASETS[name]
    values = paper_like(dataset)
    np.save(folder / f"{name}.npy", values)
    found = FETCHERS[name]()
    assert not recwarn.list
    np.testing.assert_array_equal(found.data, values.T)
    assert found.data.dtype == np.float64
    assert found.data.flags.c_contiguous
    assert found.times.tolist() == list(dataset.times)
    assert found.feature_names[[0, -1]].tolist() == [
        f"{dataset.feature}_0", f"{dataset.feature}_{len(values) - 1}",
    ]  # fmt: skip
    assert found.frame is None
    assert found.source == str(folder / f"{name}.npy")
    assert found.name == name
    assert not found.labels_inferred
    for fact in ("Source: ", "Licence: ", "no checksum known", "numbered", found.source):
        assert fact in found.DESCR


def test_shapes_and_totals_of_the_papers_matrices_are_known():
    known = {name: (dataset.shape, dataset.total) for name, dataset in DATASETS.items()}
    assert known == {
        "nips": ((11463, 29), 11_040_357),
        "lastfm": ((7017, 53), 2_067_454),
        "icews": ((6197, 365), None),
    }
    for dataset in DATASETS.values():
        assert len(dataset.times) == dataset.shape[1]
    assert "Checked by shape and total" in known_check("nips")
    assert "Checked by shape, no" in known_check("icews")


def known_check(name):
    dataset = DATASETS[name]
    values = paper_like(dataset)
    counts = fetching.Counts(values, np.zeros(len(values), dtype=str), np.array(dataset.times))
    return fetching.assemble(dataset, counts, as_frame=False).DESCR


@pytest.mark.usefixtures("small")
def test_places_are_searched_in_order(tmp_path, folder, cache, monkeypatch):
    given, file = tmp_path / "given", tmp_path / "anything.npy"
    given.mkdir()
    cache.mkdir()
    calls = []

    def download(url, path):
        calls.append(url)
        path.write_text(NIPS_CSV, encoding="utf-8")

    monkeypatch.setattr(fetching, "download", download)
    np.save(file, three_by_two())
    for place in (given, folder, cache):
        np.save(place / "nips.npy", three_by_two())

    assert fetch_nips(data=file).source == str(file)
    for place in (given, folder, cache):
        assert fetch_nips(data=str(given)).source == str(place / "nips.npy")
        (place / "nips.npy").unlink()
    assert not calls
    assert fetch_nips(data=given).source == SMALL.url
    assert calls == [SMALL.url]


@pytest.mark.usefixtures("small")
def test_a_source_in_the_given_folder_goes_before_all_else_and_is_not_kept(tmp_path, folder, cache):
    np.save(folder / "nips.npy", three_by_two())
    given = tmp_path / "given"
    given.mkdir()
    (given / "NIPS_1987-2015.csv").write_text(NIPS_CSV, encoding="utf-8")
    found = fetch_nips(data=given)
    assert found.source == str(given / "NIPS_1987-2015.csv")
    assert found.data.tolist() == [[4, 2, 2], [5, 7, 1]]
    assert not cache.exists()


@pytest.mark.usefixtures("small")
def test_a_prepared_source_is_kept(folder, cache):
    source = folder / "NIPS_1987-2015.csv"
    source.write_text(NIPS_CSV, encoding="utf-8")
    prepared = fetch_nips()
    assert [path.name for path in cache.iterdir()] == ["nips.npz"]
    source.write_text("not looked at again", encoding="utf-8")
    again = fetch_nips()
    np.testing.assert_array_equal(again.data, prepared.data)
    assert again.feature_names.tolist() == ["neuron", 'a, "b"', "NA"]
    assert again.times.tolist() == [1987, 1988]
    assert again.source == str(source)
    assert again.DESCR == prepared.DESCR


@pytest.mark.usefixtures("small")
def test_prepared_files_are_not_copied_to_the_cache(folder, cache):
    counts = fetching.Counts(
        three_by_two(), np.array(["a", "b", "c"]), np.array([1, 2]), "", "afar"
    )
    fetching.keep(counts, folder / "nips.npz")
    assert fetch_nips().source == "afar"
    np.save(folder / "nips.npy", three_by_two())
    assert fetch_nips().source == str(folder / "nips.npy")
    assert not cache.exists()


def test_remarks_on_the_source_are_kept(folder, cache, monkeypatch):
    monkeypatch.setattr(lastfm, "LASTFM", replace(lastfm.LASTFM, shape=(1, 53), total=20))
    text = "".join(play(f"user_{number}") for number in range(20)) + "bad line\n"
    archive_of(folder / "lastfm-dataset-1K.tar.gz", text)
    for _ in range(2):
        found = fetch_lastfm()
        assert found.feature_names.tolist() == ["Nina Simone"]
        assert found.data.sum() == 20
        assert "Left out of the source: 1 malformed lines." in found.DESCR
        (folder / "lastfm-dataset-1K.tar.gz").unlink(missing_ok=True)


def test_downloads_are_prepared_kept_and_not_repeated(cache, monkeypatch):
    monkeypatch.setattr(icews, "ICEWS", replace(icews.ICEWS, shape=(2, 3)))
    calls = []

    def download(url, path):
        calls.append(url)
        path.parent.mkdir()
        pgds_file(path, np.array(["Chile--Peru", "Chile--Iraq"]))

    monkeypatch.setattr(fetching, "download", download)
    for _ in range(2):
        found = fetch_icews()
        assert found.data.tolist() == [[3, 0], [2, 1], [1, 0]]
        assert found.feature_names.tolist() == ["Chile--Peru", "Chile--Iraq"]
        assert found.source == icews.ICEWS.url
        assert (found.stand_in, found.name) == (False, "icews")
    assert calls == [icews.ICEWS.url]
    assert sorted(path.name for path in cache.iterdir()) == ["icews.npz", "icews_2003-D.npz"]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server on this machine, which hands out the files of a folder."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    files = tmp_path / "files"
    files.mkdir()
    handler = functools.partial(QuietHandler, directory=files)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield files, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


DOWNLOAD = fetching.download


def test_pooch_downloads_a_file_and_reports_one_that_is_absent(server, cache, monkeypatch):
    files, address = server
    monkeypatch.setattr(fetching, "download", DOWNLOAD)
    monkeypatch.setattr(nips, "NIPS", replace(SMALL, url=f"{address}/papers.csv"))
    with pytest.raises(FileNotFoundError, match=r"failed \(404"):
        fetch_nips()
    assert not list(cache.glob("*"))
    (files / "papers.csv").write_text(NIPS_CSV, encoding="utf-8")
    assert fetch_nips().data.tolist() == [[4, 2, 2], [5, 7, 1]]
    assert (cache / "NIPS_1987-2015.csv").read_text(encoding="utf-8") == NIPS_CSV


# What is said when something is missing


@pytest.mark.parametrize("name", FETCHERS)
@pytest.mark.usefixtures("offline")
def test_without_network_the_error_says_which_file_to_put_where(folder, cache, name):
    dataset = DATASETS[name]
    with pytest.raises(FileNotFoundError) as raised:
        FETCHERS[name]()
    message = str(raised.value)
    assert message.startswith(f"fetch_{name}: {name}.npy was not found in {folder}, {cache}, and")
    assert f"the download from {dataset.url} failed (no route to host)" in message
    assert f"Put {name}.npy ({dataset.shape[0]} × {dataset.shape[1]} {dataset.feature}s" in message
    assert "set TEMPORALNMF_DATA to it" in message
    assert dataset.sources[0] in message
    assert f"into {cache}" in message
    assert "stand-in" not in message


@pytest.mark.parametrize("chosen", [True, False])
def test_without_pooch_the_error_says_what_to_install(monkeypatch, chosen):
    monkeypatch.setattr(fetching, "download", DOWNLOAD)
    monkeypatch.setitem(sys.modules, "pooch", None)
    if not chosen:
        monkeypatch.delenv("TEMPORALNMF_CACHE")
    with pytest.raises(ImportError, match=r'pip install "temporalnmf\[data\]"') as raised:
        fetch_nips()
    assert "Put nips.npy" in str(raised.value)
    assert ("TEMPORALNMF_DATA is not set" in str(raised.value)) is not chosen


@pytest.mark.usefixtures("small")
def test_pooch_is_not_needed_for_files_at_hand(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("TEMPORALNMF_CACHE")
    (folder / "NIPS_1987-2015.csv").write_text(NIPS_CSV, encoding="utf-8")
    assert fetch_nips().data.tolist() == [[4, 2, 2], [5, 7, 1]]


def test_the_cache_is_the_users_unless_chosen(cache, tmp_path, monkeypatch):
    user = types.SimpleNamespace(os_cache=lambda name: tmp_path / "user" / name)
    monkeypatch.setitem(sys.modules, "pooch", user)
    assert fetching.cache_folder() == cache
    monkeypatch.delenv("TEMPORALNMF_CACHE")
    assert fetching.cache_folder() == tmp_path / "user" / "temporalnmf"


def test_a_given_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data='.*nowhere': there is no such file"):
        fetch_nips(data=tmp_path / "nowhere")


def test_pandas_and_pooch_are_not_imported_with_the_package():
    code = "import sys, temporalnmf.datasets; print({'pandas', 'pooch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# What is checked


@pytest.mark.parametrize("name", ["nips", "lastfm"])
def test_a_matrix_of_another_shape_is_refused(folder, name):
    rows, columns = DATASETS[name].shape
    message = f"is {columns} × {rows}; {name} is {rows} × {columns}"
    np.save(folder / f"{name}.npy", np.ones((columns, rows)))
    for data in (None, folder, folder / f"{name}.npy"):
        with pytest.raises(ValueError, match=message):
            FETCHERS[name](data=data)


@pytest.mark.usefixtures("small")
def test_a_matrix_with_another_total_is_used_with_a_warning(folder):
    np.save(folder / "nips.npy", three_by_two(total=20))
    with pytest.warns(UserWarning, match=r"3 × 2 with a total of 20; .* 3 × 2 with .* 21") as told:
        found = fetch_nips()
    assert told[0].filename == __file__
    assert "with a total of 20" in found.DESCR


@pytest.mark.usefixtures("small")
def test_a_source_of_another_shape_is_used_with_a_warning_each_time(folder):
    text = NIPS_CSV + '"more",1,1,1\n'
    (folder / "NIPS_1987-2015.csv").write_text(text, encoding="utf-8")
    for _ in range(2):
        with pytest.warns(UserWarning, match="gives 4 × 2 .* the paper's is 3 × 2"):
            assert fetch_nips().data.shape == (2, 4)


def test_the_warning_tells_what_was_left_out(folder, monkeypatch):
    (folder / "events.2003.20150313.tab").write_text(EVENTS, encoding="utf-8")
    with pytest.warns(UserWarning, match="2 × 365 .* 6197 × 365. Left out .* 1 malformed lines"):
        found = fetch_icews()
    assert found.stand_in


def write_damaged(path, kind):
    np.save(path, three_by_two())
    whole = path.read_bytes()
    if kind == "cut":
        path.write_bytes(whole[:-8])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("1 2\n3 4\n", encoding="utf-8")
    elif kind == "pickle":
        np.save(path, np.array([[Trap()]], dtype=object), allow_pickle=True)
    elif kind == "huge":  # memory for so many numbers would be taken
        path.write_bytes(whole.replace(b"(3, 2), }" + b" " * 9, b"(3000000000, 2), }"))
    else:
        arrays = {
            "negative": -three_by_two(),
            "nan": np.full((3, 2), np.nan),
            "infinite": np.full((3, 2), np.inf),
            "words": np.full((3, 2), "word"),
            "cube": np.ones((3, 2, 1)),
        }
        np.save(path, arrays[kind])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("cut", ""),
        ("empty", ""),
        ("text", ""),
        ("pickle", "holds Python objects"),
        ("huge", "does not fit its 48 bytes"),
        ("negative", "negative or not finite"),
        ("nan", "negative or not finite"),
        ("infinite", "negative or not finite"),
        ("words", "not numbers"),
        ("cube", "3 axes, not two"),
    ],
)
@pytest.mark.usefixtures("small")
def test_damaged_matrices_are_refused(folder, kind, reason):
    path = folder / "nips.npy"
    write_damaged(path, kind)
    message = f"{path} could not be read: .*{reason}.*replace or delete it"
    with pytest.raises(ValueError, match=message):
        fetch_nips()


@pytest.mark.usefixtures("small")
def test_a_small_file_of_a_huge_matrix_is_refused(folder):
    """Sparse, and dense it would take more memory than there is."""
    path = folder / "nips.npz"
    sparse.save_npz(path, sparse.csr_matrix(([1.0], ([0], [0])), shape=(10**7, 10**8)))
    with pytest.raises(ValueError, match=r"its matrix would take 8,000,000,000,000,000 bytes"):
        fetch_nips(data=path)


@pytest.mark.parametrize("kind", ["cut", "text", "labels", "pickle", "incomplete"])
@pytest.mark.usefixtures("small")
def test_a_damaged_cache_is_refused(cache, kind):
    path = cache / "nips.npz"
    counts = fetching.Counts(three_by_two(), np.array(["a", "b", "c"]), np.array([1987, 1988]))
    if kind == "labels":
        counts = counts._replace(features=counts.features[:2])
    fetching.keep(counts, path)
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "text":
        path.write_text("counts", encoding="utf-8")
    elif kind == "pickle":
        np.savez(path, counts=np.array([[Trap()]], dtype=object))
    elif kind == "incomplete":
        np.savez(path, counts=three_by_two())
    with pytest.raises(ValueError, match=r"nips.npz could not be read: .*delete it to have it"):
        fetch_nips()


def test_wrong_indices_of_a_sparse_matrix_are_refused(tmp_path):
    matrix = sparse.csr_matrix(three_by_two())
    matrix.indices[0] = 10**6
    sparse.save_npz(tmp_path / "icews.npz", matrix)
    with pytest.raises(ValueError, match=r"could not be read"):
        fetch_icews(data=tmp_path / "icews.npz")


# Labels


@pytest.mark.usefixtures("small")
def test_labels_beside_a_matrix_are_read(folder):
    np.save(folder / "nips.npy", three_by_two())
    (folder / "nips_labels_inferred.txt").write_text("a\nb\nword#2\n", encoding="utf-8")
    found = fetch_nips()
    assert found.feature_names.tolist() == ["a", "b", "word#2"]
    assert found.labels_inferred
    assert "inferred" in found.DESCR

    (folder / "nips_labels.txt").write_text("neuron\nkernel\nspike\n", encoding="utf-8")
    found = fetch_nips()
    assert found.feature_names.tolist() == ["neuron", "kernel", "spike"]
    assert not found.labels_inferred
    assert "inferred" not in found.DESCR

    (folder / "nips_labels.txt").write_text("neuron\nkernel\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"nips_labels.txt has 2 labels for 3"):
        fetch_nips()


@pytest.mark.parametrize(
    ("name", "time"), [("nips", "year"), ("lastfm", "month"), ("icews", "day")]
)
def test_frames_have_the_labels_of_the_arrays(folder, name, time):
    np.save(folder / f"{name}.npy", paper_like(DATASETS[name]))
    found, framed = FETCHERS[name](), FETCHERS[name](as_frame=True)
    assert framed.data is framed.frame
    np.testing.assert_array_equal(framed.frame.to_numpy(), found.data)
    assert framed.frame.index.name == {"nips": "year", "lastfm": "month", "icews": "day"}[name]
    assert framed.frame.index.tolist() == found.times.tolist()
    assert framed.frame.columns.tolist() == found.feature_names.tolist()


@pytest.mark.usefixtures("small")
def test_pandas_is_needed_for_the_frame_only(folder, monkeypatch):
    np.save(folder / "nips.npy", three_by_two())
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert fetch_nips().data.shape == (2, 3)
    with pytest.raises(ImportError, match=r"fetch_nips\(as_frame=True\) .*temporalnmf\[io\]"):
        fetch_nips(as_frame=True)


# The stand-in of ICEWS


def write_stand_in(folder):
    sparse.save_npz(folder / STAND_IN, sparse.csr_matrix(three_by_two()))
    stem = STAND_IN.removesuffix(".npz")
    (folder / f"{stem}_labels.txt").write_text("A--B\nA--C\nB--C\n", encoding="utf-8")
    (folder / f"{stem}_times.txt").write_text("2001-01-01\n2001-01-04\n", encoding="utf-8")


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.usefixtures("offline")
def test_the_stand_in_is_used_only_if_asked_for(folder, monkeypatch, given):
    write_stand_in(folder)
    if given:
        monkeypatch.delenv("TEMPORALNMF_DATA")
    data = folder if given else None
    with pytest.raises(FileNotFoundError) as raised:
        fetch_icews(data=data)
    assert f"stand-in, {folder / STAND_IN}: fetch_icews(allow_stand_in=True)" in str(raised.value)

    found = fetch_icews(data=data, allow_stand_in=True)
    np.testing.assert_array_equal(found.data, three_by_two().T)
    assert type(found.data) is np.ndarray
    assert found.feature_names.tolist() == ["A--B", "A--C", "B--C"]
    assert found.times.tolist() == ["2001-01-01", "2001-01-04"]
    assert found.stand_in
    assert found.name == "icews (stand-in)"
    for fact in ("stand-in", "cannot be compared", "three days", "outage", "Licence: "):
        assert fact in found.DESCR
    assert "Checked" not in found.DESCR


def test_a_stand_in_is_not_kept_as_the_real_thing(folder, cache):
    write_stand_in(folder)
    assert fetch_icews(allow_stand_in=True).stand_in
    assert not cache.exists()


def test_the_papers_matrix_goes_before_a_stand_in(folder, cache):
    write_stand_in(folder)
    cache.mkdir()
    values = paper_like(icews.ICEWS)
    sparse.save_npz(cache / "icews.npz", sparse.csc_matrix(values))
    found = fetch_icews(allow_stand_in=True)
    np.testing.assert_array_equal(found.data, values.T)
    assert not found.stand_in
    assert "stand-in" not in found.DESCR + found.name


def test_a_matrix_of_another_shape_is_a_stand_in(folder):
    np.save(folder / "icews.npy", three_by_two())
    with pytest.raises(ValueError, match=r"is 3 × 2; icews is 6197 × 365 .*allow_stand_in=True"):
        fetch_icews()
    for found in (fetch_icews(allow_stand_in=True), fetch_icews(data=folder / "icews.npy")):
        assert found.stand_in
        assert found.name == "icews (stand-in)"
        assert found.feature_names.tolist() == ["pair_0", "pair_1", "pair_2"]
        assert found.times.tolist() == [0, 1]
        assert "three days" not in found.DESCR
