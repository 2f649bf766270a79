"""The command that writes shards."""

import json

import numpy as np
import pytest

from commands import done, invoke, refused
from shard_folders import names_of
from temporalnmf.datasets import load_sotu
from temporalnmf.reading import read_table
from temporalnmf.shards import Shards, sorting

HOW = ("--time", "date", "--feature", "artist", "--value", "plays")


@pytest.fixture
def events(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"2018-{month:02d}-{rng.integers(1, 28):02d},{artist},{rng.integers(9)}"
        for month in (1, 2, 4, 5, 6)
        for artist in ("Ada", "Bix", "Cleo", "Ada")
    ]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["date,artist,plays", *lines, "2018-05-03,,12"]) + "\n")
    return path


def test_a_long_table_is_sharded_as_it_is_read(events, tmp_path):
    out = tmp_path / "out"
    said = done("shard", events, *HOW, "--freq", "M", "--out", out).output
    table = read_table(events, time="date", feature="artist", value="plays", freq="M")
    shards = Shards.open(out)
    np.testing.assert_array_equal(shards.matrix().toarray(), np.nan_to_num(table.X))
    assert shards.observed.tolist() == [True, True, False, True, True, True]
    assert names_of(shards) == ["Ada", "Bix", "Cleo"]
    assert "events.csv: 6 steps x 3 features" in said
    assert "dropped: 1 without 'artist', total 12" in said
    assert "absent periods: 1 (2018-03)" in said
    size = sum(path.stat().st_size for path in out.iterdir())
    nonzeros = np.count_nonzero(np.nan_to_num(table.X))
    assert f"{nonzeros} non-zeros in 2 shards, {size / 1e6:.1f} MB" in said
    assert f"written: {out}" in said


def test_a_wide_table_is_sharded_with_its_exposure(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("year,a,b,people\n2001,1,2,10\n2002,,3,20\n2004,5,0,30\n")
    done("shard", path, "--exposure", "people", "--out", tmp_path / "out", "--shards", 1)
    shards = Shards.open(tmp_path / "out")
    assert shards.matrix().toarray().tolist() == [[1, 2], [0, 3], [0, 0], [5, 0]]
    assert shards.observed.tolist() == [True, True, False, True]
    np.testing.assert_allclose(shards.exposure, [10, 20, np.sqrt(600), 30])
    indptr, steps = shards.missing(0)
    assert (indptr.tolist(), steps.tolist()) == ([0, 1, 1], [1])


def test_transposed_and_embedded_tables_are_sharded(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,2001,2002,2003\na,1,2,3\nb,4,5,6\n")
    done("shard", path, "--transpose", "--out", tmp_path / "t")
    assert Shards.open(tmp_path / "t").matrix().toarray().tolist() == [[1, 4], [2, 5], [3, 6]]
    done("shard", "sotu", "--out", tmp_path / "words")
    words, shards = load_sotu(), Shards.open(tmp_path / "words")
    np.testing.assert_array_equal(
        shards.matrix().toarray(), np.nan_to_num(np.asarray(words.data, dtype=float))
    )
    assert names_of(shards) == list(words.feature_names)
    assert shards.timeline.labels[~shards.observed].tolist() == [1933]


def test_a_folder_of_files_is_sharded_and_told_as_json(events, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    head, *lines = events.read_text().splitlines()
    for k in range(3):
        (parts / f"{k}.csv").write_text("\n".join([head, *lines[k::3]]) + "\n")
    result = done("shard", parts, *HOW, "--freq", "M", "--out", tmp_path / "out", "--json")
    found = json.loads(result.stdout)
    table = read_table(events, time="date", feature="artist", value="plays", freq="M")
    assert found["shards"] == str(tmp_path / "out")
    assert (found["n_steps"], found["n_features"], found["n_shards"]) == (6, 3, 2)
    assert found["nonzeros"] == np.count_nonzero(np.nan_to_num(table.X))
    assert found["gaps"] == ["2018-03"]
    assert found["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").iterdir())
    assert (found["first"], found["last"], found["every"]) == ("2018-01", "2018-06", "month")
    assert found["notes"][0].startswith("rows read: 21")
    assert "steps x" in result.stderr


def test_force_replaces_shards_and_nothing_else(events, tmp_path):
    out = tmp_path / "out"
    call = ("shard", events, *HOW, "--freq", "M", "--out", out)
    done(*call)
    assert "--force" in refused(*call)
    done(*call, "--force", "--shards", 3)
    assert Shards.open(out).n_shards == 3
    (out / "thesis.tex").write_text("mine")
    assert "'thesis.tex'" in refused(*call, "--force")
    assert (out / "thesis.tex").read_text() == "mine"
    assert "exists already" in refused("shard", "sotu", "--out", events)
    assert "date,artist" in events.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "dat", "--feature", "artist"), "did you mean 'date'?"),
        (("--feature", "artist"), "--feature"),
        ((*HOW, "--transpose"), "Leave out one"),
        ((*HOW, "--shards", "4", "--freq", "M"), "--shards 4 is out of range"),
        ((*HOW, "--freq", "never"), "--freq never is not known"),
    ],
)
def test_wrong_options_are_refused_and_write_nothing(events, tmp_path, words, said):
    assert said in refused("shard", events, *words, "--out", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]


def test_nothing_is_written_into_the_input_folder(events, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    events.rename(parts / "events.csv")
    assert "--time and --feature" in refused("shard", parts, "--out", tmp_path / "out")
    for out in (parts, parts / "out"):
        assert "lies in the input folder" in refused("shard", parts, *HOW, "--out", out)
    assert "no such file" in refused("shard", tmp_path / "none", *HOW, "--out", tmp_path / "out")


def test_ctrl_c_says_that_nothing_was_written(events, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sorting._Stream, "append", stopped)
    result = invoke("shard", events, *HOW, "--freq", "M", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["events.csv"]
