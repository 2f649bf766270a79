"""Components in a folder: the same answers as an array, and files that are whole or refused."""

import json
import pickle
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from temporalnmf import TemporalNMF, components, load
from temporalnmf.components import ShardedComponents, block_file, write_header
from temporalnmf.runtime.files import written_whole
from temporalnmf.summary import component_summary, step_errors

rng = np.random.default_rng(0)
BOUNDS = [0, 4, 5, 11, 12]
K, F = 3, 12
PLAIN = rng.dirichlet(np.ones(F), size=K)
PLAIN[:, [2, 6]] = PLAIN[:, [9]]  # equal ones, in different blocks
PLAIN /= PLAIN.sum(axis=1, keepdims=True)
X = rng.poisson(rng.gamma(2.0, 4.0, size=(25, F))).astype(float)


def written(folder, array=PLAIN, bounds=BOUNDS):
    for i, (first, last) in enumerate(pairwise(bounds)):
        with written_whole(block_file(folder, i)) as partial:
            np.save(partial, np.ascontiguousarray(array.T[first:last]))
    write_header(folder, len(array), np.array(bounds))
    return ShardedComponents.open(folder)


@pytest.fixture
def sharded(tmp_path):
    return written(tmp_path / "parts")


def fitted(seed=0, n_components=K):
    return TemporalNMF(n_components, random_state=seed).fit(X)


def in_folder(model, folder):
    """The same model with its components in a folder."""
    model.components_ = written(folder, model.components_)
    return model


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_sharded_components_look_like_an_array(sharded, tmp_path):
    for name in ("shape", "ndim", "dtype", "size", "nbytes"):
        assert getattr(sharded, name) == getattr(PLAIN, name), name
    assert len(sharded) == K
    np.testing.assert_array_equal(np.asarray(sharded), PLAIN)
    assert np.asarray(sharded).flags.c_contiguous  # as those of a fit
    assert np.asarray(sharded, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(sharded, copy=False)
    np.testing.assert_array_equal(sharded.T, PLAIN.T)
    np.testing.assert_array_equal(list(sharded), PLAIN)
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(sharded))), PLAIN)
    told = f"3 components × 12 features, 288 bytes in 4 blocks in {tmp_path / 'parts'}"
    assert told in repr(sharded)


def test_blocks_are_mapped_and_cannot_be_written_to(sharded):
    found = {columns.start: (columns, block) for columns, block in sharded.blocks()}
    assert list(found) == BOUNDS[:-1]
    for columns, block in found.values():
        np.testing.assert_array_equal(block, PLAIN[:, columns])
        assert not block.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            block[0, 0] = 1.0


SEEN = np.arange(F) % 3 == 0
INDICES = {
    "row": 1, "last row": -1, "NumPy row": np.int64(2), "rows": slice(1, 3), "listed": [2, 0, 2],
    "rows by bools": [True, False, True], "turned": slice(None, None, -1), "none": [],
    "all": slice(None), "one in a tuple": (1,),
    "column": np.s_[:, 5], "last column": np.s_[:, -1], "columns": np.s_[:, 3:11],
    "within a block": np.s_[:, 6:8], "every other": np.s_[:, 1:11:2],
    "backwards": np.s_[:, 10:2:-3], "no columns": np.s_[:, 7:7], "beyond": np.s_[:, 8:99],
    "listed columns": np.s_[:, [11, 0, -2, 0, 5]], "no listed": np.s_[:, []],
    "bools": np.s_[:, SEEN], "unsigned": np.s_[:, np.array([3, 4], dtype=np.uint8)],
    "entry": np.s_[1, 4], "row and columns": np.s_[0, [7, 1]], "row and slice": np.s_[-1, 2:9],
    "rows and column": np.s_[[2, 1], 4], "rows and columns": np.s_[1:, 2:9:2],
    "listed rows": np.s_[[2, 1], 3:6], "rows, listed columns": np.s_[::2, [6, 2]],
}  # fmt: skip


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_indexing_is_that_of_an_array(sharded, index):
    found = sharded[index]
    assert np.shape(found) == PLAIN[index].shape
    np.testing.assert_array_equal(found, PLAIN[index])


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (3, "rows has 3: expected -3 to 2"),
        (np.s_[:, [0, -13]], "columns has -13: expected -12 to 11"),
        (np.s_[:, 1.5], "columns=1.5 .*asarray"),
        (np.s_[:, [True, False]], "columns=.*12 bools"),
        (np.s_[:, None], "columns=None"),
        (None, "rows=None"),
        (np.s_[0, 0, 0], r"components\[rows, columns\]"),
        (np.s_[[0, 1], [0, 1]], r"pairs. Use components\[:, columns\]\[rows\]"),
        (PLAIN > 0.1, "rows="),
    ],
)
def test_indices_that_are_not_supported_are_refused(sharded, index, told):
    with pytest.raises(IndexError, match=told):
        sharded[index]


def test_only_the_blocks_that_are_needed_are_read(sharded):
    for i in (0, 1, 3):
        block_file(sharded.folder, i).unlink()
    np.testing.assert_array_equal(sharded[:, [10, 5]], PLAIN[:, [10, 5]])
    np.testing.assert_array_equal(sharded[1, 6:9], PLAIN[1, 6:9])
    with pytest.raises(ValueError, match=r"parts/00001.npy: it does not exist"):
        sharded[:, 4]


@pytest.mark.parametrize("shape", [(K,), (5, K), (2, 5, K)])
def test_products_from_the_left_are_those_of_the_array(sharded, shape):
    left = rng.normal(size=shape)
    np.testing.assert_allclose(left @ sharded, left @ PLAIN, rtol=1e-13, atol=1e-15)
    assert isinstance(left @ sharded, np.ndarray)


@pytest.mark.parametrize("shape", [(F,), (F, 4)])
def test_products_from_the_right_are_those_of_the_array(sharded, shape):
    right = rng.normal(size=shape)
    np.testing.assert_allclose(sharded @ right, PLAIN @ right, rtol=1e-13, atol=1e-14)


def test_products_that_do_not_fit_are_refused(sharded):
    with pytest.raises(ValueError, match=r"Shapes \(2,\) @ \(3, 12\) do not fit"):
        np.ones(2) @ sharded
    with pytest.raises(ValueError, match=r"Shapes \(3, 12\) @ \(3, 2\) do not fit"):
        sharded @ np.ones((3, 2))


@pytest.mark.parametrize("n", [1, 2, 5, 12, 40])
def test_largest_features_are_those_of_a_stable_sort(sharded, n):
    indices, weights = sharded.top(n)
    expected = np.argsort(-PLAIN, axis=1, kind="stable")[:, :n]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(weights, np.take_along_axis(PLAIN, expected, axis=1))
    with pytest.raises(ValueError, match="n=0: expected a whole number of at least 1"):
        sharded.top(0)


def test_a_summary_is_that_of_the_array_and_loads_no_more_than_a_block(tmp_path, monkeypatch):
    model = fitted()
    few, every = component_summary(model, 4), component_summary(model, F)
    errors = step_errors(model)
    in_folder(model, tmp_path)

    def load_all(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(ShardedComponents, "__array__", load_all)
    assert component_summary(model, 4) == few
    assert component_summary(model, F) == every
    np.testing.assert_allclose(step_errors(model), errors, rtol=1e-12)


def rewrite(**changes):
    def change(folder):
        header = json.loads((folder / "components.json").read_text())
        (folder / "components.json").write_text(json.dumps({**header, **changes}))

    return change


def replace(array, **options):
    return lambda folder: np.save(block_file(folder, 2), array, **options)


def put(content, name="00002.npy"):
    return lambda folder: (folder / name).write_bytes(content)


def cut(folder):
    path = block_file(folder, 2)
    path.write_bytes(path.read_bytes()[:-8])


def lengthen(folder):
    with block_file(folder, 2).open("ab") as file:
        file.write(bytes(8))


BLOCK = np.ones((6, K))
DAMAGES = {
    "no header": (lambda folder: (folder / "components.json").unlink(), "components.json: .*last"),
    "no JSON": (put(b"{", "components.json"), "not JSON"),
    "deep JSON": (put(b"[" * 10**6, "components.json"), "not JSON"),
    "a list": (put(b"[]", "components.json"), "not the header of components"),
    "foreign header": (rewrite(format="cake"), "not the header of components"),
    "future": (rewrite(schema=2), "schema 2.*reads schema 1. Update temporalnmf"),
    "components": (rewrite(n_components=2), r"00000.npy.*shape \(4, 3\).*not.*\(4, 2\)"),
    "no components": (rewrite(n_components=0), "n_components=0: expected a whole number"),
    "bool": (rewrite(n_components=True), "n_components=True"),
    "text": (rewrite(bounds="0"), "bounds='0': expected whole numbers that rise from 0"),
    "falling": (rewrite(bounds=[0, 4, 4, 11, 12]), "rise from 0"),
    "not from 0": (rewrite(bounds=[1, 4, 5, 11, 12]), "rise from 0"),
    "fractions": (rewrite(bounds=[0, 4.0, 5, 11, 12]), "rise from 0"),
    "one bound": (rewrite(bounds=[0]), "rise from 0"),
    "more blocks": (rewrite(bounds=[*BOUNDS, 10**300]), "00004.npy: it does not exist"),
    "wider": (rewrite(bounds=[0, 4, 5, 10**300]), "00002.npy: .*shape"),
    "block is gone": (
        lambda folder: block_file(folder, 2).unlink(),
        "00002.npy: it does not exist",
    ),
    "empty block": (put(b""), "00002.npy: it is not an NPY file"),
    "block of text": (put(b"cake" * 99), "00002.npy: it is not an NPY file"),
    "cut": (cut, "00002.npy: it has .* bytes, fewer than"),
    "longer": (lengthen, "00002.npy: it has 280 bytes"),
    "objects": (
        replace(np.full((6, K), None), allow_pickle=True),
        "00002.npy: it is not an NPY file",
    ),
    "narrow": (replace(BLOCK.astype(np.float32)), "00002.npy: it holds <f4"),
    "swapped": (replace(BLOCK.astype(">f8")), "00002.npy: it holds >f8"),
    "transposed": (replace(np.ones((K, 6))), r"00002.npy: it holds <f8 of shape \(3, 6\)"),
    "Fortran": (replace(np.asfortranarray(BLOCK)), "00002.npy: .*Fortran order"),
}


@pytest.mark.parametrize(("damage", "told"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_folder_gives_one_clear_error(sharded, damage, told):
    damage(sharded.folder)
    with pytest.raises(ValueError, match=f"parts/.*{told}"):
        ShardedComponents.open(sharded.folder)


def test_absent_and_foreign_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        ShardedComponents.open(tmp_path / "none")
    (tmp_path / "cake.txt").write_text("cake")
    with pytest.raises(ValueError, match=r"components.json: it does not exist.*foreign"):
        ShardedComponents.open(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [((0, [0, 1]), "n_components=0"), ((2, [0, 2, 2]), "bounds="), ((2, [1, 2]), "bounds=")],
)
def test_a_header_that_could_not_be_read_is_not_written(tmp_path, arguments, told):
    with pytest.raises(ValueError, match=told):
        write_header(tmp_path, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_stands_on_its_own(sharded, tmp_path):
    assert sharded.copy_to(sharded.folder) is sharded
    copy = sharded.copy_to(tmp_path / "new" / "copy")
    shutil.rmtree(sharded.folder)
    np.testing.assert_array_equal(np.asarray(copy), PLAIN)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["copy"]


def test_a_copy_replaces_only_what_it_may(sharded, tmp_path):
    there = written(tmp_path / "copy", PLAIN[:2, ::-1], [0, F])
    with pytest.raises(FileExistsError, match="exists already"):
        sharded.copy_to(there.folder)
    assert ShardedComponents.open(there.folder).shape == (2, F)
    np.testing.assert_array_equal(sharded.copy_to(there.folder, overwrite=True), PLAIN)
    (there.folder / "thesis.txt").write_text("")
    with pytest.raises(FileExistsError, match=r"'thesis.txt', which does not belong.*not replaced"):
        sharded.copy_to(there.folder, overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is a file"):
        sharded.copy_to(tmp_path / "file", overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "copy", "file"}


def test_a_copy_of_damaged_blocks_is_not_made(sharded, tmp_path):
    cut(sharded.folder)
    with pytest.raises(ValueError, match=r"00002.npy: it has .* bytes, fewer than"):
        sharded.copy_to(tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_a_model_comes_back_with_its_folder(tmp_path):
    plain = fitted()
    model = in_folder(fitted(), tmp_path / "parts")
    path = model.save(tmp_path / "out" / "model.npz")
    assert model.components_.folder == tmp_path / "parts"
    shutil.rmtree(tmp_path / "parts")
    assert {p.name for p in path.parent.iterdir()} == {"model.npz", "model.components"}
    with zipfile.ZipFile(path) as file:
        header = json.loads(file.read("header.json"))
        assert "components_.npy" not in file.namelist()
    assert (header["components"], header["schema"]) == ("sharded", 3)
    again = load(path)
    assert isinstance(again.components_, ShardedComponents)
    np.testing.assert_array_equal(np.asarray(again.components_), plain.components_)
    np.testing.assert_array_equal(again.forecast(3).samples(), plain.forecast(3).samples())
    np.testing.assert_array_equal(again.transform(X), plain.transform(X))
    expected = plain.inverse_transform(plain.activations_)
    np.testing.assert_allclose(again.inverse_transform(plain.activations_), expected, rtol=1e-12)


def test_models_in_one_file_stay_readable_for_older_programs(tmp_path):
    with zipfile.ZipFile(fitted().save(tmp_path / "model.npz")) as file:
        header = json.loads(file.read("header.json"))
    assert header["schema"] == 2
    assert "components" not in header


def test_the_name_of_the_folder_is_that_of_the_file(tmp_path):
    """Both may be renamed together."""
    path = in_folder(fitted(), tmp_path / "parts").save(tmp_path / "model.npz")
    path.rename(tmp_path / "best.v2.npz")
    (tmp_path / "model.components").rename(tmp_path / "best.v2.components")
    folder = load(tmp_path / "best.v2.npz").components_.folder
    assert folder == tmp_path / "best.v2.components"
    with pytest.raises(ValueError, match=r"path=.*x.components' .*suffix .npz"):
        load(tmp_path / "best.v2.npz").save(tmp_path / "x.components")


FAULTS = {
    "no folder": (shutil.rmtree, "there is no such folder"),
    "no header": (lambda folder: (folder / "components.json").unlink(), "json: it does not"),
    "a block is gone": (lambda folder: block_file(folder, 1).unlink(), "00001.npy: it does not"),
    "cut": (cut, "00002.npy: it has .* bytes, fewer than"),
    "a file": (
        lambda folder: (shutil.rmtree(folder), folder.write_text("")), "there is no such folder",
    ),
    "another model": (
        lambda folder: written(folder, fitted(1).components_), "belongs to another model",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("fault", "told"), FAULTS.values(), ids=FAULTS.keys())
def test_a_missing_or_damaged_folder_gives_one_clear_error(tmp_path, fault, told):
    path = in_folder(fitted(), tmp_path / "parts").save(tmp_path / "model.npz")
    fault(tmp_path / "model.components")
    with pytest.raises(
        ValueError, match=rf"model.npz cannot be read.* model.components .*{told}.*Copy both"
    ):
        load(path)


def test_models_are_not_overwritten_unless_asked_for(tmp_path):
    path = in_folder(fitted(), tmp_path / "parts").save(tmp_path / "model.npz")
    other = in_folder(fitted(1), tmp_path / "others")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError, match=r"model.npz exists already"):
        other.save(path)
    path.unlink()
    with pytest.raises(FileExistsError, match=r"model.components exists already"):
        other.save(path)
    assert contents(tmp_path) == {k: v for k, v in before.items() if k != "model.npz"}
    other.save(path, overwrite=True)
    np.testing.assert_array_equal(load(path).components_, other.components_)
    (tmp_path / "model.components" / "thesis.txt").write_text("")
    with pytest.raises(FileExistsError, match=r"thesis.txt.*not replaced"):
        other.save(path, overwrite=True)


def test_a_model_is_saved_onto_its_own_folder(tmp_path):
    model = in_folder(fitted(), tmp_path / "model.components")  # a cluster may write it there
    numbers = np.asarray(model.components_)
    path = model.save(tmp_path / "model.npz")
    again = load(path)
    again.provenance_ = {"from": "elsewhere"}
    again.save(path, overwrite=True)
    assert load(path).provenance_ == {"from": "elsewhere"}
    np.testing.assert_array_equal(load(path).components_, numbers)
    np.testing.assert_array_equal(again.components_, numbers)


@pytest.mark.parametrize("there", [True, False], ids=["over another", "new"])
@pytest.mark.parametrize("stop", ["copying", "array", "placing", "file"])
def test_a_save_that_is_interrupted_leaves_the_files_as_they_were(
    tmp_path, monkeypatch, stop, there
):
    out = tmp_path / "out"
    out.mkdir()
    if there:
        in_folder(fitted(1), tmp_path / "others").save(out / "model.npz")
    model, before = in_folder(fitted(), tmp_path / "parts"), contents(out)
    calls = []

    def stopping(real, when):
        def call(*arguments, **options):
            if when(*arguments):
                calls.append(arguments)
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return call

    def becomes(name):
        return lambda source, target: Path(target).name == name

    for what, owner, name, when in (
        ("copying", components.shutil, "copyfile", lambda one, two: two.name == "00002.npy"),
        ("array", np.lib.format, "write_array", lambda *arguments: True),
        ("placing", Path, "rename", lambda one, two: one.name == ".model.components.partial"),
        ("file", Path, "replace", becomes("model.npz")),
    ):
        if what == stop:
            monkeypatch.setattr(owner, name, stopping(getattr(owner, name), when))
    with pytest.raises(KeyboardInterrupt):
        model.save(out / "model.npz", overwrite=True)
    assert calls
    assert contents(out) == before
    assert {path.name for path in out.iterdir()} == {name.split("/")[0] for name in before}
    monkeypatch.undo()
    model.save(out / "model.npz", overwrite=True)
    np.testing.assert_array_equal(load(out / "model.npz").components_, model.components_)


@pytest.mark.parametrize("placed", [True, False], ids=["new one in place", "none in place"])
def test_a_save_that_is_killed_between_folder_and_file_leaves_the_old_model(tmp_path, placed):
    out = tmp_path / "out"
    old = in_folder(fitted(1), tmp_path / "old")
    path = old.save(out / "model.npz")
    (out / "model.components").rename(out / ".model.components.old")
    if placed:
        in_folder(fitted(), out / "model.components")
    again = load(path)
    np.testing.assert_array_equal(again.components_, old.components_)
    again.save(path, overwrite=True)  # tidies up, and the model goes on
    assert {p.name for p in out.iterdir()} == {"model.npz", "model.components"}
    np.testing.assert_array_equal(load(path).components_, old.components_)
    np.testing.assert_array_equal(again.components_, old.components_)


def test_components_that_are_too_large_for_memory_stay_in_files(tmp_path, monkeypatch):
    """Everything after the fit is as it would be in memory."""
    from temporalnmf.cluster import features
    from temporalnmf.shards import write_shards
    from temporalnmf.timeline import timeline_of

    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 2.0, (30, 2)) @ rng.gamma(0.3, 2.0, (2, 25))).astype(float)
    names, timeline = [f"w{f}" for f in range(25)], timeline_of(np.arange(30))
    write_shards(tmp_path / "shards", X, names=names, timeline=timeline, n_shards=4)
    params = {"n_components": 2, "random_state": 0, "tol": 1e-4}
    whole = TemporalNMF(**params).fit(tmp_path / "shards")
    monkeypatch.setattr(features, "MOST_HERE", 0)
    model = TemporalNMF(**params).fit(tmp_path / "shards")
    assert isinstance(model.components_, ShardedComponents)
    np.testing.assert_array_equal(np.asarray(model.components_), whole.components_)
    np.testing.assert_array_equal(model.forecast(2).values, whole.forecast(2).values)
    steps = tmp_path / "shards"
    np.testing.assert_array_equal(model.transform(steps), whole.transform(steps))
    model.save(tmp_path / "model.npz")
    place = model.components_.folder
    assert place.exists()
    del model  # and what was only in temporary files
    assert not place.exists()
    again = load(tmp_path / "model.npz")
    assert isinstance(again.components_, ShardedComponents)
    np.testing.assert_array_equal(again.forecast(2).values, whole.forecast(2).values)
