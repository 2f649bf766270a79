"""Models in files: what comes back is what went in, and what is no model is refused."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import cases
from cases import estimator
from temporalnmf import __version__, load, registry
from temporalnmf.chains import GaP, Rate
from temporalnmf.likelihoods import Poisson
from temporalnmf.persistence.models import CappedWarning, parameters_of_fit
from temporalnmf.solvers.options import flattened

rng = np.random.default_rng(0)
X = rng.poisson(rng.gamma(2.0, 4.0, size=(25, 6))).astype(float)
GAPS = X.copy()
GAPS[[4, 24]] = np.nan
GAPS[7, 2] = np.nan
DATES = pd.date_range("2001-01-31", periods=25, freq="ME")
CONTAINERS = {
    "array": GAPS,
    "frame of months": pd.DataFrame(GAPS, index=DATES, columns=list("abcdéf")),
    "frame of words": pd.DataFrame(X, index=[f"step {n}" for n in range(25)]).add_prefix("x"),
    "frame with numbers as names": pd.DataFrame(X, columns=[10, 20, 30, 40, 50, 60]),
    "csr": sparse.csr_array(X),
}


def fitted(data=GAPS, **params):
    return estimator(**{"n_components": 2, "random_state": 0, **params}).fit(data)


def assert_same(one, other):
    """Everything a user can ask of a model, to the bit."""
    for name in (
        "components_", "activations_", "times_", "observed_", "exposure_", "history_",
        "history_iterations_", "n_iter_", "objective_", "reconstruction_err_", "converged_",
        "stop_reason_", "stability_", "n_features_in_",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.chain_.name == other.chain_.name
    np.testing.assert_equal(one.chain_.get_params(), other.chain_.get_params())
    assert one.times_.dtype == other.times_.dtype
    np.testing.assert_array_equal(one.feature_labels(), other.feature_labels())
    assert one.timeline_.to_dict() == other.timeline_.to_dict()
    np.testing.assert_array_equal(one.timeline_.following(2), other.timeline_.following(2))
    if one.chain_.name == "none":
        np.testing.assert_array_equal(one.forecast(3).values, other.forecast(3).values)
        return
    for of in ("features", "components", "totals"):
        np.testing.assert_array_equal(one.forecast(3).samples(of), other.forecast(3).samples(of))
    np.testing.assert_array_equal(one.smooth().draws, other.smooth().draws)


@pytest.mark.parametrize("chain", registry.CHAINS)
def test_a_loaded_model_gives_the_same_bits_for_every_chain(chain, tmp_path):
    model = fitted(chain=chain, n_init=2)
    assert_same(load(model.save(tmp_path / "model.npz")), model)


@pytest.mark.each_value
@pytest.mark.parametrize("data", CONTAINERS.values(), ids=CONTAINERS.keys())
@pytest.mark.parametrize("keep", [True, False], ids=["with data", "without"])
def test_models_of_every_container_come_back(data, keep, tmp_path):
    model = fitted(data)
    again = load(model.save(tmp_path / "model.npz", data=keep))
    assert_same(again, model)
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(again.transform(data), model.transform(data))
    if keep:
        new = data[:3] if not hasattr(data, "iloc") else data.iloc[:3].to_numpy()
        if not hasattr(data, "iloc"):
            again.append(new)
            np.testing.assert_array_equal(again.activations_, model.append(new).activations_)
        again.calibrate(6)
    else:
        with pytest.raises(ValueError, match=r"append needs the data.*data=False.*data=True"):
            again.append(data[:3])


def test_parameters_and_calibration_come_back(tmp_path):
    model = estimator(
        2, chain=GaP(np.array([1.0, 2.0]), beta="learn"), likelihood=Poisson(), tol=1e-4,
        max_iter=77, smoothing=0.3, init="nndsvda", random_state=np.random.RandomState(3),
        callback=lambda progress: None, n_jobs=2,
    ).fit(X, exposure=np.linspace(1, 2, 25)).calibrate(6)  # fmt: skip
    again = load(model.save(tmp_path / "model.npz"))
    assert_same(again, model)
    kept = again.get_params()
    for name in ("n_components", "tol", "max_iter", "smoothing", "init", "map_scale"):
        assert kept[name] == getattr(model, name)
    np.testing.assert_array_equal(kept["chain__alpha"], [1.0, 2.0])
    assert kept["chain__beta"] == "learn"
    assert kept["callback"] is None
    assert kept["n_jobs"] is None
    assert kept["random_state"] is None
    assert str(again.calibration_) == str(model.calibration_)
    again.fit(X)  # what comes back can be fitted anew


def header_of(path):
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("header.json"))


def test_a_costly_fit_comes_back_to_the_bit_and_its_parameters_are_remembered(tmp_path):
    """Later fits are capped; what was fitted, and what it was fitted with, is not."""
    model = fitted(max_iter=5000, n_init=3, n_jobs=2, verbose=0)
    path = model.save(tmp_path / "model.npz")
    told = r"fitted with max_iter=5000, n_init=3\. Later fits .* use max_iter=1000, n_init=1, "
    with pytest.warns(CappedWarning, match=told):
        again = load(path)
    assert_same(again, model)
    assert (again.max_iter, again.n_init) == (1000, 1)
    assert {**parameters_of_fit(again), "n_jobs": 2} == flattened(model.get_params(deep=False))
    assert header_of(again.save(tmp_path / "again.npz")) == header_of(path)
    assert again.set_params(max_iter=1500).fit(GAPS).max_iter == 1500
    assert parameters_of_fit(again)["n_init"] == 1  # those of the new fit
    with pytest.warns(CappedWarning, match=r"fitted with max_iter=1500\. Later"):
        load(again.save(path, overwrite=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_thinning_stays_within_capped_draws(tmp_path):
    model = fitted(chain="rate", solver="gibbs", n_draws=2, n_tune=0, n_chains=1)
    model.set_params(solver__n_draws=501, solver__thin=501)
    with pytest.warns(
        CappedWarning, match=r"draws=501, solver__thin=501\..*draws=500, solver__thin=500,"
    ):
        again = load(model.save(tmp_path / "model.npz"))
    again._config().check()


def test_files_do_not_hold_settings_of_a_run(tmp_path):
    settings = {
        "callback": lambda progress: None, "warm_start": True, "n_jobs": 2, "verbose": 1,
    }  # fmt: skip
    model = fitted(max_iter=2, tol=0.5).set_params(**settings, checkpoint=tmp_path / "state")
    kept = header_of(model.save(tmp_path / "model.npz"))["parameters"]
    assert set(model.get_params(deep=False)) - set(kept) == {*settings, "checkpoint"}
    assert "checkpoint_every" not in kept


def test_weights_and_sparse_masks_come_back(tmp_path):
    weights = rng.uniform(0.0, 1.0, size=X.shape)
    weights[weights < 0.3] = 0.0
    for mask in (weights, sparse.csr_array(weights)):
        for data in (X, sparse.csr_array(X)):
            model = estimator(2, random_state=0).fit(data, mask=mask)
            again = load(model.save(tmp_path / "model.npz", overwrite=True))
            again._posterior = None  # made anew from the data in the file
            assert_same(again, model)


def test_the_layout_is_what_the_documents_say(tmp_path):
    """Plain zip, JSON and arrays of numbers: any language can read them."""
    sparse_path = fitted(CONTAINERS["csr"]).save(tmp_path / "sparse.npz")
    with np.load(sparse_path) as arrays:
        numbers = {arrays[name].dtype.str for name in arrays.files if "json" not in name}
    assert numbers <= {"<f8", "<i8", "|b1"}
    path = fitted(CONTAINERS["frame of months"]).save(tmp_path / "model.npz")
    with zipfile.ZipFile(path) as file:
        header, labels = (json.loads(file.read(f"{n}.json")) for n in ("header", "labels"))
        kinds = {
            name: np.load(io.BytesIO(file.read(name)), allow_pickle=False).dtype.str
            for name in file.namelist()
            if name.endswith(".npy")
        }
    assert header["format"] == "temporalnmf model"
    assert header["schema"] == 2
    assert header["versions"]["temporalnmf"] == __version__
    assert header["chain"] == {"name": "rate", "parameters": {"alpha": 150.0, "beta": 150.0}}
    assert labels["features"] == list("abcdéf")
    assert labels["timeline"]["labels"][1] == "2001-02-28"
    assert set(kinds.values()) <= {"<f8", "<i8", "|b1"}
    assert {"components_.npy", "activations_.npy", "posterior_factor.npy"} <= set(kinds)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["components_"].sum(axis=1).round(12), 1.0)


def test_nothing_is_overwritten_unless_asked_for(tmp_path):
    path = fitted().save(tmp_path / "model.npz")
    before = path.read_bytes()
    other = fitted(n_components=3)
    with pytest.raises(FileExistsError, match=r"model.npz exists already.*overwrite=True"):
        other.save(path)
    assert path.read_bytes() == before
    other.save(path, overwrite=True)
    assert load(path).components_.shape == (3, 6)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = fitted().save(tmp_path / "model.npz")
    before = path.read_bytes()

    def fail(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="no space"):
        fitted(n_components=3).save(path, overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def rewritten(path, tmp_path, **members):
    """The file with some members replaced (or left out: None)."""
    out = tmp_path / "changed.npz"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            stem = name.split(".")[0]
            content = members.get(stem, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_a_file_from_the_future_says_so(tmp_path):
    path = fitted().save(tmp_path / "model.npz")
    with zipfile.ZipFile(path) as file:
        header = json.loads(file.read("header.json"))
    header["schema"], header["versions"]["temporalnmf"] = 3, "9.1"
    later = rewritten(path, tmp_path, header=json.dumps(header))
    with pytest.raises(ValueError, match=r"temporalnmf 9\.1 with schema 3.*Update temporalnmf"):
        load(later)


BROKEN = {
    "header is no JSON": {"header": b"{"},
    "header of something else": {"header": b'{"format": "cake"}'},
    "header without parameters": {"header": b'{"format": "temporalnmf model", "schema": 1}'},
    "no header": {"header": None},
    "no labels": {"labels": None},
    "labels of another model": {"labels": b'{"features": [], "named": false, "timeline": {}}'},
    "no components": {"components_": None},
    "components of text": {"components_": b"cake"},
    "cut short": {"activations_": npy(np.ones((25, 2)))[:-9]},
    "pickled objects": {"components_": npy(np.array([{}], dtype=object))},
    "wrong shape": {"activations_": npy(np.ones((25, 3)))},
    "exposure too short": {"exposure": npy(np.ones(3))},
    "factor too large": {"posterior_factor": npy(np.ones((3, 5000)))},
    "factor too short": {"posterior_factor": npy(np.ones((3, 10)))},
    "factor of zeros": {"posterior_factor": npy(np.zeros((3, 50)))},
    "posterior too short": {"posterior_activations": npy(np.ones((3, 2)))},
    "weights too few": {"weights": npy(np.ones((3, 1)))},
    "steps out of range": {"fitted_steps": npy(np.arange(1, 26))},
    "steps not in order": {"fitted_steps": npy(np.arange(25)[::-1].copy())},
    "components not finite": {"components_": npy(np.full((2, 6), np.nan))},
    "negative activations": {"activations_": npy(-np.ones((25, 2)))},
    "calibration of another kind": {"calibration": npy(np.ones(3))},
    "indices beyond the end": {"data_columns": npy(np.full(150, 10**6))},
}


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model.npz"
    return fitted(sparse.csr_array(X + 1)).calibrate(6).save(path)


@pytest.mark.parametrize("members", BROKEN.values(), ids=BROKEN.keys())
def test_a_damaged_file_gives_one_clear_error(members, whole_file, tmp_path):
    with pytest.raises(ValueError, match=r"changed.npz cannot be read as a model.*Save the model"):
        load(rewritten(whole_file, tmp_path, **members))


def test_files_of_other_kinds_give_one_clear_error(tmp_path):
    whole = fitted().save(tmp_path / "model.npz").read_bytes()
    foreign = {"text": b"year,war\n1999,3\n", "empty": b"", "half": whole[: len(whole) // 2]}
    for name, content in foreign.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.npz cannot be read as a model"):
            load(path)
    np.savez(tmp_path / "arrays.npz", X=X)
    with pytest.raises(ValueError, match="archive of something else"):
        load(tmp_path / "arrays.npz")
    with pytest.raises(FileNotFoundError, match="no such file"):
        load(tmp_path / "none.npz")


def test_a_flipped_bit_gives_the_same_model_or_a_value_error(tmp_path):
    """A sample of damages: never another kind of error, never other numbers without a word."""
    model = fitted()
    path = model.save(tmp_path / "model.npz")
    whole = bytearray(path.read_bytes())
    damaged = tmp_path / "damaged.npz"
    for place in np.random.default_rng(1).integers(len(whole), size=40):
        changed = whole.copy()
        changed[place] ^= 0x10
        damaged.write_bytes(changed)
        try:
            found = load(damaged)
        except ValueError:
            continue
        assert_same(found, model)


def test_a_chain_that_is_not_registered_cannot_be_saved(tmp_path):
    class Mine(Rate):
        pass

    with pytest.raises(ValueError, match=r"chain=Mine.*not in the registry.*numpy.savez"):
        fitted(chain=Mine(9.0)).save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_hyper_parameters_of_every_chain_survive_json():
    """Hyper-parameters of every chain of the registry survive JSON."""
    from temporalnmf.persistence.models import description_of, made_chain

    for chain in cases.chains("log"):
        stored = json.loads(json.dumps(description_of(chain, registry.CHAINS, "chain")))
        again = made_chain(stored)
        assert type(again) is type(chain)
        assert again.get_params() == chain.get_params()
