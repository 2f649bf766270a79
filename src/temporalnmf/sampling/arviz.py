"""Posterior draws as an ArviZ DataTree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from .._typing import Array
from ..data.series import Series
from .draws import PosteriorDraws

if TYPE_CHECKING:
    from xarray import DataTree

# Largest size in bytes of the data as a dense table.
_MOST_BYTES = 2**28
_UNITS = ("s", "ms", "us", "ns")


def to_datatree(
    draws: PosteriorDraws,
    kept: Array,
    features: Array,
    times: Array,
    exposure: Array,
    series: Series | None,
) -> DataTree:
    """Draws of the steps `kept`, exposure and data of all steps; see `TemporalNMF.to_arviz`."""
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError('to_arviz needs arviz-base: pip install "temporalnmf[bayes]".') from error
    if times.dtype.kind == "M" and np.datetime_data(times.dtype)[0] not in _UNITS:
        times = times.astype("datetime64[s]")  # xarray has no other units
    posterior = {"components": draws.components, "activations": draws.activations}
    posterior |= draws.parameters | draws.of_likelihood
    dims = {name: ["component"] for name in draws.parameters}
    dims |= {"components": ["component", "feature"], "activations": ["time", "component"]}
    if np.ptp(draws.smoothing) > 0.0:
        posterior["smoothing"] = draws.smoothing
    statistics, coords = {"lp": draws.log_posterior}, {}
    if (effects := draws.effects) is not None:
        posterior |= {"effects": effects.coefficients, "strengths": effects.strengths}
        dims |= {"effects": ["component", "column"], "strengths": ["term"], "moved": ["given"]}
        terms = [term.name for term in effects.design.terms]
        coords = {"column": effects.design.labels, "term": terms}
        coords["given"] = ["counts", "activations"]
        statistics["moved"] = effects.moved
    groups = {"posterior": posterior, "sample_stats": statistics}
    numbers = np.arange(1, draws.components.shape[2] + 1)
    library = {"inference_library": "temporalnmf", "inference_library_version": __version__}
    tree: DataTree = from_dict(
        groups,
        dims=dims,
        coords={"component": numbers, "feature": features, "time": times[kept], **coords},
        attrs={name: {**library, "thinning": draws.thin} for name in groups},
    )
    for name, group in _data_groups(features, times, exposure, series).items():
        tree[name] = group
    return tree


def _data_groups(
    features: Array, times: Array, exposure: Array, series: Series | None
) -> dict[str, DataTree]:
    """Exposure and data of all steps, NaN where nothing was observed."""
    from xarray import DataArray, Dataset, DataTree

    labels = DataArray(times, dims="time")
    found = {"constant_data": Dataset({"exposure": ("time", exposure)}, {"time": labels})}
    if series is not None and 8 * series.n_steps * len(features) <= _MOST_BYTES:
        rows = (series.row(n) for n in range(series.n_steps))
        X = np.array([np.where(weight > 0.0, x, np.nan) for x, weight in rows])
        coords = {"time": labels, "feature": features}
        found["observed_data"] = Dataset({"X": (("time", "feature"), X)}, coords)
    return {name: DataTree(dataset) for name, dataset in found.items()}
