"""Model files: arrays and JSON, without pickle, readable in any language.

A model file is a NumPy .npz archive, that is a zip archive of

    header.json          format, schema, versions, parameters, numbers
    labels.json          names of the features and times of the steps
    <name>.npy           arrays, little-endian float64 (float32 data stay so), int64 or bool; see
                         persistence/arrays.py and docs/formats.md

Reading never executes code from the file. Components in a folder are copied to one beside the file.
"""

from __future__ import annotations

import json
import platform
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from .. import __version__, registry
from .._typing import Array
from ..chains.base import Chain, Point
from ..chains.rate import Rate
from ..components import OURS, ShardedComponents, set_aside, staged_copy
from ..data.series import Series, arrays_of, dense, matrix_of
from ..effects.effects import Effects
from ..effects.reasons import reason_of
from ..inference.config import Config
from ..inference.gaps import fitted_steps
from ..inference.laplace import Posterior
from ..likelihoods.base import Likelihood
from ..messages.errors import ArgumentError
from ..messages.warning import warn
from ..runtime.archives import LARGEST, Archive, Json, refuse_wild_indices
from ..runtime.files import refuse_overwriting, refuse_replacing, written_whole
from ..sampling.draws import PosteriorDraws, cycles_of
from ..sampling.run import drawn_steps
from ..solvers.options import OPTIONS, flattened, nested
from ..timeline.grid import DAYS, Timeline
from .arrays import checked_arrays, is_known
from .calibrations import calibration_arrays, calibration_of
from .effects import (
    described_effects,
    drawn_arrays,
    drawn_effects,
    effects_arrays,
    effects_of,
    read_terms,
    written_terms,
)

if TYPE_CHECKING:
    from ..estimator import TemporalNMF

FORMAT = "temporalnmf model"
# Raised by one whenever an older program could not read, or would misread, the file. 2: draws.
SCHEMA = 2
# Schema of files whose components are in a folder beside them. Other files keep the lower number,
# so that older programs can read them.
SHARDED_SCHEMA = 3
# Schema of models with effects.
EFFECTS_SCHEMA = 4

_ARRAYS = ("components_", "activations_", "history_", "history_iterations_", "observed_")
_NUMBERS: dict[str, tuple[type, ...]] = {
    "n_iter_": (int,), "objective_": (int, float), "reconstruction_err_": (int, float),
    "converged_": (bool,), "stop_reason_": (str,), "smoothing_": (int, float),
}  # fmt: skip
_POSTERIOR = ("activations", "factor", "covariance")
_LEARNED = "learned_of_"
_DRAWS = ("components", "activations", "smoothing", "log_posterior")
# Settings of a fit, not of a model, which are neither written nor read: with a checkpoint, for
# instance, a file could choose a path that is written to.
_OF_A_RUN = ("callback", "warm_start", "checkpoint", "checkpoint_every", "n_jobs", "verbose")
# Parameters that multiply the cost of a later fit: a file may lower the defaults, not raise them.
_CAPPED = ("max_iter", "n_init", "n_draws", "n_tune", "n_chains")


# Values of parameters that files of earlier versions do not have.
_FORMER = {
    "intervals": "model", "gaps": "mode", "season": None, "trend": None, "holidays": None
}  # fmt: skip
# Parameters that ask for effects.
_TERMS = ("season", "trend", "holidays")


class CappedWarning(UserWarning):
    """Parameters of a model file were replaced by the defaults of `TemporalNMF`."""


class StoredModel(NamedTuple):
    """The contents of a model file: parameters, and attributes of the fitted estimator."""

    parameters: Json
    attributes: dict[str, object]


def save_model(
    model: TemporalNMF, path: str | PathLike[str], *, overwrite: bool = False, data: bool = True
) -> Path:
    """Write a fitted model, whole or not at all; see `TemporalNMF.save`."""
    path, components = Path(path), model.components_
    refuse_overwriting(path, overwrite)
    staged = _staged(components, path, overwrite)
    if model.posterior_ is None and model._state().has_law and model._series is not None:
        model._state().laplace()  # so that forecasts have the same bits after loading
    labels = {
        "features": model.feature_labels().tolist(),
        "named": hasattr(model, "feature_names_in_"),
        "timeline": model.timeline_.to_dict(),
    }
    header, arrays = _header(model), _arrays(model, data)
    with staged as put_components, written_whole(path) as partial:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("header.json", json.dumps(header, indent=1, allow_nan=False))
            file.writestr("labels.json", json.dumps(labels, allow_nan=False))
            for name, array in arrays.items():
                rows = np.ascontiguousarray(array)
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, rows, allow_pickle=False)
        put_components()  # just before the file itself
    if isinstance(components, ShardedComponents) and not components.folder.exists():
        model.components_ = ShardedComponents.open(_folder_of(path))  # see _sharded
    return path


def read_model(path: str | PathLike[str], defaults: Json) -> StoredModel:
    """Read a model file; `defaults` are those of all parameters. See `temporalnmf.load`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file. Check the path.")
    try:
        with Archive(path) as file:
            if "header.json" not in file.members:
                raise ValueError("it is an archive of something else")
            header = _check_header(file.json("header.json"), path)
            labels = file.json("labels.json")
            found = {name: file.array(name) for name in file.arrays}
            arrays = {name: array for name, array in found.items() if is_known(name)}
        sharded = _sharded(path, header)
        components = arrays["components_"] if sharded is None else sharded
        arrays = checked_arrays(arrays, components.shape)
        parameters, capped = _read_parameters(header, defaults)
        attributes = _attributes(header, labels, arrays, components.shape[1])
    except (_RefusedError, PermissionError, MemoryError):
        raise
    except Exception as error:  # any error of the libraries below for a damaged file
        reason = str(error).rstrip(".") or type(error).__name__
        raise ValueError(
            f"{path.name} cannot be read as a model of temporalnmf: {reason}. Save the model again "
            f"with model.save(path). (A table is read with temporalnmf.reading.read_table.)"
        ) from error
    if capped:
        _warn_of_caps(capped, parameters, path)
    attributes |= {"components_": arrays.get("components_", components), "_capped": capped}
    return StoredModel(parameters, attributes)


def parameters_of_fit(model: TemporalNMF) -> Json:
    """The parameters a model was fitted with, including those that loading capped."""
    return {**flattened(model.get_params(deep=False)), **model._capped}


class _RefusedError(ValueError):
    """An error with a complete message."""


# Writing.


def _folder_of(path: Path) -> Path:
    """The folder for the components of a model file if they are not in it."""
    return path.with_suffix(".components")


def _staged(
    components: Array | ShardedComponents, path: Path, overwrite: bool
) -> AbstractContextManager[Callable[[], None]]:
    """Copy components in a folder; yields a function that puts the copy beside the file."""
    folder = _folder_of(path)
    if not isinstance(components, ShardedComponents):
        return nullcontext(lambda: None)
    if folder == path:
        problem = "is the name of the folder for the components."
        raise ArgumentError("path", str(path), problem, "Use the suffix .npz.")
    if folder.resolve() == components.folder:
        return nullcontext(lambda: None)
    refuse_replacing(folder, overwrite, OURS, "components")
    return staged_copy(components, folder)


def _header(model: TemporalNMF) -> Json:
    schema, sharded = SCHEMA, {}
    if isinstance(components := model.components_, ShardedComponents):
        schema = SHARDED_SCHEMA
        sharded = {"components": "sharded", "components_fingerprint": components.fingerprint()}
    if model._effects is not None:
        schema = EFFECTS_SCHEMA
    versions = {"temporalnmf": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {
        "format": FORMAT,
        "schema": schema,
        **sharded,
        **({"exposure": DAYS} if model._days else {}),
        "versions": versions,
        "parameters": _written_parameters(model),
        "chain": description_of(model.chain_, registry.CHAINS, "chain"),
        "likelihood": description_of(model.likelihood_, registry.LIKELIHOODS, "likelihood"),
        "draws": _described_draws(model.posterior_),
        "effects": described_effects(model._effects),
        "reasons": {name: [r.code, r.trials] for name, r in model._reasons.items()},
        "numbers": {name: _plain(getattr(model, name)) for name in _NUMBERS},
        "provenance": getattr(model, "provenance_", None),
    }


def _described_draws(draws: PosteriorDraws | None) -> Json | None:
    if draws is None:
        return None
    chain = description_of(draws.chain, registry.CHAINS, "chain")
    names = {"parameters": list(draws.parameters), "learned": list(draws.learned)}
    names |= {"likelihood": list(draws.of_likelihood)}
    return {"chain": chain, **names, "level": draws.level, "thin": draws.thin}


def _written_parameters(model: TemporalNMF) -> Json:
    found = {n: v for n, v in parameters_of_fit(model).items() if n not in _OF_A_RUN}
    if not isinstance(found["init"], str):
        found["init"] = "random"  # starting values are not needed any more
    if not isinstance(found["random_state"], int | np.integer | None):
        found["random_state"] = None
    for name, table in (("chain", registry.CHAINS), ("likelihood", registry.LIKELIHOODS)):
        if isinstance(found[name], Chain | Likelihood):
            found[name] = description_of(found[name], table, name)
    for name in _TERMS:
        found[name] = written_terms(found[name])
    return {name: _plain(value) for name, value in found.items()}


def description_of(thing: Chain | Likelihood, table: dict[str, str], argument: str) -> Json:
    """The registered name of a chain or likelihood, and its parameters."""
    if table.get(thing.name, ":").split(":")[1] != type(thing).__name__:
        problem = "is not in the registry, so a file cannot name it."
        remedy = "Register it, or save components_ and activations_ with numpy.savez."
        raise ArgumentError(argument, thing, problem, remedy)
    parameters = thing.get_params()
    return {"name": thing.name, "parameters": {n: _plain(value) for n, value in parameters.items()}}


def _plain(value: object) -> object:
    """A value that JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _arrays(model: TemporalNMF, data: bool) -> dict[str, Array]:
    arrays = {name: getattr(model, name) for name in _ARRAYS}
    if isinstance(model.components_, ShardedComponents):
        del arrays["components_"]
    arrays |= {"exposure": model.exposure_, "fitted_steps": model._kept}
    arrays |= effects_arrays(model._effects, model.levels_)
    if model.stability_ is not None:
        arrays["stability"] = model.stability_
    if model._posterior is not None:
        arrays |= {f"posterior_{name}": getattr(model._posterior, name) for name in _POSTERIOR}
    arrays |= {f"{_LEARNED}{name}": rows for name, rows in model.learned_.items()}
    if (draws := model.posterior_) is not None:
        arrays |= {f"draws_{name}": getattr(draws, name) for name in _DRAWS}
        arrays |= drawn_arrays(draws.effects)
        arrays |= {f"draws_of_{name}": values for name, values in draws.parameters.items()}
        arrays |= {f"draws_likelihood_{n}": values for n, values in draws.of_likelihood.items()}
    if model.calibration_ is not None:
        arrays |= calibration_arrays(model.calibration_)
    if data and model._series is not None:
        series = model._series
        matrices = arrays_of("data", series.X) | arrays_of("weights", series.weights)
        arrays |= {n: a.astype(np.int64) if a.dtype.kind == "i" else a for n, a in matrices.items()}
    return arrays


# Reading.


def _check_header(header: object, path: Path) -> Json:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header is not that of a model")
    known = SHARDED_SCHEMA if header.get("components") == "sharded" else SCHEMA
    known = EFFECTS_SCHEMA if header.get("effects") else known
    schema = header["schema"]
    if type(schema) is not int or schema < 1:
        raise ValueError(f"its schema is {schema!r:.60}")
    if schema > known:
        made_by = header.get("versions", {}).get("temporalnmf", "a later version")
        raise _RefusedError(
            f"{path.name} was written by temporalnmf {made_by} with schema {schema}, and this is "
            f"temporalnmf {__version__}, which reads schema {known}. Update temporalnmf."
        )
    return header


def _sharded(path: Path, header: Json) -> ShardedComponents | None:
    """The components in the folder beside a file; None if they are in the file.

    If saving was killed between replacing folder and file, the old components are still set aside.
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
                reason = "it belongs to another model"
            except (ValueError, FileNotFoundError) as error:
                reason = str(error).rstrip(".")
    raise _RefusedError(
        f"{path.name} cannot be read: its components are in the folder {folder.name} beside it. "
        f"But {reason}. Copy both, file and folder, or save the model again with model.save(path)."
    )


def _read_parameters(header: Json, defaults: Json) -> tuple[Json, dict[str, int]]:
    """Parameters for the estimator, and the values in the file of those that are capped."""
    found = {n: v for n, v in header["parameters"].items() if n not in _OF_A_RUN}
    if "gaps" not in found and found["chain"] == "rate":
        found["chain"] = Rate(300.0)  # its default in these versions
    found = _FORMER | found
    if isinstance(found["chain"], dict):
        found["chain"] = made_chain(found["chain"])
    if isinstance(found["likelihood"], dict):
        found["likelihood"] = _made_likelihood(found["likelihood"])
    for name in _TERMS:
        found[name] = read_terms(found[name])
    config = Config.of({**defaults, **found}).check()
    if found["random_state"] is not None and type(found["random_state"]) is not int:
        raise ValueError(f"its random_state is {found['random_state']!r:.60}")
    most = {name: flattened(defaults)[name] for name in _CAPPED}
    used = [n for n in _CAPPED if config.drawing or n not in OPTIONS]
    capped = {n: value for n in used if (value := getattr(config, n)) > most[n]}
    if "n_draws" in capped and config.thin is not None and config.thin > most["n_draws"]:
        capped["thin"], most["thin"] = config.thin, most["n_draws"]
    return nested({**found, **{name: most[name] for name in capped}}), capped


def _warn_of_caps(capped: dict[str, int], parameters: Json, path: Path) -> None:
    lowered = flattened({"solver": "accelerated", "checkpoint": None, **parameters})
    prefixes = {name: "solver__" if OPTIONS.get(name) == "solver" else "" for name in capped}
    named, used = (
        ", ".join(f"{prefix}{name}={values[name]}" for name, prefix in prefixes.items())
        for values in (capped, lowered)
    )
    warn(
        f"{path.name}: it was fitted with {named}. Later fits of the loaded model use {used}, "
        f"since a file may not make them costlier than the defaults. What was fitted is unchanged. "
        f"If you trust the file, restore them: model.set_params({named}).",
        CappedWarning,
    )


def _attributes(
    header: Json, labels: Json, arrays: dict[str, Array], n_features: int
) -> dict[str, object]:
    """Attributes of the fitted estimator, except its components."""
    N, K = arrays["activations_"].shape
    chain, timeline = made_chain(header["chain"]), Timeline.from_dict(labels["timeline"])
    _check_chain(chain, K)
    _check_timeline(timeline, N)
    names = labels["features"]
    if type(names) is not list or len(names) != n_features or not all(map(_is_text, names)):
        raise ValueError("its labels do not fit its arrays")
    effects = effects_of(header.get("effects"), arrays, timeline)
    days = _checked_days(header, timeline, arrays["exposure"])
    series = _series_of(arrays, timeline, (N, n_features), days)
    if series is not None and effects is not None:
        series = series.designed(effects.design)
    likelihood = _likelihood_of(header)
    draws = _draws_of(header.get("draws"), arrays, likelihood, effects)
    learned = {n.removeprefix(_LEARNED): a for n, a in arrays.items() if n.startswith(_LEARNED)}
    if not learned.keys() <= chain.get_params().keys():
        raise ValueError("it has learned parameters that its chain does not have")
    _check_steps(arrays, chain, draws, series)
    posterior = None
    if "posterior_factor" in arrays:
        posterior = Posterior(*(arrays[f"posterior_{name}"] for name in _POSTERIOR))
    return {
        **{name: arrays[name] for name in _ARRAYS if name != "components_"},
        **_checked_numbers(header),
        "n_features_in_": n_features,
        **({"feature_names_in_": np.array(names, dtype=object)} if labels["named"] else
           {"_columns": names}),
        "chain_": chain,
        "likelihood_": likelihood,
        "timeline_": timeline,
        "times_": timeline.times,
        "exposure_": arrays["exposure"],
        "_days": days,
        "levels_": arrays.get("levels", arrays["activations_"]),
        "_effects": effects,
        "season_": cycles_of(effects, draws),
        "effects_": {} if effects is None else effects.influences(),
        "trend_": None if effects is None else effects.trend(),
        **_reasons_of(header),
        "_kept": arrays["fitted_steps"],
        "stability_": arrays.get("stability"),
        "provenance_": header.get("provenance"),
        "_series": series,
        "_fingerprint": 0 if series is None else series.fingerprint(),
        "posterior_": draws,
        "learned_": learned,
        "_posterior": posterior,
        "calibration_": calibration_of(arrays),
    }  # fmt: skip


def _checked_days(header: Json, timeline: Timeline, exposure: Array) -> bool:
    """Whether the exposure is the days in each step."""
    stored = header.get("exposure")
    if stored is None:
        return False
    if stored != DAYS or not timeline.clock.dated:
        raise ValueError(f"its exposure is {stored!r:.60}")
    if not np.array_equal(timeline.clock.days, exposure):
        raise ValueError("its exposure is not the days in its steps")
    return True


def _reasons_of(header: Json) -> dict[str, object]:
    """Why the model has its seasons and its trend."""
    stored = header.get("reasons", {})
    if not isinstance(stored, dict):
        raise ValueError(f"its reasons are {stored!r:.60}")
    found = {name: reason_of(stored.get(name)) for name in ("season", "trend")}
    return {"_reasons": found} | {f"{name}_reason_": str(r) for name, r in found.items()}


def _checked_numbers(header: Json) -> dict[str, object]:
    numbers = header["numbers"]
    if header["schema"] == 1:  # had no draws
        numbers = {**numbers, "smoothing_": float(header["parameters"]["smoothing"])}
    for name, kinds in _NUMBERS.items():
        value = numbers[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"its number {name} is {value!r:.60}")
    if numbers["n_iter_"] < 0 or not 0.0 <= numbers["smoothing_"] <= LARGEST:
        raise ValueError("its n_iter_ or smoothing_ is out of range")
    return {name: numbers[name] for name in _NUMBERS}


def _check_chain(chain: Chain, n_components: int) -> None:
    """Refuse hyper-parameters that a fit cannot have."""
    for name, value in chain.get_params().items():
        numbers = np.asarray(1.0 if isinstance(value, bool) else value)
        number = numbers.dtype.kind in "fi"
        if not number or not np.all((numbers >= 1.0 / LARGEST) & (numbers <= LARGEST)):
            raise ValueError(f"its chain has {name}={value!r:.60}")
    chain._check_values("map", n_components)


def _check_timeline(timeline: Timeline, n_steps: int) -> None:
    labels, rows = timeline.labels, timeline.rows
    kind = labels.dtype.kind
    known = np.datetime_data(labels.dtype)[0] != "generic" if kind == "M" else kind in "ifU"
    if not known or labels.shape != (n_steps,) or not all(map(_is_text, timeline.notes)):
        raise ValueError("its labels do not fit its arrays")
    if kind in "fM" and not np.isfinite(labels).all():
        raise ValueError("its times are not all known")
    if rows.ndim != 1 or not ((rows >= 0) & (rows < n_steps)).all():
        raise ValueError("its rows are not at its steps")
    if not _is_text(timeline.every) or len(timeline.following(1)) != 1:
        raise ValueError("its times have no spacing")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _draws_of(
    described: Json | None,
    arrays: dict[str, Array],
    likelihood: Likelihood,
    effects: Effects | None,
) -> PosteriorDraws | None:
    if described is None:
        return None
    chain = made_chain(described["chain"])
    _check_chain(chain, arrays["draws_activations"].shape[-1])
    level, thin, names = described["level"], described["thin"], set(chain.get_params())
    if not (isinstance(level, int | float) and 0.0 < level <= LARGEST and type(thin) is int):
        raise ValueError(f"its draws have the level {level!r:.60}, thinned by {thin!r:.60}")
    if thin < 1 or not (set(described["parameters"]) | set(described["learned"])) <= names:
        raise ValueError("its draws have parameters that its chain does not have")
    of_likelihood = described.get("likelihood", [])  # older files have none
    if not set(of_likelihood) <= set(likelihood.get_params()):
        raise ValueError("its draws have parameters that its likelihood does not have")
    components, activations, *rest = (arrays[f"draws_{name}"] for name in _DRAWS)
    return PosteriorDraws(
        components,
        activations,
        smoothing=rest[0],
        log_posterior=rest[1],
        parameters={name: arrays[f"draws_of_{name}"] for name in described["parameters"]},
        chain=chain,
        likelihood=likelihood,
        level=float(level),
        learned=tuple(described["learned"]),
        thin=thin,
        of_likelihood={name: arrays[f"draws_likelihood_{name}"] for name in of_likelihood},
        effects=drawn_effects(effects, arrays),
    )


def _check_steps(
    arrays: dict[str, Array], chain: Chain, draws: PosteriorDraws | None, series: Series | None
) -> None:
    """Refuse fitted steps that no fit to such data can have."""
    observed = arrays["observed_"]
    points: tuple[Point, ...] = ("mean", "mode")
    if draws is not None:
        possible = [drawn_steps(observed, draws.chain)]
    else:  # the parameter `point` may have been set after the fit
        possible = [fitted_steps(observed, chain, point) for point in points]
    if not any(np.array_equal(arrays["fitted_steps"], steps) for steps in possible):
        raise ValueError("array fitted_steps does not agree with observed_")
    if series is not None and not np.array_equal(series.observed, observed):
        raise ValueError("array observed_ does not agree with the weights of its data")


def _likelihood_of(header: Json) -> Likelihood:
    """The fitted one; older files have that of the parameters only, which has nothing to learn."""
    return _made_likelihood(header.get("likelihood", header["parameters"]["likelihood"]))


def _made_likelihood(described: str | Json) -> Likelihood:
    """From a name, as older files have it, or a name and parameters."""
    if isinstance(described, str):
        described = {"name": described, "parameters": {}}
    found: Likelihood = registry.create(registry.LIKELIHOODS, described["name"], "likelihood")
    found.set_params(**described["parameters"])
    found.check()
    return found


def made_chain(described: Json) -> Chain:
    chain: Chain = registry.create(registry.CHAINS, described["name"], "chain")
    for name, value in described["parameters"].items():
        chain.set_params(**{name: np.array(value) if isinstance(value, list) else value})
    return chain


def _series_of(
    arrays: dict[str, Array], timeline: Timeline, shape: tuple[int, int], days: bool
) -> Series | None:
    X, weights = (matrix_of(arrays, name, shape) for name in ("data", "weights"))
    if X is None or weights is None:
        return None
    for matrix in (X, weights):
        if sparse.issparse(matrix):
            refuse_wild_indices(matrix)
    hidden = np.broadcast_to(dense(weights) <= 0.0, shape)
    seen = np.where(hidden, 0.0, X) if isinstance(X, np.ndarray) else X.data
    if not np.all((seen >= 0.0) & (seen <= LARGEST)):
        raise ValueError("array data has values that are negative or not finite")
    return Series(X, weights, arrays["exposure"], timeline, days=days)
