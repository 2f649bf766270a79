"""Models in files: arrays and JSON in one zip, no pickle, readable from anywhere.

A model file is a NumPy .npz archive, that is a zip of

    header.json          what the model is: format, schema, versions, parameters, numbers
    labels.json          names of the features and times of the steps
    <name>.npy           arrays, little-endian float64 (data that
                         were float32 stay so), int64 or bool; see docs/formats.md

Reading it never runs code from it. Components that are in a folder go into one beside the file.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import __version__, registry
from .._typing import Array
from ..chains.base import Chain, Point
from ..components import ShardedComponents, refuse_replacing, set_aside, staged_copy
from ..data.series import Series
from ..forecasting.checks import CHECKED, Calibration, Check, Noise, Tally
from ..inference.config import Config
from ..inference.gaps import fitted_steps
from ..inference.laplace import Posterior
from ..likelihoods.base import Likelihood
from ..messages.warning import warn
from ..runtime.archives import LARGEST, Archive, refuse_wild_indices
from ..runtime.files import refuse_overwriting, written_whole
from ..sampling.draws import PosteriorDraws
from ..timeline.grid import Timeline

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

FORMAT = "temporalnmf model"
# Raised by one whenever an older program could not read, or would misread, the file. 2: draws.
SCHEMA = 2
# Of files whose components are in a folder beside them. Older programs would look for the array
# in the file; all other files stay as they were, so that older programs still read them.
SHARDED_SCHEMA = 3

_ARRAYS = ("components_", "activations_", "history_", "history_iterations_", "observed_")
_NUMBERS = (
    "n_iter_", "objective_", "reconstruction_err_", "converged_", "stop_reason_", "smoothing_",
)  # fmt: skip
_DRAWS = ("components", "activations", "smoothing", "log_posterior")
# Settings of a run, not of a model: files neither keep nor set them. A file that named the
# checkpoint, for one, would choose a path that is written to.
_OF_A_RUN = ("callback", "warm_start", "checkpoint", "checkpoint_every", "n_jobs", "verbose")
# Parameters that multiply the cost of a later fit. Above the default of the class, a file does not
# set them.
_CAPPED = ("max_iter", "n_init", "n_draws", "n_tune", "n_chains")


class CappedWarning(UserWarning):
    """Parameters of a model file were replaced by the defaults of `TemporalNMF`."""


def save_model(
    model: TemporalNMF, path: str | PathLike[str], *, overwrite: bool = False, data: bool = True
) -> Path:
    """Write a fitted model, whole or not at all; see `TemporalNMF.save`."""
    path = Path(path)
    refuse_overwriting(path, overwrite)
    staged = _staged(model, path, overwrite)
    if model.posterior_ is None and model.chain_.name != "none" and model._series is not None:
        _ = model._state().laplace  # forecasts of the file are those of the model, to the bit
    header = _header(model)
    labels = {
        "features": model.feature_labels().tolist(),
        "named": hasattr(model, "feature_names_in_"),
        "timeline": model.timeline_.to_dict(),
    }
    arrays = _arrays(model, data)
    with staged as put_components, written_whole(path) as partial:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", json.dumps(header, indent=1, allow_nan=False))
            file.writestr("labels.json", json.dumps(labels, allow_nan=False))
            for name, array in arrays.items():
                rows = np.ascontiguousarray(array)
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, rows, allow_pickle=False)
        put_components()  # the last thing before the file itself
    moved = (
        isinstance(model.components_, ShardedComponents) and not model.components_.folder.exists()
    )
    if moved:  # they were those set aside, see _sharded
        model.components_ = ShardedComponents.open(_folder_of(path))
    return path


def read_model(path: str | PathLike[str], kind: type[TemporalNMF]) -> TemporalNMF:
    """A model of this class from a file; see `temporalnmf.load`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file. Check the path.")
    try:
        with Archive(path) as file:
            if "header.json" not in file.members:
                raise ValueError("it is an archive of something else")
            header = file.json("header.json")
            _check_header(header, path)
            labels = file.json("labels.json")
            arrays = {name: _checked(name, file.array(name)) for name in file.arrays}
        model = _model_of(kind, header, labels, arrays, _sharded(path, header))
    except (_RefusedError, PermissionError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes the libraries below say
        reason = str(error).rstrip(".") or type(error).__name__
        raise ValueError(
            f"{path.name} cannot be read as a model of temporalnmf: {reason}. It is damaged or not "
            f"such a file; save the model again with model.save(path). (A table is read with "
            f"temporalnmf.reading.read_table.)"
        ) from error
    if model._capped:
        _warn_of_caps(model, path)
    return model


def parameters_of_fit(model: TemporalNMF) -> dict[str, Any]:
    """The parameters a model was fitted with, those that loading capped included."""
    return {**model.get_params(deep=False), **model._capped}


class _RefusedError(ValueError):
    """Said in full already."""


def _folder_of(path: Path) -> Path:
    """Where the components of a model file are if they are not in it."""
    return path.with_suffix(".components")


def _staged(
    model: TemporalNMF, path: Path, overwrite: bool
) -> AbstractContextManager[Callable[[], None]]:
    """Components that go beside the file, and a function that puts them there."""
    components, folder = model.components_, _folder_of(path)
    if not isinstance(components, ShardedComponents):
        return nullcontext(lambda: None)
    if folder == path:
        raise ValueError(f"path={str(path)!r} is where its components go. Use the suffix .npz.")
    if folder.resolve() == components.folder:  # they are there
        return nullcontext(lambda: None)
    refuse_replacing(folder, overwrite)
    return staged_copy(components, folder)


def _sharded(path: Path, header: dict[str, Any]) -> ShardedComponents | None:
    """The components beside a file, if they are its own; None if they are in it.

    If a save was killed between folder and file, those of the file are still set aside.
    """
    if header.get("components") != "sharded":
        return None
    folder, reason = _folder_of(path), "there is no such folder"
    for place in (folder, set_aside(folder)):
        if place.exists():
            try:
                found = ShardedComponents.open(place)
                if found.fingerprint() == header["components_fingerprint"]:
                    return found
                reason = "that is the one of another model"
            except (ValueError, FileNotFoundError) as error:
                reason = str(error).rstrip(".")
    raise _RefusedError(
        f"{path.name} cannot be read: its components are in the folder {folder.name} beside it. "
        f"But {reason}. Copy both, file and folder, or save the model again with model.save(path)."
    )


def _header(model: TemporalNMF) -> dict[str, Any]:
    schema, sharded = SCHEMA, {}
    if isinstance(components := model.components_, ShardedComponents):
        schema = SHARDED_SCHEMA
        sharded = {"components": "sharded", "components_fingerprint": components.fingerprint()}
    return {
        "format": FORMAT,
        "schema": schema,
        **sharded,
        "versions": {
            "temporalnmf": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        },
        "parameters": _parameters(model),
        "chain": _described(model.chain_, registry.CHAINS, "chain"),
        "draws": _described_draws(model.posterior_),
        "numbers": {name: _plain(getattr(model, name)) for name in _NUMBERS},
        "provenance": getattr(model, "provenance_", None),
    }


def _described_draws(draws: PosteriorDraws | None) -> dict[str, Any] | None:
    if draws is None:
        return None
    return {
        "chain": _described(draws.chain, registry.CHAINS, "chain"),
        "parameters": list(draws.parameters),
        "learned": list(draws.learned),
        "level": draws.level,
        "thin": draws.thin,
    }


def _parameters(model: TemporalNMF) -> dict[str, Any]:
    found = {n: v for n, v in parameters_of_fit(model).items() if n not in _OF_A_RUN}
    if not isinstance(found["init"], str):
        found["init"] = "random"  # starting values are used up
    if not isinstance(found["random_state"], int | np.integer | None):
        found["random_state"] = None
    for name, table, kind in (
        ("chain", registry.CHAINS, Chain),
        ("likelihood", registry.LIKELIHOODS, Likelihood),
    ):
        if isinstance(found[name], kind):
            found[name] = _described(found[name], table, name)
    return {name: _plain(value) for name, value in found.items()}


def _described(thing: Any, table: dict[str, str], what: str) -> dict[str, Any]:
    """The name of a chain or likelihood and its numbers."""
    known = table.get(thing.name, ":").split(":")[1] == type(thing).__name__
    if not known:
        raise ValueError(
            f"{what}={thing!r} is not in the registry, so a file cannot name it. Register it, or "
            f"save components_ and activations_ with numpy.savez."
        )
    parameters = thing.get_params() if hasattr(thing, "get_params") else {}
    return {
        "name": thing.name,
        "parameters": {name: _plain(value) for name, value in parameters.items()},
    }


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _arrays(model: TemporalNMF, data: bool) -> dict[str, Array]:
    arrays = {name: getattr(model, name) for name in _ARRAYS}
    if isinstance(model.components_, ShardedComponents):
        del arrays["components_"]
    arrays["exposure"] = model.exposure_
    arrays["fitted_steps"] = model._kept
    if model.stability_ is not None:
        arrays["stability"] = model.stability_
    if model._posterior is not None:
        for name in ("activations", "factor", "covariance"):
            arrays[f"posterior_{name}"] = getattr(model._posterior, name)
    if (draws := model.posterior_) is not None:
        arrays |= {f"draws_{name}": getattr(draws, name) for name in _DRAWS}
        arrays |= {f"draws_of_{name}": values for name, values in draws.parameters.items()}
    if model.calibration_ is not None:
        arrays |= _calibration_arrays(model.calibration_)
    series = model._series
    if data and series is not None:
        arrays |= _matrix("data", series.X) | _matrix("weights", series.weights)
    return arrays


def _matrix(name: str, matrix: Any) -> dict[str, Array]:
    """A dense matrix as it is, a sparse one as its compressed rows."""
    if not sparse.issparse(matrix):
        return {name: matrix}
    rows = sparse.csr_array(matrix)
    return {
        f"{name}_values": rows.data,
        f"{name}_columns": rows.indices.astype(np.int64),
        f"{name}_row_starts": rows.indptr.astype(np.int64),
    }


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is not that of a model")
    known = SHARDED_SCHEMA if header.get("components") == "sharded" else SCHEMA
    if type(header["schema"]) is not int or header["schema"] < 1:
        raise ValueError(f"its schema is {header['schema']!r:.60}")
    if header["schema"] > known:
        made_by = header.get("versions", {}).get("temporalnmf", "a later version")
        raise _RefusedError(
            f"{path.name} was written by temporalnmf {made_by} with schema {header['schema']}, and "
            f"this is temporalnmf {__version__}, which reads schema {known}. Update temporalnmf."
        )


# Types that arrays have, float64 if not named here.
_KINDS = {
    "history_iterations_": "i8", "fitted_steps": "i8", "observed_": "b1", "draws_components": "f4",
    "data_columns": "i8", "data_row_starts": "i8",
    "weights_columns": "i8", "weights_row_starts": "i8",
}  # fmt: skip
_KINDS_OF_DATA = ("f8", "f4", "b1")


def _checked(name: str, array: Array) -> Array:
    """An array as compiled code wants it: of its type, in the order of this machine and of C."""
    kind = array.dtype.str[1:]
    of_data = name in ("data", "weights", "data_values", "weights_values")
    if kind not in (_KINDS_OF_DATA if of_data else (_KINDS.get(name, "f8"),)):
        raise ValueError(f"array {name} holds {array.dtype}")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _model_of(
    kind: type[TemporalNMF],
    header: dict[str, Any],
    labels: dict[str, Any],
    arrays: dict[str, Array],
    components: ShardedComponents | None,
) -> TemporalNMF:
    parameters = dict(header["parameters"])
    for name in _OF_A_RUN:
        parameters.pop(name, None)
    for name, table in (("chain", registry.CHAINS), ("likelihood", registry.LIKELIHOODS)):
        if isinstance(parameters[name], dict):
            parameters[name] = _made(parameters[name], table, name)
    model = kind(**parameters)
    model.chain_ = _made(header["chain"], registry.CHAINS, "chain")
    for name in _ARRAYS:
        inside = name != "components_" or components is None
        setattr(model, name, arrays[name] if inside else components)
    numbers = header["numbers"]
    if header["schema"] == 1:  # had no draws
        numbers = {**numbers, "smoothing_": float(header["parameters"]["smoothing"])}
    _check_numbers(numbers)
    for name in _NUMBERS:
        setattr(model, name, numbers[name])
    (K, F), (N, _) = model.components_.shape, model.activations_.shape
    Config.of(model.get_params(deep=False)).check()
    if model.random_state is not None and type(model.random_state) is not int:
        raise ValueError(f"its random_state is {model.random_state!r:.60}")
    model._capped = _cap(model)
    _check_chain(model.chain_, K)
    timeline = Timeline.from_dict(labels["timeline"])
    _check_timeline(timeline, N)
    _check_arrays(arrays, N, K, F)
    _check_features(labels, F)
    model.n_features_in_ = F
    if labels["named"]:
        model.feature_names_in_ = np.array(labels["features"], dtype=object)
    else:
        model._columns = labels["features"]
    model.timeline_, model.times_ = timeline, timeline.times
    model.exposure_, model._kept = arrays["exposure"], arrays["fitted_steps"]
    model.stability_ = arrays.get("stability")
    model.provenance_ = header.get("provenance")
    model._series = _series_of(arrays, timeline, (N, F))
    model._fingerprint = model._series.fingerprint() if model._series is not None else 0
    model.posterior_ = _draws_of(header.get("draws"), arrays)
    _check_steps(model)
    model._posterior = None
    if "posterior_factor" in arrays:
        model._posterior = Posterior(
            *(arrays[f"posterior_{name}"] for name in ("activations", "factor", "covariance"))
        )
    model.calibration_ = None
    if "calibration" in arrays:
        model.calibration_ = _calibration_of(arrays)
    return model


def _cap(model: TemporalNMF) -> dict[str, int]:
    """Lower what multiplies the cost of a later fit to its default; the values of the file."""
    most = type(model)().get_params(deep=False)
    found = {name: getattr(model, name) for name in _CAPPED if getattr(model, name) > most[name]}
    model.set_params(**{name: most[name] for name in found})
    if "n_draws" in found and model.thin is not None and model.thin > model.n_draws:
        found["thin"], model.thin = model.thin, model.n_draws
    return found


def _warn_of_caps(model: TemporalNMF, path: Path) -> None:
    named = ", ".join(f"{name}={value}" for name, value in model._capped.items())
    used = ", ".join(f"{name}={getattr(model, name)}" for name in model._capped)
    warn(
        f"{path.name}: it was fitted with {named}. Later fits of the loaded model use {used}, "
        f"since a file may not make them costlier than the defaults. What was fitted is unchanged. "
        f"If you trust the file, restore them: model.set_params({named}).",
        CappedWarning,
    )


def _check_numbers(numbers: dict[str, Any]) -> None:
    kinds: dict[str, Any] = {
        "n_iter_": int, "converged_": bool, "stop_reason_": str, "smoothing_": (int, float)
    }  # fmt: skip
    for name in _NUMBERS:
        value, kind = numbers[name], kinds.get(name, (int, float))
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"its number {name} is {value!r:.60}")
    if numbers["n_iter_"] < 0 or not 0.0 <= numbers["smoothing_"] <= LARGEST:
        raise ValueError("its n_iter_ or smoothing_ is out of range")


def _check_chain(chain: Chain, n_components: int) -> None:
    """All of its hyper-parameters are numbers that a fit can have."""
    for name, value in chain.get_params().items():
        numbers = np.asarray(1.0 if isinstance(value, bool) else value)
        if numbers.dtype.kind not in "fi" or not np.all(
            (numbers >= 1.0 / LARGEST) & (numbers <= LARGEST)
        ):
            raise ValueError(f"its chain has {name}={value!r:.60}")
    chain._check_values("map", n_components)


def _check_timeline(timeline: Timeline, n_steps: int) -> None:
    labels, rows = timeline.labels, timeline.rows
    kind = labels.dtype.kind
    known = np.datetime_data(labels.dtype)[0] != "generic" if kind == "M" else kind in "ifU"
    if not known or labels.shape != (n_steps,) or not all(map(_is_text, timeline.notes)):
        raise ValueError("its labels do not fit its arrays")
    if labels.dtype.kind in "fM" and not np.isfinite(labels).all():
        raise ValueError("its times are not all known")
    if rows.ndim != 1 or not ((rows >= 0) & (rows < n_steps)).all():
        raise ValueError("its rows do not lie on its steps")
    if not _is_text(timeline.every) or len(timeline.following(1)) != 1:
        raise ValueError("its times have no spacing")


def _check_features(labels: dict[str, Any], n_features: int) -> None:
    names = labels["features"]
    if type(names) is not list or len(names) != n_features or not all(map(_is_text, names)):
        raise ValueError("its labels do not fit its arrays")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _draws_of(described: dict[str, Any] | None, arrays: dict[str, Array]) -> PosteriorDraws | None:
    if described is None:
        return None
    chain = _made(described["chain"], registry.CHAINS, "chain")
    _check_chain(chain, arrays["draws_activations"].shape[-1])
    level, thin, names = described["level"], described["thin"], set(chain.get_params())
    if not (isinstance(level, int | float) and 0.0 < level <= LARGEST and type(thin) is int):
        raise ValueError(f"its draws have the level {level!r:.60}, thinned by {thin!r:.60}")
    if thin < 1 or not (set(described["parameters"]) | set(described["learned"])) <= names:
        raise ValueError("its draws are of something that its chain does not have")
    return PosteriorDraws(
        **{name: arrays[f"draws_{name}"] for name in _DRAWS},
        parameters={name: arrays[f"draws_of_{name}"] for name in described["parameters"]},
        chain=chain,
        level=float(level),
        learned=tuple(described["learned"]),
        thin=thin,
    )


def _check_arrays(arrays: dict[str, Array], N: int, K: int, F: int) -> None:
    """Refuse arrays that do not belong together: compiled code trusts their shapes."""
    kept = arrays["fitted_steps"]
    if kept.ndim != 1 or not (len(kept) and kept[0] >= 0 and kept[-1] < N):
        raise ValueError("array fitted_steps does not fit the number of steps")
    if np.any(np.diff(kept) <= 0):
        raise ValueError("array fitted_steps is not in order")
    if not (K and F):
        raise ValueError("its components are empty")
    n = len(kept)
    expected: dict[str, tuple[int, ...]] = {
        "components_": (K, F), "activations_": (N, K), "observed_": (N,), "exposure": (N,),
        "stability": (K,), "data": (N, F), "posterior_activations": (n, K),
        "history_": (len(arrays["history_"]),), "history_iterations_": (len(arrays["history_"]),),
        "posterior_factor": (K + 1, n * K), "posterior_covariance": (n, K, K),
        "calibration": (7,),
    }  # fmt: skip
    if "draws_smoothing" in arrays:
        runs = C, D = arrays["draws_smoothing"].shape
        expected |= {
            "draws_components": (C, D, K, F), "draws_activations": (C, D, n, K),
            "draws_log_posterior": runs,
        }  # fmt: skip
        expected |= {name: (C, D, K) for name in arrays if name.startswith("draws_of_")}
    if "weights" in arrays:
        expected["weights"] = (N, 1 if arrays["weights"].shape[1:] == (1,) else F)
    for name, shape in expected.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"array {name} has shape {arrays[name].shape}, expected {shape}")
    for name, array in arrays.items():
        hidden = name == "data"  # may hold anything where its weight is zero
        if not (hidden or np.all(np.abs(array) <= LARGEST)):  # nor is NaN
            raise ValueError(f"array {name} holds something else than finite numbers")
    signed = {"draws_log_posterior", "history_", "posterior_factor", "posterior_covariance"}
    for name in set(arrays) - signed - {"data", "data_values"}:
        if np.any(arrays[name] < 0):
            raise ValueError(f"array {name} has negative numbers")
    if not arrays["activations_"].any():
        raise ValueError("array activations_ is empty or holds zeros only")
    positive = {
        "exposure",
        "draws_activations",
        "posterior_activations",
        *(n for n in arrays if n.startswith("draws_of_")),
    }
    for name in positive & set(arrays):
        if not np.all(arrays[name] >= 1.0 / LARGEST):
            raise ValueError(f"array {name} has zeros, or next to zeros")
    # Draws are in single precision.
    for name, most in (("components_", 1e-6), ("draws_components", 1e-4)):
        if name in arrays:
            sums = arrays[name].sum(axis=-1, dtype=float)
            if not np.all(np.abs(sums - 1.0) <= most):
                raise ValueError(f"array {name} has components that do not sum to one")
    if "posterior_factor" in arrays and not np.all(arrays["posterior_factor"][-1] > 0.0):
        raise ValueError("array posterior_factor is no Cholesky factor")
    if "posterior_covariance" in arrays:
        variances = np.diagonal(arrays["posterior_covariance"], axis1=1, axis2=2)
        if not np.all(variances > 0.0):
            raise ValueError("array posterior_covariance has variances that are not positive")
    if "calibration" in arrays:
        _check_calibration(arrays)


def _check_steps(model: TemporalNMF) -> None:
    """Refuse steps that no fit to such data has."""
    observed, draws = model.observed_, model.posterior_
    points: tuple[Point, ...] = ("mean", "mode")
    if not observed.any():
        raise ValueError("array observed_ says that nothing was observed")
    if draws is not None:
        from ..sampling.run import drawn_steps

        possible = [drawn_steps(observed, draws.chain)]
    else:  # the parameter `point` may have been set after the fit
        possible = [fitted_steps(observed, model.chain_, point) for point in points]
    if not any(np.array_equal(model._kept, steps) for steps in possible):
        raise ValueError("array fitted_steps does not agree with observed_")
    if model._series is not None and not np.array_equal(model._series.observed, observed):
        raise ValueError("array observed_ does not agree with the weights of its data")


def _calibration_arrays(found: Calibration) -> dict[str, Array]:
    """Numbers in the places where earlier versions look for them, and a row per check."""
    noise, first, entries = found.noise, found.of("totals")[0], found.of("entries")
    held = [round(tally.inside * first.n_origins) for tally in (first.before, first.after)]
    share = entries[0].before.inside if entries else found.coverage
    clumping = 0.0
    return {
        "calibration": np.array(
            [found.coverage, first.n_origins, *held, share, noise.dispersion, clumping]
        ),
        "calibration_level": noise.level,
        "calibration_own": noise.own,
        "calibration_persistence": np.array([noise.persistence]),
        "calibration_checks": np.array(
            [
                [CHECKED.index(one.of), one.ahead, one.n_origins, one.n_values,
                 *astuple(one.before), *astuple(one.after)]
                for one in found.checks
            ]
        ),
    }  # fmt: skip


def _calibration_of(arrays: dict[str, Array]) -> Calibration:
    if "calibration_checks" not in arrays:
        return _old_calibration(arrays)
    coverage, *_, dispersion, _ = arrays["calibration"].tolist()
    checks = []
    for row in arrays["calibration_checks"].tolist():
        of, ahead, n_origins, n_values = map(int, row[:4])
        tallies = Tally(*row[4:7]), Tally(*row[7:])
        checks.append(Check(CHECKED[of], ahead, n_origins, n_values, *tallies))
    (persistence,) = arrays["calibration_persistence"].tolist()
    noise = Noise(arrays["calibration_level"], arrays["calibration_own"], persistence, dispersion)
    return Calibration(coverage, tuple(checks), noise)


def _old_calibration(arrays: dict[str, Array]) -> Calibration:
    """That of files without checks, which earlier versions wrote.

    They know totals one step ahead alone, and neither scores nor widths. Their variance of entries
    dμ + cμ² had a second part, which sums of entries cannot have: it is dropped.
    """
    coverage, n, inside, widened, _, dispersion, clumping = arrays["calibration"].tolist()
    level = arrays["calibration_level"]
    if clumping > 0.0:
        warn(
            "The model was calibrated by an earlier version, and intervals of its entries are now "
            "narrower than they were. model.calibrate() checks them again.",
        )
    tallies = (Tally(held / n, 0.0, width) for held, width in ((inside, 0.0), (widened, 1.0)))
    checks = (Check("totals", 1, int(n), int(n), *tallies),)
    return Calibration(coverage, checks, Noise(level, np.zeros_like(level), 1.0, dispersion))


def _check_calibration(arrays: dict[str, Array]) -> None:
    numbers, level = arrays["calibration"], arrays["calibration_level"]
    if level.ndim != 1 or not len(level):
        raise ValueError("array calibration_level is not a list of numbers")
    coverage, n, inside, widened, share, *_ = numbers.tolist()
    counts = all(float(count).is_integer() for count in (n, inside, widened))
    if not (0.0 < coverage < 1.0 and share <= 1.0 and counts and 1 <= n < 2**31):
        raise ValueError("array calibration does not tell of forecasts")
    if inside > n or widened > n:
        raise ValueError("array calibration does not tell of forecasts")
    if "calibration_checks" not in arrays:
        return
    own, checks = arrays["calibration_own"], arrays["calibration_checks"]
    if own.shape != level.shape:
        raise ValueError("array calibration_own does not fit calibration_level")
    persistence = arrays["calibration_persistence"]
    if persistence.shape != (1,) or persistence[0] > 1.0:
        raise ValueError("array calibration_persistence is no correlation")
    if checks.ndim != 2 or checks.shape[1] != 10 or not np.any(checks[:, 0] == 0.0):
        raise ValueError("array calibration_checks does not tell of totals")
    whole, shares = checks[:, :4], checks[:, [4, 7]]
    sound = np.all(whole == np.floor(whole)) and np.all(whole[:, 1:] >= 1) and np.all(shares <= 1)
    if not (sound and np.all(whole[:, 0] < len(CHECKED)) and np.all(whole < 2**31)):
        raise ValueError("array calibration_checks does not tell of forecasts")


def _made(described: dict[str, Any], table: dict[str, str], what: str) -> Any:
    made = registry.create(table, described["name"], what)
    parameters = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in described["parameters"].items()
    }
    if parameters:
        made.set_params(**parameters)
    return made


def _series_of(
    arrays: dict[str, Array], timeline: Timeline, shape: tuple[int, int]
) -> Series | None:
    X, weights = (_matrix_of(arrays, name, shape) for name in ("data", "weights"))
    if X is None or weights is None:
        return None
    seen = X.data if sparse.issparse(X) else X[np.broadcast_to(_dense(weights) > 0.0, shape)]
    if not np.all((seen >= 0.0) & (seen <= LARGEST)):
        raise ValueError("array data holds something else than finite, non-negative numbers")
    return Series(X, weights, arrays["exposure"], timeline)


def _dense(matrix: Any) -> Array:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _matrix_of(arrays: dict[str, Array], name: str, shape: tuple[int, int]) -> Any:
    if f"{name}_values" not in arrays:
        return arrays.get(name)
    parts = [arrays[f"{name}_{part}"] for part in ("values", "columns", "row_starts")]
    rows = sparse.csr_array(tuple(parts), shape=shape)
    refuse_wild_indices(rows)
    return rows
