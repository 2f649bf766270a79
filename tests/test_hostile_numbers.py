"""Numbers in files that compiled code could not rely on."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import files

from hostile import LONG, replaced, zipped
from temporalnmf import load
from temporalnmf.components import ShardedComponents
from temporalnmf.reading import read_table


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e301])
def test_components_on_disk_are_checked_when_they_are_first_used(value, seeds, tmp_path):
    files.write_folder(files.read_folder(seeds / "components" / "0"), tmp_path)
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
def test_a_model_that_could_not_be_used_is_not_loaded(member, keys, value, model_file):
    load(model_file)
    with zipfile.ZipFile(model_file) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members[member] = changed(json.loads(members[member]), keys, value)
    model_file.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=r"model.npz cannot be read as a model of temporalnmf"):
        load(model_file)


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
def test_model_arrays_of_a_wrong_type_or_range_are_refused(name, change, model_file):
    with np.load(model_file) as arrays:
        file = io.BytesIO()
        np.save(file, change(arrays[name]))
    replaced(model_file, **{name: file.getvalue()})
    with pytest.raises(ValueError, match=rf"model.npz cannot be read.*array {name} "):
        load(model_file)


def test_draws_whose_components_do_not_sum_to_one_are_refused(seeds, tmp_path):
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


def test_labels_of_bytes_that_are_not_text_are_refused(tmp_path):
    table = pa.table({"time": pa.array([b"\xff\x00"] * 5), "a": pa.array([1.0] * 5)})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet has labels of bytes, not text"):
        read_table(tmp_path / "a.parquet")


def test_big_endian_and_fortran_ordered_arrays_are_read(model_file):
    """Big-endian, and in the order of Fortran: compiled code gets them as it wants them."""
    before = load(model_file).forecast(2).values
    with np.load(model_file) as arrays:
        file = io.BytesIO()
        np.save(file, np.asfortranarray(arrays["activations_"].astype(">f8")))
    replaced(model_file, activations_=file.getvalue())
    np.testing.assert_array_equal(load(model_file).forecast(2).values, before)


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
def test_columns_that_cannot_be_labels_are_refused_by_name(column, values, tmp_path):
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
