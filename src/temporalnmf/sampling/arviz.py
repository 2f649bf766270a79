"""Draws as ArviZ holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import __version__
from .._typing import Array
from .traces import draws_of

# Bytes that the data may take as a dense table.
_MOST_BYTES = 2**28
_UNITS = ("s", "ms", "us", "ns")


def to_datatree(model: Any) -> Any:
    """See `TemporalNMF.to_arviz`."""
    draws = draws_of(model, "to_arviz")
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError('to_arviz needs arviz-base: pip install "temporalnmf[bayes]".') from error
    posterior = {
        "components": draws.components,
        "activations": draws.activations,
        **draws.parameters,
    }
    dims = {
        "components": ["component", "feature"],
        "activations": ["time", "component"],
        **{name: ["component"] for name in draws.parameters},
    }
    if np.ptp(draws.smoothing) > 0.0:
        posterior["smoothing"] = draws.smoothing
    tree = from_dict(
        {"posterior": posterior, "sample_stats": {"lp": draws.log_posterior}},
        dims=dims,
        coords={
            "component": np.arange(1, draws.components.shape[2] + 1),
            "feature": model.feature_labels(),
            "time": _times(model)[model._kept],
        },
        attrs={
            name: {"inference_library": "temporalnmf", "inference_library_version": __version__,
                   "thinning": draws.thin}
            for name in ("posterior", "sample_stats")
        },
    )  # fmt: skip
    for name, dataset in _known(model).items():
        tree[name] = dataset
    return tree


def _known(model: Any) -> dict[str, Any]:
    """What was not drawn, of all steps: data, NaN where nothing was observed, and exposure."""
    from xarray import DataArray, Dataset, DataTree

    times = DataArray(_times(model), dims="time")
    found = {"constant_data": Dataset({"exposure": ("time", model.exposure_)}, {"time": times})}
    series = model._series
    if series is not None and 8 * series.n_steps * series.X.shape[1] <= _MOST_BYTES:
        rows = (series.row(n) for n in range(series.n_steps))
        X = np.array([np.where(weight > 0.0, x, np.nan) for x, weight in rows])
        features = {"time": times, "feature": model.feature_labels()}
        found["observed_data"] = Dataset({"X": (("time", "feature"), X)}, features)
    return {name: DataTree(dataset) for name, dataset in found.items()}


def _times(model: Any) -> Array:
    """Labels of all steps; dates in a unit that xarray knows."""
    times = np.asarray(model.times_)
    if times.dtype.kind == "M" and np.datetime_data(times.dtype)[0] not in _UNITS:
        return times.astype("datetime64[s]")
    return times
